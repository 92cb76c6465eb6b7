//! The RTT of a TCP flow, measured between its ends.

use std::collections::VecDeque;

use etherparse::{IpNumber, IpSlice, TcpSlice};
use headway_cc::{Duration, Time};

/// Takes RTT samples of one TCP connection from its packets, as the kernel does without looking at
/// selective acknowledgements: a sample is the time from a segment to the acknowledgement that ends
/// where the segment ends. Segments that were sent twice give no sample (Karn's rule, RFC 6298 §3).
/// Nor does an acknowledgement that follows duplicates: it fills a gap, and the segment that it
/// ends with has waited for that.
#[derive(Debug, Default)]
pub struct TcpRtt {
    /// Segments that are not acknowledged yet, by sequence number.
    flight: VecDeque<Sent>,
    /// Where the newest data ends, or the highest acknowledgement if that is larger; unknown before
    /// the first of either.
    highest: Option<u32>,
    acknowledged: Option<u32>,
    /// Whether a duplicate acknowledgement has come since the last that acknowledged new data.
    has_gap: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    begin: u32,
    end: u32,
    at: Time,
    repeated: bool,
}

/// The fields of a TCP packet that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    seq: u32,
    ack: Option<u32>,
    /// Bytes of data.
    length: u32,
    /// Whether it is a SYN, FIN or RST, which is not measured.
    is_control: bool,
}

/// Is `a` before `b`? Sequence numbers wrap around (RFC 9293 §3.4).
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl TcpRtt {
    /// No window of TCP holds more packets of 1500 bytes (1 GB).
    const MOST_IN_FLIGHT: usize = 1 << 20;

    /// Does the packet carry TCP data, rather than open, close or acknowledge a connection?
    pub fn is_data(packet: &[u8]) -> bool {
        segment(packet).is_some_and(|s| s.length > 0)
    }

    /// An IP packet towards the receiver enters the network. A packet without TCP data changes
    /// nothing.
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

/// Reads an IP packet; `None` if it is not a whole TCP segment.
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

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    /// An IP packet of a connection, with `length` bytes of data and this acknowledgement.
    fn packet(seq: u32, length: usize, ack: Option<u32>) -> Vec<u8> {
        let tcp = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1, 2, seq, 1000);
        let tcp = match ack {
            Some(ack) => tcp.ack(ack),
            None => tcp,
        };
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, &vec![0; length])
            .expect("there is room");
        bytes
    }

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// An event, at a time in ms.
    enum Event {
        /// Data leaves: where it begins and ends.
        Data(u64, u32, u32),
        /// An acknowledgement of that number comes.
        Ack(u64, u32),
    }
    use Event::{Ack, Data};

    /// The samples in ms that a run of events gives.
    fn samples(events: &[Event]) -> Vec<u64> {
        let mut rtt = TcpRtt::default();
        let mut samples = Vec::new();
        for event in events {
            match *event {
                Data(at, begin, end) => {
                    let length = end.wrapping_sub(begin) as usize;
                    rtt.on_data(ms(at), &packet(begin, length, Some(1)));
                }
                Ack(at, number) => {
                    let sample = rtt.on_ack(ms(at), &packet(1, 0, Some(number)));
                    samples.extend(sample.map(|d| d.as_nanos() / 1_000_000));
                }
            }
        }
        samples
    }

    #[test]
    fn an_acknowledgement_is_timed_from_the_segment_that_ends_where_it_does() {
        let events = [
            Data(0, 100, 200),
            Data(3, 200, 300),
            Data(4, 300, 400),
            Ack(10, 200),
            Ack(20, 400), // covers two segments; the newer one counts
            Ack(21, 400),
        ];
        assert_eq!(samples(&events), [10, 16]);
    }

    #[test]
    fn sequence_numbers_wrap_around() {
        let begin = u32::MAX - 99;
        let events = [
            Data(0, begin, 0),
            Data(1, 0, 100),
            Ack(10, 0),
            Ack(12, 100),
            Data(13, 100, 200),
            Ack(20, 200),
        ];
        assert_eq!(samples(&events), [10, 11, 7]);
    }

    /// RFC 6298 §3: the acknowledgement may be for either transmission.
    #[test]
    fn retransmitted_segments_give_no_sample() {
        let events = [
            Data(0, 100, 200),
            Data(1, 200, 300),
            Data(200, 100, 200), // a retransmission
            Ack(210, 200),
            Ack(211, 300),
            Data(212, 300, 400),
            Data(230, 250, 350), // a part is acknowledged already
            Ack(240, 400),
        ];
        assert_eq!(samples(&events), [210]);
    }

    /// Segment 100 to 200 comes late, so later segments are acknowledged only then.
    #[test]
    fn data_behind_a_gap_gives_no_sample() {
        let events = [
            Data(0, 0, 100),
            Data(1, 100, 200),
            Data(2, 200, 300),
            Ack(10, 100),
            Ack(11, 100),
            Ack(50, 300),
            Data(51, 300, 400),
            Ack(61, 400),
        ];
        assert_eq!(samples(&events), [10, 10]);
    }

    #[test]
    fn control_segments_and_other_protocols_give_no_sample() {
        let mut rtt = TcpRtt::default();
        let mut syn = Vec::new();
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(1, 2, 99, 1000);
        builder.syn().write(&mut syn, &[]).expect("there is room");
        rtt.on_data(ms(0), &syn);
        let mut udp = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
        builder.write(&mut udp, &[0; 100]).expect("there is room");
        rtt.on_data(ms(0), &udp);
        rtt.on_data(ms(1), &packet(100, 50, Some(1)));
        let whole = packet(1, 0, Some(150));
        for cut in 0..whole.len() {
            assert_eq!(rtt.on_ack(ms(2), &whole[..cut]), None, "{cut}");
        }
        assert_eq!(rtt.on_ack(ms(5), &udp), None);
        assert_eq!(rtt.on_ack(ms(5), &packet(1, 0, None)), None);
        assert_eq!(rtt.on_ack(ms(5), &whole), Some(Duration::from_millis(4)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut rtt = TcpRtt::default();
        let bytes = packet(0, 1, Some(1));
        for _ in 0..TcpRtt::MOST_IN_FLIGHT + 10 {
            rtt.highest = None; // each segment seems new
            rtt.on_data(ms(0), &bytes);
        }
        assert!(rtt.flight.len() <= TcpRtt::MOST_IN_FLIGHT);
    }
}
