//! A scenario with every range drawn: exactly what one run is to build.

use headway_cc::{Bytes, Duration, Rate, Time};
use headway_net::queue::{Discipline, Limits};
use headway_net::{Jitter, Loss, Reorder};

use crate::Part;

/// One run's network and traffic. Node and link names are resolved to indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Node names; a node is a host or a router.
    pub nodes: Vec<String>,
    /// Directed links.
    pub links: Vec<LinkSpec>,
    /// Flows under congestion control.
    pub flows: Vec<FlowSpec>,
    /// Traffic without congestion control.
    pub cross: Vec<CrossSpec>,
    /// What changes during the run, by time.
    pub changes: Vec<Change>,
    /// The size of a full data packet on the wire.
    pub packet_size: Bytes,
    /// The size of an acknowledgement on the wire.
    pub ack_size: Bytes,
    /// Which transport the flows use.
    pub transport: Transport,
    /// A sender's host takes up to this long, drawn for each acknowledgement, before it acts (0: at
    /// once).
    pub host_jitter: Duration,
    /// What senders are told by the switches on their way, if anything.
    pub switches: Option<SwitchesSpec>,
}

/// A directed link: loss, then a queue served at a rate, then propagation with jitter and
/// reordering.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name in the scenario.
    pub name: String,
    /// Index of the node that sends.
    pub from: usize,
    /// Index of the node that receives.
    pub to: usize,
    /// How fast the queue is served.
    pub rate: RateSpec,
    /// One-way propagation delay.
    pub delay: Duration,
    /// How packets are lost on arrival, before the queue.
    pub loss: Option<Loss>,
    /// Extra delay, drawn for each packet.
    pub jitter: Option<Jitter>,
    /// Packets that are held back so that others overtake them.
    pub reorder: Option<Reorder>,
    /// The queue.
    pub queue: QueueSpec,
    /// The queue becomes the router that the scheme under test asks for, with the queue's limits,
    /// if it asks for one.
    pub router_of_scheme: bool,
}

/// How fast a link serves its queue.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSpec {
    /// No serialisation time: the link only delays.
    Unlimited,
    /// A constant rate (until a [`Change`]).
    Fixed(Rate),
    /// Delivery opportunities of a trace.
    Trace {
        /// Which trace.
        trace: TraceSpec,
        /// The trace begins this far in.
        offset: Duration,
        /// Stop at the end of the trace instead of beginning again.
        once: bool,
    },
}

/// A trace as a link wants it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceSpec {
    /// Its name, to look up with the trace store.
    pub name: String,
    /// Which of its seconds.
    pub part: Part,
    /// Scaled to this mean rate; `None` leaves it as it was recorded.
    pub mean: Option<Rate>,
}

/// A queue: a discipline, and how much it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    /// What is dropped, marked and sent next.
    pub discipline: Discipline,
    /// At most this many packets.
    pub packets: Option<u64>,
    /// At most this many bytes.
    pub bytes: Option<Bytes>,
}

impl QueueSpec {
    /// Never drops.
    pub const INFINITE: QueueSpec = QueueSpec::drop_tail(None, None);

    /// Drops an arrival that would exceed either limit.
    pub const fn drop_tail(packets: Option<u64>, bytes: Option<Bytes>) -> QueueSpec {
        QueueSpec {
            discipline: Discipline::DropTail,
            packets,
            bytes,
        }
    }

    /// Both limits.
    pub fn limits(&self) -> Limits {
        Limits::new(self.packets, self.bytes)
    }
}

/// A flow under congestion control.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Which of the scenario's flows it is; one that comes and goes has the same place each time.
    pub place: usize,
    /// Its own scheme (`cubic`, `copa:delta=0.1`); `None` runs the scheme under test.
    pub scheme: Option<String>,
    /// Index of the sending node.
    pub from: usize,
    /// Index of the receiving node.
    pub to: usize,
    /// Indices of the nodes that it passes, both ends included; `None` takes the fewest links.
    pub route: Option<Vec<usize>>,
    /// When it begins.
    pub start: Time,
    /// When it ends; `None` runs to the end.
    pub stop: Option<Time>,
    /// What it has to send.
    pub source: Source,
    /// The most that its receiver takes beyond what has arrived in order (RFC 9293 §3.8.6);
    /// `None` is what the transport's receiver takes.
    pub receive_window: Option<Bytes>,
}

/// What a flow has to send.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Always more.
    Bulk,
    /// This many bytes, then the flow is done.
    Finite(Bytes),
    /// Data produced at a rate: application-limited below what the network could carry.
    Rate(Rate),
    /// Bulk while on, silent while off; lengths drawn from exponential distributions.
    OnOff {
        /// Mean length of an on period.
        on: Duration,
        /// Mean length of an off period.
        off: Duration,
    },
}

/// Traffic without congestion control (UDP).
#[derive(Clone, Debug, PartialEq)]
pub struct CrossSpec {
    /// Index of the sending node.
    pub from: usize,
    /// Index of the receiving node.
    pub to: usize,
    /// Indices of the nodes that it passes, both ends included; `None` takes the fewest links.
    pub route: Option<Vec<usize>>,
    /// When it begins.
    pub start: Time,
    /// When it ends; `None` runs to the end.
    pub stop: Option<Time>,
    /// Its mean rate while it sends.
    pub rate: Rate,
    /// Packet size on the wire.
    pub packet_size: Bytes,
    /// The spacing of its packets.
    pub pattern: Pattern,
}

/// How the packets of cross traffic are spaced.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Evenly.
    Constant,
    /// Exponential gaps.
    Poisson,
    /// Evenly while on, silent while off; lengths drawn from exponential distributions.
    OnOff {
        /// Mean length of an on period.
        on: Duration,
        /// Mean length of an off period.
        off: Duration,
    },
}

/// A change of one link during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// Index of the link.
    pub link: usize,
    /// The new rate.
    pub rate: Option<Rate>,
    /// The new propagation delay. Packets under way keep theirs; none overtakes another.
    pub delay: Option<Duration>,
    /// The new loss probability.
    pub loss: Option<f64>,
}

/// Which switches are known, and how what they count reaches the senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchesSpec {
    /// Indices of the nodes whose counters are read.
    pub known: Vec<usize>,
    /// How often they are read.
    pub period: Duration,
    /// How long it then takes until the senders have it.
    pub latency: Duration,
    /// When their reader is lost, and with it all later readings.
    pub until: Option<Time>,
}

/// How data is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// SACK-grade loss detection, RFC 6298 timeouts, an acknowledgement a packet.
    #[default]
    Simple,
    /// As Linux does it: PRR, RACK-TLP, receive window, delayed acknowledgements, 200 ms minimum
    /// RTO.
    Linux,
}
