//! Basic behaviour of a simulation: it repeats itself, follows its schedule, and shares a link.

use std::sync::Arc;

use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Family, Feedback, Rate, Receiver, Registry, Rto,
    Scheme, Setup, Time, schemes,
};
use headway_scenario::{
    Change, CrossSpec, Network, Pattern, RateSpec, Scenario, Source, TraceSpec,
};
use headway_sim::{Options, Outcome, Sim};
use headway_world::{Batch, BatchOptions};

use crate::networks::{bulk, fixed, link, metrics, options, packets, rax, run};
use crate::watch::{self, Delivery};

fn outcome(scenario: &Scenario, seed: u64) -> Outcome {
    let options = Options {
        duration: Duration::from_secs(10),
        warmup: Duration::ZERO,
        seed,
        grid: Some(Duration::from_millis(500)),
    };
    run(&scenario.draw(seed), "cubic", options)
}

/// `parking-lot` varies start and host jitter and has Poisson cross traffic; Rax's link in these
/// tests draws nothing.
#[test]
fn same_seed_gives_same_outcome() {
    let scenario = Scenario::load("parking-lot").expect("it ships");
    assert_eq!(outcome(&scenario, 7), outcome(&scenario, 7));
    assert_ne!(outcome(&scenario, 7), outcome(&scenario, 8));
    let of_rax = |seed| {
        run(
            &rax(),
            "cubic",
            Options {
                seed,
                ..options(10.0, 0.0)
            },
        )
    };
    assert_eq!(of_rax(7), of_rax(8));
}

#[test]
fn threads_change_nothing() {
    let rows = |jobs| {
        let options = BatchOptions {
            runs: 3,
            duration: Some(Duration::from_secs(5)),
            warmup: Duration::ZERO,
            seed: 1,
            jobs: Some(jobs),
            grid: Some(Duration::from_millis(500)),
            transport: None,
            recordings: None,
            leave_out: false,
            trace_dirs: vec![],
            code_version: String::new(),
        };
        let load = |name| Scenario::load(name).expect("it ships");
        let scenarios = vec![load("parking-lot"), load("rax-1-loss")];
        let schemes = ["cubic".to_owned(), "bbr".to_owned()];
        let world = Arc::new(Sim::new(Registry::new(schemes::SCHEMES)));
        let batch = Batch::new(world, scenarios, &schemes, options).expect("a batch");
        batch.run().expect("runs");
        (batch.rows(), batch.series())
    };
    assert_eq!(rows(1), rows(2));
}

/// Three links in a row, with a short flow on each and a long one over all. The long flow has three
/// times the round trip and three times the loss, so NewReno gives it the smallest share.
#[test]
fn the_long_flow_of_a_parking_lot_gets_the_smallest_share() {
    let mut network = fixed(12.0, 10, 40, 1500);
    network.nodes = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let (rate, delay) = (
        RateSpec::Fixed(Rate::from_mbps(12.0)),
        Duration::from_millis(10),
    );
    let both_ways = |i| [(i, i + 1), (i + 1, i)];
    network.links = (0..3)
        .flat_map(both_ways)
        .map(|(from, to)| link(from, to, rate.clone(), delay, packets(40)))
        .collect();
    network.flows = vec![bulk(0, 3), bulk(0, 1), bulk(1, 2), bulk(2, 3)];
    // Without jitter the flows stay in step, and a full drop-tail queue keeps choosing the same
    // one.
    network.host_jitter = Duration::from_millis(5);
    let rows = run(&network, "newreno", options(320.0, 20.0)).rows;
    let mbps: Vec<f64> = rows[1..]
        .iter()
        .map(|r| r.metrics.throughput_mbps.expect("packets"))
        .collect();
    for short in &mbps[1..] {
        assert!(mbps[0] < 0.5 * short, "{mbps:?}");
        // Each link carries the long flow and a short one, and is full.
        assert!((10.8..=12.01).contains(&(mbps[0] + short)), "{mbps:?}");
    }
    assert!(mbps[0] > 0.5, "{mbps:?}");
}

