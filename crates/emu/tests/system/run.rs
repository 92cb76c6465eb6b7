//! Bench runs, compared with the same runs in the simulator and with arithmetic.

use headway_cc::{Duration, Registry, schemes};
use headway_emu::run::{Plan, play};
use headway_emu::sys::become_able;
use headway_scenario::{Scenario, TraceSpec, TraceStore};
use headway_world::{Options, Outcome};

const TRACES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../python/headway/data/traces"
);

/// A bench run of the scenario, as the command runs it.
pub fn run(scenario: &Scenario, scheme: &str, seconds: u64) -> Outcome {
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
    let mut calls = 0;
    let mut go_on = |_| {
        calls += 1;
        true
    };
    let outcome = play(&plan, &traces, &mut go_on).unwrap();
    assert!(calls > 0, "the progress was not reported");
    outcome
}

/// A link of 12 Mbit/s, 40 ms and a queue of two BDP, with these flows.
pub fn bottleneck(rest: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"test\"\nseconds = 5\npacket_size = \"1500B\"\n\
         [[link]]\nname = \"bottleneck\"\nfrom = \"a\"\nto = \"b\"\nrate = \"12Mbps\"\ndelay = \"20ms\"\nqueue = \"80pkt\"\n\
         [[link]]\nname = \"return\"\nfrom = \"b\"\nto = \"a\"\ndelay = \"20ms\"\n{rest}"
    );
    Scenario::parse(&text, "test").unwrap()
}

/// Checks that each flow has a row, and that its values are in their ranges; the tests in `live`
/// judge how large they are.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn one_flow_has_its_row_and_its_series() {
    let flow = bottleneck("[[flow]]\nfrom = \"a\"\nto = \"b\"\n");
    let outcome = run(&flow, "cubic", 5);
    let total = outcome.rows[0].metrics;
    // The limit is a tenth above the link's rate: a meter that begins late also counts what was due
    // before.
    assert!(total.throughput_mbps.unwrap() <= 13.2, "{total:?}");
    // 20 ms and the transmission of a packet.
    assert!(total.delay_mean_ms.unwrap() >= 21.0, "{total:?}");
    assert!(total.rtt_mean_ms.unwrap() >= 41.0, "{total:?}");
    let series = &outcome.series[0].series;
    assert_eq!(series.time_s.len(), 10);
    let capacity = outcome.series[0].capacity_mbps[5];
    assert!((capacity - 12.0).abs() < 0.1, "{capacity}");
    assert!(outcome.fitness.is_some());
}

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn each_flow_has_a_row_and_stops_in_time() {
    let flows = bottleneck(
        "[[flow]]\nfrom = \"a\"\nto = \"b\"\ncount = 2\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\nscheme = \"udp-fixed-rate:rate=2Mbps\"\nstart = \"1s\"\nstop = \"3s\"\n",
    );
    let outcome = run(&flows, "newreno", 4);
    let flows: Vec<_> = outcome.rows.iter().map(|row| row.flow).collect();
    assert_eq!(flows, [-1, 0, 1, 2]);
    // 2 Mbit/s for two seconds are 333 packets of 1500 bytes.
    let constant = outcome.rows[3].metrics;
    assert!((1..=337).contains(&constant.sent_packets), "{constant:?}");
}

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn a_finite_flow_carries_its_data() {
    let flow = bottleneck("[[flow]]\nfrom = \"a\"\nto = \"b\"\nbytes = \"30kB\"\nstart = \"1s\"\n");
    for scheme in ["newreno", "udp-newreno"] {
        let total = run(&flow, scheme, 4).rows[0].metrics;
        // The source counts packets, and each carries data. A machine that stands still causes
        // retransmissions.
        assert!(total.delivered_packets >= 20, "{scheme}: {total:?}");
    }
}
