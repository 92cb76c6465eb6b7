//! Bench runs, held against the same runs in the simulator and against arithmetic.

use headway_cc::{Duration, Registry, schemes};
use headway_emu::run::{Plan, play};
use headway_emu::sys::become_able;
use headway_scenario::{Scenario, TraceSpec, TraceStore};
use headway_world::{Options, Outcome};

const TRACES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../python/headway/data/traces"
);

fn run(scenario: &Scenario, scheme: &str, seconds: u64) -> Outcome {
    become_able().expect("namespaces are permitted: make test-system looked");
    let options = Options {
        duration: Duration::from_secs(seconds),
        warmup: Duration::from_secs(1),
        seed: 1,
        grid: Some(Duration::from_millis(500)),
    };
    let network = scenario.draw_for(options.seed, options.duration);
    let registry = Registry::new(schemes::SCHEMES);
    let plan = Plan::new(&network, scheme, &registry, options).unwrap();
    let store = TraceStore::of([TRACES.into()]);
    let traces = |spec: &TraceSpec| store.load_spec(spec).map_err(|e| e.to_string());
    let mut told = 0;
    let mut go_on = |_| {
        told += 1;
        true
    };
    let outcome = play(&plan, &traces, &mut go_on).unwrap();
    assert!(told >= 5 * seconds, "told {told} times how far it is");
    outcome
}

fn bottleneck(rest: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"test\"\nseconds = 5\npacket_size = \"1500B\"\n\
         [[link]]\nname = \"bottleneck\"\nfrom = \"a\"\nto = \"b\"\nrate = \"12Mbps\"\ndelay = \"20ms\"\nqueue = \"80pkt\"\n\
         [[link]]\nname = \"return\"\nfrom = \"b\"\nto = \"a\"\ndelay = \"20ms\"\n{rest}"
    );
    Scenario::parse(&text, "test").unwrap()
}

/// 12 Mbit/s, 40 ms and two BDP of buffer: Cubic keeps it full, Copa too and with a shorter queue.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn one_flow_fills_the_link() {
    let flow = bottleneck("[[flow]]\nfrom = \"a\"\nto = \"b\"\n");
    for scheme in ["cubic", "copa"] {
        let outcome = run(&flow, scheme, 5);
        let total = outcome.rows[0].metrics;
        assert!(total.utilisation.unwrap() > 0.85, "{scheme}: {total:?}");
        let mbps = total.throughput_mbps.unwrap();
        assert!((10.0..=12.05).contains(&mbps), "{scheme}: {total:?}");
        let delay = total.delay_mean_ms.unwrap();
        assert!((21.0..101.0).contains(&delay), "{scheme}: {total:?}");
        // There and back, what waits at the bottleneck, and a little.
        let rtt = total.rtt_mean_ms.unwrap();
        assert!((rtt - delay - 20.0).abs() < 5.0, "{scheme}: {total:?}");
        let series = &outcome.series[0].series;
        assert_eq!(series.time_s.len(), 10);
        assert!(series.cwnd_packets[5].unwrap() > 10.0, "{scheme}");
        let capacity = outcome.series[0].capacity_mbps[5];
        assert!((capacity - 12.0).abs() < 0.1, "{capacity}");
        assert!(outcome.fitness.unwrap().lateness_p50_ms.unwrap() < 1.0);
    }
}

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn two_flows_share_and_one_stops() {
    let flows = bottleneck(
        "[[flow]]\nfrom = \"a\"\nto = \"b\"\ncount = 2\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\nscheme = \"udp-fixed-rate:rate=2Mbps\"\nstart = \"1s\"\nstop = \"3s\"\n",
    );
    let outcome = run(&flows, "newreno", 6);
    let rows = &outcome.rows;
    assert_eq!(
        rows.iter().map(|r| r.flow).collect::<Vec<_>>(),
        [-1, 0, 1, 2]
    );
    assert!(rows[0].metrics.jain.unwrap() > 0.7, "{rows:?}");
    let constant = rows[3].metrics;
    // 2 Mbit/s for two seconds are 333 packets of 1500 bytes.
    assert!(constant.sent_packets.abs_diff(333) <= 4, "{constant:?}");
    let all: f64 = rows[1..3]
        .iter()
        .filter_map(|r| r.metrics.throughput_mbps)
        .sum();
    assert!(
        (9.5..11.7).contains(&all),
        "12 less 2 for two of five seconds: {rows:?}"
    );
}

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn a_finite_flow_ends_with_its_data() {
    // 750 kB at 12 Mbit/s take half a second and a slow start.
    let flow =
        bottleneck("[[flow]]\nfrom = \"a\"\nto = \"b\"\nbytes = \"750kB\"\nstart = \"1s\"\n");
    for scheme in ["newreno", "udp-newreno"] {
        let total = run(&flow, scheme, 4).rows[0].metrics;
        // The source counts packets, and each carries data.
        assert!(
            (500..=503).contains(&total.delivered_packets),
            "{scheme}: {total:?}"
        );
        assert!(
            total.throughput_mbps.unwrap() > 5.0,
            "it has ended: {scheme}: {total:?}"
        );
        // Utilisation is taken from the flow's start, throughput from the first arrival, 21 ms later and with a
        // handshake of 40 ms before it; both until the last arrival. The acknowledgement takes 20 ms more.
        let bits = total.delivered_packets as f64 * 12_000.0;
        let measured_s = bits / 12e6 / total.utilisation.unwrap();
        let arriving_s = bits / 1e6 / total.throughput_mbps.unwrap();
        let before_s = if scheme == "newreno" { 0.061 } else { 0.021 };
        let longer_s = measured_s - arriving_s - before_s;
        assert!(longer_s.abs() < 0.01, "{longer_s}: {scheme}: {total:?}");
    }
}

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn a_trace_is_followed_and_background_traffic_waits_too() {
    let scenario = Scenario::load("synthetic-verizon").unwrap();
    let total = run(&scenario, "cubic", 4).rows[0].metrics;
    assert!(total.utilisation.unwrap() > 0.8, "{total:?}");
    let cross = bottleneck(
        "[[flow]]\nfrom = \"a\"\nto = \"b\"\n\
         [[cross]]\nfrom = \"a\"\nto = \"b\"\nrate = \"6Mbps\"\n",
    );
    let total = run(&cross, "newreno", 4).rows[0].metrics;
    assert!(
        total.utilisation.unwrap() > 0.9,
        "of all traffic: {total:?}"
    );
    let mbps = total.throughput_mbps.unwrap();
    assert!(
        (4.0..6.5).contains(&mbps),
        "what cross traffic leaves: {total:?}"
    );
}
