//! The measurements that senders receive from known switches, compared with counts by hand.

use std::sync::Arc;

use headway_cc::{Duration, NetworkView, Registry, Time, schemes};
use headway_net::trace::Trace;
use headway_scenario::{Network, Part, RateSpec, Scenario, SwitchesSpec, TraceSpec};
use headway_sim::{Observer, Options, Simulation};

/// Two switches. Packets have 10 kbit, so 10 Mbit/s are 1000 a second.
const TWO_SWITCHES: &str = r#"
schema = 1
name = "two-switches"
seconds = 10
packet_size = "1250B"
[[link]]
from = "a"
to = "s1"
delay = "5ms"
duplex = true
[[link]]
from = "c"
to = "s1"
[[link]]
name = "slow"
from = "s1"
to = "s2"
rate = "10Mbps"
delay = "5ms"
duplex = true
[[link]]
name = "fast"
from = "s2"
to = "b"
rate = "20Mbps"
duplex = true
[[link]]
from = "s2"
to = "d"
[[flow]]
from = "a"
to = "b"
[switches]
known = "100%"
"#;

/// Records the measurements that senders receive.
#[derive(Debug, Default)]
struct Views(Vec<(Time, u32, NetworkView)>);

impl Observer for Views {
    fn on_network(&mut self, now: Time, flow: u32, view: &NetworkView) {
        self.0.push((now, flow, *view));
    }
}

/// 12 Mbit/s for 0.9 s, then no capacity until 6 s.
fn outage() -> Trace {
    let busy: String = (1..=900).map(|ms| format!("{ms}\n")).collect();
    Trace::parse(format!("{busy}6000\n")).expect("a trace")
}

/// Runs `scheme` for 6 s, and returns the measurements.
fn views(network: &Network, scheme: &str) -> Vec<(Time, u32, NetworkView)> {
    let registry = Registry::new(schemes::SCHEMES);
    let selection = registry.select(scheme).expect("a scheme");
    let outage = Arc::new(outage());
    let traces = |_: &TraceSpec| Ok(Arc::clone(&outage));
    let options = Options {
        duration: Duration::from_secs(6),
        warmup: Duration::ZERO,
        seed: 1,
        grid: None,
    };
    let mut seen = Views::default();
    Simulation::observed(network, &selection, &registry, &traces, options, &mut seen)
        .and_then(Simulation::finish)
        .expect("a run");
    seen.0
}

fn network(rest: &str) -> Network {
    Scenario::parse(&format!("{TWO_SWITCHES}{rest}"), "test")
        .expect("a scenario")
        .draw(1)
}

/// The same network, in which only these switches are known, by name.
fn knows(network: &Network, names: &[&str]) -> Network {
    let node = |name: &&str| network.nodes.iter().position(|n| n == name).unwrap();
    Network {
        switches: Some(SwitchesSpec {
            known: names.iter().map(node).collect(),
            ..network.switches.clone().unwrap()
        }),
        ..network.clone()
    }
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{found}, not {expected}"
    );
}

