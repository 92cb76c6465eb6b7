//! How the agent waits. A flow that has to wake the agent pays tens of microseconds for it, much
//! more than the rest of an acknowledgement takes. An agent that a timer wakes pays a few. So it is
//! awake when it expects a request.

use headway_cc::{Duration, Time};

/// What to do until there may be something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Look again, at once.
    Look,
    /// Sleep for this time. A request that arrives meanwhile does not wake the agent.
    Nap(Duration),
    /// Sleep for this time, or until a request arrives.
    Sleep(Duration),
}

/// A question that a flow is to ask with an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Expected {
    slot: u16,
    /// From then on it may.
    due: Time,
    /// When it is thought to.
    at: Time,
    /// By what was heard of it just before that?
    is_sure: bool,
    /// It has not come when it was thought to.
    is_late: bool,
}

impl Expected {
    /// From then on the agent naps: it may come earlier than it is thought to, but not before it is
    /// due.
    fn naps_from(&self) -> Time {
        let from = self.looks_from().saturating_sub(WaitPolicy::AROUND);
        from.max(self.due.saturating_sub(WaitPolicy::WAKING))
    }

    fn looks_from(&self) -> Time {
        self.at.saturating_sub(WaitPolicy::EARLY)
    }

    fn looks_until(&self) -> Time {
        self.at + WaitPolicy::LATE
    }
}

/// Knows when questions come.
#[derive(Debug)]
pub struct WaitPolicy {
    /// How far apart answers are, on average.
    apart: Duration,
    answered: Time,
    /// Of few flows.
    expected: Vec<Expected>,
    /// Which share of questions came when they were expected: else they are not worth looking for.
    punctual: f64,
    /// How much of the processor it may use for that.
    spare: Duration,
    seen: Time,
    is_looking: bool,
    /// It never sleeps.
    pub is_busy: bool,
}

impl WaitPolicy {
    /// Where answers are closer than this, on average, one nap serves some of them.
    const BUSY: Duration = Duration::from_micros(500);
    /// The shortest nap.
    const NAP: Duration = Duration::from_micros(200);
    /// Waking up takes about this time.
    const WAKING: Duration = Duration::from_micros(50);
    /// A question is looked for from this time before it is expected.
    const EARLY: Duration = Duration::from_micros(30);
    /// Until this time after that.
    const LATE: Duration = Duration::from_micros(100);
    /// For this time before it looks, and after, it naps: the question may come too early or too
    /// late. That costs an eighth of looking.
    const AROUND: Duration = Duration::from_micros(150);
    /// At most for this time at once. A question waits for half of it on average, which is no
    /// longer than until a hook has woken the agent.
    const SHORT_NAP: Duration = Duration::from_micros(50);
    /// Falling asleep and waking up takes so much of the processor.
    const NAP_COST: Duration = Duration::from_micros(6);
    /// With more flows than this there are others to answer meanwhile.
    const FEW: usize = 16;
    /// Looks and naps take at most this fraction of the processor: 1 / SHARE.
    const SHARE: u64 = 32;
    /// It does not look with less than this left: the naps for one question take as much.
    const FOR_NAPS: Duration = Duration::from_micros(30);
    /// What it may have saved up of that.
    const MOST_SPARE: Duration = Duration::from_micros(500);

    pub fn new(now: Time) -> WaitPolicy {
        WaitPolicy {
            apart: WaitPolicy::BUSY * 2,
            answered: now,
            expected: Vec::with_capacity(WaitPolicy::FEW),
            punctual: 1.0,
            spare: WaitPolicy::MOST_SPARE,
            seen: now,
            is_looking: false,
            is_busy: false,
        }
    }

    /// A flow that was to ask from `due` on asked at `at`; by what was heard of it before that was
    /// `thought`.
    pub fn on_question(&mut self, slot: u16, due: Time, at: Time, thought: Time) {
        let is_it = |e: &Expected| (e.slot, e.due) == (slot, due);
        if let Some(found) = self.expected.iter().position(is_it) {
            if self.expected.swap_remove(found).is_late {
                return;
            }
            self.learn(thought <= at + WaitPolicy::WAKING && at <= thought + WaitPolicy::LATE);
        }
    }

    fn learn(&mut self, is_punctual: bool) {
        self.punctual += (f64::from(u8::from(is_punctual)) - self.punctual) / 16.0;
    }

    /// An answer was given. The flow is to ask again from `due` on, with an acknowledgement, if at
    /// all.
    pub fn on_answer(&mut self, now: Time, slot: u16, due: Option<Time>) {
        let since = now.since(self.answered).min(WaitPolicy::BUSY * 2);
        self.apart = (self.apart * 15 + since) / 16;
        self.answered = now;
        if let Some(due) = due {
            self.expect(slot, due);
        }
    }

