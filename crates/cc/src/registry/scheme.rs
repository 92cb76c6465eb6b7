//! What a host knows of a scheme before it runs it.

use super::{Param, Setup, Values};
use crate::{CongestionControl, Receiver};

/// A scheme: a controller under its registry name, with the parameters it takes.
#[derive(Debug)]
pub struct Scheme {
    /// The registry name.
    pub name: &'static str,
    /// What kind of controller it is.
    pub family: Family,
    /// One line for people.
    pub summary: &'static str,
    /// The document that it implements.
    pub source: &'static str,
    /// Where it departs from that document, and why: a sentence each.
    pub deviations: &'static [&'static str],
    /// What its host must supply beyond acknowledgements and losses.
    pub needs: &'static [Need],
    /// The parameters it takes.
    pub params: &'static [Param],
    /// Builds the sender's half.
    pub build: fn(&Setup, &Values) -> Box<dyn CongestionControl>,
    /// Builds the receiver's half, for a scheme that has one.
    pub receiver: Option<BuildReceiver>,
    /// What the bottleneck has to be for it; most schemes take any queue.
    pub router: Option<Router>,
}

/// A queue that tells senders what to do: half of the schemes that are [`Family::Explicit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// ABC's accelerate and brake marks.
    Abc,
    /// XCP's feedback, from the link's rate.
    Xcp,
    /// XCP's feedback, from the rate at which the link has lately been able to send.
    XcpWindowed,
}

impl Router {
    /// As scenarios and tables call it.
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
    /// Does not react: a yardstick.
    Fixed,
    /// Reacts to loss.
    Loss,
    /// Reacts to delay.
    Delay,
    /// Keeps a model of the path.
    Model,
    /// Maximises a utility online.
    Utility,
    /// Is told by routers.
    Explicit,
    /// Was trained.
    Learned,
}

impl Family {
    /// In small letters, for tables and JSON.
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

/// What a scheme may need from its host beyond acknowledgements and losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Each packet's acknowledgement and loss, not digests.
    PerPacket,
    /// Delivery-rate samples.
    RateSample,
    /// Pacing.
    Pacing,
    /// What the controller allows is read again after every packet that leaves, not only after
    /// feedback and timers: for those that decide in `on_sent`.
    PerSend,
    /// Arrival times by the receiver's clock.
    ReceiverTime,
    /// A half of its own at the receiver.
    Receiver,
    /// The ECN field of each packet echoed.
    EcnEcho,
    /// A header field that routers rewrite.
    Header,
    /// News from inside the network.
    NetworkView,
}

impl Need {
    /// In small letters, for tables and JSON.
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

/// A place where schemes run, and what it can supply.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// Its name: `sim`, `emu`, `kernel`.
    pub name: &'static str,
    /// The needs that it meets.
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
