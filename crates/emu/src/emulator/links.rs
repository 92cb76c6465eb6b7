//! The links of an emulator, and the packets that exist only within it.

use headway_cc::Time;
use headway_net::{Link, LinkEvent, Packet};

/// Links by index, and when each has something to deliver.
#[derive(Debug, Default)]
pub struct Links {
    links: Vec<Link>,
    next: Vec<Time>,
    /// The earliest time in `next`, and its link.
    first: (Time, usize),
    /// The route of each cross-traffic flow, by the `flow` of its packets.
    cross: Vec<Box<[u32]>>,
}

impl Links {
    /// Links, and the routes of cross traffic over them.
    pub fn new(links: Vec<Link>, cross: Vec<Box<[u32]>>) -> Links {
        Links {
            next: vec![Time::NEVER; links.len()],
            links,
            first: (Time::NEVER, 0),
            cross,
        }
    }

    /// All links. After a change of one, call [`refresh`](Self::refresh).
    pub fn all_mut(&mut self) -> &mut [Link] {
        &mut self.links
    }

    /// Call this when the time of a link's next delivery may have changed.
    pub fn refresh(&mut self, link: usize) {
        self.next[link] = self.links[link].next_delivery();
        self.find_first();
    }

    fn find_first(&mut self) {
        // There are few links: a look at each is quicker than a sorted structure.
        let by_time = self.next.iter().enumerate().min_by_key(|(_, next)| **next);
        self.first = by_time.map_or((Time::NEVER, 0), |(link, next)| (*next, link));
    }

    /// Sends a packet of cross traffic from its source.
    pub fn send_cross(&mut self, now: Time, packet: &Packet) {
        let first = self.cross[packet.flow as usize][0];
        self.enter(now, first, packet);
    }

    /// When the next delivery is due, and on which link.
    #[inline]
    pub(super) fn next(&self) -> (Time, usize) {
        self.first
    }

    pub(super) fn enter(&mut self, now: Time, link: u32, packet: &Packet) {
        let link = link as usize;
        if self.links[link].arrive(now, packet) {
            self.refresh(link);
        }
    }

    pub(super) fn deliver(&mut self, now: Time, link: usize) -> Option<Packet> {
        let packet = self.links[link].deliver(now);
        self.refresh(link);
        packet
    }

    /// A packet of cross traffic has crossed a link: sends it to its next link, or drops it at the
    /// end of its route.
    pub(super) fn advance_cross(&mut self, now: Time, mut packet: Packet) {
        if packet.hops_left > 0 {
            let route = &self.cross[packet.flow as usize];
            let next = route[route.len() - usize::from(packet.hops_left)];
            packet.hops_left -= 1;
            self.enter(now, next, &packet);
        }
    }

    /// Hands `tell` what has happened on each link by `now`. `events` is scratch space for one
    /// link's events.
    pub(super) fn tell_events(
        &mut self,
        now: Time,
        events: &mut Vec<LinkEvent>,
        mut tell: impl FnMut(usize, &LinkEvent),
    ) {
        for (index, (link, next)) in self.links.iter_mut().zip(&mut self.next).enumerate() {
            link.append_events(now, events);
            *next = link.next_delivery();
            for event in events.drain(..) {
                tell(index, &event);
            }
        }
        self.find_first();
    }
}
