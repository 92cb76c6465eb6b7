//! The datagrams of our UDP transport.
//!
//! All numbers are big-endian. Both kinds begin alike:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | `HWU` and the version, 1 |
//! | 4 | 1 | kind: 0 data, 1 acknowledgement |
//! | 5 | 1 | acknowledgement: the ECN field that it echoes |
//! | 6 | 2 | acknowledgement: how many bytes of message follow its header |
//! | 8 | 4 | flow |
//! | 12 | 12 | data: the header field, three 32-bit floats, which routers rewrite |
//!
//! Then data has number, seq, and the time it left (8 bytes each), and padding to the packet's
//! size. An acknowledgement has echo (32-bit float), window (4) from offset 12, number, earlier,
//! cumulative, and when the packet arrived (8 each), the message, and padding.

use headway_cc::{Duration, Ecn, Header, Time};
use headway_net::{Ack, Segment};

const MAGIC: [u8; 4] = *b"HWU\x01";
const DATA: u8 = 0;
const ACK: u8 = 1;

/// Where the flow's number begins; it has 4 bytes.
pub const FLOW_AT: usize = 8;
/// Where data has the field that routers rewrite; it has 12 bytes.
pub const HEADER_AT: usize = 12;
/// Bytes of data's header, which is the shortest data datagram.
pub const DATA_HEADER: usize = 48;
/// Bytes of an acknowledgement's header.
pub const ACK_HEADER: usize = 52;
/// The longest message of a receiver half. One that exceeds a packet travels in fragments.
pub const LONGEST_MESSAGE: usize = 8192;
/// The most that a UDP datagram holds.
pub const LONGEST_DATAGRAM: usize = 65_507;

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datagram<'a> {
    /// Data.
    Data(DataHeader),
    /// An acknowledgement, and the message of the receiver half; often empty.
    Ack(AckHeader, &'a [u8]),
}

/// The header of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataHeader {
    /// The flow's number.
    pub flow: u32,
    /// The transmission's number.
    pub number: u64,
    /// The segment of the stream that it carries.
    pub seq: u64,
    /// When it left its sender, by the run's clock.
    pub sent: Time,
    /// The field that routers rewrite.
    pub header: Header,
}

/// The header of an acknowledgement: an [`Ack`] of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckHeader {
    /// The flow's number.
    pub flow: u32,
    /// See [`Ack`].
    pub number: u64,
    /// See [`Ack`].
    pub earlier: u64,
    /// See [`Ack`].
    pub cumulative: u64,
    /// See [`Ack`].
    pub received: Time,
    /// See [`Ack`].
    pub echo: f32,
    /// See [`Ack`].
    pub window: u32,
    /// See [`Ack`].
    pub ecn: Ecn,
}

impl DataHeader {
    /// The header of a segment.
    pub fn of(flow: u32, segment: &Segment) -> DataHeader {
        DataHeader {
            flow,
            number: segment.number,
            seq: segment.seq,
            sent: segment.sent,
            header: segment.header,
        }
    }

    /// The segment that it describes.
    pub fn segment(&self) -> Segment {
        Segment {
            number: self.number,
            seq: self.seq,
            sent: self.sent,
            queued: Duration::ZERO,
            header: self.header,
        }
    }

    /// Writes it to the beginning of `out`; the rest is padding.
    ///
    /// # Panics
    /// If `out` is shorter than [`DATA_HEADER`].
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        let mut to = Writer(out);
        to.put(MAGIC);
        to.put([DATA, 0, 0, 0]);
        to.put(self.flow.to_be_bytes());
        for field in self.header.0 {
            to.put(field.to_be_bytes());
        }
        for field in [self.number, self.seq, self.sent.as_nanos()] {
            to.put(field.to_be_bytes());
        }
    }
}

impl AckHeader {
    /// The header of an acknowledgement.
    pub fn of(flow: u32, ack: &Ack) -> AckHeader {
        AckHeader {
            flow,
            number: ack.number,
            earlier: ack.earlier,
            cumulative: ack.cumulative,
            received: ack.received,
            echo: ack.echo,
            window: ack.window,
            ecn: ack.ecn,
        }
    }

