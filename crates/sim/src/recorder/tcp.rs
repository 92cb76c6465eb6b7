//! Converts a flow to TCP: byte numbers, SACK blocks and timestamps, which the simulator's own
//! packets do not have.

use std::collections::{BTreeMap, VecDeque};

use headway_cc::{Ecn, Time};
use headway_net::{Ack, Packet, Segment};
use headway_record::recording::{Endpoint, TcpPacket};

/// Both ends of one flow.
#[derive(Debug)]
pub(super) struct TcpFlow {
    sender: Endpoint,
    receiver: Endpoint,
    /// Bytes of data in a full segment.
    full: u64,
    /// The one shorter segment, at the end of a finite flow: its number and its bytes.
    short: Option<(u64, u64)>,
    arrived: Arrived,
    /// The receiver's TS.Recent, and the byte up to which it has acknowledged (RFC 7323 §4.3).
    receiver_recent: u32,
    last_acked: u64,
    sender_recent: u32,
    data: OnWay<u64, u32>,
    acks: OnWay<(Time, u64), AckFields>,
    data_hops: u8,
    ack_hops: u8,
}

/// The TCP fields of an acknowledgement that its packet does not carry.
#[derive(Clone, Copy, Debug, Default)]
struct AckFields {
    timestamp: u32,
    echo: u32,
    sack: [(u32, u32); 3],
    blocks: usize,
}

/// The sequence number of the first byte: no handshake is recorded, but it would have used the
/// number before.
const FIRST_BYTE: u32 = 1;
/// Linux's largest window scale (RFC 7323 §2.3); without a recorded handshake, readers do not know
/// it.
const WINDOW_SCALE: u32 = 14;

impl TcpFlow {
    /// A flow with packets of `packet_size` bytes between these ends.
    pub(super) fn new(sender: Endpoint, receiver: Endpoint, packet_size: u64) -> TcpFlow {
        TcpFlow {
            sender,
            receiver,
            full: payload_of(packet_size),
            short: None,
            arrived: Arrived::default(),
            receiver_recent: 0,
            last_acked: 0,
            sender_recent: 0,
            data: OnWay::default(),
            acks: OnWay::default(),
            data_hops: 0,
            ack_hops: 0,
        }
    }

    /// The first byte of a segment, from 0.
    fn byte(&self, segment: u64) -> u64 {
        match self.short {
            Some((short, payload)) if segment > short => short * self.full + payload,
            _ => segment * self.full,
        }
    }

    fn number(&self, segment: u64) -> u32 {
        FIRST_BYTE.wrapping_add(self.byte(segment) as u32)
    }

    /// A data packet leaves.
    pub(super) fn data_sent(&mut self, segment: &Segment, packet: &Packet) -> TcpPacket<'static> {
        let payload = payload_of(u64::from(packet.size));
        if payload < self.full {
            self.short = Some((segment.seq, payload));
        }
        self.data_hops = packet.hops_left;
        self.data.push(segment.number, self.sender_recent);
        self.data_packet(segment, packet, self.sender_recent, 0)
    }

    /// A data packet arrives.
    pub(super) fn data_arrived(
        &mut self,
        segment: &Segment,
        packet: &Packet,
    ) -> TcpPacket<'static> {
        let echo = self.data.take(&segment.number).unwrap_or_default();
        self.arrived.insert(segment.seq);
        if segment.seq <= self.last_acked {
            self.receiver_recent = self.receiver_recent.max(millis(segment.sent));
        }
        self.data_packet(segment, packet, echo, self.data_hops)
    }

    fn data_packet(
        &self,
        segment: &Segment,
        packet: &Packet,
        echo: u32,
        hops: u8,
    ) -> TcpPacket<'static> {
        TcpPacket {
            from: self.sender,
            to: self.receiver,
            seq: self.number(segment.seq),
            ack: FIRST_BYTE,
            payload: payload_of(u64::from(packet.size)) as u16,
            window: u16::MAX,
            ecn: packet.ecn,
            ece: false,
            timestamp: millis(segment.sent),
            echo,
            sack: &[],
            id: segment.number as u16,
            hops,
        }
    }

    /// An acknowledgement leaves.
    pub(super) fn ack_sent<'a>(
        &mut self,
        now: Time,
        ack: &Ack,
        packet: &Packet,
        sack: &'a mut [(u32, u32); 3],
    ) -> TcpPacket<'a> {
        self.ack_hops = packet.hops_left;
        self.last_acked = ack.cumulative;
        self.arrived.forget_below(ack.cumulative);
        let mut fields = AckFields {
            timestamp: millis(now),
            echo: self.receiver_recent,
            ..AckFields::default()
        };
        for (from, to) in self.arrived.blocks() {
            fields.sack[fields.blocks] = (self.number(from), self.number(to));
            fields.blocks += 1;
        }
        self.acks.push((ack.received, ack.number), fields);
        self.ack_packet(ack, fields, 0, sack)
    }

    /// An acknowledgement arrives.
    pub(super) fn ack_arrived<'a>(
        &mut self,
        ack: &Ack,
        sack: &'a mut [(u32, u32); 3],
    ) -> TcpPacket<'a> {
        let fields = self
            .acks
            .take(&(ack.received, ack.number))
            .unwrap_or_default();
        self.sender_recent = self.sender_recent.max(fields.timestamp);
        self.ack_packet(ack, fields, self.ack_hops, sack)
    }

    fn ack_packet<'a>(
        &self,
        ack: &Ack,
        fields: AckFields,
        hops: u8,
        sack: &'a mut [(u32, u32); 3],
    ) -> TcpPacket<'a> {
        *sack = fields.sack;
        TcpPacket {
            from: self.receiver,
            to: self.sender,
            seq: FIRST_BYTE,
            ack: self.number(ack.cumulative),
            payload: 0,
            window: u16::try_from(ack.window >> WINDOW_SCALE).unwrap_or(u16::MAX),
            ecn: Ecn::NotEct,
            ece: ack.ecn == Ecn::Ce,
            timestamp: fields.timestamp,
            echo: fields.echo,
            sack: &sack[..fields.blocks],
            id: ack.number as u16,
            hops,
        }
    }
}

