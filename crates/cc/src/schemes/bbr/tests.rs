use super::*;
use crate::testing::{Link, MSS, RTT, feedback, rto, select, setup};
use crate::{Counters, RttStats};

mod policer;

const MBPS_12: Rate = Rate::from_bps(12_000_000);
const MS: Duration = Duration::from_millis(1);

fn bbr(seed: u64) -> Bbr {
    Bbr::new(&Setup { seed, ..setup() }, &select("bbr").values)
}

/// A flow in ProbeBW on a path of 12 Mbit/s and 100 ms, with a BDP of 100 packets.
fn probing_bw(seed: u64) -> Bbr {
    let mut bbr = bbr(seed);
    bbr.btlbw.update(0, MBPS_12);
    bbr.rtprop = RTT;
    bbr.filled_pipe = true;
    bbr.enter_probe_bw(Time::ZERO);
    bbr.set_pacing_rate(1.0);
    bbr.set_send_quantum();
    bbr.cwnd = bbr.inflight(MBPS_12, 2.0);
    bbr
}

/// `packets` are acknowledged, and `in_flight` are left.
fn acked(now: Time, packets: u64, in_flight: u64) -> Feedback<'static> {
    Feedback {
        acked_bytes: MSS * packets,
        in_flight: MSS * in_flight,
        prior_in_flight: MSS * (in_flight + packets),
        ..feedback(now)
    }
}

/// The draft's path with room for a window of 2 BDP: 12 Mbit/s, 120 ms, a buffer of 240 packets.
fn link() -> Link {
    Link::new(&select("bbr"), MBPS_12, MS * 120, 240)
}

fn reading(link: &Link, name: &str) -> f64 {
    link.host
        .reading(name)
        .unwrap_or_else(|| panic!("{name} is not reported"))
}

fn in_state(link: &Link, state: State) -> bool {
    reading(link, "state") == f64::from(state as u8)
}

/// §4.3.2: Startup doubles the rate each round, and three rounds without growth end it. Drain
/// empties the queue, which was at most one and a half BDP, in about two round trips.
#[test]
fn startup_fills_the_pipe_and_drain_empties_the_queue() {
    let mut link = link();
    let mut queue = 0.0_f64;
    while in_state(&link, State::Startup) {
        link.run(MS);
        queue = queue.max(link.queue());
    }
    // The pipe is full after log2(120 packets of BDP / 10) = 3.6 rounds of 120 ms. Three more
    // rounds of up to 2.885 times that show it.
    let left = link.host.now();
    assert!(
        (0.8..1.8).contains(&left.as_secs_f64()),
        "left Startup at {left:?}"
    );
    assert!((60.0..=240.0).contains(&queue), "{queue} packets queued");
    while in_state(&link, State::Drain) {
        link.run(MS);
    }
    let drain = link.host.now().since(left).as_secs_f64() / 0.12;
    assert!((1.0..5.0).contains(&drain), "{drain} round trips");
    assert!(link.queue() < 15.0, "{} packets queued", link.queue());
}

/// Alone on a link: the model is right, the link is full except for the margin and ProbeRTT, and
/// the queue is that of one probing phase in eight.
#[test]
fn steady_state_is_at_the_operating_point() {
    let mut link = link();
    link.run(Duration::from_secs(10));
    let (mut queue, mut worst, mut utilisation) = (0.0, 0.0_f64, 0.0);
    for _ in 0..4000 {
        utilisation += link.utilisation(MS * 10) / 4000.0;
        queue += link.queue() / 4000.0;
        worst = worst.max(link.queue());
    }
    let btlbw = reading(&link, "btlbw_mbps");
    assert!((btlbw - 12.0).abs() < 0.02 * 12.0, "{btlbw} Mbit/s");
    // A packet takes 1 ms to serialise.
    assert!(
        (120.9..122.0).contains(&reading(&link, "rtprop_ms")),
        "{} ms",
        reading(&link, "rtprop_ms")
    );
    assert!(
        (0.96..=1.0).contains(&utilisation),
        "utilisation {utilisation}"
    );
    assert!(
        queue < 15.0 && worst < 60.0,
        "queue {queue}, at worst {worst}"
    );
}

