//! The plan of a flow for both of its ends, and the ends of our own transport.

use headway_cc::{Bytes, Duration, Probe, Rate, Selection, Setup, Stream, Time};
use headway_net::transport::{Profile, Receiver, ReceiverConfig, Sender, SenderConfig, Source};
use headway_record::GridSample;
use headway_scenario::{FlowSpec, Network, Transport};

use crate::Options;

/// A flow of a scenario, with everything that its ends need.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The flow's number, in packets and messages.
    pub flow: u32,
    /// The size of a full IP packet.
    pub packet_size: Bytes,
    /// The smallest IP packet of an acknowledgement (our transport only).
    pub ack_size: Bytes,
    /// The profile of our transport (our transport only).
    pub profile: Profile,
    /// The time at which it begins.
    pub start: Time,
    /// The time at which it stops sending; [`Time::NEVER`] if it has no stop time.
    pub stop: Time,
    /// RTT samples count from here on.
    pub measured_from: Time,
    /// The series' interval, if a series is requested.
    pub bin: Option<Duration>,
    /// The data that it has to send, in bytes of IP packets.
    pub data: headway_scenario::Source,
    /// The most bytes that its receiver accepts beyond what has arrived in order; `None` is the
    /// transport's default.
    pub receive_window: Option<Bytes>,
    /// The run's seed.
    pub seed: u64,
}

impl FlowPlan {
    /// The most packets in flight, more than any network holds today: 10 Gbit/s times five seconds.
    pub const MOST_IN_FLIGHT: u64 = 1 << 22;

    /// Flow number `flow` of a drawn scenario, in a run of these options.
    pub fn new(flow: u32, spec: &FlowSpec, network: &Network, options: &Options) -> FlowPlan {
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
            measured_from: Time::ZERO + options.warmup,
            bin: options.grid,
            data: spec.source.clone(),
            receive_window: spec.receive_window,
            seed: options.seed,
        }
    }

    /// The flow's sending end under `scheme`.
    pub fn sender(&self, scheme: &Selection) -> Sender {
        let config = SenderConfig {
            flow: self.flow,
            mss: self.packet_size,
            profile: self.profile,
            needs: scheme.scheme.needs,
        };
        Sender::new(config, scheme.build(&self.setup()), self.source())
            .with_receive_window(self.receive_window)
    }

    /// The flow's receiving end, with the scheme's half if it has one there.
    pub fn receiver(&self, scheme: &Selection) -> Receiver {
        let config = ReceiverConfig::new(self.profile)
            .with_window(self.receive_window)
            .serving(scheme.scheme.needs);
        Receiver::new(config, scheme.build_receiver(&self.setup()))
    }

    /// A random stream of its own, the same in all worlds.
    pub fn stream(&self, part: &str) -> Stream {
        Stream::new(self.seed, &format!("flow.{}.{part}", self.flow))
    }

    /// The source of its application's data.
    pub fn source(&self) -> Source {
        match self.data {
            headway_scenario::Source::Bulk => Source::Bulk,
            headway_scenario::Source::Finite(left) => Source::Finite { left },
            headway_scenario::Source::Rate(rate) => Source::rate(rate, self.start),
            headway_scenario::Source::OnOff { on, off } => {
                Source::on_off(on, off, self.start, self.stream("source"))
            }
        }
    }

    /// Will it have sent all its data at some time?
    pub fn is_finite(&self) -> bool {
        matches!(self.data, headway_scenario::Source::Finite(_))
    }

    /// The flow's data in packets; `u64::MAX` unless it is finite.
    pub fn packets(&self) -> u64 {
        match self.data {
            headway_scenario::Source::Finite(bytes) => bytes.get().div_ceil(self.packet_size.get()),
            _ => u64::MAX,
        }
    }

    /// With more in flight than this, nothing limits the flow.
    pub fn most_in_flight(&self) -> Bytes {
        self.packet_size * Self::MOST_IN_FLIGHT
    }

    /// What the scheme knows about the flow at its start.
    fn setup(&self) -> Setup {
        Setup {
            start: self.start,
            ..Setup::new(self.packet_size, self.stream("scheme").bits())
        }
    }
}

/// A sender's state as a bin of its series ends.
pub fn grid_sample(sender: &Sender, packet_size: Bytes) -> GridSample {
    let control = sender.control();
    let smoothed = sender.rtt_stats().smoothed;
    let packets = |bytes: Bytes| bytes.as_f64() / packet_size.as_f64();
    let mut model = Model::default();
    sender.probe(&mut model);
    GridSample {
        cwnd_packets: (control.cwnd != Bytes::MAX).then(|| packets(control.cwnd)),
        in_flight_packets: packets(sender.in_flight()),
        pacing_mbps: control.pacing_rate.map(Rate::as_mbps),
        rtt_ms: (!smoothed.is_zero()).then(|| smoothed.as_millis_f64()),
        btlbw_mbps: model.btlbw_mbps,
        rtprop_ms: model.rtprop_ms,
    }
}

/// A controller's model of its path, if it has one.
#[derive(Default)]
struct Model {
    btlbw_mbps: Option<f64>,
    rtprop_ms: Option<f64>,
}

impl Probe for Model {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "btlbw_mbps" => self.btlbw_mbps = Some(value),
            "rtprop_ms" => self.rtprop_ms = Some(value),
            _ => {}
        }
    }
}
