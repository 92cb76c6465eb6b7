//! What losses change, and that it is undone after spurious losses.

use super::*;
use crate::Lost;
use crate::testing::rto;

fn lost(number: u64, tx_in_flight: u64, lost_before: u64) -> Lost {
    Lost {
        number,
        size: MSS,
        sent: Time::ZERO,
        tag: Tag(0),
        tx_in_flight: packets(tx_in_flight),
        lost_before: packets(lost_before),
    }
}

impl Bbr3 {
    /// Loses `many` packets from `first` on.
    fn note_loss_of_range(&mut self, first: u64, many: u64) {
        for number in first..first + many {
            self.handle_lost_packet(&lost(number, 100, 0));
        }
    }
}

/// §5.3.1.3: in fast recovery more than 2% of a round is lost, in six ranges. Then the volume is
/// max(BDP, what the last round delivered). Each of the three conditions is needed.
#[test]
fn startup_ends_on_loss_when_all_three_conditions_hold() {
    let ended = |recovery, ranges: u64, lost_packets: u64| {
        let mut bbr = in_state(State::Startup);
        bbr.inflight_latest = packets(130);
        bbr.c.recovery = recovery;
        for i in 0..ranges {
            bbr.note_loss_of_range(10 * i, 2);
        }
        bbr.rs.lost = packets(lost_packets);
        bbr.rs.tx_in_flight = packets(200);
        bbr.loss_round_start = true;
        bbr.check_startup_done();
        (bbr.state, bbr.inflight_longterm)
    };
    let stays = (State::Startup, Bytes::MAX);
    assert_eq!(
        ended(Recovery::Recovery, 6, 5),
        (State::Drain, packets(130))
    );
    assert_eq!(ended(Recovery::Open, 6, 5), stays);
    assert_eq!(ended(Recovery::Recovery, 5, 5), stays);
    assert_eq!(ended(Recovery::Recovery, 6, 4), stays, "2% is tolerated");
}

/// §5.5.10.2: 200 packets in flight tolerate 4 lost ones. The fifth crosses 2% shortly before its
/// own end: (0.02 x 199 - 4) / 0.98 = -0.02 packets, so 198.98 were safe.
#[test]
fn losses_above_two_percent_bound_the_volume() {
    let mut bbr = in_state(State::ProbeBwUp);
    bbr.cycle.is_bw_probe_sample = true;
    for i in 0..4 {
        bbr.handle_lost_packet(&lost(i, 200, 0));
        assert_eq!(bbr.state, State::ProbeBwUp);
    }
    bbr.handle_lost_packet(&lost(4, 200, 0));
    assert_eq!(bbr.state, State::ProbeBwDown);
    let bound = bbr.inflight_longterm.as_f64() / MSS.as_f64();
    assert!((bound - (199.0 - 0.02 / 0.98)).abs() < 1e-3, "{bound}");
    // The bound falls once a probe.
    bbr.handle_lost_packet(&lost(5, 20, 0));
    assert_eq!(bbr.inflight_longterm.as_f64() / MSS.as_f64(), bound);
}

/// §5.5.10.2: the bound never falls below 0.7 of the target, min(BDP, cwnd). An application-limited
/// packet ends the probe and leaves the bound alone.
#[test]
fn the_bound_falls_by_beta_at_most() {
    let bound = |tag| {
        let mut bbr = in_state(State::ProbeBwUp);
        bbr.cycle.is_bw_probe_sample = true;
        bbr.handle_lost_packet(&Lost {
            tag,
            ..lost(0, 10, 0)
        });
        assert_eq!(bbr.state, State::ProbeBwDown);
        bbr.inflight_longterm
    };
    assert_eq!(bound(Tag(0)), packets(70));
    assert_eq!(bound(Tag(1)), Bytes::MAX);
}

