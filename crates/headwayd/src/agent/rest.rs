//! How the agent waits. To be woken costs whoever asks tens of microseconds, much more than all else that a flow's
//! acknowledgement takes; to get up by the clock costs the agent a few. So it is up when a question is expected.

use headway_cc::{Duration, Time};

/// What to do until there may be something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Look again, at once.
    Look,
    /// Sleep for so long: whoever asks meanwhile wakes nobody.
    Nap(Duration),
    /// Sleep for so long, unless somebody asks.
    Sleep(Duration),
}

/// Knows when questions come.
#[derive(Debug)]
pub struct Rest {
    /// How far apart answers are, on average.
    apart: Duration,
    answered: Time,
    /// From when on flows will ask with their next acknowledgement, where they are few.
    expected: Vec<Time>,
    /// Which share of questions came soon enough to have been worth looking for.
    soon: f64,
    /// For how long it may still look.
    spare: Duration,
    seen: Time,
    is_looking: bool,
}

impl Rest {
    /// Where answers are closer than this, on average, one nap serves some of them.
    const BUSY: Duration = Duration::from_micros(500);
    /// The shortest nap.
    const NAP: Duration = Duration::from_micros(100);
    /// Getting up takes about so long.
    const EARLY: Duration = Duration::from_micros(50);
    /// A question is looked for until so long after the flow might have asked.
    const SOON: Duration = Duration::from_micros(100);
    /// Beyond so many flows there are others to answer meanwhile.
    const FEW: usize = 16;
    /// It looks for at most one part in so many of the time.
    const SHARE: u64 = 32;
    /// What it may have saved up of that.
    const MOST_SPARE: Duration = Duration::from_micros(500);

    pub fn new(now: Time) -> Rest {
        Rest {
            apart: Rest::BUSY * 2,
            answered: now,
            expected: Vec::with_capacity(Rest::FEW),
            soon: 1.0,
            spare: Duration::ZERO,
            seen: now,
            is_looking: false,
        }
    }

    /// A flow that might ask from `due` on asked at `at`.
    pub fn on_question(&mut self, due: Time, at: Time) {
        if let Some(found) = self.expected.iter().position(|e| *e == due) {
            self.expected.swap_remove(found);
            self.learn(at.since(due) <= Rest::SOON);
        }
    }

    fn learn(&mut self, is_soon: bool) {
        self.soon += (f64::from(u8::from(is_soon)) - self.soon) / 16.0;
    }

    /// An answer was given. From `expected` on, if ever, the flow asks with an acknowledgement.
    pub fn on_answer(&mut self, now: Time, expected: Option<Time>) {
        let since = now.since(self.answered).min(Rest::BUSY * 2);
        self.apart = (self.apart * 15 + since) / 16;
        self.answered = now;
        if let Some(due) = expected
            && self.expected.len() < Rest::FEW
        {
            self.expected.push(due);
        }
    }

    /// How to wait; `timer` is when a clock wants to decide.
    pub fn wait(&mut self, now: Time, timer: Time) -> Wait {
        let passed = now.since(self.seen);
        self.seen = now;
        self.spare = (self.spare + passed / Rest::SHARE).min(Rest::MOST_SPARE);
        if std::mem::take(&mut self.is_looking) {
            self.spare = self.spare.saturating_sub(passed);
        }
        while let Some(late) = (self.expected.iter()).position(|due| now > *due + Rest::SOON) {
            self.expected.swap_remove(late);
            self.learn(false);
        }
        // While nobody asks the mean stands still.
        if self.apart.max(now.since(self.answered)) < Rest::BUSY {
            return Wait::Nap(timer.since(now).clamp(Rest::NAP, Rest::BUSY));
        }
        let expected = match self.soon > 0.25 && self.spare > Duration::ZERO {
            true => self.expected.iter().copied().min(),
            false => None,
        };
        let early = expected.map_or(Time::NEVER, |due| due.saturating_sub(Rest::EARLY));
        if early <= now {
            self.is_looking = true;
            return Wait::Look;
        }
        Wait::Sleep(timer.min(early).since(now))
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

    /// A flow is answered every 4 ms; with its first acknowledgement `late` us after that it asks again. Returns how
    /// long the agent looked for questions, and of how many it had to be told.
    fn serve(rest: &mut Rest, late: u64, questions: u64) -> (u64, u64) {
        let (mut looked, mut woken) = (0, 0);
        for n in 0..questions {
            let (mut now, due) = (n * 4000, (n + 1) * 4000);
            rest.on_answer(us(now), Some(us(due)));
            while now < due + late {
                match rest.wait(us(now), Time::NEVER) {
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
            rest.on_question(us(due), us(due + late));
        }
        (looked, woken)
    }

    #[test]
    fn a_question_that_is_expected_wakes_nobody() {
        let mut rest = Rest::new(us(0));
        let (looked, woken) = serve(&mut rest, 30, 1000);
        assert_eq!(woken, 0);
        assert_eq!(looked, 1000 * (50 + 30));
    }

    #[test]
    fn who_looks_in_vain_sleeps() {
        let mut rest = Rest::new(us(0));
        let (looked, woken) = serve(&mut rest, 700, 1000);
        assert_eq!(woken, 1000);
        // Until fewer than a quarter of the last came soon.
        assert!(looked <= 22 * 150, "{looked} us");
        // It hears of what comes later too, and looks again once that would have been worth it.
        let (_, woken) = serve(&mut rest, 30, 1000);
        assert!(woken <= 5, "{woken}");
    }

    #[test]
    fn looking_takes_a_bounded_share() {
        let mut rest = Rest::new(us(0));
        let mut looked = 0;
        for now in 0..1_000_000 {
            // Whatever is answered, somebody is to ask at once, and asks 100 us later.
            if now % 600 == 0 {
                rest.on_answer(us(now), Some(us(now)));
            }
            if now % 600 == 100 {
                rest.on_question(us(now - 100), us(now));
            }
            looked += u64::from(rest.wait(us(now), Time::NEVER) == Wait::Look);
        }
        assert!(
            (25_000..=32_000).contains(&looked),
            "{looked} us of a second"
        );
    }

    #[test]
    fn many_questions_are_answered_from_nap_to_nap() {
        let mut rest = Rest::new(us(0));
        for now in 0..100 {
            rest.on_answer(us(now * 20), None);
        }
        let nap = |us| Wait::Nap(Duration::from_micros(us));
        // As long as until the next clock, within bounds.
        assert_eq!(rest.wait(us(2000), us(2001)), nap(100));
        assert_eq!(rest.wait(us(2000), us(2300)), nap(300));
        assert_eq!(rest.wait(us(2000), Time::NEVER), nap(500));
        // Nobody asked for long: whoever does now wakes it.
        assert_eq!(rest.wait(us(3000), us(9000)), sleep(6000));
        assert!(matches!(rest.wait(us(9000), Time::NEVER), Wait::Sleep(_)));
    }

    #[test]
    fn a_clock_is_slept_for_until_it_decides() {
        let mut rest = Rest::new(us(0));
        assert_eq!(rest.wait(us(0), us(10_000)), sleep(10_000));
        rest.on_answer(us(0), Some(us(4000)));
        assert_eq!(rest.wait(us(1000), us(10_000)), sleep(4000 - 50 - 1000));
        assert_eq!(rest.wait(us(3970), us(10_000)), Wait::Look);
        assert_eq!(rest.wait(us(4101), us(10_000)), sleep(10_000 - 4101));
    }
}
