use super::*;
use crate::testing::{MSS, feedback, rto, select, setup};
use crate::{Acked, Lost, RttStats};

fn flow(spec: &str) -> Scream {
    Scream::new(&setup(), &select(spec).values)
}

/// A packet of `MSS` with a one-way delay of `delay_ms`, on clocks that agree.
fn arrived(delay_ms: u64, ecn: Ecn) -> Acked {
    let sent = Time::from_millis(1000);
    Acked {
        number: 0,
        size: MSS,
        sent,
        received: Some(sent + Duration::from_millis(delay_ms)),
        tag: Tag::NONE,
        ecn,
        echo: 0.0,
    }
}

fn stats(rtt_ms: u64) -> RttStats {
    let rtt = Duration::from_millis(rtt_ms);
    RttStats {
        latest: rtt,
        smoothed: rtt,
        variation: Duration::ZERO,
        min: rtt,
    }
}

/// A flow with a window of `packets`, all in flight, and an RTT of `rtt_ms`. The last congestion is
/// long ago, and the inflexion point far away.
fn steady(spec: &str, packets: f64, rtt_ms: u64) -> Scream {
    let mut scream = flow(spec);
    scream.s_rtt = Duration::from_millis(rtt_ms);
    scream.ref_wnd = packets * MSS.as_f64();
    scream.max_bytes_in_flight_prev = scream.ref_wnd;
    scream
}

fn near(ours: f64, theirs: f64) {
    assert!(
        (ours - theirs).abs() <= 1e-9 * theirs.abs(),
        "{ours}, {theirs}"
    );
}

/// algorithms.md §14.5: a target of 60 ms and an average of 45 ms give alpha_v = 0.5, and the
/// window falls to 0.75 of itself. The draft now also divides the reduction by s_rtt / VIRTUAL_RTT.
#[test]
fn queueing_delay_lowers_the_window_like_marks() {
    for (rtt_ms, factor) in [(25, 0.75), (10, 0.75), (100, 1.0 - 0.25 / 4.0)] {
        let mut scream = steady("scream", 100.0, rtt_ms);
        scream.qdelay.average = 0.045;
        near(scream.virtual_alpha(), 0.5);
        let now = Time::from_millis(5000);
        let reason = scream.congestion(now).expect("half of the target");
        assert_eq!(reason, Reason::VirtualMarked);
        scream.reduce(now, reason, 1.0);
        near(scream.ref_wnd, 100.0 * MSS.as_f64() * factor);
        // The next reaction comes after min(VIRTUAL_RTT, s_rtt).
        let again = Duration::from_millis(rtt_ms.min(25));
        assert_eq!(scream.congestion(now + again / 2), None);
        assert_eq!(scream.congestion(now + again), Some(reason));
    }
    let mut scream = steady("scream", 100.0, 50);
    scream.qdelay.average = 0.03;
    assert_eq!(scream.congestion(Time::from_millis(5000)), None);
}

/// "Reference Window Update": BETA_LOSS 0.7, BETA_ECN 0.8, MIN_REF_WND 3000.
#[test]
fn losses_and_classic_marks_take_a_fixed_share() {
    let now = Time::from_millis(5000);
    for (spec, reason, factor) in [
        ("scream", Reason::Loss, 0.7),
        ("scream:ecn=classic", Reason::Marked, 0.8),
    ] {
        let mut scream = steady(spec, 100.0, 50);
        scream.reduce(now, reason, 1.0);
        near(scream.ref_wnd, 100.0 * MSS.as_f64() * factor);
        near(scream.inflexion, 100.0 * MSS.as_f64());
        for _ in 0..30 {
            scream.reduce(now, reason, 1.0);
        }
        near(scream.ref_wnd, 3000.0);
        // The inflexion point stays at the window up to which it last grew.
        near(scream.inflexion, 100.0 * MSS.as_f64());
    }
    let mut scream = steady("scream", 100.0, 50);
    scream.on_rto(&rto(now, 100, 1));
    near(scream.ref_wnd, 70.0 * MSS.as_f64());
}

