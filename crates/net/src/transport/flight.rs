//! The sent packets whose fate still matters.

use headway_cc::{Acked, Bytes, Ecn, Lost, Tag, Time};

use crate::Ack;
use crate::ring::Ring;

/// The sender's state of a packet.
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
    /// Later packets have arrived, so it is taken for lost.
    Lost,
    /// The retransmission timer ran out.
    TimedOut,
    Done,
}

impl Entry {
    /// The event for the controller; `ack` is the acknowledgement that this packet caused, if there
    /// is one.
    pub(super) fn acked(&self, number: u64, ack: Option<&Ack>) -> Acked {
        Acked {
            number,
            size: Bytes::new(u64::from(self.size)),
            sent: self.sent,
            received: ack.map(|a| a.received),
            tag: self.tag,
            ecn: ack.map_or(Ecn::NotEct, |a| a.ecn),
            echo: ack.map_or(0.0, |a| a.echo),
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

/// Entries by packet number, from the oldest that is not done to the newest.
#[derive(Debug, Default)]
pub(super) struct Flight(Ring<Entry>);

impl Flight {
    /// How many numbers back a lost packet is remembered: an [`Ack`](crate::Ack) reaches no
    /// further.
    const REACH: u64 = 65;

    /// The number of the next packet.
    #[inline]
    pub(super) const fn next(&self) -> u64 {
        self.0.tail()
    }

    /// Numbers below this one are forgotten.
    #[inline]
    pub(super) const fn base(&self) -> u64 {
        self.0.head()
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    /// The entry of a packet that has been sent and is not forgotten.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Entry> {
        self.0.get_mut(number)
    }

    /// The entry of a packet that has been sent and is not forgotten.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Entry> {
        self.0.get(number)
    }

    /// Forgets the oldest packets: those that are done, and lost ones that no acknowledgement can
    /// cover any more.
    #[inline]
    pub(super) fn trim(&mut self, largest_acked: u64) {
        while let Some(entry) = self.0.front() {
            let forgettable = match entry.state {
                State::Done => true,
                State::Lost | State::TimedOut => self.base() + Self::REACH < largest_acked,
                State::Outstanding => false,
            };
            if !forgettable {
                return;
            }
            self.0.skip();
        }
    }
}
