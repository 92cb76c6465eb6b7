//! The measurements that known switches send to senders: Owl's PNC and PNA.

use std::collections::VecDeque;

use headway_cc::{Bytes, Duration, NetworkView, Rate, Time};
use headway_net::{Link, LinkCounters, Port, PortCounters, network_view};
use headway_scenario::{Network, SwitchesSpec};

use crate::flow::Flow;

/// Reads the counters of the known switches at regular times, and delivers them to the senders
/// later.
#[derive(Debug)]
pub(crate) struct Switches {
    period: Duration,
    latency: Duration,
    until: Time,
    next_reading: Time,
    /// The links of each known switch.
    known: Vec<Ports>,
    /// The flows that cross a known switch.
    paths: Vec<Path>,
    /// The last reading of each link at a known switch, by link.
    last: Vec<Option<Reading>>,
    last_at: Time,
    /// Measurements on their way to the senders, with the time of their reading, in order.
    news: VecDeque<(Time, Vec<News>)>,
}

/// A measurement for the sender of one flow.
pub(crate) type News = (usize, NetworkView);

/// The links of a switch. Each link counts as a one-way port; the sums over ports are the same.
#[derive(Debug)]
struct Ports {
    incoming: Vec<usize>,
    outgoing: Vec<usize>,
}

#[derive(Debug)]
struct Path {
    flow: usize,
    /// Indices of its known switches.
    known: Vec<usize>,
    /// The known switches' share of all switches on the path.
    share: f64,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    counters: LinkCounters,
    /// Bytes that the link could have carried so far; `None` while it has no rate.
    offered: Option<f64>,
}

impl Switches {
    /// `None` if no flow crosses a known switch.
    pub(crate) fn new(network: &Network, links: &mut [Link]) -> Option<Switches> {
        let SwitchesSpec {
            known: nodes,
            period,
            latency,
            until,
        } = network.switches.as_ref()?;
        let at = |end: fn(&headway_scenario::LinkSpec) -> usize, node: usize| -> Vec<usize> {
            let links = network.links.iter().enumerate();
            links
                .filter(|(_, l)| end(l) == node)
                .map(|(i, _)| i)
                .collect()
        };
        let ports = |&node: &usize| Ports {
            incoming: at(|l| l.to, node),
            outgoing: at(|l| l.from, node),
        };
        let routes = network.routes();
        let path = |(flow, spec): (usize, &headway_scenario::FlowSpec)| {
            let switches = routes.switches(spec.from, spec.to, spec.route.as_deref());
            let known: Vec<usize> = switches
                .iter()
                .filter_map(|s| nodes.iter().position(|n| n == s))
                .collect();
            let share = known.len() as f64 / switches.len() as f64;
            (!known.is_empty()).then_some(Path { flow, known, share })
        };
        let mut switches = Switches {
            period: *period,
            latency: *latency,
            until: until.unwrap_or(Time::NEVER),
            next_reading: Time::ZERO + *period,
            known: nodes.iter().map(ports).collect(),
            paths: network.flows.iter().enumerate().filter_map(path).collect(),
            last: Vec::new(),
            last_at: Time::ZERO,
            news: VecDeque::new(),
        };
        switches.last = switches.read_links(Time::ZERO, links);
        (!switches.paths.is_empty()).then_some(switches)
    }

    /// When the next reading or delivery is due.
    pub(crate) fn next(&self) -> Time {
        let arrival = self.news.front().map(|(at, _)| *at + self.latency);
        arrival.map_or(self.next_reading, |at| at.min(self.next_reading))
    }

    /// Reads the counters if a reading is due.
    pub(crate) fn read(&mut self, now: Time, links: &mut [Link], flows: &[Flow]) {
        if now < self.next_reading {
            return;
        }
        if now >= self.until {
            self.next_reading = Time::NEVER;
            return;
        }
        self.next_reading = now + self.period;
        let reading = self.read_links(now, links);
        let views = self.paths.iter().filter_map(|path| {
            let (pnc, pna) =
                self.view(path, &flows[path.flow].measured.data_route, now, &reading)?;
            let view = NetworkView {
                pnc,
                pna,
                known: path.share,
                age: self.latency,
            };
            Some((path.flow, view))
        });
        let views: Vec<News> = views.collect();
        self.news.push_back((now, views));
        self.last = reading;
        self.last_at = now;
    }

    /// The measurements that have reached the senders by now. Call it until it returns `None`.
    pub(crate) fn take_news(&mut self, now: Time) -> Option<Vec<News>> {
        let &(at, _) = self.news.front()?;
        let (_, views) = (at + self.latency <= now).then(|| self.news.pop_front())??;
        Some(views)
    }

    fn read_links(&self, now: Time, links: &mut [Link]) -> Vec<Option<Reading>> {
        let mut readings = vec![None; links.len()];
        for switch in &self.known {
            for &link in switch.incoming.iter().chain(&switch.outgoing) {
                readings[link].get_or_insert_with(|| Reading {
                    counters: links[link].counters(now),
                    offered: links[link].offered_until(now),
                });
            }
        }
        readings
    }

    /// PNC over all ports of the path's known switches, and PNA over their links that carry the
    /// flow's data. A link's capacity is what it could have carried since the last reading, so a
    /// change of its rate counts, and so does a trace.
    fn view(
        &self,
        path: &Path,
        route: &[u32],
        now: Time,
        reading: &[Option<Reading>],
    ) -> Option<(f64, f64)> {
        let nothing = LinkCounters::default();
        let ends = |link: usize| Some((self.last[link].as_ref()?, reading[link].as_ref()?));
        let incoming = |&link: &usize| {
            let (before, after) = ends(link)?;
            Some(Port {
                before: PortCounters::new(self.last_at, &before.counters, &nothing),
                after: PortCounters::new(now, &after.counters, &nothing),
                capacity: None,
            })
        };
        let outgoing = |&link: &usize| {
            let (before, after) = ends(link)?;
            let capacity = || {
                let offered = after.offered? - before.offered?;
                let interval = now.since(self.last_at);
                Some(Rate::from_bytes_per(Bytes::from_f64(offered), interval))
            };
            Some(Port {
                before: PortCounters::new(self.last_at, &nothing, &before.counters),
                after: PortCounters::new(now, &nothing, &after.counters),
                capacity: route.contains(&(link as u32)).then(capacity).flatten(),
            })
        };
        network_view(path.known.iter().map(|&switch| {
            let ports = &self.known[switch];
            let taken_in = ports.incoming.iter().filter_map(incoming);
            taken_in.chain(ports.outgoing.iter().filter_map(outgoing))
        }))
    }
}
