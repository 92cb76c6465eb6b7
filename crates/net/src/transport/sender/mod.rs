//! The sending side: hosts a controller, keeps the packets in flight, detects losses.

mod ack_map;
mod losses;
mod report;
mod timers;

use std::collections::VecDeque;

use headway_cc::{
    Acked, Bytes, CongestionControl, Control, Counters, Duration, Ecn, Lost, Need, NetworkView,
    Probe, Recovery, RttStats, Sent, Stamp, Time,
};

use super::delivery::Delivery;
use super::flight::{Entry, Flight, State};
use super::pacer::Pacer;
use super::prr::Prr;
use super::recovery::{Losses, RecoveryState};
use super::rtt::{RtoFloor, RttEstimator};
use super::{Profile, Source, acknowledges_every_packet};
use crate::{Ack, Body, Packet, Segment};
use ack_map::AckMap;
use report::Report;

/// The configuration of a sender.
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// The host's index of this flow, carried in its packets.
    pub flow: u32,
    /// The size of a full packet on the wire, at most 65,535 bytes.
    pub mss: Bytes,
    /// The transport's profile.
    pub profile: Profile,
    /// The controller's needs. [`Need::PerPacket`], [`Need::RateSample`], [`Need::PerSend`],
    /// [`Need::EcnEcho`] and [`Need::Header`] cost time at every packet and are met only on
    /// request.
    pub needs: &'static [Need],
}

/// The sending side of one flow. The host passes it acknowledgements and the time, and takes
/// packets until [`poll`](Self::poll) has none.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    cc: Box<dyn CongestionControl>,
    control: Control,
    cc_timer: Time,
    source: Source,
    stopped: bool,

    flight: Flight,
    in_flight: u64,
    next_seq: u64,
    retransmit: VecDeque<Repeat>,
    acks: AckMap,
    cumulative: u64,
    receive_limit: u64,
    counters: Counters,

    rtt: RttEstimator,
    delivery: Delivery,
    pacer: Pacer,
    recovery: RecoveryState,
    prr: Option<Prr>,
    /// Packets below this number need no more loss detection.
    loss_cursor: u64,
    reordering_seen: bool,

    rto_deadline: Time,
    timeouts: u32,
    /// The timers of RACK's reordering and of the tail loss probe (profile `Linux`).
    reorder_deadline: Time,
    probe_deadline: Time,
    probing: bool,
    /// When pacing or the source allows the next packet, if nothing else holds it back.
    blocked_until: Time,
    cwnd_limited: bool,
    last_sent: Time,

    /// The packets acknowledged by the current acknowledgement or timer.
    acked: Vec<Acked>,
    lost: Vec<Lost>,
    acked_bytes: u64,
    lost_bytes: u64,
    losses: Losses,
    newest_acked: u64,
    undo: bool,

    wants_packets: bool,
    wants_rate: bool,
    wants_stamp: bool,
    wants_refresh: bool,
    /// Whether an echoed mark stands for every packet that the acknowledgement covers.
    marks_are_shared: bool,
}

/// Lost data to retransmit.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    /// The transmission that was lost.
    number: u64,
    seq: u64,
    size: u16,
}

impl Sender {
    /// RFC 9002 §6.1.1, RFC 5681 §3.2: a packet is lost when three later ones have arrived.
    const REORDER_THRESHOLD: u64 = 3;

