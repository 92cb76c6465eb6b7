//! Rax where somebody else carries the flow: what its records say, taken apart into packets.

use std::collections::VecDeque;

use headway_cc::{CongestionControl, Probe, Setup, Tag, Time};

use super::rax::{Rax, RaxSpec};
use crate::Record;
use crate::nn::NetError;

/// Gradients, about one a round trip: fewer teach next to nothing.
const LEAST_UPDATES: u64 = 200;

/// A flow that learns from its records (Rax, §3.2). A record counts packets and does not name them:
/// they are taken to be answered in the order in which they were sent, so that a loss may be put
/// down to an action near the one that caused it.
#[derive(Debug)]
pub struct RaxOverRecords {
    rax: Rax,
    /// The action that let out each packet that is on its way, the oldest first.
    flying: VecDeque<Tag>,
    last: Record,
    /// How many packets will have arrived when the round trip ends that has brought ECN marks.
    marked_until: Option<u32>,
}

impl RaxOverRecords {
    /// More packets than any window of Rax has. Where more came between two records, records were
    /// lost, and what they told is not made up for: this is also the most work that a record makes.
    const MOST: usize = 1 << 12;
    /// In packets. A host's receiver acknowledges two at once, and a third only 40 ms later: from
    /// two on one more brings nothing, and a flow that begins below learns to stay there (BBR's
    /// least window is four for the same reason).
    const LEAST_WINDOW: f32 = 4.0;
    /// What a mark leaves of the window, as a loss of Cubic's does (RFC 9438, 4.6).
    const AFTER_MARKS: f32 = 0.7;
    /// The number of packets that act of those which a record reports as received, and of those
    /// which it reports as lost: receivers acknowledge two at once, and a host that puts more
    /// together leaves no time between them that an action could count in.
    const MOST_ACTS: usize = 4;

    /// A flow that knows nothing yet, or goes on from what another has learned
    /// ([`learned`](Self::learned)).
    ///
    /// # Errors
    /// [`NetError`], one line: a setting is out of range, or it is no whole checkpoint.
    pub fn new(
        setup: &Setup,
        spec: &RaxSpec,
        learned: Option<&str>,
    ) -> Result<RaxOverRecords, NetError> {
        Ok(RaxOverRecords::with(match learned {
            Some(learned) => Rax::resumed(setup, spec, learned)?,
            None => Rax::new(setup, spec.clone())?,
        }))
    }

    /// A flow that is carried elsewhere from now on.
    pub(crate) fn with(rax: Rax) -> RaxOverRecords {
        RaxOverRecords {
            rax,
            flying: VecDeque::new(),
            last: Record::default(),
            marked_until: None,
        }
    }

    /// Takes the flow's state at an acknowledgement or a timeout. Where somebody else has its
    /// window ([`Record::TRIPPED`]) it does not act, and learns only of what it did before.
    pub fn on_record(&mut self, record: &Record) {
        let since = |now: u32, before: u32| now.wrapping_sub(before) as usize;
        let (now, acts) = (record.now(), !record.has(Record::TRIPPED));
        // What has gone out since the last record its action let out.
        for _ in 0..since(record.sent, self.last.sent)
            .min(Self::MOST - self.flying.len().min(Self::MOST))
        {
            let tag = if acts { self.rax.sent(1.0) } else { Tag::NONE };
            self.flying.push_back(tag);
        }
        if !acts {
            self.rax.follow(record.cwnd as f32);
        }
        let before = self.rax.window();
        let mut lost = since(record.lost, self.last.lost);
        let mut delivered = since(record.delivered, self.last.delivered);
        if self.has_new_marks(record) {
            // It was delivered, and says what a loss says (RFC 3168, 6.1.2).
            delivered -= 1;
            lost += 1;
            if acts {
                // The kernel may have lowered its window already, and that may have been smaller.
                let left = self.rax.window() * Self::AFTER_MARKS;
                self.rax.follow(left.min(record.cwnd as f32));
            }
        }
        for n in 0..lost.min(self.flying.len()) {
            let tag = self.flying.pop_front().unwrap_or(Tag::NONE);
            self.rax.lost(now, tag, 1.0, acts && n < Self::MOST_ACTS);
        }
        let rtt_us = if record.rtt_us > 0 {
            record.rtt_us
        } else {
            record.srtt_us
        };
        let sent = Time::from_nanos(record.now_ns.saturating_sub(u64::from(rtt_us) * 1000));
        let arrived = delivered.min(self.flying.len());
        if arrived > 0 {
            let gap_ms = self.rax.gap_ms(now, sent) / arrived as f32;
            for n in 0..arrived {
                let tag = self.flying.pop_front().unwrap_or(Tag::NONE);
                let acts = acts && n < Self::MOST_ACTS;
                self.rax.acked(now, tag, 1.0, sent, gap_ms, acts);
            }
        }
        self.agree(record.in_flight as usize);
        if acts {
            self.validate(record.in_flight as usize + lost + delivered, before);
            self.rax.follow(self.rax.window().max(Self::LEAST_WINDOW));
        }
        self.last = *record;
    }

    /// Has the record the first ECN mark of a round trip? The receiver repeats it until the sender
    /// has slowed down, so the others say nothing new.
    fn has_new_marks(&mut self, record: &Record) -> bool {
        let is_over = |until: &u32| record.delivered.wrapping_sub(*until) < 1 << 31;
        self.marked_until = self.marked_until.filter(|until| !is_over(until));
        let is_new = self.marked_until.is_none()
            && record.delivered_ce != self.last.delivered_ce
            && record.delivered != self.last.delivered;
        if is_new {
            self.marked_until = Some(record.delivered.wrapping_add(record.in_flight));
        }
        is_new
    }

    /// What is on its way is the host's to say: it counts a SYN as delivered, and may send a packet
    /// twice without a loss.
    fn agree(&mut self, in_flight: usize) {
        while self.flying.len() > in_flight {
            let tag = self.flying.pop_front().unwrap_or(Tag::NONE);
            self.rax.lost_sight_of(tag);
        }
        while self.flying.len() < in_flight.min(Self::MOST) {
            self.flying.push_front(Tag::NONE);
        }
    }

    /// A window that is not filled, since there is no data or the receiver has no room, grows no
    /// further: there is nothing to learn from an action that changes nothing (RFC 7661).
    fn validate(&mut self, filled: usize, before: f32) {
        let filled = filled as f32;
        let most = (filled + (filled / 8.0).max(10.0)).max(before);
        if self.rax.window() > most {
            self.rax.follow(most);
        }
    }

    /// The window that it wants, in whole packets, 1 or more; `None` while it wants none, since it
    /// diverged.
    pub fn cwnd(&self, now: Time) -> Option<u32> {
        (!self.rax.stands_by(now)).then(|| self.rax.window().round() as u32)
    }

    /// What it has learned so far, for another flow to go on from; `None` while that is next to
    /// nothing, as after it diverged and began with random weights.
    pub fn learned(&self) -> Option<String> {
        (self.updates() >= LEAST_UPDATES).then(|| self.rax.learned())
    }

    /// How many gradients that took, those of the flows before it among them; those of its model
    /// after it diverged, or none.
    pub fn updates(&self) -> u64 {
        self.rax.updates()
    }

    /// Named values for recordings.
    pub fn probe(&self, probe: &mut dyn Probe) {
        self.rax.probe(probe);
    }
}
