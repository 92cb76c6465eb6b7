//! The observer of a run.

use headway_cc::{NetworkView, Time};
use headway_net::transport::Sender;
use headway_net::{Ack, Link, Packet};

/// Watches a run: its packets at both of their hosts, and its senders. It changes nothing.
///
/// A [`Simulation`](crate::Simulation) is compiled for its observer, and `()` has only the empty
/// methods below: a run without an observer pays nothing.
pub trait Observer {
    /// A data packet leaves its sender's host.
    #[inline(always)]
    fn on_data_sent(&mut self, _now: Time, _packet: &Packet) {}

    /// A data packet has reached its receiver's host.
    #[inline(always)]
    fn on_data_arrived(&mut self, _now: Time, _packet: &Packet) {}

    /// An acknowledgement leaves the receiver's host.
    #[inline(always)]
    fn on_ack_sent(&mut self, _now: Time, _packet: &Packet) {}

    /// An acknowledgement has reached the sender's host, which may deliver it later.
    #[inline(always)]
    fn on_ack_arrived(&mut self, _now: Time, _packet: &Packet) {}

    /// The sender of `flow` received `ack` or, without one, ran its timers.
    #[inline(always)]
    fn on_sender(&mut self, _now: Time, _flow: u32, _ack: Option<&Ack>, _sender: &mut Sender) {}

    /// The sender of `flow` received the measurements of the known switches on its way.
    #[inline(always)]
    fn on_network(&mut self, _now: Time, _flow: u32, _view: &NetworkView) {}

    /// A packet of cross traffic leaves its host.
    #[inline(always)]
    fn on_cross_sent(&mut self, _now: Time, _packet: &Packet) {}

    /// A packet of cross traffic has reached its host.
    #[inline(always)]
    fn on_cross_arrived(&mut self, _now: Time, _packet: &Packet) {}

    /// Whether to [observe](Link::observed) this link.
    fn observes_link(&self, _link: usize) -> bool {
        false
    }

    /// Everything up to `now` has happened, and nothing after it.
    #[inline(always)]
    fn on_pause(&mut self, _now: Time, _links: &mut [Link]) {}

    /// Whether to hold the sender that was just called. It then sends nothing until
    /// [`Simulation::release`](crate::Simulation::release).
    #[inline(always)]
    fn holds(&mut self) -> Hold {
        Hold::No
    }
}

/// Whether to hold a sender, and how long the others go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Do not hold it.
    No,
    /// Hold it, and pause the run at once.
    Now,
    /// Hold it, and pause the run after everything of this instant, so that other senders may be
    /// held with it.
    AfterThisInstant,
}

impl Observer for () {}

// Every method is forwarded: a default method would not reach the observer.
#[deny(clippy::missing_trait_methods)]
impl<O: Observer> Observer for &mut O {
    #[inline(always)]
    fn on_data_sent(&mut self, now: Time, packet: &Packet) {
        O::on_data_sent(self, now, packet);
    }

    #[inline(always)]
    fn on_data_arrived(&mut self, now: Time, packet: &Packet) {
        O::on_data_arrived(self, now, packet);
    }

    #[inline(always)]
    fn on_ack_sent(&mut self, now: Time, packet: &Packet) {
        O::on_ack_sent(self, now, packet);
    }

    #[inline(always)]
    fn on_ack_arrived(&mut self, now: Time, packet: &Packet) {
        O::on_ack_arrived(self, now, packet);
    }

    #[inline(always)]
    fn on_sender(&mut self, now: Time, flow: u32, ack: Option<&Ack>, sender: &mut Sender) {
        O::on_sender(self, now, flow, ack, sender);
    }

    #[inline(always)]
    fn on_network(&mut self, now: Time, flow: u32, view: &NetworkView) {
        O::on_network(self, now, flow, view);
    }

    #[inline(always)]
    fn on_cross_sent(&mut self, now: Time, packet: &Packet) {
        O::on_cross_sent(self, now, packet);
    }

    #[inline(always)]
    fn on_cross_arrived(&mut self, now: Time, packet: &Packet) {
        O::on_cross_arrived(self, now, packet);
    }

    fn observes_link(&self, link: usize) -> bool {
        O::observes_link(self, link)
    }

    #[inline(always)]
    fn on_pause(&mut self, now: Time, links: &mut [Link]) {
        O::on_pause(self, now, links);
    }

    #[inline(always)]
    fn holds(&mut self) -> Hold {
        O::holds(self)
    }
}