    /// The acknowledgement that it describes.
    pub fn ack(&self) -> Ack {
        Ack {
            number: self.number,
            earlier: self.earlier,
            cumulative: self.cumulative,
            received: self.received,
            echo: self.echo,
            window: self.window,
            message: Ack::NO_MESSAGE,
            ecn: self.ecn,
        }
    }

    /// Writes it and `message` to the beginning of `out`; the rest is padding.
    ///
    /// # Panics
    /// If `out` is shorter than both, or `message` longer than [`LONGEST_MESSAGE`].
    pub fn write(&self, message: &[u8], out: &mut [u8]) {
        assert!(message.len() <= LONGEST_MESSAGE, "a message too long");
        let mut to = Writer(out);
        to.put(MAGIC);
        to.put([ACK, self.ecn.bits()]);
        to.put((message.len() as u16).to_be_bytes());
        to.put(self.flow.to_be_bytes());
        to.put(self.echo.to_be_bytes());
        to.put(self.window.to_be_bytes());
        let received = self.received.as_nanos();
        for field in [self.number, self.earlier, self.cumulative, received] {
            to.put(field.to_be_bytes());
        }
        to.0[..message.len()].copy_from_slice(message);
    }
}

/// Reads a datagram; `None` if it is not one of ours. Padding is ignored.
#[inline]
pub fn parse(datagram: &[u8]) -> Option<Datagram<'_>> {
    let mut from = Reader(datagram);
    if from.take()? != MAGIC {
        return None;
    }
    let [kind, ecn] = from.take()?;
    let message = usize::from(u16::from_be_bytes(from.take()?));
    let flow = u32::from_be_bytes(from.take()?);
    match kind {
        DATA => Some(Datagram::Data(DataHeader {
            flow,
            header: Header([from.f32()?, from.f32()?, from.f32()?]),
            number: from.u64()?,
            seq: from.u64()?,
            sent: Time::from_nanos(from.u64()?),
        })),
        ACK if message <= LONGEST_MESSAGE => {
            let echo = from.f32()?;
            let window = u32::from_be_bytes(from.take()?);
            let ack = AckHeader {
                flow,
                number: from.u64()?,
                earlier: from.u64()?,
                cumulative: from.u64()?,
                received: Time::from_nanos(from.u64()?),
                echo,
                window,
                ecn: Ecn::of_bits(ecn),
            };
            Some(Datagram::Ack(ack, from.0.get(..message)?))
        }
        _ => None,
    }
}

/// The field that routers rewrite; `None` if the datagram is not data of ours.
#[inline]
pub fn header_field(datagram: &[u8]) -> Option<Header> {
    match parse(datagram)? {
        Datagram::Data(data) => Some(data.header),
        Datagram::Ack(..) => None,
    }
}

/// Rewrites that field in a UDP packet (its 8 bytes of UDP header, then a datagram of ours) and
/// leaves the packet without a checksum, as our sockets send it. Leaves anything else as it is.
pub fn set_header_field(udp: &mut [u8], header: Header) {
    const CHECKSUM_AT: usize = 6;
    const UDP_HEADER: usize = 8;
    let is_data = |udp: &[u8]| header_field(udp.get(UDP_HEADER..)?);
    if is_data(udp).is_none_or(|old| old == header) {
        return;
    }
    udp[CHECKSUM_AT..UDP_HEADER].fill(0);
    let mut to = Writer(&mut udp[UDP_HEADER + HEADER_AT..]);
    for field in header.0 {
        to.put(field.to_be_bytes());
    }
}

struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let (field, rest) = std::mem::take(&mut self.0).split_at_mut(N);
        field.copy_from_slice(&bytes);
        self.0 = rest;
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn f32(&mut self) -> Option<f32> {
        self.take().map(f32::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data() -> DataHeader {
        DataHeader {
            flow: 7,
            number: 0x0102,
            seq: 3,
            sent: Time::from_nanos(0x0a0b0c),
            header: Header([1.0, -2.0, 0.5]),
        }
    }

    /// Checks the layout against the table of the module's documentation, worked out by hand.
    #[test]
    fn data_is_laid_out_as_documented() {
        let mut out = [0xee; 50];
        data().write(&mut out);
        let mut wanted = Vec::from(*b"HWU\x01\0\0\0\0\0\0\0\x07");
        wanted.extend([0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0, 0x3f, 0, 0, 0]);
        wanted.extend([0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        wanted.extend([0, 0, 0, 0, 0, 0x0a, 0x0b, 0x0c, 0xee, 0xee]);
        assert_eq!(out[..], wanted);
    }

    #[test]
    fn a_router_rewrites_the_field_and_nothing_else() {
        let mut udp = vec![0x55; 8 + 60];
        data().write(&mut udp[8..]);
        let before = udp.clone();
        set_header_field(&mut udp, data().header);
        assert_eq!(udp, before, "nothing to rewrite");
        let header = Header([4.0, 5.0, -6.0]);
        set_header_field(&mut udp, header);
        assert_eq!(udp[..6], before[..6]);
        assert_eq!(udp[6..8], [0, 0], "no checksum");
        assert_eq!(udp[8 + HEADER_AT + 12..], before[8 + HEADER_AT + 12..]);
        let wanted = DataHeader { header, ..data() };
        assert_eq!(parse(&udp[8..]), Some(Datagram::Data(wanted)));

        let mut other = vec![0x55; 100];
        set_header_field(&mut other, header);
        set_header_field(&mut other[..3], header);
        assert_eq!(other, vec![0x55; 100]);
    }

    #[test]
    fn truncated_datagrams_are_refused() {
        let mut out = [0; DATA_HEADER];
        data().write(&mut out);
        assert!((0..DATA_HEADER).all(|n| parse(&out[..n]).is_none()));
        let ack = AckHeader::of(1, &an_ack());
        let mut out = [0; ACK_HEADER + 5];
        ack.write(b"hello", &mut out);
        assert!((0..out.len()).all(|n| parse(&out[..n]).is_none()));
        assert_eq!(parse(&out), Some(Datagram::Ack(ack, b"hello")));
        out[4] = 2;
        assert_eq!(parse(&out), None, "an unknown kind");
        let mut long = vec![0; 40_000];
        ack.write(&[], &mut long);
        long[6..8].copy_from_slice(&8193_u16.to_be_bytes());
        assert_eq!(parse(&long), None, "a message too long");
    }

    fn an_ack() -> Ack {
        Ack {
            number: 9,
            earlier: u64::MAX,
            cumulative: 4,
            received: Time::from_millis(5),
            echo: 0.25,
            window: u32::MAX,
            message: Ack::NO_MESSAGE,
            ecn: Ecn::Ce,
        }
    }

    proptest! {
        #[test]
        fn data_comes_back(flow: u32, fields: [u64; 3], header: [i32; 3], padding in 0..2000_usize) {
            let [number, seq, sent] = fields;
            let header = Header(header.map(|h| h as f32));
            let data = DataHeader { flow, number, seq, sent: Time::from_nanos(sent), header };
            let mut out = vec![0xff; DATA_HEADER + padding];
            data.write(&mut out);
            prop_assert_eq!(parse(&out), Some(Datagram::Data(data)));
            prop_assert_eq!(header_field(&out), Some(header));
        }

        #[test]
        fn an_acknowledgement_comes_back(
            flow: u32, fields: [u64; 4], echo: i32, window: u32, ecn in 0..4_u8,
            message in prop::collection::vec(any::<u8>(), 0..LONGEST_MESSAGE + 1), padding in 0..200_usize,
        ) {
            let [number, earlier, cumulative, received] = fields;
            let (received, echo, ecn) = (Time::from_nanos(received), echo as f32, Ecn::of_bits(ecn));
            let ack = AckHeader { flow, number, earlier, cumulative, received, echo, window, ecn };
            let mut out = vec![0xff; ACK_HEADER + message.len() + padding];
            ack.write(&message, &mut out);
            prop_assert_eq!(parse(&out), Some(Datagram::Ack(ack, &message)));
            prop_assert_eq!(AckHeader::of(flow, &ack.ack()), ack);
            prop_assert_eq!(header_field(&out), None);
        }

        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut ours = MAGIC.to_vec();
            ours.extend(&bytes);
            for datagram in [bytes, ours] {
                let _ = parse(&datagram);
            }
        }
    }
}