/// Runs for `seconds` over a path whose RTT rises slowly, so that no sample refreshes RTprop.
/// Returns when ProbeRTT was entered, and how many milliseconds were spent in it.
fn probe_rtt(link: &mut Link, seconds: u32) -> (Vec<f64>, u32) {
    let (mut entries, mut lasted, mut was) = (Vec::new(), 0, false);
    for _ in 0..seconds * 1000 {
        link.rtt += Duration::from_micros(1);
        link.run(MS);
        let is = in_state(link, State::ProbeRtt);
        if is {
            lasted += 1;
            assert!(link.host.cc.control().cwnd <= MSS * 4);
        }
        if is && !was {
            entries.push(link.host.now().as_secs_f64());
        }
        was = is;
    }
    (entries, lasted)
}

/// §4.3.5: every ten seconds, four packets for 200 ms and a round.
#[test]
fn probe_rtt_comes_every_ten_seconds() {
    let (entries, lasted) = probe_rtt(&mut link(), 60);
    assert_eq!(entries.len(), 5);
    for pair in entries.windows(2) {
        assert!((10.0..11.5).contains(&(pair[1] - pair[0])), "{entries:?}");
    }
    // The old flight drains for an RTT; then come 200 ms, and the acknowledgement that ends
    // ProbeRTT.
    assert!((5 * 200..5 * 700).contains(&lasted), "{lasted} ms");
}

/// Both windows are parameters, which a tuner changes.
#[test]
fn both_filter_windows_are_parameters() {
    let spec = "bbr:rtprop_window=2s";
    let (entries, _) = probe_rtt(&mut Link::new(&select(spec), MBPS_12, MS * 120, 240), 20);
    assert!((7..=9).contains(&entries.len()), "{entries:?}");

    let drop_seen = |window: u32| {
        let mut link = Link::new(
            &select(&format!("bbr:btlbw_window={window}")),
            MBPS_12,
            MS * 120,
            2000,
        );
        link.run(Duration::from_secs(5));
        link.rate = Rate::from_mbps(6.0);
        let changed = link.host.now();
        while reading(&link, "btlbw_mbps") > 7.0 {
            link.run(MS * 10);
        }
        link.host.now().since(changed).as_secs_f64()
    };
    let (short, long) = (drop_seen(3), drop_seen(10));
    assert!(short < 0.6 * long, "{short} s, {long} s");
}

/// §4.3.4.3: eight phases whose gains average 1; a cycle never begins by draining.
#[test]
fn cycle_begins_at_random_but_never_by_draining() {
    assert_eq!(CYCLE.iter().sum::<f64>() / 8.0, 1.0);
    let mut seen = [false; 8];
    for seed in 0..200 {
        seen[probing_bw(seed).cycle_index] = true;
    }
    assert_eq!(seen, [true, false, true, true, true, true, true, true]);
}

/// §4.3.4.3: when each phase ends; the BDP is 100 packets and three quanta of two packets.
#[test]
fn phases_end_by_time_and_inflight() {
    let over = |index: usize, elapsed: u64, in_flight: u64, lost: u64| {
        let mut bbr = probing_bw(1);
        (bbr.cycle_index, bbr.pacing_gain) = (index, CYCLE[index]);
        let now = Time::from_millis(elapsed);
        let lost_bytes = MSS * lost;
        bbr.check_cycle_phase(&Feedback {
            prior_in_flight: MSS * in_flight,
            lost_bytes,
            ..feedback(now)
        });
        bbr.cycle_index != index
    };
    assert!(
        !over(0, 101, 130, 0) && over(0, 101, 131, 0),
        "1.25 until 1.25 BDP are in flight"
    );
    assert!(
        over(0, 101, 100, 1) && !over(0, 99, 140, 1),
        "1.25 until a loss, for an RTprop at least"
    );
    assert!(
        !over(1, 99, 107, 0) && over(1, 99, 106, 0) && over(1, 101, 140, 0),
        "0.75 until drained"
    );
    assert!(
        !over(2, 100, 100, 0) && over(2, 101, 100, 0),
        "1 for an RTprop"
    );
}

