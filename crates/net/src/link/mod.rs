//! A directed link: loss, a queue, a server, propagation.

mod fifo;
mod line;
mod log;
mod loss;
mod queued;
mod wrapped;

use headway_cc::{Duration, Rate, Stream, Time};

use crate::Packet;
use crate::queue::{DropTail, Limits, Queue};
use crate::server::{FixedRate, Server};
use fifo::Fifo;
use line::Line;
use log::Log;
use queued::Queued;
use wrapped::Wrapped;

pub use log::{LinkEvent, LinkEventKind};
pub use loss::{Loss, LossProcess};
pub use wrapped::{Jitter, Reorder};

/// A directed link. It works lazily: it carries out departures when a packet arrives or is
/// delivered, as of the times at which they were due, so a host needs one event a link.
#[derive(Debug)]
pub struct Link {
    loss: Option<LossProcess>,
    stage: Stage,
    delay: Duration,
    /// Propagating packets, by delivery time, which is in `arrived`. With [`Stage::Fifo`] it also
    /// has the packets that wait, since their departure is known.
    line: Line,
    dropped: Vec<Packet>,
    lost_packets: u64,
    dropped_packets: u64,
    /// Bytes whose last bit has left, without those of [`Stage::Fifo`] and [`Stage::Wrapped`].
    served_bytes: u64,
}

/// The stage between a packet's arrival and its propagation.
#[derive(Debug)]
enum Stage {
    /// No stage: serialisation takes no time.
    Wire,
    /// A FIFO queue, served at a rate.
    Fifo(Fifo),
    /// Any discipline, with any server.
    Queued(Queued),
    /// Either of these, with variable delay, reordering or a log.
    Wrapped(Box<Wrapped>),
}

/// Sums since the start. They continue when a change gives the link a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets lost before the queue.
    pub lost_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Packets whose last bit has left.
    pub served_packets: u64,
    /// Bytes of these packets.
    pub served_bytes: u64,
    /// Packets delivered at the far end.
    pub delivered_packets: u64,
    /// Bytes of these packets.
    pub delivered_bytes: u64,
}

impl Link {
    /// A link that only delays.
    pub fn wire(delay: Duration) -> Link {
        Link::with_stage(Stage::Wire, delay)
    }

    /// A drop-tail queue served at a rate.
    pub fn fifo(rate: Rate, limits: Limits, delay: Duration) -> Link {
        Link::with_stage(Stage::Fifo(Fifo::new(FixedRate::new(rate), limits)), delay)
    }

    /// Any queue with any server. With a drop-tail queue and a fixed rate it does the same as
    /// [`fifo`](Self::fifo), more slowly.
    pub fn queued(queue: Box<dyn Queue>, server: Server, delay: Duration) -> Link {
        Link::with_stage(Stage::Queued(Queued::new(queue, server)), delay)
    }

    /// The same link with jitter. Call this and the two methods below before anything has arrived.
    #[must_use]
    pub fn with_jitter(self, jitter: Jitter, stream: Stream) -> Link {
        self.wrap(|wrapped| wrapped.jitter = Some((jitter, stream)))
    }

    /// The same link with reordering.
    #[must_use]
    pub fn with_reorder(self, reorder: Reorder, stream: Stream) -> Link {
        self.wrap(|wrapped| wrapped.reorder = Some((reorder, stream)))
    }

    /// The same link with a log of every packet and every opportunity to send one, for mahimahi's
    /// logs, pcap and qlog. Take the log with [`take_events`](Self::take_events), now and then and
    /// at the end. The link behaves as before but takes more time.
    #[must_use]
    pub fn observed(self) -> Link {
        self.wrap(|wrapped| {
            let server = wrapped.queued.as_ref().map(|q| &q.server);
            wrapped.log = Some(Log::new(server));
        })
    }

    fn wrap(mut self, change: impl FnOnce(&mut Wrapped)) -> Link {
        let mut wrapped = match self.stage {
            Stage::Wire => Box::new(Wrapped::new(None)),
            Stage::Fifo(fifo) => {
                let (rate, limits) = fifo.into_parts();
                let queue = Box::new(DropTail::new(limits));
                Box::new(Wrapped::new(Some(Queued::new(queue, Server::Fixed(rate)))))
            }
            Stage::Queued(queued) => Box::new(Wrapped::new(Some(queued))),
            Stage::Wrapped(wrapped) => wrapped,
        };
        change(&mut wrapped);
        self.stage = Stage::Wrapped(wrapped);
        self
    }

    fn with_stage(stage: Stage, delay: Duration) -> Link {
        Link {
            loss: None,
            stage,
            delay,
            line: Line::default(),
            dropped: Vec::new(),
            lost_packets: 0,
            dropped_packets: 0,
            served_bytes: 0,
        }
    }