    /// A flow that begins now.
    pub fn new(config: SenderConfig, cc: Box<dyn CongestionControl>, source: Source) -> Sender {
        assert!(
            config.mss.get() <= u64::from(u16::MAX),
            "a packet has at most 65535 bytes"
        );
        let needs = |need| config.needs.contains(&need);
        let wants_stamp =
            needs(Need::EcnEcho) || needs(Need::Header) || cc.stamp() != Stamp::default();
        let rto_floor = match config.profile {
            Profile::Simple => RtoFloor::Whole(Duration::from_secs(1)),
            Profile::Linux => RtoFloor::AboveRtt(Duration::from_millis(200)),
        };
        Sender {
            config,
            control: cc.control(),
            cc_timer: cc.next_timer(),
            cc,
            source,
            stopped: false,
            flight: Flight::default(),
            in_flight: 0,
            next_seq: 0,
            retransmit: VecDeque::new(),
            acks: AckMap::default(),
            cumulative: 0,
            receive_limit: match config.profile {
                Profile::Simple => u64::MAX,
                Profile::Linux => 65_535,
            },
            counters: Counters::default(),
            rtt: RttEstimator::new(rto_floor),
            delivery: Delivery::default(),
            pacer: Pacer::default(),
            recovery: RecoveryState::default(),
            prr: None,
            loss_cursor: 0,
            reordering_seen: false,
            rto_deadline: Time::NEVER,
            timeouts: 0,
            reorder_deadline: Time::NEVER,
            probe_deadline: Time::NEVER,
            probing: false,
            blocked_until: Time::NEVER,
            cwnd_limited: false,
            last_sent: Time::ZERO,
            acked: Vec::new(),
            lost: Vec::new(),
            acked_bytes: 0,
            lost_bytes: 0,
            losses: Losses::default(),
            newest_acked: 0,
            undo: false,
            wants_packets: needs(Need::PerPacket),
            wants_rate: needs(Need::RateSample),
            wants_stamp,
            wants_refresh: needs(Need::PerSend),
            marks_are_shared: !acknowledges_every_packet(config.profile, config.needs),
        }
    }

    /// The same sender to a receiver with this window, if one is given. TCP learns it in the
    /// handshake; this transport has none, so the caller gives it.
    pub fn with_receive_window(mut self, window: Option<Bytes>) -> Sender {
        if let Some(window) = window {
            self.receive_limit = self.receive_limit.min(window.get());
        }
        self
    }

    /// An acknowledgement arrives, perhaps with a message of the receiver's half. Returns the RTT
    /// if it gives a sample. An acknowledgement of packets that were never sent is ignored, as is
    /// any after [`stop`](Self::stop).
    #[inline(always)]
    pub fn on_ack(&mut self, now: Time, ack: &Ack, message: &[u8]) -> Option<Duration> {
        // An acknowledgement of data that was never sent is forged or damaged.
        if self.stopped || ack.number >= self.flight.next() || ack.cumulative > self.next_seq {
            return None;
        }
        self.clear_news();
        let prior_in_flight = self.in_flight;
        let (is_new, earlier_new) = self.acks.fold(ack.number, ack.earlier);
        let mut bits = earlier_new;
        while bits != 0 {
            let i = 63 - u64::from(bits.leading_zeros());
            bits ^= 1 << i;
            self.acknowledge(ack.number.wrapping_sub(1 + i), None);
        }
        let acked_before = self.acked_bytes;
        let mut rtt = None;
        if is_new && let Some(sent) = self.acknowledge(ack.number, Some(ack)) {
            rtt = Some(now.since(sent));
            self.rtt.sample(now.since(sent));
        }
        let marked = rtt.is_some() && ack.ecn == Ecn::Ce;
        if marked {
            // A delayed acknowledgement covers packets of one kind (RFC 8257 §3.2).
            let others = if self.marks_are_shared {
                0
            } else {
                acked_before
            };
            self.counters.ce += Bytes::new(self.acked_bytes - others);
        }
        let in_order = ack.cumulative > self.cumulative;
        if in_order {
            if ack.cumulative - self.cumulative > 64 {
                self.acknowledge_below(ack.cumulative);
            }
            self.cumulative = ack.cumulative;
            let limit = ack.cumulative * self.config.mss.get() + u64::from(ack.window);
            self.receive_limit = self.receive_limit.max(limit);
        }
        if self.acked_bytes == 0 && message.is_empty() {
            return None;
        }

        let was_recovering = self.recovery.phase != Recovery::Open;
        if self.acked_bytes > 0 {
            self.timeouts = 0;
            if was_recovering {
                if self.recovery.timeout_was_spurious(self.newest_acked) {
                    self.forgive_timeout();
                    self.undo = true;
                }
                self.recovery
                    .on_progress(self.cumulative, self.acks.largest);
            }
        }
        let mut congestion = self.detect_losses(now);
        if marked {
            congestion = congestion.or_else(|| self.recovery.on_marked(self.flight.next()));
        }
        self.flight.trim(self.acks.largest);
        self.report(
            now,
            Report {
                prior_in_flight,
                rtt,
                in_order,
                congestion,
                message,
            },
        );
        if self.acked_bytes > 0 {
            self.restart_timers(now);
        }
        rtt
    }

