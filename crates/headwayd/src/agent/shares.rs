//! How much of the agent's time each user's flows get.
//!
//! The agent works in turns: it reads what the programs have sent, and decides. In each turn the
//! flows of one user get [`Shares::OF_TURN`]. What they ask beyond that waits for the next turn. So
//! however many decisions one user's flows ask for, those of others are answered after a turn or
//! two. A user whom nobody competes with loses nothing: turns follow each other while anything
//! waits.

use std::collections::{BTreeMap, HashMap, VecDeque};

use headway_cc::Duration;
use headway_kernel::abi::Report;
use headway_policy::Record;

/// Who has used how much of the turn, and what waits for the next.
#[derive(Debug, Default)]
pub struct Shares {
    /// What each user has used of this turn.
    used: HashMap<u32, Duration>,
    /// By user. Each has at least one entry.
    waiting: BTreeMap<u32, Waiting>,
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
    fn push(&mut self, slot: u16, report: Option<&Report>) {
        let is_full = self.queue.len() >= Shares::MOST_WAITING;
        let newest = self.newest.get(&slot).map(|at| (at - self.left) as usize);
        let before = newest.and_then(|at| self.queue.get_mut(at));
        match (before, report) {
            // Its clock is looked at with whatever is there already.
            (Some(_), None) => {}
            (Some((_, before)), Some(report)) if before.is_none() => *before = Some(*report),
            (Some((_, Some(before))), Some(report)) if is_full => {
                *before = combined(before, report);
            }
            _ => {
                self.newest
                    .insert(slot, self.left + self.queue.len() as u64);
                self.queue.push_back((slot, report.copied()));
            }
        }
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
    /// The time of a user in each turn. What is begun is finished, so a user may take one decision
    /// longer.
    pub const OF_TURN: Duration = Duration::from_millis(1);
    /// If more reports of a user wait, those of each flow are combined.
    const MOST_WAITING: usize = 4096;

    /// Has a user time left in this turn?
    fn has_time(&self, user: u32) -> bool {
        self.used
            .get(&user)
            .is_none_or(|used| *used < Shares::OF_TURN)
    }

    /// Is a user's flow served at once? Not before those of the same user that wait.
    pub fn is_next(&self, user: u32) -> bool {
        self.has_time(user) && !self.waiting.contains_key(&user)
    }

    /// Adds the time that the agent has worked for a user's flows in this turn.
    pub fn charge(&mut self, user: u32, time: Duration) {
        let used = self.used.entry(user).or_default();
        *used += time;
    }

    /// A user's flow has to wait: with a report, or as its clock has run out.
    pub fn delay(&mut self, user: u32, slot: u16, report: Option<&Report>) {
        self.delayed += 1;
        self.waiting.entry(user).or_default().push(slot, report);
    }

    /// A flow that has waited, of a user who has time left, and what it waited with.
    pub fn next(&mut self) -> Option<(u32, u16, Option<Report>)> {
        let may = |(user, _): &(&u32, &Waiting)| self.has_time(**user);
        let user = *self.waiting.iter().find(may)?.0;
        let waiting = self.waiting.get_mut(&user)?;
        let (slot, report) = waiting.pop()?;
        if waiting.queue.is_empty() {
            self.waiting.remove(&user);
        }
        Some((user, slot, report))
    }

    /// The turn is over. Does anything wait for the next?
    pub fn end_turn(&mut self) -> bool {
        self.used.clear();
        !self.waiting.is_empty()
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
    fn a_user_without_time_waits_for_the_next_turn_and_others_do_not() {
        let mut shares = Shares::default();
        assert!(shares.is_next(A));
        shares.charge(A, Shares::OF_TURN - Duration::from_nanos(1));
        assert!(shares.is_next(A));
        shares.charge(A, Duration::from_nanos(1));
        assert!(!shares.is_next(A) && shares.is_next(B));
        shares.delay(A, 3, None);
        assert!(shares.next().is_none());
        assert!(shares.end_turn());
        // It has time again, and a flow that waits comes first.
        assert!(!shares.is_next(A));
        assert_eq!(shares.next(), Some((A, 3, None)));
        assert!(shares.is_next(A) && !shares.end_turn());
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
}