    /// A packet arrives at the near end. Returns whether the link was at rest: only then can
    /// [`next_delivery`](Self::next_delivery) have changed.
    #[inline(always)]
    pub fn arrive(&mut self, now: Time, packet: &Packet) -> bool {
        if self.loss.is_some() && self.is_struck(now, *packet) {
            return false;
        }
        let at_rest = self.line.packets.is_empty();
        match &mut self.stage {
            Stage::Wire => {
                self.line.push(now, now, self.delay, packet);
                self.served_bytes += u64::from(packet.size);
            }
            Stage::Fifo(fifo) => match fifo.accept(now, u32::from(packet.size)) {
                Some(at) => self.line.push(now, at, self.delay, packet),
                None => {
                    self.dropped_packets += 1;
                    return false;
                }
            },
            // This is a separate function, and takes the packet by value: a reference would have
            // every packet written to memory first.
            Stage::Queued(_) => return self.arrive_queued(now, *packet),
            Stage::Wrapped(_) => return self.arrive_wrapped(now, *packet),
        }
        at_rest
    }

    /// This function and its siblings are `#[cold]` for the sake of the plain links' code, not
    /// because they are rare. Without it NewReno over drop-tail takes five instructions a packet
    /// more, and a trace's link gains less than half a percent.
    #[cold]
    fn arrive_queued(&mut self, now: Time, packet: Packet) -> bool {
        self.catch_up(now);
        let Stage::Queued(queued) = &mut self.stage else {
            return false;
        };
        let at_rest = self.line.packets.is_empty() && queued.is_idle();
        queued.arrive(now, packet, &mut self.dropped);
        self.count_drops();
        at_rest
    }

    #[cold]
    fn arrive_wrapped(&mut self, now: Time, packet: Packet) -> bool {
        self.catch_up(now);
        let before = self.next_delivery();
        if let Stage::Wrapped(wrapped) = &mut self.stage {
            wrapped.arrive(now, &packet, self.delay, &mut self.dropped);
        }
        self.count_drops();
        self.next_delivery() != before
    }

    /// Is the packet lost before the queue?
    #[cold]
    fn is_struck(&mut self, now: Time, packet: Packet) -> bool {
        let is_struck = self.loss.as_mut().is_some_and(LossProcess::strikes);
        if is_struck {
            self.lost_packets += 1;
            self.catch_up(now);
            if let Stage::Wrapped(wrapped) = &mut self.stage {
                wrapped.on_loss(now, &packet);
            }
        }
        is_struck
    }

    /// When to call [`deliver`](Self::deliver) next; [`Time::NEVER`] if nothing is under way.
    #[inline]
    pub fn next_delivery(&self) -> Time {
        match (self.line.packets.front(), &self.stage) {
            (Some(packet), _) => packet.arrived,
            (None, Stage::Wire | Stage::Fifo(_)) => Time::NEVER,
            (None, _) => self.next_departure(),
        }
    }

