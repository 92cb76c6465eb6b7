//! A small host: it numbers packets, samples rates and RTTs, calls a controller as a transport
//! would, and checks the invariants of controllers after every call.

use std::collections::BTreeMap;

use crate::{
    Acked, Arrival, Bytes, Congestion, CongestionControl, Control, Counters, Duration, Ecn,
    Feedback, Header, Lost, Probe, Rate, RateSample, Receiver, Recovery, Rto, RttStats, Sent, Tag,
    Time,
};

/// The highest rate that a controller may ask for.
const MAX_RATE: Rate = Rate::from_bps(1_000_000_000_000_000);

/// The host's state of a packet in flight (draft-cheng-iccrg-delivery-rate-estimation-02, §3.2).
#[derive(Debug)]
struct Packet {
    sent: Time,
    tag: Tag,
    header: Header,
    first_sent: Time,
    delivered: Bytes,
    delivered_time: Time,
    in_flight: Bytes,
    lost: Bytes,
    app_limited: bool,
}

/// A sender without a network. A test decides which packets arrive and when.
#[derive(Debug)]
pub struct Host {
    /// The controller under test.
    pub cc: Box<dyn CongestionControl>,
    /// Is there nothing more to send?
    pub app_limited: bool,
    /// How far the receiver's clock is ahead of the sender's. `None` if acknowledgements do not say
    /// when packets arrived.
    pub clock_ahead: Option<Duration>,
    /// What routers write into the last number of a packet's header; `None` if they do not change
    /// it.
    pub written: Option<f32>,
    half: Option<Box<dyn Receiver>>,
    messages: Vec<u8>,
    mss: Bytes,
    now: Time,
    flight: BTreeMap<u64, Packet>,
    /// Packets that were taken for lost and may still arrive.
    late: BTreeMap<u64, Packet>,
    next_number: u64,
    largest_acked: u64,
    counters: Counters,
    rtt: RttStats,
    first_sent: Time,
    delivered_time: Time,
    last_heard: Time,
    recovery: Recovery,
    /// The number of the first packet that was sent after the last reduction.
    recovery_point: u64,
    /// The number of lost packets that were not sent again yet.
    repairs: usize,
    timeouts: u32,
}

impl Host {
    /// The number of packets taken for lost that are remembered.
    const MAX_LATE: usize = 256;

    /// A host at time zero that sends packets of `mss`.
    pub fn new(cc: Box<dyn CongestionControl>, mss: Bytes) -> Host {
        let host = Host {
            cc,
            app_limited: false,
            clock_ahead: Some(Duration::ZERO),
            written: None,
            half: None,
            messages: Vec::new(),
            mss,
            now: Time::ZERO,
            flight: BTreeMap::new(),
            late: BTreeMap::new(),
            next_number: 0,
            largest_acked: 0,
            counters: Counters::default(),
            rtt: RttStats::default(),
            first_sent: Time::ZERO,
            delivered_time: Time::ZERO,
            last_heard: Time::ZERO,
            recovery: Recovery::Open,
            recovery_point: 0,
            repairs: 0,
            timeouts: 0,
        };
        host.check();
        host
    }

    /// The host with a half of the scheme at the receiver.
    #[must_use]
    pub fn with_receiver(mut self, half: Option<Box<dyn Receiver>>) -> Host {
        self.half = half;
        self
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The sums of bytes sent, delivered and lost so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The numbers of the packets in flight, the oldest first.
    pub fn flight(&self) -> impl Iterator<Item = u64> + '_ {
        self.flight.keys().copied()
    }

