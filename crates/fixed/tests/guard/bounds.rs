//! The windows and rates that a policy may set.

use super::*;

/// Two packets every four seconds are 1,500 bytes in two seconds. The rate is bounded by three
/// times that.
#[test]
fn rates_below_one_packet_a_second_are_bounded_too() {
    let (mut guard, limits) = (Guard::new(0, 10, 0), Limits::default());
    for (at, delivered) in [(0, 0), (4000, 2), (8000, 4), (12_000, 6)] {
        let flow = Flow {
            now_ms: at,
            delivered,
            cwnd: 2,
            ..FLOW
        };
        assert_eq!(guard.judge(&limits, &flow.record()), Verdict::Policy);
    }
    let half_a_packet = 1500 / 2;
    assert_eq!(guard.rate(&limits, u64::MAX >> 1), 3 * half_a_packet);
    assert_eq!(guard.rate(&limits, half_a_packet), half_a_packet);
}

#[test]
fn out_of_bounds_answers_are_clamped_and_trip_after_n() {
    let (mut guard, limits) = (Guard::new(0, 10, 0), Limits::default());
    for (wanted, given) in [
        (-5, 2),
        (1, 2),
        (2, 2),
        (7, 7),
        (100_000, 100_000),
        (i64::MAX, 100_000),
    ] {
        assert_eq!(guard.cwnd(&limits, wanted), given);
    }
    let trip = follow(&mut guard, &mut FLOW.clone(), 100, |g, f| {
        f.delivered += 10;
        g.cwnd(&limits, 1 << 40);
    });
    // The limit is the 32nd answer in a row.
    assert_eq!(trip, Some((310, Reason::Wild)));
}
