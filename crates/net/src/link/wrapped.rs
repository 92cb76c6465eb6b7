//! Features around a queue: variable delay, reordering, and a log of all events. A link without any
//! of them does not use this module.

use std::collections::BTreeMap;

use headway_cc::{Duration, Rate, Stream, Time};

use super::log::Log;
use super::queued::Queued;
use crate::Packet;
use crate::queue::{DropTail, Limits};
use crate::ring::Ring;
use crate::server::Server;

/// An extra propagation delay, drawn for each packet. The order is kept: a packet that would
/// overtake another arrives together with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// A uniform delay up to a limit.
    Uniform {
        /// The limit.
        most: Duration,
    },
    /// An exponential delay: usually short, rarely long.
    Exponential {
        /// The mean.
        mean: Duration,
    },
}

/// Holds some packets back on their way, so that later ones overtake them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// The probability that a packet is held back, 0 to 1.
    pub probability: f64,
    /// How long they are held back.
    pub delay: Duration,
}

/// A queue, or none, with these features around it.
#[derive(Debug)]
pub(super) struct Wrapped {
    /// `None` if serialisation takes no time.
    pub(super) queued: Option<Queued>,
    pub(super) jitter: Option<(Jitter, Stream)>,
    pub(super) reorder: Option<(Reorder, Stream)>,
    pub(super) log: Option<Log>,
    /// Packets that propagate, by delivery time and then by departure.
    propagating: BTreeMap<(Time, u64), Packet>,
    /// Packets whose last bit has left.
    pub(super) departed_packets: u64,
    pub(super) departed_bytes: u64,
    /// When the last packet that was not held back is delivered.
    last: Time,
    /// Empty but within [`catch_up`](Self::catch_up).
    departures: Vec<(Time, Packet)>,
}

impl Wrapped {
    pub(super) fn new(queued: Option<Queued>) -> Wrapped {
        Wrapped {
            queued,
            jitter: None,
            reorder: None,
            log: None,
            propagating: BTreeMap::new(),
            departed_packets: 0,
            departed_bytes: 0,
            last: Time::ZERO,
            departures: Vec::new(),
        }
    }

    pub(super) fn propagating(&self) -> impl Iterator<Item = &Packet> {
        self.propagating.values()
    }

    /// When something happens next, even if it is only a part of a packet that arrives.
    pub(super) fn next_delivery(&self, delay: Duration) -> Time {
        let first = self.propagating.first_key_value();
        let first = first.map_or(Time::NEVER, |(&(due, _), _)| due);
        let departure = self.queued.as_ref().map(Queued::next_departure);
        first.min(departure.map_or(Time::NEVER, |at| at + delay))
    }

    /// A packet arrives at the near end; the caller has carried out every departure due by `now`.
    pub(super) fn arrive(
        &mut self,
        now: Time,
        packet: &Packet,
        delay: Duration,
        dropped: &mut Vec<Packet>,
    ) {
        if let Some(log) = &mut self.log {
            log.arrival(now, packet);
        }
        match &mut self.queued {
            None => {
                let packet = Packet {
                    arrived: now,
                    ..*packet
                };
                self.depart(now, packet, delay);
            }
            Some(queued) => {
                let before = dropped.len();
                queued.arrive(now, *packet, dropped);
                if let Some(log) = &mut self.log {
                    log.drops(now, &dropped[before..]);
                }
            }
        }
    }

    /// A packet was lost before the queue.
    pub(super) fn on_loss(&mut self, now: Time, packet: &Packet) {
        if let Some(log) = &mut self.log {
            log.loss(now, packet);
        }
    }

    /// Carries out every departure due by `now`, one after another, and passes packets that are due
    /// at the far end to `delivered`.
    pub(super) fn catch_up(
        &mut self,
        now: Time,
        delay: Duration,
        dropped: &mut Vec<Packet>,
        delivered: &mut Ring<Packet>,
    ) {
        let mut departures = std::mem::take(&mut self.departures);
        while let Some(queued) = &mut self.queued
            && let at = queued.next_departure()
            && at <= now
            && at < Time::NEVER
        {
            if let Some(log) = &mut self.log {
                log.opportunities(at);
            }
            let before = dropped.len();
            queued.catch_up(at, dropped, |at, packet| departures.push((at, *packet)));
            if let Some(log) = &mut self.log {
                log.drops(at, &dropped[before..]);
            }
            for (at, packet) in departures.drain(..) {
                self.depart(at, packet, delay);
            }
        }
        self.departures = departures;
        if let (Some(queued), true) = (&mut self.queued, now < Time::NEVER) {
            // This is for opportunities that had nothing to carry.
            queued.catch_up(now, dropped, |_, _| {});
            if let Some(log) = &mut self.log {
                log.opportunities(now);
            }
        }
        while let Some(entry) = self.propagating.first_entry()
            && entry.key().0 <= now
        {
            delivered.push(entry.remove());
        }
    }

    /// The last bit of a packet leaves.
    fn depart(&mut self, at: Time, mut packet: Packet, delay: Duration) {
        let wait = at.since(packet.arrived);
        if let Some(log) = &mut self.log {
            log.departure(at, &packet, wait);
        }
        self.departed_bytes += u64::from(packet.size);
        let jitter = match &mut self.jitter {
            None => Duration::ZERO,
            Some((Jitter::Uniform { most }, stream)) => most.mul_f64(stream.uniform()),
            Some((Jitter::Exponential { mean }, stream)) => mean.mul_f64(stream.exponential(1.0)),
        };
        self.last = self.last.max(at + delay + jitter);
        packet.arrived = self.last;
        if let Some((reorder, stream)) = &mut self.reorder
            && stream.chance(reorder.probability)
        {
            packet.arrived += reorder.delay;
        }
        packet.add_queueing(wait);
        let key = (packet.arrived, self.departed_packets);
        self.departed_packets += 1;
        self.propagating.insert(key, packet);
    }

    /// Sets a new rate from `now` on; the caller has carried out every departure due by then.
    pub(super) fn set_rate(&mut self, now: Time, rate: Rate, dropped: &mut Vec<Packet>) {
        let before = dropped.len();
        match &mut self.queued {
            Some(queued) => queued.set_rate(now, rate, dropped),
            None => {
                let server = Server::fixed_from(now, rate);
                self.queued = Some(Queued::new(Box::new(DropTail::new(Limits::NONE)), server));
            }
        }
        if let Some(log) = &mut self.log {
            log.drops(now, &dropped[before..]);
            log.set_rate(now, rate);
        }
    }
}