/// §4.3.2.2: app-limited rounds do not count.
#[test]
fn full_pipe_needs_three_rounds_without_growth() {
    let sample = |app_limited| {
        Some(RateSample {
            delivered: MSS * 100,
            interval: RTT,
            prior_delivered: Bytes::ZERO,
            app_limited,
            tx_in_flight: MSS,
            lost: Bytes::ZERO,
        })
    };
    let mut bbr = bbr(1);
    bbr.round_start = true;
    let mut full_after = |mbps: f64, app_limited| {
        bbr.btlbw.update(0, Rate::from_mbps(mbps));
        bbr.check_full_pipe(sample(app_limited));
        bbr.filled_pipe
    };
    let rounds = [
        (4.0, false),
        (5.0, false),
        (6.0, false),
        (6.2, false),
        (6.2, true),
        (6.2, true),
    ];
    assert!(
        rounds
            .iter()
            .all(|&(mbps, limited)| !full_after(mbps, limited))
    );
    assert!(full_after(6.2, false));
}

/// §4.1.1: app-limited samples count only if they are larger. Impossible samples never count.
#[test]
fn only_usable_rate_samples_count() {
    let sample = |packets, interval, app_limited| RateSample {
        delivered: MSS * packets,
        interval,
        prior_delivered: Bytes::ZERO,
        app_limited,
        tx_in_flight: MSS,
        lost: Bytes::ZERO,
    };
    let mut bbr = bbr(1);
    let mut after = |s| {
        let f = Feedback {
            rate: Some(s),
            ..acked(Time::ZERO, 1, 10)
        };
        let believed = bbr.believable(&f);
        bbr.update_btlbw(believed);
        bbr.btlbw.max().as_mbps()
    };
    assert_eq!(after(sample(100, RTT, false)), 12.0);
    assert_eq!(after(sample(50, RTT, true)), 12.0);
    assert_eq!(after(sample(200, RTT, true)), 24.0);
    assert_eq!(
        after(sample(200, MS * 99, false)),
        24.0,
        "shorter than the minimum RTT"
    );
    assert_eq!(after(sample(200, Duration::ZERO, false)), 24.0);
}

/// §4.2.2: one packet below 1.2 Mbit/s, two below 24 Mbit/s, then the data of a millisecond, up to
/// 64 KB.
#[test]
fn send_quantum_follows_the_rate() {
    for (mbps, quantum) in [
        (1.1, 1500),
        (1.2, 3000),
        (23.9, 3000),
        (80.0, 10_000),
        (1000.0, 65_536),
    ] {
        let mut bbr = bbr(1);
        bbr.pacing_rate = Rate::from_mbps(mbps);
        bbr.set_send_quantum();
        assert_eq!(bbr.send_quantum, Bytes::new(quantum), "{mbps} Mbit/s");
    }
}

/// §4.2.1: 2.885 initial windows a millisecond until an RTT is known, then that many an RTT.
#[test]
fn pacing_begins_from_the_initial_window() {
    let mut bbr = bbr(1);
    let rate = |bbr: &Bbr| bbr.control().pacing_rate.expect("paced").as_mbps();
    assert!((rate(&bbr) - 2.885 * 120.0).abs() < 1e-3);
    bbr.on_feedback(&acked(Time::ZERO, 1, 9));
    assert!((rate(&bbr) - 2.885 * 1.2).abs() < 1e-3);
}

