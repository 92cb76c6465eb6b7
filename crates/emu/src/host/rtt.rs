//! The RTT of a TCP flow as it is seen on the way.

use std::collections::VecDeque;

use etherparse::{IpNumber, IpSlice, TcpSlice};
use headway_cc::{Duration, Time};

/// Takes RTT samples of one TCP connection from its packets, as the kernel does without looking at
/// selective acknowledgements: the time from a segment to the acknowledgement that ends where it does.
/// Nothing is learnt of segments that were sent twice (Karn's rule, RFC 6298 §3), nor from an
/// acknowledgement that follows duplicates: it fills a gap, and what it ends with has waited for that.
#[derive(Debug, Default)]
pub struct TcpRtt {
    /// What is not acknowledged yet, by sequence number.
    flight: VecDeque<Sent>,
    /// Where the newest data ends, and what has been acknowledged; unknown before the first of either.
    highest: Option<u32>,
    acknowledged: Option<u32>,
    /// A duplicate acknowledgement has come since the last that acknowledged something.
    has_gap: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    begin: u32,
    end: u32,
    at: Time,
    repeated: bool,
}

/// What matters of a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    seq: u32,
    ack: Option<u32>,
    /// Bytes of data.
    length: u32,
    /// SYN, FIN or RST: not a packet to measure.
    is_control: bool,
}

/// Is `a` before `b`? Sequence numbers wrap around (RFC 9293 §3.4).
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl TcpRtt {
    /// No window of TCP holds more packets of 1500 bytes (1 GB).
    const MOST_IN_FLIGHT: usize = 1 << 20;

    /// An IP packet towards the receiver enters the network. Whatever is not a TCP segment with data is
    /// left alone.
    pub fn on_data(&mut self, now: Time, packet: &[u8]) {
        let Some(segment) = segment(packet).filter(|s| s.length > 0 && !s.is_control) else {
            return;
        };
        let (begin, end) = (segment.seq, segment.seq.wrapping_add(segment.length));
        if self.highest.is_some_and(|highest| before(begin, highest)) {
            let overlaps = |s: &&mut Sent| before(s.begin, end) && before(begin, s.end);
            for sent in self.flight.iter_mut().filter(overlaps) {
                sent.repeated = true;
            }
            return;
        }
        if self.flight.len() == Self::MOST_IN_FLIGHT {
            self.flight.clear();
        }
        self.highest = Some(end);
        self.flight.push_back(Sent {
            begin,
            end,
            at: now,
            repeated: false,
        });
    }

    /// An IP packet towards the sender leaves the network. Returns an RTT if it gives a sample.
    pub fn on_ack(&mut self, now: Time, packet: &[u8]) -> Option<Duration> {
        let segment = segment(packet).filter(|s| !s.is_control)?;
        let ack = segment.ack?;
        match self.acknowledged {
            Some(last) if before(ack, last) => return None,
            Some(last) if ack == last => {
                self.has_gap |= segment.length == 0 && !self.flight.is_empty();
                return None;
            }
            _ => self.acknowledged = Some(ack),
        }
        let mut newest = None;
        let mut repeated = false;
        while let Some(sent) = self.flight.front().copied().filter(|s| !before(ack, s.end)) {
            self.flight.pop_front();
            repeated |= sent.repeated;
            newest = Some(sent);
        }
        let filled_gap = std::mem::take(&mut self.has_gap);
        let sent = newest.filter(|s| s.end == ack && !repeated && !filled_gap)?;
        Some(now.since(sent.at))
    }
}

/// Reads an IP packet; `None` if it is no whole TCP segment.
fn segment(packet: &[u8]) -> Option<Segment> {
    let ip = IpSlice::from_slice(packet).ok()?;
    let carried = ip.payload();
    if carried.ip_number != IpNumber::TCP || carried.fragmented {
        return None;
    }
    let tcp = TcpSlice::from_slice(carried.payload).ok()?;
    Some(Segment {
        seq: tcp.sequence_number(),
        ack: tcp.ack().then(|| tcp.acknowledgment_number()),
        length: u32::try_from(tcp.payload().len()).ok()?,
        is_control: tcp.syn() || tcp.fin() || tcp.rst(),
    })
}