    /// The earliest time at which a packet that has not left yet can be delivered.
    #[cold]
    fn next_departure(&self) -> Time {
        match &self.stage {
            Stage::Wire | Stage::Fifo(_) => Time::NEVER,
            Stage::Queued(queued) => queued.next_departure() + self.delay,
            Stage::Wrapped(wrapped) => wrapped.next_delivery(self.delay),
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

    /// Carries out every departure due by `now`.
    #[cold]
    pub fn catch_up(&mut self, now: Time) {
        match &mut self.stage {
            Stage::Wire | Stage::Fifo(_) => return,
            Stage::Queued(queued) => queued.catch_up(now, &mut self.dropped, |at, packet| {
                self.served_bytes += u64::from(packet.size);
                self.line.push(packet.arrived, at, self.delay, packet);
            }),
            Stage::Wrapped(wrapped) => {
                wrapped.catch_up(now, self.delay, &mut self.dropped, &mut self.line.packets)
            }
        }
        self.count_drops();
    }

    /// Sets a new rate from `now` on, instead of whatever the link had. The remaining bits of a
    /// packet in transmission are sent at it.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.catch_up(now);
        match &mut self.stage {
            Stage::Wire => {
                let fifo = Fifo::new(FixedRate::starting(now, rate), Limits::NONE);
                self.stage = Stage::Fifo(fifo);
            }
            Stage::Fifo(fifo) => {
                let waiting = fifo.backlog(now);
                fifo.set_rate(now, rate, self.line.last_mut(waiting));
                self.line
                    .deliver_last(waiting, fifo.departures(now), self.delay);
            }
            Stage::Queued(queued) => queued.set_rate(now, rate, &mut self.dropped),
            Stage::Wrapped(wrapped) => wrapped.set_rate(now, rate, &mut self.dropped),
        }
        self.count_drops();
    }

    /// Sets a new propagation delay from `now` on. Packets that have left keep theirs, and none
    /// overtakes another.
    pub fn set_delay(&mut self, now: Time, delay: Duration) {
        self.catch_up(now);
        if let Stage::Fifo(fifo) = &mut self.stage {
            let waiting = fifo.backlog(now);
            self.line.deliver_last(waiting, fifo.departures(now), delay);
        }
        self.delay = delay;
    }

    /// Sets the loss from now on; `None` for no loss. Returns the loss until now.
    pub fn set_loss(&mut self, loss: Option<LossProcess>) -> Option<LossProcess> {
        std::mem::replace(&mut self.loss, loss)
    }

    /// Packets that have not left, including the one in transmission.
    pub fn backlog(&mut self, now: Time) -> usize {
        self.catch_up(now);
        match &mut self.stage {
            Stage::Wire => 0,
            Stage::Fifo(fifo) => fifo.backlog(now),
            Stage::Queued(queued) => queued.backlog(),
            Stage::Wrapped(wrapped) => wrapped.queued.as_ref().map_or(0, Queued::backlog),
        }
    }

    /// The packets that have left the queue and have not arrived.
    pub fn propagating(&mut self, now: Time) -> impl Iterator<Item = &Packet> {
        self.catch_up(now);
        let (waiting, wrapped) = match &mut self.stage {
            Stage::Fifo(fifo) => (fifo.backlog(now), None),
            Stage::Wrapped(wrapped) => (0, Some(&*wrapped)),
            Stage::Wire | Stage::Queued(_) => (0, None),
        };
        self.line
            .packets
            .iter()
            .take(self.line.packets.len() - waiting)
            .chain(wrapped.into_iter().flat_map(|w| w.propagating()))
    }

    /// Sums since the start. They are computed on request, so that a packet does not pay for what
    /// can be known without counting it.
    pub fn counters(&mut self, now: Time) -> LinkCounters {
        let backlog = self.backlog(now) as u64;
        let propagating_bytes: u64 = self.propagating(now).map(|p| u64::from(p.size)).sum();
        let line = &self.line.packets;
        let (served_packets, served_bytes) = match &mut self.stage {
            Stage::Wire | Stage::Queued(_) => (line.tail(), 0),
            Stage::Fifo(fifo) => (line.tail() - backlog, fifo.served_bytes(now)),
            Stage::Wrapped(wrapped) => (wrapped.departed_packets, wrapped.departed_bytes),
        };
        let served_bytes = self.served_bytes + served_bytes;
        LinkCounters {
            arrived_packets: self.lost_packets + self.dropped_packets + backlog + served_packets,
            lost_packets: self.lost_packets,
            dropped_packets: self.dropped_packets,
            served_packets,
            served_bytes,
            delivered_packets: line.head(),
            delivered_bytes: served_bytes - propagating_bytes,
        }
    }

    /// The events since the last call, in order, up to `now`: empty unless the link is
    /// [`observed`](Self::observed).
    pub fn take_events(&mut self, now: Time) -> Vec<LinkEvent> {
        self.catch_up(now);
        match &mut self.stage {
            Stage::Wrapped(wrapped) => wrapped.log.as_mut().map(Log::take).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Same as [`take_events`](Self::take_events), but appends to `into`, without allocation in the
    /// long run.
    pub fn append_events(&mut self, now: Time, into: &mut Vec<LinkEvent>) {
        self.catch_up(now);
        if let Stage::Wrapped(wrapped) = &mut self.stage
            && let Some(log) = &mut wrapped.log
        {
            log.append_to(into);
        }
    }

    /// Stops the log, and drops the events in it.
    pub fn stop_log(&mut self) {
        if let Stage::Wrapped(wrapped) = &mut self.stage {
            wrapped.log = None;
        }
    }

    /// Bytes that could have been served by `now`; `None` if the link has no rate.
    pub fn offered_until(&self, now: Time) -> Option<f64> {
        match &self.stage {
            Stage::Wire => None,
            Stage::Fifo(fifo) => Some(fifo.offered_until(now)),
            Stage::Queued(queued) => Some(queued.server.offered_until(now)),
            Stage::Wrapped(wrapped) => Some(wrapped.queued.as_ref()?.server.offered_until(now)),
        }
    }

    #[inline]
    fn count_drops(&mut self) {
        if !self.dropped.is_empty() {
            self.dropped_packets += self.dropped.len() as u64;
            self.dropped.clear();
        }
    }
}
