//! Extreme cases of what a run measures and refuses: flows that join, stop or finish, disjoint
//! paths, long routes, and schemes that misbehave.

use std::sync::Arc;

use headway_cc::schemes::fixed_window;
use headway_cc::{
    Arrival, Bytes, CongestionControl, Control, Duration, Feedback, Receiver, Registry, Rto,
    Scheme, Stream, Time, schemes,
};
use headway_net::trace::Trace;
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Options, Outcome, Simulation, SimulationError};
use headway_world::SetupError;

/// Runs `scheme` in the scenario whose file ends with `rest`.
fn run(rest: &str, scheme: &str, seconds: u64, warmup: f64) -> Result<Outcome, SimulationError> {
    let text = format!("schema = 1\nname = \"edges\"\nseconds = {seconds}\n{rest}");
    let scenario = Scenario::parse(&text, "edges").expect("a scenario");
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(STUCK);
    let selection = registry.select(scheme).expect("a scheme");
    let traces = |_: &TraceSpec| -> Result<Arc<Trace>, String> { Err("no traces".to_owned()) };
    let options = Options {
        duration: Duration::from_secs(seconds),
        warmup: Duration::from_secs_f64(warmup),
        seed: 1,
        grid: None,
    };
    Simulation::new(&scenario.draw(1), &selection, &registry, &traces, options)?.finish()
}

const BOTTLENECK: &str = "[bottleneck]\nrate = \"20Mbps\"\ndelay = \"10ms\"\nqueue = \"1bdp\"\n";

#[test]
fn fairness_counts_only_running_flows() {
    let jain = |rest: &str, seconds| {
        let outcome = run(&format!("{BOTTLENECK}{rest}"), "newreno", seconds, 0.0);
        outcome.expect("a run").rows[0].metrics.jain
    };
    // One flow follows the other: there are never two at a time.
    let relay = "[[flow]]\nstop = \"10s\"\n[[flow]]\nstart = \"10s\"\n";
    assert_eq!(jain(relay, 20), None);
    // Two flows are alike; a third joins as the first run ends.
    let late = "[[flow]]\ncount = 2\n[[flow]]\nstart = \"9.99s\"\n";
    assert!(jain(late, 10).expect("two flows") > 0.99);
    // The second run has 10 s with three flows.
    assert!(jain(late, 20).expect("three flows") > 0.95);
    // A flow runs but delivers nothing: its first packet is full after 12 s.
    let starved = "[[flow]]\n[[flow]]\nrate = \"1kbps\"\n";
    assert!((jain(starved, 10).expect("two flows") - 0.5).abs() < 0.01);
}

#[test]
fn flows_on_disjoint_paths_do_not_share() {
    let link = "rate = \"20Mbps\"\ndelay = \"10ms\"\nqueue = \"1bdp\"\nduplex = true\n";
    let rest = format!(
        "[[link]]\nfrom = \"a\"\nto = \"b\"\n{link}[[link]]\nfrom = \"c\"\nto = \"d\"\n{link}\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\n[[flow]]\nfrom = \"c\"\nto = \"d\"\n"
    );
    for row in &run(&rest, "newreno", 30, 0.0).expect("a run").rows[1..] {
        let converged = row
            .metrics
            .convergence_s
            .expect("each has its link to itself");
        assert!(converged <= 2.0, "{converged}");
    }
}

#[test]
fn one_flow_after_the_other_uses_the_link_fully() {
    let rest = format!("{BOTTLENECK}[[flow]]\nstop = \"30s\"\n[[flow]]\nstart = \"30s\"\n");
    let rows = run(&rest, "newreno", 60, 0.0).expect("a run").rows;
    for row in &rows {
        let utilisation = row.metrics.utilisation.expect("it ran");
        assert!((0.95..=1.0001).contains(&utilisation), "{row:?}");
    }
    // 5 MB at 20 Mbit/s are two seconds of the sixty.
    let rest = format!("{BOTTLENECK}[[flow]]\nbytes = \"5MB\"\n");
    for row in run(&rest, "newreno", 60, 0.0).expect("a run").rows {
        let utilisation = row.metrics.utilisation.expect("it ran");
        assert!((0.8..=1.0001).contains(&utilisation), "{row:?}");
    }
}

