//! The watcher of a run's emulator: it measures, and drives what the scenario has besides flows.

use headway_cc::{Duration, Time};
use headway_net::{Body, Link, LinkEvent, Packet};
use headway_world::{Changes, CrossTraffic, MeasuredFlow, Measurement, Outcome};

use super::plan::Plan;
use crate::emulator::{Links, Watch};
use crate::host::rtt::TcpRtt;
use crate::host::{Completion, Driver, SenderReport};
use crate::ip::Headers;
use crate::log::EventLog;

/// Measures a run. Way `2 i` carries flow `i`'s data, way `2 i + 1` its acknowledgements.
#[derive(Debug)]
pub(super) struct Meter {
    flows: Vec<MeasuredFlow>,
    /// For each flow, an RTT meter if the kernel carries it: the kernel's sender reports no RTTs.
    rtts: Vec<Option<TcpRtt>>,
    /// For each flow, its receiver's completion, if it has one.
    completions: Vec<Option<Completion>>,
    measurement: Measurement,
    changes: Changes,
    cross: Vec<CrossTraffic>,
    bin: Option<Duration>,
    next_bin: Time,
    /// The next look at `completions`.
    next_look: Time,
    next: Time,
    pub log: Option<EventLog>,
}

impl Meter {
    /// How often it checks whether a finite flow is complete.
    const LOOK: Duration = Duration::from_millis(1);

    pub fn new(
        plan: &Plan,
        changes: Changes,
        cross: Vec<CrossTraffic>,
        completions: Vec<Option<Completion>>,
        log: Option<EventLog>,
    ) -> Meter {
        let options = plan.options;
        let specs = plan.network.flows.iter().zip(&plan.flows);
        let measured = specs
            .map(|(spec, flow)| {
                let model = flow.driver.model();
                MeasuredFlow::new(spec, &flow.scheme, model, flow.way.data.clone(), &options)
            })
            .collect::<Vec<_>>();
        let of_kernel = |driver: &Driver| driver.controller().is_some();
        let rtts = plan.flows.iter().map(|f| &f.driver);
        let next_look = match completions.iter().any(Option::is_some) {
            true => Time::ZERO,
            false => Time::NEVER,
        };
        let mut meter = Meter {
            measurement: Measurement::new(&measured, options),
            flows: measured,
            rtts: rtts
                .map(|driver| of_kernel(driver).then(TcpRtt::default))
                .collect(),
            completions,
            changes,
            cross,
            bin: options.grid,
            next_bin: options.grid.map_or(Time::NEVER, |bin| Time::ZERO + bin),
            next_look,
            next: Time::ZERO,
            log,
        };
        meter.schedule();
        meter
    }

    /// Does the packet count as data, as in the simulator? A handshake would begin a flow's
    /// throughput a round trip early, and a host whose socket is closed answers with ICMP.
    fn is_data(&self, way: usize, bytes: &[u8]) -> bool {
        let carries_some = match self.rtts[way / 2] {
            Some(_) => TcpRtt::is_data,
            None => is_udp,
        };
        way.is_multiple_of(2) && carries_some(bytes)
    }

    fn schedule(&mut self) {
        let cross = self.cross.iter().map(CrossTraffic::next);
        self.next = cross
            .chain([
                self.changes.next(),
                self.measurement.next(),
                self.next_bin,
                self.next_look,
            ])
            .min()
            .unwrap_or(Time::NEVER);
    }

    fn drive(&mut self, now: Time, links: &mut Links) {
        for source in &mut self.cross {
            while source.next() <= now {
                let packet = source.emit(source.next());
                links.send_cross(now, &packet);
            }
        }
        while let Some(link) = self.changes.apply(now, links.all_mut()) {
            links.refresh(link);
        }
    }

    fn sample(&mut self, now: Time, links: &mut Links) {
        for flow in &mut self.flows {
            flow.started |= flow.start <= now;
        }
        if now >= self.next_look {
            self.next_look = now + Self::LOOK;
            self.end_complete(now, links);
        }
        if now >= self.measurement.next() {
            self.measurement
                .on_sample(now, links.all_mut(), &mut self.flows);
        }
        if now >= self.next_bin {
            self.measurement.on_bin_end(now, links.all_mut());
            self.next_bin = self.bin.map_or(Time::NEVER, |bin| self.next_bin + bin);
        }
    }

    /// Ends the flows whose data has all arrived, at the time of their last packet.
    fn end_complete(&mut self, now: Time, links: &mut Links) {
        for (index, completion) in self.completions.iter().enumerate() {
            let flow = &mut self.flows[index];
            let is_complete = completion.as_ref().is_some_and(Completion::is_reached);
            if is_complete && !flow.has_ended() {
                flow.was_complete_at(flow.meter.last_arrival());
                self.measurement
                    .end_flow(now, index, links.all_mut(), &mut self.flows);
            }
        }
    }

    /// Ends the measurement of a run, and adds what the senders counted.
    pub fn finish<'r>(
        mut self,
        links: &mut [Link],
        end: Time,
        senders: impl Iterator<Item = &'r SenderReport>,
    ) -> Outcome {
        for (flow, report) in self.flows.iter_mut().zip(senders) {
            flow.add(&report.meter, report.grid.as_ref());
            flow.started |= flow.start <= end;
        }
        let data_flows = self.flows.len();
        for link in links.iter_mut() {
            for packet in link.propagating(end) {
                if let Body::Data(segment) = &packet.body
                    && (packet.flow as usize) < data_flows
                {
                    let meter = &mut self.flows[packet.flow as usize].meter;
                    meter.on_propagating_at_end(segment.sent, packet.size());
                }
            }
        }
        self.measurement.finish(links, &mut self.flows)
    }
}

fn is_udp(packet: &[u8]) -> bool {
    Headers::of(packet).is_some_and(|headers| headers.protocol == Headers::UDP)
}

impl Watch for Meter {
    fn on_arrival(&mut self, at: Time, way: usize, packet: &Packet, bytes: &[u8]) {
        let flow = way / 2;
        if self.is_data(way, bytes) {
            self.flows[flow].on_sent(at, packet.size());
            if let Some(rtt) = &mut self.rtts[flow] {
                rtt.on_data(at, bytes);
            }
        }
        self.log.on_arrival(at, way, packet, bytes);
    }

    fn on_delivery(&mut self, at: Time, due: Time, way: usize, packet: &Packet, bytes: &[u8]) {
        let flow = way / 2;
        if let Body::Data(segment) = &packet.body
            && self.is_data(way, bytes)
        {
            self.flows[flow].on_delivered(at, segment.sent, segment.queued, packet.size());
        } else if let (false, Some(rtt)) = (way.is_multiple_of(2), &mut self.rtts[flow])
            && let Some(sample) = rtt.on_ack(at, bytes)
        {
            self.flows[flow].meter.on_rtt(at, sample);
        }
        self.log.on_delivery(at, due, way, packet, bytes);
    }

    fn on_link_event(&mut self, link: usize, event: &LinkEvent) {
        self.log.on_link_event(link, event);
    }

    fn next_call(&self) -> Time {
        self.next.min(self.log.next_call())
    }

    fn on_call(&mut self, now: Time, links: &mut Links) {
        if self.log.next_call() <= now {
            self.log.on_call(now, links);
        }
        if self.next <= now {
            self.drive(now, links);
            self.sample(now, links);
            self.schedule();
        }
    }
}
