//! Learned controllers in the simulator.

use std::sync::{Arc, Mutex};

use headway_cc::{
    Congestion, CongestionControl, Duration, Feedback, Need, NetworkView, Registry, Scheme,
    Selection, Time, schemes, testing,
};
use headway_net::trace::Trace;
use headway_policy::{AgentSpec, Answer, Interval, Learned, Policy};
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Options, Outcome, Simulation};

static SCHEME: Scheme = Scheme::unlisted("agent", &[Need::RateSample, Need::Pacing, Need::PerSend]);

/// Gives its answers in turn, and keeps its observations.
#[derive(Clone, Debug)]
struct Scripted {
    answers: Vec<f32>,
    requests: usize,
    shown: Arc<Mutex<Vec<Vec<f32>>>>,
}

impl Policy for Scripted {
    fn decide(&mut self, observation: &[f32], _: &Interval) -> Option<Answer> {
        let answer = self.answers[self.requests % self.answers.len()];
        self.requests += 1;
        self.shown.lock().unwrap().push(observation.to_vec());
        Some(answer.into())
    }
}

fn simulate(selection: &Selection, rest: &str) -> Outcome {
    let text = format!("schema = 1\nname = \"agents\"\nseconds = 10\n{rest}");
    let scenario = Scenario::parse(&text, "agents").expect("a scenario");
    let registry = Registry::new(schemes::SCHEMES);
    let traces = |_: &TraceSpec| -> Result<Arc<Trace>, String> { Err("no traces".to_owned()) };
    let options = Options {
        duration: Duration::from_secs(10),
        warmup: Duration::ZERO,
        seed: 1,
        grid: Some(Duration::from_millis(100)),
    };
    let simulation = Simulation::new(&scenario.draw(1), selection, &registry, &traces, options);
    simulation.expect("a run").finish().expect("a run")
}

/// Runs an agent with these answers. Returns the outcome and the observations.
fn run(spec: &str, answers: &[f32], latency_ms: u64, rest: &str) -> (Outcome, Vec<Vec<f32>>) {
    let table: toml::Table = spec.parse().expect("TOML");
    let spec = AgentSpec::read(table).expect("a spec");
    let shown = Arc::default();
    let policy = Scripted {
        answers: answers.to_vec(),
        requests: 0,
        shown: Arc::clone(&shown),
    };
    let (spec, latency) = (Arc::new(spec), Duration::from_millis(latency_ms));
    let selection = SCHEME.built_by(move |setup| {
        let learned = Learned::new(Arc::clone(&spec), setup, policy.clone(), latency);
        Box::new(learned.expect("a spec that can be carried out"))
    });
    let outcome = simulate(&selection, rest);
    let shown = shown.lock().unwrap().clone();
    (outcome, shown)
}

fn plain(scheme: &str, rest: &str) -> Outcome {
    simulate(
        &Registry::new(schemes::SCHEMES)
            .select(scheme)
            .expect("a scheme"),
        rest,
    )
}

/// Compares two outcomes, except for the names.
#[track_caller]
fn same(mut a: Outcome, b: &Outcome) {
    for (ours, theirs) in a.rows.iter_mut().zip(&b.rows) {
        ours.scheme.clone_from(&theirs.scheme);
        ours.model.clone_from(&theirs.model);
    }
    assert!(a == *b, "{:?}\n{:?}", a.rows[0], b.rows[0]);
}

const LINK: &str = "bottleneck = { rate = \"20Mbps\", delay = \"10ms\", queue = \"1bdp\" }\n";
const LOSSY: &str =
    "bottleneck = { rate = \"20Mbps\", delay = \"10ms\", queue = \"1bdp\", loss = 0.01 }\n";
const LINUX: &str = "transport = \"linux\"\nbottleneck = { rate = \"20Mbps\", delay = \"10ms\", queue = \"1bdp\" }\n";

fn over(scheme: &str, clock: &str, action: &str, feature: &str) -> String {
    format!(
        "clock = {clock}\naction = {action}\nbase = {{ kind = \"scheme\", name = \"{scheme}\" }}\n\
         observation = {{ history = 1, features = [{{ name = \"{feature}\" }}] }}\n"
    )
}
/// The known switches' reports, as features of an observation.
const NETWORK: &str =
    "pnc_packets\" }, { name = \"pna\" }, { name = \"network_known\" }, { name = \"network_age_ms";
