//! Shares the agent's time among users.
//!
//! The agent works in turns: it reads what the programs have sent, and decides for
//! [`Shares::TURN`], for all users together. The rest waits for the next turn. The user whose flows
//! have had the least time is next. So a user who needs less than an equal part of the time waits
//! at most for the rest of a turn, however many users need more. A user without competitors loses
//! nothing, because turns follow each other while anything waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use headway_cc::Duration;
use headway_kernel::abi::Report;
use headway_policy::Record;

/// The time that each user has had, and what waits for the next turn.
#[derive(Debug, Default)]
pub struct Shares {
    /// The time that this turn has taken so far.
    taken: Duration,
    /// The time that each user has had, unless that is no more than [`Self::floor`].
    had: BTreeMap<u32, Duration>,
    /// The most time that any waiting user had received before that user's turn came.
    level: Duration,
    /// The queue of each waiting user, which is not empty.
    waiting: BTreeMap<u32, Waiting>,
    /// The number of entries in all queues.
    length: usize,
    /// The waiting users in the order of the time that they have had.
    order: BTreeSet<(Duration, u32)>,
    delayed: u64,
}

/// The queue of a user.
#[derive(Debug, Default)]
struct Waiting {
    /// The slots of flows, each with a report, or with `None` if its clock has run out. The oldest
    /// entry comes first.
    queue: VecDeque<(u16, Option<Report>)>,
    /// The number of entries that have left the queue.
    left: u64,
    /// The newest entry of each flow in the queue: how many entries came before it.
    newest: HashMap<u16, u64>,
}

impl Waiting {
    /// Returns whether the queue is longer now.
    fn push(&mut self, slot: u16, report: Option<&Report>, is_full: bool) -> bool {
        let is_full = is_full || self.queue.len() >= Shares::MOST_WAITING;
        let newest = self.newest.get(&slot).map(|at| (at - self.left) as usize);
        let before = newest.and_then(|at| self.queue.get_mut(at));
        match (before, report) {
            // The flow's clock is checked with its waiting entry.
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
    /// The time of a turn. The last decision is finished, so a turn may take one decision longer.
    pub const TURN: Duration = Duration::from_millis(1);
    /// A user who has had little for long comes before others for at most this much time.
    const CREDIT: Duration = Duration::from_millis(1);
    /// If more reports of a user wait, those of each flow are combined.
    const MOST_WAITING: usize = 4096;
    /// If more reports of all users wait, those of each flow are combined: 8 MB.
    const MOST_WAITING_OF_ALL: usize = 65_536;
    /// With more users than this, only the waiting users' times are kept, because each turn goes
    /// through all of them.
    const MOST_KNOWN: usize = 4096;

    /// The least time that counts for any user.
    fn floor(&self) -> Duration {
        self.level.saturating_sub(Shares::CREDIT)
    }

    fn had(&self, user: u32) -> Duration {
        let had = self.had.get(&user).copied().unwrap_or_default();
        had.max(self.floor())
    }

    /// Is a user's flow served at once? Waiting entries of the same user come first, and so do
    /// those of users who have had less time.
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

    /// Lets a user's flow wait, with a report, or with `None` if its clock has run out.
    pub fn delay(&mut self, user: u32, slot: u16, report: Option<&Report>) {
        self.delayed += 1;
        if !self.waiting.contains_key(&user) {
            self.order.insert((self.had(user), user));
        }
        let is_full = self.length >= Shares::MOST_WAITING_OF_ALL;
        let waiting = self.waiting.entry(user).or_default();
        self.length += usize::from(waiting.push(slot, report, is_full));
    }

    /// The next waiting flow, of the user who has had the least time, and its report; `None` if the
    /// turn is over or nothing waits.
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

    /// Ends the turn. Returns whether anything waits for the next.
    pub fn end_turn(&mut self) -> bool {
        let taken = std::mem::take(&mut self.taken);
        let waits = !self.waiting.is_empty();
        if taken.is_zero() {
            return waits;
        }
        if !waits {
            // The level rises by an equal part, so that users who need less still come first when
            // others wait again. What a user had while no one waited does not count for long.
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

/// Combines two reports of a flow, as a program combines acknowledgements between two reports. If
/// the slot has another flow by now, the newer report replaces the older one.
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
    fn after_a_turn_all_wait_and_the_user_with_less_time_is_next() {
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
        // Waiting entries of the same user come first, and those of a user who has had less time.
        assert!(!shares.is_next(A) && !shares.is_next(B));
        assert_eq!(shares.next(), Some((B, 4, None)));
        shares.charge(B, Duration::from_micros(10));
        assert!(!shares.is_next(A) && shares.is_next(B));
        assert_eq!(shares.next(), Some((A, 3, None)));
        assert!(shares.is_next(A) && !shares.end_turn());
    }

    /// A new user does not get all the time that the others have had before.
    #[test]
    fn a_new_user_comes_first_only_for_a_while() {
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
        // The others have had 2 ms each, so the new user counts as having had almost 1 ms.
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
        // The times of waiting users are kept.
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
    fn a_users_entries_are_served_in_their_order() {
        let mut shares = Shares::default();
        for (slot, now_ns) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            shares.delay(A, slot, Some(&report(1, now_ns, 0)));
        }
        // A clock that runs out is checked with the waiting report.
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

    /// The combined report keeps what the later one does not have: the request, the
    /// acknowledgements, and a sample of the RTT.
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
        // A flow without an entry gets one all the same.
        shares.delay(A, other, Some(&report(7, 40, Record::ASKS)));
        // The slot has another flow now, so the first flow's request is dropped.
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
