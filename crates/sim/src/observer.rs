//! What a run tells its watcher.

use headway_cc::{NetworkView, Time};
use headway_net::transport::Sender;
use headway_net::{Ack, Link, Packet};

/// Watches a run: its packets at both of their hosts, and its senders. It changes nothing.
///
/// A [`Simulation`](crate::Simulation) is compiled for its observer, and `()` has nothing but the
/// empty methods below: a run that nobody watches pays nothing.
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

    /// An acknowledgement has reached the sender's host, which may hand it on later.
    #[inline(always)]
    fn on_ack_arrived(&mut self, _now: Time, _packet: &Packet) {}

    /// The sender of `flow` was handed `ack` or, without one, ran its timers.
    #[inline(always)]
    fn on_sender(&mut self, _now: Time, _flow: u32, _ack: Option<&Ack>, _sender: &mut Sender) {}

    /// The sender of `flow` is told what the known switches on its way have counted.
    #[inline(always)]
    fn on_network(&mut self, _now: Time, _flow: u32, _view: &NetworkView) {}

    /// A packet of cross traffic leaves its host.
    #[inline(always)]
    fn on_cross_sent(&mut self, _now: Time, _packet: &Packet) {}

    /// A packet of cross traffic has reached its host.
    #[inline(always)]
    fn on_cross_arrived(&mut self, _now: Time, _packet: &Packet) {}

    /// Whether this link is to be [`observed`](Link::observed).
    fn observes_link(&self, _link: usize) -> bool {
        false
    }

    /// Everything up to `now` is done, and nothing after it.
    #[inline(always)]
    fn on_pause(&mut self, _now: Time, _links: &mut [Link]) {}

    /// Is the sender that was just called to be held? It then sends nothing until
    /// [`Simulation::release`](crate::Simulation::release).
    #[inline(always)]
    fn holds(&mut self) -> Hold {
        Hold::No
    }
}

/// Whether a sender is held, and how long the others go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It goes on.
    No,
    /// The run pauses at once.
    Now,
    /// The run pauses once everything of this instant has happened: others may be held with it.
    AfterThisInstant,
}

impl Observer for () {}

// A method left to its default would tell the observer nothing.
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
