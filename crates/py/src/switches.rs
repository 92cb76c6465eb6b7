use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headway_cc::{Bytes, Duration, NetworkView, Rate, Time};
use headway_net::{Link, Port, PortCounters};
use headway_scenario::{FlowSpec, Network, TraceSpec, TraceStore};
use headway_sim::{Observer, Options, Simulation, SimulationError};
use headway_world::Ways;
use pyo3::prelude::*;

use crate::scenario::Scenario;
use crate::schemes::registry;
use crate::{RunError, own_traces, usage};

/// A port's counters: packets and bytes in, packets and bytes out, and the time in ns by the
/// switch's clock.
type Counters = (u64, u64, u64, u64, u64);

fn counters((rx_packets, rx_bytes, tx_packets, tx_bytes, at_ns): Counters) -> PortCounters {
    PortCounters {
        rx_packets,
        rx_bytes,
        tx_packets,
        tx_bytes,
        tx_dropped: 0,
        at: Time::from_nanos(at_ns),
    }
}

/// For each known switch its ports: counters before and after, and the capacity of the outgoing
/// link.
#[pyfunction]
pub(crate) fn network_view(
    known: Vec<Vec<(Counters, Counters, Option<u64>)>>,
) -> Option<(f64, f64)> {
    let port = |(before, after, capacity): (Counters, Counters, Option<u64>)| Port {
        before: counters(before),
        after: counters(after),
        capacity: capacity.map(Rate::from_bps),
    };
    let switches = known.into_iter();
    headway_net::network_view(switches.map(|ports| ports.into_iter().map(port)))
}

/// A link's counters: packets and bytes that arrived at its far end, packets and bytes that left
/// its near end, packets that its queue dropped; and its rate since the last reading in bit/s.
type LinkReading = (u64, u64, u64, u64, u64, Option<u64>);

/// A measurement: time, flow, PNC, PNA, known share.
type News = (f64, u32, f64, f64, f64);

/// Records the measurements that senders receive. The simulation owns its observer, so the list is
/// shared.
#[derive(Default)]
struct Recorded(Arc<Mutex<Vec<News>>>);

impl Observer for Recorded {
    fn on_network(&mut self, now: Time, flow: u32, view: &NetworkView) {
        let news = (now.as_secs_f64(), flow, view.pnc, view.pna, view.known);
        lock(&self.0).push(news);
    }
}

/// A scenario in simulated time, with switches whose counters can be read.
#[pyclass(frozen, module = "headway._native")]
pub(crate) struct SimulatedNetwork {
    network: Network,
    run: Mutex<Run>,
    measurements: Arc<Mutex<Vec<News>>>,
    end: Time,
}

struct Run {
    simulation: Simulation<Recorded>,
    /// Bytes that each link could have carried at the last reading, and the time of that reading.
    offered: Vec<Option<f64>>,
    read_at: Time,
}

#[pymethods]
impl SimulatedNetwork {
    #[new]
    #[pyo3(signature = (scenario, scheme, *, seed=1, seconds=None))]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        scheme: &str,
        seed: u64,
        seconds: Option<f64>,
    ) -> PyResult<SimulatedNetwork> {
        let scenario = &scenario.0;
        let longest = scenario.longest().as_secs_f64();
        let seconds = seconds.unwrap_or(scenario.seconds());
        if !(seconds > 0.0 && seconds <= longest) {
            return Err(usage(format!(
                "scenario '{}': {seconds} s is no length of a run, which is above 0 and at most {longest} s",
                scenario.name()
            )));
        }
        let duration = Duration::from_secs_f64(seconds);
        let network = scenario.draw_for(seed, duration);
        let store = TraceStore::new([own_traces(py)?]);
        let traces =
            |spec: &TraceSpec| scenario.load_trace(spec, &store).map_err(|e| e.to_string());
        let registry = registry();
        let test = registry.select(scheme).map_err(usage)?;
        let options = Options {
            duration,
            warmup: Duration::ZERO,
            seed,
            grid: None,
        };
        let measurements = Recorded::default();
        let shared = Arc::clone(&measurements.0);
        let simulation =
            Simulation::observed(&network, &test, &registry, &traces, options, measurements);
        let simulation =
            simulation.map_err(|e| usage(format!("scenario '{}': {e}", scenario.name())))?;
        Ok(SimulatedNetwork {
            run: Mutex::new(Run {
                offered: vec![Some(0.0); network.links.len()],
                read_at: Time::ZERO,
                simulation,
            }),
            measurements: shared,
            end: Time::ZERO + duration,
            network,
        })
    }

    #[getter]
    fn links(&self) -> Vec<(&str, &str, &str)> {
        let node = |index: usize| self.network.nodes[index].as_str();
        let links = self.network.links.iter();
        links
            .map(|link| (link.name.as_str(), node(link.from), node(link.to)))
            .collect()
    }

    #[getter]
    fn paths(&self) -> Vec<(Vec<&str>, Vec<usize>)> {
        let ways = Ways::new(&self.network);
        let node = |index: usize| self.network.nodes[index].as_str();
        let path = |flow: &FlowSpec| {
            // The way was found when the run was set up.
            let way = ways.of_flow(flow).map(|way| way.data).unwrap_or_default();
            let links: Vec<usize> = way.iter().map(|&link| link as usize).collect();
            let ends = links.iter().map(|&link| self.network.links[link].to);
            let nodes = std::iter::once(flow.from).chain(ends).map(node);
            (nodes.collect(), links)
        };
        self.network.flows.iter().map(path).collect()
    }

    #[getter]
    fn known(&self) -> Vec<&str> {
        let switches = self.network.switches.iter();
        let known = switches.flat_map(|s| &s.known);
        known.map(|&n| self.network.nodes[n].as_str()).collect()
    }

    #[getter]
    fn end_s(&self) -> f64 {
        self.end.as_secs_f64()
    }

    fn advance(&self, py: Python<'_>, until_s: f64) -> PyResult<f64> {
        if until_s.is_nan() || until_s < 0.0 {
            return Err(usage(format!("{until_s} s is no time in a run")));
        }
        let until = Time::ZERO + Duration::from_secs_f64(until_s);
        py.detach(|| {
            let simulation = &mut lock(&self.run).simulation;
            // The run ends there, and time does not go back.
            simulation.run_until(until.max(simulation.now()))?;
            Ok(simulation.now().as_secs_f64())
        })
        .map_err(|error: SimulationError| RunError::new_err(error.to_string()))
    }

    fn read(&self) -> (u64, Vec<LinkReading>) {
        let mut run = lock(&self.run);
        let Run {
            simulation,
            offered,
            read_at,
        } = &mut *run;
        let now = simulation.now();
        let interval = now.since(*read_at);
        let (_, links) = simulation.way_mut(0);
        let reading = |(link, before): (&mut Link, &mut Option<f64>)| {
            let counters = link.counters(now);
            let after = link.offered_until(now);
            let rate = after.zip(*before).map(|(after, before)| {
                Rate::from_bytes_per(Bytes::from_f64(after - before), interval).as_bps()
            });
            *before = after;
            (
                counters.delivered_packets,
                counters.delivered_bytes,
                counters.served_packets,
                counters.served_bytes,
                counters.dropped_packets,
                rate,
            )
        };
        let readings = links.iter_mut().zip(offered).map(reading).collect();
        *read_at = now;
        (now.as_nanos(), readings)
    }

    fn take_measurements(&self) -> Vec<News> {
        std::mem::take(&mut lock(&self.measurements))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