    /// A flow asks with its first acknowledgement from `due` on.
    pub fn expect(&mut self, slot: u16, due: Time) {
        if self.expected.len() < WaitPolicy::FEW {
            self.expected.push(Expected {
                slot,
                due,
                at: due,
                is_sure: false,
                is_late: false,
            });
        }
    }

    /// How to wait. `timer` is when a clock wants to decide; `acknowledged` says when a flow's
    /// first acknowledgement from a time on is to be expected, by what has been heard of it.
    pub fn wait(
        &mut self,
        now: Time,
        timer: Time,
        acknowledged: impl Fn(u16, Time) -> Time,
    ) -> Wait {
        let passed = now.since(self.seen);
        self.seen = now;
        self.spare = (self.spare + passed / WaitPolicy::SHARE).min(WaitPolicy::MOST_SPARE);
        if std::mem::take(&mut self.is_looking) {
            self.spare = self.spare.saturating_sub(passed);
        }
        self.think_again(now, acknowledged);
        if self.is_busy {
            return Wait::Nap(Duration::ZERO);
        }
        // While nobody asks the mean stands still.
        if self.apart.max(now.since(self.answered)) < WaitPolicy::BUSY {
            return Wait::Nap(timer.since(now).clamp(WaitPolicy::NAP, WaitPolicy::BUSY));
        }
        if self.punctual < 0.25 {
            return Wait::Sleep(timer.since(now));
        }
        let is_looked_for = |e: &Expected| e.looks_from() <= now && now <= e.looks_until();
        if self.spare > WaitPolicy::FOR_NAPS && self.expected.iter().any(is_looked_for) {
            self.is_looking = true;
            return Wait::Look;
        }
        let is_near = |e: &Expected| e.naps_from() <= now;
        if self.spare >= WaitPolicy::NAP_COST && self.expected.iter().any(is_near) {
            self.spare = self.spare.saturating_sub(WaitPolicy::NAP_COST);
            let time = self.until(now, timer, Expected::looks_from);
            return Wait::Nap(time.min(WaitPolicy::SHORT_NAP));
        }
        Wait::Sleep(self.until(now, timer, Expected::naps_from))
    }

    /// How long it is until the timer, or until one of these times of what is expected.
    fn until(&self, now: Time, timer: Time, of: impl Fn(&Expected) -> Time) -> Duration {
        let times = self.expected.iter().map(of).filter(|time| *time > now);
        times.fold(timer, Time::min).since(now)
    }

