//! Captures at the hosts.

use std::io;

use headway_cc::Time;
use headway_net::{Body, Packet};
use headway_record::recording::{Capture, Endpoint, File, UdpPacket};
use headway_scenario::Network;

use super::tcp::TcpFlow;

/// Captures at all hosts at which a flow begins or ends.
#[derive(Debug)]
pub(super) struct Captures {
    /// The captures by node; `None` at nodes that only forward.
    hosts: Vec<Option<Capture<File>>>,
    flows: Vec<Ends<TcpFlow>>,
    cross: Vec<Ends<UdpFlow>>,
}

/// Traffic, and the nodes at its ends.
#[derive(Debug)]
struct Ends<T> {
    from: usize,
    to: usize,
    traffic: T,
}

#[derive(Debug)]
struct UdpFlow {
    from: Endpoint,
    to: Endpoint,
    hops: u8,
}

impl Captures {
    /// Begins captures in the files that `host` gives for nodes.
    pub(super) fn new(
        network: &Network,
        mut host: impl FnMut(usize) -> io::Result<File>,
    ) -> io::Result<Captures> {
        let packet_size = network.packet_size.get();
        let flows = network.flows.iter().enumerate().map(|(i, spec)| Ends {
            from: spec.from,
            to: spec.to,
            traffic: TcpFlow::new(
                endpoint(spec.from, port(FLOW_PORTS, i)),
                endpoint(spec.to, IPERF3_PORT),
                packet_size,
            ),
        });
        let cross = network.cross.iter().enumerate().map(|(i, spec)| Ends {
            from: spec.from,
            to: spec.to,
            traffic: UdpFlow {
                from: endpoint(spec.from, port(CROSS_PORTS, i)),
                to: endpoint(spec.to, DISCARD_PORT),
                hops: 0,
            },
        });
        let mut hosts: Vec<Option<Capture<File>>> = Vec::new();
        for node in 0..network.nodes.len() {
            let is_host = network.flows.iter().any(|f| f.from == node || f.to == node);
            hosts.push(match is_host {
                true => Some(Capture::new(host(node)?)?),
                false => None,
            });
        }
        Ok(Captures {
            hosts,
            flows: flows.collect(),
            cross: cross.collect(),
        })
    }

    pub(super) fn data_sent(&mut self, now: Time, packet: &Packet) -> io::Result<()> {
        let flow = &mut self.flows[packet.flow as usize];
        match (&packet.body, &mut self.hosts[flow.from]) {
            (Body::Data(segment), Some(host)) => {
                host.tcp(now, &flow.traffic.data_sent(segment, packet))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn data_arrived(&mut self, now: Time, packet: &Packet) -> io::Result<()> {
        let flow = &mut self.flows[packet.flow as usize];
        match (&packet.body, &mut self.hosts[flow.to]) {
            (Body::Data(segment), Some(host)) => {
                host.tcp(now, &flow.traffic.data_arrived(segment, packet))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn ack_sent(&mut self, now: Time, packet: &Packet) -> io::Result<()> {
        let flow = &mut self.flows[packet.flow as usize];
        match (&packet.body, &mut self.hosts[flow.to]) {
            (Body::Ack(ack), Some(host)) => {
                let sack = &mut Default::default();
                host.tcp(now, &flow.traffic.ack_sent(now, ack, packet, sack))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn ack_arrived(&mut self, now: Time, packet: &Packet) -> io::Result<()> {
        let flow = &mut self.flows[packet.flow as usize];
        match (&packet.body, &mut self.hosts[flow.from]) {
            (Body::Ack(ack), Some(host)) => {
                let sack = &mut Default::default();
                host.tcp(now, &flow.traffic.ack_arrived(ack, sack))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn cross_sent(&mut self, now: Time, packet: &Packet) -> io::Result<()> {
        let cross = &mut self.cross[packet.flow as usize];
        cross.traffic.hops = packet.hops_left;
        match &mut self.hosts[cross.from] {
            Some(host) => host.udp(now, &cross.traffic.packet(packet, 0)),
            None => Ok(()),
        }
    }

    pub(super) fn cross_arrived(&mut self, now: Time, packet: &Packet) -> io::Result<()> {
        let cross = &self.cross[packet.flow as usize];
        match &mut self.hosts[cross.to] {
            Some(host) => host.udp(now, &cross.traffic.packet(packet, cross.traffic.hops)),
            None => Ok(()),
        }
    }

    /// Finishes the captures.
    pub(super) fn finish(self) -> io::Result<()> {
        self.hosts
            .into_iter()
            .flatten()
            .try_for_each(Capture::finish)
    }
}

impl UdpFlow {
    fn packet(&self, packet: &Packet, hops: u8) -> UdpPacket {
        UdpPacket {
            from: self.from,
            to: self.to,
            payload: packet.size.saturating_sub(UdpPacket::HEADERS),
            hops,
        }
    }
}

/// The destination ports of data, and of cross traffic (RFC 863).
const IPERF3_PORT: u16 = 5201;
const DISCARD_PORT: u16 = 9;
/// The first ports of flows and of cross traffic.
const FLOW_PORTS: u16 = 10_000;
const CROSS_PORTS: u16 = 50_000;

/// Node 0 is 10.0.0.1, node 1 is 10.0.0.2 and so on.
fn endpoint(node: usize, port: u16) -> Endpoint {
    let host = (node as u32 + 1) & 0x00ff_ffff;
    Endpoint {
        address: (0x0a00_0000 | host).to_be_bytes(),
        port,
    }
}

fn port(first: u16, index: usize) -> u16 {
    first.wrapping_add(index as u16)
}
