//! What specs contain and what they refuse. Each error is one line that says what would be right.

use headway_cc::{Bytes, Duration, RttStats, Setup, Time};
use headway_policy::{
    Action, ActionSpec, AgentSpec, BaseController, Effect, FEATURES, Feature, FeatureUse, Interval,
    Observation, ObservationSpec,
};

const AURORA: &str = r#"
clock = { kind = "rtt", n = 0.5, estimator = "mean" }
action = { kind = "continuous", limit = 1e12, effect = { does = "scale-rate", delta = 0.025 } }
base = { kind = "rate", initial_mbps = 2.0, min_mbps = 0.5, max_mbps = 300.0 }
[observation]
history = 10
features = [
    { name = "rtt_slope", clip = [-10.0, 10.0] },
    { name = "rtt_ratio", clip = [1.0, 1000.0] },
    { name = "send_ratio", clip = [0.0, 1000.0] },
]
"#;
const TUNER: &str = r#"
clock = { kind = "period", ms = 2000.0 }
base = { kind = "scheme", name = "bbr" }
observation = { history = 1, features = [{ name = "rtt_ms" }] }
[action]
kind = "settings"
parameters = ["rtprop_window", "btlbw_window"]
choices = [[10.0, 10.0], [2.0, 10.0], [2.0, 4.0]]
"#;
/// Owl's Action-1 (section VII-F) in mvfst-rl's form.
const STEPS: &str = r#"
clock = { kind = "every-ack" }
action = { kind = "steps", choices = ["+0", "-10", "+10", "*2", "/2"] }
base = { kind = "scheme", name = "cubic", grows = false }
observation = { history = 1, features = [{ name = "rtt_ms" }] }
"#;

fn read(text: &str) -> Result<AgentSpec, String> {
    let table: toml::Table = text.parse().expect("TOML");
    AgentSpec::read(table).map_err(|e| e.to_string())
}

fn aurora() -> AgentSpec {
    read(AURORA).expect("a spec")
}

/// Cards of version 1 may have the old name of the table `base`.
#[test]
fn the_old_name_of_the_base_controller_is_read_and_hashes_the_same() {
    let old = AURORA.replace("\nbase =", "\nbeneath =");
    assert_ne!(old, AURORA);
    assert_eq!(read(&old), read(AURORA));
    assert_eq!(read(&old).map(|spec| spec.hash()), Ok(aurora().hash()));
    let both = AURORA.replace("\nbase =", "\nbeneath = { kind = \"rate\" }\nbase =");
    let error = read(&both).expect_err("two base controllers");
    assert!(error.contains("duplicate field `base`"), "{error}");
}

/// Every model's card contains the hash, so it must be the same in every build, for ever (`VERSION`
/// counts up if it has to change). The number is Python's: hashlib.sha256 of "1
/// " and the JSON.
#[test]
fn the_hash_is_stable_and_differs_between_specs() {
    let hash = aurora().hash();
    assert_eq!(
        hash,
        "5eaf9ab7a7a192e4c236231750a247f1f7290a09e835ed0c97f9ce9fb36b89a7"
    );
    let json = serde_json::to_value(aurora()).expect("JSON");
    assert_eq!(AgentSpec::read(json).expect("the same").hash(), hash);
    for (from, to) in [
        ("0.5, est", "0.6, est"),
        ("\"mean\"", "\"latest\""),
        ("rtt_slope", "rtt_growth"),
        ("history = 10", "history = 9"),
        ("1000.0", "999.0"),
        ("0.025", "0.05"),
        ("1e12", "1e11"),
        ("initial_mbps = 2.0", "initial_mbps = 3.0"),
    ] {
        let other = AURORA.replace(from, to);
        assert_ne!(other, AURORA, "{from}");
        assert_ne!(read(&other).expect(from).hash(), hash, "{from}");
    }
}

