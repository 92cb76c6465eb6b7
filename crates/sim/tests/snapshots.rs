//! How every registered scheme behaves in five short scenarios, as tables to read:
//! `snapshots/NAME.snap`.
//!
//! A table that changes fails the test and shows the difference. If the change is meant,
//! `INSTA_UPDATE=always cargo test -p headway-sim --test all snapshots` writes the tables again, to
//! be reviewed in the commit's diff. A new scheme gets its own that way.

use std::fmt::Write;
use std::sync::Arc;

use headway_cc::{Duration, Param, Registry, Selection, schemes};
use headway_net::trace::Trace;
use headway_policy::schemes::SCHEMES as LEARNED;
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{FlowSeries, Options, Outcome, Simulation};

/// The scenarios: a name, and the part of the file that describes it. The queue is the router of
/// schemes that have one, or else drop-tail with marks from half its length on (DCTCP's rule, which
/// does not affect packets that are not ECN-capable). 12 Mbit/s are a packet a millisecond. With 20
/// ms each way 40 packets fit the path, and as many fit the queue. A router gets 250, since ABC's
/// target is 50 ms of queue.
const SCENARIOS: [(&str, &str); 5] = [
    (
        "rate up: 6 Mbit/s, 24 from 8 s on",
        r#"
        bottleneck = { rate = "6Mbps", delay = "20ms", queue = QUEUE, router = "scheme" }
        at = [{ time = "8s", rate = "24Mbps" }]
        "#,
    ),
    (
        "rate down: 24 Mbit/s, 6 from 8 s on",
        r#"
        bottleneck = { rate = "24Mbps", delay = "20ms", queue = QUEUE, router = "scheme" }
        at = [{ time = "8s", rate = "6Mbps" }]
        "#,
    ),
    (
        "loss: 12 Mbit/s, 5% of the packets from 6 s to 11 s",
        r#"
        bottleneck = { rate = "12Mbps", delay = "20ms", queue = QUEUE, router = "scheme" }
        at = [{ time = "6s", loss = 0.05 }, { time = "11s", loss = 0 }]
        "#,
    ),
    (
        "round trip: 12 Mbit/s, 40 ms, 160 from 8 s on",
        r#"
        bottleneck = { rate = "12Mbps", delay = "20ms", queue = QUEUE, router = "scheme" }
        at = [{ time = "8s", delay = "80ms" }]
        "#,
    ),
    (
        "two flows: 12 Mbit/s, the second from 4 s to 12 s",
        r#"
        bottleneck = { rate = "12Mbps", delay = "20ms", queue = QUEUE, router = "scheme" }
        flow = [{}, { start = "4s", stop = "12s" }]
        "#,
    ),
];
const SECONDS: u64 = 16;

/// The model of a scheme that needs one: three units with weights chosen by hand.
const MODEL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../policy/tests/fixtures/tiny-v1"
);

fn registry() -> Registry {
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(LEARNED);
    registry
}

fn run(selection: &Selection, rest: &str) -> Outcome {
    let queue = match selection.scheme.router {
        Some(_) => "\"250pkt\"",
        None => "{ kind = \"step\", packets = \"40pkt\", threshold = \"20pkt\" }",
    };
    let rest = rest.replace("QUEUE", queue);
    let text = format!("schema = 1\nname = \"snapshot\"\nseconds = {SECONDS}\n{rest}");
    let scenario = Scenario::parse(&text, "snapshot").expect("a scenario");
    let registry = registry();
    let traces = |_: &TraceSpec| -> Result<Arc<Trace>, String> { Err("no traces".to_owned()) };
    let options = Options {
        duration: Duration::from_secs(SECONDS),
        warmup: Duration::ZERO,
        seed: 1,
        grid: Some(Duration::from_secs(1)),
    };
    Simulation::new(&scenario.draw(1), selection, &registry, &traces, options)
        .and_then(Simulation::finish)
        .expect("a run")
}

/// A cell as wide as its column's head; a dash if there is no value.
fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.digits$}"))
}

/// One row a second: flows side by side, then the queue that they share.
fn table(outcome: &Outcome) -> String {
    let (pooled, flows) = outcome.series.split_first().expect("flows");
    let mut text = String::from("   s");
    for i in 0..flows.len() {
        let i = if flows.len() > 1 {
            i.to_string()
        } else {
            String::new()
        };
        write!(
            text,
            "  Mbit/s{i}  cwnd{i}  flight{i}  pace{i}  RTT{i} ms  loss{i} %"
        )
        .expect("text");
    }
    text.push_str("  queue\n");
    for bin in 0..SECONDS as usize {
        write!(text, "{bin:4}").expect("text");
        for f in flows {
            row(&mut text, f, bin, if flows.len() > 1 { 1 } else { 0 });
        }
        writeln!(text, "{:7.0}", pooled.queue_packets[bin]).expect("text");
    }
    text
}

/// One flow's cells; `wider` is the width that the flow's number adds to its heads.
fn row(text: &mut String, flow: &FlowSeries, bin: usize, wider: usize) {
    let s = &flow.series;
    // An absent flow has an empty throughput, not zero.
    let here = s.cwnd_packets[bin].is_some() || s.throughput_mbps[bin] > 0.0;
    let cells = [
        (here.then_some(s.throughput_mbps[bin]), 8, 2),
        (s.cwnd_packets[bin], 6, 1),
        (s.in_flight_packets[bin], 8, 0),
        (s.pacing_mbps[bin], 6, 1),
        (s.rtt_ms[bin], 8, 1),
        (s.loss[bin].map(|share| 100.0 * share), 8, 1),
    ];
    for (value, width, digits) in cells {
        let width = width + wider;
        write!(text, "{:>width$}", cell(value, digits)).expect("text");
    }
}

#[test]
fn every_scheme_matches_its_snapshot() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for scheme in registry().iter() {
        let spec = match scheme.params.iter().find(|p| Param::is_required(p)) {
            Some(param) => format!("{}:{}={MODEL}", scheme.name, param.name),
            None => scheme.name.to_owned(),
        };
        let selection = registry().select(&spec).expect("a scheme");
        let mut tables = String::new();
        for (title, rest) in SCENARIOS {
            writeln!(tables, "{title}\n\n{}", table(&run(&selection, rest))).expect("text");
        }
        settings.bind(|| insta::assert_snapshot!(scheme.name, tables));
    }
}
