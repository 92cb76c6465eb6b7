//! When a run's links and flows are read, and the measurements that result.

use headway_cc::Time;
use headway_net::Link;
use headway_record::Convergence;

use crate::Options;
use crate::fairness::Fairness;
use crate::flow::Measured;
use crate::window::{Reading, Window, read_all};

/// The time at which the measurement of a flow begins or ends.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Begin(usize),
    End(usize),
}

/// The measurements of a run beyond its flows' own counts. The run calls
/// [`on_sample`](Self::on_sample) at [`next`](Self::next), [`on_bin_end`](Self::on_bin_end) as each
/// bin of the time series ends, and [`finish`](Self::finish).
#[derive(Debug)]
pub struct Measurement {
    pub(crate) options: Options,
    /// The readings at the end of the last second; none at first.
    second: Vec<Option<Reading>>,
    next_second: Time,
    /// The readings at the ends of the grid's bins, and the longest queue at that time.
    pub(crate) bins: Vec<Vec<Option<Reading>>>,
    pub(crate) queue_packets: Vec<f64>,
    /// The starts and ends of flows that are known in advance, by time.
    marks: Vec<(Time, Mark)>,
    next_mark: usize,
    /// The window of all flows under test together: from the first one's start to the last one's
    /// end, over every link that carries their data.
    pub(crate) pooled: Window,
    pooled_links: Vec<u32>,
    /// The number of flows under test that have not ended.
    unfinished: usize,
    pub(crate) fairness: Fairness,
}

impl Measurement {
    /// The measurement of a run with these flows.
    pub fn new<F: Measured>(flows: &[F], options: Options) -> Measurement {
        let (warmup, end) = (Time::ZERO + options.warmup, Time::ZERO + options.duration);
        let mut marks = Vec::new();
        for (i, flow) in flows.iter().map(F::measured).enumerate() {
            let begin = flow.start.max(warmup);
            if begin < flow.ends.min(end) {
                marks.push((begin, Mark::Begin(i)));
            }
            if flow.ends < end {
                marks.push((flow.ends, Mark::End(i)));
            }
        }
        marks.sort_by_key(|&(at, _)| at);
        let tested = || flows.iter().map(F::measured).filter(|f| f.under_test);
        let mut pooled_links: Vec<u32> = tested()
            .flat_map(|f| f.data_route.iter().copied())
            .collect();
        pooled_links.sort_unstable();
        pooled_links.dedup();
        Measurement {
            options,
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

    /// When the next reading is due.
    pub fn next(&self) -> Time {
        let mark = self.marks.get(self.next_mark);
        mark.map_or(Time::NEVER, |m| m.0).min(self.next_second)
    }

    /// Takes the readings that are due by `now`.
    pub fn on_sample<F: Measured>(&mut self, now: Time, links: &mut [Link], flows: &mut [F]) {
        while let Some(mark) = self.take_mark(now) {
            match mark {
                Mark::Begin(flow) => self.begin_flow(now, flow, links, flows),
                Mark::End(flow) => self.end_flow(now, flow, links, flows),
            }
        }
        self.on_second(now, links, flows);
    }

    fn take_mark(&mut self, now: Time) -> Option<Mark> {
        let &(at, mark) = self.marks.get(self.next_mark)?;
        (at <= now).then(|| {
            self.next_mark += 1;
            mark
        })
    }

    /// Begins the measurement of the flow, unless all its data had arrived before.
    fn begin_flow<F: Measured>(
        &mut self,
        now: Time,
        index: usize,
        links: &mut [Link],
        flows: &mut [F],
    ) {
        if flows[index].measured().has_ended {
            return;
        }
        self.fairness.on_change(now, flows);
        let flow = flows[index].measured_mut();
        flow.window.open(links, &flow.data_route, now);
        if flow.under_test {
            self.pooled.open(links, &self.pooled_links, now);
        }
    }

    /// Ends the measurement of a flow: it stops, all its data has arrived, or the run ends.
    pub fn end_flow<F: Measured>(
        &mut self,
        now: Time,
        index: usize,
        links: &mut [Link],
        flows: &mut [F],
    ) {
        if flows[index].measured().has_ended {
            return;
        }
        self.fairness.on_change(now, flows);
        let flow = flows[index].measured_mut();
        flow.end(now, links);
        if flow.under_test && flow.started {
            self.unfinished -= 1;
            if self.unfinished == 0 {
                self.pooled.close(links, &self.pooled_links, now);
            }
        }
    }

    /// Reports the second that has just ended to the flows, if one has.
    fn on_second<F: Measured>(&mut self, now: Time, links: &mut [Link], flows: &mut [F]) {
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

    /// A bin of the time series ends.
    pub fn on_bin_end(&mut self, now: Time, links: &mut [Link]) {
        self.bins.push(read_all(links, now));
        let backlogs = self.pooled_links.iter();
        let longest = backlogs.map(|&l| links[l as usize].backlog(now)).max();
        self.queue_packets.push(longest.unwrap_or(0) as f64);
    }
}

/// Tells each flow that ran in the second before `now` how much arrived, and its share. The share
/// is the smallest, over the links that its data crosses, of the link's capacity in that second
/// divided by the number of running flows whose data crosses it too.
fn watch_convergence<F: Measured>(
    flows: &mut [F],
    now: Time,
    before: &[Option<Reading>],
    after: &[Option<Reading>],
) {
    let from = now.saturating_sub(Convergence::BIN);
    let mut crossing = vec![0_u32; after.len()];
    let there = flows.iter().map(F::measured);
    for flow in there.filter(|f| f.overlaps(from, now)) {
        for &link in &flow.data_route {
            crossing[link as usize] += 1;
        }
    }
    let share = |&link: &u32| {
        let link = link as usize;
        let capacity = after[link]?.offered - before[link]?.offered;
        Some(capacity / f64::from(crossing[link]))
    };
    for flow in flows.iter_mut().map(F::measured_mut) {
        let received = flow.meter.take_recent() as f64;
        if flow.covers(from, now) {
            let share = flow.data_route.iter().filter_map(share).reduce(f64::min);
            flow.convergence.on_second(received, share.unwrap_or(0.0));
        }
    }
}
