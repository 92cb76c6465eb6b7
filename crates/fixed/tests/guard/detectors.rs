//! What makes the guard trip: `loss`, `delay`, `utility`.

use super::*;

#[test]
fn healthy_flows_do_not_trip() {
    let mut guard = Guard::new(0, 10, 0);
    let trip = follow(&mut guard, &mut FLOW.clone(), 10_000, |_, f| {
        f.delivered += 10;
    });
    assert_eq!((trip, guard.trips()), (None, 0));
}

/// Three of ten packets in 10 ms are lost, for five epochs of 200 ms.
#[test]
fn losses_above_cubics_trip() {
    let mut guard = Guard::new(0, 10, 0);
    let trip = follow(&mut guard, &mut FLOW.clone(), 1000, |_, f| {
        f.delivered += 7;
        f.lost += 3;
    });
    let (at, reason) = trip.expect("a trip");
    assert_eq!(reason, Reason::Lossy);
    assert!((1000..=1300).contains(&at), "{at} ms");
}

/// The RTT is 500 ms where 100 ms would do, and the window twice Cubic's.
#[test]
fn a_queue_longer_than_cubics_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let trip = follow(&mut guard, &mut FLOW.clone(), 1000, |_, f| {
        f.delivered += 1;
        f.cwnd = 2000;
        f.srtt_ms = 500;
    });
    assert_eq!(trip.expect("a trip").1, Reason::Slow);
}

/// The queue is the same, but one packet in five seconds is lost at this RTT. Cubic's queue would
/// be as long.
#[test]
fn a_queue_as_long_as_cubics_does_not_trip() {
    let mut guard = Guard::new(0, 10, 0);
    let trip = follow(&mut guard, &mut FLOW.clone(), 3000, |_, f| {
        f.delivered += 1;
        f.lost += u64::from(f.now_ms % 5000 == 100);
        f.cwnd = 2000;
        f.srtt_ms = 500;
    });
    assert_eq!(trip, None);
}

/// The flow sends ten packets in 10 ms for a second, then one.
#[test]
fn a_policy_that_leaves_a_free_path_unused_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = FLOW;
    let none = follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    assert_eq!(none, None);
    let trip = follow(&mut guard, &mut flow, 1000, |_, f| {
        f.delivered += 1;
        f.cwnd = 10;
    });
    let (at, reason) = trip.expect("a trip");
    assert_eq!(reason, Reason::Poor);
    assert!(at < 1000 + 1500, "{at} ms");
}

/// The flow sends as little, because the receiver takes no more: `HEADWAY_RWND_LIMITED`.
#[test]
fn a_slow_receiver_does_not_trip() {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = FLOW;
    follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    let trip = follow(&mut guard, &mut flow, 6000, |_, f| {
        f.delivered += 1;
        f.cwnd = 10;
        f.flags = 64;
    });
    assert_eq!(trip, None);
}

/// The flow has two packets in flight, and other flows' queue raises its RTT.
#[test]
fn a_policy_starved_by_other_flows_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = FLOW;
    follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    let trip = follow(&mut guard, &mut flow, 1000, |_, f| {
        f.delivered += u64::from(f.now_ms % 100 == 0);
        f.cwnd = 2;
        f.srtt_ms = 200;
    });
    let (at, reason) = trip.expect("a trip");
    assert_eq!(reason, Reason::Poor);
    assert!(at < 1000 + 2000, "{at} ms");
}

/// A flow that sends this many packets a round trip from the start. The first one is lost if
/// `is_lost`.
pub fn begins_with(limits: &Limits, packets: u64, is_lost: bool) -> Option<(u64, Reason)> {
    let mut flow = Flow {
        cwnd: packets + 1,
        ..FLOW
    };
    follow_by(
        limits,
        &mut Guard::new(0, 10, 0),
        &mut flow,
        3000,
        |_, f| {
            if f.now_ms % 100 == 0 {
                f.delivered += packets;
                f.lost += u64::from(is_lost && f.now_ms == 300);
            }
        },
    )
}

/// The path's capacity was never measured. It is assumed to carry a quarter of an initial window,
/// unless a loss or a queue shows otherwise.
#[test]
fn a_policy_starved_from_the_start_trips() {
    let usual = Limits::default();
    let (at, reason) = begins_with(&usual, 1, false).expect("a trip");
    assert_eq!(reason, Reason::Poor);
    assert!(at < 2000, "{at} ms");
    assert_eq!(begins_with(&usual, 3, false), None);
    assert_eq!(begins_with(&usual, 1, true), None);
}

/// A flow that sends `rate` packets in 10 ms without a queue, after five seconds of ten packets
/// with an RTT of `queue_ms`, in which one packet is lost.
pub fn gives_up(limits: &Limits, rate: u64, queue_ms: u64) -> Option<(u64, Reason)> {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = Flow {
        srtt_ms: queue_ms,
        cwnd: queue_ms,
        ..FLOW
    };
    let none = follow_by(limits, &mut guard, &mut flow, 500, |_, f| {
        f.delivered += 10;
        f.lost += u64::from(f.now_ms == 3000);
    });
    assert_eq!(none, None);
    follow_by(limits, &mut guard, &mut flow, 6000, |_, f| {
        f.delivered += rate;
        f.srtt_ms = 105;
    })
}

/// Half of the rate is worth a quarter of the RTT. Averages cover 32 epochs of 200 ms.
#[test]
fn a_long_low_rate_trips_unless_it_saves_enough_delay() {
    let usual = Limits::default();
    let (at, reason) = gives_up(&usual, 6, 200).expect("a trip");
    assert_eq!(reason, Reason::Poor);
    assert!((9_000..25_000).contains(&at), "{at} ms");
    // Nine tenths of the rate are enough, and so are six tenths at a quarter of the RTT.
    assert_eq!(gives_up(&usual, 9, 200), None);
    assert_eq!(gives_up(&usual, 6, 400), None);
}
