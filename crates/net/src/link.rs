//! A directed link: loss, a queue, a server, propagation.

use std::collections::VecDeque;

use headway_cc::{Duration, Rate, Stream, Time};

use crate::queue::Queue;
use crate::server::TraceCursor;
use crate::{Body, Packet, Server};

/// A directed link. It works lazily: departures are carried out when a packet arrives or is
/// delivered, at the times at which they fell due, so a host needs one event a link.
#[derive(Debug)]
pub struct Link {
    loss: Option<RandomLoss>,
    queue: Box<dyn Queue>,
    server: Server,
    serving: Option<Serving>,
    delay: Duration,
    /// Packets that propagate, by delivery time, which is in `arrived`.
    line: VecDeque<Packet>,
    dropped: Vec<Packet>,
    counters: LinkCounters,
}

/// The packet that is being transmitted.
#[derive(Debug)]
struct Serving {
    packet: Packet,
    /// With a rate: when its last bit leaves.
    done: Time,
    /// With a trace: the bytes that opportunities have yet to carry.
    bytes_left: u32,
}

/// Loses each packet with the same probability, independently.
#[derive(Debug)]
pub struct RandomLoss {
    /// The probability, 0 to 1.
    pub probability: f64,
    /// Where the draws come from.
    pub stream: Stream,
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets lost at random.
    pub lost_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Bytes whose last bit has left.
    pub served_bytes: u64,
}

impl Link {
    /// A link with an empty queue.
    pub fn new(
        server: Server,
        queue: Box<dyn Queue>,
        delay: Duration,
        loss: Option<RandomLoss>,
    ) -> Link {
        Link {
            loss,
            queue,
            server,
            serving: None,
            delay,
            line: VecDeque::new(),
            dropped: Vec::new(),
            counters: LinkCounters::default(),
        }
    }

    /// A packet arrives at the near end. Returns whether the link was at rest: only then can
    /// [`next_delivery`](Self::next_delivery) have changed.
    pub fn arrive(&mut self, now: Time, mut packet: Packet) -> bool {
        self.counters.arrived_packets += 1;
        if let Some(loss) = &mut self.loss
            && loss.stream.chance(loss.probability)
        {
            self.counters.lost_packets += 1;
            return false;
        }
        packet.arrived = now;
        let mut at_rest = self.line.is_empty();
        if let Server::Unlimited = self.server {
            self.depart(now, packet);
            return at_rest;
        }
        self.catch_up(now);
        at_rest &= self.serving.is_none() && self.queue.is_empty();
        self.queue.enqueue(now, packet, &mut self.dropped);
        if self.serving.is_none()
            && let Server::Fixed(_) = self.server
        {
            self.serve_next(now);
        }
        self.count_drops();
        at_rest
    }

    /// When [`deliver`](Self::deliver) is wanted next; [`Time::NEVER`] if nothing is under way.
    #[inline]
    pub fn next_delivery(&self) -> Time {
        if let Some(packet) = self.line.front() {
            return packet.arrived;
        }
        match &self.server {
            Server::Unlimited => Time::NEVER,
            Server::Fixed(_) => match &self.serving {
                Some(serving) => serving.done + self.delay,
                None => Time::NEVER,
            },
            Server::Trace(_) if self.serving.is_none() && self.queue.is_empty() => Time::NEVER,
            Server::Trace(cursor) => cursor.next() + self.delay,
        }
    }

    /// The next packet to reach the far end by `now`, if there is one.
    #[inline]
    pub fn deliver(&mut self, now: Time) -> Option<Packet> {
        if self.line.is_empty() {
            self.catch_up(now);
        }
        match self.line.front() {
            Some(packet) if packet.arrived <= now => self.line.pop_front(),
            _ => None,
        }
    }

    /// Carries out every departure that was due by `now`.
    pub fn catch_up(&mut self, now: Time) {
        match self.server {
            Server::Unlimited => {}
            Server::Fixed(_) => {
                while let Some(serving) = self.serving.take_if(|s| s.done <= now) {
                    self.depart(serving.done, serving.packet);
                    self.serve_next(serving.done);
                }
            }
            Server::Trace(_) => self.use_opportunities(now),
        }
        self.count_drops();
    }

