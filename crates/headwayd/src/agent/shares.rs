//! How much of the agent's time each user's flows get.
//!
//! The agent works in turns: it reads what the programs have sent, and decides for
//! [`Shares::TURN`], for all users together. What is left waits for the next turn. The user whose
//! flows have had the least time is next. So a user who asks for less than an equal part of the
//! time waits for the rest of a turn, however many users ask for more. A user whom nobody competes
//! with loses nothing: turns follow each other while anything waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use headway_cc::Duration;
use headway_kernel::abi::Report;
use headway_policy::Record;

/// Who has had how much time, and what waits for the next turn.
#[derive(Debug, Default)]
pub struct Shares {
    /// What this turn has taken.
    taken: Duration,
    /// The time that each user has had, unless that is no more than [`Self::floor`].
    had: BTreeMap<u32, Duration>,
    /// The most that anybody who waited had had when they were next.
    level: Duration,
    /// By user. Each has at least one entry.
    waiting: BTreeMap<u32, Waiting>,
    /// The number of entries in all queues.
    length: usize,
    /// The same users, by what they have had.
    order: BTreeSet<(Duration, u32)>,
    delayed: u64,
}

/// What a user's flows wait for.
#[derive(Debug, Default)]
struct Waiting {
    /// Reports, and flows whose clocks have run out, by their slots: the oldest first.
    queue: VecDeque<(u16, Option<Report>)>,
    /// How many have left the queue.
    left: u64,
    /// Of each flow in the queue, how many came before its newest entry.
    newest: HashMap<u16, u64>,
}

impl Waiting {
    /// Returns whether the queue is longer now.
    fn push(&mut self, slot: u16, report: Option<&Report>, is_full: bool) -> bool {
        let is_full = is_full || self.queue.len() >= Shares::MOST_WAITING;
        let newest = self.newest.get(&slot).map(|at| (at - self.left) as usize);
        let before = newest.and_then(|at| self.queue.get_mut(at));
        match (before, report) {
            // Its clock is looked at with whatever is there already.
            (Some(_), None) => return false,
            (Some((_, before)), Some(report)) if before.is_none() => *before = Some(*report),
            (Some((_, Some(before))), Some(report)) if is_full => {
                *before = combined(before, report);
            }
            _ => {
                self.newest
                    .insert(slot, self.left + self.queue.len() as u64);
                self.queue.push_back((slot, report.copied()));
                return true;
            }
        }
        false
    }

    fn pop(&mut self) -> Option<(u16, Option<Report>)> {
        let (slot, report) = self.queue.pop_front()?;
        if self.newest.get(&slot) == Some(&self.left) {
            self.newest.remove(&slot);
        }
        self.left += 1;
        Some((slot, report))
    }
}

impl Shares {
    /// The time of a turn. What is begun is finished, so a turn may take one decision longer.
    pub const TURN: Duration = Duration::from_millis(1);
    /// A user who has had little for long comes before others for so much time, and not for all
    /// that was left to them meanwhile.
    const CREDIT: Duration = Duration::from_millis(1);
    /// If more reports of a user wait, those of each flow are combined.
    const MOST_WAITING: usize = 4096;
    /// If more reports of all users wait, those of each flow are combined: 8 MB.
    const MOST_WAITING_OF_ALL: usize = 65_536;
    /// If more users have had something, only what those have had who wait is remembered: each turn
    /// looks at all.
    const MOST_KNOWN: usize = 4096;

    /// What a user has had, at least.
    fn floor(&self) -> Duration {
        self.level.saturating_sub(Shares::CREDIT)
    }

    fn had(&self, user: u32) -> Duration {
        let had = self.had.get(&user).copied().unwrap_or_default();
        had.max(self.floor())
    }

    /// Is a user's flow served at once? Not before what waits of users who have had less, nor
    /// before what waits of the same user.
    pub fn is_next(&self, user: u32) -> bool {
        if self.taken >= Shares::TURN || self.waiting.contains_key(&user) {
            return false;
        }
        let first = self.order.first();
        first.is_none_or(|(least, _)| self.had(user) < *least)
    }

    /// Adds the time that the agent has worked for a user's flows.
    pub fn charge(&mut self, user: u32, time: Duration) {
        let before = self.had(user);
        let had = before + time;
        if self.order.remove(&(before, user)) {
            self.order.insert((had, user));
        }
        self.had.insert(user, had);
        self.taken += time;
    }

