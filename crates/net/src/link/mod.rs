//! A directed link: loss, a queue, a server, propagation.

mod fifo;

use headway_cc::{Bytes, Duration, Rate, Stream, Time};

use crate::Packet;
use crate::queue::{Limits, Queue};
use crate::ring::Ring;
use crate::server::{FixedRate, Server, TraceCursor};
use fifo::Fifo;

/// A directed link. It works lazily: departures are carried out when a packet arrives or is
/// delivered, at the times at which they fell due, so a host needs one event a link.
#[derive(Debug)]
pub struct Link {
    loss: Option<RandomLoss>,
    path: Path,
    delay: Duration,
    /// Packets that propagate, by delivery time, which is in `arrived`. With [`Path::Fifo`] also
    /// those that wait, since their departure is known.
    line: Line,
    dropped: Vec<Packet>,
    counters: LinkCounters,
}

/// What lies between a packet's arrival and its propagation.
#[derive(Debug)]
enum Path {
    /// Nothing: serialisation takes no time.
    Wire,
    /// First in, first out, at a rate.
    Fifo(Fifo),
    /// Any discipline and any server.
    Queued(Queued),
}

#[derive(Debug)]
struct Queued {
    queue: Box<dyn Queue>,
    server: Server,
    serving: Option<Serving>,
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
    /// A link that only delays.
    pub fn wire(delay: Duration) -> Link {
        Link::with_path(Path::Wire, delay)
    }

    /// A drop-tail queue served at a rate.
    pub fn fifo(rate: Rate, limits: Limits, delay: Duration) -> Link {
        Link::with_path(Path::Fifo(Fifo::new(FixedRate::new(rate), limits)), delay)
    }

    /// Any queue and any server. With a drop-tail queue and a fixed rate it does what
    /// [`fifo`](Self::fifo) does, more slowly.
    pub fn queued(queue: Box<dyn Queue>, server: Server, delay: Duration) -> Link {
        Link::with_path(
            Path::Queued(Queued {
                queue,
                server,
                serving: None,
            }),
            delay,
        )
    }

    fn with_path(path: Path, delay: Duration) -> Link {
        Link {
            loss: None,
            path,
            delay,
            line: Line::default(),
            dropped: Vec::new(),
            counters: LinkCounters::default(),
        }
    }

    /// A packet arrives at the near end. Returns whether the link was at rest: only then can
    /// [`next_delivery`](Self::next_delivery) have changed.
    #[inline(always)]
    pub fn arrive(&mut self, now: Time, packet: &Packet) -> bool {
        self.counters.arrived_packets += 1;
        if let Some(loss) = &mut self.loss
            && loss.stream.chance(loss.probability)
        {
            self.counters.lost_packets += 1;
            return false;
        }
        let at_rest = self.line.packets.is_empty();
        match &mut self.path {
            Path::Wire => self.line.push(now, now, self.delay, packet),
            Path::Fifo(fifo) => match fifo.accept(now, u32::from(packet.size)) {
                Some(at) => self.line.push(now, at, self.delay, packet),
                None => {
                    self.counters.dropped_packets += 1;
                    return false;
                }
            },
            Path::Queued(queued) => {
                queued.catch_up(
                    now,
                    &mut Departures {
                        line: &mut self.line,
                        dropped: &mut self.dropped,
                        served_bytes: &mut self.counters.served_bytes,
                        delay: self.delay,
                    },
                );
                let at_rest = at_rest && queued.is_idle();
                let packet = Packet {
                    arrived: now,
                    ..*packet
                };
                queued.queue.enqueue(now, packet, &mut self.dropped);
                queued.serve_if_free(now, &mut self.dropped);
                self.count_drops();
                return at_rest;
            }
        }
        at_rest
    }

    /// When [`deliver`](Self::deliver) is wanted next; [`Time::NEVER`] if nothing is under way.
    #[inline]
    pub fn next_delivery(&self) -> Time {
        match (self.line.packets.front(), &self.path) {
            (Some(packet), _) => packet.arrived,
            (None, Path::Queued(queued)) => queued.next_departure() + self.delay,
            (None, _) => Time::NEVER,
        }
    }