/// "Receiving ECN-CE for L4S": the share moves 1/8 of the way up, 1/128 of the way down, every
/// min(10 ms, s_rtt).
#[test]
fn the_marked_share_rises_fast_and_falls_slowly() {
    let mut marks = MarkedShare::default();
    let s_rtt = Duration::from_millis(40);
    for marked in [true, false] {
        marks.on_acked(marked);
    }
    marks.update(Time::from_millis(10), s_rtt);
    near(marks.alpha, 0.5 / 8.0);
    marks.on_acked(true);
    marks.update(Time::from_millis(19), s_rtt);
    near(marks.alpha, 0.5 / 8.0);
    marks.update(Time::from_millis(20), s_rtt);
    near(marks.alpha, 1.0 / 8.0 + 7.0 / 8.0 / 16.0);
    let before = marks.alpha;
    marks.on_acked(false);
    marks.update(Time::from_millis(30), s_rtt);
    near(marks.alpha, before * 127.0 / 128.0);
}

/// "Reference Window Reduction", L4S: alpha 0.4 reduces by 0.2, at 100 ms by a quarter of that, and
/// near the inflexion point by a quarter again. After 100 RTTs the window first falls to what was
/// in flight.
#[test]
fn l4s_marks_take_half_their_share() {
    let now = Time::from_millis(90_000);
    for (rtt_ms, scl, left) in [(25, 1.0, 0.8), (100, 1.0, 0.95), (25, 0.1, 0.95)] {
        let mut scream = steady("scream:ecn=l4s", 100.0, rtt_ms);
        scream.marks.alpha = 0.4;
        scream.last_reaction = Some(now.saturating_sub(Duration::from_millis(500)));
        scream.reduce(now, Reason::Marked, scl);
        near(scream.ref_wnd, 100.0 * MSS.as_f64() * left);
    }
    let mut scream = steady("scream:ecn=l4s", 100.0, 25);
    scream.marks.alpha = 0.4;
    scream.max_bytes_in_flight_prev = 50.0 * MSS.as_f64();
    scream.reduce(now, Reason::Marked, 1.0);
    near(scream.ref_wnd, 40.0 * MSS.as_f64());
    assert_eq!(scream.stamp().ecn, Ecn::Ect1);
    assert_eq!(flow("scream").stamp().ecn, Ecn::NotEct);
}

/// "Reference Window Increase", by hand: 10 acknowledged packets of a window of 100 give 10 MSS /
/// 100 = 0.1 MSS, times 1 + 0.02 x 100 = 3 long after congestion.
#[test]
fn the_window_grows_by_a_packet_and_by_a_share() {
    let mss = MSS.as_f64();
    let now = Time::from_millis(90_000);
    let grown = |scream: &mut Scream, scl: f64| {
        let before = scream.ref_wnd;
        scream.increase(now, 10.0 * mss, scl);
        (scream.ref_wnd - before) / mss
    };
    near(grown(&mut steady("scream", 100.0, 100), 1.0), 0.3);
    // At half of VIRTUAL_RTT the increase is half. Near the inflexion point it is a quarter, times
    // 1 + 2 x 0.1.
    near(
        grown(&mut steady("scream", 100.0, 12), 1.0),
        0.3 * 12.0 / 25.0,
    );
    near(
        grown(&mut steady("scream", 100.0, 100), 0.1),
        0.1 * 0.25 * 1.2,
    );
    // 25 RTTs after congestion the share is a quarter.
    let mut scream = steady("scream", 100.0, 100);
    scream.last_congestion_detected = Some(Time::from_millis(87_500));
    near(grown(&mut scream, 1.0), 0.1 * 1.5);
    // The window does not grow beyond MSS + 1.5 x what was in flight, nor if the encoder is at its
    // maximum.
    let mut scream = steady("scream", 100.0, 100);
    scream.max_bytes_in_flight_prev = 60.0 * mss;
    near(grown(&mut scream, 1.0) + 1.0, 1.0);
    let mut scream = steady("scream:max_bitrate=1Mbps", 100.0, 100);
    scream.update_rate(now);
    near(scream.target_bitrate, 1e6);
    near(grown(&mut scream, 1.0) + 1.0, 1.0);
}

/// "Compute scaling factor": ((w - w_i) / w_i x 8)^2, bounded to 0.1 to 1.
#[test]
fn growth_slows_near_the_last_congested_window() {
    let mut scream = steady("scream", 100.0, 100);
    near(scream.distance_from_inflexion(), 1.0);
    for (share, scl) in [
        (1.0, 0.1),
        (1.0625, 0.25),
        (0.9375, 0.25),
        (1.125, 1.0),
        (0.5, 1.0),
    ] {
        scream.inflexion = 1000.0;
        scream.ref_wnd = share * 1000.0;
        near(scream.distance_from_inflexion(), scl);
    }
}

