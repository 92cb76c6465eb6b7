//! Compares a run's `Feedback` with the fake kernel's bytes: every feature is equal within the
//! rounding that the table of features states. `docs/features.md` relies on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use headway_cc::{
    CongestionControl, Control, Duration, Ecn, Feedback, Need, Registry, Rto, Scheme, Sent, Setup,
    Stamp, Tag, Time, schemes,
};
use headway_kernel::abi::{Message, SettingValues};
use headway_kernel::{Datapath, FakeKernel};
use headway_net::trace::Trace;
use headway_policy::{
    AgentSpec, FEATURES, Interval, Limits, Monitor, NeededStats, RecordBuilder, Source,
};
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Options, Simulation};

const ALL: NeededStats = NeededStats { averages: true };

/// The comparisons of one feature: their number, its extremes, and the largest difference.
#[derive(Clone, Copy, Debug)]
struct Found {
    least: f64,
    largest: f64,
    /// The largest difference, as a share of the allowed one.
    worst: f64,
}
type Finds = Arc<Mutex<BTreeMap<&'static str, Found>>>;

static SCHEME: Scheme = Scheme::unlisted(
    "tap",
    &[Need::RateSample, Need::Pacing, Need::PerSend, Need::EcnEcho],
);

/// Settings for a run without answers, in which the base controller keeps the flow.
fn settings_without_answers() -> SettingValues {
    let limits = Limits {
        answer_us: u32::MAX,
        answer_most_us: u32::MAX,
        ..Limits::default().without_epochs()
    };
    SettingValues {
        limits,
        ..SettingValues::default()
    }
}

/// Hosts the fake kernel's flow, and records what both ends report.
#[derive(Debug)]
struct Tap {
    kernel: FakeKernel,
    datapath: Datapath,
    reporter: RecordBuilder,
    ours: Monitor,
    theirs: Monitor,
    due: Time,
    interval: Duration,
    finds: Finds,
}

impl Tap {
    fn new(spec: &AgentSpec, setup: &Setup, interval: Duration, finds: &Finds) -> Tap {
        let kernel = FakeKernel::new(1 << 20);
        kernel.set_served_until(Time::NEVER);
        kernel
            .configure(settings_without_answers(), None)
            .expect("limits in their ranges");
        Tap {
            datapath: Datapath::new(&kernel, spec, setup).expect("a controller"),
            kernel,
            reporter: RecordBuilder::new(setup.mss),
            ours: Monitor::new(setup.start, ALL),
            theirs: Monitor::new(setup.start, ALL),
            due: setup.start + interval,
            interval,
            finds: Arc::clone(finds),
        }
    }

    fn listen(&mut self, now: Time) {
        while let Some(bytes) = self.kernel.next_message() {
            match Message::read(&bytes).expect("a message") {
                Message::Report(report) => self.theirs.on_record(&report.record),
                Message::Open(_) | Message::Close(_) | Message::Verdict(_) => {}
            }
        }
        assert_eq!(self.kernel.dropped(), 0);
        if now >= self.due {
            self.due = now + self.interval;
            let (ours, theirs) = (self.ours.close(now), self.theirs.close(now));
            self.compare(&ours, &theirs);
        }
    }

    fn compare(&self, ours: &Interval, theirs: &Interval) {
        let mut finds = self.finds.lock().unwrap();
        for feature in FEATURES {
            let (a, b) = ((feature.value)(ours), (feature.value)(theirs));
            // The slope through few points is not exact.
            if feature.name == "rtt_slope" && ours.rtt.samples < 8 {
                continue;
            }
            let share = (a - b).abs() / feature.rounding.allows(a, ours);
            assert!(
                share <= 1.0,
                "{} is {a} here and {b} there, {share} times what rounding explains ({:?})",
                feature.name,
                feature.rounding
            );
            let found = finds.entry(feature.name).or_insert(Found {
                least: a,
                largest: a,
                worst: 0.0,
            });
            found.least = found.least.min(a);
            found.largest = found.largest.max(a);
            found.worst = found.worst.max(share);
        }
    }
}

