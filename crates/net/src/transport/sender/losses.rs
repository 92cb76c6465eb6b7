//! The fate of packets: acknowledged, lost, or late.

use headway_cc::{Bytes, Congestion, Duration, Recovery, Rto, Time};

use super::{Repeat, Sender};
use crate::Ack;
use crate::transport::Profile;
use crate::transport::flight::{Entry, State};

impl Sender {
    /// Marks one packet as delivered. Returns when it left; `None` if it was delivered already.
    #[inline(always)]
    pub(super) fn acknowledge(&mut self, number: u64, ack: Option<&Ack>) -> Option<Time> {
        let entry = self
            .flight
            .get_mut(number)
            .filter(|e| e.state != State::Done)?;
        let before = std::mem::replace(&mut entry.state, State::Done);
        let (sent, size) = (entry.sent, u64::from(entry.size));
        self.acked_bytes += size;
        self.newest_acked = number;
        if self.wants_rate {
            self.delivery.fold(entry);
        }
        if self.wants_packets {
            self.acked.push(entry.acked(number, ack));
        }
        if before == State::Outstanding {
            self.in_flight -= size;
        } else {
            self.on_late_arrival(number, size, before);
        }
        Some(sent)
    }

    /// A packet that was taken for lost has arrived.
    #[cold]
    fn on_late_arrival(&mut self, number: u64, size: u64, before: State) {
        self.counters.lost -= Bytes::new(size);
        self.reordering_seen = true;
        self.retransmit.retain(|r| r.number != number);
        self.undo |= before == State::Lost && self.recovery.on_late_arrival(number);
    }

    /// Many acknowledgements were lost: the stream's beginning shows which packets arrived
    /// meanwhile.
    #[cold]
    pub(super) fn acknowledge_below(&mut self, cumulative: u64) {
        let newest = self.newest_acked;
        for number in self.flight.base()..self.flight.next() {
            if self
                .flight
                .get(number)
                .is_some_and(|e| e.seq < cumulative && e.state == State::Outstanding)
            {
                self.acknowledge(number, None);
            }
        }
        self.newest_acked = self.newest_acked.max(newest);
        self.acked.sort_unstable_by_key(|a| a.number);
    }

    /// Declares packets lost. Returns the congestion event that begins with them, if there is one.
    #[inline(always)]
    pub(super) fn detect_losses(&mut self, now: Time) -> Option<Congestion> {
        match self.config.profile {
            Profile::Simple => {
                while self.loss_cursor + Self::REORDER_THRESHOLD <= self.acks.largest {
                    self.declare_lost(self.loss_cursor, State::Lost);
                    self.loss_cursor += 1;
                }
            }
            Profile::Linux => self.detect_losses_by_time(now),
        }
        if self.losses.packets == 0 {
            return None;
        }
        let (number, seq) = (self.flight.next(), self.next_seq);
        self.recovery
            .on_lost(self.losses, self.config.profile, number, seq)
    }

    /// RACK (RFC 8985 §6.2): a packet is lost if it was sent a reordering window before the newest
    /// packet that arrived.
    fn detect_losses_by_time(&mut self, now: Time) {
        let rtt = self.rtt.stats();
        let many = self.loss_cursor + Self::REORDER_THRESHOLD <= self.acks.largest;
        let recovering = matches!(self.recovery.phase, Recovery::Recovery | Recovery::Loss);
        let reorder_window = match self.reordering_seen {
            false if many || recovering => Duration::ZERO,
            _ => (rtt.min / 4).min(rtt.smoothed),
        };
        self.reorder_deadline = Time::NEVER;
        while self.loss_cursor < self.acks.largest {
            let entry = self
                .flight
                .get(self.loss_cursor)
                .filter(|e| e.state == State::Outstanding);
            if let Some(entry) = entry {
                let due = entry.sent + rtt.latest + reorder_window;
                if due > now {
                    self.reorder_deadline = due;
                    return;
                }
                self.declare_lost(self.loss_cursor, State::Lost);
            }
            self.loss_cursor += 1;
        }
    }

    #[inline(always)]
    fn declare_lost(&mut self, number: u64, state: State) {
        if let Some(entry) = self.flight.get_mut(number)
            && entry.state == State::Outstanding
        {
            entry.state = state;
            let entry = *entry;
            self.note_loss(number, entry);
        }
    }

    fn note_loss(&mut self, number: u64, entry: Entry) {
        self.in_flight -= u64::from(entry.size);
        self.counters.lost += Bytes::new(u64::from(entry.size));
        self.retransmit.push_back(Repeat {
            number,
            seq: entry.seq,
            size: entry.size,
        });
        self.lost_bytes += u64::from(entry.size);
        if self.losses.packets == 0 {
            self.losses.first_number = number;
        }
        self.losses.packets += 1;
        self.losses.last_number = number;
        self.losses.last_seq = self.losses.last_seq.max(entry.seq);
        if self.wants_packets {
            self.lost.push(entry.lost(number));
        }
    }

    /// RFC 6298 §5: everything in flight is taken for lost and the timer backs off.
    pub(super) fn time_out(&mut self, now: Time) {
        let prior_in_flight = Bytes::new(self.in_flight);
        self.clear_news();
        for number in self.flight.base()..self.flight.next() {
            self.declare_lost(number, State::TimedOut);
        }
        self.loss_cursor = self.flight.next();
        self.retransmit
            .make_contiguous()
            .sort_unstable_by_key(|r| r.seq);
        self.timeouts += 1;
        self.recovery.on_timeout(self.flight.next(), self.next_seq);
        self.prr = None;
        let next_number = self.flight.next();
        let rto = Rto {
            now,
            lost: &self.lost,
            prior_in_flight,
            consecutive: self.timeouts,
            next_number,
        };
        self.cc.on_rto(&rto);
        self.refresh();
        // Nothing is in flight now: the next packet starts the timer, with backoff (§5.5, §5.6).
        self.rto_deadline = Time::NEVER;
        self.probe_deadline = Time::NEVER;
        self.reorder_deadline = Time::NEVER;
    }

    /// The timeout was spurious: packets that it took for lost are still in flight.
    #[cold]
    pub(super) fn forgive_timeout(&mut self) {
        for number in self.flight.base()..self.flight.next() {
            if let Some(entry) = self.flight.get_mut(number)
                && entry.state == State::TimedOut
            {
                entry.state = State::Outstanding;
                self.in_flight += u64::from(entry.size);
                self.counters.lost -= Bytes::new(u64::from(entry.size));
            }
        }
        let flight = &self.flight;
        self.retransmit
            .retain(|r| flight.get(r.number).is_none_or(|e| e.state == State::Lost));
        self.loss_cursor = self.flight.base();
    }
}
