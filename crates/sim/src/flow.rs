//! One flow: its two ends, its routes, and its measurements.

use std::collections::VecDeque;

use headway_cc::{Bytes, Duration, Ecn, Selection, Stream, Time};
use headway_net::transport::{Profile, Receiver, Sender};
use headway_net::{Ack, Body, Packet, Segment};
use headway_scenario::{FlowSpec, Network};
use headway_world::{FlowPlan, Hops, Measured, MeasuredFlow, Options, Way, grid_sample};

use crate::observer::{Hold, Observer};

/// A flow under congestion control.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) sender: Sender,
    receiver: Receiver,
    /// The link on which data or acknowledgements enter the network.
    pub(crate) first_link: u32,
    hops: Hops,
    ack_hops: Hops,
    /// When the simulation will wake the sender, which may be too early.
    pub(crate) wake_at: Time,
    pub(crate) first_ack_link: u32,
    pub(crate) ack_route: Box<[u32]>,
    /// The flow's measurements, and the route of its data.
    pub(crate) measured: MeasuredFlow,
    /// When it stops next; never after it has stopped.
    stop: Time,
    pub(crate) sender_wakes: Wakes,
    pub(crate) receiver_wakes: Wakes,
    pub(crate) host: Host,
    /// Whether it was held while its host still had acknowledgements to deliver: it wakes again
    /// when it is released.
    pub(crate) is_interrupted: bool,
    messages: Messages,
    index: u32,
    ack_size: u16,
    /// Whether the receiver ever asks for a timer.
    has_receiver_timers: bool,
    /// The flow's data in packets; `u64::MAX` unless it is finite.
    segments: u64,
    /// Whether arriving data needs more work than an acknowledgement.
    pub(crate) is_watched: bool,
    most_in_flight: Bytes,
    packet_size: Bytes,
}

impl Flow {
    pub(crate) fn new(
        index: usize,
        spec: &FlowSpec,
        selection: &Selection,
        network: &Network,
        way: Way,
        options: &Options,
    ) -> Flow {
        let plan = FlowPlan::new(index as u32, spec, network, options);
        let segments = plan.packets();
        let has_receiver_timers =
            plan.profile == Profile::Linux || selection.scheme.receiver.is_some();
        Flow {
            sender: plan.sender(selection),
            receiver: plan.receiver(selection),
            hops: (way.data.len() - 1) as Hops,
            ack_hops: (way.acks.len() - 1) as Hops,
            wake_at: plan.start,
            first_link: way.data[0],
            first_ack_link: way.acks[0],
            ack_route: way.acks,
            measured: MeasuredFlow::new(
                spec,
                &selection.spec,
                selection.model(),
                way.data,
                options,
            ),
            stop: plan.stop,
            sender_wakes: Wakes::default(),
            receiver_wakes: Wakes::default(),
            host: Host {
                jitter: network.host_jitter,
                stream: plan.stream("host"),
                waiting: VecDeque::new(),
            },
            is_interrupted: false,
            messages: Messages::default(),
            index: plan.flow,
            ack_size: plan.ack_size.get() as u16,
            has_receiver_timers,
            segments,
            is_watched: has_receiver_timers || segments < u64::MAX,
            most_in_flight: plan.most_in_flight(),
            packet_size: plan.packet_size,
        }
    }

