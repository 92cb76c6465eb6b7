//! Models as schemes.

use std::sync::Arc;

use headway_cc::testing::{drive, setup};
use headway_cc::{Duration, Kind, Registry, Selection};
use headway_net::trace::Trace;
use headway_policy::model::shipped;
use headway_policy::schemes::{FlowPolicy, PolicySpec, SCHEMES};
use headway_policy::{ClockSpec, Record, RttEstimator};
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Options, Simulation};
use proptest::prelude::*;

use crate::folder::tiny;

fn registry() -> Registry {
    Registry::new(SCHEMES)
}

fn learned(more: &str) -> Selection {
    let spec = format!("learned:model={}{more}", tiny().display());
    registry().select(&spec).expect("a scheme")
}

#[test]
fn a_selection_names_its_model_by_content() {
    let (plain, late) = (learned(""), learned(":latency=30ms"));
    let id = plain.model().expect("a model");
    assert!(id.starts_with("tiny-v1@"), "{id}");
    assert_eq!(Some(id), late.model());
    assert_eq!(
        late.canonical(),
        format!("learned:model={id}:latency=0.03s")
    );
}

#[test]
fn a_model_that_is_missing_or_bad_is_refused_before_anything_runs() {
    let refused = |spec: &str| registry().select(spec).expect_err("refused").to_string();
    assert_eq!(
        refused("learned"),
        "scheme 'learned' needs model, the path of a model's folder: learned:model=..."
    );
    let error = refused("learned:model=nowhere");
    assert!(
        error.contains("model='nowhere' is refused: nowhere: no such folder"),
        "{error}"
    );
}

#[test]
fn aurora_uses_its_newest_model_by_default() {
    let model = |spec: &str| {
        let selection = registry().select(spec).expect("a scheme");
        selection.model().expect("a model").to_owned()
    };
    let newest = shipped()
        .iter()
        .find(|one| one.title.starts_with("aurora-"));
    assert_eq!(
        model("aurora"),
        newest.expect("one").model().expect("a model").id()
    );
    assert!(model("aurora:model=v1").starts_with("aurora-v1@"));
    assert!(model("aurora:model=int8-v1").starts_with("aurora-int8-v1@"));
    assert!(model("aurora:model=cellular-v1").starts_with("aurora-cellular-v1@"));
    let error = registry()
        .select("aurora:model=v9")
        .expect_err("refused")
        .to_string();
    assert!(
        error.contains("model='v9' is refused: did you mean 'v"),
        "{error}"
    );
}

/// The folder of another training is accepted like a version, and that of another agent is refused.
#[test]
fn a_scheme_runs_another_training_of_its_model() {
    let folder = |title: &str| format!("{}/../../models/{title}", env!("CARGO_MANIFEST_DIR"));
    let select = |spec: String| registry().select(&spec);
    let version = select("owl:model=v1".to_owned()).expect("a version");
    let training = select(format!("owl:model={}", folder("owl-v1"))).expect("a training");
    assert_eq!(training.model(), version.model());
    let other = folder("aurora-v1");
    let error = select(format!("owl:model={other}")).expect_err("another agent");
    let what = format!("differs from those that owl has; run it as learned:model={other}");
    assert!(error.to_string().contains(&what), "{error}");
}

/// `interval` replaces the clock, so a training of another interval is one of its models.
#[test]
fn interval_runs_a_training_of_any_fixed_interval() {
    let model = |title: &str| {
        let found = shipped().iter().find(|one| one.title == title);
        found.expect("it ships").model().expect("a model")
    };
    let ours = model("interval-v1");
    let clock = ClockSpec::Rtt {
        n: 1.0,
        estimator: RttEstimator::Ewma,
    };
    let other = ours.with_clock(clock).expect("a clock that it can keep");
    assert!(other.is_like_at_any_clock(&ours));
    assert!(!model("interval-learned-v1").is_like_at_any_clock(&ours));
    assert!(!model("owl-v1").is_like_at_any_clock(&ours));
}

/// The rest of the name `owl-loss-v1` is not a version of owl.
#[test]
fn owl_and_owl_loss_have_separate_models() {
    let select = |spec: &str| registry().select(spec);
    for (spec, title) in [("owl", "owl-v1@"), ("owl-loss:online=true", "owl-loss-v1@")] {
        let selection = select(spec).expect("a scheme");
        let id = selection.model().expect("a model");
        assert!(id.starts_with(title), "{spec}: {id}");
    }
    assert!(select("owl:model=loss-v1").is_err());
    // An agent in user space has a latency, in the simulator too.
    let canonical = select("owl:latency=26us").expect("a scheme").canonical();
    assert_eq!(select("owl").expect("a scheme").canonical(), canonical);
}