    /// The next packet to reach the far end by `now`, if there is one.
    #[inline]
    pub fn deliver(&mut self, now: Time) -> Option<Packet> {
        if self.line.packets.is_empty() {
            self.catch_up(now);
        }
        match self.line.packets.front() {
            Some(packet) if packet.arrived <= now => self.line.packets.pop(),
            _ => None,
        }
    }

    /// Carries out every departure that was due by `now`.
    pub fn catch_up(&mut self, now: Time) {
        if let Path::Queued(queued) = &mut self.path {
            queued.catch_up(
                now,
                &mut Departures {
                    line: &mut self.line,
                    dropped: &mut self.dropped,
                    served_bytes: &mut self.counters.served_bytes,
                    delay: self.delay,
                },
            );
            self.count_drops();
        }
    }

    /// A new rate from `now` on, instead of whatever the link had; a packet in transmission goes
    /// on with its remaining bits at it.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.catch_up(now);
        match &mut self.path {
            Path::Wire => {
                let fifo = Fifo::new(FixedRate::starting(now, rate), Limits::NONE);
                self.path = Path::Fifo(fifo);
            }
            Path::Fifo(fifo) => {
                let waiting = fifo.backlog(now);
                fifo.set_rate(now, rate, self.line.last_mut(waiting));
                self.line
                    .deliver_last(waiting, fifo.departures(now), self.delay);
            }
            Path::Queued(queued) => queued.set_rate(now, rate, &mut self.dropped),
        }
        self.count_drops();
    }

    /// A new propagation delay from `now` on. Packets that have left keep theirs and none overtakes another.
    pub fn set_delay(&mut self, now: Time, delay: Duration) {
        self.catch_up(now);
        if let Path::Fifo(fifo) = &mut self.path {
            let waiting = fifo.backlog(now);
            self.line.deliver_last(waiting, fifo.departures(now), delay);
        }
        self.delay = delay;
    }

    /// Random loss from now on, or none. Returns what there was.
    pub fn set_loss(&mut self, loss: Option<RandomLoss>) -> Option<RandomLoss> {
        std::mem::replace(&mut self.loss, loss)
    }

    /// Packets that have not left, the one in transmission among them.
    pub fn backlog(&mut self, now: Time) -> usize {
        self.catch_up(now);
        match &mut self.path {
            Path::Wire => 0,
            Path::Fifo(fifo) => fifo.backlog(now),
            Path::Queued(queued) => queued.queue.len() + usize::from(queued.serving.is_some()),
        }
    }

    /// The packets that have left the queue and not arrived.
    pub fn propagating(&mut self, now: Time) -> impl Iterator<Item = &Packet> {
        self.catch_up(now);
        let waiting = match &mut self.path {
            Path::Fifo(fifo) => fifo.backlog(now),
            _ => 0,
        };
        self.line
            .packets
            .iter()
            .take(self.line.packets.len() - waiting)
    }

    /// Sums since the start.
    pub fn counters(&mut self, now: Time) -> LinkCounters {
        self.catch_up(now);
        if let Path::Fifo(fifo) = &mut self.path {
            self.counters.served_bytes = fifo.served_bytes(now);
        }
        self.counters
    }

    /// Bytes that could have been served by `now`; `None` if the link has no rate.
    pub fn offered_until(&self, now: Time) -> Option<f64> {
        match &self.path {
            Path::Wire => None,
            Path::Fifo(fifo) => Some(fifo.offered_until(now)),
            Path::Queued(queued) => Some(queued.server.offered_until(now)),
        }
    }

    #[inline]
    fn count_drops(&mut self) {
        if !self.dropped.is_empty() {
            self.counters.dropped_packets += self.dropped.len() as u64;
            self.dropped.clear();
        }
    }
}

impl Queued {
    fn is_idle(&self) -> bool {
        self.serving.is_none() && self.queue.is_empty()
    }

    fn next_departure(&self) -> Time {
        match (&self.server, &self.serving) {
            (Server::Fixed(_), Some(serving)) => serving.done,
            (Server::Fixed(_), None) => Time::NEVER,
            (Server::Trace(_), None) if self.queue.is_empty() => Time::NEVER,
            // Perhaps only a part of a packet leaves then.
            (Server::Trace(cursor), _) => cursor.next(),
        }
    }

