//! One run: the event loop.

mod setup;

pub(crate) use setup::router_of_schemes;

use headway_cc::{Bytes, Duration, Ecn, Time};
use headway_net::transport::Sender;
use headway_net::{Ack, Body, Link, Packet, Segment};
use headway_world::{Changes, CrossTraffic, FlowPlan, Measurement, Options, Outcome};

use crate::error::SimulationError;
use crate::event_queue::EventQueue;
use crate::flow::{Flow, Wakes};
use crate::observer::{Hold, Observer};
use crate::switches::Switches;

/// A simulation, observed by `O`.
#[derive(Debug)]
pub struct Simulation<O = ()> {
    options: Options,
    links: Vec<Link>,
    flows: Vec<Flow>,
    cross: Vec<CrossTraffic>,
    changes: Changes,
    events: EventQueue,
    slots: Slots,
    now: Time,
    measurement: Measurement,
    /// Present if a scenario has known switches.
    switches: Option<Box<Switches>>,
    /// Events from this time on have to wait; zero once the run has failed.
    halt: Time,
    failure: Option<SimulationError>,
    /// Flows whose senders wait for [`release`](Simulation::release).
    held: Vec<usize>,
    observer: O,
}

/// Assigns the slots of the event queue to links, senders, receivers, cross traffic, and then
/// these.
#[derive(Clone, Copy, Debug)]
struct Slots {
    senders: usize,
    receivers: usize,
    cross: usize,
    change: usize,
    sample: usize,
    grid: usize,
    /// Present only if a switch is known.
    switches: usize,
}