/// §5.5.10.3: each round with loss lowers the bounds to what the round delivered, by at most Beta,
/// but not while probing.
#[test]
fn losses_while_cruising_lower_the_short_term_bounds() {
    let bounds = |state, mbps: f64, delivered| {
        let mut bbr = in_state(state);
        bbr.handle_lost_packet(&lost(0, 100, 0));
        bbr.bw_latest = Rate::from_mbps(mbps);
        bbr.inflight_latest = packets(delivered);
        bbr.adapt_lower_bounds_from_congestion();
        (bbr.bw_shortterm, bbr.inflight_shortterm)
    };
    let none = (Rate::MAX, Bytes::MAX);
    let cruise = State::ProbeBwCruise;
    assert_eq!(
        bounds(cruise, 11.0, 180),
        (Rate::from_mbps(11.0), packets(180))
    );
    assert_eq!(
        bounds(cruise, 1.0, 10),
        (Rate::from_mbps(8.4), packets(140))
    );
    assert_eq!(bounds(State::ProbeBwRefill, 1.0, 10), none);
    assert_eq!(bounds(State::ProbeBwUp, 1.0, 10), none);
    let mut quiet = in_state(cruise);
    quiet.adapt_lower_bounds_from_congestion();
    assert_eq!((quiet.bw_shortterm, quiet.inflight_shortterm), none);
}

/// §5.5.10.3: the round that judges losses begins with the first of them, and ends when a packet
/// that was sent since is acknowledged.
#[test]
fn a_round_of_losses_is_judged_once_at_its_end() {
    let mut bbr = in_state(State::ProbeBwCruise);
    let with_loss = [lost(150, 100, 0)];
    bbr.on_feedback(&Feedback {
        lost: &with_loss,
        lost_bytes: MSS,
        ..acked(1, 151)
    });
    assert_eq!(bbr.bw_shortterm, Rate::MAX);
    bbr.on_feedback(&acked(2, 250));
    assert_eq!(bbr.bw_shortterm, Rate::MAX);
    bbr.on_feedback(&acked(3, 251));
    // A round that delivered 12 Mbit/s does not lower the bound.
    assert_eq!(bbr.bw_shortterm, MBPS_12);
    assert!(!bbr.is_loss_in_round);
}

/// §5.6.4.4: the window is one packet after a timeout, four with the next acknowledgement, and the
/// old window at the end.
#[test]
fn timeout_restarts_from_one_packet() {
    let mut bbr = in_state(State::ProbeBwCruise);
    bbr.on_rto(&rto(Time::from_millis(1), 100, 1));
    assert_eq!(bbr.cwnd, MSS);
    bbr.on_rto(&rto(Time::from_millis(2), 1, 2));
    bbr.on_feedback(&Feedback {
        recovery: Recovery::Loss,
        ..acked(3, 1)
    });
    assert_eq!(bbr.cwnd, packets(4));
    bbr.on_feedback(&acked(4, 2));
    assert_eq!(bbr.cwnd, packets(201)); // one of them for aggregation
}

/// §5.5.11.2 and appendix: a spurious loss takes the flow back to its old state.
#[test]
fn spurious_loss_is_undone() {
    let mut bbr = in_state(State::ProbeBwUp);
    bbr.cycle.is_bw_probe_sample = true;
    bbr.inflight_longterm = packets(180);
    let gone: Vec<Lost> = (0..5).map(|i| lost(i, 100, 0)).collect();
    bbr.on_feedback(&Feedback {
        lost: &gone,
        lost_bytes: packets(5),
        recovery: Recovery::Recovery,
        rate: Some(RateSample {
            lost: packets(5),
            ..sample(50)
        }),
        ..acked(1, 50)
    });
    assert_eq!(bbr.state, State::ProbeBwDown);
    assert!(bbr.inflight_longterm < packets(100));
    bbr.on_feedback(&Feedback {
        undo: true,
        ..acked(2, 51)
    });
    assert_eq!(bbr.state, State::ProbeBwRefill);
    assert_eq!(bbr.inflight_longterm, packets(180));
    assert_eq!((bbr.bw_shortterm, bbr.full_pipe.count), (Rate::MAX, 0));

    let mut bbr = in_state(State::Startup);
    bbr.follow_recovery(Recovery::Recovery);
    (0..6).for_each(|i| bbr.note_loss_of_range(10 * i, 1));
    (bbr.rs.lost, bbr.rs.tx_in_flight) = (packets(6), packets(200));
    bbr.loss_round_start = true;
    bbr.check_startup_done();
    assert_eq!(bbr.state, State::Drain);
    bbr.handle_spurious_loss_detection();
    assert_eq!((bbr.state, bbr.full_pipe.reached), (State::Startup, false));
    assert_eq!(bbr.inflight_longterm, Bytes::MAX);
}