    /// When questions are expected, by what was heard meanwhile. Those that have not come are not.
    fn think_again(&mut self, now: Time, acknowledged: impl Fn(u16, Time) -> Time) {
        for e in &mut self.expected {
            if !e.is_sure && now >= e.naps_from() {
                let at = acknowledged(e.slot, e.due).max(e.due);
                e.is_sure = at <= e.at + WaitPolicy::WAKING;
                e.at = at;
            }
        }
        let is_new = |e: &&mut Expected| !e.is_late && now > e.looks_until();
        let late = self.expected.iter_mut().filter(is_new);
        let missed = late.map(|e| e.is_late = true).count();
        (0..missed).for_each(|_| self.learn(false));
        self.expected
            .retain(|e| now <= e.looks_until() + WaitPolicy::AROUND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::from_nanos(1_000_000_000 + us * 1000)
    }

    fn sleep(us: u64) -> Wait {
        Wait::Sleep(Duration::from_micros(us))
    }

    const FLOW: u16 = 7;

    /// A flow is answered each `every` us; with its first acknowledgement `late` us after that it
    /// asks again, which was `thought` to be so much after. Returns how much of the processor
    /// looking and napping took, and of how many questions the agent had to be told.
    fn serve(
        rest: &mut WaitPolicy,
        every: u64,
        late: u64,
        thought: impl Fn(u64) -> u64,
        questions: u64,
    ) -> (u64, u64) {
        let (mut used, mut woken) = (0, 0);
        for n in 0..questions {
            let (mut now, due) = (n * every, (n + 1) * every);
            let thought = thought(n);
            rest.on_answer(us(now), FLOW, Some(us(due)));
            while now < due + late {
                match rest.wait(us(now), Time::NEVER, |_, _| us(due + thought)) {
                    Wait::Look => (now, used) = (now + 1, used + 1),
                    Wait::Nap(time) => {
                        now += time.as_nanos() / 1000 + 6;
                        used += 6;
                    }
                    Wait::Sleep(time) if us(now) + time < us(due + late) => {
                        now += time.as_nanos() / 1000;
                    }
                    Wait::Sleep(_) => {
                        woken += 1;
                        break;
                    }
                }
            }
            rest.on_question(FLOW, us(due), us(due + late), us(due + thought));
        }
        (used, woken)
    }

    #[test]
    fn a_question_that_is_expected_wakes_nobody() {
        for (late, thought) in [(30, 0), (700, 700), (700, 720), (700, 640)] {
            let mut rest = WaitPolicy::new(us(0));
            let (used, woken) = serve(&mut rest, 4000, late, |_| thought, 1000);
            assert_eq!(
                woken, 0,
                "{late} us after it was due, thought to be {thought}"
            );
            assert!(used <= 1000 * 125, "{used} us");
        }
    }

    /// Half of them are off by more than it looks for.
    #[test]
    fn a_question_that_is_a_little_too_early_or_too_late_wakes_nobody() {
        for off in [870, 850, 500] {
            let mut rest = WaitPolicy::new(us(0));
            let thought = |n: u64| if n.is_multiple_of(2) { 700 } else { off };
            let (used, woken) = serve(&mut rest, 4000, 700, thought, 1000);
            assert_eq!(woken, 0, "thought to be after {off} us");
            assert!(used <= 1000 * 125, "{used} us");
        }
        // But not before it is due.
        let mut rest = WaitPolicy::new(us(0));
        rest.on_answer(us(0), FLOW, Some(us(4000)));
        assert_eq!(rest.wait(us(0), Time::NEVER, |_, _| us(4100)), sleep(3950));
    }

    /// To look for each would take twice as long as it may.
    #[test]
    fn who_may_not_look_for_long_naps() {
        let mut rest = WaitPolicy::new(us(0));
        let (used, woken) = serve(&mut rest, 1000, 30, |_| 0, 1000);
        assert!(woken <= 10, "{woken}");
        assert!(used <= 1_000_000 / 32 + 500, "{used} us");
    }

    #[test]
    fn who_looks_in_vain_sleeps() {
        let mut rest = WaitPolicy::new(us(0));
        let (used, woken) = serve(&mut rest, 4000, 700, |_| 200, 1000);
        assert_eq!(woken, 1000);
        // Until fewer than a quarter of the last were punctual.
        assert!(used <= 22 * 170, "{used} us");
        // It hears of what comes later too, and looks again once that would have been worth it.
        let (_, woken) = serve(&mut rest, 4000, 700, |_| 700, 1000);
        assert!(woken <= 6, "{woken}");
    }

    #[test]
    fn looking_takes_a_bounded_share() {
        let mut rest = WaitPolicy::new(us(0));
        let (mut used, mut wakes) = (0, 0);
        for now in 0..1_000_000 {
            // Whatever is answered, somebody is to ask at once, and asks 100 us later.
            if now % 600 == 0 {
                rest.on_answer(us(now), FLOW, Some(us(now)));
            }
            if now % 600 == 100 {
                rest.on_question(FLOW, us(now - 100), us(now), us(now - 100));
            }
            if now < wakes {
                continue;
            }
            match rest.wait(us(now), Time::NEVER, |_, due| due) {
                Wait::Look => used += 1,
                Wait::Nap(time) => {
                    used += 6;
                    wakes = now + time.as_nanos() / 1000 + 6;
                }
                Wait::Sleep(_) => {}
            }
        }
        assert!((25_000..=32_000).contains(&used), "{used} us of a second");
    }

    #[test]
    fn many_questions_are_answered_from_nap_to_nap() {
        let mut rest = WaitPolicy::new(us(0));
        for now in 0..100 {
            rest.on_answer(us(now * 20), FLOW, None);
        }
        let mut wait = |now, timer| rest.wait(us(now), timer, |_, due| due);
        let nap = |us| Wait::Nap(Duration::from_micros(us));
        // As long as until the next clock, within bounds.
        assert_eq!(wait(2000, us(2001)), nap(200));
        assert_eq!(wait(2000, us(2300)), nap(300));
        assert_eq!(wait(2000, Time::NEVER), nap(500));
        // No request arrived for long: the next one wakes the agent.
        assert_eq!(wait(3000, us(9000)), sleep(6000));
        assert!(matches!(wait(9000, Time::NEVER), Wait::Sleep(_)));
    }

    #[test]
    fn a_clock_is_slept_for_until_it_decides() {
        let mut rest = WaitPolicy::new(us(0));
        let wait = |rest: &mut WaitPolicy, now| rest.wait(us(now), us(10_000), |_, due| due);
        assert_eq!(wait(&mut rest, 0), sleep(10_000));
        rest.on_answer(us(0), FLOW, Some(us(4000)));
        assert_eq!(wait(&mut rest, 1000), sleep(4000 - 50 - 1000));
        let nap = |us| Wait::Nap(Duration::from_micros(us));
        assert_eq!(wait(&mut rest, 3960), nap(10));
        assert_eq!(wait(&mut rest, 3970), Wait::Look);
        assert_eq!(wait(&mut rest, 4101), nap(50));
        assert_eq!(wait(&mut rest, 4251), sleep(10_000 - 4251));
    }
}
