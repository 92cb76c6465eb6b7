//! Writes captures as tcpdump would at a host, for Wireshark and tshark.

use std::io::{self, Write};

use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use headway_cc::{Ecn, Time};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

/// A capture at one host: nanosecond pcap of IPv4 packets, headers only. The rest counts as zeros,
/// so checksums over it are right.
#[derive(Debug)]
pub struct Capture<W: Write> {
    to: PcapWriter<W>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// IPv4.
    pub address: [u8; 4],
    /// TCP or UDP port.
    pub port: u16,
}

/// A TCP segment with the timestamps option (RFC 7323).
#[derive(Clone, Debug)]
pub struct TcpPacket<'a> {
    /// The end that sends it.
    pub from: Endpoint,
    /// The end that it is sent to.
    pub to: Endpoint,
    /// Number of its first byte.
    pub seq: u32,
    /// The next byte that its sender expects.
    pub ack: u32,
    /// Bytes of data.
    pub payload: u16,
    /// The window field.
    pub window: u16,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// The ECN-Echo flag (RFC 3168 §6.1).
    pub ece: bool,
    /// TSval.
    pub timestamp: u32,
    /// TSecr.
    pub echo: u32,
    /// Up to three SACK blocks (RFC 2018): the first byte of each and the one after its last.
    pub sack: &'a [(u32, u32)],
    /// The identification of the IP header.
    pub id: u16,
    /// How many routers it has passed.
    pub hops: u8,
}

/// A UDP datagram.
#[derive(Clone, Debug)]
pub struct UdpPacket {
    /// The end that sends it.
    pub from: Endpoint,
    /// The end that it is sent to.
    pub to: Endpoint,
    /// Bytes of data.
    pub payload: u16,
    /// How many routers it has passed.
    pub hops: u8,
}

/// The payload, which a capture does not hold.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
/// The time to live of packets from hosts (RFC 1700).
const TTL: u8 = 64;

impl TcpPacket<'_> {
    /// Bytes of IPv4 and TCP headers with timestamps and no SACK block.
    pub const HEADERS: u16 = 20 + 20 + 12;
}

impl UdpPacket {
    /// Bytes of IPv4 and UDP headers.
    pub const HEADERS: u16 = 20 + 8;
}

impl<W: Write> Capture<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// If `to` cannot be written to.
    pub fn new(to: W) -> io::Result<Capture<W>> {
        let header = PcapHeader {
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            // The bytes are the same on every machine.
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let to = PcapWriter::with_header(to, header).map_err(io_error)?;
        Ok(Capture { to })
    }

    /// A TCP segment passes at `now`.
    ///
    /// # Errors
    /// If the file cannot be written to, or more than three SACK blocks are given.
    pub fn tcp(&mut self, now: Time, packet: &TcpPacket<'_>) -> io::Result<()> {
        let mut tcp = TcpHeader::new(packet.from.port, packet.to.port, packet.seq, packet.window);
        tcp.ack = true;
        tcp.acknowledgment_number = packet.ack;
        tcp.ece = packet.ece;
        tcp.psh = packet.payload > 0;
        let timestamps = TcpOptionElement::Timestamp(packet.timestamp, packet.echo);
        let (noop, sack) = (TcpOptionElement::Noop, packet.sack);
        let options = match sack.split_first() {
            None => tcp.set_options(&[noop.clone(), noop, timestamps]),
            Some((&first, more)) => {
                let more = [more.first().copied(), more.get(1).copied(), None];
                let blocks = TcpOptionElement::SelectiveAcknowledgement(first, more);
                tcp.set_options(&[
                    noop.clone(),
                    noop.clone(),
                    timestamps,
                    noop.clone(),
                    noop,
                    blocks,
                ])
            }
        };
        options.map_err(io::Error::other)?;
        let length = tcp.header_len_u16().saturating_add(packet.payload);
        let mut ip = ip_header(IpNumber::TCP, packet.from, packet.to, length, packet.hops)?;
        ip.ecn = match packet.ecn {
            Ecn::NotEct => IpEcn::ZERO,
            Ecn::Ect1 => IpEcn::ONE,
            Ecn::Ect0 => IpEcn::TWO,
            Ecn::Ce => IpEcn::THREE,
        };
        ip.identification = packet.id;
        ip.header_checksum = ip.calc_header_checksum();
        let payload = &ZEROS[..usize::from(packet.payload)];
        tcp.checksum = tcp
            .calc_checksum_ipv4(&ip, payload)
            .map_err(io::Error::other)?;
        self.write(now, &ip, &tcp.to_bytes())
    }

    /// A UDP datagram passes at `now`.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn udp(&mut self, now: Time, packet: &UdpPacket) -> io::Result<()> {
        let length = packet.payload.saturating_add(8);
        let mut ip = ip_header(IpNumber::UDP, packet.from, packet.to, length, packet.hops)?;
        ip.header_checksum = ip.calc_header_checksum();
        let payload = &ZEROS[..usize::from(packet.payload)];
        let udp = UdpHeader::with_ipv4_checksum(packet.from.port, packet.to.port, &ip, payload)
            .map_err(io::Error::other)?;
        self.write(now, &ip, &udp.to_bytes())
    }

    fn write(&mut self, now: Time, ip: &Ipv4Header, transport: &[u8]) -> io::Result<()> {
        let mut data = ip.to_bytes().to_vec();
        data.extend_from_slice(transport);
        let at = std::time::Duration::from_nanos(now.as_nanos());
        let packet = PcapPacket::new_owned(at, u32::from(ip.total_len), data);
        self.to.write_packet(&packet).map(drop).map_err(io_error)
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn finish(self) -> io::Result<()> {
        self.to.into_writer().flush()
    }
}

fn ip_header(
    protocol: IpNumber,
    from: Endpoint,
    to: Endpoint,
    length: u16,
    hops: u8,
) -> io::Result<Ipv4Header> {
    let ttl = TTL.saturating_sub(hops).max(1);
    let mut ip = Ipv4Header::new(length, ttl, protocol, from.address, to.address)
        .map_err(io::Error::other)?;
    ip.dscp = IpDscp::ZERO;
    ip.dont_fragment = true;
    Ok(ip)
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