    /// A user's flow has to wait: with a report, or as its clock has run out.
    pub fn delay(&mut self, user: u32, slot: u16, report: Option<&Report>) {
        self.delayed += 1;
        if !self.waiting.contains_key(&user) {
            self.order.insert((self.had(user), user));
        }
        let is_full = self.length >= Shares::MOST_WAITING_OF_ALL;
        let waiting = self.waiting.entry(user).or_default();
        self.length += usize::from(waiting.push(slot, report, is_full));
    }

    /// A flow that has waited, of the user who has had the least, and what it waited with; none if
    /// the turn is over.
    pub fn next(&mut self) -> Option<(u32, u16, Option<Report>)> {
        if self.taken >= Shares::TURN {
            return None;
        }
        let (had, user) = *self.order.first()?;
        let waiting = self.waiting.get_mut(&user)?;
        let (slot, report) = waiting.pop()?;
        self.length -= 1;
        if waiting.queue.is_empty() {
            self.waiting.remove(&user);
            self.order.remove(&(had, user));
        }
        self.level = self.level.max(had);
        Some((user, slot, report))
    }

    /// The turn is over. Does anything wait for the next?
    pub fn end_turn(&mut self) -> bool {
        let taken = std::mem::take(&mut self.taken);
        let waits = !self.waiting.is_empty();
        if taken.is_zero() {
            return waits;
        }
        if !waits {
            // An equal part, so that who asks for less is still known when others wait again. What
            // a user had while nobody waited is not held against him for long.
            self.level += taken / self.had.len() as u64;
            let most = self.level + Shares::CREDIT;
            (self.had.values_mut()).for_each(|had| *had = (*had).min(most));
        }
        let (floor, are_many) = (self.floor(), self.had.len() > Shares::MOST_KNOWN);
        let waiting = &self.waiting;
        let is_kept =
            |user: &u32, had: Duration| had > floor && (!are_many || waiting.contains_key(user));
        self.had.retain(|user, had| is_kept(user, *had));
        waits
    }

    /// How often a flow had to wait.
    pub fn delayed(&self) -> u64 {
        self.delayed
    }
}

/// Two reports of a flow in one, as a program combines acknowledgements between two reports. If the
/// flow in that slot is another one by now, it is the newer report.
fn combined(before: &Report, report: &Report) -> Report {
    if before.header.flow != report.header.flow {
        return *report;
    }
    let (old, new) = (&before.record, &report.record);
    let record = Record {
        acks: old.acks.saturating_add(new.acks),
        rtt_us: if new.rtt_us > 0 {
            new.rtt_us
        } else {
            old.rtt_us
        },
        flags: new.flags | old.flags & Record::ASKS,
        ..*new
    };
    Report { record, ..*report }
}

#[cfg(test)]
mod tests {
    use headway_kernel::abi::{Header, REPORT};

    use super::*;

    const A: u32 = 1000;
    const B: u32 = 1001;
    const C: u32 = 1002;

    fn report(flow: u32, now_ns: u64, flags: u32) -> Report {
        let record = Record {
            now_ns,
            acks: 1,
            rtt_us: 7,
            flags,
            ..Record::default()
        };
        Report {
            header: Header::of::<Report>(REPORT, flow, 3),
            record,
        }
    }

    #[test]
    fn when_a_turn_is_over_all_wait_and_who_has_had_less_is_next() {
        let mut shares = Shares::default();
        assert!(shares.is_next(A));
        shares.charge(A, Shares::TURN - Duration::from_nanos(1));
        assert!(shares.is_next(A) && shares.is_next(B));
        shares.charge(A, Duration::from_nanos(1));
        assert!(!shares.is_next(A) && !shares.is_next(B));
        shares.delay(A, 3, None);
        shares.delay(B, 4, None);
        assert!(shares.next().is_none());
        assert!(shares.end_turn());
        // What waits of the same user comes first, and what waits of one who has had less.
        assert!(!shares.is_next(A) && !shares.is_next(B));
        assert_eq!(shares.next(), Some((B, 4, None)));
        shares.charge(B, Duration::from_micros(10));
        assert!(!shares.is_next(A) && shares.is_next(B));
        assert_eq!(shares.next(), Some((A, 3, None)));
        assert!(shares.is_next(A) && !shares.end_turn());
    }

    /// A user who comes when others have had much has not all that time for himself.
    #[test]
    fn a_user_who_comes_later_is_first_for_a_while_only() {
        let (mut shares, step) = (Shares::default(), Duration::from_micros(250));
        let serve = |shares: &mut Shares, slots: &[(u32, u16)]| {
            for (user, slot) in slots {
                (0..100).for_each(|_| shares.delay(*user, *slot, Some(&report(1, 1, 0))));
            }
            let mut served = Vec::new();
            for _ in 0..4 {
                while let Some((user, ..)) = shares.next() {
                    shares.charge(user, step);
                    served.push(user);
                }
                assert!(shares.end_turn());
            }
            served
        };
        let served = serve(&mut shares, &[(A, 1), (B, 2)]);
        assert_eq!(served, [A, B].repeat(8));
        // They have had 2 ms each, so this one counts as having had almost 1 ms.
        let served = serve(&mut shares, &[(C, 3)]);
        assert_eq!(served[..4], [C; 4]);
        let count = |user| served.iter().filter(|other| **other == user).count();
        assert_eq!((count(A), count(B), count(C)), (4, 4, 8));
    }

