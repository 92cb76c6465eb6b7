//! What is read off the links while a run goes on.

use headway_cc::Time;
use headway_net::Link;
use headway_record::{Bottleneck, Convergence};

use crate::fairness::Fairness;
use crate::flow::Flow;

/// A link's bytes so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// That it could have carried.
    pub(crate) offered: f64,
    /// That it carried.
    served: f64,
}

/// Reads one link; `None` while it has no rate.
fn read(link: &mut Link, now: Time) -> Option<Reading> {
    let offered = link.offered_until(now)?;
    let served = link.counters(now).served_bytes as f64;
    Some(Reading { offered, served })
}

/// Reads every link.
fn read_all(links: &mut [Link], now: Time) -> Vec<Option<Reading>> {
    links.iter_mut().map(|link| read(link, now)).collect()
}

/// Some links over the time for which one flow, or all under test together, is measured.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// For each link the readings as it opened, and as it closed.
    before: Option<Vec<Option<Reading>>>,
    after: Option<Vec<Option<Reading>>>,
}

impl Window {
    fn read_on(links: &mut [Link], on: &[u32], now: Time) -> Vec<Option<Reading>> {
        on.iter()
            .map(|&l| read(&mut links[l as usize], now))
            .collect()
    }

    /// Has it begun, and not ended?
    pub(crate) fn is_open(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }

    /// Begins now, unless it has begun before.
    pub(crate) fn open(&mut self, links: &mut [Link], on: &[u32], now: Time) {
        self.before
            .get_or_insert_with(|| Window::read_on(links, on, now));
    }

    /// Ends now, if it has begun and not ended before.
    pub(crate) fn close(&mut self, links: &mut [Link], on: &[u32], now: Time) {
        if self.before.is_some() {
            self.after
                .get_or_insert_with(|| Window::read_on(links, on, now));
        }
    }

    /// The link with the largest used share of its capacity, of those that had a rate all along.
    pub(crate) fn bottleneck(&self) -> Option<Bottleneck> {
        let ends = self.before.as_ref()?.iter().zip(self.after.as_ref()?);
        let used = ends.filter_map(|(before, after)| {
            let (before, after) = (before.as_ref()?, after.as_ref()?);
            let offered_bytes = after.offered - before.offered;
            (offered_bytes > 0.0).then_some(Bottleneck {
                offered_bytes,
                used_bytes: after.served - before.served,
            })
        });
        let share = |b: &Bottleneck| b.used_bytes / b.offered_bytes;
        used.reduce(|a, b| if share(&b) > share(&a) { b } else { a })
    }
}

/// When a flow begins or ceases to be measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    Begin(usize),
    End(usize),
}

/// All that is read, and when it is next.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// The readings as the last second ended; none at first.
    second: Vec<Option<Reading>>,
    next_second: Time,
    /// Likewise at the ends of the grid's bins, and the longest queue there was then.
    pub(crate) bins: Vec<Vec<Option<Reading>>>,
    pub(crate) queue_packets: Vec<f64>,
    /// The flows' begins and ends that are known beforehand, by time.
    marks: Vec<(Time, Mark)>,
    next_mark: usize,
    /// All flows under test together: from the first one's begin to the last one's end, over every
    /// link that carries their data.
    pub(crate) pooled: Window,
    pub(crate) pooled_links: Vec<u32>,
    /// Flows under test that have yet to end.
    pub(crate) unfinished: usize,
    pub(crate) fairness: Fairness,
}

impl Sampler {
    /// For a run of `flows` until `end` whose metrics begin at `warmup`.
    pub(crate) fn new(flows: &[Flow], warmup: Time, end: Time) -> Sampler {
        let mut marks = Vec::new();
        for (i, flow) in flows.iter().enumerate() {
            let begin = flow.start.max(warmup);
            if begin < flow.ends.min(end) {
                marks.push((begin, Mark::Begin(i)));
            }
            if flow.ends < end {
                marks.push((flow.ends, Mark::End(i)));
            }
        }
        marks.sort_by_key(|&(at, _)| at);
        let tested = || flows.iter().filter(|f| f.under_test);
        let mut pooled_links: Vec<u32> = tested()
            .flat_map(|f| f.data_route.iter().copied())
            .collect();
        pooled_links.sort_unstable();
        pooled_links.dedup();
        Sampler {
            second: Vec::new(),
            next_second: Time::ZERO,
            bins: Vec::new(),
            queue_packets: Vec::new(),
            marks,
            next_mark: 0,
            pooled: Window::default(),
            pooled_links,
            unfinished: tested().filter(|f| f.start <= end).count(),
            fairness: Fairness::default(),
        }
    }

    /// The next mark that is due.
    pub(crate) fn take_mark(&mut self, now: Time) -> Option<Mark> {
        let &(at, mark) = self.marks.get(self.next_mark)?;
        (at <= now).then(|| {
            self.next_mark += 1;
            mark
        })
    }

    /// Tells the flows of the second that has just ended, if one has.
    pub(crate) fn on_second(&mut self, now: Time, links: &mut [Link], flows: &mut [Flow]) {
        if now < self.next_second {
            return;
        }
        let reading = read_all(links, now);
        if now > Time::ZERO {
            watch_convergence(flows, now, &self.second, &reading);
        }
        self.second = reading;
        self.next_second = now + Convergence::BIN;
    }

    /// A bin of the grid ends now.
    pub(crate) fn on_bin_end(&mut self, now: Time, links: &mut [Link]) {
        self.bins.push(read_all(links, now));
        let backlogs = self.pooled_links.iter();
        let longest = backlogs.map(|&l| links[l as usize].backlog(now)).max();
        self.queue_packets.push(longest.unwrap_or(0) as f64);
    }

    /// When there is something to read.
    pub(crate) fn next(&self) -> Time {
        let mark = self.marks.get(self.next_mark);
        mark.map_or(Time::NEVER, |m| m.0).min(self.next_second)
    }
}

/// Tells each flow that was there in the second before `now` what arrived and what its share would
/// have been: the least, over the links that its data crosses, of the link's capacity in that
/// second over the number of flows there whose data crosses it too.
fn watch_convergence(
    flows: &mut [Flow],
    now: Time,
    before: &[Option<Reading>],
    after: &[Option<Reading>],
) {
    let from = now.saturating_sub(Convergence::BIN);
    let mut crossing = vec![0_u32; after.len()];
    for flow in flows.iter().filter(|f| f.overlaps(from, now)) {
        for &link in &flow.data_route {
            crossing[link as usize] += 1;
        }
    }
    let share = |&link: &u32| {
        let link = link as usize;
        let capacity = after[link]?.offered - before[link]?.offered;
        Some(capacity / f64::from(crossing[link]))
    };
    for flow in flows {
        let received = flow.meter.take_recent() as f64;
        if flow.covers(from, now) {
            let share = flow.data_route.iter().filter_map(share).reduce(f64::min);
            flow.convergence.on_second(received, share.unwrap_or(0.0));
        }
    }
}