/// "Media Rate Control": 100 packets in 100 ms are 12 Mbit/s, divided by 1.2, without the 20 bytes
/// of 1520 that are not media. At 4 packets one is a quarter of the window, which subtracts 0.15.
#[test]
fn the_bitrate_follows_window_and_rtt() {
    for (packets, mbps) in [(100.0, 12.0 / 1.2), (4.0, 0.48 / 1.2 * 0.85)] {
        let mut scream = steady("scream", packets, 100);
        scream.update_rate(Time::from_millis(5000));
        near(scream.target_bitrate, mbps * 1e6 * 1500.0 / 1520.0);
        let control = scream.control();
        assert_eq!(control.pacing_rate, Some(Rate::from_mbps(mbps)));
        assert_eq!(control.cwnd, MSS.mul_f64(3.0 * packets));
    }
}

/// As the help of max_bitrate says, also for GCC: if the ends cross, min_bitrate counts for both.
#[test]
fn min_bitrate_wins_where_it_exceeds_the_upper_bound() {
    for scheme in ["scream", "gcc"] {
        let spec = format!("{scheme}:min_bitrate=10Mbps:max_bitrate=1Mbps");
        let mut flow = select(&spec).build(&setup());
        for ms in 1..100 {
            let now = Time::from_millis(ms * 100);
            let acked = &[arrived(50, Ecn::NotEct)];
            flow.on_feedback(&Feedback {
                acked,
                acked_bytes: MSS,
                ..feedback(now)
            });
            let bitrate = flow.control().target_bitrate;
            assert_eq!(bitrate, Some(Rate::from_mbps(10.0)), "{scheme}");
        }
    }
}

/// "Detecting Increased Queue Delay" and RFC 6817 §3.4.1. The clocks need not agree.
#[test]
fn queueing_delay_is_measured_over_the_minimum_of_ten_minutes() {
    let mut delay = QueueDelay::default();
    let interval = Duration::from_millis(25);
    let mut at = |s: u64, one_way_ms: i64| {
        let sent = Time::from_millis(10_000);
        let received = Time::from_nanos((10_000_000_000 + one_way_ms * 1_000_000) as u64);
        let acked = Acked {
            sent,
            received: Some(received),
            ..arrived(0, Ecn::NotEct)
        };
        delay.on_acked(Time::from_millis(1000 * s), &acked, interval);
        (delay.latest, delay.average)
    };
    assert_eq!(at(1, -5000), (0.0, 0.0));
    assert_eq!(at(2, -4960), (0.04, 0.01));
    assert_eq!(at(3, -4960), (0.04, 0.0175));
    assert_eq!(at(4, -4990), (0.01, 0.01));
    assert_eq!(at(5, -5010), (0.0, 0.0));
    assert_eq!(at(500, -4990).0, 0.02);
    // Minutes without a sample are not in the list: -5010 is forgotten after ten other minutes with
    // samples.
    for minute in 11..19 {
        assert_eq!(at(60 * minute, -4980).0, 0.03, "{minute}");
    }
    assert_eq!(at(60 * 19, -4980).0, 0.01);
}

/// "Clock drift issues": a floor of 30 ms in every round trip averages to a quarter of 60 ms after
/// ln 2 x 256 = 177 round trips. Then the bitrate is halved for five of them, and the base delay is
/// forgotten.
#[test]
fn a_standing_queue_is_drained() {
    let mut scream = flow("scream:competing=ignore");
    let mut now = Time::from_millis(1000);
    let feed = |scream: &mut Scream, now, delay_ms| {
        scream.on_feedback(&Feedback {
            acked: &[arrived(delay_ms, Ecn::NotEct)],
            rtt_stats: stats(100),
            ..feedback(now)
        });
    };
    feed(&mut scream, now, 50);
    let mut rounds = 0;
    while scream.drain_began.is_none() && rounds < 400 {
        now += Duration::from_millis(100);
        feed(&mut scream, now, 80);
        rounds += 1;
    }
    assert!((176..=180).contains(&rounds), "{rounds}");
    let halved = scream.target_bitrate;
    scream.update_rate(now + Duration::from_millis(499));
    near(scream.target_bitrate, halved);
    scream.update_rate(now + Duration::from_millis(500));
    near(scream.target_bitrate, (2.0 * halved).max(50_000.0));
    feed(&mut scream, now, 90);
    assert_eq!(scream.qdelay.latest, 0.0);
}