    #[test]
    fn users_who_come_and_go_are_forgotten() {
        let mut shares = Shares::default();
        for user in 0..2 * Shares::MOST_KNOWN as u32 {
            shares.charge(user, Duration::from_micros(1));
            shares.end_turn();
            assert!(shares.had.len() <= Shares::MOST_KNOWN + 1);
        }
        // But not what those have had who wait.
        shares.charge(A, Shares::TURN);
        shares.delay(A, 3, None);
        (0..Shares::MOST_KNOWN as u32)
            .for_each(|user| shares.charge(user, Duration::from_micros(1)));
        assert!(shares.end_turn());
        assert_eq!(shares.had.keys().collect::<Vec<_>>(), [&A]);
        assert_eq!(shares.next(), Some((A, 3, None)));
        assert!(shares.order.is_empty());
    }

    #[test]
    fn what_waits_is_served_in_its_order() {
        let mut shares = Shares::default();
        for (slot, now_ns) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            shares.delay(A, slot, Some(&report(1, now_ns, 0)));
        }
        // A clock that runs out is looked at with the report that waits.
        shares.delay(A, 5, None);
        let served = std::iter::from_fn(|| shares.next());
        let served: Vec<_> = served
            .map(|(_, slot, report)| (slot, report.map(|r| r.record.now_ns)))
            .collect();
        let expected = [(5, 1), (3, 2), (5, 3), (4, 4)].map(|(slot, now)| (slot, Some(now)));
        assert_eq!(served, expected);
        assert_eq!(shares.delayed(), 5);
        assert!(!shares.end_turn());
        shares.delay(A, 5, None);
        shares.delay(A, 5, Some(&report(1, 9, 0)));
        assert_eq!(shares.next(), Some((A, 5, Some(report(1, 9, 0)))));
        assert_eq!(shares.next(), None);
    }

    /// Nothing is lost that a later report does not say: the question, the acknowledgements, a
    /// sample of the RTT.
    #[test]
    fn reports_are_combined_where_too_many_wait() {
        let mut shares = Shares::default();
        for slot in 0..Shares::MOST_WAITING as u16 - 1 {
            shares.delay(A, slot, Some(&report(1, 1, 0)));
        }
        let (slot, other) = (5000, 5001);
        let mut last = report(1, 30, Record::STEERABLE);
        last.record.rtt_us = 0;
        shares.delay(A, slot, Some(&report(1, 10, Record::ASKS)));
        shares.delay(A, slot, Some(&report(1, 20, 0)));
        shares.delay(A, slot, Some(&last));
        // A flow that has nothing there has room all the same.
        shares.delay(A, other, Some(&report(7, 40, Record::ASKS)));
        // Its slot has another flow: what the first asked is not that one's question.
        shares.delay(A, other, Some(&report(8, 50, 0)));
        let served = std::iter::from_fn(|| shares.next()).skip(Shares::MOST_WAITING - 1);
        let served: Vec<_> = served.collect();
        let mut expected = report(1, 30, Record::STEERABLE | Record::ASKS);
        expected.record.acks = 3;
        let other = (A, other, Some(report(8, 50, 0)));
        assert_eq!(served, [(A, slot, Some(expected)), other]);
    }

    /// A person may be as many users as /etc/subuid says.
    #[test]
    fn reports_of_many_users_are_combined_once_too_many_wait() {
        let mut shares = Shares::default();
        for user in 0..20 {
            for _ in 0..Shares::MOST_WAITING {
                shares.delay(user, user as u16, Some(&report(1, 1, 0)));
            }
        }
        // The last four users have one entry each.
        assert_eq!(shares.length, Shares::MOST_WAITING_OF_ALL + 4);
        let served: Vec<_> = std::iter::from_fn(|| shares.next()).collect();
        assert_eq!(served.len(), Shares::MOST_WAITING_OF_ALL + 4);
        let acks = served
            .iter()
            .filter_map(|(.., report)| Some(report.as_ref()?.record.acks));
        assert_eq!(acks.sum::<u32>(), 20 * Shares::MOST_WAITING as u32);
        assert_eq!(shares.length, 0);
    }
}
