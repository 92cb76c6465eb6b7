//! The length of probations.

use super::*;

/// Sends a request without an answer, and returns the length in ms of the probation that follows.
/// The flow has returned then.
fn probation(guard: &mut Guard, flow: &mut Flow) -> u64 {
    probation_of(&Limits::default(), guard, flow)
}

pub fn probation_of(limits: &Limits, guard: &mut Guard, flow: &mut Flow) -> u64 {
    guard.ask(flow.now_ms * MS);
    let stale = follow_by(limits, guard, flow, 100, |_, f| f.delivered += 10);
    let (at, _) = stale.expect("stale");
    let until = guard.until_ns() / MS;
    // New requests are answered, but the flow does not return before the end.
    loop {
        flow.now_ms += 100;
        let now = flow.now_ms * MS;
        assert!(!guard.answer(limits, now, now, now));
        match guard.judge(limits, &flow.record()) {
            Verdict::Fallback => assert!(flow.now_ms < until),
            judged => {
                assert_eq!(judged, Verdict::Resume);
                assert!(flow.now_ms >= until && flow.now_ms < until + 200);
                return until - at;
            }
        }
    }
}

/// The probations last ten seconds, then twenty, forty, and so on up to 320.
#[test]
fn probations_double_after_each_trip() {
    let (mut guard, mut flow) = begun();
    let probations = [(); 7].map(|()| probation(&mut guard, &mut flow));
    assert_eq!(
        probations,
        [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 320_000]
    );
}

/// The first three last equally long. A policy that does not improve then loses the flow for longer
/// and longer.
#[test]
fn a_learners_probations_double_after_the_third() {
    let (mut guard, mut flow) = begun();
    let limits = Limits::default().for_learners();
    let probations = [(); 9].map(|()| probation_of(&limits, &mut guard, &mut flow) / 1000);
    assert_eq!(probations, [10, 10, 10, 20, 40, 80, 160, 320, 320]);
}

/// Each ten minutes without a trip halve the next probation, down to the shortest.
#[test]
fn ten_minutes_without_a_trip_forget_one() {
    let (mut guard, mut flow) = begun();
    let first = [(); 3].map(|()| probation(&mut guard, &mut flow));
    assert_eq!(first, [10_000, 20_000, 40_000]);
    let mut after = |minutes: u32| {
        let well = follow(&mut guard, &mut flow, minutes * 6000, |_, f| {
            f.delivered += 10
        });
        assert_eq!(well, None);
        probation(&mut guard, &mut flow)
    };
    // The third trip is forgotten, so the next trip counts as the third again.
    assert_eq!(after(11), 40_000);
    assert_eq!(after(9), 80_000);
    assert_eq!(after(45), 10_000);
}

/// The same holds at the longest probation: trips beyond those that made it so long do not count.
#[test]
fn ten_minutes_without_a_trip_halve_the_longest_probation() {
    let (mut guard, mut flow) = begun();
    let probations = [(); 8].map(|()| probation(&mut guard, &mut flow));
    assert_eq!(probations[6..], [320_000, 320_000]);
    let well = |_: &mut Guard, f: &mut Flow| f.delivered += 10;
    assert_eq!(follow(&mut guard, &mut flow, 66_000, well), None);
    assert_eq!(probation(&mut guard, &mut flow), 160_000);
}
