//! What both ends of a flow are told.

use headway_cc::{Bytes, Duration, Setup, Stream, Time};
use headway_net::transport::{Profile, Source};
use headway_scenario::{FlowSpec, Network, Transport};

/// A flow of a scenario, as its ends need it.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Its number, in datagrams and messages.
    pub flow: u32,
    /// The size of a full IP packet.
    pub packet_size: Bytes,
    /// The least size of an acknowledgement's IP packet (UDP only).
    pub ack_size: Bytes,
    /// How our transport carries data (UDP only).
    pub profile: Profile,
    /// When it begins.
    pub start: Time,
    /// When it sends no more; [`Time::NEVER`] if it is told.
    pub stop: Time,
    /// RTT samples count from here on.
    pub measured_from: Time,
    /// The series' interval, if there is to be one.
    pub bin: Option<Duration>,
    /// What it has to send, in bytes of IP packets.
    pub data: headway_scenario::Source,
    /// The run's seed.
    pub seed: u64,
}

impl FlowPlan {
    /// Flow number `flow` of a drawn scenario, measured from its first packet on, without a series.
    pub fn new(flow: u32, spec: &FlowSpec, network: &Network, seed: u64) -> FlowPlan {
        FlowPlan {
            flow,
            packet_size: network.packet_size,
            ack_size: network.ack_size,
            profile: match network.transport {
                Transport::Simple => Profile::Simple,
                Transport::Linux => Profile::Linux,
            },
            start: spec.start,
            stop: spec.stop.unwrap_or(Time::NEVER),
            measured_from: Time::ZERO,
            bin: None,
            data: spec.source.clone(),
            seed,
        }
    }

    /// A stream of random numbers of its own, the same as in the simulator.
    fn stream(&self, part: &str) -> Stream {
        Stream::new(self.seed, &format!("flow.{}.{part}", self.flow))
    }

    /// What the scheme is told of the flow.
    pub(super) fn setup(&self) -> Setup {
        Setup {
            start: self.start,
            ..Setup::new(self.packet_size, self.stream("scheme").bits())
        }
    }

    /// What its application gives it to send.
    pub(super) fn source(&self) -> Source {
        match self.data {
            headway_scenario::Source::Bulk => Source::Bulk,
            headway_scenario::Source::Finite(left) => Source::Finite { left },
            headway_scenario::Source::Rate(rate) => Source::rate(rate, self.start),
            headway_scenario::Source::OnOff { on, off } => {
                Source::on_off(on, off, self.start, self.stream("source"))
            }
        }
    }

    /// Will it have sent everything at some time?
    pub(super) fn is_finite(&self) -> bool {
        matches!(self.data, headway_scenario::Source::Finite(_))
    }

    /// Its data in packets; the most there is unless it is finite.
    pub(super) fn packets(&self) -> u64 {
        match self.data {
            headway_scenario::Source::Finite(bytes) => bytes.get().div_ceil(self.packet_size.get()),
            _ => u64::MAX,
        }
    }
}