impl<O: Observer> Simulation<O> {
    /// The end of the run.
    pub fn end(&self) -> Time {
        Time::ZERO + self.options.duration
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Carries out every event up to and at `until`, but not beyond the run's end.
    ///
    /// # Errors
    /// [`SimulationError::Unlimited`] and [`SimulationError::Stuck`]; then the run is over.
    pub fn run_until(&mut self, until: Time) -> Result<(), SimulationError> {
        let until = until.min(Time::ZERO + self.options.duration);
        if self.failure.is_none() {
            let halt = until + Duration::from_nanos(1);
            self.halt = match self.held.is_empty() {
                true => halt,
                false => halt.min(self.halt),
            };
        }
        loop {
            let (time, slot) = self.events.peek();
            if time >= self.halt {
                break;
            }
            self.now = time;
            if slot < self.slots.senders {
                self.on_link(slot);
            } else if slot < self.slots.receivers {
                self.on_sender(slot - self.slots.senders);
            } else if slot < self.slots.cross {
                self.on_receiver(slot - self.slots.receivers);
            } else if slot < self.slots.change {
                self.on_cross(slot - self.slots.cross);
            } else if slot == self.slots.change {
                self.on_change();
            } else if slot == self.slots.sample {
                self.on_sample();
            } else if slot == self.slots.grid {
                self.on_grid();
            } else {
                self.on_switches();
            }
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.held.is_empty() {
            self.now = until;
            self.observer.on_pause(until, &mut self.links);
        }
        Ok(())
    }

    /// The flows that are held, because the observer [`holds`](Observer::holds) their senders.
    /// While there are any, [`run_until`](Self::run_until) stops early.
    pub fn held(&self) -> &[usize] {
        &self.held
    }

    /// The sender of a flow.
    pub fn sender_mut(&mut self, flow: usize) -> &mut Sender {
        &mut self.flows[flow].sender
    }

    /// The links that a flow's data crosses, by index, and all links.
    pub fn way_mut(&mut self, flow: usize) -> (&[u32], &mut [Link]) {
        (&self.flows[flow].measured.data_route, &mut self.links)
    }

    /// Releases the held senders, which may be held again at once.
    pub fn release(&mut self) {
        for index in std::mem::take(&mut self.held) {
            match std::mem::take(&mut self.flows[index].is_interrupted) {
                true => self.on_sender(index),
                false => self.pump(index),
            }
        }
    }

    /// Holds the sender that was just called: it sends nothing until it is released.
    #[cold]
    fn hold(&mut self, index: usize, hold: Hold) {
        if !self.held.contains(&index) {
            self.held.push(index);
        }
        let halt = match hold {
            Hold::AfterThisInstant => self.now + Duration::from_nanos(1),
            _ => Time::ZERO,
        };
        self.halt = self.halt.min(halt);
    }

    #[cold]
    fn fail(&mut self, failure: SimulationError) {
        self.halt = Time::ZERO;
        self.failure.get_or_insert(failure);
    }

    fn on_link(&mut self, index: usize) {
        let link = &mut self.links[index];
        if let Some(packet) = link.deliver(self.now) {
            self.events.set(index, link.next_delivery());
            self.arrive(packet);
        } else {
            // Only a part of a packet left, or a change has moved the packet.
            self.events.set(index, link.next_delivery());
        }
    }

    /// A packet has crossed a link: sends it to the next one, or delivers it.
    #[inline(always)]
    fn arrive(&mut self, mut packet: Packet) {
        let index = packet.flow as usize;
        if packet.hops_left > 0 {
            let route = match &packet.body {
                Body::Data(_) => &self.flows[index].measured.data_route,
                Body::Ack(_) => &self.flows[index].ack_route,
                Body::Cross => &self.cross[index].route,
            };
            let next = route[route.len() - usize::from(packet.hops_left)];
            packet.hops_left -= 1;
            self.enter(next, &packet);
            return;
        }
        match &packet.body {
            Body::Data(segment) => {
                self.observer.on_data_arrived(self.now, &packet);
                self.on_data(index, segment, packet.size(), packet.ecn);
            }
            Body::Ack(ack) => {
                self.observer.on_ack_arrived(self.now, &packet);
                self.on_ack(index, ack);
            }
            Body::Cross => self.observer.on_cross_arrived(self.now, &packet),
        }
    }

    fn on_data(&mut self, index: usize, segment: &Segment, size: Bytes, ecn: Ecn) {
        let flow = &mut self.flows[index];
        let ack = flow.on_data(self.now, segment, size, ecn);
        let (first, watched) = (flow.first_ack_link, flow.is_watched);
        if let Some(ack) = ack {
            self.observer.on_ack_sent(self.now, &ack);
            self.enter(first, &ack);
        }
        if watched {
            self.watch_receiver(index);
        }
    }

    /// Follows an arrival: the receiver's timer may have moved, and a finite flow's data may be
    /// complete.
    fn watch_receiver(&mut self, index: usize) {
        let flow = &self.flows[index];
        let timer = flow.next_receiver_timer();
        self.events.set_earlier(self.slots.receivers + index, timer);
        if flow.is_complete() {
            self.measurement
                .end_flow(self.now, index, &mut self.links, &mut self.flows);
        }
    }

    fn on_ack(&mut self, index: usize, ack: &Ack) {
        let flow = &mut self.flows[index];
        if !flow.host.delays(self.now, ack) {
            flow.on_ack(self.now, ack, &mut self.observer);
            let hold = self.observer.holds();
            if hold != Hold::No {
                return self.hold(index, hold);
            }
        } else if self.held.contains(&index) {
            return;
        }
        self.pump(index);
    }

    #[inline(always)]
    fn enter(&mut self, link: u32, packet: &Packet) {
        let index = link as usize;
        if self.links[index].arrive(self.now, packet) {
            awaken(&mut self.events, index, &self.links[index]);
        }
    }

    /// Sends what the sender can send, and notes when it has to be woken.
    #[inline]
    fn pump(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let first = flow.first_link as usize;
        while let Some(packet) = flow.poll(self.now) {
            self.observer.on_data_sent(self.now, &packet);
            if self.links[first].arrive(self.now, &packet) {
                awaken(&mut self.events, first, &self.links[first]);
            }
            if flow.is_unlimited() {
                return self.fail_unlimited(index);
            }
        }
        let wake = flow.next_wake();
        if wake < flow.wake_at {
            flow.wake_at = wake;
            self.events.set_earlier(self.slots.senders + index, wake);
        }
    }

    /// Handles a sender's slot. It may fire early, since timers mostly move later; then it only
    /// sets itself again.
    fn on_sender(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.sender_wakes.is_stuck(self.now) {
            return self.fail_stuck(index, "the controller's");
        }
        if !flow.measured.started {
            let timer = flow.next_receiver_timer();
            self.events.set_earlier(self.slots.receivers + index, timer);
        }
        flow.on_wake(self.now, &mut self.observer);
        flow.wake_at = Time::NEVER;
        let hold = self.observer.holds();
        if hold != Hold::No {
            self.events.set(self.slots.senders + index, Time::NEVER);
            return self.hold(index, hold);
        }
        self.pump(index);
        self.events
            .set(self.slots.senders + index, self.flows[index].wake_at);
    }

    fn on_receiver(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.receiver_wakes.is_stuck(self.now) {
            return self.fail_stuck(index, "the receiver's");
        }
        if let Some(ack) = flow.on_receiver_timer(self.now) {
            let first = flow.ack_route[0];
            self.observer.on_ack_sent(self.now, &ack);
            self.enter(first, &ack);
        }
        self.events.set(
            self.slots.receivers + index,
            self.flows[index].next_receiver_timer(),
        );
    }

    #[cold]
    fn fail_unlimited(&mut self, flow: usize) {
        self.fail(SimulationError::Unlimited {
            flow,
            scheme: self.flows[flow].measured.scheme.clone(),
            packets: FlowPlan::MOST_IN_FLIGHT,
            at: self.now,
        });
    }

    #[cold]
    fn fail_stuck(&mut self, flow: usize, part: &'static str) {
        self.fail(SimulationError::Stuck {
            flow,
            scheme: self.flows[flow].measured.scheme.clone(),
            part,
            times: Wakes::MOST,
            at: self.now,
        });
    }

    fn on_cross(&mut self, index: usize) {
        let packet = self.cross[index].emit(self.now);
        self.observer.on_cross_sent(self.now, &packet);
        self.enter(self.cross[index].route[0], &packet);
        self.events
            .set(self.slots.cross + index, self.cross[index].next());
    }

    fn on_change(&mut self) {
        while let Some(link) = self.changes.apply(self.now, &mut self.links) {
            self.events.set(link, self.links[link].next_delivery());
        }
        self.events.set(self.slots.change, self.changes.next());
    }

    fn on_sample(&mut self) {
        self.measurement
            .on_sample(self.now, &mut self.links, &mut self.flows);
        self.events.set(self.slots.sample, self.measurement.next());
    }

    fn on_grid(&mut self) {
        let now = self.now;
        self.measurement.on_bin_end(now, &mut self.links);
        for flow in &mut self.flows {
            flow.on_bin_end(now);
        }
        let next = self.options.grid.map_or(Time::NEVER, |g| now + g);
        self.events.set(self.slots.grid, next);
    }

    /// Reads the known switches, and delivers earlier readings to the senders.
    #[cold]
    fn on_switches(&mut self) {
        let Some(mut switches) = self.switches.take() else {
            return;
        };
        switches.read(self.now, &mut self.links, &self.flows);
        while let Some(news) = switches.take_news(self.now) {
            for (index, view) in news {
                let flow = &mut self.flows[index];
                if flow.measured.started {
                    self.observer.on_network(self.now, index as u32, &view);
                    flow.sender.on_network(self.now, &view);
                    self.pump(index);
                }
            }
        }
        self.events.set(self.slots.switches, switches.next());
        self.switches = Some(switches);
    }

    /// Ends the run and sums it up.
    ///
    /// # Errors
    /// The same as [`run_until`](Self::run_until).
    pub fn finish(mut self) -> Result<Outcome, SimulationError> {
        let end = self.end();
        self.run_until(end)?;
        for link in &mut self.links {
            for packet in link.propagating(end) {
                if let Body::Data(segment) = &packet.body {
                    let meter = &mut self.flows[packet.flow as usize].measured.meter;
                    meter.on_propagating_at_end(segment.sent, packet.size());
                }
            }
        }
        let (mut links, mut flows) = (self.links, self.flows);
        for flow in &mut flows {
            let refused = flow.sender.refused_decisions();
            let trips = flow.sender.guard_trips();
            flow.measured.meter.on_refused_decisions(refused);
            flow.measured.meter.on_guard_trips(trips);
        }
        Ok(self.measurement.finish(&mut links, &mut flows))
    }
}

/// Schedules the delivery of a link that was idle, which is rare under load.
#[cold]
#[inline(never)]
fn awaken(events: &mut EventQueue, index: usize, link: &Link) {
    events.set(index, link.next_delivery());
}