#[test]
fn bad_specs_are_refused_in_one_line() {
    let wrong = |text: &str, from: &str, to: &str, hint: &str| {
        assert!(text.contains(from), "{from}");
        let error = read(&text.replace(from, to)).expect_err(to);
        assert!(error.contains(hint), "{to}: {error}");
        assert!(!error.contains('\n'), "{error}");
    };
    for (from, to, hint) in [
        (
            "history",
            "histroy",                                        // codespell:ignore histroy
            "unknown key 'histroy'; did you mean 'history'?", // codespell:ignore histroy
        ),
        (
            "delta",
            "dleta",
            "unknown key 'dleta'; did you mean 'delta'?",
        ),
        (
            "clip = [0.0",
            "clipp = [0.0",
            "unknown key 'clipp'; did you mean 'clip'?",
        ),
        (
            "\"mean\"",
            "\"median\"",
            "unknown kind 'median'; did you mean 'mean'?",
        ),
        (
            "\"scale-rate\"",
            "\"scale-rates\"",
            "did you mean 'scale-rate'?",
        ),
        ("\"rtt\"", "\"rrt\"", "did you mean 'rtt'?"),
        (
            "rtt_ratio",
            "rtt_rati",
            "unknown feature 'rtt_rati'; did you mean 'rtt_ratio'?",
        ),
        ("history = 10", "history = 0", "history of 1 to 1000"),
        ("[1.0, 1000.0]", "[9.0, 1.0]", "clip from low to high"),
        ("0.025", "-1.0", "delta is -1, must be above 0"),
        ("n = 0.5", "n = 0.0", "n is 0, must be from 0.01 to 1000"),
        (
            "kind = \"rtt\", n = 0.5",
            "kind = \"chosen\", least = 4.0, most = 0.25",
            "least is 4, must be from 0.01 to below most",
        ),
        ("min_mbps = 0.5", "min_mbps = 3.0", "in that order"),
        ("history = 10", "", "missing field `history`"),
        ("history = 10", "history = \"ten\"", "invalid type"),
    ] {
        wrong(AURORA, from, to, hint);
    }
    for (from, to, hint) in [
        (
            "rtprop_window",
            "rtprop_windo", // codespell:ignore windo
            "bbr has no parameter 'rtprop_windo' to set; did you mean 'rtprop_window'?", // codespell:ignore windo
        ),
        ("[2.0, 4.0]", "[2.0]", "a value for each of the parameters"),
        (
            "[2.0, 4.0]",
            "[0.01, 4.0]",
            "rtprop_window = 0.01 must be a time from",
        ),
        (
            "[2.0, 4.0]",
            "[2.0, 4.5]",
            "btlbw_window = 4.5 must be a whole number",
        ),
        (
            "\"bbr\"",
            "\"newreno\"",
            "'newreno' has no parameters to set; bbr and cubic have",
        ),
        (
            "\"bbr\"",
            "\"cubic\"",
            "cubic has no parameter 'rtprop_window' to set; there are: beta, c",
        ),
    ] {
        wrong(TUNER, from, to, hint);
    }
    let window = r#"does = "add-cwnd""#;
    let over = |scheme: &str| {
        AURORA
            .replace(r#"does = "scale-rate", delta = 0.025"#, window)
            .replace(
                r#"kind = "rate", initial_mbps = 2.0, min_mbps = 0.5, max_mbps = 300.0"#,
                scheme,
            )
    };
    let hash = |more: &str| {
        let spec = over(&format!(r#"kind = "scheme", name = "cubic"{more}"#));
        read(&spec).expect("a spec").hash()
    };
    // A card from before `grows` existed keeps its hash.
    assert_eq!(hash(""), hash(", grows = true"));
    assert_ne!(hash(""), hash(", grows = false"));
    read(&over(r#"kind = "scheme", name = "cubic:hystart=classic""#)).expect("Linux's slow start");
    for (from, to, hint) in [
        (
            "\"+10\"",
            "\"10\"",
            "step '10' must be whole packets such as +10 or -10, or a factor such as *2 or /2",
        ),
        ("\"+10\"", "\"+2.5\"", "step '+2.5' must be whole packets"),
        ("\"/2\"", "\"/0\"", "step '/0' must be"),
        ("\"+10\"", "10", "expected a string"),
        (
            "[\"+0\", \"-10\", \"+10\", \"*2\", \"/2\"]",
            "[\"+0\"]",
            "choices must be 2 to 1024",
        ),
        ("choices", "chioces", "did you mean 'choices'?"),
        ("\"steps\"", "\"step\"", "did you mean 'steps'?"),
        ("cubic", "bbr", "the window of 'bbr' cannot be steered"),
        (
            "cubic",
            "batched-cubic:interval=10ms",
            "the window of 'batched-cubic' cannot be steered",
        ),
        (
            "cubic",
            "cubic:hystart=clasic",            // codespell:ignore clasic
            "hystart='clasic' must be one of", // codespell:ignore clasic
        ),
        ("cubic", "cubic:hystrat=none", "did you mean 'hystart'?"),
        ("cubic", "newreno:ecn", "'ecn' is not of the form key=value"),
        (
            "kind = \"scheme\", name = \"cubic\", grows = false",
            "kind = \"rate\", initial_mbps = 2.0, min_mbps = 0.5, max_mbps = 300.0",
            "a rate takes scale-rate",
        ),
    ] {
        wrong(STEPS, from, to, hint);
    }
    let error = read(&over(r#"kind = "scheme", name = "bbr""#)).expect_err("BBR");
    assert!(
        error.contains("the window of 'bbr' cannot be steered"),
        "{error}"
    );
    let error =
        read(&AURORA.replace(r#"does = "scale-rate", delta = 0.025"#, window)).expect_err("a rate");
    assert!(error.contains("a rate takes scale-rate"), "{error}");
}

fn setup() -> Setup {
    Setup::new(Bytes::new(1500), 1)
}

/// Aurora §4.1: x = x (1 + 0.025 a) for a above 0, else x / (1 - 0.025 a).
#[test]
fn rates_are_scaled_by_auroras_rule() {
    let spec = aurora();
    let mut base = BaseController::new(&spec.base, &spec.action, &setup()).expect("a rate");
    let mut rate = |answer: f32| {
        let action = spec.action.action(answer);
        base.act(Time::ZERO, setup().mss, &RttStats::default(), action, None);
        base.controller()
            .control()
            .pacing_rate
            .expect("paced")
            .as_mbps()
    };
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{a}, not {b}");
    near(rate(0.0), 2.0);
    near(rate(4.0), 2.2);
    near(rate(-4.0), 2.0);
    near(rate(40.0), 4.0);
    near(rate(1e9), 300.0);
    near(rate(-1e9), 0.5);
    near(rate(f32::NAN), 0.5);
    near(rate(f32::INFINITY), 300.0);
}

#[test]
fn windows_are_scaled_by_orcas_rule_and_stepped_by_owls() {
    let of = |effect| ActionSpec::Continuous { effect, limit: 1.0 };
    let orca = of(Effect::ScaleCwnd { base: 4.0 });
    assert_eq!(orca.action(0.5), Action::ScaleCwnd(2.0));
    assert_eq!(orca.action(-7.0), Action::ScaleCwnd(0.25));
    let owl = ActionSpec::Discrete {
        effect: Effect::AddCwnd,
        choices: vec![-10.0, -3.0, -1.0, 0.0, 1.0, 3.0, 10.0],
    };
    assert_eq!(owl.outputs(), 7);
    assert_eq!(owl.action(1.0), Action::AddCwnd(-3.0));
    assert_eq!(owl.action(99.0), Action::AddCwnd(10.0));
    assert_eq!(owl.choose(&[0.0, 2.0, 1.0, 2.0, 0.0, 0.0, 0.0]), 1.0);
}

/// By hand, from a first window of 10 packets. The answers are the indices of the steps.
#[test]
fn one_set_of_steps_can_add_and_multiply() {
    let spec = read(STEPS).expect("a spec");
    assert_eq!(spec.action.outputs(), 5);
    assert_eq!(spec.action.choose(&[0.0, 1.0, 0.0, 3.0, 3.0]), 3.0);
    let (mss, rtt) = (setup().mss, RttStats::default());
    let mut base = BaseController::new(&spec.base, &spec.action, &setup()).expect("Cubic");
    for (answer, packets) in [
        (0.0, 10.0),
        (3.0, 20.0), // *2
        (2.0, 30.0), // +10
        (4.0, 15.0), // /2
        (1.0, 5.0),  // -10
        (4.0, 2.5),  // /2
        (f32::NAN, 2.5),
        (3.0, 5.0), // *2
        (1.0, 1.0), // -10: no less than a packet
        (2.0, 11.0),
        (0.0, 11.0),
    ] {
        base.act(Time::ZERO, mss, &rtt, spec.action.action(answer), None);
        let cwnd = base.controller().control().cwnd;
        assert_eq!(cwnd.as_f64() / mss.as_f64(), packets, "answer {answer}");
    }
    // A card keeps the steps as they were written.
    let json = serde_json::to_value(&spec).expect("JSON");
    let kept = serde_json::json!(["+0", "-10", "+10", "*2", "/2"]);
    assert_eq!(json["action"]["choices"], kept);
    assert_eq!(AgentSpec::read(json).expect("the same"), spec);
    let same = read(&STEPS.replace("*2", "*2.0")).expect("the same");
    assert_eq!(same.hash(), spec.hash());
}

#[test]
fn the_tuner_sets_both_windows_at_once() {
    let spec = read(TUNER).expect("a spec");
    assert_eq!(spec.action.outputs(), 3);
    match spec.action.action(2.0) {
        Action::Settings(parameters, values) => {
            assert_eq!(parameters, ["rtprop_window", "btlbw_window"]);
            assert_eq!(values, [2.0, 4.0]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_observation_holds_the_last_intervals_oldest_first() {
    let used = |name: &str| FeatureUse::plain(name);
    let spec = ObservationSpec {
        rows: 1,
        history: 2,
        features: vec![
            FeatureUse {
                offset: 1.0,
                scale: 0.5,
                clip: [-1.0, 20.0],
                ..used("interval_ms")
            },
            FeatureUse {
                log: true,
                ..used("interval_ms")
            },
        ],
    };
    let mut observation = Observation::new(&spec).expect("a spec");
    let mut push = |ms: u64| {
        observation.push(&Interval {
            length: Duration::from_millis(ms),
            ..Interval::default()
        });
        observation.values().to_vec()
    };
    let ln = |x: f64| libm::log(x) as f32;
    assert_eq!(push(11), [0.0, 0.0, 5.0, ln(12.0)]);
    assert_eq!(push(3), [5.0, ln(12.0), 1.0, ln(4.0)]);
    assert_eq!(push(1000), [1.0, ln(4.0), 20.0, ln(1001.0)], "clipped");
    assert_eq!(spec.len(), 4);
    // Other flows' rows come after the flow's own, and stay empty if a flow decides for itself.
    let table = ObservationSpec { rows: 3, ..spec };
    assert_eq!(table.len(), 12);
    let mut observation = Observation::new(&table).expect("a spec");
    for ms in [11, 3] {
        observation.push(&Interval {
            length: Duration::from_millis(ms),
            ..Interval::default()
        });
    }
    let (own, others) = observation.values().split_at(4);
    assert_eq!(own, [5.0, ln(12.0), 1.0, ln(4.0)]);
    assert_eq!(others, [0.0; 8]);
}

/// The observations of the papers' learners can be expressed.
#[test]
fn the_papers_states_can_be_expressed() {
    let owl = "time_ms cwnd_packets rtt_latest_ms rtt_change_ms mss_bytes delivered_total_packets lost_total_packets \
               in_flight_packets retransmitted_total_packets pnc_packets pna network_known";
    let rax = "ack_gap_ewma8_ms ack_gap_ewma256_ms rtt_ewma8_ms rtt_ewma256_ms loss_ewma8 loss_ewma256 \
               cwnd_ewma8_packets cwnd_ewma256_packets";
    let orca =
        "throughput_share pacing_share loss_rate_share delivered_share interval_ms min_rtt_share";
    for name in [owl, rax, orca]
        .iter()
        .flat_map(|names| names.split_whitespace())
    {
        assert!(Feature::find(name).is_some(), "{name}");
    }
}

#[test]
fn every_feature_of_an_empty_interval_is_finite() {
    for feature in FEATURES {
        let value = (feature.value)(&Interval::default());
        assert!(value.is_finite(), "{}: {value}", feature.name);
    }
}
