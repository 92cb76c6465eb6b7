//! Where Cubic takes over, and what the next policy inherits.

use super::*;

/// A policy that lost in four of five epochs is replaced while a request is open. The next policy
/// has no request yet, and no losses.
#[test]
fn bad_epochs_do_not_count_against_the_next_policy() {
    let lose = |f: &mut Flow| {
        f.delivered += 7;
        f.lost += 3;
    };
    let trips = |is_replaced| {
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        let trip = follow(&mut guard, &mut flow, 85, |_, f| lose(f));
        assert_eq!(trip, None);
        guard.ask(flow.now_ms * MS);
        if is_replaced {
            // Minutes later; meanwhile Cubic controlled the flow and lost packets.
            flow.now_ms += 100_000;
            flow.delivered += 100_000;
            flow.lost += 50_000;
            guard.replace_policy(flow.now_ms * MS, 100, 0);
        }
        follow(&mut guard, &mut flow, 60, |_, f| lose(f)).map(|(_, reason)| reason)
    };
    assert_eq!(trips(true), None);
    assert!(trips(false).is_some());
}

/// The reason stays: only an answer of the next policy ends the probation, and not before its time.
#[test]
fn a_probation_continues_when_the_policy_is_replaced() {
    let (mut guard, limits, mut flow) = (Guard::new(0, 10, 0), Limits::default(), FLOW);
    guard.ask(MS);
    follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10).expect("stale");
    let until = guard.until_ns();
    guard.replace_policy(until - 100 * MS, 100, 0);
    assert_eq!(
        (guard.reason(), guard.trips(), guard.until_ns()),
        (Reason::Stale, 1, until)
    );
    flow.now_ms = until / MS + 100;
    assert_eq!(guard.judge(&limits, &flow.record()), Verdict::Fallback);
    flow.now_ms += 10;
    let now = flow.now_ms * MS;
    guard.answer(&limits, now, now, now);
    assert_eq!(guard.judge(&limits, &flow.record()), Verdict::Resume);
}

/// A learner may lose too much for 25 epochs. A policy that replaces it after 20 of them may do so
/// for 5 of its own.
#[test]
fn acquit_clears_a_learners_bad_epochs() {
    let (mut guard, mut flow) = begun();
    let learners = Limits::default().for_learners();
    let lose = |_: &mut Guard, f: &mut Flow| {
        f.delivered += 7;
        f.lost += 3;
        f.cwnd = 1000;
    };
    let mut other = (guard.clone(), flow);
    let trip = follow_by(&learners, &mut other.0, &mut other.1, 2000, lose);
    let (at, reason) = trip.expect("a trip");
    assert_eq!(reason, Reason::Lossy);
    assert!((5000..5500).contains(&at), "{at}");
    let trip = follow_by(&learners, &mut guard, &mut flow, 400, lose);
    assert_eq!(trip, None);
    guard.acquit();
    let trip = follow(&mut guard, &mut flow, 70, lose);
    assert_eq!(trip, None);
    let trip = follow(&mut guard, &mut flow, 50, lose);
    assert_eq!(trip.expect("a trip").1, Reason::Lossy);
}

/// `HEADWAY_LEAVE` has no reason, and a learner that diverges may have had any window. Cubic does
/// not begin with that window.
#[test]
fn fallback_does_not_keep_a_runaway_window() {
    let (mut guard, mut flow) = (Guard::new(0, 100, 0), FLOW);
    // The flow carries 100 packets a round trip of 100 ms.
    let trip = follow(&mut guard, &mut flow, 300, |_, f| f.delivered += 10);
    assert_eq!(trip, None);
    // The shadow Cubic is past slow start, so the policy's window does not matter.
    for cwnd in [100, 4000] {
        flow.cwnd = cwnd;
        let ssthresh = guard.restart(&Limits::default(), &flow.record());
        assert!((100..=250).contains(&ssthresh), "{cwnd}: {ssthresh}");
    }
}

/// A flow that Cubic controlled continues with Cubic's window. It depends on whether that is past
/// slow start.
#[test]
fn fallback_after_slow_start_keeps_the_window() {
    let restart = |ssthresh, cwnd| {
        let (mut guard, flow) = (Guard::new(0, 100, ssthresh), Flow { cwnd, ..FLOW });
        guard.forget();
        guard.restart(&Limits::default(), &flow.record())
    };
    for below in [0, 200] {
        assert_eq!(restart(below, 100), Guard::NO_SSTHRESH, "{below}");
    }
    for past in [50, 100] {
        assert_eq!(restart(past, 100), 100, "{past}");
    }
}

/// After another trip Cubic may begin in slow start, far below its ssthresh. A loss ends that.
#[test]
fn only_losses_of_a_policy_that_sent_too_much_are_ignored() {
    let ignores = |change: &mut dyn FnMut(&mut Guard, &mut Flow)| {
        let (mut guard, mut flow) = begun();
        guard.ask(flow.now_ms * MS);
        let (at, reason) = follow(&mut guard, &mut flow, 2000, change).expect("a trip");
        let limits = Limits::default();
        // The smoothed RTT is 100 ms.
        let soon = guard.ignores_loss(&limits, (at + 150) * MS, 100_000);
        assert!(!guard.ignores_loss(&limits, (at + 250) * MS, 100_000));
        (reason, soon)
    };
    let limits = Limits::default();
    let answer = |g: &mut Guard, f: &Flow| {
        let now = f.now_ms * MS;
        g.answer(&limits, now, now, now);
    };
    let stale = ignores(&mut |_, f| f.delivered += 10);
    assert_eq!(stale, (Reason::Stale, false));
    let wild = ignores(&mut |g, f| {
        answer(g, f);
        f.delivered += 10;
        g.cwnd(&limits, 1 << 40);
    });
    assert_eq!(wild, (Reason::Wild, true));
    let lossy = ignores(&mut |g, f| {
        answer(g, f);
        (f.delivered, f.lost, f.cwnd) = (f.delivered + 7, f.lost + 3, 1000);
    });
    assert_eq!(lossy, (Reason::Lossy, true));
}