fn change(at_s: u64) -> Change {
    Change {
        at: Time::ZERO + Duration::from_secs(at_s),
        link: 0,
        rate: None,
        delay: None,
        loss: None,
    }
}

/// Mean Mbit/s of packets of 1500 bytes that arrived in the seconds `from` to `to`.
fn mbps(seen: &[Delivery], from: f64, to: f64) -> f64 {
    let arrived = |d: &&Delivery| (from..to).contains(&d.received.as_secs_f64());
    seen.iter().filter(arrived).count() as f64 * 1500.0 * 8e-6 / (to - from)
}

#[test]
fn scheduled_rates_are_followed() {
    let mut network = fixed(12.0, 20, 100, 1500);
    network.changes = [(20, 3.0), (40, 24.0)]
        .map(|(at, mbps)| Change {
            rate: Some(Rate::from_mbps(mbps)),
            ..change(at)
        })
        .to_vec();
    let seen = watch::deliveries(&network, "cubic", 60.0);
    for (from, to, rate) in [(2.0, 20.1, 12.0), (20.1, 40.0, 3.0), (50.0, 60.0, 24.0)] {
        let ours = mbps(&seen, from, to);
        assert!(
            (0.97 * rate..=1.01 * rate).contains(&ours),
            "{from} s: {ours} of {rate}"
        );
    }
}

/// One packet in flight takes exactly the propagation and a millisecond of transmission; half of
/// all packets are lost once the link's loss is a half.
#[test]
fn scheduled_delays_and_losses_are_followed() {
    let mut network = fixed(12.0, 20, 100, 1500);
    network.changes = vec![
        Change {
            delay: Some(Duration::from_millis(70)),
            ..change(10)
        },
        Change {
            loss: Some(0.5),
            ..change(20)
        },
    ];
    let seen = watch::deliveries(&network, "fixed-window:window=1", 20.0);
    for d in &seen {
        let before = d.sent < Time::ZERO + Duration::from_secs(10);
        let delay = Duration::from_millis(if before { 21 } else { 71 });
        assert_eq!(d.received.since(d.sent), delay, "{d:?}");
    }
    let seen = watch::deliveries(&network, "fixed-window:window=50", 60.0);
    let late = &seen[seen.partition_point(|d| d.sent < Time::ZERO + Duration::from_secs(21))..];
    let sent = late[late.len() - 1].number - late[0].number;
    let share = late.len() as f64 / sent as f64;
    assert!((0.48..=0.52).contains(&share), "{share} of {sent}");
}

/// On and off periods last a second each on average. About half of the time is silent, in many
/// periods, and the silences are exponential: their mean is their standard deviation.
#[test]
fn an_on_off_source_stops_and_resumes() {
    let second = Duration::from_secs(1);
    let mut network = fixed(12.0, 5, 100, 1500);
    network.flows[0].source = Source::OnOff {
        on: second,
        off: second,
    };
    let seen = watch::deliveries(&network, "fixed-window:window=20", 1000.0);
    let gaps = seen
        .windows(2)
        .map(|d| d[1].sent.since(d[0].sent).as_secs_f64());
    // A flow of twenty packets a round trip of 11 ms has no such gap.
    let silences: Vec<f64> = gaps.filter(|&gap| gap > 0.05).collect();
    let n = silences.len() as f64;
    let mean = silences.iter().sum::<f64>() / n;
    let variance = silences.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / n;
    // 475 silences expected: standard errors of 5%, and of 9% for the standard deviation.
    assert!((400.0..=550.0).contains(&n), "{n} silences");
    assert!((0.85..=1.2).contains(&mean), "mean {mean}");
    assert!(
        (0.75..=1.25).contains(&variance.sqrt()),
        "standard deviation {}",
        variance.sqrt()
    );
}

