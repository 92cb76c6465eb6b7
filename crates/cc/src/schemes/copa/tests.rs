use super::*;
use crate::testing::{Link, MSS, feedback, rto, select, setup};
use crate::{Duration, RttStats, Time};

fn copa(spec: &str) -> Copa {
    Copa::new(&setup(), &select(spec).values)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A flow of `cwnd` packets past slow start, with a minimum RTT of 120 ms and a standing RTT of 130
/// ms.
fn steady(spec: &str, cwnd: f64) -> Copa {
    let mut copa = copa(spec);
    (copa.rtts.min, copa.rtts.standing) = (ms(120), ms(130));
    (copa.cwnd, copa.slow_start) = (cwnd, false);
    copa.rounds.restart(1);
    copa.velocity = Velocity::new(cwnd);
    copa
}

/// An acknowledgement of one packet that gives no RTT sample and does not end a round.
fn acked() -> Feedback<'static> {
    Feedback {
        rtt: None,
        acked_bytes: MSS,
        prior_in_flight: MSS * 100,
        largest_acked: 0,
        next_number: 1,
        ..feedback(Time::ZERO)
    }
}

/// A whole round trip with the same RTT, without a change of the window.
fn round(copa: &mut Copa, now: Time, rtt: Duration) {
    let (cwnd, end) = (copa.cwnd, copa.rounds.count() + 100);
    copa.on_feedback(&Feedback {
        now,
        rtt: Some(rtt),
        rtt_stats: RttStats {
            latest: rtt,
            smoothed: rtt,
            variation: Duration::ZERO,
            min: rtt,
        },
        largest_acked: end,
        next_number: end + 1,
        ..acked()
    });
    copa.cwnd = cwnd;
}

/// algorithms.md §14.5: with delta 0.5, and 130 ms over 120 ms, the target is 26 packets.
#[test]
fn the_window_moves_towards_the_target() {
    for (cwnd, step) in [
        (20.0, 0.1),
        (25.9, 2.0 / 25.9),
        (26.1, -2.0 / 26.1),
        (50.0, -0.04),
    ] {
        let mut copa = steady("copa", cwnd);
        copa.on_feedback(&acked());
        let moved = copa.cwnd - cwnd;
        assert!((moved - step).abs() < 1e-12, "{cwnd}: {moved}");
    }
    let mut copa = steady("copa:delta=0.1", 20.0);
    copa.on_feedback(&acked());
    assert!((copa.cwnd - 20.5).abs() < 1e-12, "v/(delta cwnd)");
}

/// §2.1 step 3: the window moves by v/delta packets in a round trip.
#[test]
fn an_acknowledgement_of_several_packets_counts_for_each() {
    let mut copa = steady("copa", 20.0);
    copa.on_feedback(&Feedback {
        acked_bytes: MSS * 20,
        ..acked()
    });
    assert!((copa.cwnd - 22.0).abs() < 1e-12);
}

/// §2.1: 2 cwnd / RTTstanding. 26 packets of 1500 bytes twice in 130 ms are 4.8 Mbit/s.
#[test]
fn the_pacing_rate_is_two_windows_per_rtt() {
    let paced = steady("copa", 26.0).control();
    assert_eq!(paced.cwnd, MSS * 26);
    assert_eq!(paced.pacing_rate, Some(Rate::from_mbps(4.8)));
    assert_eq!(copa("copa").control().pacing_rate, None, "no RTT is known");
}

/// §2.1 step 4: v doubles from the fourth round trip in one direction on. A turn sets it to 1.
#[test]
fn velocity_doubles_with_patience_and_turns_with_the_direction() {
    let mut v = Velocity::new(10.0);
    let mut walk = |windows: &[f64]| -> Vec<f64> {
        let mut before = v.cwnd;
        let step = |w: &f64| {
            v.on_round(*w, *w > before);
            before = *w;
            v.value
        };
        windows.iter().map(step).collect()
    };
    assert_eq!(
        walk(&[12.0, 14.0, 16.0, 18.0, 20.0, 24.0]),
        [1.0, 1.0, 1.0, 2.0, 4.0, 8.0]
    );
    assert_eq!(walk(&[23.0, 21.0, 19.0, 17.0]), [1.0, 1.0, 1.0, 2.0]);
    assert_eq!(walk(&[17.0, 17.0, 16.0]), [1.0, 1.0, 1.0]);
}

#[test]
fn velocity_is_bound_to_a_packet_an_acknowledgement() {
    let mut copa = steady("copa", 20.0);
    copa.velocity.value = 1e9;
    copa.on_feedback(&acked());
    assert_eq!((copa.cwnd, copa.velocity.value), (21.0, 10.0));
    copa.velocity.value = 1e-9;
    copa.on_feedback(&acked());
    assert_eq!(copa.velocity.value, 1.0);
}

/// A window that has turned within the round trip has no direction any more, wherever it is.
#[test]
fn velocity_falls_to_one_where_the_window_turns() {
    for (below, velocity) in [(true, 4.0), (false, 1.0)] {
        let mut v = Velocity::new(10.0);
        for window in [12.0, 14.0, 16.0, 18.0] {
            v.on_round(window, true);
        }
        v.on_round(20.0, below);
        assert_eq!(v.value, velocity);
    }
}

/// §2.1: the window doubles until the target rate is exceeded.
#[test]
fn slow_start_ends_at_the_target() {
    let mut copa = copa("copa");
    (copa.rtts.min, copa.rtts.standing) = (ms(120), ms(130));
    let mut most = 0.0;
    for _ in 0..40 {
        copa.on_feedback(&acked());
        most = copa.cwnd.max(most);
    }
    assert_eq!(most, 27.0, "the first window beyond 26");
    assert!(!copa.slow_start && (copa.cwnd - 26.0).abs() < 0.2);
}

