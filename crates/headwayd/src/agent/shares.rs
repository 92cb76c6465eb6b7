//! How much of the agent's time each user's flows get.
//!
//! The agent works in turns: it reads what the programs have sent, and decides. In each turn the flows of
//! one user get [`Shares::OF_TURN`]. What they ask beyond that waits for the next turn. So however many
//! decisions one user's flows ask for, those of others are answered after a turn or two. A user whom nobody
//! competes with loses nothing: turns follow each other while anything waits.

use std::collections::{BTreeMap, HashMap, VecDeque};

use headway_cc::Duration;
use headway_kernel::abi::Report;
use headway_policy::Record;

use super::timers::Place;

/// Who has used how much of the turn, and what waits for the next.
#[derive(Debug, Default)]
pub struct Shares {
    /// What each user has used of this turn.
    used: HashMap<u32, Duration>,
    /// By user. Each has at least one flow.
    waiting: BTreeMap<u32, Waiting>,
    delayed: u64,
}

/// What a user's flows wait for.
#[derive(Debug, Default)]
struct Waiting {
    /// The flow that has waited longest first.
    order: VecDeque<Place>,
    /// Of each of them, its newest report. None where only its clock has run out.
    flows: HashMap<Place, Option<Report>>,
}

impl Shares {
    /// The time of a user in each turn. What is begun is finished, so a user may take one decision longer.
    pub const OF_TURN: Duration = Duration::from_millis(1);

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

    /// The agent has worked so long for a user's flows.
    pub fn charge(&mut self, user: u32, time: Duration) {
        let used = self.used.entry(user).or_default();
        *used = *used + time;
    }

    /// A user's flow has to wait: with a report, or as its clock has run out.
    pub fn delay(&mut self, user: u32, place: Place, report: Option<&Report>) {
        self.delayed += 1;
        let waiting = self.waiting.entry(user).or_default();
        match waiting.flows.get_mut(&place) {
            None => {
                waiting.order.push_back(place);
                waiting.flows.insert(place, report.copied());
            }
            Some(before) => {
                if let Some(report) = report {
                    *before = Some(before.as_ref().map_or(*report, |b| combined(b, report)));
                }
            }
        }
    }

    /// A flow that has waited, of a user who has time left, and what it waited with.
    pub fn next(&mut self) -> Option<(u32, Place, Option<Report>)> {
        let may = |(user, _): &(&u32, &Waiting)| self.has_time(**user);
        let user = *self.waiting.iter().find(may)?.0;
        let waiting = self.waiting.get_mut(&user)?;
        let place = waiting.order.pop_front()?;
        let report = waiting.flows.remove(&place)?;
        if waiting.order.is_empty() {
            self.waiting.remove(&user);
        }
        Some((user, place, report))
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

/// Two reports of a flow in one, as a program combines acknowledgements between two reports. If the flow in
/// that slot is another one by now, it is the newer report.
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
        shares.delay(A, (0, 3), None);
        assert!(shares.next().is_none());
        assert!(shares.end_turn());
        // It has time again, and a flow that waits comes first.
        assert!(!shares.is_next(A));
        assert_eq!(shares.next(), Some((A, (0, 3), None)));
        assert!(shares.is_next(A) && !shares.end_turn());
    }

    #[test]
    fn flows_of_a_user_are_served_in_their_order() {
        let mut shares = Shares::default();
        for slot in [5, 3, 4, 3, 5] {
            shares.delay(A, (0, slot), None);
        }
        let places = std::iter::from_fn(|| shares.next());
        let slots: Vec<u16> = places.map(|(_, (_, slot), _)| slot).collect();
        assert_eq!(slots, [5, 3, 4]);
        assert_eq!(shares.delayed(), 5);
    }

    /// Nothing is lost that a later report does not say: the question, the acknowledgements, a sample of the RTT.
    #[test]
    fn reports_of_a_flow_that_waits_are_combined() {
        let mut shares = Shares::default();
        let mut last = report(1, 30, Record::STEERABLE);
        last.record.rtt_us = 0;
        shares.delay(A, (0, 3), None);
        shares.delay(A, (0, 3), Some(&report(1, 10, Record::ASKS)));
        shares.delay(A, (0, 3), None);
        shares.delay(A, (0, 3), Some(&report(1, 20, 0)));
        shares.delay(A, (0, 3), Some(&last));
        let (_, _, found) = shares.next().expect("it waits");
        let found = found.expect("a report").record;
        assert_eq!((found.now_ns, found.acks, found.rtt_us), (30, 3, 7));
        assert_eq!(found.flags, Record::STEERABLE | Record::ASKS);
        // Its slot has another flow: what the first asked is nobody's question.
        shares.delay(A, (0, 3), Some(&report(1, 40, Record::ASKS)));
        let other = report(2, 50, 0);
        shares.delay(A, (0, 3), Some(&other));
        assert_eq!(shares.next(), Some((A, (0, 3), Some(other))));
    }
}
