//! The packets that left and whose fate matters still.

use headway_cc::{Acked, Bytes, Ecn, Lost, Tag, Time};

/// What the sender keeps of a packet. 64 bytes: one cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) sent: Time,
    /// Delivery-rate estimation: bytes delivered, and when, as the packet left.
    pub(super) delivered: u64,
    pub(super) delivered_time: Time,
    /// Delivery-rate estimation: when the flight that this packet belongs to began.
    pub(super) first_sent: Time,
    pub(super) tag: Tag,
    pub(super) seq: u64,
    pub(super) lost_before: u64,
    pub(super) tx_in_flight: u32,
    pub(super) size: u16,
    pub(super) state: State,
    pub(super) app_limited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Outstanding,
    /// Later packets have arrived.
    Lost,
    /// The retransmission timer ran out.
    TimedOut,
    Done,
}

impl Entry {
    pub(super) fn acked(&self, number: u64, received: Option<Time>, ecn: Ecn, echo: f32) -> Acked {
        let size = Bytes::new(u64::from(self.size));
        Acked {
            number,
            size,
            sent: self.sent,
            received,
            tag: self.tag,
            ecn,
            echo,
        }
    }

    pub(super) fn lost(&self, number: u64) -> Lost {
        Lost {
            number,
            size: Bytes::new(u64::from(self.size)),
            sent: self.sent,
            tag: self.tag,
            tx_in_flight: Bytes::new(u64::from(self.tx_in_flight)),
            lost_before: Bytes::new(self.lost_before),
        }
    }
}

/// A ring of entries by packet number, from the oldest that is not done to the newest.
#[derive(Debug)]
pub(super) struct Flight {
    ring: Vec<Entry>,
    /// Numbers below this one are forgotten.
    base: u64,
    /// The number of the next packet.
    next: u64,
}

impl Flight {
    /// How long a lost packet is remembered, in numbers: an [`Ack`](crate::Ack) reaches no further back.
    const REACH: u64 = 65;

    pub(super) fn new() -> Flight {
        let empty = Entry {
            sent: Time::ZERO,
            delivered: 0,
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            tag: Tag::NONE,
            seq: 0,
            lost_before: 0,
            tx_in_flight: 0,
            size: 0,
            state: State::Done,
            app_limited: false,
        };
        Flight {
            ring: vec![empty; 32],
            base: 0,
            next: 0,
        }
    }

    #[inline]
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        if self.next - self.base == self.ring.len() as u64 {
            self.grow();
        }
        let slot = self.slot(self.next);
        self.ring[slot] = entry;
        self.next += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = self.ring.clone();
        ring.extend_from_slice(&self.ring);
        let old = std::mem::replace(&mut self.ring, ring);
        for number in self.base..self.next {
            let slot = self.slot(number);
            self.ring[slot] = old[number as usize & (old.len() - 1)];
        }
    }

    /// The entry of a packet that has been sent and is not forgotten.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Entry> {
        if number < self.base || number >= self.next {
            return None;
        }
        let slot = self.slot(number);
        Some(&mut self.ring[slot])
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Entry> {
        if number < self.base || number >= self.next {
            return None;
        }
        Some(&self.ring[self.slot(number)])
    }

    /// Forgets the oldest packets: those that are done, and lost ones of which no
    /// acknowledgement can tell any more.
    #[inline]
    pub(super) fn trim(&mut self, largest_acked: u64) {
        while self.base < self.next {
            let forgettable = match self.ring[self.slot(self.base)].state {
                State::Done => true,
                State::Lost | State::TimedOut => self.base + Self::REACH < largest_acked,
                State::Outstanding => false,
            };
            if !forgettable {
                return;
            }
            self.base += 1;
        }
    }
}
