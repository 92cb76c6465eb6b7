//! Schemes with a half in the routers: which links get one, which scenarios are refused, and that
//! everything else works as before.

use std::sync::Arc;

use headway_cc::{Duration, Registry, schemes};
use headway_net::trace::Trace;
use headway_net::{Link, LinkEvent, LinkEventKind};
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Observer, Options, Outcome, Simulation, SimulationError};

fn run_observed<O: Observer>(
    rest: &str,
    scheme: &str,
    observer: O,
) -> Result<Outcome, SimulationError> {
    let text = format!("schema = 1\nname = \"routers\"\nseconds = 20\n{rest}");
    let scenario = Scenario::parse(&text, "routers").unwrap_or_else(|e| panic!("{e}"));
    let registry = Registry::new(schemes::SCHEMES);
    let selection = registry.select(scheme).unwrap_or_else(|e| panic!("{e}"));
    let traces = |_: &TraceSpec| -> Result<Arc<Trace>, String> { Err("no traces".to_owned()) };
    let options = Options {
        duration: Duration::from_secs(20),
        warmup: Duration::ZERO,
        seed: 1,
        grid: Some(Duration::from_secs(1)),
    };
    Simulation::observed(
        &scenario.draw(1),
        &selection,
        &registry,
        &traces,
        options,
        observer,
    )
    .and_then(Simulation::finish)
}

fn run(rest: &str, scheme: &str) -> Result<Outcome, SimulationError> {
    run_observed(rest, scheme, ())
}

fn rates(outcome: &Outcome, flow: usize) -> &[f64] {
    &outcome.series[flow].series.throughput_mbps
}

const LINK: &str = "bottleneck = { rate = \"12Mbps\", delay = \"20ms\", queue = \"100pkt\"";

/// A router is the same, whether the scenario describes it or the scheme asks for it.
#[test]
fn requested_and_written_out_routers_agree() {
    for scheme in ["abc", "xcp", "xcp-w"] {
        let asked = run(&format!("{LINK}, router = \"scheme\" }}"), scheme).expect("a run");
        let link = LINK.replace(
            "\"100pkt\"",
            &format!("{{ kind = \"{scheme}\", packets = \"100pkt\" }}"),
        );
        let written = run(&format!("{link} }}"), scheme).expect("a run");
        assert_eq!(rates(&asked, 0), rates(&written, 0), "{scheme}");
        assert!(rates(&asked, 0)[10] > 11.5, "{scheme}");
    }
    // A flow without need of a router has the queue of the scenario.
    let (with, without) = (
        format!("{LINK}, router = \"scheme\" }}"),
        format!("{LINK} }}"),
    );
    let [with, without] = [with, without].map(|text| run(&text, "cubic").expect("a run"));
    assert_eq!(rates(&with, 0), rates(&without, 0));
}

#[test]
fn a_scheme_without_its_router_is_refused() {
    let refused = |rest: &str, scheme: &str| run(rest, scheme).expect_err("a refusal").to_string();
    assert_eq!(
        refused(&format!("{LINK} }}"), "abc"),
        "scheme 'abc' needs a router on its way that is its other half; write router = \"scheme\" at the bottleneck, \
         or queue = { kind = \"abc\", packets = \"100pkt\" }"
    );
    // A router of another kind does not help, nor does one on the way back.
    let codel = LINK.replace("\"100pkt\"", "{ kind = \"xcp\" }");
    assert!(refused(&format!("{codel} }}"), "xcp-w").contains("kind = \"xcp-w\""));
    let back = format!("{LINK} }}\nreturn = {{ rate = \"1Mbps\", queue = {{ kind = \"abc\" }} }}");
    assert!(refused(&back, "abc").contains("'abc'"));
    // Two schemes that ask for different routers cannot share a queue.
    let both = format!("{LINK}, router = \"scheme\" }}\nflow = [{{}}, {{ scheme = \"xcp\" }}]");
    assert_eq!(
        refused(&both, "abc"),
        "scheme 'xcp' needs the router 'xcp' on its way, where router = \"scheme\" stands for 'abc', which another flow's \
         scheme needs; run them apart, or give 'xcp' a link of its own with queue = { kind = \"xcp\", packets = \"100pkt\" }"
    );
}

/// A competitor that the scenario names gets its router if the scheme under test needs none.
#[test]
fn a_named_competitor_has_its_router() {
    let rest = format!("{LINK}, router = \"scheme\" }}\nflow = [{{}}, {{ scheme = \"abc\" }}]");
    let outcome = run(&rest, "newreno").expect("a run");
    let late = |flow: usize| rates(&outcome, flow)[10..].iter().sum::<f64>();
    assert!(late(1) > 1.0 && late(2) > 1.0);
}

/// A change of rate reaches the router: within two seconds the link is as full as before, at 24 and
/// at 6 Mbit/s.
#[test]
fn routers_follow_a_change_of_rate() {
    let at = "at = [{ time = \"5s\", rate = \"24Mbps\" }, { time = \"12s\", rate = \"6Mbps\" }]";
    for scheme in ["abc", "xcp", "xcp-w"] {
        let outcome = run(&format!("{LINK}, router = \"scheme\" }}\n{at}"), scheme).expect("a run");
        let mbps = rates(&outcome, 0);
        for (second, rate) in [(4, 12.0), (7, 24.0), (11, 24.0), (15, 6.0), (19, 6.0)] {
            assert!(mbps[second] > 0.95 * rate, "{scheme}: {mbps:?}");
        }
        // The queue that the lower rate caused has drained: 60 packets at most, for 50 ms and a
        // little.
        assert!(outcome.series[0].queue_packets[15] < 60.0, "{scheme}");
    }
}

/// Keeps every link's log.
#[derive(Default)]
struct Log(Vec<LinkEvent>);

impl Observer for Log {
    fn observes_link(&self, _: usize) -> bool {
        true
    }

    fn on_pause(&mut self, now: headway_cc::Time, links: &mut [Link]) {
        self.0.extend(links[0].take_events(now));
    }
}

/// A link with a log works the same as one without.
#[test]
fn a_log_changes_nothing() {
    for scheme in ["abc", "xcp"] {
        let rest = format!("{LINK}, router = \"scheme\" }}");
        let mut log = Log::default();
        let watched = run_observed(&rest, scheme, &mut log).expect("a run");
        let plain = run(&rest, scheme).expect("a run");
        assert_eq!(rates(&watched, 0), rates(&plain, 0), "{scheme}");
        let left = log
            .0
            .iter()
            .filter(|e| matches!(e.what, LinkEventKind::Departure { .. }));
        assert!(left.count() > 10_000, "{scheme}");
    }
}
