//! One flow: its two ends, its routes, and what is counted of it.

use std::collections::VecDeque;

use headway_cc::{Duration, Selection, Setup, Stream, Time};
use headway_net::Ack;
use headway_net::transport::{Profile, Receiver, ReceiverConfig, Sender, SenderConfig, Source};
use headway_record::{FlowMeter, Grid};
use headway_scenario::{FlowSpec, Network, Transport};

/// A flow under congestion control.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) data_route: Box<[u32]>,
    pub(crate) ack_route: Box<[u32]>,
    pub(crate) meter: FlowMeter,
    pub(crate) grid: Option<Grid>,
    pub(crate) start: Time,
    /// When it is to stop next; never once it has.
    pub(crate) stop: Time,
    /// When it stops or stopped; never if it runs to the end.
    pub(crate) ends: Time,
    pub(crate) started: bool,
    /// Is it the scheme under test, or a competitor that the scenario names?
    pub(crate) under_test: bool,
    pub(crate) scheme: String,
    pub(crate) host: Host,
    pub(crate) messages: Messages,
}

impl Flow {
    pub(crate) fn new(
        index: usize,
        spec: &FlowSpec,
        selection: &Selection,
        network: &Network,
        (data_route, ack_route): (Box<[u32]>, Box<[u32]>),
        seed: u64,
    ) -> Flow {
        let stream = |part: &str| Stream::new(seed, &format!("flow.{index}.{part}"));
        let setup = Setup::new(network.packet_size, stream("scheme").bits());
        let profile = match network.transport {
            Transport::Simple => Profile::Simple,
            Transport::Linux => Profile::Linux,
        };
        let source = match spec.source {
            headway_scenario::Source::Bulk => Source::Bulk,
            headway_scenario::Source::Finite(left) => Source::Finite { left },
            headway_scenario::Source::Rate(rate) => Source::rate(rate, spec.start),
            headway_scenario::Source::OnOff { on, off } => {
                Source::on_off(on, off, spec.start, stream("source"))
            }
        };
        let config = SenderConfig {
            flow: index as u32,
            mss: network.packet_size,
            profile,
        };
        Flow {
            sender: Sender::new(config, selection.build(&setup), source),
            receiver: Receiver::new(
                ReceiverConfig::new(profile),
                selection.build_receiver(&setup),
            ),
            data_route,
            ack_route,
            meter: FlowMeter::default(),
            grid: None,
            start: spec.start,
            stop: spec.stop.unwrap_or(Time::NEVER),
            ends: spec.stop.unwrap_or(Time::NEVER),
            started: false,
            under_test: spec.scheme.is_none(),
            scheme: selection.spec.clone(),
            host: Host {
                jitter: network.host_jitter,
                stream: stream("host"),
                waiting: VecDeque::new(),
            },
            messages: Messages::default(),
        }
    }

    /// When this flow's sender is to be woken.
    #[inline]
    pub(crate) fn next_wake(&self) -> Time {
        if !self.started {
            return self.start;
        }
        self.sender.next_wake().min(self.stop).min(self.host.next())
    }
}

/// The sender's host, which takes a while to hand an acknowledgement on.
#[derive(Debug)]
pub(crate) struct Host {
    jitter: Duration,
    stream: Stream,
    waiting: VecDeque<(Time, Ack)>,
}

impl Host {
    /// Takes an acknowledgement in; gives it back if it is handed on at once.
    #[inline]
    pub(crate) fn accept(&mut self, now: Time, ack: Ack) -> Option<Ack> {
        if self.jitter.is_zero() {
            return Some(ack);
        }
        let last = self.waiting.back().map_or(now, |w| w.0);
        let ready = now + self.jitter.mul_f64(self.stream.uniform());
        self.waiting.push_back((ready.max(last), ack));
        None
    }

    #[inline]
    fn next(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |w| w.0)
    }

    pub(crate) fn take_ready(&mut self, now: Time) -> Option<Ack> {
        (self.next() <= now)
            .then(|| self.waiting.pop_front())
            .flatten()
            .map(|w| w.1)
    }
}

/// Messages of the receiver's half under way; packets carry their index.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    kept: VecDeque<Vec<u8>>,
    /// The index of the first kept.
    base: u32,
}

impl Messages {
    /// So many are kept in case acknowledgements overtake one another.
    const SLACK: u32 = 1024;

    pub(crate) fn add(&mut self, message: Vec<u8>) -> u32 {
        self.kept.push_back(message);
        self.base.wrapping_add(self.kept.len() as u32 - 1)
    }

    /// Takes the message of that index, once.
    pub(crate) fn take(&mut self, index: u32) -> Vec<u8> {
        let offset = index.wrapping_sub(self.base) as usize;
        let message = self
            .kept
            .get_mut(offset)
            .map(std::mem::take)
            .unwrap_or_default();
        while index.wrapping_sub(self.base) > Self::SLACK && !self.kept.is_empty() {
            self.kept.pop_front();
            self.base = self.base.wrapping_add(1);
        }
        message
    }
}