/// §4.2.3.4: when recovery starts, the window is what is in flight. For a round packets are only
/// replaced. Then the window grows towards its target again, and the old one returns at the end.
#[test]
fn recovery_conserves_packets_for_a_round() {
    let mut bbr = probing_bw(1);
    let before = bbr.cwnd;
    let event = |ms, in_flight, recovery, largest_acked, next_number| Feedback {
        recovery,
        largest_acked,
        next_number,
        ..acked(Time::from_millis(ms), 1, in_flight)
    };
    let loss = Feedback {
        lost_bytes: MSS * 40,
        ..event(1, 60, Recovery::Recovery, 101, 200)
    };
    bbr.on_feedback(&loss);
    assert_eq!(bbr.cwnd, MSS * 61);
    bbr.on_feedback(&event(2, 60, Recovery::Recovery, 102, 201));
    assert_eq!(bbr.cwnd, MSS * 61);
    // The first packet that was sent since is acknowledged, so a round has passed.
    bbr.on_feedback(&event(3, 60, Recovery::Recovery, 200, 260));
    assert_eq!(bbr.cwnd, MSS * 62);
    bbr.on_feedback(&event(4, 60, Recovery::Open, 201, 261));
    assert_eq!(bbr.cwnd, before + MSS); // one of them for aggregation
}

/// §4.2.3.4: a timeout leaves one packet, from which the window grows. The old window returns at
/// the end.
#[test]
fn timeout_restarts_from_one_packet() {
    let mut bbr = probing_bw(1);
    let before = bbr.cwnd;
    bbr.on_rto(&rto(Time::from_millis(1), 100, 1));
    assert_eq!(bbr.cwnd, MSS);
    bbr.on_rto(&rto(Time::from_millis(2), 1, 2));
    bbr.on_feedback(&Feedback {
        recovery: Recovery::Loss,
        ..acked(Time::from_millis(3), 1, 0)
    });
    assert_eq!(bbr.cwnd, MSS * 4);
    bbr.on_feedback(&acked(Time::from_millis(4), 1, 0));
    assert_eq!(bbr.cwnd, before + MSS); // one of them for aggregation
}

/// Random loss does not slow BBR down (CACM 2016, figure 8): at 1% it keeps the link full.
#[test]
fn random_loss_does_not_lower_the_rate() {
    use crate::Ecn;
    use crate::testing::Host;
    let mut host = Host::new(Box::new(bbr(1)), MSS);
    // A round is a window sent at once and acknowledged 120 ms later: 1 in 100 is lost.
    let mut delivered = Vec::new();
    for _ in 0..60 {
        let before = host.counters().delivered;
        while host.may_send() && host.flight().count() < 120 {
            host.send();
        }
        host.wait_until(host.now() + MS * 120);
        let flight: Vec<u64> = host.flight().collect();
        let (lost, acked): (Vec<u64>, Vec<u64>) = flight.iter().partition(|&&n| n % 100 == 99);
        host.feedback(&acked, &lost, Ecn::NotEct, |_| {});
        delivered.push((host.counters().delivered - before).get() / MSS.get());
    }
    assert!(
        delivered[20..].iter().all(|&packets| packets >= 118),
        "{delivered:?}"
    );
}

/// §4.3.4.4: after idling the flow paces at the estimate, not with the phase's gain.
#[test]
fn restart_from_idle_paces_at_the_estimate() {
    let mut bbr = probing_bw(1);
    (bbr.cycle_index, bbr.pacing_gain) = (0, 1.25);
    bbr.on_feedback(&acked(Time::from_millis(1), 1, 0));
    assert!(bbr.pacing_rate.as_mbps() > 14.0);
    let now = Time::from_millis(20_000);
    bbr.on_sent(&Sent {
        now,
        number: 9,
        size: MSS,
        in_flight: MSS,
        retransmission: false,
        app_limited: true,
    });
    assert!((bbr.pacing_rate.as_mbps() - 0.99 * 12.0).abs() < 1e-3);
    // RTprop has expired meanwhile, but the new sample is as good as one of ProbeRTT.
    bbr.on_feedback(&acked(now + RTT, 1, 0));
    assert_eq!(bbr.state, State::ProbeBw);
}