/// Nothing is known, everything is known, and a controller fails after 4 s: the flow uses a link of
/// its own, without a standing queue.
#[test]
fn owl_runs_with_any_known_share_and_without_a_network_controller() {
    let run = |switches: &str| {
        let text = format!(
            "schema = 1\nname = \"path\"\nseconds = 30\nflow = [{{ from = \"sender\", to = \"receiver\" }}]\n\
             switches = {{ {switches}, latency = \"50ms\" }}\n\
             topology = {{ kind = \"chain\", switches = 5, rate = \"40Mbps\", delay = \"3ms\", queue = \"500kB\" }}\n"
        );
        let scenario = Scenario::parse(&text, "path").expect("a scenario");
        let selection = registry().select("owl").expect("a scheme");
        let traces = |_: &TraceSpec| -> Result<Arc<Trace>, String> { Err("no traces".to_owned()) };
        let options = Options {
            duration: Duration::from_secs(30),
            warmup: Duration::ZERO,
            seed: 1,
            grid: None,
        };
        let simulation =
            Simulation::new(&scenario.draw(1), &selection, &registry(), &traces, options);
        let outcome = simulation.expect("a run").finish().expect("a run");
        outcome.rows[0].metrics
    };
    for switches in [
        "known = 0",
        "known = 5",
        "known = 5, until = \"4s\"",
        "known = 2, period = \"14s\"", // forgotten for 4 s of 14
    ] {
        let metrics = run(switches);
        let (rate, queue) = (metrics.throughput_mbps, metrics.queue_p95_ms);
        assert!(rate.expect("packets") > 37.0, "{switches}: {rate:?}");
        assert!(queue.expect("packets") < 25.0, "{switches}: {queue:?}");
    }
}

/// All intervals share one model. The default is the interval study's K.
#[test]
fn all_intervals_share_one_model() {
    let select = |spec: &str| registry().select(spec).expect("a scheme");
    let plain = select("interval");
    let id = plain.model().expect("a model").to_owned();
    assert!(id.starts_with("interval-v1@"), "{id}");
    assert_eq!(plain.canonical(), select("interval:rtt=jk:n=2").canonical());
    for rtt in ["jk", "jk-printed", "ewma", "min-filtered", "latest"] {
        let one = select(&format!("interval:rtt={rtt}:n=0.75"));
        assert_eq!(one.model(), Some(id.as_str()));
        let _ = one.build(&setup());
    }
    for (spec, hint) in [
        ("interval:rtt=mean", "must be one of jk, ewma"),
        ("interval:n=0", "a number from 0.1 to 10"),
        ("interval:n=jk", "a number from 0.1 to 10"),
        ("interval-learned:n=1", "has no parameter 'n'"),
    ] {
        let error = registry().select(spec).expect_err(spec).to_string();
        assert!(error.contains(hint) && !error.contains('\n'), "{error}");
    }
}

/// Decisions come at the requested interval, in any world: 100 ms, which is twice the estimate of
/// samples of 50 ms.
#[test]
fn decisions_come_at_the_requested_interval() {
    for (spec, ms) in [
        ("interval:rtt=latest:n=2", 100.0),
        ("interval:rtt=ewma:n=0.5", 25.0),
        ("interval:rtt=min-filtered:n=3", 150.0),
        ("interval:rtt=jk:n=1", 150.0),           // 50 + 4 x 25
        ("interval:rtt=jk-printed:n=0.5", 100.0), // (50 + 4 x 3/4 x 50) / 2
    ] {
        let served = PolicySpec::read(spec).expect("a scheme");
        let Ok(FlowPolicy::Net(mut decider)) = served.carried(&setup(), None) else {
            panic!("a network decides")
        };
        decider.on_record(&Record {
            now_ns: 1_000_000_000,
            rtt_us: 50_000,
            acks: 1,
            ..Record::default()
        });
        assert_eq!(
            decider.due().as_nanos(),
            1_000_000_000 + (ms * 1e6) as u64,
            "{spec}"
        );
    }
}

/// Learning in use takes the weights of Eq. 7 of the model's training by default.
#[test]
fn owls_online_utility_matches_its_training() {
    for name in ["owl", "owl-loss"] {
        let one = shipped()
            .iter()
            .find(|one| one.title == format!("{name}-v1"));
        let model = one.expect("shipped").model().expect("a model");
        let config: toml::Table = (model.card().training.more["config"].as_str())
            .and_then(|text| text.parse().ok())
            .expect("what it was trained by");
        let registry = registry();
        let scheme = registry.iter().find(|s| s.name == name).expect("a scheme");
        for key in ["delta", "beta"] {
            let param = scheme.params.iter().find(|p| p.name == key);
            let Kind::Number { default, .. } = param.expect(key).kind else {
                panic!("{key} is a number");
            };
            assert_eq!(
                config["reward"][key].as_float(),
                Some(default),
                "{name}: {key}"
            );
        }
    }
}

#[test]
fn every_shipped_model_loads_and_the_newest_of_a_name_is_first() {
    let mut last = None;
    for one in shipped() {
        let model = one.model().unwrap_or_else(|e| panic!("{e}"));
        let card = model.card().clone();
        assert_eq!(card.title(), one.title);
        if let Some((name, version)) = last.replace((card.name.clone(), card.version)) {
            assert!(name != card.name || version > card.version, "{}", one.title);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_learned_scheme_keeps_its_invariants(script in prop::collection::vec(any::<u8>(), 0..1200)) {
        let mut selections = vec![learned(""), learned(":latency=30ms")];
        for more in ["owl:online=true:epsilon=0.5", "aurora:model=int8-v1", "aurora:model=int8-v1:latency=30ms"] {
            selections.push(registry().select(more).expect("a scheme"));
        }
        let named = registry();
        let named = named.iter().filter(|s| !s.params.iter().any(headway_cc::Param::is_required));
        selections.extend(named.map(|s| registry().select(s.name).expect("defaults")));
        for selection in selections {
            drive(selection.build(&setup()), None, &script);
        }
    }
}
