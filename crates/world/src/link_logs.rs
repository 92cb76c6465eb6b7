//! The logs of links, in mahimahi's format.

use std::collections::BTreeSet;
use std::io;

use headway_cc::{Rate, Router, Time};
use headway_net::queue::Discipline;
use headway_net::{Link, LinkEvent, LinkEventKind};
use headway_record::recording::{File, LinkLog, LinkLogHead};
use headway_scenario::{LinkSpec, Network, QueueSpec, RateSpec};

use crate::links::discipline;

/// Logs of the links that flows cross, if they have a rate or get one by a change.
#[derive(Debug)]
pub struct LinkLogs(Vec<Option<LinkLog<File>>>);

impl LinkLogs {
    /// Begins logs in the files that `file` gives for links. `router` is the one that the run's
    /// schemes need; `title` describes the run.
    ///
    /// # Errors
    /// If a file cannot be written. The same holds for the other methods.
    pub fn new(
        network: &Network,
        router: Option<Router>,
        title: &str,
        mut file: impl FnMut(&LinkSpec) -> io::Result<File>,
    ) -> io::Result<LinkLogs> {
        let crossed = crossed(network);
        let mut logs = Vec::with_capacity(network.links.len());
        for (index, spec) in network.links.iter().enumerate() {
            if !crossed.contains(&index) {
                logs.push(None);
                continue;
            }
            let changes = network.changes.iter();
            let rates = changes.filter(|c| c.link == index && c.rate.is_some());
            let first_rate = rates.map(|c| c.at).min().unwrap_or(Time::NEVER);
            let (rated_from, source) = match &spec.rate {
                RateSpec::Unlimited if first_rate == Time::NEVER => {
                    logs.push(None);
                    continue;
                }
                RateSpec::Unlimited => (first_rate, "no rate at first".to_owned()),
                RateSpec::Fixed(rate) => (Time::ZERO, rate_name(*rate)),
                RateSpec::Trace { trace, .. } => (first_rate, trace.name.clone()),
            };
            let head = LinkLogHead {
                link: &spec.name,
                source: &source,
                queue: &queue_name(&discipline(spec, router), &spec.queue),
                command: title,
                rated_from,
            };
            logs.push(Some(LinkLog::new(file(spec)?, &head)?));
        }
        Ok(LinkLogs(logs))
    }

    /// Has this link a log?
    pub fn has(&self, link: usize) -> bool {
        self.0.get(link).is_some_and(Option::is_some)
    }

    /// Writes the events up to `now`.
    pub fn on_pause(&mut self, now: Time, links: &mut [Link]) -> io::Result<()> {
        for (log, link) in self.0.iter_mut().zip(links) {
            if let Some(log) = log {
                for event in link.take_events(now) {
                    write(log, &event)?;
                }
            }
        }
        Ok(())
    }

    /// The log of each link, by its index.
    pub fn into_logs(self) -> Vec<Option<LinkLog<File>>> {
        self.0
    }

    /// Finishes the logs.
    pub fn finish(self) -> io::Result<()> {
        let mut logs = self.0.into_iter().flatten();
        logs.try_for_each(|log| log.finish())
    }
}

fn write(log: &mut LinkLog<File>, event: &LinkEvent) -> io::Result<()> {
    let at = event.at;
    match &event.what {
        LinkEventKind::Arrival(packet) => log.arrival(at, packet.size),
        LinkEventKind::Drop(packet) => log.dropped(at, packet.size),
        LinkEventKind::Departure { packet, wait } => log.departure(at, packet.size, *wait),
        LinkEventKind::Opportunity => log.opportunity(at),
        // mahimahi loses packets in a shell of its own, before the link's.
        LinkEventKind::Loss(_) => Ok(()),
    }
}

/// The links that data or acknowledgements of any flow cross.
fn crossed(network: &Network) -> BTreeSet<usize> {
    let routes = network.routes();
    let flows = network.flows.iter();
    flows
        .flat_map(|f| routes.round_trip(f.from, f.to, f.route.as_deref()))
        .collect()
}

fn rate_name(rate: Rate) -> String {
    format!("{}Mbps", rate.as_mbps())
}

/// A queue of this discipline, as mahimahi's `to_string` would print it.
fn queue_name(discipline: &Discipline, queue: &QueueSpec) -> String {
    let bytes = queue.bytes.map(|b| format!("bytes={}", b.get()));
    let packets = queue.packets.map(|n| format!("packets={n}"));
    let limits: Vec<String> = bytes.into_iter().chain(packets).collect();
    let name = match discipline {
        Discipline::DropTail if limits.is_empty() => return "infinite".to_owned(),
        Discipline::DropTail => "droptail",
        Discipline::DropHead => "drophead",
        Discipline::CoDel(_) => "codel",
        Discipline::Pie(_) => "pie",
        Discipline::Red(_) => "red",
        Discipline::Step(_) => "step",
        Discipline::FqCodel(_) => "fq_codel",
        discipline @ (Discipline::Abc(_) | Discipline::Xcp(_)) => {
            discipline.router().map_or("", Router::name)
        }
    };
    format!("{name} [{}]", limits.join(", "))
}
