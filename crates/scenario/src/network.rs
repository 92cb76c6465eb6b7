//! A scenario with every range drawn: exactly what one run builds.

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
    /// Changes during the run, by time.
    pub changes: Vec<Change>,
    /// The size of a full data packet on the wire.
    pub packet_size: Bytes,
    /// The size of an acknowledgement on the wire.
    pub ack_size: Bytes,
    /// Which transport the flows use.
    pub transport: Transport,
    /// A sender's host may take up to this long, drawn for each acknowledgement, before it acts (0:
    /// at once).
    pub host_jitter: Duration,
    /// The switches whose measurements senders receive, if there are any.
    pub switches: Option<SwitchesSpec>,
}

/// A directed link: loss, then a queue served at a rate, then propagation with jitter and
/// reordering.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// The link's name in the scenario.
    pub name: String,
    /// Index of the node that sends.
    pub from: usize,
    /// Index of the node that receives.
    pub to: usize,
    /// The rate at which the queue is served.
    pub rate: RateSpec,
    /// One-way propagation delay.
    pub delay: Duration,
    /// The loss of packets on arrival, before the queue.
    pub loss: Option<Loss>,
    /// An extra delay, drawn for each packet.
    pub jitter: Option<Jitter>,
    /// Reordering: some packets are held back so that others overtake them.
    pub reorder: Option<Reorder>,
    /// The queue.
    pub queue: QueueSpec,
    /// Whether the queue becomes the router that the scheme under test needs, with the queue's
    /// limits; if the scheme needs none, it stays as it is.
    pub router_of_scheme: bool,
}

/// The rate at which a link serves its queue.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSpec {
    /// There is no serialisation time: the link only delays.
    Unlimited,
    /// A constant rate (until a [`Change`]).
    Fixed(Rate),
    /// The delivery opportunities of a trace.
    Trace {
        /// The trace.
        trace: TraceSpec,
        /// The offset at which the trace begins.
        offset: Duration,
        /// Whether to stop at the end of the trace instead of repeating it.
        once: bool,
    },
}

/// A trace, as a link uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceSpec {
    /// The trace's name, for the trace store.
    pub name: String,
    /// The part of it.
    pub part: Part,
    /// The mean rate to which it is scaled; `None` leaves it as it was recorded.
    pub mean: Option<Rate>,
}

/// A queue: a discipline, and its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    /// The discipline.
    pub discipline: Discipline,
    /// The most packets.
    pub packets: Option<u64>,
    /// The most bytes.
    pub bytes: Option<Bytes>,
}

impl QueueSpec {
    /// A queue that never drops.
    pub const INFINITE: QueueSpec = QueueSpec::drop_tail(None, None);

    /// A queue that drops an arrival which would exceed either limit.
    pub const fn drop_tail(packets: Option<u64>, bytes: Option<Bytes>) -> QueueSpec {
        QueueSpec {
            discipline: Discipline::DropTail,
            packets,
            bytes,
        }
    }

    /// The two limits.
    pub fn limits(&self) -> Limits {
        Limits::new(self.packets, self.bytes)
    }
}

/// A flow under congestion control.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// The index of the scenario's flow. A flow that comes and goes has the same index each time.
    pub place: usize,
    /// The flow's own scheme (`cubic`, `copa:delta=0.1`); `None` runs the scheme under test.
    pub scheme: Option<String>,
    /// Index of the sending node.
    pub from: usize,
    /// Index of the receiving node.
    pub to: usize,
    /// Indices of the nodes that it passes, including both ends; `None` takes the fewest links.
    pub route: Option<Vec<usize>>,
    /// The time at which it begins.
    pub start: Time,
    /// The time at which it ends; `None` runs to the end.
    pub stop: Option<Time>,
    /// The data that it has to send.
    pub source: Source,
    /// The most bytes that its receiver accepts beyond what has arrived in order (RFC 9293 §3.8.6);
    /// `None` is the transport's default.
    pub receive_window: Option<Bytes>,
}

/// The data that a flow has to send.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// There is always more.
    Bulk,
    /// There are this many bytes, and then the flow is done.
    Finite(Bytes),
    /// Data is produced at a rate: the flow is application-limited below what the network could
    /// carry.
    Rate(Rate),
    /// It is like `Bulk` while on, and silent while off; lengths are drawn from exponential
    /// distributions.
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
    /// Indices of the nodes that it passes, including both ends; `None` takes the fewest links.
    pub route: Option<Vec<usize>>,
    /// The time at which it begins.
    pub start: Time,
    /// The time at which it ends; `None` runs to the end.
    pub stop: Option<Time>,
    /// The mean rate while it sends.
    pub rate: Rate,
    /// Packet size on the wire.
    pub packet_size: Bytes,
    /// The spacing of its packets.
    pub pattern: Pattern,
}

/// The spacing of cross traffic's packets.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Packets are spaced evenly.
    Constant,
    /// Gaps are exponential.
    Poisson,
    /// Packets are spaced evenly while on, and it is silent while off; lengths are drawn from
    /// exponential distributions.
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
    /// The time of the change.
    pub at: Time,
    /// Index of the link.
    pub link: usize,
    /// The new rate.
    pub rate: Option<Rate>,
    /// The new propagation delay. Packets under way keep the old one; none overtakes another.
    pub delay: Option<Duration>,
    /// The new loss probability.
    pub loss: Option<f64>,
}

/// The switches that are known, and how their counters reach the senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchesSpec {
    /// Indices of the nodes whose counters are read.
    pub known: Vec<usize>,
    /// The time between readings.
    pub period: Duration,
    /// The delay from a reading to its arrival at the senders.
    pub latency: Duration,
    /// When the reader of the counters fails, which ends all readings.
    pub until: Option<Time>,
}

/// The transport of the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// SACK-grade loss detection, RFC 6298 timeouts, an acknowledgement for each packet.
    #[default]
    Simple,
    /// Linux's transport: PRR, RACK-TLP, receive window, delayed acknowledgements, 200 ms minimum
    /// RTO.
    Linux,
}