/// §4.3.5: packets that were sent while ProbeRTT limited the sender do not show the bandwidth.
#[test]
fn probe_rtt_does_not_lower_the_estimate() {
    let mut bbr = probing_bw(1);
    let at = |ms: u64, delivered: u64, prior: u64| Feedback {
        rate: Some(RateSample {
            delivered: MSS * 4,
            interval: RTT,
            prior_delivered: MSS * prior,
            app_limited: false,
            tx_in_flight: MSS * 4,
            lost: Bytes::ZERO,
        }),
        rtt_stats: RttStats {
            min: RTT,
            ..RttStats::default()
        },
        rtt: Some(RTT + MS),
        counters: Counters {
            delivered: MSS * delivered,
            ..Counters::default()
        },
        ..acked(Time::from_millis(ms), 1, 3)
    };
    bbr.on_feedback(&at(10_001, 1000, 900));
    assert_eq!((bbr.state, bbr.cwnd), (State::ProbeRtt, MSS * 4));
    let limited = |bbr: &Bbr, prior| {
        bbr.believable(&at(10_100, 1004, prior))
            .map(|s| s.app_limited)
    };
    assert_eq!(limited(&bbr, 999), Some(false));
    assert_eq!(limited(&bbr, 1003), Some(true));
    assert_eq!(limited(&bbr, 1004), Some(false));
}

/// §4.3.5: ProbeRTT waits for a round that begins with it.
#[test]
fn probe_rtt_lasts_a_round_of_its_own() {
    let mut bbr = probing_bw(1);
    let mut after = |ms: u64, largest_acked: u64, next_number: u64| {
        let f = acked(Time::from_millis(ms), 1, 3);
        let rtt = Some(RTT + MS);
        bbr.on_feedback(&Feedback {
            largest_acked,
            next_number,
            rtt,
            ..f
        });
        bbr.state
    };
    assert_eq!(after(9_900, 10, 60), State::ProbeBw);
    assert_eq!(after(10_001, 20, 100), State::ProbeRtt);
    assert_eq!(after(10_300, 70, 101), State::ProbeRtt, "sent before");
    assert_eq!(after(10_400, 100, 102), State::ProbeBw);
}

/// A flow that begins late has no expired RTprop.
#[test]
fn late_flows_begin_with_startup() {
    let mut bbr = bbr(1);
    bbr.on_feedback(&acked(Time::from_millis(60_000), 1, 9));
    assert_eq!(bbr.state, State::Startup);
}

/// As in Linux, measurements of a spurious recovery do not show a full pipe.
#[test]
fn undo_restarts_the_search_for_a_full_pipe() {
    let mut bbr = bbr(1);
    (bbr.full_bw, bbr.full_bw_count) = (MBPS_12, 2);
    bbr.on_feedback(&Feedback {
        undo: true,
        ..acked(Time::ZERO, 1, 9)
    });
    assert_eq!((bbr.full_bw, bbr.full_bw_count), (Rate::ZERO, 0));
}

/// As in Linux, the rate may grow from little after a timeout, which does not show a full pipe.
#[test]
fn timeout_restarts_the_search_for_a_full_pipe() {
    let mut bbr = bbr(1);
    (bbr.full_bw, bbr.full_bw_count) = (MBPS_12, 2);
    bbr.on_rto(&rto(Time::from_millis(1), 100, 1));
    bbr.round_start = true;
    bbr.btlbw.update(0, Rate::from_mbps(1.0));
    bbr.check_full_pipe(Some(RateSample {
        delivered: MSS,
        interval: RTT,
        prior_delivered: Bytes::ZERO,
        app_limited: false,
        tx_in_flight: MSS,
        lost: Bytes::ZERO,
    }));
    assert!(!bbr.filled_pipe);
}

#[test]
fn pacing_never_stops() {
    let mut bbr = bbr(1);
    bbr.btlbw.update(0, Rate::from_bps(1));
    bbr.filled_pipe = true;
    bbr.set_pacing_rate(1.0 / HIGH_GAIN);
    assert_eq!(bbr.pacing_rate, Rate::from_bps(1));
}
