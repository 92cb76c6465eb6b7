//! Fuzzes the datagrams of the UDP transport, and the changes that routers make to them.

use headway_cc::Header;
use headway_emu::host::wire::{self, ACK_HEADER, DATA_HEADER, Datagram, LONGEST_MESSAGE};

use super::Bytes;

/// A datagram that is read, written and read again stays the same. A router changes only its field.
pub fn wire(input: &[u8]) {
    let mut numbers = Bytes(input);
    let header = Header([0; 3].map(|_: u8| f32::from_le_bytes(numbers.array())));
    let mut udp = [&[0; 8], input].concat();
    wire::set_header_field(&mut udp, header);
    assert_eq!(udp.len(), input.len() + 8);
    match wire::parse(input) {
        None => assert_eq!(udp[8..], *input),
        Some(Datagram::Data(data)) => {
            let mut out = [0; DATA_HEADER];
            data.write(&mut out);
            // Headers are compared bit for bit, because a field may be NaN.
            let at = wire::HEADER_AT;
            assert_eq!(out[at..], input[at..DATA_HEADER]);
            assert_eq!(wire::header_field(input).map(bits), Some(bits(data.header)));
            assert_eq!(wire::header_field(&udp[8..]).map(bits), Some(bits(header)));
            udp[8 + at..8 + at + 12].copy_from_slice(&input[at..at + 12]);
            assert_eq!(udp[8..], *input);
        }
        Some(Datagram::Ack(ack, message)) => {
            assert!(message.len() <= LONGEST_MESSAGE);
            let mut out = vec![0; ACK_HEADER + message.len()];
            ack.write(message, &mut out);
            assert_eq!(out[wire::HEADER_AT..], input[wire::HEADER_AT..out.len()]);
            assert_eq!(udp[8..], *input);
        }
    }
}

fn bits(header: Header) -> [u32; 3] {
    header.0.map(f32::to_bits)
}