#[test]
fn an_idle_path_has_its_free_share_and_no_congestion() {
    // 5 Mbit/s: half of the slow link is free and three quarters of the fast one.
    let network = network("");
    for (known, share, free) in [
        (&["s1", "s2"][..], 1.0, 0.5),
        (&["s1"], 0.5, 0.5),
        (&["s2"], 0.5, 0.75),
    ] {
        let views = views(&knows(&network, known), "fixed-rate:rate=5Mbps");
        let at: Vec<f64> = views.iter().map(|v| v.0.as_secs_f64()).collect();
        assert_eq!(at, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{known:?}");
        for (_, flow, view) in &views[1..] {
            assert_eq!((*flow, view.known, view.age), (0, share, Duration::ZERO));
            close(view.pna, free, 0.002);
            // The switch may hold a packet or two during the reading.
            close(view.pnc, 0.0, 2.0);
        }
    }
}

#[test]
fn a_growing_queue_is_seen_at_its_switch() {
    // The flow's 8 Mbit/s and 6 of others enter 10: 400 packets a second stay in the first switch.
    let network = network("[[cross]]\nfrom = \"c\"\nto = \"d\"\nrate = \"6Mbps\"\n");
    for (known, pnc, pna) in [
        (&["s1", "s2"][..], 400.0, 0.0),
        (&["s1"], 400.0, 0.0),
        // The fast link carries the rest of the flow, which is 8/14 of 10 Mbit/s, and nothing else.
        (&["s2"], 0.0, 1.0 - 80.0 / 14.0 / 20.0),
    ] {
        for (_, _, view) in &views(&knows(&network, known), "fixed-rate:rate=8Mbps")[1..] {
            close(view.pnc, pnc, 3.0);
            close(view.pna, pna, 0.01);
        }
    }
}

/// Packets that a switch drops entered it and did not leave it.
#[test]
fn drops_count_as_congestion() {
    let mut network = network("");
    let slow = network.links.iter_mut().find(|l| l.name == "slow").unwrap();
    slow.queue = Scenario::load("rax-1").unwrap().draw(1).links[0]
        .queue
        .clone();
    for (_, _, view) in &views(&network, "fixed-rate:rate=15Mbps")[1..] {
        close(view.pnc, 500.0, 3.0);
        close(view.pna, 0.0, 0.001);
    }
}

#[test]
fn measurements_arrive_late_with_their_time() {
    let mut network = network("");
    let switches = network.switches.as_mut().unwrap();
    switches.period = Duration::from_millis(500);
    switches.latency = Duration::from_millis(1200);
    let views = views(&network, "fixed-rate:rate=5Mbps");
    let at: Vec<f64> = views.iter().map(|v| v.0.as_secs_f64()).collect();
    assert_eq!(at, [1.7, 2.2, 2.7, 3.2, 3.7, 4.2, 4.7, 5.2, 5.7]);
    assert!(views.iter().all(|v| v.2.age == Duration::from_millis(1200)));
}

#[test]
fn a_lost_controller_sends_no_measurements() {
    let network = network("until = \"3s\"\n");
    let views = views(&network, "fixed-rate:rate=5Mbps");
    let at: Vec<f64> = views.iter().map(|v| v.0.as_secs_f64()).collect();
    assert_eq!(at, [1.0, 2.0]);
}

#[test]
fn each_flow_gets_measurements_of_its_own_path() {
    // The second flow crosses only the first switch, by a link with 2 Mbit/s.
    let mut network = network(
        "[[link]]\nfrom = \"s1\"\nto = \"e\"\nrate = \"2Mbps\"\nduplex = true\n\
         [[flow]]\nfrom = \"a\"\nto = \"e\"\nscheme = \"fixed-rate:rate=1Mbps\"\n",
    );
    network = knows(&network, &["s1"]);
    let of = |views: &[(Time, u32, NetworkView)], flow: u32| -> NetworkView {
        let mut views = views.iter().rev();
        views.find(|v| v.1 == flow).expect("it is told").2
    };
    let both = views(&network, "fixed-rate:rate=5Mbps");
    assert_eq!((of(&both, 0).known, of(&both, 1).known), (0.5, 1.0));
    close(of(&both, 0).pna, 0.5, 0.002);
    close(of(&both, 1).pna, 0.5, 0.01);
    let second = knows(&network, &["s2"]);
    let only_first = views(&second, "fixed-rate:rate=5Mbps");
    assert!(only_first.iter().all(|v| v.1 == 0));
    assert_eq!(views(&knows(&network, &[]), "fixed-rate:rate=5Mbps"), []);
}

/// A change of the rate counts from its moment on: half a second at 10 Mbit/s and half at 20.
#[test]
fn the_capacity_is_what_the_link_could_have_carried() {
    let network = network("[[at]]\ntime = \"2500ms\"\nlink = \"slow\"\nrate = \"20Mbps\"\n");
    let views = views(&knows(&network, &["s1"]), "fixed-rate:rate=5Mbps");
    for (view, free) in views[1..].iter().zip([1.0 / 2.0, 2.0 / 3.0, 3.0 / 4.0]) {
        close(view.2.pna, free, 0.002);
    }
}

/// The flow offers half of what the first second could carry; then nothing can be sent, so nothing
/// is free.
#[test]
fn no_capacity_is_free_in_an_outage() {
    let mut network = network("");
    let slow = network.links.iter_mut().find(|l| l.name == "slow").unwrap();
    slow.rate = RateSpec::Trace {
        trace: TraceSpec {
            name: "outage".to_owned(),
            part: Part::Whole,
            mean: None,
        },
        offset: Duration::ZERO,
        once: false,
    };
    let views = views(&network, "fixed-rate:rate=6Mbps");
    close(views[0].2.pna, 0.5, 0.01);
    for (_, _, view) in &views[1..5] {
        assert_eq!(view.pna, 0.0);
    }
}

/// Owl's NSFNET: cross traffic uses 40% of each link of the path while the flow under test sends
/// almost nothing.
#[test]
fn the_background_is_forty_percent_of_each_link() {
    let scenario = Scenario::load("owl-nsfnet:known=7").expect("a scenario");
    let network = scenario.draw(3);
    for switch in ["s0", "s3", "s4", "s5", "s13", "s10"] {
        let views = views(&knows(&network, &[switch]), "fixed-rate:rate=0.001Mbps");
        let busy = views[1..].iter().map(|v| 1.0 - v.2.pna);
        let mean = busy.sum::<f64>() / (views.len() - 1) as f64;
        close(mean, 0.4, 0.02);
    }
}
