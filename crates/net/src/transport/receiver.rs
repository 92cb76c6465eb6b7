//! The receiving side: tracks the segments that arrived, and acknowledges them.

use std::collections::VecDeque;

use headway_cc::{Arrival, Bytes, Duration, Ecn, Need, Time};

use super::{Profile, acknowledges_every_packet};
use crate::{Ack, Segment};

/// The configuration of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// Which transport it belongs to.
    pub profile: Profile,
    /// The most bytes that it accepts beyond what has arrived in order (RFC 9293 §3.8.6). Linux's
    /// value is half of the maximum in `tcp_rmem`.
    pub max_window: Bytes,
    /// Whether every packet is acknowledged at once.
    pub every_packet: bool,
}

impl ReceiverConfig {
    /// The default receiver of a profile.
    pub const fn new(profile: Profile) -> ReceiverConfig {
        let max_window = match profile {
            Profile::Simple => Bytes::new(u32::MAX as u64),
            Profile::Linux => Bytes::new(6_291_456 / 2),
        };
        ReceiverConfig {
            profile,
            max_window,
            every_packet: matches!(profile, Profile::Simple),
        }
    }

    /// The same receiver with this window, if one is given.
    pub fn with_window(self, window: Option<Bytes>) -> ReceiverConfig {
        ReceiverConfig {
            max_window: window.unwrap_or(self.max_window),
            ..self
        }
    }

    /// The same receiver for a scheme with these needs: if the scheme looks at single packets, each
    /// is acknowledged.
    pub fn serving(self, needs: &[Need]) -> ReceiverConfig {
        ReceiverConfig {
            every_packet: acknowledges_every_packet(self.profile, needs),
            ..self
        }
    }
}

/// The receiving side of one flow.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    /// One more than the largest number that arrived, and which of the 64 before the largest
    /// arrived.
    next_number: u64,
    earlier: u64,
    stream: Reassembly,
    received_bytes: u64,
    half: Option<Box<dyn headway_cc::Receiver>>,
    delayed: Option<Delayed>,
    arrivals: u64,
}

/// An acknowledgement that waits for a second packet or for its time.
#[derive(Debug)]
struct Delayed {
    ack: Ack,
    due: Time,
}

impl Receiver {
    /// Segments further than this beyond a gap are not tracked.
    const FARTHEST_AHEAD: u64 = 1 << 22;
    const LARGEST_NUMBER: u64 = 1 << 62;
    /// Linux's `TCP_DELACK_MIN`.
    const DELAYED_ACK: Duration = Duration::from_millis(40);
    /// Linux acknowledges each of the first packets (`TCP_MAX_QUICKACKS`).
    const QUICK_ACKS: u64 = 16;
    /// Linux begins with a window of 64 kB, which may double each round trip.
    const INITIAL_WINDOW: u64 = 65_535;

    /// A receiver that has received nothing; `half` is the scheme's own part, if it has one.
    pub fn new(config: ReceiverConfig, half: Option<Box<dyn headway_cc::Receiver>>) -> Receiver {
        Receiver {
            config,
            next_number: 0,
            earlier: 0,
            stream: Reassembly::default(),
            received_bytes: 0,
            half,
            delayed: None,
            arrivals: 0,
        }
    }

    /// A data packet arrives. Returns the acknowledgement to send now, if one is due; none for a
    /// packet that no sender can have sent.
    #[inline]
    pub fn on_data(&mut self, now: Time, segment: &Segment, size: Bytes, ecn: Ecn) -> Option<Ack> {
        // No sender of ours is so far ahead: the packet is forged or damaged.
        let ahead = segment.seq.saturating_sub(self.stream.next);
        if ahead > Self::FARTHEST_AHEAD || segment.number > Self::LARGEST_NUMBER {
            return None;
        }
        let earlier = self.note_number(segment.number);
        let in_order = self.stream.insert(segment.seq);
        if let Some(half) = &mut self.half {
            half.on_data(&Arrival {
                now,
                number: segment.number,
                size,
                sent: segment.sent,
                ecn,
                header: segment.header,
            });
        }
        let mut ack = Ack {
            number: segment.number,
            earlier,
            cumulative: self.stream.next,
            received: now,
            echo: segment.header.0[2],
            window: 0,
            message: Ack::NO_MESSAGE,
            ecn,
        };
        self.received_bytes += size.get();
        ack.window = self.window();
        if self.config.profile == Profile::Simple {
            return Some(ack);
        }
        self.arrivals += 1;
        self.maybe_delay(now, ack, in_order)
    }

