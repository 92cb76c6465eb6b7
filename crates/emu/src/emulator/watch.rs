//! The interface of an emulator's watcher.

use headway_cc::Time;
use headway_net::{LinkEvent, Packet};

use super::Links;

/// Watches packets, and may act at times of its own choice. Its methods hold packets up: they have
/// to be quick, and must not wait for anything.
pub trait Watch {
    /// A packet has entered.
    fn on_arrival(&mut self, _at: Time, _way: usize, _packet: &Packet, _bytes: &[u8]) {}

    /// A packet has left, `at` being no earlier than it was `due`.
    fn on_delivery(&mut self, _at: Time, _due: Time, _way: usize, _packet: &Packet, _bytes: &[u8]) {
    }

    /// Something has happened on a link. Each link's events come in order.
    fn on_link_event(&mut self, _link: usize, _event: &LinkEvent) {}

    /// When [`on_call`](Self::on_call) is due next.
    fn next_call(&self) -> Time {
        Time::NEVER
    }

    /// The time of [`next_call`](Self::next_call) has come. Everything due before has happened.
    fn on_call(&mut self, _now: Time, _links: &mut Links) {}
}

impl Watch for () {}

/// The watcher is optional.
#[deny(clippy::missing_trait_methods)]
impl<W: Watch> Watch for Option<W> {
    fn on_arrival(&mut self, at: Time, way: usize, packet: &Packet, bytes: &[u8]) {
        if let Some(watch) = self {
            watch.on_arrival(at, way, packet, bytes);
        }
    }

    fn on_delivery(&mut self, at: Time, due: Time, way: usize, packet: &Packet, bytes: &[u8]) {
        if let Some(watch) = self {
            watch.on_delivery(at, due, way, packet, bytes);
        }
    }

    fn on_link_event(&mut self, link: usize, event: &LinkEvent) {
        if let Some(watch) = self {
            watch.on_link_event(link, event);
        }
    }

    fn next_call(&self) -> Time {
        self.as_ref().map_or(Time::NEVER, W::next_call)
    }

    fn on_call(&mut self, now: Time, links: &mut Links) {
        if let Some(watch) = self {
            watch.on_call(now, links);
        }
    }
}