#[test]
fn utilisation_is_a_share() {
    let mut stream = Stream::new(32, "utilisation");
    for _ in 0..150 {
        let seconds = 2 + stream.below(6);
        let delay = 1 + stream.below(150);
        let mut rest = format!(
            "[bottleneck]\nrate = \"{}kbps\"\ndelay = \"{delay}ms\"\nqueue = \"{}pkt\"\n",
            500 + stream.below(20_000),
            1 + stream.below(800)
        );
        let mut tested = false;
        for _ in 0..=stream.below(4) {
            let start = stream.range(0.0, seconds as f64 - 0.5);
            rest += &format!("[[flow]]\nstart = \"{start}s\"\n");
            if stream.chance(0.4) {
                rest += &format!("stop = \"{}s\"\n", start + stream.range(0.01, 6.0));
            }
            match stream.below(4) {
                0 => rest += &format!("bytes = \"{}kB\"\n", 1 + stream.below(3000)),
                1 => rest += "on = \"300ms\"\noff = \"200ms\"\n",
                _ => {}
            }
            match tested && stream.chance(0.3) {
                true => rest += "scheme = \"cubic\"\n",
                false => tested = true,
            }
        }
        if stream.chance(0.4) {
            let at = stream.range(0.0, seconds as f64 - 0.1);
            rest += &format!(
                "[[at]]\ntime = \"{at}s\"\nrate = \"{}kbps\"\n",
                300 + stream.below(20_000)
            );
        }
        if stream.chance(0.4) {
            rest += "[[cross]]\nrate = \"1Mbps\"\npattern = \"poisson\"\n";
        }
        let warmup = stream.range(0.0, seconds as f64 - 0.5) * f64::from(stream.below(2) as u32);
        let scheme = ["newreno", "fixed-window:window=300"][stream.below(2) as usize];
        for row in run(&rest, scheme, seconds, warmup).expect("a run").rows {
            let Some(utilisation) = row.metrics.utilisation else {
                continue;
            };
            // The link may finish a packet that it began before the window, which matters in a
            // short one.
            let slack = if row.flow < 0 { 0.05 } else { 1e-9 };
            let detail = format!("{rest}{scheme} after {warmup}: {row:?}");
            assert!((0.0..=1.0 + slack).contains(&utilisation), "{detail}");
        }
    }
}

fn chain(links: usize) -> String {
    let mut rest = String::new();
    for i in 0..links {
        rest += &format!(
            "[[link]]\nfrom = \"n{i}\"\nto = \"n{}\"\nduplex = true\nrate = \"1Gbps\"\ndelay = \"1ms\"\n",
            i + 1
        );
    }
    rest + &format!("[[flow]]\nfrom = \"n0\"\nto = \"n{links}\"\n")
}

#[test]
fn every_link_of_a_long_route_is_crossed() {
    for links in [200, 256, 257, 300] {
        match run(&chain(links), "fixed-window:window=1", 2, 0.0) {
            Ok(outcome) => {
                let delay = outcome.rows[0].metrics.delay_mean_ms.expect("it arrives");
                let least = links as f64;
                assert!((least..least * 1.02).contains(&delay), "{links}: {delay}");
            }
            // A refused route is the other possible result; no link is skipped.
            Err(SimulationError::Setup(SetupError::LongRoute(_, _, refused))) if links > 256 => {
                assert_eq!(refused, links);
            }
            Err(error) => panic!("{links}: {error}"),
        }
    }
}