    /// When to call [`on_timer`](Self::on_timer) next; [`Time::NEVER`] for not at all.
    #[inline]
    pub fn next_timer(&self) -> Time {
        let half = self.half.as_ref().map_or(Time::NEVER, |h| h.next_timer());
        self.delayed
            .as_ref()
            .map_or(Time::NEVER, |d| d.due)
            .min(half)
    }

    /// A time that [`next_timer`](Self::next_timer) gave has come. Returns the acknowledgement to
    /// send, if one is due.
    pub fn on_timer(&mut self, now: Time) -> Option<Ack> {
        if let Some(half) = &mut self.half
            && half.next_timer() <= now
        {
            half.on_timer(now);
        }
        self.delayed.take_if(|d| d.due <= now).map(|d| d.ack)
    }

    /// An acknowledgement of nothing new, which carries a message of the scheme's own part.
    pub fn message_ack(&self, now: Time) -> Ack {
        let number = self.next_number.saturating_sub(1);
        Ack {
            number,
            earlier: self.earlier,
            cumulative: self.stream.next,
            received: now,
            echo: 0.0,
            window: self.window(),
            message: Ack::NO_MESSAGE,
            ecn: Ecn::NotEct,
        }
    }

    /// The scheme's own part.
    pub fn half_mut(&mut self) -> Option<&mut (dyn headway_cc::Receiver + 'static)> {
        self.half.as_deref_mut()
    }

    /// Segments received without a gap.
    pub fn contiguous(&self) -> u64 {
        self.stream.next
    }

    /// RFC 1122 §4.2.3.2, RFC 5681 §4.2: acknowledges every second packet, and packets out of order
    /// at once. RFC 8257 §3.2: an acknowledgement never covers both marked and unmarked packets.
    fn maybe_delay(&mut self, now: Time, ack: Ack, in_order: bool) -> Option<Ack> {
        let waits = in_order && self.arrivals > Self::QUICK_ACKS && !self.config.every_packet;
        let due = if waits { now + Self::DELAYED_ACK } else { now };
        match self.delayed.take() {
            Some(held) if (held.ack.ecn == Ecn::Ce) != (ack.ecn == Ecn::Ce) => {
                self.delayed = Some(Delayed { ack, due });
                Some(held.ack)
            }
            None if waits => {
                self.delayed = Some(Delayed { ack, due });
                None
            }
            _ => Some(ack),
        }
    }

    /// Notes an arrival. Returns which of the 64 numbers before it have arrived.
    #[inline]
    fn note_number(&mut self, number: u64) -> u64 {
        if number >= self.next_number {
            // The numbers in between have not arrived; the last largest becomes one of the earlier
            // ones.
            let shift = number - self.next_number;
            self.earlier = match shift {
                0..=62 => (self.earlier << 1 | u64::from(self.next_number > 0)) << shift,
                63 => u64::from(self.next_number > 0) << 63,
                _ => 0,
            };
            self.next_number = number + 1;
            return self.earlier;
        }
        let behind = self.next_number - 1 - number;
        if (1..=64).contains(&behind) {
            self.earlier |= 1 << (behind - 1);
        }
        self.bits_before(number)
    }

    /// Which of the 64 numbers before `number`, not beyond the largest, have arrived.
    fn bits_before(&self, number: u64) -> u64 {
        let behind = self.next_number - 1 - number;
        if behind < 64 {
            self.earlier >> behind
        } else {
            0
        }
    }

    /// In Linux the window grows as fast as data arrives, up to the socket's limit.
    fn window(&self) -> u32 {
        let window = match self.config.profile {
            Profile::Simple => u64::MAX,
            Profile::Linux => Self::INITIAL_WINDOW + 2 * self.received_bytes,
        };
        let most = self.config.max_window.get();
        u32::try_from(window.min(most)).unwrap_or(u32::MAX)
    }
}

/// Which segments have arrived: all below `next`, and some beyond.
#[derive(Debug, Default)]
struct Reassembly {
    next: u64,
    /// Whether segment `next + i` has arrived. The first is always false.
    beyond: VecDeque<bool>,
}

