//! Late answers: the reason `stale`, and what ends a probation.

use super::*;

#[test]
fn a_missing_answer_trips_after_two_round_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = FLOW;
    let limits = Limits::default();
    follow(&mut guard, &mut flow, 10, |_, f| f.delivered += 10);
    guard.ask(100 * MS);
    // The limit is 200 ms and two acknowledgements that could have found the answer.
    let trip = follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    assert_eq!(trip, Some((320, Reason::Stale)));
    // The answer comes too late. It is not carried out, and does not end the probation.
    assert!(!guard.answer(&limits, 100 * MS, 390 * MS, 400 * MS));
    assert_eq!(guard.until_ns(), (320 + 10_000) * MS);
}

/// An outage ends with a timeout, which does not look for an answer, and an acknowledgement, which
/// finds it.
#[test]
fn an_answer_that_waited_for_an_acknowledgement_is_not_stale() {
    let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
    follow(&mut guard, &mut flow, 10, |_, f| f.delivered += 10);
    guard.ask(100 * MS);
    for (after_ms, acks) in [(400, 0), (800, 0), (1000, 1)] {
        flow.now_ms += after_ms;
        flow.acks = acks;
        let judged = guard.judge(&Limits::default(), &flow.record());
        assert_eq!(judged, Verdict::Policy, "after {after_ms} ms");
    }
}

/// Acknowledgements are 400 ms apart. Each finds an answer that took `took_ms`.
#[test]
fn answers_that_always_come_too_late_trip() {
    let (limits, mut flow) = (Limits::default(), FLOW);
    let trips = |took_ms: u64, flow: &mut Flow| {
        let mut guard = Guard::new(0, 10, 0);
        for _ in 0..4 {
            guard.ask(flow.now_ms * MS);
            flow.now_ms += 400;
            flow.delivered += 2;
            let judged = guard.judge(&limits, &flow.record());
            if judged == Verdict::Trip {
                return Some(guard.reason());
            }
            let [decided, now] = [flow.now_ms - took_ms, flow.now_ms].map(|ms| ms * MS);
            guard.answer(&limits, decided + 1, now, now);
        }
        None
    };
    flow.now_ms = 2000;
    flow.srtt_ms = 400;
    assert_eq!(trips(1000, &mut flow), Some(Reason::Stale));
    assert_eq!(trips(399, &mut flow), None);
}

/// A clock decides 20 ms after each acknowledgement, and the next one comes 900 ms later. Each
/// finds an answer that took a millisecond, and that is as new as possible.
#[test]
fn an_answer_that_waits_for_a_rare_acknowledgement_is_not_late() {
    let (mut guard, limits) = (Guard::new(0, 10, 0), Limits::default());
    // The flag is HEADWAY_APP_LIMITED.
    let mut flow = Flow { flags: 1, ..FLOW };
    for _ in 0..20 {
        let decided = (flow.now_ms + 20) * MS;
        flow.now_ms += 900;
        flow.delivered += 2;
        let is_done = guard.answer(&limits, decided, decided + MS, flow.now_ms * MS);
        assert!(is_done, "at {} ms", flow.now_ms);
        assert_eq!(guard.judge(&limits, &flow.record()), Verdict::Policy);
        // The flow also sends a request of its own, just before the clock decides.
        guard.ask(flow.now_ms * MS);
    }
    // Minutes later the answer no longer fits the path, but it was not late.
    let decided = (flow.now_ms + 20) * MS;
    flow.now_ms += 200_000;
    assert!(!guard.answer(&limits, decided, decided + MS, flow.now_ms * MS));
    assert_eq!(guard.judge(&limits, &flow.record()), Verdict::Policy);
}

/// The newest answer was prompt. Then the flow was idle for minutes, in which the agent may have
/// died.
#[test]
fn an_old_answer_does_not_end_a_fallback() {
    let (mut guard, limits, mut flow) = (Guard::new(0, 10, 0), Limits::default(), FLOW);
    guard.ask(MS);
    follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10).expect("stale");
    let answered = flow.now_ms * MS;
    flow.now_ms += 200_000;
    assert!(guard.until_ns() < flow.now_ms * MS);
    assert!(!guard.answer(&limits, answered, answered, flow.now_ms * MS));
    assert_eq!(guard.judge(&limits, &flow.record()), Verdict::Fallback);
    // The agent answers the next request.
    flow.now_ms += 100;
    let now = flow.now_ms * MS;
    assert!(!guard.answer(&limits, now, now, now));
    assert_eq!(guard.judge(&limits, &flow.record()), Verdict::Resume);
}

/// Each acknowledgement finds the answer to the one before, as with Rax, and with Owl on a slow
/// path. The program looks for it 5 us after the acknowledgement arrived, while the record has the
/// time of arrival.
#[test]
fn an_answer_after_its_record_ends_a_fallback() {
    let (mut guard, limits, mut flow) = (Guard::new(0, 10, 0), Limits::default(), FLOW);
    guard.ask(MS);
    let trip = follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    assert_eq!(trip, Some((220, Reason::Stale)));
    let until = guard.until_ns();
    for _ in 0..2000 {
        let requested = flow.now_ms * MS;
        flow.now_ms += 10;
        flow.delivered += 10;
        let now = flow.now_ms * MS;
        guard.answer(&limits, requested, requested + 100_000, now + 5000);
        match guard.judge(&limits, &flow.record()) {
            Verdict::Fallback => assert!(now < until, "Cubic's at {} ms", flow.now_ms),
            Verdict::Resume => assert_eq!(now, until),
            Verdict::Policy => assert!(now > until),
            Verdict::Trip => panic!("a second trip at {} ms", flow.now_ms),
        }
        guard.ask(now);
    }
    assert_eq!((guard.reason(), guard.trips()), (Reason::Fine, 1));
}

/// A request is sent while a clock's answer is being written. The answer covers it, although the
/// next one is due only much later.
#[test]
fn an_answer_closes_requests_sent_before_it_was_given() {
    let (mut guard, limits, mut flow) = (Guard::new(0, 10, 0), Limits::default(), FLOW);
    follow(&mut guard, &mut flow, 10, |_, f| f.delivered += 10);
    guard.ask(100 * MS);
    assert!(guard.answer(&limits, 99 * MS, 101 * MS, 110 * MS));
    let trip = follow(&mut guard, &mut flow, 1000, |_, f| f.delivered += 10);
    assert_eq!(trip, None);
    // An answer that was given before a request does not cover it.
    guard.ask(flow.now_ms * MS);
    let given = flow.now_ms * MS - 1;
    assert!(guard.answer(&limits, given, given, (flow.now_ms + 10) * MS));
    let trip = follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    assert_eq!(trip.expect("a trip").1, Reason::Stale);
}