    fn catch_up(&mut self, now: Time, out: &mut Departures<'_>) {
        match &mut self.server {
            Server::Fixed(_) => {
                while let Some(serving) = self.serving.take_if(|s| s.done <= now) {
                    out.push(serving.done, serving.packet);
                    self.serve_if_free(serving.done, out.dropped);
                }
            }
            Server::Trace(_) => self.use_opportunities(now, out),
        }
    }

    fn serve_if_free(&mut self, now: Time, dropped: &mut Vec<Packet>) {
        if self.serving.is_none()
            && let Server::Fixed(rate) = &mut self.server
            && let Some(packet) = self.queue.dequeue(now, dropped)
        {
            let done = now + rate.time_to_send(u32::from(packet.size));
            self.serving = Some(Serving {
                packet,
                done,
                bytes_left: 0,
            });
        }
    }

    fn use_opportunities(&mut self, now: Time, out: &mut Departures<'_>) {
        let Server::Trace(cursor) = &mut self.server else {
            return;
        };
        loop {
            if self.serving.is_none() && self.queue.is_empty() {
                cursor.skip_until(now);
                return;
            }
            let at = cursor.next();
            if at > now || at == Time::NEVER {
                return;
            }
            cursor.advance();
            let mut budget = TraceCursor::OPPORTUNITY;
            while budget > 0 {
                let next = self.serving.take().or_else(|| {
                    let packet = self.queue.dequeue(at, out.dropped)?;
                    let bytes_left = u32::from(packet.size) + TraceCursor::OVERHEAD;
                    Some(Serving {
                        packet,
                        done: at,
                        bytes_left,
                    })
                });
                let Some(mut serving) = next else { break };
                if serving.bytes_left <= budget {
                    budget -= serving.bytes_left;
                    out.push(at, serving.packet);
                } else {
                    serving.bytes_left -= budget;
                    budget = 0;
                    self.serving = Some(serving);
                }
            }
        }
    }

    fn set_rate(&mut self, now: Time, rate: Rate, dropped: &mut Vec<Packet>) {
        let left = self.serving.as_ref().map(|s| match &self.server {
            Server::Fixed(fixed) => fixed.rate().bytes_in(s.done.since(now)),
            Server::Trace(_) => Bytes::new(u64::from(s.bytes_left)),
        });
        self.server.set_rate(now, rate);
        match (&mut self.serving, left) {
            (Some(serving), Some(left)) => serving.done = now + rate.time_to_send(left),
            _ => self.serve_if_free(now, dropped),
        }
    }
}

/// Where packets go from a server.
struct Departures<'a> {
    line: &'a mut Line,
    dropped: &'a mut Vec<Packet>,
    served_bytes: &'a mut u64,
    delay: Duration,
}

impl Departures<'_> {
    fn push(&mut self, at: Time, packet: Packet) {
        *self.served_bytes += u64::from(packet.size);
        self.line.push(packet.arrived, at, self.delay, &packet);
    }
}

/// Packets by delivery time.
#[derive(Debug, Default)]
struct Line {
    packets: Ring<Packet>,
    /// When the last of them, or the last that was here, is delivered.
    last: Time,
}

impl Line {
    /// The last bit of `packet`, which arrived at `arrived`, leaves at `at`.
    #[inline(always)]
    fn push(&mut self, arrived: Time, at: Time, delay: Duration, packet: &Packet) {
        // First in, first out, even when the delay has just become shorter.
        self.last = self.last.max(at + delay);
        let packet = self.packets.push(*packet);
        packet.arrived = self.last;
        packet.add_queueing(at.since(arrived));
    }

    /// The last `n` packets.
    fn last_mut(&mut self, n: usize) -> impl Iterator<Item = &mut Packet> {
        self.packets.last_mut(n)
    }

    /// The departure of the last `n` packets, or the delay after it, has changed.
    fn deliver_last(&mut self, n: usize, departures: impl Iterator<Item = Time>, delay: Duration) {
        let before = self.packets.tail() - n as u64;
        let mut last = match before.checked_sub(1).and_then(|b| self.packets.get(b)) {
            Some(packet) => packet.arrived,
            None => Time::ZERO,
        };
        for (packet, departure) in self.packets.last_mut(n).zip(departures) {
            last = last.max(departure + delay);
            packet.arrived = last;
        }
        if n > 0 {
            self.last = last;
        }
    }
}