    /// The next packet to send now, if there is one. Call it until it returns none.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Packet> {
        self.blocked_until = Time::NEVER;
        let mss = self.config.mss;
        let window = self.window();
        let probing = std::mem::take(&mut self.probing);
        self.cwnd_limited = self.in_flight + mss.get() > window.get();
        if self.stopped || (self.cwnd_limited && !probing) {
            self.pacer.rest();
            return None;
        }
        if let Some(rate) = self.control.pacing_rate {
            let release = self
                .pacer
                .release(now, rate, mss, self.control.send_quantum);
            if release > now && !probing {
                self.blocked_until = release;
                return None;
            }
        }
        while self
            .retransmit
            .front()
            .is_some_and(|r| r.seq < self.cumulative)
        {
            self.retransmit.pop_front();
        }
        let (seq, size, repeated) = match self.retransmit.pop_front() {
            Some(r) => (r.seq, Bytes::new(u64::from(r.size)), true),
            None => match self.new_data(now) {
                Ok(size) => {
                    self.next_seq += 1;
                    (self.next_seq - 1, size, false)
                }
                Err(retry) => match self.flight.get(self.flight.next().wrapping_sub(1)) {
                    // The tail loss probe repeats the last packet if there is nothing new (RFC 8985
                    // §7.3).
                    Some(last) if probing => (last.seq, Bytes::new(u64::from(last.size)), true),
                    _ => {
                        self.pacer.rest();
                        self.blocked_until = retry;
                        return None;
                    }
                },
            },
        };
        Some(self.transmit(now, seq, size, repeated))
    }

    /// Passes a measurement of the network to the controller.
    pub fn on_network(&mut self, now: Time, view: &NetworkView) {
        if self.stopped {
            return;
        }
        self.cc.on_network(now, view);
        self.refresh();
    }

    /// The controller, if it is a `C` that may be steered from outside. Call
    /// [`on_steered`](Self::on_steered) afterwards.
    #[inline]
    pub fn steered<C: 'static>(&mut self) -> Option<&mut C> {
        self.cc.steered()?.downcast_mut::<C>()
    }

    /// Reads the controller's limits again after it was steered.
    pub fn on_steered(&mut self) {
        if !self.stopped {
            self.refresh();
        }
    }

    /// From now on [`take_losses`](Self::take_losses) returns packets taken for lost, whatever the
    /// controller needs.
    pub fn keep_losses(&mut self) {
        self.wants_packets = true;
    }

    /// The packets that the current acknowledgement or timer has shown to be lost; each is returned
    /// once.
    pub fn take_losses(&mut self) -> impl Iterator<Item = Lost> {
        self.lost.drain(..)
    }

    /// Stops sending.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.rto_deadline = Time::NEVER;
        self.reorder_deadline = Time::NEVER;
        self.probe_deadline = Time::NEVER;
        self.cc_timer = Time::NEVER;
        self.blocked_until = Time::NEVER;
    }

    /// Has all data of a finite source been acknowledged?
    pub fn is_done(&self) -> bool {
        self.source.is_exhausted() && self.cumulative == self.next_seq && self.next_seq > 0
    }

    /// The controller's named values.
    pub fn probe(&self, probe: &mut dyn Probe) {
        self.cc.probe(probe);
    }

    /// The controller's window and rate.
    #[inline]
    pub fn control(&self) -> Control {
        self.control
    }

    /// Round-trip statistics.
    #[inline]
    pub fn rtt_stats(&self) -> RttStats {
        self.rtt.stats()
    }

    /// Sums since the flow began.
    #[inline]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Where loss recovery stands.
    pub fn recovery(&self) -> Recovery {
        self.recovery.phase
    }

    /// Bytes in flight.
    pub fn in_flight(&self) -> Bytes {
        Bytes::new(self.in_flight)
    }

    /// The controller's value with this name, if it has one.
    pub fn named_value(&self, name: &str) -> Option<f64> {
        struct Wanted<'a>(&'a str, Option<f64>);
        impl Probe for Wanted<'_> {
            fn value(&mut self, name: &'static str, value: f64) {
                if name == self.0 {
                    self.1 = Some(value);
                }
            }
        }
        let mut wanted = Wanted(name, None);
        self.cc.probe(&mut wanted);
        wanted.1
    }

    /// How many decisions of a learned controller were ignored because a number was not finite.
    pub fn refused_decisions(&self) -> u64 {
        self.named_value("refused_decisions").unwrap_or(0.0) as u64
    }

    /// How often a guard took the flow over from a learned controller.
    pub fn guard_trips(&self) -> u64 {
        self.named_value("guard_trips").unwrap_or(0.0) as u64
    }

    fn window(&self) -> Bytes {
        match &self.prr {
            Some(prr) => prr.cwnd(),
            None => self.control.cwnd,
        }
    }

    #[inline]
    fn new_data(&mut self, now: Time) -> Result<Bytes, Time> {
        if (self.next_seq + 1) * self.config.mss.get() > self.receive_limit {
            return Err(Time::NEVER);
        }
        // A finite source keeps full packets: its receiver counts in packets.
        let is_endless = matches!(self.source, Source::Bulk | Source::OnOff { .. });
        let size = self.control.segment.filter(|_| is_endless);
        let mss = self.config.mss;
        self.source
            .take(now, size.map_or(mss, |size| size.min(mss)))
            .inspect_err(|_| self.delivery.on_app_limited(self.in_flight))
    }

    #[inline]
    fn transmit(&mut self, now: Time, seq: u64, size: Bytes, retransmission: bool) -> Packet {
        let nothing_in_flight = self.in_flight == 0;
        if nothing_in_flight {
            let idle = now.since(self.last_sent);
            let was_open = self.recovery.phase == Recovery::Open && !retransmission;
            if was_open && self.flight.next() > 0 && idle > self.rtt.rto(0) {
                self.cc.on_idle(now, idle);
                self.refresh();
            }
            self.rto_deadline = now + self.rtt.rto(self.timeouts);
        }
        let number = self.flight.next();
        let stamp = self.delivery.on_sent(now, nothing_in_flight);
        self.in_flight += size.get();
        self.last_sent = now;
        let in_flight = Bytes::new(self.in_flight);
        let tag = self.cc.on_sent(&Sent {
            now,
            number,
            size,
            in_flight,
            retransmission,
            app_limited: stamp.app_limited,
        });
        let carries = if self.wants_stamp {
            self.cc.stamp()
        } else {
            Stamp::default()
        };
        self.flight.push(Entry {
            sent: now,
            delivered: stamp.delivered,
            delivered_time: stamp.delivered_time,
            first_sent: stamp.first_sent,
            tag,
            seq,
            lost_before: self.counters.lost.get(),
            tx_in_flight: u32::try_from(self.in_flight).unwrap_or(u32::MAX),
            size: size.get() as u16,
            state: State::Outstanding,
            app_limited: stamp.app_limited,
        });
        self.counters.sent += size;
        if self.control.pacing_rate.is_some() {
            self.pacer.on_sent(now, size);
        }
        if let Some(prr) = &mut self.prr {
            prr.on_sent(size);
        }
        if self.wants_refresh {
            self.refresh();
        }
        if self.config.profile == Profile::Linux && !retransmission {
            self.arm_probe(now);
        }
        Packet {
            flow: self.config.flow,
            size: size.get() as u16,
            hops_left: 0,
            ecn: carries.ecn,
            arrived: now,
            body: Body::Data(Segment {
                number,
                seq,
                sent: now,
                queued: Duration::ZERO,
                header: carries.header,
            }),
        }
    }

    #[inline]
    fn clear_news(&mut self) {
        self.acked.clear();
        self.lost.clear();
        self.acked_bytes = 0;
        self.lost_bytes = 0;
        self.losses = Losses::default();
        self.undo = false;
    }

    #[inline]
    fn refresh(&mut self) {
        self.control = self.cc.control();
        self.cc_timer = self.cc.next_timer();
    }
}
