//! The draft's rules worked by hand. Its test cases on a path are in `appendix`.

mod appendix;
mod loss;
mod states;

use super::*;
use crate::RateSample;
use crate::testing::{MSS, RTT, feedback, select, setup};

const MS: Duration = Duration::from_millis(1);
const MBPS_12: Rate = Rate::from_bps(12_000_000);

fn bbr3() -> Bbr3 {
    Bbr3::new(&setup(), &select("bbr3").values)
}

fn packets(n: u64) -> Bytes {
    MSS * n
}

/// A flow in `state` on a path of 12 Mbit/s and 100 ms, with a BDP of 100 packets, all of them in
/// flight.
fn in_state(state: State) -> Bbr3 {
    let mut bbr = bbr3();
    bbr.max_bw_filter.update(0, MBPS_12);
    (bbr.max_bw, bbr.bw) = (MBPS_12, MBPS_12);
    bbr.min_rtt = RTT;
    bbr.probe_rtt_min_delay = RTT;
    bbr.full_pipe.reached = state != State::Startup;
    bbr.state = state;
    bbr.set_pacing_rate();
    bbr.set_send_quantum();
    bbr.cwnd = packets(200);
    bbr.c.inflight = packets(100);
    bbr.cycle.bw_probe_wait = MS * 2500;
    bbr
}

/// A sample of 12 Mbit/s over a round trip that began at `prior` packets delivered.
fn sample(prior: u64) -> RateSample {
    RateSample {
        delivered: packets(100),
        interval: RTT,
        prior_delivered: packets(prior),
        app_limited: false,
        tx_in_flight: packets(100),
        lost: Bytes::ZERO,
    }
}

/// One packet, numbered `largest_acked`, is acknowledged at `ms`. 100 packets stay in flight.
fn acked(ms: u64, largest_acked: u64) -> Feedback<'static> {
    Feedback {
        acked_bytes: MSS,
        in_flight: packets(100),
        prior_in_flight: packets(101),
        rate: Some(sample(largest_acked)),
        largest_acked,
        next_number: largest_acked + 100,
        cwnd_limited: false,
        ..feedback(Time::from_millis(ms))
    }
}

/// §5.6.1, the table.
#[test]
fn gains_match_the_drafts_table() {
    let gains: Vec<(f64, f64)> = [
        State::Startup,
        State::Drain,
        State::ProbeBwDown,
        State::ProbeBwCruise,
        State::ProbeBwRefill,
        State::ProbeBwUp,
        State::ProbeRtt,
    ]
    .map(State::gains)
    .to_vec();
    let table = [
        (2.77, 2.0),
        (0.5, 2.0),
        (0.9, 2.0),
        (1.0, 2.0),
        (1.0, 2.0),
        (1.25, 2.25),
        (1.0, 0.5),
    ];
    assert_eq!(gains, table);
    // algorithms.md §14.5: 4 ln 2.
    assert!((gains[0].0 - 4.0 * std::f64::consts::LN_2).abs() < 0.003);
}

/// §5.5.5: application-limited samples count if they are larger. The maximum covers two cycles.
#[test]
fn max_bw_covers_two_cycles() {
    let mut bbr = bbr3();
    let mut after = |cycle, mbps: f64, app_limited| {
        bbr.cycle.count = cycle;
        let s = RateSample {
            delivered: Rate::from_mbps(mbps).bytes_in(RTT),
            app_limited,
            ..sample(0)
        };
        let f = Feedback {
            rate: Some(s),
            ..acked(0, 0)
        };
        bbr.generate_rate_sample(&f);
        bbr.update_congestion_signals(&f);
        bbr.max_bw.as_mbps()
    };
    assert_eq!(after(0, 12.0, false), 12.0);
    assert_eq!(after(0, 6.0, true), 12.0);
    assert_eq!(after(0, 24.0, true), 24.0);
    assert_eq!(after(1, 6.0, false), 24.0);
    assert_eq!(after(2, 6.0, false), 6.0);
}

/// §5.5.9: 20 packets at once every 20 ms at 12 Mbit/s are 20 in excess. They are remembered for
/// ten rounds (one in Startup), and are never more than a window.
#[test]
fn aggregated_acknowledgements_raise_the_window() {
    let excess = |state, cwnd| {
        let mut bbr = in_state(state);
        bbr.cwnd = packets(cwnd);
        for burst in 0..5 {
            bbr.c.now = Time::from_millis(20 * burst);
            bbr.rs.newly_acked = packets(20);
            bbr.update_ack_aggregation();
        }
        let mut kept = vec![bbr.extra_acked().get() / MSS.get()];
        for round in 1..12 {
            bbr.c.now += MS * 40;
            bbr.rs.newly_acked = MSS;
            bbr.c.next_number = round;
            bbr.rounds.on_feedback(&acked(0, 1000 * round));
            bbr.update_ack_aggregation();
            kept.push(bbr.extra_acked().get() / MSS.get());
        }
        (kept[0], kept.iter().take_while(|&&k| k == kept[0]).count())
    };
    assert_eq!(excess(State::ProbeBwCruise, 200), (20, 10));
    assert_eq!(excess(State::Startup, 200), (20, 1));
    assert_eq!(excess(State::ProbeBwCruise, 12), (12, 10));
}