/// §2.1: RTTstanding is the minimum of half a smoothed RTT, RTTmin that of ten seconds.
#[test]
fn rtt_filters_forget_old_samples() {
    let mut rtts = Rtts::new();
    let mut at = |now_ms: u64, rtt_ms: u64| {
        let f = Feedback {
            rtt_stats: RttStats {
                smoothed: ms(100),
                ..RttStats::default()
            },
            ..feedback(Time::from_millis(now_ms))
        };
        rtts.update(&f, ms(rtt_ms));
        let in_ms = |d: Duration| d.as_nanos() / 1_000_000;
        (in_ms(rtts.min), in_ms(rtts.standing), in_ms(rtts.max))
    };
    assert_eq!(at(1000, 90), (90, 90, 90));
    assert_eq!(at(1050, 140), (90, 90, 140));
    assert_eq!(at(1051, 120), (90, 120, 140));
    assert_eq!(at(1450, 110), (90, 110, 140));
    assert_eq!(at(1451, 115), (90, 110, 120), "140 was 401 ms ago");
    assert_eq!(at(11_001, 130), (110, 130, 130), "90 was 10 s ago");
}

/// §2.2: Copa is competitive after five round trips without a nearly empty queue, and returns to
/// default mode with the first.
#[test]
fn a_queue_that_stays_full_starts_competitive_mode() {
    let mut copa = steady("copa", 20.0);
    let mut now = Time::ZERO;
    let mut step = |copa: &mut Copa, rtt| {
        now += ms(200);
        round(copa, now, rtt);
        (copa.competitive, 1.0 / copa.delta)
    };
    assert_eq!(step(&mut copa, ms(120)), (false, 2.0));
    for _ in 0..5 {
        assert_eq!(step(&mut copa, ms(200)), (false, 2.0));
    }
    for inverse in [3.0, 4.0, 5.0] {
        let (competitive, ours) = step(&mut copa, ms(200));
        assert!(competitive && (ours - inverse).abs() < 1e-9, "{ours}");
    }
    // The queue is nearly empty below a tenth of the range of 80 ms.
    assert_eq!(step(&mut copa, ms(128)), (false, 2.0));
}

/// §2.2: loss halves 1/delta, which is never less than in default mode. In default mode loss is
/// ignored.
#[test]
fn losses_count_only_in_competitive_mode() {
    let loss = Feedback {
        congestion: Some(Congestion::Loss),
        ..acked()
    };
    for (spec, before, after) in [
        ("copa:mode=competitive", 0.1, 0.2),
        ("copa:mode=competitive", 0.4, 0.5),
        ("copa:mode=default", 0.5, 0.5),
    ] {
        let mut copa = steady(spec, 20.0);
        copa.delta = before;
        let window = copa.cwnd;
        copa.on_feedback(&loss);
        assert_eq!(copa.delta, after, "{spec}");
        assert!((copa.cwnd - window).abs() < 1.0, "{spec}");
    }
}

#[test]
fn an_unused_window_does_not_grow() {
    for slow_start in [true, false] {
        let mut copa = steady("copa", 20.0);
        copa.slow_start = slow_start;
        copa.on_feedback(&Feedback {
            prior_in_flight: MSS * 9,
            ..acked()
        });
        assert_eq!(copa.cwnd, 20.0);
    }
}

#[test]
fn a_timeout_restarts_unless_it_was_spurious() {
    let mut copa = steady("copa", 20.0);
    copa.on_rto(&rto(Time::ZERO, 20, 1));
    copa.on_rto(&rto(Time::ZERO, 1, 2));
    assert_eq!((copa.cwnd, copa.slow_start), (2.0, true));
    copa.on_feedback(&Feedback {
        undo: true,
        acked_bytes: Bytes::ZERO,
        ..acked()
    });
    assert_eq!((copa.cwnd, copa.slow_start), (20.0, false));
}

/// §3 and algorithms.md §14.4: alone on 12 Mbit/s and 120 ms 1/delta packets wait on average, from
/// none to about 2.5/delta, in oscillations of about five round trips. The packet in service does
/// not count, since it is part of the minimum RTT. The sender sees whole packets, so the bounds are
/// a packet wide.
#[test]
fn queue_oscillation_matches_the_papers_formula() {
    let mut link = Link::new(&select("copa"), Rate::from_mbps(12.0), ms(120), 240);
    link.run(Duration::from_secs(60));
    let mut waiting: Vec<f64> = Vec::new();
    for _ in 0..60_000 {
        link.run(ms(1));
        waiting.push((link.queue() - 1.0).max(0.0));
    }
    let mean = waiting.iter().sum::<f64>() / 60_000.0;
    let ups = waiting.windows(2).filter(|q| q[0] < mean && q[1] >= mean);
    let period = 60.0 / 0.12 / ups.count() as f64;
    waiting.sort_by(f64::total_cmp);
    let (low, high) = (waiting[3_000], waiting[57_000]);
    println!("mean {mean:.2}, 5% {low:.2}, 95% {high:.2} packets, period {period:.2} RTT");
    assert!((mean - 2.0).abs() <= 1.0, "{mean}");
    assert!(low <= 1.0 && (4.0..=6.0).contains(&high), "{low} {high}");
    assert!((4.0..=6.0).contains(&period), "{period}");
    assert!(link.utilisation(Duration::from_secs(10)) > 0.999);
}
