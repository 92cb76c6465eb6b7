//! The description of a scheme, which a host reads before it runs it.

use super::{Param, Setup, Values};
use crate::{CongestionControl, Receiver};

/// A scheme: a controller with its registry name and its parameters.
#[derive(Debug)]
pub struct Scheme {
    /// The registry name.
    pub name: &'static str,
    /// The kind of controller.
    pub family: Family,
    /// A description in one line.
    pub summary: &'static str,
    /// The document that the scheme implements.
    pub source: &'static str,
    /// Where it departs from that document and why, a sentence each.
    pub deviations: &'static [&'static str],
    /// What the host must supply besides acknowledgements and losses.
    pub needs: &'static [Need],
    /// The parameters of the scheme.
    pub params: &'static [Param],
    /// Builds the sender's half.
    pub build: fn(&Setup, &Values) -> Box<dyn CongestionControl>,
    /// Builds the receiver's half, if the scheme has one.
    pub receiver: Option<BuildReceiver>,
    /// The bottleneck that the scheme needs; most schemes work with any queue.
    pub router: Option<Router>,
}

/// A queue that sends feedback to senders, the other half of [`Family::Explicit`] schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// ABC's accelerate and brake marks.
    Abc,
    /// XCP's feedback, computed from the link's rate.
    Xcp,
    /// XCP's feedback, computed from the rate at which the link could recently send.
    XcpWindowed,
}

impl Router {
    /// The name in scenarios and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Router::Abc => "abc",
            Router::Xcp => "xcp",
            Router::XcpWindowed => "xcp-w",
        }
    }
}

/// Builds the receiver's half of a scheme for one flow.
pub type BuildReceiver = fn(&Setup, &Values) -> Box<dyn Receiver>;

/// Kinds of controllers, as tables and colours group them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The controller does not react; it serves as a baseline.
    Fixed,
    /// The controller reacts to loss.
    Loss,
    /// The controller reacts to delay.
    Delay,
    /// The controller keeps a model of the path.
    Model,
    /// The controller maximises a utility while it runs.
    Utility,
    /// The controller follows routers' feedback.
    Explicit,
    /// The controller was trained.
    Learned,
}

impl Family {
    /// The name in small letters, for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Fixed => "fixed",
            Family::Loss => "loss",
            Family::Delay => "delay",
            Family::Model => "model",
            Family::Utility => "utility",
            Family::Explicit => "explicit",
            Family::Learned => "learned",
        }
    }
}

/// What a scheme may need from its host besides acknowledgements and losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Each packet's acknowledgement and loss, not only digests.
    PerPacket,
    /// Delivery-rate samples.
    RateSample,
    /// Pacing.
    Pacing,
    /// `control` is read after every packet that is sent, and not only after feedback and timers.
    /// Controllers that decide in `on_sent` need it.
    PerSend,
    /// Arrival times on the receiver's clock.
    ReceiverTime,
    /// A half of the scheme at the receiver.
    Receiver,
    /// An echo of each packet's ECN field.
    EcnEcho,
    /// A header field that routers rewrite.
    Header,
    /// Reports of the network's switches.
    NetworkView,
}

impl Need {
    /// The name in small letters, for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Need::PerPacket => "per-packet",
            Need::RateSample => "rate-sample",
            Need::Pacing => "pacing",
            Need::PerSend => "per-send",
            Need::ReceiverTime => "receiver-time",
            Need::Receiver => "receiver",
            Need::EcnEcho => "ecn-echo",
            Need::Header => "header",
            Need::NetworkView => "network-view",
        }
    }
}

/// An environment in which schemes run, and what it can supply.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// The world's name: `sim`, `emu`, `kernel`.
    pub name: &'static str,
    /// The needs that the world meets.
    pub supplies: &'static [Need],
}

impl World {
    /// The first need of `scheme` that this world cannot meet.
    pub fn lacks(&self, scheme: &Scheme) -> Option<Need> {
        scheme
            .needs
            .iter()
            .copied()
            .find(|n| !self.supplies.contains(n))
    }
}