    /// A data packet has arrived. Returns the acknowledgement to send, if one is due.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        segment: &Segment,
        size: Bytes,
        ecn: Ecn,
    ) -> Option<Packet> {
        self.measured
            .on_delivered(now, segment.sent, segment.queued, size);
        let ack = self.receiver.on_data(now, segment, size, ecn)?;
        Some(self.acknowledge(now, ack))
    }

    /// A timer of the receiver is due. Returns the packet that it sends, if any.
    pub(crate) fn on_receiver_timer(&mut self, now: Time) -> Option<Packet> {
        if let Some(ack) = self.receiver.on_timer(now) {
            return Some(self.acknowledge(now, ack));
        }
        let ack = self.receiver.message_ack(now);
        let packet = self.acknowledge(now, ack);
        matches!(packet.body, Body::Ack(ack) if ack.message != Ack::NO_MESSAGE).then_some(packet)
    }

    /// The packet of an acknowledgement, with the receiver half's message if it has one.
    #[inline(always)]
    fn acknowledge(&mut self, now: Time, mut ack: Ack) -> Packet {
        if let Some(half) = self.receiver.half_mut() {
            let mut message = Vec::new();
            half.take_message(&mut message);
            if !message.is_empty() {
                ack.message = self.messages.add(message);
            }
        }
        Packet {
            flow: self.index,
            size: self.ack_size,
            hops_left: self.ack_hops,
            ecn: Ecn::NotEct,
            arrived: now,
            body: Body::Ack(ack),
        }
    }

    /// The sender's host delivers an acknowledgement to the sender.
    #[inline]
    pub(crate) fn on_ack<O: Observer>(&mut self, now: Time, ack: &Ack, observer: &mut O) {
        let lost_before = self.sender.counters().lost;
        let message = self.messages.take(ack.message);
        let rtt = self
            .sender
            .on_ack(now, ack, message.as_deref().unwrap_or_default());
        self.note_losses(now, lost_before);
        if let Some(rtt) = rtt {
            self.measured.meter.on_rtt(now, rtt);
        }
        observer.on_sender(now, self.index, Some(ack), &mut self.sender);
    }

    /// Runs everything due at the sender: acknowledgements from its host, and timers. The observer
    /// may hold the sender between two of them; then the rest waits for the release.
    pub(crate) fn on_wake<O: Observer>(&mut self, now: Time, observer: &mut O) {
        if now >= self.stop {
            self.sender.stop();
            self.stop = Time::NEVER;
        }
        if now < self.measured.start {
            return;
        }
        self.measured.started = true;
        while let Some(ack) = self.host.take_ready(now) {
            self.on_ack(now, &ack, observer);
            if observer.holds() != Hold::No {
                self.is_interrupted = true;
                return;
            }
        }
        let lost_before = self.sender.counters().lost;
        self.sender.on_wake(now);
        self.note_losses(now, lost_before);
        observer.on_sender(now, self.index, None, &mut self.sender);
    }

    /// The next packet to send now, if there is one.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Option<Packet> {
        let mut packet = self.sender.poll(now)?;
        packet.hops_left = self.hops;
        self.measured.on_sent(now, packet.size());
        Some(packet)
    }

    #[inline]
    fn note_losses(&mut self, now: Time, before: Bytes) {
        let lost = || self.sender.counters().lost.saturating_sub(before);
        self.measured.on_lost(now, lost);
    }

    /// A bin of the time grid ends.
    pub(crate) fn on_bin_end(&mut self, now: Time) {
        let sample = || grid_sample(&self.sender, self.packet_size);
        self.measured.on_bin_end(now, sample);
    }

    /// Has all its data arrived?
    pub(crate) fn is_complete(&self) -> bool {
        self.receiver.contiguous() >= self.segments
    }

    /// Has it more in flight than memory may hold?
    #[inline(always)]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.sender.in_flight() > self.most_in_flight
    }

    /// When to wake the receiver.
    #[inline]
    pub(crate) fn next_receiver_timer(&self) -> Time {
        if self.has_receiver_timers {
            self.receiver.next_timer()
        } else {
            Time::NEVER
        }
    }

    /// When to wake this flow's sender.
    #[inline]
    pub(crate) fn next_wake(&self) -> Time {
        if !self.measured.started {
            return self.measured.start;
        }
        self.sender.next_wake().min(self.stop).min(self.host.next())
    }
}

impl Measured for Flow {
    fn measured(&self) -> &MeasuredFlow {
        &self.measured
    }

    fn measured_mut(&mut self) -> &mut MeasuredFlow {
        &mut self.measured
    }
}

/// Counts how often a timer was called at one instant.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    at: Time,
    times: u32,
}

impl Wakes {
    /// A timer that calls more often at one instant is stuck.
    pub(crate) const MOST: u32 = 100_000;

    /// Counts a call. Returns whether the timer is stuck.
    pub(crate) fn is_stuck(&mut self, now: Time) -> bool {
        if self.at < now {
            *self = Wakes { at: now, times: 0 };
        }
        self.times += 1;
        self.times > Wakes::MOST
    }
}

/// The sender's host, which takes some time to deliver an acknowledgement.
#[derive(Debug)]
pub(crate) struct Host {
    jitter: Duration,
    stream: Stream,
    waiting: VecDeque<(Time, Ack)>,
}

impl Host {
    /// Is the acknowledgement delivered later than now? Then it is kept until then.
    #[inline]
    pub(crate) fn delays(&mut self, now: Time, ack: &Ack) -> bool {
        if self.jitter.is_zero() {
            return false;
        }
        let last = self.waiting.back().map_or(now, |w| w.0);
        let ready = now + self.jitter.mul_f64(self.stream.uniform());
        self.waiting.push_back((ready.max(last), *ack));
        true
    }

    #[inline]
    fn next(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |w| w.0)
    }

    pub(crate) fn take_ready(&mut self, now: Time) -> Option<Ack> {
        (self.next() <= now)
            .then(|| self.waiting.pop_front())
            .flatten()
            .map(|w| w.1)
    }
}

/// Messages of the receiver's half under way; packets carry their index.
#[derive(Debug, Default)]
struct Messages {
    kept: VecDeque<Option<Box<[u8]>>>,
    /// The index of the first message kept.
    base: u32,
}

impl Messages {
    /// How many messages are kept in case acknowledgements overtake one another.
    const SLACK: u32 = 1024;

    fn add(&mut self, message: Vec<u8>) -> u32 {
        self.kept.push_back(Some(message.into()));
        self.base.wrapping_add(self.kept.len() as u32 - 1)
    }

    /// Takes the message with this index, once; `None` for [`Ack::NO_MESSAGE`].
    #[inline]
    fn take(&mut self, index: u32) -> Option<Box<[u8]>> {
        if index == Ack::NO_MESSAGE {
            None
        } else {
            self.take_kept(index)
        }
    }

    fn take_kept(&mut self, index: u32) -> Option<Box<[u8]>> {
        let offset = index.wrapping_sub(self.base) as usize;
        let message = self.kept.get_mut(offset)?.take();
        while index.wrapping_sub(self.base) > Self::SLACK && !self.kept.is_empty() {
            self.kept.pop_front();
            self.base = self.base.wrapping_add(1);
        }
        message
    }
}