impl Reassembly {
    /// Notes a segment. Returns true if it was the next one and left no gap.
    #[inline]
    fn insert(&mut self, seq: u64) -> bool {
        if seq == self.next && self.beyond.is_empty() {
            self.next += 1;
            return true;
        }
        if seq < self.next {
            return false;
        }
        let index = (seq - self.next) as usize;
        if self.beyond.len() <= index {
            self.beyond.resize(index + 1, false);
        }
        self.beyond[index] = true;
        while self.beyond.front() == Some(&true) {
            self.beyond.pop_front();
            self.next += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u64, seq: u64) -> Segment {
        Segment {
            number,
            seq,
            sent: Time::ZERO,
            queued: Duration::ZERO,
            header: Default::default(),
        }
    }

    fn arrive(r: &mut Receiver, ms: u64, number: u64, seq: u64) -> Option<Ack> {
        let now = Time::from_millis(ms);
        r.on_data(now, &segment(number, seq), Bytes::new(1500), Ecn::NotEct)
    }

    #[test]
    fn acknowledgements_cover_gaps_and_late_arrivals() {
        let mut r = Receiver::new(ReceiverConfig::new(Profile::Simple), None);
        let a = arrive(&mut r, 0, 0, 0).unwrap();
        assert_eq!((a.number, a.earlier, a.cumulative), (0, 0, 1));
        let a = arrive(&mut r, 1, 2, 2).unwrap();
        assert_eq!((a.number, a.earlier, a.cumulative), (2, 0b10, 1));
        let a = arrive(&mut r, 2, 3, 1).unwrap(); // segment 1 again, as number 3
        assert_eq!((a.number, a.earlier, a.cumulative), (3, 0b101, 3));
        let a = arrive(&mut r, 3, 1, 1).unwrap(); // and the original, late
        assert_eq!((a.number, a.earlier, a.cumulative), (1, 0b1, 3));
        let a = arrive(&mut r, 4, 68, 3).unwrap();
        assert_eq!((a.number, a.earlier, a.cumulative), (68, 0, 4));
    }

    #[test]
    fn linux_acknowledges_every_second_packet_or_after_40_ms() {
        let mut r = Receiver::new(ReceiverConfig::new(Profile::Linux), None);
        for i in 0..16 {
            assert!(arrive(&mut r, i, i, i).is_some());
        }
        assert!(arrive(&mut r, 100, 16, 16).is_none());
        assert!(arrive(&mut r, 101, 17, 17).is_some());
        assert!(arrive(&mut r, 102, 18, 18).is_none());
        assert_eq!(r.next_timer(), Time::from_millis(142));
        assert_eq!(r.on_timer(Time::from_millis(142)).unwrap().number, 18);
        assert_eq!(r.next_timer(), Time::NEVER);
        assert!(
            arrive(&mut r, 150, 20, 20).is_some(),
            "a gap is acknowledged at once"
        );
    }

    #[test]
    fn per_packet_schemes_have_each_packet_acknowledged() {
        for (need, every) in [
            (Need::PerPacket, true),
            (Need::ReceiverTime, true),
            (Need::Header, true),
            (Need::EcnEcho, false),
            (Need::RateSample, false),
        ] {
            let config = ReceiverConfig::new(Profile::Linux).serving(&[need]);
            let mut r = Receiver::new(config, None);
            let acks = (0..20).filter_map(|i| arrive(&mut r, i, i, i)).count();
            assert_eq!(acks, if every { 20 } else { 18 }, "{need:?}");
        }
    }

    /// RFC 8257 §3.2, figure 1: when the state changes, in either direction, the held
    /// acknowledgement leaves with the old state, and the packet that changed it waits for the next
    /// one.
    #[test]
    fn a_change_of_marks_releases_the_held_acknowledgement() {
        let mut r = Receiver::new(ReceiverConfig::new(Profile::Linux), None);
        let mut at = |number: u64, seq: u64, ecn| {
            let now = Time::from_millis(number);
            let ack = r.on_data(now, &segment(number, seq), Bytes::new(1500), ecn);
            (ack.map(|a| (a.number, a.ecn)), r.next_timer() == now)
        };
        use Ecn::{Ce, Ect0};
        for i in 0..16 {
            at(i, i, Ect0);
        }
        for (number, ecn, acknowledged) in [
            (16, Ect0, None),
            (17, Ce, Some((16, Ect0))),
            (18, Ce, Some((18, Ce))),
            (19, Ce, None),
            (20, Ect0, Some((19, Ce))),
            (21, Ect0, Some((21, Ect0))),
            (22, Ect0, None),
        ] {
            assert_eq!(at(number, number, ecn), (acknowledged, false), "{number}");
        }
        // It is out of order, so both are due: the second one as soon as the host asks.
        assert_eq!(at(24, 24, Ce), (Some((22, Ect0)), true));
        let ack = r.on_timer(Time::from_millis(24)).unwrap();
        assert_eq!((ack.number, ack.ecn), (24, Ce));
    }
}