/// A queue of 72 s that drains does not halve the bitrate for six minutes, because 5 s_rtt use the
/// current s_rtt.
#[test]
fn a_drain_ends_with_its_queue() {
    let began = Time::from_millis(100_000);
    let after = |ms| began + Duration::from_millis(ms);
    let mut scream = steady("scream", 100.0, 72_000);
    scream.drain_began = Some(began);
    assert!(scream.is_draining(after(1_000)));
    scream.s_rtt = Duration::from_millis(100);
    assert!(!scream.is_draining(after(1_000)));
    // The drain is over, whatever the RTT does then.
    scream.s_rtt = Duration::from_secs(72);
    assert!(!scream.is_draining(after(1_001)));
    let mut scream = steady("scream", 100.0, 10);
    scream.drain_began = Some(began);
    assert!(scream.is_draining(after(199)));
    assert!(!scream.is_draining(after(200)));
}

/// "Detecting Lost Data Units": a packet that comes 7 ms after it was missed sets the reordering
/// window to 7 ms. A packet that comes within it is not lost, and a later one is.
#[test]
fn reordered_packets_are_not_lost_at_once() {
    let mut late = LatePackets::default();
    let mut detects = |ms: u64, lost: &[u64], acked: u64| {
        let lost: Vec<Lost> = lost.iter().map(|&number| missing(number)).collect();
        let acked = Acked {
            number: acked,
            ..arrived(50, Ecn::NotEct)
        };
        let f = Feedback {
            lost: &lost,
            acked: &[acked],
            ..feedback(Time::from_millis(ms))
        };
        late.detects_loss(&f, Duration::from_millis(100))
    };
    // Nothing is known of reordering, so a loss is detected at once.
    assert!(detects(1000, &[1], 4));
    assert!(!detects(1007, &[], 1));
    assert!(!detects(1010, &[5], 8));
    assert!(!detects(1015, &[], 5));
    assert!(!detects(1020, &[9, 10], 13));
    assert!(!detects(1026, &[], 9));
    assert!(detects(1027, &[], 14));
    assert!(!detects(1028, &[], 15));
    // A packet that is later than a round trip does not change the window of 7 ms.
    assert!(!detects(1200, &[], 10));
    assert!(!detects(1206, &[16], 20));
    assert!(detects(1213, &[], 21));
}

fn missing(number: u64) -> Lost {
    Lost {
        number,
        size: MSS,
        sent: Time::ZERO,
        tag: Tag::NONE,
        tx_in_flight: MSS,
        lost_before: Bytes::ZERO,
    }
}

/// "Competing Flows Compensation": a steady 200 ms become the target, and with losses half more, up
/// to 400 ms. The target falls again, by at most a half, once the queue is gone and no longer
/// varies.
#[test]
fn the_target_rises_against_queue_filling_flows() {
    let mut target = DelayTarget::new(Time::ZERO);
    let mut now = Time::ZERO;
    let mut lead = |target: &mut DelayTarget, qdelay, samples| {
        for _ in 0..samples {
            now += Duration::from_millis(50);
            target.adjust(now, qdelay);
        }
        target.value
    };
    near(lead(&mut target, 0.0, 10), 0.06);
    near(lead(&mut target, 0.2, 200), 0.2);
    for _ in 0..10 {
        target.on_round(true);
    }
    near(lead(&mut target, 0.2, 1), 0.3);
    near(lead(&mut target, 0.39, 300), 0.4);
    for _ in 0..200 {
        target.on_round(false);
    }
    near(lead(&mut target, 0.0, 200), 0.06);
}

/// A complete feedback: a marked packet's bytes do not grow the window.
#[test]
fn marked_bytes_do_not_count_as_acknowledged() {
    let now = Time::from_millis(90_000);
    let run = |ecn| {
        let mut scream = steady("scream:ecn=l4s", 100.0, 100);
        (scream.last_reaction, scream.round_began) = (Some(now), now);
        scream.on_feedback(&Feedback {
            acked: &[arrived(50, ecn)],
            acked_bytes: MSS,
            ..feedback(now)
        });
        scream.ref_wnd - 100.0 * MSS.as_f64()
    };
    assert_eq!(run(Ecn::Ce), 0.0);
    assert!((run(Ecn::Ect1) - 0.03 * MSS.as_f64()).abs() < 1e-6);
}
