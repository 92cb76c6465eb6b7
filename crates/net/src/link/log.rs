//! The events of a link, packet by packet, for logs and captures.

use headway_cc::{Bytes, Duration, Rate, Time};

use crate::Packet;
use crate::server::{Server, TraceCursor};

/// Something that happened on an observed link.
#[derive(Clone, Copy, Debug)]
pub struct LinkEvent {
    /// The time of the event.
    pub at: Time,
    /// The event itself.
    pub what: LinkEventKind,
}

/// What can happen on a link.
#[derive(Clone, Copy, Debug)]
pub enum LinkEventKind {
    /// A packet has reached the queue.
    Arrival(Packet),
    /// A packet was lost before the queue, at random.
    Loss(Packet),
    /// The queue has dropped a packet: an arrival, or one that had waited.
    Drop(Packet),
    /// The last bit of a packet has left. Its ECN field is as it left the queue.
    Departure {
        /// The packet.
        packet: Packet,
        /// How long it was in the queue and in transmission.
        wait: Duration,
    },
    /// [`TraceCursor::OPPORTUNITY`] bytes could be sent, whether or not any were. With a trace,
    /// this happens at its opportunities; with a rate, whenever 1500 bytes could have been sent.
    Opportunity,
}

/// The events of a link since they were last taken.
#[derive(Debug)]
pub(super) struct Log {
    events: Vec<LinkEvent>,
    pace: Pace,
}

/// When the link is able to send.
#[derive(Debug)]
enum Pace {
    /// Always.
    Unlimited,
    Trace(TraceCursor),
    Fixed {
        each: Duration,
        next: Time,
    },
}

impl Pace {
    fn fixed(since: Time, rate: Rate) -> Pace {
        let each = rate.time_to_send(Bytes::new(1500));
        Pace::Fixed {
            each,
            next: since + each,
        }
    }
}

impl Log {
    /// A log of a link on which nothing has happened yet.
    pub(super) fn new(server: Option<&Server>) -> Log {
        let pace = match server {
            None => Pace::Unlimited,
            Some(Server::Trace(cursor)) => Pace::Trace(cursor.clone()),
            Some(Server::Fixed(fixed)) => Pace::fixed(Time::ZERO, fixed.rate()),
        };
        Log {
            events: Vec::new(),
            pace,
        }
    }

    pub(super) fn take(&mut self) -> Vec<LinkEvent> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn append_to(&mut self, into: &mut Vec<LinkEvent>) {
        into.append(&mut self.events);
    }

    fn push(&mut self, at: Time, what: LinkEventKind) {
        self.events.push(LinkEvent { at, what });
    }

    pub(super) fn arrival(&mut self, at: Time, packet: &Packet) {
        self.push(at, LinkEventKind::Arrival(*packet));
    }

    pub(super) fn loss(&mut self, at: Time, packet: &Packet) {
        self.push(at, LinkEventKind::Loss(*packet));
    }

    pub(super) fn drops(&mut self, at: Time, packets: &[Packet]) {
        for packet in packets {
            self.push(at, LinkEventKind::Drop(*packet));
        }
    }

    pub(super) fn departure(&mut self, at: Time, packet: &Packet, wait: Duration) {
        let packet = *packet;
        self.push(at, LinkEventKind::Departure { packet, wait });
    }

    /// Logs every opportunity up to `now`.
    pub(super) fn opportunities(&mut self, now: Time) {
        loop {
            let at = match &mut self.pace {
                Pace::Unlimited => return,
                Pace::Trace(cursor) => cursor.next(),
                Pace::Fixed { next, .. } => *next,
            };
            if at > now || at == Time::NEVER {
                return;
            }
            match &mut self.pace {
                Pace::Unlimited => {}
                Pace::Trace(cursor) => cursor.advance(),
                Pace::Fixed { each, next } => *next += *each,
            }
            self.push(at, LinkEventKind::Opportunity);
        }
    }

    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.pace = Pace::fixed(now, rate);
    }
}