const EVERY_ACK: &str = "{ kind = \"every-ack\" }";
const OWL: &str =
    "{ kind = \"discrete\", choices = [-10, 0, 10], effect = { does = \"add-cwnd\" } }";
const STEPS: &str = "{ kind = \"steps\", choices = [\"+0\", \"-10\", \"+10\", \"*2\", \"/2\"] }";
const ORCA: &str =
    "{ kind = \"continuous\", limit = 1, effect = { does = \"scale-cwnd\", base = 4 } }";

/// A policy that never acts does not change the base controller, to the bit.
#[test]
fn the_neutral_action_changes_nothing() {
    for scheme in ["cubic", "newreno"] {
        for rest in [LINK, LOSSY, LINUX] {
            let alone = plain(scheme, rest);
            let (owl, shown) = run(&over(scheme, EVERY_ACK, OWL, "rtt_ms"), &[1.0], 0, rest);
            assert!(shown.len() > 1000, "it decided {} times", shown.len());
            same(owl, &alone);
            let (steps, _) = run(&over(scheme, EVERY_ACK, STEPS, "rtt_ms"), &[0.0], 0, rest);
            same(steps, &alone);
            let (orca, _) = run(
                &over(scheme, "{ kind = \"period\", ms = 20 }", ORCA, "rtt_ms"),
                &[0.0],
                3,
                rest,
            );
            same(orca, &alone);
            // The comparison can fail.
            let (other, _) = run(
                &over(scheme, EVERY_ACK, OWL, "rtt_ms"),
                &[1.0, 2.0],
                0,
                rest,
            );
            assert!(other.rows[0].metrics != alone.rows[0].metrics);
        }
    }
}

/// Without Cubic's own growth, a policy that never acts sees a window that only losses move.
#[test]
fn a_held_window_is_moved_by_losses_alone() {
    let windows = |base: &str| {
        let spec = over("cubic", EVERY_ACK, OWL, "cwnd_packets").replace("\"cubic\"", base);
        let (_, shown) = run(&spec, &[1.0], 0, LOSSY);
        assert!(shown.len() > 500, "it decided {} times", shown.len());
        shown.iter().map(|o| o[0]).collect::<Vec<f32>>()
    };
    let rises = |windows: &[f32]| windows.windows(2).filter(|w| w[1] > w[0]).count();
    let held = windows("\"cubic\", grows = false");
    assert_eq!(rises(&held), 0);
    assert!(held[0] >= 10.0 && held[held.len() - 1] < 5.0, "losses do");
    assert!(rises(&windows("\"cubic\"")) > 100);
}

/// Owl's in-network features on a path of five switches. Before the first counters, and if no
/// switch is known, all are zero. Between two readings they stay, and their age grows.
#[test]
fn a_policy_sees_network_reports_and_their_age() {
    let shown = |known: u32| {
        let path = format!(
            "flow = [{{ from = \"sender\", to = \"receiver\" }}]\n\
             switches = {{ known = {known}, period = \"1s\", latency = \"50ms\" }}\n\
             topology = {{ kind = \"chain\", switches = 5, rate = \"20Mbps\", delay = \"2ms\", queue = \"50kB\" }}\n"
        );
        run(&over("cubic", EVERY_ACK, OWL, NETWORK), &[1.0], 0, &path).1
    };
    assert!(shown(0).iter().all(|o| o[..] == [0.0; 4]));
    let shown = shown(2);
    let (before, after): (Vec<_>, Vec<_>) = shown.iter().partition(|o| o[2] == 0.0);
    assert!(before.len() > 100 && before.iter().all(|o| o[..] == [0.0; 4]));
    assert!(after.len() > 1000);
    for o in &after {
        assert!(
            o[0] >= 0.0 && (0.0..=1.0).contains(&o[1]) && o[2] == 0.4,
            "{o:?}"
        );
        assert!((50.0..1050.1).contains(&o[3]), "{o:?}");
    }
    for pair in after.windows(2) {
        let (old, new) = (pair[0], pair[1]);
        assert!(
            new[..3] == old[..3] || new[3] < old[3],
            "news is young: {pair:?}"
        );
    }
}