/// The data in a packet of this size; one byte if the packet is too small for its headers.
fn payload_of(size: u64) -> u64 {
    size.saturating_sub(u64::from(TcpPacket::HEADERS)).max(1)
}

/// The clock of the timestamps option, in ms as in Linux.
fn millis(at: Time) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}

/// Segments that have arrived beyond a gap.
#[derive(Debug, Default)]
struct Arrived {
    /// Runs of consecutive segments: the first of each, and the one after its last.
    runs: BTreeMap<u64, u64>,
    /// Segments below this one have arrived without a gap.
    next: u64,
    /// The newest arrivals, the last first, and one duplicate.
    newest: VecDeque<u64>,
    repeated: Option<u64>,
}

impl Arrived {
    /// How many arrivals back runs are reported repeatedly (RFC 2018 §4).
    const NEWEST: usize = 16;

    fn insert(&mut self, segment: u64) {
        let before = self
            .runs
            .range(..=segment)
            .next_back()
            .map(|(&a, &b)| (a, b));
        self.repeated = None;
        if segment < self.next || before.is_some_and(|(_, end)| segment < end) {
            self.repeated = Some(segment);
            return;
        }
        let start = match before {
            Some((start, end)) if end == segment => start,
            _ => segment,
        };
        let end = self.runs.remove(&(segment + 1)).unwrap_or(segment + 1);
        self.runs.insert(start, end);
        self.newest.truncate(Self::NEWEST - 1);
        self.newest.push_front(segment);
    }

    fn forget_below(&mut self, next: u64) {
        self.next = self.next.max(next);
        while let Some(run) = self.runs.first_entry()
            && *run.key() < self.next
        {
            run.remove();
        }
    }

    /// Up to three blocks: a duplicate (RFC 2883), then runs, the newest first.
    fn blocks(&mut self) -> Vec<(u64, u64)> {
        let mut blocks: Vec<(u64, u64)> = Vec::with_capacity(3);
        blocks.extend(self.repeated.take().map(|segment| (segment, segment + 1)));
        for &segment in &self.newest {
            let run = self.runs.range(..=segment).next_back();
            if let Some((&start, &end)) = run
                && segment < end
                && !blocks.contains(&(start, end))
                && blocks.len() < 3
            {
                blocks.push((start, end));
            }
        }
        blocks
    }
}

/// Data about packets under way, by a key that only grows.
#[derive(Debug)]
struct OnWay<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for OnWay<K, V> {
    fn default() -> OnWay<K, V> {
        OnWay(VecDeque::new())
    }
}

impl<K: Ord, V> OnWay<K, V> {
    /// If more packets are under way, the oldest are taken for lost.
    const MOST: usize = 1 << 17;

    fn push(&mut self, key: K, value: V) {
        if self.0.len() == Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back((key, value));
    }

    fn take(&mut self, key: &K) -> Option<V> {
        let index = self.0.binary_search_by(|(k, _)| k.cmp(key)).ok()?;
        self.0.remove(index).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2018 §5, cases 2 and 3; a segment stands for each of its 500 bytes.
    #[test]
    fn sack_blocks_match_rfc_2018() {
        let mut arrived = Arrived::default();
        arrived.forget_below(10); // 5000
        for segment in 11..=17 {
            arrived.insert(segment);
            assert_eq!(arrived.blocks(), [(11, segment + 1)]);
        }
        let mut arrived = Arrived::default();
        arrived.forget_below(11); // 5500; 6000, 7000 and 8000 are lost
        arrived.insert(12);
        assert_eq!(arrived.blocks(), [(12, 13)]);
        arrived.insert(14);
        assert_eq!(arrived.blocks(), [(14, 15), (12, 13)]);
        arrived.insert(16);
        assert_eq!(arrived.blocks(), [(16, 17), (14, 15), (12, 13)]);
        arrived.insert(13); // the fourth packet, received out of order
        assert_eq!(arrived.blocks(), [(12, 15), (16, 17)]);
        arrived.insert(11);
        arrived.forget_below(15);
        assert_eq!(arrived.blocks(), [(16, 17)]);
    }

    /// RFC 2883 §4.1.1: the repeated segment comes first.
    #[test]
    fn duplicates_are_reported_first() {
        let mut arrived = Arrived::default();
        arrived.forget_below(3);
        arrived.insert(5);
        arrived.insert(1);
        assert_eq!(arrived.blocks(), [(1, 2), (5, 6)]);
        assert_eq!(arrived.blocks(), [(5, 6)]);
    }
}