/// 8 Mbit/s of Poisson traffic for 600 s are 480,000 packets, with a standard error of 0.15%.
#[test]
fn poisson_traffic_keeps_its_mean() {
    let mut network = fixed(20.0, 5, 1000, 1250);
    // The flow sends sixty packets throughout the run, since utilisation is measured while a flow
    // runs.
    network.flows[0].source = Source::Rate(Rate::from_bps(1000));
    network.cross = vec![CrossSpec {
        from: 0,
        to: 1,
        route: None,
        start: Time::ZERO,
        stop: None,
        rate: Rate::from_mbps(8.0),
        packet_size: Bytes::new(1250),
        pattern: Pattern::Poisson,
    }];
    let used = metrics(&network, "newreno", options(600.0, 0.0))
        .utilisation
        .expect("a link");
    assert!((used * 20.0 / 8.0 - 1.0).abs() < 0.01, "{used}");
}

/// A window set by the receiver's half: two packets, and thirty from five seconds on.
const WINDOW_BY_RECEIVER: &[Scheme] = &[Scheme {
    name: "window-by-receiver",
    family: Family::Explicit,
    summary: "a scheme for tests",
    source: "a scheme for tests",
    deviations: &[],
    needs: &[],
    params: &[],
    build: |setup, _| {
        Box::new(WindowByReceiver {
            mss: setup.mss,
            window: 2,
        })
    },
    receiver: Some(|_: &Setup, _| {
        Box::new(WindowAdvisor {
            due: WindowAdvisor::DUE,
            message: None,
        })
    }),
    router: None,
}];

#[derive(Debug)]
struct WindowByReceiver {
    mss: Bytes,
    window: u8,
}

impl CongestionControl for WindowByReceiver {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if let [window] = f.message {
            self.window = *window;
        }
    }

    fn on_rto(&mut self, _: &Rto<'_>) {}

    fn control(&self) -> Control {
        Control::window(self.mss * u64::from(self.window))
    }
}

#[derive(Debug)]
struct WindowAdvisor {
    due: Time,
    message: Option<u8>,
}

impl WindowAdvisor {
    const DUE: Time = Time::from_millis(5000);
}

impl Receiver for WindowAdvisor {
    fn on_data(&mut self, _: &headway_cc::Arrival) {}

    fn next_timer(&self) -> Time {
        self.due
    }

    fn on_timer(&mut self, _: Time) {
        self.due = Time::NEVER;
        self.message = Some(30);
    }

    fn take_message(&mut self, out: &mut Vec<u8>) {
        out.extend(self.message.take());
    }
}

#[test]
fn a_receivers_message_reaches_the_sender() {
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(WINDOW_BY_RECEIVER);
    let scheme = registry.select("window-by-receiver").expect("a scheme");
    for transport in [
        headway_scenario::Transport::Simple,
        headway_scenario::Transport::Linux,
    ] {
        let network = Network {
            transport,
            ..fixed(12.0, 50, 100, 1500)
        };
        let grid = Some(Duration::from_secs(1));
        let options = Options {
            grid,
            ..options(10.0, 0.0)
        };
        let none = |_: &TraceSpec| Err("no traces".to_owned());
        let simulation = headway_sim::Simulation::new(&network, &scheme, &registry, &none, options)
            .expect("a run");
        let series = &simulation.finish().expect("a whole run").series[0].series;
        let windows: Vec<f64> = series.cwnd_packets.iter().flatten().copied().collect();
        assert_eq!(windows[..4], [2.0; 4], "{transport:?}");
        assert_eq!(windows[5..9], [30.0; 4], "{transport:?}");
        // 30 packets in 101 ms are 3.56 Mbit/s.
        assert!(
            (series.throughput_mbps[8] - 3.56).abs() < 0.1,
            "{transport:?} {series:?}"
        );
    }
}
