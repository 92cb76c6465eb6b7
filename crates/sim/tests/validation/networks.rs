//! Networks that the tests share, and functions that run them.

use std::io::Write;
use std::path::PathBuf;

use headway_cc::{Bytes, Duration, Rate, Registry, Time, schemes};
use headway_record::Metrics;
use headway_scenario::{
    FlowSpec, LinkSpec, Network, QueueSpec, RateSpec, Source, TraceSpec, TraceStore, Transport,
};
use headway_sim::{Observer, Options, Outcome, Simulation};

use crate::watch;

/// A link between two nodes.
pub fn link(from: usize, to: usize, rate: RateSpec, delay: Duration, queue: QueueSpec) -> LinkSpec {
    LinkSpec {
        name: format!("{from}-{to}"),
        from,
        to,
        rate,
        delay,
        loss: None,
        jitter: None,
        reorder: None,
        queue,
        router_of_scheme: true,
    }
}

/// A queue of this many packets.
pub const fn packets(limit: u64) -> QueueSpec {
    QueueSpec::drop_tail(Some(limit), None)
}

/// A bulk flow of the scheme under test, from the run's beginning to its end.
pub const fn bulk(from: usize, to: usize) -> FlowSpec {
    FlowSpec {
        place: 0,
        scheme: None,
        from,
        to,
        route: None,
        start: Time::ZERO,
        stop: None,
        source: Source::Bulk,
        receive_window: None,
    }
}

/// One bulk flow over one bottleneck; the way back only delays. Data packets of `packet` bytes,
/// acknowledgements of 52, profile `simple`, no jitter.
pub fn one_flow(rate: RateSpec, one_way: Duration, queue: QueueSpec, packet: u64) -> Network {
    Network {
        nodes: vec!["sender".to_owned(), "receiver".to_owned()],
        links: vec![
            link(0, 1, rate, one_way, queue),
            link(1, 0, RateSpec::Unlimited, one_way, QueueSpec::INFINITE),
        ],
        flows: vec![bulk(0, 1)],
        cross: vec![],
        changes: vec![],
        packet_size: Bytes::new(packet),
        ack_size: Bytes::new(52),
        transport: Transport::Simple,
        host_jitter: Duration::ZERO,
        switches: None,
    }
}

/// One flow over a link of a fixed rate.
pub fn fixed(mbps: f64, one_way_ms: u64, queue: u64, packet: u64) -> Network {
    let rate = RateSpec::Fixed(Rate::from_mbps(mbps));
    let one_way = Duration::from_millis(one_way_ms);
    one_flow(rate, one_way, packets(queue), packet)
}

/// Rax's link (Rax §V): 20 Mbit/s, 50 ms of round trip, 10 packets of 1250 bytes.
pub fn rax() -> Network {
    fixed(20.0, 25, 10, 1250)
}

/// The store in which the tests look for traces.
pub fn traces() -> TraceStore {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    TraceStore::new([PathBuf::from(shared)])
}

/// Whether all of these traces are here. If not, it prints `skipped: TEST: why`, past the test
/// harness, which hides the output of a test that passes.
pub fn has_traces(test: &str, names: &[&str]) -> bool {
    let store = traces();
    let missing: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| store.find(name).is_none())
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {test}: no trace {missing}; see `headway traces`"
        );
    }
    missing.is_empty()
}

/// Sets up `scheme` on `network`.
pub fn simulation(network: &Network, scheme: &str, options: Options) -> Simulation {
    observed(network, scheme, options, ())
}

/// Same as `simulation`, with an observer.
pub fn observed<O: Observer>(
    network: &Network,
    scheme: &str,
    options: Options,
    observer: O,
) -> Simulation<O> {
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(watch::SCHEMES);
    let selection = registry.select(scheme).expect("a scheme");
    let store = traces();
    let load = |spec: &TraceSpec| store.load_spec(spec).map_err(|e| e.to_string());
    Simulation::observed(network, &selection, &registry, &load, options, observer)
        .expect("a network")
}

/// Options of a run of `seconds` whose first `warmup` seconds do not count.
pub fn options(seconds: f64, warmup: f64) -> Options {
    Options {
        duration: Duration::from_secs_f64(seconds),
        warmup: Duration::from_secs_f64(warmup),
        seed: 1,
        grid: None,
    }
}

/// Runs `scheme` on `network`.
pub fn run(network: &Network, scheme: &str, options: Options) -> Outcome {
    simulation(network, scheme, options)
        .finish()
        .expect("a whole run")
}

/// The metrics of all flows together.
pub fn metrics(network: &Network, scheme: &str, options: Options) -> Metrics {
    run(network, scheme, options).rows[0].metrics
}
