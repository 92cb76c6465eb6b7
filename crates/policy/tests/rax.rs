//! Rax on the link of its paper: 20 Mbit/s, 50 ms, ten packets of buffer.

use std::sync::{Arc, Mutex};

use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Feedback, Need, Probe, Registry, Rto, Scheme,
    Sent, Setup, Tag, Time, schemes,
};
use headway_policy::pal::PalSpec;
use headway_policy::schemes::{Rax, RaxOverRecords, RaxSpec};
use headway_policy::{Record, RecordBuilder};
use headway_scenario::Scenario;
use headway_sim::{Options, Simulation};

static KEPT: Scheme = Scheme::unlisted("rax-kept", &[Need::PerPacket]);

/// Keeps what a flow has learned, and its values.
#[derive(Debug)]
struct Kept {
    within: Rax,
    kept: Arc<Mutex<Values>>,
}

#[derive(Debug, Default)]
struct Values {
    learned: String,
    values: Vec<(&'static str, f64)>,
}

impl Probe for Values {
    fn value(&mut self, name: &'static str, value: f64) {
        self.values.push((name, value));
    }
}

impl Values {
    fn of(&self, name: &str) -> f64 {
        let found = self.values.iter().find(|(n, _)| *n == name);
        found.expect("a value of Rax's").1
    }
}

impl CongestionControl for Kept {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.within.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.within.on_feedback(feedback);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.within.on_rto(rto);
    }

    fn control(&self) -> Control {
        self.within.control()
    }

    fn owns_recovery(&self) -> bool {
        self.within.owns_recovery()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut values = Values {
            learned: self.within.learned(),
            values: Vec::new(),
        };
        self.within.probe(&mut values);
        *self.kept.lock().expect("no panic") = values;
    }
}

/// The results of a flow in each second, and its last values.
struct Run {
    mbps: Vec<f64>,
    loss: Vec<f64>,
    values: Values,
}

type Build = dyn Fn(&Setup) -> Box<dyn CongestionControl> + Send + Sync;

/// Mbit/s and the lost share in each second.
fn play(seed: u64, seconds: u64, build: Arc<Build>) -> (Vec<f64>, Vec<f64>) {
    let selection = KEPT.built_by(move |setup| build(setup));
    let options = Options {
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        seed,
        grid: Some(Duration::from_secs(1)),
    };
    let network = Scenario::load("rax-1").expect("a scenario").draw(seed);
    let none = |_: &_| Err("no traces".to_owned());
    let simulation = Simulation::new(
        &network,
        &selection,
        &Registry::new(schemes::SCHEMES),
        &none,
        options,
    );
    let mut outcome = simulation.expect("a network").finish().expect("it ends");
    let series = outcome.series.remove(0).series;
    let loss = series.loss.iter().map(|l| l.unwrap_or(0.0)).collect();
    (series.throughput_mbps, loss)
}

fn run(seed: u64, seconds: u64, spec: RaxSpec, learned: Option<String>) -> Run {
    let kept = Arc::new(Mutex::new(Values::default()));
    let keeper = Arc::clone(&kept);
    let build = move |setup: &Setup| {
        let within = match &learned {
            Some(learned) => Rax::resumed(setup, &spec, learned),
            None => Rax::new(setup, spec.clone()),
        };
        Box::new(Kept {
            within: within.expect("settings in range"),
            kept: Arc::clone(&keeper),
        }) as Box<dyn CongestionControl>
    };
    let (mbps, loss) = play(seed, seconds, Arc::new(build));
    Run {
        mbps,
        loss,
        values: std::mem::take(&mut *kept.lock().expect("no panic")),
    }
}

/// Rax that sees packets only through a kernel's records.
#[derive(Debug)]
struct OverRecords {
    rax: RaxOverRecords,
    reporter: RecordBuilder,
    now: Time,
    mss: Bytes,
}

