//! The kernel's agent in whole numbers beside this crate's in floating point: of the same records both see the same,
//! to a step of an input or two.

use std::sync::{Arc, Mutex};

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Need, Rate, Registry, Rto, Scheme, Sent, Setup,
    Tag, Time, schemes,
};
use headway_fixed::{FEATURES, Int8, RateAgent};
use headway_net::trace::Trace;
use headway_policy::model::Model;
use headway_policy::{Folds, Monitor, Observation, ObservationSpec, RateControl, Record, Reporter};
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Options, Simulation};
use zerocopy::transmute_ref;

static SCHEME: Scheme = Scheme::unlisted("tap", &[Need::RateSample, Need::Pacing]);

type Rows = Arc<Mutex<Vec<([u8; FEATURES], [f64; FEATURES], u32, Time)>>>;

#[derive(Debug)]
struct Tap {
    policy: Arc<Int8>,
    agent: RateAgent,
    spec: ObservationSpec,
    monitor: Monitor,
    observation: Observation,
    reporter: Reporter,
    beneath: RateControl,
    rows: Rows,
}

impl Tap {
    fn new(model: &Model, setup: &Setup, rows: &Rows) -> Tap {
        let policy = model.int8().expect("int8").clone();
        let agent = RateAgent::new(&policy, setup.start.as_nanos());
        let spec = model.card().agent.observation.clone();
        Tap {
            beneath: RateControl::new(setup.mss, Rate::from_bps(agent.rate() * 8)),
            monitor: Monitor::new(setup.start, Folds::default()),
            observation: Observation::new(&spec).expect("a spec"),
            reporter: Reporter::new(setup.mss),
            policy: Arc::new(policy),
            rows: Arc::clone(rows),
            agent,
            spec,
        }
    }

    fn take(&mut self, record: &Record) {
        let before = self.agent.decisions();
        let rate = self.agent.record(&self.policy, transmute_ref!(record));
        self.monitor.on_record(record);
        if self.agent.decisions() == before {
            return;
        }
        self.beneath.set(Rate::from_bps(rate * 8));
        let interval = self.monitor.close(record.now());
        self.observation.push(&interval);
        let newest = self.observation.values().last_chunk::<FEATURES>().expect("features");
        let ours = *self.agent.inputs().last_chunk().expect("features");
        let mut theirs = [0.0; FEATURES];
        for ((theirs, value), used) in theirs.iter_mut().zip(newest).zip(&self.spec.features) {
            let [low, high] = used.clip;
            *theirs = (f64::from(*value) - low) * 255.0 / (high - low);
        }
        self.rows.lock().unwrap().push((ours, theirs, interval.rtt.samples, record.now()));
    }
}

impl CongestionControl for Tap {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.reporter.on_sent(sent);
        Tag::NONE
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.beneath.on_feedback(feedback);
        let record = self.reporter.on_feedback(feedback, &self.beneath.control());
        self.take(&record);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        let record = self.reporter.on_rto(rto, &self.beneath.control());
        self.take(&record);
    }

    fn control(&self) -> Control {
        self.beneath.control()
    }

    fn owns_recovery(&self) -> bool {
        true
    }
}

#[test]
fn explore() {
    let Ok(folder) = std::env::var("INT8_MODEL") else { return };
    let model = Model::load(folder.as_ref()).expect("a model");
    let rows = Rows::default();
    let mine = Arc::clone(&rows);
    let selection = SCHEME.built_by(move |setup| Box::new(Tap::new(&model, setup, &mine)));
    let text = "schema = 1\nname = \"x\"\nseconds = 20\nbottleneck = { trace = \"t\", delay = \"10ms\", queue = \"250pkt\" }\n";
    let scenario = Scenario::parse(text, "x").expect("a scenario");
    let registry = Registry::new(schemes::SCHEMES);
    let trace = std::fs::read("/work/shared/traces/Verizon-LTE-short.down").unwrap();
    let trace = Arc::new(Trace::parse(trace).unwrap());
    let traces = move |_: &TraceSpec| -> Result<Arc<Trace>, String> { Ok(Arc::clone(&trace)) };
    let options = Options { duration: Duration::from_secs(20), warmup: Duration::ZERO, seed: 1, grid: None };
    Simulation::new(&scenario.draw(1), &selection, &registry, &traces, options).expect("a run").finish().expect("a run");
    let rows = rows.lock().unwrap();
    for (n, (ours, theirs, samples, at)) in rows.iter().enumerate() {
        if n < 150 { println!("{at:?} n {samples} {ours:?} {:?}", theirs.map(|t| (t * 10.0).round() / 10.0)); }
    }
    println!("{} decisions", rows.len());
}