impl CongestionControl for Tap {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.reporter.on_sent(sent);
        self.datapath.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.datapath.on_feedback(feedback);
        let control = self.datapath.control();
        let record = self.reporter.on_feedback(feedback, &control);
        self.ours
            .on_record(&record.with_model(self.datapath.model()));
        self.listen(feedback.now);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.datapath.on_rto(rto);
        let control = self.datapath.control();
        let record = self.reporter.on_rto(rto, &control);
        self.ours
            .on_record(&record.with_model(self.datapath.model()));
        self.listen(rto.now);
    }

    fn next_timer(&self) -> Time {
        self.datapath.next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.datapath.on_timer(now);
    }

    fn control(&self) -> Control {
        self.datapath.control()
    }

    /// Packets are ECN-capable, so that there are marks.
    fn stamp(&self) -> Stamp {
        Stamp {
            ecn: Ecn::Ect0,
            ..Stamp::default()
        }
    }
}

fn watch(base: &str, interval_ms: u64, network: &str, finds: &Finds) {
    let action = match base {
        "bbr" => "kind = \"settings\", parameters = [\"btlbw_window\"], choices = [[10], [5]]",
        _ => "kind = \"discrete\", choices = [0, 10], effect = { does = \"add-cwnd\" }",
    };
    let spec = format!(
        "clock = {{ kind = \"every-ack\" }}\naction = {{ {action} }}\nbase = {{ kind = \"scheme\", name = \"{base}\" }}\n\
         observation = {{ history = 1, features = [{{ name = \"rtt_ms\" }}] }}\n"
    );
    let table: toml::Table = spec.parse().expect("TOML");
    let spec = AgentSpec::read(table).expect("a spec");
    let (interval, finds) = (Duration::from_millis(interval_ms), Arc::clone(finds));
    let selection =
        SCHEME.built_by(move |setup| Box::new(Tap::new(&spec, setup, interval, &finds)));
    let text = format!("schema = 1\nname = \"features\"\nseconds = 20\n{network}");
    let scenario = Scenario::parse(&text, "features").expect("a scenario");
    let registry = Registry::new(schemes::SCHEMES);
    let traces = |_: &TraceSpec| -> Result<Arc<Trace>, String> { Err("no traces".to_owned()) };
    let options = Options {
        duration: Duration::from_secs(20),
        warmup: Duration::ZERO,
        seed: 1,
        grid: None,
    };
    let simulation = Simulation::new(&scenario.draw(1), &selection, &registry, &traces, options);
    simulation.expect("a run").finish().expect("a run");
}

#[test]
fn every_feature_matches_the_kernels_within_rounding() {
    let finds = Finds::default();
    let link = |rest: &str| {
        format!("bottleneck = {{ rate = \"17.3Mbps\", delay = \"13.7ms\", {rest} }}\n")
    };
    for (base, interval_ms, network) in [
        ("cubic", 20, link("queue = \"1bdp\"")),
        ("newreno", 100, link("queue = \"1bdp\", loss = 0.01")),
        (
            "cubic",
            10,
            link("queue = { kind = \"step\", packets = \"60pkt\", threshold = \"20pkt\" }"),
        ),
        (
            "cubic",
            50,
            format!("transport = \"linux\"\n{}", link("queue = \"2bdp\"")),
        ),
        (
            "newreno",
            250,
            format!(
                "{}flow = [{{ rate = \"3Mbps\" }}]\n",
                link("queue = \"1bdp\"")
            ),
        ),
        (
            "newreno",
            100,
            format!(
                "{}at = [{{ time = \"5s\", loss = 1 }}, {{ time = \"9s\", loss = 0 }}]\n",
                link("queue = \"1bdp\"")
            ),
        ),
        (
            "bbr",
            30,
            link("queue = \"1bdp\"").replace("13.7ms", "21.9ms"),
        ),
    ] {
        watch(base, interval_ms, &network, &finds);
    }
    let finds = finds.lock().unwrap();
    for feature in FEATURES {
        let found = finds[feature.name];
        // Values of the agent itself are not in the kernel's bytes, and packets have one size here.
        let is_constant =
            [Source::Agent, Source::Network, Source::Mss].contains(&feature.sources[0]);
        assert!(
            is_constant || found.least < found.largest,
            "{} never changed: {found:?}",
            feature.name
        );
        if feature.rounding != headway_policy::Rounding::Exact {
            println!(
                "{}: at worst {:.2} of {:?}",
                feature.name, found.worst, feature.rounding
            );
        }
    }
}