impl CongestionControl for OverRecords {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.reporter.on_sent(sent);
        Tag::NONE
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let record = self.reporter.on_feedback(feedback, &self.control());
        self.now = feedback.now;
        self.rax.on_record(&record);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        let record = self.reporter.on_rto(rto, &self.control());
        self.now = rto.now;
        self.rax.on_record(&record);
    }

    fn control(&self) -> Control {
        Control::window(self.mss * u64::from(self.rax.cwnd(self.now).unwrap_or(10)))
    }

    fn owns_recovery(&self) -> bool {
        true
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The paper: "a stable, close-to-optimum solution within the order of minutes". Resumed, "flows
/// seem to simply resume where they ended" (§4.3).
#[test]
fn rax_learns_from_random_weights_and_resumes_from_a_checkpoint() {
    let first = run(1001, 120, RaxSpec::default(), None);
    let (mbps, loss) = (mean(&first.mbps[90..]), mean(&first.loss[90..]));
    assert!(mbps > 0.95 * 20.0 && loss < 0.01, "{mbps} {loss}");
    assert!(mean(&first.mbps[..5]) < 18.0, "it had to be learned");
    assert_eq!(first.values.of("divergences"), 0.0);
    let again = run(1001, 120, RaxSpec::default(), None);
    assert_eq!(
        first.values.learned, again.values.learned,
        "same seed, same bits"
    );

    let resumed = run(1002, 30, RaxSpec::default(), Some(first.values.learned));
    let (mbps, loss) = (mean(&resumed.mbps[5..]), mean(&resumed.loss[..10]));
    assert!(mbps > 0.9 * 20.0 && loss < 0.02, "{mbps} {loss}");
}

/// Weights count as diverged at once. NewReno runs for 10 s, then Rax starts again, and so on. The
/// flow is carried all the same.
#[test]
fn newreno_takes_over_for_a_time_after_divergence() {
    let spec = RaxSpec {
        pal: PalSpec {
            largest_norm: 0.1,
            ..PalSpec::default()
        },
        ..RaxSpec::default()
    };
    let run = run(1001, 60, spec, None);
    let divergences = run.values.of("divergences");
    assert!((4.0..=6.0).contains(&divergences), "{divergences}");
    let mbps = mean(&run.mbps[30..]);
    assert!(mbps > 0.5 * 20.0, "{mbps}");
}

/// With one gradient a window, however large it was, these flows ran away before the actor had
/// learned that their windows were too large.
#[test]
fn a_large_window_is_learned_from_before_it_is_a_runaway() {
    for seed in [1005, 1011, 1020, 1029] {
        let run = run(seed, 30, RaxSpec::default(), None);
        assert_eq!(run.values.of("divergences"), 0.0, "seed {seed}");
    }
}

/// §4.3: "flows seem to simply resume where they ended". The window starts at 1 and fills the link,
/// without a spike of loss.
#[test]
fn a_restarted_flow_keeps_its_weights() {
    let spec = RaxSpec {
        restart: Duration::from_secs(60),
        ..RaxSpec::default()
    };
    let run = run(1001, 120, spec, None);
    assert!(run.mbps[60] < 18.0, "it begins small: {}", run.mbps[60]);
    let (mbps, loss) = (mean(&run.mbps[70..]), mean(&run.loss[60..70]));
    assert!(mbps > 0.95 * 20.0 && loss < 0.02, "{mbps} {loss}");
    let once = mean(&run.loss[..20]);
    assert!(loss < 0.5 * once, "{loss} {once}");
}

/// As in a kernel, windows are whole packets, and records count packets without naming them.
#[test]
fn rax_over_records_learns_as_over_packets() {
    for seed in [1001, 1002] {
        let build = |setup: &Setup| {
            let rax = RaxOverRecords::new(setup, &RaxSpec::default(), None);
            Box::new(OverRecords {
                rax: rax.expect("settings in range"),
                reporter: RecordBuilder::new(setup.mss),
                now: setup.start,
                mss: setup.mss,
            }) as Box<dyn CongestionControl>
        };
        let (mbps, loss) = play(seed, 180, Arc::new(build));
        let (mbps, loss) = (mean(&mbps[150..]), mean(&loss[150..]));
        assert!(
            mbps > 0.95 * 20.0 && loss < 0.01,
            "seed {seed}: {mbps} {loss}"
        );
    }
}

/// A flow with random weights after its first record, which has an RTT of 50 ms and `in_flight`
/// packets in flight.
fn over_records(spec: &RaxSpec, in_flight: u32) -> (RaxOverRecords, Record) {
    let setup = Setup::new(Bytes::new(1500), 1);
    let rax = RaxOverRecords::new(&setup, spec, None).expect("settings in range");
    let record = Record {
        mss: 1500,
        acks: 1,
        rtt_us: 50_000,
        srtt_us: 50_000,
        in_flight,
        cwnd: in_flight,
        ..Record::default()
    };
    (rax, record)
}

/// A flow of 50 packets in flight after this many records, with marks and losses at these. Returns
/// the window, and the flow's named values. The 50 records from the 300th and the 900th on have
/// these flags.
fn with_marks(
    records: u32,
    marks: &[u32],
    losses: &[u32],
    flags: u32,
) -> (Option<u32>, Vec<(&'static str, f64)>) {
    let (mut rax, mut record) = over_records(&RaxSpec::default(), 50);
    for n in 1..=records {
        record.now_ns += 1_000_000;
        record.flags = if (300..350).contains(&n) || (900..950).contains(&n) {
            flags
        } else {
            0
        };
        record.sent = 50 + n;
        record.delivered_ce += u32::from(marks.contains(&n));
        record.lost += u32::from(losses.contains(&n));
        record.delivered += u32::from(!losses.contains(&n));
        rax.on_record(&record);
    }
    let mut probed = Values::default();
    rax.probe(&mut probed);
    (rax.cwnd(record.now()), probed.values)
}

/// A round trip's first mark counts as a loss. Others, which the receiver repeats, do not count.
/// The flow is in fallback meanwhile, so that no window depends on them at once.
#[test]
fn rax_over_records_learns_from_a_mark_as_from_a_loss() {
    let after = |marks: &[u32], losses: &[u32]| with_marks(2000, marks, losses, Record::TRIPPED);
    let repeated: Vec<u32> = (300..350).chain(900..950).collect();
    let once = after(&[300, 900], &[]);
    assert_eq!(once, after(&[], &[300, 900]));
    assert_eq!(after(&repeated, &[]), once);
    assert_ne!(after(&[], &[]), once);
}

/// RFC 3168, 6.1.2: a mark lowers the window once a round trip. What the flow learns from a loss
/// lowers no window at once.
#[test]
fn rax_over_records_lowers_the_window_to_70_percent_on_a_mark() {
    let window = |records, marks: &[u32], losses: &[u32]| {
        let (window, _) = with_marks(records, marks, losses, 0);
        f64::from(window.expect("it has the flow"))
    };
    let before = window(299, &[], &[]);
    let marked = window(300, &[300], &[]);
    assert!((marked - 0.7 * before).abs() <= 2.0, "{before}, {marked}");
    assert!((window(300, &[], &[300]) - before).abs() <= 2.0);
    let repeated: Vec<u32> = (300..350).collect();
    assert_eq!(
        window(349, &repeated, &[]),
        window(349, &[300], &[]),
        "once"
    );
}

/// After it restarts with random weights, a flow has nothing for other flows until it has learned
/// something.
#[test]
fn diverged_weights_are_not_passed_on() {
    let after = |spec: &RaxSpec, millis: u32| {
        let (mut rax, mut record) = over_records(spec, 50);
        for n in 0..millis {
            record.now_ns += 1_000_000;
            (record.sent, record.delivered) = (50 + n, n);
            rax.on_record(&record);
        }
        (rax.cwnd(record.now()).is_some(), rax.learned().is_some())
    };
    let sound = RaxSpec::default();
    assert_eq!(
        after(&sound, 100),
        (true, false),
        "it has learned next to nothing"
    );
    assert_eq!(after(&sound, 20_000), (true, true));
    let diverges = RaxSpec {
        pal: PalSpec {
            largest_norm: 0.1,
            ..PalSpec::default()
        },
        ..RaxSpec::default()
    };
    assert_eq!(
        after(&diverges, 5_000),
        (false, false),
        "Cubic has it for ten seconds"
    );
}

/// Another controller had the window when the first packets arrived. The flow has not acted yet
/// when it gets the window, so packets that are sent then belong to no action.
#[test]
fn packets_sent_before_rax_took_over_belong_to_no_action() {
    let (mut rax, mut record) = over_records(&RaxSpec::default(), 10);
    for n in 0..20 {
        record.now_ns += 1_000_000;
        (record.sent, record.delivered) = (10 + n, n);
        record.flags = if n < 10 { Record::TRIPPED } else { 0 };
        rax.on_record(&record);
    }
    assert!(rax.cwnd(record.now()).is_some());
}

/// In a burst of losses no time passes between packets in which an action could take effect.
#[test]
fn at_most_four_losses_of_a_record_cause_actions() {
    let window_after = |lost: u32| {
        let (mut rax, mut record) = over_records(&RaxSpec::default(), 50);
        for n in 1..=100 {
            record.now_ns += 1_000_000;
            (record.sent, record.delivered) = (50 + n, n);
            rax.on_record(&record);
        }
        record.now_ns += 1_000_000;
        (record.sent, record.lost) = (record.sent + lost, lost);
        rax.on_record(&record);
        let mut probed = Values::default();
        rax.probe(&mut probed);
        let window = |(name, _): &&(&str, f64)| *name == "window_packets";
        probed.values.iter().find(window).map(|(_, value)| *value)
    };
    assert_eq!(window_after(10), window_after(4));
    assert_ne!(window_after(4), window_after(3));
}
