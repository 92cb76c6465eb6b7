//! When each state begins and ends.

use super::super::probe_bw::AckPhase;
use super::*;

impl Cycle {
    fn bw_probe_wait_s(&self) -> f64 {
        self.bw_probe_wait.as_secs_f64()
    }
}

/// §5.3.1.2: three rounds have less than 25% of growth, and the application does not limit them.
#[test]
fn a_plateau_of_three_rounds_is_a_full_pipe() {
    let mut bbr = bbr3();
    let mut after = |mbps: f64, app_limited, round_start| {
        bbr.rs.delivery_rate = Rate::from_mbps(mbps);
        bbr.rs.is_app_limited = app_limited;
        bbr.round_start = round_start;
        bbr.check_full_bw_reached();
        (bbr.full_pipe.count, bbr.full_pipe.now)
    };
    assert_eq!(after(4.0, false, true), (0, false));
    assert_eq!(after(5.0, false, true), (0, false), "a quarter more");
    assert_eq!(after(6.2, false, true), (1, false), "less than a quarter");
    assert_eq!(
        after(6.2, true, true),
        (1, false),
        "the application's fault"
    );
    assert_eq!(after(6.2, false, false), (1, false), "no new round");
    assert_eq!(after(6.2, false, true), (2, false));
    assert_eq!(after(6.2, false, true), (3, true));
    assert!(bbr.full_pipe.reached);
    bbr.check_startup_done();
    assert_eq!(bbr.state, State::Drain);
}

/// §5.3.2: Drain ends when the queue is gone, or after more than three rounds (the draft's case
/// "Exiting DRAIN Based on Time").
#[test]
fn drain_ends_by_inflight_or_rounds() {
    let drained = |inflight: u64, rounds: u64| {
        let mut bbr = in_state(State::Drain);
        bbr.c.inflight = packets(inflight);
        for round in 0..rounds {
            bbr.c.next_number = 0;
            bbr.start_round();
            bbr.rounds.on_feedback(&acked(round, 1));
        }
        bbr.check_drain_done();
        bbr.state
    };
    assert_eq!(drained(101, 3), State::Drain);
    assert_eq!(drained(100, 0), State::ProbeBwDown);
    assert_eq!(drained(101, 4), State::ProbeBwDown);
}

/// §5.3.3.1: CRUISE follows at 0.85 of the long-term bound and the BDP.
#[test]
fn down_ends_with_headroom_and_without_a_queue() {
    let cruises = |inflight: u64, longterm| {
        let mut bbr = in_state(State::ProbeBwDown);
        bbr.c.inflight = packets(inflight);
        bbr.inflight_longterm = longterm;
        bbr.is_time_to_cruise()
    };
    assert!(cruises(100, Bytes::MAX) && !cruises(101, Bytes::MAX));
    assert!(cruises(85, packets(100)) && !cruises(86, packets(100)));
    // The headroom is at least a packet, and the volume at least four packets.
    let headroom = |longterm: u64| {
        let mut bbr = bbr3();
        bbr.inflight_longterm = packets(longterm);
        bbr.inflight_with_headroom()
    };
    assert_eq!(headroom(6), packets(5));
    assert_eq!(headroom(4), packets(4));
    assert_eq!(headroom(200), packets(170));
}

/// §5.3.3.8.3: a probe comes after 2 to 3 s, or after as many rounds as packets fit the path, at
/// most 63.
#[test]
fn probes_come_after_a_time_or_when_reno_would_lose() {
    let time = |ms: u64, rounds: u64, mbps: f64| {
        let mut bbr = in_state(State::ProbeBwCruise);
        bbr.start_probe_bw_down();
        assert!((2.0..3.0).contains(&bbr.cycle.bw_probe_wait_s()));
        assert!(bbr.cycle.rounds_since_probe_up < 2);
        bbr.bw = Rate::from_mbps(mbps);
        bbr.c.now = Time::from_millis(ms);
        bbr.cycle.rounds_since_probe_up = rounds;
        bbr.is_time_to_probe_bw()
    };
    assert!(!time(2000, 62, 12.0) && time(3001, 62, 12.0));
    assert!(time(0, 63, 12.0), "BDP 100: 63 rounds");
    assert!(!time(0, 9, 1.2) && time(0, 10, 1.2), "BDP 10: 10 rounds");
    let waits: Vec<f64> = (0..200)
        .map(|seed| {
            let mut bbr = Bbr3::new(&Setup { seed, ..setup() }, &select("bbr3").values);
            bbr.start_probe_bw_down();
            bbr.cycle.bw_probe_wait_s()
        })
        .collect();
    let mean = waits.iter().sum::<f64>() / 200.0;
    assert!((2.4..2.6).contains(&mean), "{mean}");
}

/// §5.3.3.3, §5.3.3.9: REFILL forgets the short-term bounds and lasts a round; UP follows.
#[test]
fn refill_lasts_a_round() {
    let mut bbr = in_state(State::ProbeBwCruise);
    bbr.bw_shortterm = Rate::from_mbps(6.0);
    bbr.inflight_shortterm = packets(50);
    bbr.c.next_number = 200;
    bbr.start_probe_bw_refill();
    assert_eq!(bbr.bw_shortterm, Rate::MAX);
    assert_eq!(bbr.inflight_shortterm, Bytes::MAX);
    bbr.on_feedback(&acked(1, 199));
    assert_eq!(bbr.state, State::ProbeBwRefill);
    bbr.on_feedback(&acked(2, 200));
    assert_eq!(bbr.state, State::ProbeBwUp);
    assert!(bbr.cycle.is_bw_probe_sample);
    assert_eq!(bbr.full_pipe.bw, MBPS_12);
    assert!((bbr.pacing_rate.as_mbps() - 0.99 * 1.25 * 12.0).abs() < 1e-5);
}

