//! How the agent waits. A flow that has to wake the agent pays tens of microseconds for it, much
//! more than the rest of an acknowledgement takes. An agent that a timer wakes pays a few. So it is
//! awake when it expects a request.

use headway_cc::{Duration, Time};

use super::timers::FlowSlot;

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
    place: FlowSlot,
    /// From then on it may.
    due: Time,
    /// When it is thought to.
    at: Time,
    /// By what was heard of it just before that?
    is_sure: bool,
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
    /// For how long it may look.
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
    const EARLY: Duration = Duration::from_micros(50);
    /// A question is looked for until this time after it was expected.
    const LATE: Duration = Duration::from_micros(100);
    /// With more flows than this there are others to answer meanwhile.
    const FEW: usize = 16;
    /// It looks for at most this fraction of the time: 1 / SHARE.
    const SHARE: u64 = 32;
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
    pub fn on_question(&mut self, place: FlowSlot, due: Time, at: Time, thought: Time) {
        let is_it = |e: &Expected| (e.place, e.due) == (place, due);
        if let Some(found) = self.expected.iter().position(is_it) {
            self.expected.swap_remove(found);
            self.learn(thought <= at + WaitPolicy::EARLY && at <= thought + WaitPolicy::LATE);
        }
    }

    fn learn(&mut self, is_punctual: bool) {
        self.punctual += (f64::from(u8::from(is_punctual)) - self.punctual) / 16.0;
    }

    /// An answer was given. The flow is to ask again from `due` on, with an acknowledgement, if at
    /// all.
    pub fn on_answer(&mut self, now: Time, place: FlowSlot, due: Option<Time>) {
        let since = now.since(self.answered).min(WaitPolicy::BUSY * 2);
        self.apart = (self.apart * 15 + since) / 16;
        self.answered = now;
        if let Some(due) = due
            && self.expected.len() < WaitPolicy::FEW
        {
            self.expected.push(Expected {
                place,
                due,
                at: due,
                is_sure: false,
            });
        }
    }

    /// How to wait. `timer` is when a clock wants to decide; `acknowledged` says when a flow's
    /// first acknowledgement from a time on is to be expected, by what has been heard of it.
    pub fn wait(
        &mut self,
        now: Time,
        timer: Time,
        acknowledged: impl Fn(FlowSlot, Time) -> Time,
    ) -> Wait {
        let passed = now.since(self.seen);
        self.seen = now;
        self.spare = (self.spare + passed / WaitPolicy::SHARE).min(WaitPolicy::MOST_SPARE);
        let mut needed = WaitPolicy::EARLY + WaitPolicy::LATE;
        if std::mem::take(&mut self.is_looking) {
            self.spare = self.spare.saturating_sub(passed);
            needed = Duration::ZERO;
        }
        let early = (self.next_question(now, acknowledged)).saturating_sub(WaitPolicy::EARLY);
        if self.is_busy {
            return Wait::Nap(Duration::ZERO);
        }
        // While nobody asks the mean stands still.
        if self.apart.max(now.since(self.answered)) < WaitPolicy::BUSY {
            return Wait::Nap(timer.since(now).clamp(WaitPolicy::NAP, WaitPolicy::BUSY));
        }
        let spare = self.spare + early.since(now) / WaitPolicy::SHARE;
        if self.punctual < 0.25 || spare <= needed {
            return Wait::Sleep(timer.since(now));
        }
        if early <= now {
            self.is_looking = true;
            return Wait::Look;
        }
        Wait::Sleep(timer.min(early).since(now))
    }

    /// When the next question is expected.
    fn next_question(&mut self, now: Time, acknowledged: impl Fn(FlowSlot, Time) -> Time) -> Time {
        for e in &mut self.expected {
            if !e.is_sure && now + WaitPolicy::EARLY >= e.at {
                let at = acknowledged(e.place, e.due).max(e.due);
                e.is_sure = at <= e.at + WaitPolicy::EARLY;
                e.at = at;
            }
        }
        while let Some(late) = (self.expected.iter()).position(|e| now > e.at + WaitPolicy::LATE) {
            self.expected.swap_remove(late);
            self.learn(false);
        }
        let times = self.expected.iter().map(|e| e.at);
        times.min().unwrap_or(Time::NEVER)
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

    const FLOW: FlowSlot = (0, 7);

    /// A flow is answered every 4 ms; with its first acknowledgement `late` us after that it asks
    /// again, which was `thought` to be so much after. Returns how long the agent looked, and of
    /// how many questions it had to be told.
    fn serve(rest: &mut WaitPolicy, late: u64, thought: u64, questions: u64) -> (u64, u64) {
        let (mut looked, mut woken) = (0, 0);
        for n in 0..questions {
            let (mut now, due) = (n * 4000, (n + 1) * 4000);
            rest.on_answer(us(now), FLOW, Some(us(due)));
            while now < due + late {
                match rest.wait(us(now), Time::NEVER, |_, _| us(due + thought)) {
                    Wait::Look => (now, looked) = (now + 1, looked + 1),
                    Wait::Sleep(time) if us(now) + time < us(due + late) => {
                        now += time.as_nanos() / 1000;
                    }
                    Wait::Sleep(_) => {
                        woken += 1;
                        break;
                    }
                    Wait::Nap(_) => panic!("one flow keeps nobody busy"),
                }
            }
            rest.on_question(FLOW, us(due), us(due + late), us(due + thought));
        }
        (looked, woken)
    }

    #[test]
    fn a_question_that_is_expected_wakes_nobody() {
        for (late, thought) in [(30, 0), (700, 700), (700, 720), (700, 640)] {
            let mut rest = WaitPolicy::new(us(0));
            let (looked, woken) = serve(&mut rest, late, thought, 1000);
            assert_eq!(
                woken, 0,
                "{late} us after it was due, thought to be {thought}"
            );
            assert!(looked <= 1000 * 125, "{looked} us");
        }
    }

    #[test]
    fn who_looks_in_vain_sleeps() {
        let mut rest = WaitPolicy::new(us(0));
        let (looked, woken) = serve(&mut rest, 700, 200, 1000);
        assert_eq!(woken, 1000);
        // Until fewer than a quarter of the last were punctual.
        assert!(looked <= 22 * 151, "{looked} us");
        // It hears of what comes later too, and looks again once that would have been worth it.
        let (_, woken) = serve(&mut rest, 700, 700, 1000);
        assert!(woken <= 6, "{woken}");
    }

    #[test]
    fn looking_takes_a_bounded_share() {
        let mut rest = WaitPolicy::new(us(0));
        let mut looked = 0;
        for now in 0..1_000_000 {
            // Whatever is answered, somebody is to ask at once, and asks 100 us later.
            if now % 600 == 0 {
                rest.on_answer(us(now), FLOW, Some(us(now)));
            }
            if now % 600 == 100 {
                rest.on_question(FLOW, us(now - 100), us(now), us(now - 100));
            }
            looked += u64::from(rest.wait(us(now), Time::NEVER, |_, due| due) == Wait::Look);
        }
        assert!(
            (25_000..=32_000).contains(&looked),
            "{looked} us of a second"
        );
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
        assert_eq!(wait(&mut rest, 3970), Wait::Look);
        assert_eq!(wait(&mut rest, 4101), sleep(10_000 - 4101));
    }
}