/// The network's controller has failed. Its last report stays for 10 s, and then counts as none.
#[test]
fn an_unreachable_network_controller_changes_nothing() {
    let spec = over("cubic", EVERY_ACK, OWL, NETWORK);
    let table: toml::Table = spec.parse().expect("TOML");
    let spec = Arc::new(AgentSpec::read(table).expect("a spec"));
    let shown: Arc<Mutex<Vec<Vec<f32>>>> = Arc::default();
    let policy = Scripted {
        answers: vec![1.0],
        requests: 0,
        shown: Arc::clone(&shown),
    };
    let setup = testing::setup();
    let mut owl = Learned::new(spec, &setup, policy, Duration::ZERO).expect("a spec");
    let at = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
    // A mark ends slow start, so that the policy decides.
    owl.on_feedback(&Feedback {
        congestion: Some(Congestion::Ecn),
        prior_in_flight: testing::MSS * 10,
        ..testing::feedback(at(0))
    });
    let view = NetworkView {
        pnc: 7.0,
        pna: 0.25,
        known: 0.5,
        age: Duration::from_millis(50),
    };
    owl.on_network(at(1), &view);
    for (seconds, right) in [
        (1, [7.0, 0.25, 0.5, 50.0]),
        (2, [7.0, 0.25, 0.5, 1050.0]),
        (10, [7.0, 0.25, 0.5, 9050.0]),
        (11, [0.0; 4]),
        (901, [0.0; 4]),
    ] {
        owl.on_feedback(&testing::feedback(at(seconds)));
        let seen = shown.lock().unwrap().last().cloned();
        assert_eq!(seen, Some(right.to_vec()));
    }
}

/// BBR under a tuner that sets BBR's defaults equals BBR. With short windows it does not.
#[test]
fn a_tuner_that_sets_the_defaults_changes_nothing() {
    let tuner = |choices: &str| {
        format!(
            "clock = {{ kind = \"period\", ms = 500 }}\nbase = {{ kind = \"scheme\", name = \"bbr\" }}\n\
             observation = {{ history = 1, features = [{{ name = \"rtt_ms\" }}] }}\n\
             [action]\nkind = \"settings\"\nparameters = [\"rtprop_window\", \"btlbw_window\"]\nchoices = {choices}\n"
        )
    };
    let alone = plain("bbr", LINK);
    let (tuned, shown) = run(&tuner("[[10, 10], [2, 10]]"), &[0.0], 0, LINK);
    assert_eq!(shown.len(), 20, "every 500 ms");
    same(tuned, &alone);
    // With an RTprop window of 2 s ProbeRTT comes five times as often, as with the parameter.
    let (short, _) = run(&tuner("[[10, 10], [2, 10]]"), &[1.0], 0, LINK);
    assert!(short.rows[0].metrics != alone.rows[0].metrics);
    let probes = |outcome: &Outcome| {
        let cwnd = &outcome.series[1].series.cwnd_packets;
        cwnd.windows(2)
            .filter(|w| w[0] > Some(8.0) && w[1] <= Some(8.0))
            .count()
    };
    let by_parameter = plain("bbr:rtprop_window=2s", LINK);
    assert_eq!(probes(&short), probes(&by_parameter));
    assert!(probes(&short) >= 3, "{}", probes(&short));
}

/// The policy does not decide in slow start or during recovery.
#[test]
fn a_policy_over_a_controller_acts_only_in_congestion_avoidance() {
    let spec = over("newreno", EVERY_ACK, OWL, "recovering");
    let (_, shown) = run(&spec, &[1.0], 0, LOSSY);
    assert!(shown.len() > 1000 && shown.iter().all(|o| o[0] == 0.0));
    // In a window that never leaves slow start the policy never decides.
    let wide = "bottleneck = { rate = \"1Gbps\", delay = \"400ms\", queue = \"100000pkt\" }\n";
    let (_, shown) = run(&spec, &[1.0], 0, wide);
    assert!(shown.is_empty(), "{}", shown.len());
}

