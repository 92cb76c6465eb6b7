//! Rax for flows of another transport: it splits records up into packets.

use std::collections::VecDeque;

use headway_cc::{CongestionControl, Probe, Setup, Tag, Time};

use super::rax::{Rax, RaxSpec};
use crate::Record;
use crate::nn::NetError;

/// The smallest number of gradients, about one a round trip, after which weights are passed on.
/// Fewer teach next to nothing.
const MIN_UPDATES: u64 = 200;

/// A flow that learns from its records (Rax, §3.2). A record counts packets and does not name them.
/// They are assumed to be answered in the order in which they were sent, so that a loss counts for
/// an action near the one that caused it.
#[derive(Debug)]
pub struct RaxOverRecords {
    rax: Rax,
    /// The action of each packet in flight, the oldest first.
    flying: VecDeque<Tag>,
    last: Record,
    /// The count of received packets at which the round trip with the last ECN marks ends.
    marked_until: Option<u32>,
}

impl RaxOverRecords {
    /// The most packets between two records, which is more than any window of Rax has. If more
    /// came, records were lost, and the excess is ignored. So this also bounds the work for a
    /// record.
    const MAX_PACKETS: usize = 1 << 12;
    /// The smallest window, in packets. A receiver acknowledges two packets at once, and a third
    /// only 40 ms later. From two packets on one more therefore brings nothing, and a flow that
    /// begins lower learns to stay there. BBR's minimum window is four for the same reason.
    const MIN_WINDOW: f32 = 4.0;
    /// The share of the window that a mark leaves, as Cubic's after a loss (RFC 9438, 4.6).
    const AFTER_MARKS: f32 = 0.7;
    /// How many received and how many lost packets of one record cause actions. Receivers
    /// acknowledge two at once; if a host puts more together, no time passes between them in which
    /// an action could take effect.
    const MAX_ACTS: usize = 4;

    /// A flow with random weights, or with those of another flow ([`learned`](Self::learned)).
    ///
    /// # Errors
    /// [`NetError`], one line: a setting is out of range, or the checkpoint is malformed.
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

    /// A flow that another transport carries from now on.
    pub(crate) fn with(rax: Rax) -> RaxOverRecords {
        RaxOverRecords {
            rax,
            flying: VecDeque::new(),
            last: Record::default(),
            marked_until: None,
        }
    }

    /// Takes the flow's state at an acknowledgement or a timeout. In fallback ([`Record::TRIPPED`])
    /// it does not act, and learns only from its earlier actions.
    pub fn on_record(&mut self, record: &Record) {
        let since = |now: u32, before: u32| now.wrapping_sub(before) as usize;
        let (now, acts) = (record.now(), !record.has(Record::TRIPPED));
        // The last record's action let out the packets since then.
        for _ in 0..since(record.sent, self.last.sent)
            .min(Self::MAX_PACKETS - self.flying.len().min(Self::MAX_PACKETS))
        {
            let tag = if acts { self.rax.sent(1.0) } else { Tag::NONE };
            self.flying.push_back(tag);
        }
        if !acts {
            self.rax.set_window(record.cwnd as f32);
        }
        let before = self.rax.window();
        let mut lost = since(record.lost, self.last.lost);
        let mut delivered = since(record.delivered, self.last.delivered);
        if self.has_new_marks(record) {
            // A marked packet was delivered, and counts as a loss (RFC 3168, 6.1.2).
            delivered -= 1;
            lost += 1;
            if acts {
                // The kernel may have lowered its own window already, to less than this.
                let left = self.rax.window() * Self::AFTER_MARKS;
                self.rax.set_window(left.min(record.cwnd as f32));
            }
        }
        for n in 0..lost.min(self.flying.len()) {
            let tag = self.flying.pop_front().unwrap_or(Tag::NONE);
            self.rax.lost(now, tag, 1.0, acts && n < Self::MAX_ACTS);
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
                let acts = acts && n < Self::MAX_ACTS;
                self.rax.acked(now, tag, 1.0, sent, gap_ms, acts);
            }
        }
        self.match_in_flight(record.in_flight as usize);
        if acts {
            self.bound_unfilled_window(record.in_flight as usize + lost + delivered, before);
            self.rax.set_window(self.rax.window().max(Self::MIN_WINDOW));
        }
        self.last = *record;
    }

    /// Does the record contain the first ECN mark of a round trip? The receiver repeats marks until
    /// the sender has slowed down, so the later ones are not new.
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

    /// Takes the number of packets in flight from the host. It counts a SYN as delivered, and may
    /// send a packet twice without a loss.
    fn match_in_flight(&mut self, in_flight: usize) {
        while self.flying.len() > in_flight {
            let tag = self.flying.pop_front().unwrap_or(Tag::NONE);
            self.rax.forget_packet(tag);
        }
        while self.flying.len() < in_flight.min(Self::MAX_PACKETS) {
            self.flying.push_front(Tag::NONE);
        }
    }

    /// Bounds a window that is not filled, because there is no data or the receiver has no room. An
    /// action that changes nothing teaches nothing (RFC 7661).
    fn bound_unfilled_window(&mut self, filled: usize, before: f32) {
        let filled = filled as f32;
        let most = (filled + (filled / 8.0).max(10.0)).max(before);
        if self.rax.window() > most {
            self.rax.set_window(most);
        }
    }

    /// The window in whole packets, at least 1; `None` after it diverged, while it wants none.
    pub fn cwnd(&self, now: Time) -> Option<u32> {
        (!self.rax.is_falling_back(now)).then(|| self.rax.window().round() as u32)
    }

    /// The weights so far, for another flow; `None` while they are worth next to nothing, such as
    /// after it diverged and restarted with random weights.
    pub fn learned(&self) -> Option<String> {
        (self.updates() >= MIN_UPDATES).then(|| self.rax.learned())
    }

    /// The number of gradients behind its weights, including those of earlier flows. After it
    /// diverged it is its model's number, or 0.
    pub fn updates(&self) -> u64 {
        self.rax.updates()
    }

    /// Named values for recordings.
    pub fn probe(&self, probe: &mut dyn Probe) {
        self.rax.probe(probe);
    }
}