/// §5.6.4.2: the window is 2 BDP plus aggregation, at least three quanta and four packets, with two
/// more in UP.
#[test]
fn the_window_is_two_bdp_plus_aggregation() {
    let window = |state, mbps| {
        let mut bbr = in_state(state);
        bbr.bw = Rate::from_mbps(mbps);
        bbr.cwnd = packets(1000);
        bbr.set_cwnd();
        bbr.cwnd.get() / MSS.get()
    };
    assert_eq!(window(State::ProbeBwCruise, 12.0), 200);
    assert_eq!(window(State::ProbeBwUp, 12.0), 227);
    assert_eq!(window(State::ProbeRtt, 12.0), 50);
    assert_eq!(window(State::ProbeRtt, 0.12), 4);
    assert_eq!(window(State::ProbeBwCruise, 0.12), 6, "three quanta of two");
    let mut bbr = in_state(State::ProbeBwCruise);
    bbr.extra_acked_filter.update(0, packets(30));
    bbr.cwnd = packets(1000);
    bbr.set_cwnd();
    assert_eq!(bbr.cwnd, packets(230));
}

/// §5.6.4.7.
#[test]
fn losses_bound_the_window() {
    let window = |state| {
        let mut bbr = in_state(state);
        bbr.inflight_longterm = packets(120);
        bbr.set_cwnd();
        let longterm = bbr.cwnd.get() / MSS.get();
        bbr.inflight_shortterm = packets(40);
        bbr.set_cwnd();
        (longterm, bbr.cwnd.get() / MSS.get())
    };
    assert_eq!(window(State::ProbeBwDown), (120, 40));
    assert_eq!(window(State::ProbeBwUp), (120, 40));
    assert_eq!(window(State::ProbeBwCruise), (102, 40));
    assert_eq!(window(State::Drain), (200, 40));
    assert_eq!(window(State::ProbeRtt), (50, 40));
}

/// §5.6.3: the data of a millisecond, at least two packets and at most 64 KB.
#[test]
fn send_quantum_follows_the_rate() {
    for (mbps, quantum) in [(1.0, 3000), (24.1, 3012), (80.0, 10_000), (1000.0, 65_536)] {
        let mut bbr = bbr3();
        bbr.pacing_rate = Rate::from_mbps(mbps);
        bbr.set_send_quantum();
        assert_eq!(bbr.send_quantum, Bytes::new(quantum), "{mbps} Mbit/s");
    }
}

/// §5.6.2: 2.77 initial windows a millisecond until an RTT is known, then that many an RTT. Until
/// the pipe was full the rate only rises. It is never zero.
#[test]
fn pacing_begins_from_the_initial_window() {
    let mut bbr = bbr3();
    let rate = |bbr: &Bbr3| bbr.control().pacing_rate.expect("paced").as_mbps();
    assert!((rate(&bbr) - 2.77 * 120.0).abs() < 1e-3);
    bbr.on_feedback(&Feedback {
        rate: None,
        ..acked(100, 0)
    });
    assert!((rate(&bbr) - 2.77 * 1.2).abs() < 1e-3);
    bbr.bw = Rate::from_mbps(0.1);
    bbr.set_pacing_rate();
    assert!((rate(&bbr) - 2.77 * 1.2).abs() < 1e-3);
    bbr.full_pipe.reached = true;
    bbr.set_pacing_rate();
    assert!((rate(&bbr) - 2.77 * 0.099).abs() < 1e-5);
    bbr.bw = Rate::ZERO;
    bbr.set_pacing_rate();
    assert_eq!(bbr.pacing_rate, Rate::from_bps(1));
}

/// §4.1.2.4: packets that were sent while ProbeRTT limited the sender are application-limited.
#[test]
fn probe_rtt_does_not_lower_the_estimate() {
    let mut bbr = in_state(State::ProbeRtt);
    bbr.probe_rtt_span = (packets(900), packets(950));
    for (prior, limited) in [(899, false), (900, true), (950, true), (951, false)] {
        bbr.generate_rate_sample(&Feedback {
            rate: Some(sample(prior)),
            ..acked(1, 0)
        });
        assert_eq!(bbr.rs.is_app_limited, limited, "{prior}");
    }
}

/// §5.4.1: after idling the flow paces at the estimate, and skips ProbeRTT.
#[test]
fn restart_from_idle_paces_at_the_estimate() {
    let mut bbr = in_state(State::ProbeBwUp);
    assert!(bbr.pacing_rate.as_mbps() > 14.0);
    let now = Time::from_millis(20_000);
    let mut send = |app_limited, in_flight: u64| {
        bbr.on_sent(&Sent {
            now,
            number: 9,
            size: MSS,
            in_flight: packets(in_flight),
            retransmission: false,
            app_limited,
        });
        (bbr.idle_restart, bbr.pacing_rate.as_mbps())
    };
    assert!(!send(false, 1).0 && !send(true, 2).0);
    let (restart, mbps) = send(true, 1);
    assert!(restart && (mbps - 0.99 * 12.0).abs() < 1e-5);
    bbr.on_feedback(&acked(20_100, 9));
    assert_ne!(bbr.state, State::ProbeRtt);
    assert!(!bbr.idle_restart);
}

/// The packet's tag says whether it was application-limited, for judging its loss.
#[test]
fn packet_tags_say_whether_they_are_application_limited() {
    let mut bbr = bbr3();
    let mut tag = |app_limited| {
        bbr.on_sent(&Sent {
            now: Time::ZERO,
            number: 0,
            size: MSS,
            in_flight: packets(2),
            retransmission: false,
            app_limited,
        })
    };
    assert_eq!((tag(false), tag(true)), (Tag(0), Tag(1)));
}

/// A flow that begins late has no expired RTT.
#[test]
fn late_flows_begin_with_startup() {
    let mut bbr = bbr3();
    bbr.on_feedback(&acked(60_000, 1));
    assert_eq!(bbr.state, State::Startup);
}
