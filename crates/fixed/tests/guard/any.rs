//! The guard with random records, answers and limits.

use headway_fixed::vectors::Draw;
use proptest::prelude::*;

use super::*;

proptest! {
    /// Prompt answers never trip, and end a probation at the first record after its end, however
    /// long after its record's time each answer is read.
    #[test]
    fn the_verdict_does_not_depend_on_when_an_answer_is_read(
        steps in prop::collection::vec((1u64..20_000, 0u64..900, 0u64..2_000), 2000..4000),
    ) {
        // Only stale answers can trip here.
        let limits = Limits::default().without_epochs();
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        guard.ask(MS);
        follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10).expect("stale");
        let mut record = flow.record();
        let until = guard.until_ns();
        for (gap_us, took_us, jitter_us) in steps {
            let requested = record[0];
            guard.ask(requested);
            record[0] += (took_us + gap_us) * 1000;
            record[3] += 1;
            guard.answer(&limits, requested, requested + took_us * 1000, record[0] + jitter_us * 1000);
            let judged = guard.judge(&limits, &record);
            prop_assert!(judged != Verdict::Trip, "at {} ns", record[0]);
            prop_assert_eq!(judged == Verdict::Fallback, record[0] < until);
        }
    }

    #[test]
    fn bounds_and_probations_hold_for_any_input(seed in any::<u64>()) {
        let (limits, mut draw) = (Limits::default(), Draw::new(seed));
        let mut last: RecordBytes = [0; 12];
        let mut guard = Guard::new(0, 10, 0);
        let mut until = 0;
        for _ in 0..500 {
            last = draw.record(&last);
            let now = last[0];
            if draw.below(3) == 0 {
                guard.ask(now);
            }
            if draw.below(3) == 0 {
                let mut before = || now.wrapping_sub(draw.bits() >> draw.below(64));
                let (decided, answered) = (before(), before());
                guard.answer(&limits, decided, answered, now);
            }
            let wanted = draw.bits() as i64 >> draw.below(64);
            prop_assert!((2..=100_000).contains(&guard.cwnd(&limits, wanted)));
            prop_assert!(guard.rate(&limits, draw.bits()) <= limits.max_rate);
            prop_assert!(guard.restart(&limits, &last) >= 2);
            match guard.judge(&limits, &last) {
                Verdict::Trip => until = guard.until_ns(),
                Verdict::Resume => prop_assert!(now >= until),
                Verdict::Policy => prop_assert_eq!(guard.reason(), Reason::Fine),
                Verdict::Fallback => prop_assert_ne!(guard.reason(), Reason::Fine),
            }
        }
    }
}

#[test]
fn no_undefined_behaviour_for_any_limits_and_records() {
    if let Some(trips) = crate::sanitized::run("guard") {
        assert!(trips > 10_000, "{trips} trips");
    }
}
