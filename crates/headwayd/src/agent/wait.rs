//! How the agent waits. Waking the agent costs a flow tens of microseconds, much more than the rest
//! of an acknowledgement. Waking by a timer costs the agent a few microseconds. So the agent is
//! awake when it expects a request.

use headway_cc::{Duration, Time};

/// What the agent does until its next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Look again, at once.
    Look,
    /// Sleep for this time. A request that arrives meanwhile does not wake the agent.
    Nap(Duration),
    /// Sleep for this time, or until a request arrives.
    Sleep(Duration),
}

/// A request that is expected from a flow with an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Expected {
    slot: u16,
    /// The earliest time of the request.
    due: Time,
    /// The time at which it is expected.
    at: Time,
    /// `at` comes from records just before that time.
    is_sure: bool,
    /// The request has not come at the expected time.
    is_late: bool,
}

impl Expected {
    /// The time from which the agent naps: the request may come before it is expected, but not
    /// before it is due.
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

/// Predicts requests, and decides how the agent waits.
#[derive(Debug)]
pub struct WaitPolicy {
    /// The average time between two answers.
    apart: Duration,
    answered: Time,
    /// The expected requests of a few flows.
    expected: Vec<Expected>,
    /// The recent share of requests that came when they were expected. If it is small, the agent
    /// does not look for them.
    punctual: f64,
    /// The processor time that looking and napping may still use.
    spare: Duration,
    seen: Time,
    is_looking: bool,
    /// The agent never sleeps (`--busy-poll`).
    pub is_busy: bool,
}

impl WaitPolicy {
    /// If answers are closer than this on average, the agent naps, and each nap serves several.
    const BUSY: Duration = Duration::from_micros(500);
    /// The shortest of these naps.
    const NAP: Duration = Duration::from_micros(200);
    /// Waking up takes about this time.
    const WAKING: Duration = Duration::from_micros(50);
    /// The agent looks for a request from this long before its expected time.
    const EARLY: Duration = Duration::from_micros(30);
    /// The agent looks for a request until this long after its expected time.
    const LATE: Duration = Duration::from_micros(100);
    /// The agent naps for this time before and after it looks, because a request may come too early
    /// or too late. Napping costs an eighth of looking.
    const AROUND: Duration = Duration::from_micros(150);
    /// The longest of these naps. A request waits for half of it on average, which is no longer
    /// than a hook takes to wake the agent.
    const SHORT_NAP: Duration = Duration::from_micros(50);
    /// Falling asleep and waking up takes this much processor time.
    const NAP_COST: Duration = Duration::from_micros(6);
    /// The most requests that are expected. With more flows there are others to answer meanwhile.
    const FEW: usize = 16;
    /// Looks and naps take at most 1 / SHARE of a processor.
    const SHARE: u64 = 32;
    /// The agent does not look if less than this is left, because the naps for one request take as
    /// much.
    const FOR_NAPS: Duration = Duration::from_micros(30);
    /// The most processor time that can be saved up for looks and naps.
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

    /// Takes a request that was due from `due` on and came at `at`. Earlier records predicted it
    /// for `expected_at`.
    pub fn on_request(&mut self, slot: u16, due: Time, at: Time, expected_at: Time) {
        let is_it = |e: &Expected| (e.slot, e.due) == (slot, due);
        if let Some(found) = self.expected.iter().position(is_it) {
            if self.expected.swap_remove(found).is_late {
                return;
            }
            self.learn(
                expected_at <= at + WaitPolicy::WAKING && at <= expected_at + WaitPolicy::LATE,
            );
        }
    }

    fn learn(&mut self, is_punctual: bool) {
        self.punctual += (f64::from(u8::from(is_punctual)) - self.punctual) / 16.0;
    }

    /// Takes an answer. If there is a `due`, the flow's first acknowledgement from then on is a
    /// request.
    pub fn on_answer(&mut self, now: Time, slot: u16, due: Option<Time>) {
        let since = now.since(self.answered).min(WaitPolicy::BUSY * 2);
        self.apart = (self.apart * 15 + since) / 16;
        self.answered = now;
        if let Some(due) = due {
            self.expect(slot, due);
        }
    }

    /// Expects a request with the flow's first acknowledgement from `due` on.
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

    /// Returns how to wait. `timer` is the next time at which a clock decides. `acknowledged`
    /// predicts a flow's first acknowledgement after a time.
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
        // The average changes only with answers, so a longer pause counts by itself.
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

    /// The time until the timer, or until the first of these times of expected requests.
    fn until(&self, now: Time, timer: Time, of: impl Fn(&Expected) -> Time) -> Duration {
        let times = self.expected.iter().map(of).filter(|time| *time > now);
        times.fold(timer, Time::min).since(now)
    }

