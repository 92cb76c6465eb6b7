//! A finished run as rows of metrics and time series.

use headway_cc::Time;
use headway_net::Link;
use headway_record::{ALL_FLOWS, Fitness, FlowMeter, Grid, Metrics, Series};
use serde::{Deserialize, Serialize};

use crate::Measurement;
use crate::flow::{Measured, MeasuredFlow};

/// The result of a run. As JSON it keeps every bit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The metrics of all flows under test together, and then those of each flow.
    pub rows: Vec<FlowOutcome>,
    /// Time series, in the same order; empty if they are not requested.
    pub series: Vec<FlowSeries>,
    /// Whether the machine kept up; `None` in simulated time.
    pub fitness: Option<Fitness>,
}

/// One flow's metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// The flow's index, or [`ALL_FLOWS`].
    pub flow: i32,
    /// The flow's scheme.
    pub scheme: String,
    /// The trained model that decided for it, if one did.
    pub model: Option<String>,
    /// The metrics.
    pub metrics: Metrics,
}

/// One flow's series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSeries {
    /// The flow's index, or [`ALL_FLOWS`].
    pub flow: i32,
    /// The series.
    pub series: Series,
    /// Capacity of the bottleneck in each bin, Mbit/s; only for [`ALL_FLOWS`].
    pub capacity_mbps: Vec<f64>,
    /// Packets at the bottleneck as each bin ended; only for [`ALL_FLOWS`].
    pub queue_packets: Vec<f64>,
}

impl Measurement {
    /// Ends the flows that are left at the end of the run, and computes its results.
    pub fn finish<F: Measured>(mut self, links: &mut [Link], flows: &mut [F]) -> Outcome {
        let end = Time::ZERO + self.options.duration;
        (0..flows.len()).for_each(|flow| self.end_flow(end, flow, links, flows));
        let measured: Vec<&MeasuredFlow> = flows.iter().map(F::measured).collect();
        let of_flows = measured.iter().enumerate().map(|(i, f)| f.outcome(i));
        let mut rows: Vec<FlowOutcome> = of_flows.collect();
        // A large bench keeps very many of these, so there is no spare capacity.
        rows.reserve_exact(1);
        rows.insert(0, self.of_all(end, &measured, &rows));
        let series = match self.options.grid {
            Some(_) => self.take_series(end, flows),
            None => Vec::new(),
        };
        Outcome {
            rows,
            series,
            fitness: None,
        }
    }

    /// The result of all flows under test together.
    fn of_all(&self, end: Time, flows: &[&MeasuredFlow], rows: &[FlowOutcome]) -> FlowOutcome {
        let tested = || flows.iter().zip(rows).filter(|(f, _)| f.under_test);
        let mut pooled = FlowMeter::new(end);
        tested().for_each(|(f, _)| pooled.merge(&f.meter));
        let last = tested().map(|(f, _)| f.ends).max().unwrap_or(end);
        let mut metrics = Metrics::of(&pooled, last, self.pooled.bottleneck());
        metrics.jain = self.fairness.index();
        let slowest: Option<Vec<f64>> = tested().map(|(_, r)| r.metrics.convergence_s).collect();
        metrics.convergence_s = slowest.and_then(|all| all.into_iter().reduce(f64::max));
        let first = tested().next().map(|(f, _)| f);
        FlowOutcome {
            flow: ALL_FLOWS,
            scheme: first.map_or_else(String::new, |f| f.scheme.clone()),
            model: first.and_then(|f| f.model.clone()),
            metrics,
        }
    }

    fn take_series<F: Measured>(&mut self, end: Time, flows: &mut [F]) -> Vec<FlowSeries> {
        let mut all = Vec::with_capacity(flows.len() + 1);
        let mut pooled: Option<Grid> = None;
        for (i, flow) in flows.iter_mut().map(F::measured_mut).enumerate() {
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
            let tested = flows.iter().map(F::measured).find(|f| f.under_test);
            let capacity_mbps = tested.map_or_else(Vec::new, |flow| {
                self.capacity_mbps(&flow.data_route, series.time_s.len())
            });
            all.insert(
                0,
                FlowSeries {
                    flow: ALL_FLOWS,
                    series,
                    capacity_mbps,
                    queue_packets: std::mem::take(&mut self.queue_packets),
                },
            );
        }
        all
    }

    /// Capacity in each bin of the grid, of the slowest link on this way.
    fn capacity_mbps(&self, way: &[u32], bins: usize) -> Vec<f64> {
        let Some(interval) = self.options.grid else {
            return Vec::new();
        };
        let offered = |bin: usize, l: u32| -> f64 {
            let at = |b: usize| {
                self.bins
                    .get(b)
                    .and_then(|r| r.get(l as usize))
                    .and_then(Option::as_ref)
                    .map_or(0.0, |r| r.offered)
            };
            at(bin) - if bin == 0 { 0.0 } else { at(bin - 1) }
        };
        let slowest = way
            .iter()
            .copied()
            .filter(|&l| offered(0, l) > 0.0 || offered(1, l) > 0.0)
            .min_by(|&a, &b| {
                let last = self.bins.last();
                let total = |l: u32| last.and_then(|r| r[l as usize]).map_or(0.0, |r| r.offered);
                total(a).total_cmp(&total(b))
            });
        let Some(link) = slowest else {
            return Vec::new();
        };
        (0..bins.min(self.bins.len()))
            .map(|b| offered(b, link) * 8e-6 / interval.as_secs_f64())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker process passes its outcome on as JSON.
    #[test]
    fn json_keeps_every_bit() {
        let awkward = [0.1 + 0.2, 1.0 / 3.0, 5e-324, f64::MAX, -0.0, 1e23];
        let outcome = Outcome {
            rows: vec![FlowOutcome {
                flow: ALL_FLOWS,
                scheme: "copa:delta=0.1".to_owned(),
                model: Some("x-v1@0123456789ab".to_owned()),
                metrics: Metrics {
                    throughput_mbps: Some(awkward[0]),
                    jain: Some(awkward[1]),
                    sent_packets: u64::MAX,
                    ..Metrics::default()
                },
            }],
            series: vec![FlowSeries {
                flow: 0,
                series: Series {
                    time_s: awkward.to_vec(),
                    rtt_ms: vec![None, Some(awkward[2])],
                    ..Series::default()
                },
                capacity_mbps: vec![],
                queue_packets: awkward.to_vec(),
            }],
            fitness: Some(Fitness {
                cpu_idle: Some(awkward[1]),
                ..Fitness::default()
            }),
        };
        let text = serde_json::to_string(&outcome).unwrap();
        let back: Outcome = serde_json::from_str(&text).unwrap();
        assert_eq!(back, outcome);
        let bits = |o: &Outcome| {
            o.series[0]
                .queue_packets
                .iter()
                .map(|x| x.to_bits())
                .collect()
        };
        let (before, after): (Vec<u64>, Vec<u64>) = (bits(&outcome), bits(&back));
        assert_eq!(before, after);
    }
}
