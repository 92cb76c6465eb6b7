//! A finished run as rows of metrics and time series.

use headway_cc::Time;
use headway_net::Body;
use headway_record::{ALL_FLOWS, Bottleneck, Fitness, FlowMeter, Grid, Metrics, Series};

use crate::{Observer, Simulation, SimulationError};

/// What a run gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The metrics of all flows under test together, then of each flow.
    pub rows: Vec<FlowOutcome>,
    /// Time series, in the same order; empty if they were not wanted.
    pub series: Vec<FlowSeries>,
    /// Whether the machine kept up; `None` in simulated time.
    pub fitness: Option<Fitness>,
}

/// One flow's metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// The flow's index, or [`ALL_FLOWS`].
    pub flow: i32,
    /// What it ran.
    pub scheme: String,
    /// The metrics.
    pub metrics: Metrics,
}

/// One flow's series.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSeries {
    /// The flow's index, or [`ALL_FLOWS`].
    pub flow: i32,
    /// The series.
    pub series: Series,
    /// Capacity of the bottleneck in each bin, Mbit/s; of [`ALL_FLOWS`] only.
    pub capacity_mbps: Vec<f64>,
    /// Packets at the bottleneck as each bin ended; of [`ALL_FLOWS`] only.
    pub queue_packets: Vec<f64>,
}

impl<O: Observer> Simulation<O> {
    /// Ends the run and sums it up.
    ///
    /// # Errors
    /// As for [`run_until`](Self::run_until).
    pub fn finish(mut self) -> Result<Outcome, SimulationError> {
        let end = Time::ZERO + self.options.duration;
        self.run_until(end)?;
        (0..self.flows.len()).for_each(|flow| self.end_flow(flow));
        for link in &mut self.links {
            for packet in link.propagating(end) {
                if let Body::Data(segment) = &packet.body {
                    let meter = &mut self.flows[packet.flow as usize].meter;
                    meter.on_propagating_at_end(segment.sent, packet.size());
                }
            }
        }
        let mut rows = Vec::with_capacity(self.flows.len() + 1);
        let mut pooled = FlowMeter::new(end);
        let tested = || self.flows.iter().filter(|f| f.under_test);
        tested().for_each(|f| pooled.merge(&f.meter));
        let last = tested().map(|f| f.ends).max().unwrap_or(end);
        let mut total = Metrics::of(&pooled, last, self.sampler.pooled.bottleneck());
        for (i, flow) in self.flows.iter().enumerate() {
            let own_share = flow.window.bottleneck().map(|b| Bottleneck {
                used_bytes: flow.window_bytes as f64,
                ..b
            });
            let mut metrics = Metrics::of(&flow.meter, flow.ends, own_share);
            metrics.convergence_s = flow.convergence.seconds();
            rows.push(FlowOutcome {
                flow: i as i32,
                scheme: flow.scheme.clone(),
                metrics,
            });
        }
        let of_tested = || {
            self.flows
                .iter()
                .zip(&rows)
                .filter(|(f, _)| f.under_test)
                .map(|(_, r)| r)
        };
        total.jain = self.sampler.fairness.index();
        let slowest: Option<Vec<f64>> = of_tested().map(|r| r.metrics.convergence_s).collect();
        total.convergence_s = slowest.and_then(|all| all.into_iter().reduce(f64::max));
        let scheme = tested()
            .next()
            .map_or_else(String::new, |f| f.scheme.clone());
        rows.insert(
            0,
            FlowOutcome {
                flow: ALL_FLOWS,
                scheme,
                metrics: total,
            },
        );
        let series = if self.options.grid.is_some() {
            self.take_series(end)
        } else {
            Vec::new()
        };
        Ok(Outcome {
            rows,
            series,
            fitness: None,
        })
    }

    fn take_series(&mut self, end: Time) -> Vec<FlowSeries> {
        let mut all = Vec::with_capacity(self.flows.len() + 1);
        let mut pooled: Option<Grid> = None;
        for (i, flow) in self.flows.iter_mut().enumerate() {
            let Some(grid) = flow.grid.take() else {
                continue;
            };
            if flow.under_test {
                match &mut pooled {
                    Some(p) => p.merge(&grid),
                    None => pooled = Some(grid.clone()),
                }
            }
            all.push(FlowSeries {
                flow: i as i32,
                series: grid.finish(end),
                capacity_mbps: Vec::new(),
                queue_packets: Vec::new(),
            });
        }
        if let Some(pooled) = pooled {
            let series = pooled.finish(end);
            let capacity_mbps = self.capacity_mbps(series.time_s.len());
            all.insert(
                0,
                FlowSeries {
                    flow: ALL_FLOWS,
                    series,
                    capacity_mbps,
                    queue_packets: std::mem::take(&mut self.sampler.queue_packets),
                },
            );
        }
        all
    }

    /// Capacity in each bin of the grid: of the slowest link on the way of the first flow under test.
    fn capacity_mbps(&self, bins: usize) -> Vec<f64> {
        let (Some(interval), Some(flow)) =
            (self.options.grid, self.flows.iter().find(|f| f.under_test))
        else {
            return Vec::new();
        };
        let offered = |bin: usize, l: u32| -> f64 {
            let at = |b: usize| {
                self.sampler
                    .bins
                    .get(b)
                    .and_then(|r| r.get(l as usize))
                    .and_then(Option::as_ref)
                    .map_or(0.0, |r| r.offered)
            };
            at(bin) - if bin == 0 { 0.0 } else { at(bin - 1) }
        };
        let slowest = flow
            .data_route
            .iter()
            .copied()
            .filter(|&l| offered(0, l) > 0.0 || offered(1, l) > 0.0)
            .min_by(|&a, &b| {
                let last = self.sampler.bins.last();
                let total = |l: u32| last.and_then(|r| r[l as usize]).map_or(0.0, |r| r.offered);
                total(a).total_cmp(&total(b))
            });
        let Some(link) = slowest else {
            return Vec::new();
        };
        (0..bins.min(self.sampler.bins.len()))
            .map(|b| offered(b, link) * 8e-6 / interval.as_secs_f64())
            .collect()
    }
}
