//! The hosts of a run: network namespaces, each with one TUN device to the emulator.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use headway_world::FlowPlan;

use super::plan::Plan;
use crate::emulator::Way;
use crate::host::{ReceiverEnd, SenderEnd, kernel, receiver, sender, tcp};
use crate::sys::{Namespace, SetupError, Tun};

/// The hosts of a run, and the sockets of its flows, ready to start.
#[derive(Debug)]
pub(super) struct Bed {
    pub hosts: Vec<Host>,
    pub ports: Vec<Tun>,
    pub ends: Vec<(SenderEnd, ReceiverEnd)>,
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    /// The index of its node.
    pub node: usize,
    pub namespace: Namespace,
}

/// The port of every flow; each flow has addresses of its own.
const PORT: u16 = 5201;
/// The network of all addresses of a run.
const NETWORK: &str = "10.0.0.0/8";

/// The address of a flow's sender: 10.0.0.1 for the first.
fn sender_of(flow: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0001 + flow as u32)
}

/// The address of a flow's receiver: 10.1.0.1 for the first.
fn receiver_of(flow: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0a01_0001 + flow as u32)
}

impl Bed {
    /// Makes hosts, devices and sockets. No packet is sent yet.
    pub fn make(plan: &Plan) -> Result<Bed, String> {
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        for node in plan.hosts() {
            let (namespace, port) = make_host(plan, node).map_err(|e| e.to_string())?;
            hosts.push(Host { node, namespace });
            ports.push(port);
        }
        let mut bed = Bed {
            hosts,
            ports,
            ends: Vec::new(),
        };
        for flow in 0..plan.flows.len() {
            let ends = bed.make_ends(plan, flow)?;
            bed.ends.push(ends);
        }
        Ok(bed)
    }

    fn make_ends(&self, plan: &Plan, flow: usize) -> Result<(SenderEnd, ReceiverEnd), String> {
        let (spec, driver) = (&plan.network.flows[flow], &plan.flows[flow].driver);
        let ends = FlowPlan::new(flow as u32, spec, &plan.network, &plan.options);
        let at = |address: Ipv4Addr| SocketAddr::new(IpAddr::V4(address), PORT);
        let (from, to) = (at(sender_of(flow)), at(receiver_of(flow)));
        let host = |node: usize| &self.hosts[self.port_of(node)].namespace;
        // The receiver is made first: it has to listen before the sender connects.
        let receiver = host(spec.to)
            .within(|| receiver(&ends, driver, to, from))
            .map_err(|e| e.to_string())?
            .map_err(|e| e.to_string())?;
        let sender = host(spec.from)
            .within(|| sender(&ends, driver, from, to))
            .map_err(|e| e.to_string())?
            .map_err(|e| e.to_string())?;
        Ok((sender, receiver))
    }

    /// The port of a node.
    fn port_of(&self, node: usize) -> usize {
        self.hosts
            .binary_search_by_key(&node, |h| h.node)
            .unwrap_or_default()
    }

    /// The ways of each flow's packets, two by two: data, then acknowledgements.
    pub fn ways(&self, plan: &Plan) -> Vec<Way> {
        let flows = plan.flows.len();
        let mut ways = Vec::with_capacity(2 * flows);
        for (index, (flow, spec)) in plan.flows.iter().zip(&plan.network.flows).enumerate() {
            let (from, to) = (self.port_of(spec.from), self.port_of(spec.to));
            let jitter = plan.network.host_jitter;
            let ends = FlowPlan::new(index as u32, spec, &plan.network, &plan.options);
            ways.push(Way {
                from,
                to: (receiver_of(index).into(), 32),
                links: flow.way.data.clone(),
                port: to,
                flow: Some(index as u32),
                host_jitter: None,
            });
            ways.push(Way {
                from: to,
                to: (sender_of(index).into(), 32),
                links: flow.way.acks.clone(),
                port: from,
                flow: Some((flows + index) as u32),
                host_jitter: (!jitter.is_zero()).then(|| (jitter, ends.stream("host"))),
            });
        }
        ways
    }
}

fn make_host(plan: &Plan, node: usize) -> Result<(Namespace, Tun), SetupError> {
    let namespace = Namespace::create()?;
    let port = namespace.within(|| {
        kernel::prepare_namespace()?;
        Tun::create("net0")
    })??;
    let name = port.name();
    let flows = plan.network.flows.iter().enumerate();
    let addresses = flows.filter_map(|(flow, spec)| match spec {
        spec if spec.from == node => Some(format!("{}/32", sender_of(flow))),
        spec if spec.to == node => Some(format!("{}/32", receiver_of(flow))),
        _ => None,
    });
    // TCP fills its packets up to the device's MTU.
    let batch = format!(
        "{}link set {name} mtu {}\nroute add {NETWORK} dev {name}\n",
        port.up(addresses),
        plan.network.packet_size.get()
    );
    namespace.ip(&batch)?;
    Ok((namespace, port))
}

/// Checks that hosts are permitted: makes one, with a socket under the kernel's `controller`.
pub(super) fn probe(controller: Option<&str>) -> Result<(), String> {
    let text = |e: SetupError| e.to_string();
    let namespace = Namespace::create().map_err(text)?;
    namespace.ip("link set lo up\n").map_err(text)?;
    let tried = namespace.within(|| {
        Tun::create("net0").map_err(text)?;
        kernel::prepare_namespace().map_err(text)?;
        match controller {
            Some(name) => tcp::try_controller(name).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    });
    tried.map_err(text)?
}