    /// Updates the expected times from newer records, and drops requests that have not come.
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

    /// A flow is answered each `every` us. It sends a request `late` us after that is due, and the
    /// request is expected `expected_after` us after it is due. Returns the processor time of looks
    /// and naps, and how many requests had to wake the agent.
    fn serve(
        rest: &mut WaitPolicy,
        every: u64,
        late: u64,
        expected_after: impl Fn(u64) -> u64,
        requests: u64,
    ) -> (u64, u64) {
        let (mut used, mut woken) = (0, 0);
        for n in 0..requests {
            let (mut now, due) = (n * every, (n + 1) * every);
            let expected_after = expected_after(n);
            rest.on_answer(us(now), FLOW, Some(us(due)));
            while now < due + late {
                match rest.wait(us(now), Time::NEVER, |_, _| us(due + expected_after)) {
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
            rest.on_request(FLOW, us(due), us(due + late), us(due + expected_after));
        }
        (used, woken)
    }

    #[test]
    fn an_expected_request_does_not_wake_the_agent() {
        for (late, expected_after) in [(30, 0), (700, 700), (700, 720), (700, 640)] {
            let mut rest = WaitPolicy::new(us(0));
            let (used, woken) = serve(&mut rest, 4000, late, |_| expected_after, 1000);
            assert_eq!(
                woken, 0,
                "{late} us after it was due, expected after {expected_after} us"
            );
            assert!(used <= 1000 * 125, "{used} us");
        }
    }

    /// Half of the requests come when the agent does not look.
    #[test]
    fn a_slightly_early_or_late_request_does_not_wake_the_agent() {
        for off in [870, 850, 500] {
            let mut rest = WaitPolicy::new(us(0));
            let expected_after = |n: u64| if n.is_multiple_of(2) { 700 } else { off };
            let (used, woken) = serve(&mut rest, 4000, 700, expected_after, 1000);
            assert_eq!(woken, 0, "expected after {off} us");
            assert!(used <= 1000 * 125, "{used} us");
        }
        // The agent does not nap long before the request is due.
        let mut rest = WaitPolicy::new(us(0));
        rest.on_answer(us(0), FLOW, Some(us(4000)));
        assert_eq!(rest.wait(us(0), Time::NEVER, |_, _| us(4100)), sleep(3950));
    }

    /// Looking for each request would take twice the permitted time.
    #[test]
    fn the_agent_naps_when_looking_would_take_too_long() {
        let mut rest = WaitPolicy::new(us(0));
        let (used, woken) = serve(&mut rest, 1000, 30, |_| 0, 1000);
        assert!(woken <= 10, "{woken}");
        assert!(used <= 1_000_000 / 32 + 500, "{used} us");
    }

    #[test]
    fn the_agent_sleeps_when_requests_do_not_come_as_expected() {
        let mut rest = WaitPolicy::new(us(0));
        let (used, woken) = serve(&mut rest, 4000, 700, |_| 200, 1000);
        assert_eq!(woken, 1000);
        // The agent looks until fewer than a quarter of the last requests were punctual.
        assert!(used <= 22 * 170, "{used} us");
        // It also notes when later requests come, and looks again once they are punctual.
        let (_, woken) = serve(&mut rest, 4000, 700, |_| 700, 1000);
        assert!(woken <= 6, "{woken}");
    }

    #[test]
    fn looking_takes_a_bounded_share_of_the_processor() {
        let mut rest = WaitPolicy::new(us(0));
        let (mut used, mut wakes) = (0, 0);
        for now in 0..1_000_000 {
            // After each answer a request is due at once, and comes 100 us later.
            if now % 600 == 0 {
                rest.on_answer(us(now), FLOW, Some(us(now)));
            }
            if now % 600 == 100 {
                rest.on_request(FLOW, us(now - 100), us(now), us(now - 100));
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
    fn the_agent_naps_between_many_requests() {
        let mut rest = WaitPolicy::new(us(0));
        for now in 0..100 {
            rest.on_answer(us(now * 20), FLOW, None);
        }
        let mut wait = |now, timer| rest.wait(us(now), timer, |_, due| due);
        let nap = |us| Wait::Nap(Duration::from_micros(us));
        // A nap lasts until the next clock, within bounds.
        assert_eq!(wait(2000, us(2001)), nap(200));
        assert_eq!(wait(2000, us(2300)), nap(300));
        assert_eq!(wait(2000, Time::NEVER), nap(500));
        // No request arrived for long: the next one wakes the agent.
        assert_eq!(wait(3000, us(9000)), sleep(6000));
        assert!(matches!(wait(9000, Time::NEVER), Wait::Sleep(_)));
    }

    #[test]
    fn the_agent_sleeps_until_a_clock_decides() {
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