    /// The numbers of packets that were taken for lost and have not arrived, the oldest first.
    pub fn late(&self) -> impl Iterator<Item = u64> + '_ {
        self.late.keys().copied()
    }

    /// Bytes in flight.
    pub fn in_flight(&self) -> Bytes {
        self.mss * self.flight.len() as u64
    }

    /// Does the window allow a packet?
    pub fn may_send(&self) -> bool {
        self.in_flight() + self.mss <= self.cc.control().cwnd
    }

    /// Sends a packet, even if the window does not allow it, as probes do. Returns its number.
    pub fn send(&mut self) -> u64 {
        if self.flight.is_empty() {
            (self.first_sent, self.delivered_time) = (self.now, self.now);
            let idle = self.now.since(self.last_heard);
            if self.recovery != Recovery::Loss && idle > self.timeout() {
                self.cc.on_idle(self.now, idle);
            }
        }
        let number = self.next_number;
        let retransmission = self.repairs > 0;
        self.repairs = self.repairs.saturating_sub(1);
        self.next_number += 1;
        self.counters.sent += self.mss;
        let in_flight = self.in_flight() + self.mss;
        let tag = self.cc.on_sent(&Sent {
            now: self.now,
            number,
            size: self.mss,
            in_flight,
            retransmission,
            app_limited: self.app_limited,
        });
        let header = self.cc.stamp().header;
        let packet = Packet {
            sent: self.now,
            tag,
            header,
            first_sent: self.first_sent,
            delivered: self.counters.delivered,
            delivered_time: self.delivered_time,
            in_flight,
            lost: self.counters.lost,
            app_limited: self.app_limited,
        };
        self.flight.insert(number, packet);
        self.check();
        number
    }

    /// Reports arrivals (of packets marked `ecn`) and losses. Numbers that are neither in flight
    /// nor late are ignored. `alter` may change the feedback before the controller sees it.
    pub fn feedback(
        &mut self,
        acked: &[u64],
        lost: &[u64],
        ecn: Ecn,
        alter: impl FnOnce(&mut Feedback<'_>),
    ) {
        let limited = !self.app_limited && self.in_flight() + self.mss > self.cc.control().cwnd;
        let prior_in_flight = self.in_flight();
        let mut congestion = None;

        let lost: Vec<Lost> = lost.iter().filter_map(|&n| self.lose(n)).collect();
        if lost.iter().any(|l| l.number >= self.recovery_point) {
            congestion = Some(Congestion::Loss);
        }
        if !lost.is_empty() && self.recovery != Recovery::Loss {
            self.recovery = Recovery::Recovery;
        }

        let packets: Vec<(u64, Packet)> = acked
            .iter()
            .filter_map(|&n| Some((n, self.receive(n)?)))
            .collect();
        self.counters.delivered += self.mss * packets.len() as u64;
        if ecn == Ecn::Ce && !packets.is_empty() {
            self.counters.ce += self.mss * packets.len() as u64;
            if congestion.is_none() && packets.iter().any(|(n, _)| *n >= self.recovery_point) {
                congestion = Some(Congestion::Ecn);
                self.recovery = if self.recovery == Recovery::Open {
                    Recovery::Cwr
                } else {
                    self.recovery
                };
            }
        }
        let (mut rtt, mut rate) = (None, None);
        if let Some((number, newest)) = packets.iter().max_by_key(|(n, _)| n) {
            self.timeouts = 0;
            self.largest_acked = self.largest_acked.max(*number);
            rtt = Some(self.sample_rtt(newest));
            rate = Some(self.sample_rate(newest));
        }
        if congestion.is_some() {
            self.recovery_point = self.next_number;
        } else if rtt.is_some() && self.largest_acked >= self.recovery_point && self.repairs == 0 {
            self.recovery = Recovery::Open;
        }

        let acked: Vec<Acked> = packets
            .iter()
            .map(|(n, p)| self.acked(*n, p, ecn))
            .collect();
        packets.iter().for_each(|(n, p)| self.arrive(*n, p, ecn));
        let message = std::mem::take(&mut self.messages);
        let mut f = Feedback {
            now: self.now,
            acked: &acked,
            lost: &lost,
            acked_bytes: self.mss * acked.len() as u64,
            lost_bytes: self.mss * lost.len() as u64,
            rtt,
            rtt_stats: self.rtt,
            rate,
            counters: self.counters,
            in_flight: self.in_flight(),
            prior_in_flight,
            largest_acked: self.largest_acked,
            next_number: self.next_number,
            cwnd_limited: limited,
            app_limited: self.app_limited,
            recovery: self.recovery,
            congestion,
            undo: false,
            message: &message,
        };
        alter(&mut f);
        if f.undo {
            f.recovery = Recovery::Open;
            (self.recovery, self.repairs) = (Recovery::Open, 0);
        }
        self.last_heard = self.now;
        self.cc.on_feedback(&f);
        self.check();
    }

    /// Adds `message` to the next feedback, as if the receiver's half had sent it.
    pub fn pretend_message(&mut self, message: &[u8]) {
        self.messages.extend_from_slice(message);
    }

    /// The retransmission timer runs out.
    pub fn time_out(&mut self) {
        let prior_in_flight = self.in_flight();
        let flight: Vec<u64> = self.flight().collect();
        let lost: Vec<Lost> = flight.into_iter().filter_map(|n| self.lose(n)).collect();
        self.timeouts += 1;
        self.recovery = Recovery::Loss;
        self.recovery_point = self.next_number;
        self.cc.on_rto(&Rto {
            now: self.now,
            lost: &lost,
            prior_in_flight,
            consecutive: self.timeouts,
            next_number: self.next_number,
        });
        self.check();
    }

    /// Lets time pass, in which the timers of the controller and of its receiver's half run.
    ///
    /// # Panics
    /// If a timer is due again at once, because time would then stop.
    pub fn wait_until(&mut self, then: Time) {
        loop {
            let due = self.cc.next_timer();
            let due_there = self.half.as_ref().map_or(Time::NEVER, |h| h.next_timer());
            if due.min(due_there) > then {
                break;
            }
            self.now = self.now.max(due.min(due_there));
            if let Some(half) = self.half.as_mut().filter(|_| due_there <= self.now) {
                half.on_timer(self.now);
                let next = half.next_timer();
                assert!(next > self.now, "timer due at {next:?}: {half:?}");
                self.collect_message();
            }
            if due <= self.now {
                self.cc.on_timer(self.now);
                let next = self.cc.next_timer();
                assert!(
                    next > self.now,
                    "timer due at {next:?} after on_timer at {:?}: {:?}",
                    self.now,
                    self.cc
                );
                self.check();
            }
        }
        self.now = self.now.max(then);
    }

    /// A packet arrives at the receiver's half of the scheme.
    fn arrive(&mut self, number: u64, packet: &Packet, ecn: Ecn) {
        let Some(half) = &mut self.half else { return };
        half.on_data(&Arrival {
            now: self.now,
            number,
            size: self.mss,
            sent: packet.sent,
            ecn,
            header: packet.header,
        });
        self.collect_message();
    }

    /// # Panics
    /// If the message of the receiver's half does not fit into a packet.
    fn collect_message(&mut self) {
        let Some(half) = &mut self.half else { return };
        let before = self.messages.len();
        half.take_message(&mut self.messages);
        let length = self.messages.len() - before;
        assert!(
            length as u64 <= self.mss.get(),
            "a message of {length} bytes: {half:?}"
        );
    }

    /// The value that the controller reports under `name`.
    pub fn reading(&self, name: &str) -> Option<f64> {
        let mut readings = Readings::default();
        self.cc.probe(&mut readings);
        readings.0.iter().find(|(n, _)| *n == name).map(|&(_, v)| v)
    }

    /// # Panics
    /// If the controller breaks an invariant.
    fn check(&self) {
        let Control {
            cwnd, pacing_rate, ..
        } = self.cc.control();
        assert!(
            cwnd >= self.mss,
            "cwnd {cwnd:?} is below one packet: {:?}",
            self.cc
        );
        if let Some(rate) = pacing_rate {
            assert!(
                Rate::ZERO < rate && rate <= MAX_RATE,
                "pacing rate {rate:?}: {:?}",
                self.cc
            );
        }
        let mut readings = Readings::default();
        self.cc.probe(&mut readings);
        for (name, value) in readings.0 {
            assert!(value.is_finite(), "{name} is {value}: {:?}", self.cc);
        }
    }

    fn receive(&mut self, number: u64) -> Option<Packet> {
        self.flight.remove(&number).or_else(|| {
            let packet = self.late.remove(&number)?;
            self.counters.lost = self.counters.lost.saturating_sub(self.mss);
            Some(packet)
        })
    }

    fn lose(&mut self, number: u64) -> Option<Lost> {
        let packet = self.flight.remove(&number)?;
        self.counters.lost += self.mss;
        self.repairs += 1;
        let lost = Lost {
            number,
            size: self.mss,
            sent: packet.sent,
            tag: packet.tag,
            tx_in_flight: packet.in_flight,
            lost_before: packet.lost,
        };
        self.late.insert(number, packet);
        if self.late.len() > Self::MAX_LATE {
            self.late.pop_first();
        }
        Some(lost)
    }

    fn acked(&self, number: u64, packet: &Packet, ecn: Ecn) -> Acked {
        Acked {
            number,
            size: self.mss,
            sent: packet.sent,
            received: self.clock_ahead.map(|ahead| self.now + ahead),
            tag: packet.tag,
            ecn,
            echo: self.written.unwrap_or(packet.header.0[2]),
        }
    }

    /// RFC 6298 §2.
    fn timeout(&self) -> Duration {
        (self.rtt.smoothed + self.rtt.variation * 4).max(Duration::from_secs(1))
    }

    /// RFC 6298 §2.
    fn sample_rtt(&mut self, packet: &Packet) -> Duration {
        let rtt = self.now.since(packet.sent);
        let s = &mut self.rtt;
        if s.smoothed.is_zero() {
            *s = RttStats {
                latest: rtt,
                smoothed: rtt,
                variation: rtt / 2,
                min: rtt,
            };
        } else {
            s.variation = (s.variation * 3 + s.smoothed.abs_diff(rtt)) / 4;
            s.smoothed = (s.smoothed * 7 + rtt) / 8;
            (s.latest, s.min) = (rtt, s.min.min(rtt));
        }
        rtt
    }

    /// draft-cheng-iccrg-delivery-rate-estimation-02, §3.3.
    fn sample_rate(&mut self, packet: &Packet) -> RateSample {
        self.first_sent = packet.sent;
        self.delivered_time = self.now;
        RateSample {
            delivered: self.counters.delivered - packet.delivered,
            interval: packet
                .sent
                .since(packet.first_sent)
                .max(self.now.since(packet.delivered_time)),
            prior_delivered: packet.delivered,
            app_limited: packet.app_limited,
            tx_in_flight: packet.in_flight,
            lost: self.counters.lost.saturating_sub(packet.lost),
        }
    }
}

/// All values that a controller reports through [`Probe`].
#[derive(Debug, Default)]
pub struct Readings(pub Vec<(&'static str, f64)>);

impl Probe for Readings {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}