/// An answer takes effect later, and its age is a feature. Answers that overlap all take effect.
#[test]
fn latency_delays_answers_without_losing_any() {
    let rate = |feature: &str| {
        format!(
            "clock = {{ kind = \"period\", ms = 10 }}\n\
             action = {{ kind = \"continuous\", limit = 10, effect = {{ does = \"scale-rate\", delta = 0.1 }} }}\n\
             base = {{ kind = \"rate\", initial_mbps = 1.0, min_mbps = 0.001, max_mbps = 10.0 }}\n\
             observation = {{ history = 1, features = [{{ name = \"{feature}\" }}] }}\n"
        )
    };
    // The first answer multiplies by 1.1, the others by 1. With 35 ms of latency it shows at 45 ms.
    let mut answers = vec![0.0; 1000];
    answers[0] = 1.0;
    let paced = |latency| {
        let (_, shown) = run(&rate("pacing_rate_mbps"), &answers, latency, LINK);
        shown.iter().map(|o| o[0]).collect::<Vec<f32>>()
    };
    let first = |rates: &[f32]| rates.iter().position(|r| (r - 1.1).abs() < 1e-6);
    let (at_once, late) = (paced(0), paced(35));
    let (at_once, late) = (
        first(&at_once).expect("it shows"),
        first(&late).expect("it shows"),
    );
    assert!((3..=5).contains(&(late - at_once)), "{at_once} {late}");
    let (_, ages) = run(&rate("action_age_ms"), &answers, 35, LINK);
    assert_eq!(ages[0][0], 0.0);
    // The answer takes effect with an acknowledgement, which comes every 12 ms.
    let last = ages.last().expect("many")[0];
    assert!((35.0..47.0).contains(&last), "{last}");
    // Every answer doubles the rate. From 1 to 10 Mbit/s it takes four of them, though each comes
    // after the next request.
    let (_, rates) = run(&rate("pacing_rate_mbps"), &[10.0], 35, LINK);
    assert!(rates[20][0] > 9.9, "{rates:?}");
}

/// As in a kernel, an answer that comes while the link pauses waits for the next acknowledgement.
#[test]
fn an_answer_takes_effect_with_the_first_acknowledgement_after_it() {
    let spec: toml::Table = over("newreno", "{ kind = \"jiffies\", hz = 250 }", OWL, "rtt_ms")
        .parse()
        .expect("TOML");
    let spec = Arc::new(AgentSpec::read(spec).expect("a spec"));
    let policy = Scripted {
        answers: vec![2.0],
        requests: 0,
        shown: Arc::default(),
    };
    let setup = testing::setup();
    let latency = Duration::from_millis(1);
    let mut agent =
        Learned::new(spec, &setup, policy, latency).expect("a spec that can be carried out");
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    let packets = |agent: &Learned<Scripted>| agent.control().cwnd.get() / testing::MSS.get();
    // A loss ends slow start and leaves half of the ten packets.
    agent.on_feedback(&Feedback {
        acked_bytes: testing::MSS,
        congestion: Some(Congestion::Loss),
        prior_in_flight: testing::MSS * 10,
        ..testing::feedback(at(8))
    });
    let before = packets(&agent);
    assert!(agent.interval().end > Time::ZERO, "it has decided");
    for ms in 9..100 {
        agent.on_timer(at(ms));
        assert_eq!(packets(&agent), before, "{ms} ms");
    }
    agent.on_feedback(&testing::feedback(at(100)));
    assert!(
        packets(&agent) >= before + 10,
        "{} {before}",
        packets(&agent)
    );
}

/// Nothing ever arrives. The policy decides at each timeout, and sees that all is lost.
#[test]
fn a_policy_sees_timeouts() {
    let spec = "clock = { kind = \"rtt\", n = 1, estimator = \"latest\" }\n\
         action = { kind = \"continuous\", limit = 10, effect = { does = \"scale-rate\", delta = 0.1 } }\n\
         base = { kind = \"rate\", initial_mbps = 1.0, min_mbps = 0.001, max_mbps = 10.0 }\n\
         observation = { history = 1, features = [{ name = \"loss\" }, { name = \"lost_packets\" }] }\n";
    let dead = "bottleneck = { rate = \"20Mbps\", delay = \"10ms\", queue = \"1bdp\", loss = 1 }\n";
    let (_, shown) = run(spec, &[0.0], 0, dead);
    assert!((2..10).contains(&shown.len()), "{shown:?}");
    assert!(
        shown.iter().all(|o| o[0] == 1.0 && o[1] >= 1.0),
        "{shown:?}"
    );
}
