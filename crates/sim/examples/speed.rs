//! How fast the simulator is: bulk flows over a link like Rax's (20 Mbit/s and 10 packets of
//! buffer a flow, 50 ms), metrics on, time grid off, one thread. Prints one line of JSON.
//!
//! `speed [--flows N] [--seconds S] [--scheme NAME]`

use std::process::ExitCode;

use headway_cc::{Bytes, Duration, Rate, Registry, Time, schemes};
use headway_scenario::{
    FlowSpec, LinkSpec, Network, QueueSpec, RateSpec, Source, TraceSpec, Transport,
};
use headway_sim::{Options, Simulation};

/// Rax's link for `flows` flows: rate and buffer grow with their number, so that each has the same
/// conditions.
fn rax_link(flows: u64) -> Network {
    let link = |name: &str, from, to, rate, queue| LinkSpec {
        name: name.to_owned(),
        from,
        to,
        rate,
        delay: Duration::from_millis(25),
        loss: None,
        jitter: None,
        reorder: None,
        queue,
        router_of_scheme: true,
    };
    let queue = QueueSpec::drop_tail(Some(10 * flows), None);
    let flow = |i: u64| FlowSpec {
        place: i as usize,
        scheme: None,
        from: 0,
        to: 1,
        // Starts are spread over one round trip, so that the flows are not in step.
        route: None,
        start: Time::from_nanos(50_000_000 * i / flows),
        stop: None,
        source: Source::Bulk,
        receive_window: None,
    };
    Network {
        nodes: vec!["sender".to_owned(), "receiver".to_owned()],
        links: vec![
            link(
                "bottleneck",
                0,
                1,
                RateSpec::Fixed(Rate::from_mbps(20.0) * flows),
                queue,
            ),
            link("return", 1, 0, RateSpec::Unlimited, QueueSpec::INFINITE),
        ],
        flows: (0..flows).map(flow).collect(),
        cross: vec![],
        changes: vec![],
        packet_size: Bytes::new(1250),
        ack_size: Bytes::new(52),
        transport: Transport::Simple,
        host_jitter: Duration::ZERO,
        switches: None,
    }
}

fn main() -> ExitCode {
    let mut flows = 1;
    let mut seconds = 60.0;
    let mut scheme = "newreno".to_owned();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().unwrap_or_default();
        let known = match arg.as_str() {
            "--flows" => value.parse().map(|n| flows = n).is_ok() && flows > 0,
            "--seconds" => value.parse().map(|s| seconds = s).is_ok(),
            "--scheme" => {
                scheme = value;
                true
            }
            _ => false,
        };
        if !known {
            eprintln!("speed: usage: speed [--flows N] [--seconds S] [--scheme NAME]");
            return ExitCode::from(2);
        }
    }
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(headway_policy::schemes::SCHEMES);
    let selection = match registry.select(&scheme) {
        Ok(selection) => selection,
        Err(error) => {
            eprintln!("speed: {error}");
            return ExitCode::from(2);
        }
    };
    let options = Options {
        duration: Duration::from_secs_f64(seconds),
        warmup: Duration::ZERO,
        seed: 1,
        grid: None,
    };
    let no_traces = |trace: &TraceSpec| Err(format!("no trace {}", trace.name));
    let started = cpu_seconds();
    let outcome = Simulation::new(&rax_link(flows), &selection, &registry, &no_traces, options)
        .and_then(Simulation::finish);
    let total = match outcome {
        Ok(mut outcome) => outcome.rows.swap_remove(0).metrics,
        Err(error) => {
            eprintln!("speed: {error}");
            return ExitCode::from(2);
        }
    };
    let cpu = cpu_seconds() - started;
    let packets = total.delivered_packets;
    println!(
        "{{\"scheme\": \"{scheme}\", \"flows\": {flows}, \"seconds\": {seconds}, \"packets\": {packets}, \
         \"cpu_s\": {cpu:.3}, \"packets_per_cpu_s\": {:.0}, \"utilisation\": {:.4}, \"loss\": {:.6}, \
         \"queue_mean_ms\": {:.3}, \"peak_memory_kb\": {}}}",
        packets as f64 / cpu,
        total.utilisation.unwrap_or(0.0),
        total.loss.unwrap_or(0.0),
        total.queue_mean_ms.unwrap_or(0.0),
        peak_memory_kb(),
    );
    ExitCode::SUCCESS
}

/// CPU time of this process, from `/proc/self/schedstat`.
fn cpu_seconds() -> f64 {
    let spent = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    spent
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e9
}

/// The most memory that this process has used.
fn peak_memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    line.and_then(|l| l.split_whitespace().nth(1))
        .and_then(|kb| kb.parse().ok())
        .unwrap_or(0)
}