/// RFC 9293 §3.8.6: at most the receiver's window is in flight, whatever the controller allows. Ten
/// packets a round trip of 20.6 ms (including one packet's 0.6 ms) are 5.83 of 20 Mbit/s.
#[test]
fn a_receive_window_limits_every_scheme_and_transport() {
    let rest = format!("{BOTTLENECK}[[flow]]\nreceive_window = \"10pkt\"\n");
    let most = 10.0 * 0.012 / 0.0206;
    for transport in ["simple", "linux"] {
        let rest = format!("transport = \"{transport}\"\n{rest}");
        for scheme in ["newreno", "bbr", "fixed-window:window=300"] {
            let row = &run(&rest, scheme, 20, 1.0).expect("a run").rows[0];
            let throughput = row.metrics.throughput_mbps.expect("it runs");
            let detail = format!("{transport}, {scheme}: {throughput} of {most} Mbit/s");
            // A delayed acknowledgement keeps a packet back: at least nine are sent at a time.
            assert!(
                (0.85 * most..=1.001 * most).contains(&throughput),
                "{detail}"
            );
            assert_eq!(row.metrics.loss, Some(0.0), "{detail}");
        }
    }
}

#[test]
fn a_window_beyond_memory_ends_the_run() {
    let rest = "[bottleneck]\nrate = \"10Mbps\"\n";
    let error = run(rest, "fixed-window:window=10000000", 10, 0.0).expect_err("no memory");
    let text = error.to_string();
    assert!(
        matches!(error, SimulationError::Unlimited { flow: 0, .. }),
        "{text}"
    );
    assert!(
        text.contains("'fixed-window:window=10000000'") && !text.contains('\n'),
        "{text}"
    );
}

#[test]
fn a_change_of_loss_shifts_no_draw() {
    // The change sets the loss of another link to its present value, so nothing may differ.
    let rest =
        "[bottleneck]\nrate = \"10Mbps\"\ndelay = \"10ms\"\nloss = 0.02\n[return]\nloss = 0\n";
    let same = "[[at]]\ntime = \"3s\"\nlink = \"bottleneck\"\nloss = 0.02\n";
    let other = "[[at]]\ntime = \"2s\"\nlink = \"return\"\nloss = 0\n";
    let plain = run(rest, "newreno", 10, 0.0).expect("a run");
    for changes in [same.to_owned(), format!("{other}{same}")] {
        let changed = run(&format!("{rest}{changes}"), "newreno", 10, 0.0).expect("a run");
        assert_eq!(plain, changed, "{changes}");
    }
}

/// A controller, or a receiver's half, with a timer that is always due.
#[derive(Debug)]
struct Stuck;

static STUCK: &[Scheme] = &[
    Scheme {
        name: "stuck-sender",
        needs: &[],
        build: |_, _| Box::new(Stuck),
        ..fixed_window::SCHEME
    },
    Scheme {
        name: "stuck-receiver",
        receiver: Some(|_, _| Box::new(Stuck)),
        ..fixed_window::SCHEME
    },
];

impl CongestionControl for Stuck {
    fn on_feedback(&mut self, _: &Feedback<'_>) {}
    fn on_rto(&mut self, _: &Rto<'_>) {}
    fn next_timer(&self) -> Time {
        Time::from_millis(5)
    }
    fn on_timer(&mut self, _: Time) {}
    fn control(&self) -> Control {
        Control::window(Bytes::new(15_000))
    }
}

impl Receiver for Stuck {
    fn on_data(&mut self, _: &Arrival) {}
    fn next_timer(&self) -> Time {
        Time::from_millis(5)
    }
    fn on_timer(&mut self, _: Time) {}
    fn take_message(&mut self, _: &mut Vec<u8>) {}
}

#[test]
fn a_timer_that_stays_due_ends_the_run() {
    for (scheme, part) in [
        ("stuck-sender", "the controller's"),
        ("stuck-receiver", "the receiver's"),
    ] {
        // The first packet takes 10 ms, so the receiver's timer is due before it arrives.
        match run(BOTTLENECK, scheme, 10, 0.0).expect_err("time stands still") {
            SimulationError::Stuck {
                scheme: named,
                part: whose,
                at,
                ..
            } => {
                assert_eq!((named.as_str(), whose), (scheme, part));
                assert_eq!(at, Time::from_millis(5), "{scheme}");
            }
            other => panic!("{other}"),
        }
    }
}