    /// A new rate from `now` on; a packet in transmission goes on with its remaining bits at it.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.catch_up(now);
        let left = match (&self.server, &self.serving) {
            (Server::Fixed(fixed), Some(s)) => fixed.rate().bytes_in(s.done.since(now)),
            (_, Some(s)) => headway_cc::Bytes::new(u64::from(s.bytes_left)),
            (_, None) => headway_cc::Bytes::ZERO,
        };
        self.server.set_rate(now, rate);
        match &mut self.serving {
            Some(serving) => serving.done = now + rate.time_to_send(left),
            None => self.serve_next(now),
        }
    }

    /// A new propagation delay from `now` on. Packets under way keep theirs and none overtakes another.
    pub fn set_delay(&mut self, now: Time, delay: Duration) {
        self.catch_up(now);
        self.delay = delay;
    }

    /// A new probability of random loss.
    pub fn set_loss(&mut self, loss: Option<RandomLoss>) {
        self.loss = loss;
    }

    /// Packets waiting, the one in transmission among them.
    pub fn backlog(&self) -> usize {
        self.queue.len() + usize::from(self.serving.is_some())
    }

    /// The packets that have left the queue and not arrived yet.
    pub fn propagating(&self) -> impl Iterator<Item = &Packet> {
        self.line.iter()
    }

    /// Sums since the start. Call [`catch_up`](Self::catch_up) first for the state at a moment.
    pub const fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// Bytes that could have been served by `now`; `None` if the link has no rate.
    pub fn offered_until(&self, now: Time) -> Option<f64> {
        self.server.offered_until(now)
    }

    #[inline]
    fn serve_next(&mut self, now: Time) {
        if let Server::Fixed(fixed) = &mut self.server
            && let Some(packet) = self.queue.dequeue(now, &mut self.dropped)
        {
            let done = now + fixed.time_to_send(u32::from(packet.size));
            self.serving = Some(Serving {
                packet,
                done,
                bytes_left: 0,
            });
        }
    }

    fn use_opportunities(&mut self, now: Time) {
        let Server::Trace(cursor) = &mut self.server else {
            return;
        };
        let mut departures = Departures {
            line: &mut self.line,
            counters: &mut self.counters,
            delay: self.delay,
        };
        loop {
            if self.serving.is_none() && self.queue.is_empty() {
                cursor.skip_until(now);
                return;
            }
            let at = cursor.next();
            if at > now {
                return;
            }
            cursor.advance();
            let mut budget = TraceCursor::OPPORTUNITY;
            while budget > 0 {
                let next = self.serving.take().or_else(|| {
                    let packet = self.queue.dequeue(at, &mut self.dropped)?;
                    Some(Serving {
                        packet,
                        done: at,
                        bytes_left: u32::from(packet.size) + TraceCursor::OVERHEAD,
                    })
                });
                let Some(mut serving) = next else { break };
                if serving.bytes_left <= budget {
                    budget -= serving.bytes_left;
                    departures.push(at, serving.packet);
                } else {
                    serving.bytes_left -= budget;
                    budget = 0;
                    self.serving = Some(serving);
                }
            }
        }
    }

    #[inline]
    fn depart(&mut self, at: Time, packet: Packet) {
        Departures {
            line: &mut self.line,
            counters: &mut self.counters,
            delay: self.delay,
        }
        .push(at, packet);
    }

    #[inline]
    fn count_drops(&mut self) {
        if !self.dropped.is_empty() {
            self.counters.dropped_packets += self.dropped.len() as u64;
            self.dropped.clear();
        }
    }
}

/// The far side of the server.
struct Departures<'a> {
    line: &'a mut VecDeque<Packet>,
    counters: &'a mut LinkCounters,
    delay: Duration,
}

impl Departures<'_> {
    /// The last bit of `packet` leaves.
    #[inline]
    fn push(&mut self, at: Time, mut packet: Packet) {
        self.counters.served_bytes += u64::from(packet.size);
        if let Body::Data(segment) = &mut packet.body {
            segment.queued += at.since(packet.arrived);
        }
        // First in, first out, even when the delay has just become shorter.
        let last = self.line.back().map_or(Time::ZERO, |p| p.arrived);
        packet.arrived = (at + self.delay).max(last);
        self.line.push_back(packet);
    }
}
