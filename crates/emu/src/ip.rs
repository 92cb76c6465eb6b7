//! The fields of an IP packet that the emulator reads, and those that routers change.

use std::net::IpAddr;

use etherparse::{IpNumber, IpSlice};
use headway_cc::Ecn;

/// The fields of a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The source address.
    pub from: IpAddr,
    /// The destination address.
    pub to: IpAddr,
    /// The ECN field.
    pub ecn: Ecn,
    /// The protocol of the payload: 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// Where the payload begins.
    pub payload: usize,
    /// Source and destination port; `None` if it has none, as in fragments.
    pub ports: Option<(u16, u16)>,
}

impl Headers {
    /// The protocol number of UDP.
    pub const UDP: u8 = 17;

    /// Reads the headers of an IPv4 or IPv6 packet; `None` if it is neither, or broken.
    pub fn of(packet: &[u8]) -> Option<Headers> {
        let ip = IpSlice::from_slice(packet).ok()?;
        let carried = ip.payload();
        let protocol = carried.ip_number;
        let ports = match (protocol, carried.payload) {
            (IpNumber::TCP | IpNumber::UDP, &[a, b, c, d, ..]) if !carried.fragmented => {
                Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
            }
            _ => None,
        };
        let traffic_class = match ip {
            IpSlice::Ipv4(_) => packet[1],
            IpSlice::Ipv6(_) => packet[1] >> 4,
        };
        Some(Headers {
            from: ip.source_addr(),
            to: ip.destination_addr(),
            ecn: Ecn::of_bits(traffic_class),
            protocol: protocol.0,
            // The payload may be shorter than the rest of the buffer, but it begins within it.
            payload: carried.payload.as_ptr() as usize - packet.as_ptr() as usize,
            ports,
        })
    }

    /// A hash that is the same for all packets of a connection in one direction (FNV-1a).
    pub fn flow_hash(&self) -> u32 {
        let mut hash = 0x811c_9dc5_u32;
        let mut add = |bytes: &[u8]| {
            for &byte in bytes {
                hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            }
        };
        for address in [self.from, self.to] {
            match address {
                IpAddr::V4(address) => add(&address.octets()),
                IpAddr::V6(address) => add(&address.octets()),
            }
        }
        let (from, to) = self.ports.unwrap_or_default();
        add(&from.to_be_bytes());
        add(&to.to_be_bytes());
        add(&[self.protocol]);
        hash
    }
}

/// Writes the ECN field of a packet whose [`Headers`] could be read.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    match packet.first().map(|first| first >> 4) {
        Some(6) if packet.len() >= 40 => packet[1] = packet[1] & !0x30 | ecn.bits() << 4,
        Some(4) if packet.len() >= 20 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            let after = before & !0b11 | u16::from(ecn.bits());
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            packet[1] = after as u8;
            let checksum = updated_checksum(checksum, before, after);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        _ => {}
    }
}

/// The Internet checksum once 16 bits that it covers have changed (RFC 1624, Eq. 3).
pub fn updated_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpHeaders, PacketBuilder};
    use proptest::prelude::*;

    /// Packets as etherparse builds them: TCP over IPv4, and UDP over IPv6.
    fn packets() -> [Vec<u8>; 2] {
        let (mut four, mut six) = (Vec::new(), Vec::new());
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1, 2, 3, 4);
        builder.write(&mut four, b"hello").unwrap();
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(53, 5353);
        builder.write(&mut six, b"hello").unwrap();
        [four, six]
    }

    #[test]
    fn headers_of_ipv4_and_ipv6_are_read() {
        let [four, six] = packets();
        let found = Headers::of(&four).unwrap();
        assert_eq!(found.from, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(found.to, IpAddr::from([10, 0, 0, 2]));
        assert_eq!((found.protocol, found.payload), (6, 20));
        assert_eq!(found.ports, Some((1, 2)));
        let found = Headers::of(&six).unwrap();
        assert_eq!(found.to, IpAddr::from([2; 16]));
        assert_eq!((found.protocol, found.payload), (17, 40));
        assert_eq!(found.ports, Some((53, 5353)));
        assert_eq!(Headers::of(b"neither"), None);
        assert_eq!(Headers::of(&four[..30]), None);
    }

    #[test]
    fn connections_and_directions_differ() {
        let [four, six] = packets().map(|p| Headers::of(&p).unwrap());
        let back = Headers {
            from: four.to,
            to: four.from,
            ..four
        };
        assert_ne!(four.flow_hash(), six.flow_hash());
        assert_ne!(four.flow_hash(), back.flow_hash());
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        for mut packet in packets() {
            for ecn in [Ecn::Ce, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1] {
                set_ecn(&mut packet, ecn);
                assert_eq!(Headers::of(&packet).unwrap().ecn, ecn);
                let (headers, _) = IpHeaders::from_slice(&packet).unwrap();
                if let IpHeaders::Ipv4(header, _) = headers {
                    assert_eq!(header.header_checksum, header.calc_header_checksum());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_comes(mut packet: Vec<u8>) {
            Headers::of(&packet).map(|found| found.flow_hash());
            set_ecn(&mut packet, Ecn::Ce);
        }
    }
}