/// §5.3.3.9: the long-term bound grows by 1, 2, 4 packets a round while it limits the flow.
#[test]
fn the_long_term_bound_grows_exponentially() {
    let mut bbr = in_state(State::ProbeBwUp);
    (bbr.inflight_longterm, bbr.cwnd) = (packets(128), packets(128));
    bbr.cycle.ack_phase = AckPhase::ProbeStarting;
    bbr.raise_inflight_longterm_slope();
    let mut grown = Vec::new();
    for _ in 0..4 {
        let before = bbr.inflight_longterm;
        for i in 0..128 {
            bbr.round_start = i == 127;
            bbr.c.cwnd_limited[0] = true;
            bbr.rs.newly_acked = MSS;
            bbr.rs.tx_in_flight = packets(100);
            // The window is kept constant, so that a round has 128 packets.
            let longterm = std::mem::replace(&mut bbr.inflight_longterm, packets(128));
            bbr.update_probe_bw_cycle_phase();
            bbr.inflight_longterm = bbr.inflight_longterm - packets(128) + longterm;
        }
        grown.push((bbr.inflight_longterm - before).get() / MSS.get());
    }
    assert_eq!(grown, [1, 2, 4, 8]);
    // The bound does not grow while the window is not full.
    bbr.c.cwnd_limited = [false; 2];
    let before = bbr.inflight_longterm;
    bbr.rs.newly_acked = packets(1000);
    bbr.update_probe_bw_cycle_phase();
    assert_eq!(bbr.inflight_longterm, before);
}

/// §5.3.3.7 (1): a plateau ends UP, unless the long-term bound causes it.
#[test]
fn up_ends_on_a_plateau() {
    let state_after = |limited| {
        let mut bbr = in_state(State::ProbeBwUp);
        bbr.full_pipe.now = true;
        bbr.inflight_longterm = bbr.cwnd;
        bbr.c.cwnd_limited[0] = limited;
        bbr.rs.delivery_rate = MBPS_12;
        bbr.update_probe_bw_cycle_phase();
        (bbr.state, bbr.full_pipe.now)
    };
    assert_eq!(state_after(false), (State::ProbeBwDown, true));
    assert_eq!(state_after(true), (State::ProbeBwUp, false));
}

/// §5.3.3.6: after a probe that went too high the next one only reaches the bound. If that does no
/// harm for a round, a full one follows at once.
#[test]
fn a_probe_after_loss_is_precautionary() {
    let mut bbr = in_state(State::ProbeBwUp);
    bbr.cycle.prev_probe_too_high = true;
    bbr.inflight_longterm = packets(150);
    bbr.c.inflight = packets(149);
    bbr.update_probe_bw_cycle_phase();
    assert_eq!(bbr.state, State::ProbeBwUp);
    bbr.c.inflight = packets(150);
    bbr.c.next_number = 300;
    bbr.update_probe_bw_cycle_phase();
    assert_eq!(bbr.state, State::ProbeBwDown);
    assert!(!bbr.cycle.prev_probe_too_high);
    bbr.on_feedback(&acked(1, 299));
    assert_eq!(bbr.state, State::ProbeBwCruise);
    bbr.on_feedback(&acked(2, 300));
    assert_eq!(bbr.state, State::ProbeBwRefill);
}

/// §5.3.4.3: ProbeRTT starts after five seconds without a lower RTT. It lasts 200 ms from half a
/// BDP on, and a round of its own. Then CRUISE follows with the old window.
#[test]
fn probe_rtt_lasts_200_ms_and_a_round() {
    let mut bbr = in_state(State::ProbeBwCruise);
    let mut after = |ms, largest_acked, in_flight| {
        bbr.on_feedback(&Feedback {
            rtt: Some(RTT + MS),
            in_flight: packets(in_flight),
            ..acked(ms, largest_acked)
        });
        (bbr.state, bbr.cwnd.get() / MSS.get())
    };
    // The last probe for bandwidth was long ago, but these acknowledgements are for old packets.
    assert_eq!(after(4_999, 0, 100).0, State::ProbeBwRefill);
    assert_eq!(after(5_001, 1, 100), (State::ProbeRtt, 50));
    assert_eq!(after(5_100, 2, 51), (State::ProbeRtt, 50));
    assert_eq!(after(5_200, 101, 50), (State::ProbeRtt, 50));
    assert_eq!(
        after(5_400, 200, 50),
        (State::ProbeRtt, 50),
        "200 ms, no round"
    );
    assert_eq!(after(5_401, 201, 50), (State::ProbeBwCruise, 201)); // one of them for aggregation
    assert_eq!(after(10_401, 202, 100).0, State::ProbeBwRefill);
    assert_eq!(after(10_402, 203, 100).0, State::ProbeRtt);
}

/// §5.3.4.3: a lower RTT of ProbeRTT counts at once, a higher one after ten seconds.
#[test]
fn min_rtt_rises_after_two_probe_rtts() {
    let mut bbr = in_state(State::ProbeBwCruise);
    let mut after = |ms, rtt| {
        bbr.c.now = Time::from_millis(ms);
        bbr.update_min_rtt(Some(MS * rtt));
        (bbr.probe_rtt_min_delay, bbr.min_rtt)
    };
    assert_eq!(after(1, 130), (RTT, RTT));
    assert_eq!(after(5_001, 130), (MS * 130, RTT));
    assert_eq!(after(9_000, 120), (MS * 120, RTT));
    assert_eq!(after(10_001, 120), (MS * 120, MS * 120));
    assert_eq!(after(10_002, 90), (MS * 90, MS * 90));
}
