//! Learned controllers as schemes, which every host can register.

mod aurora;
mod bbr_tuner;
mod interval;
mod learned;
mod owl;
mod owl_rule;
mod policy_spec;
pub(crate) mod rax;
mod rax_pretrained;
mod rax_records;

pub use policy_spec::{Experience, FlowPolicy, PolicySpec};
pub(crate) use rax::RaxCheckpoint;
pub use rax::{Rax, RaxSpec};
pub use rax_records::RaxOverRecords;

use std::path::Path;
use std::sync::Arc;

use headway_cc::{
    CongestionControl, Duration, Kind, Loaded, Param, Scheme, Setup, Values, suggest,
};

use crate::Limits;
use crate::model::{Model, ModelError, shipped};

/// All schemes of this crate.
pub static SCHEMES: &[Scheme] = &[
    learned::SCHEME,
    aurora::SCHEME,
    interval::INTERVAL,
    interval::INTERVAL_LEARNED,
    bbr_tuner::PPO,
    bbr_tuner::DQN,
    bbr_tuner::A2C,
    owl::OWL,
    owl::OWL_LOSS,
    owl_rule::SCHEME,
    rax::SCHEME,
    rax_pretrained::SCHEME,
];

/// The latency of an answer.
const LATENCY: Param = Param {
    name: "latency",
    help: "delay from an observation to the effect of its action, as inference causes it",
    kind: Kind::Time {
        default: Duration::ZERO,
        min: Duration::ZERO,
        max: Duration::from_secs(10),
    },
};

/// Whether a guard watches the flow.
const GUARD: Param = Param {
    name: "guard",
    help: "whether the guard watches the flow and falls back to Cubic where the policy does badly (docs/guard.md)",
    kind: Kind::Switch,
};

/// The parameter that says which of a scheme's trained models decides. `what` lists the models.
const fn trained(
    what: &'static str,
    default: &'static str,
    load: fn(&str) -> Result<Loaded, String>,
) -> Param {
    Param {
        name: "model",
        help: "the trained model (see `headway models`), or the folder of another training",
        kind: Kind::Loaded {
            what,
            default: Some(default),
            load,
        },
    }
}

/// A model as a parameter's value.
fn loaded(model: Model) -> Loaded {
    Loaded {
        id: model.id(),
        content: Arc::new(model),
    }
}

/// The kinds of models that may precede a version: whole numbers, or other training links. Any
/// other prefix is another scheme's name.
const KINDS: [&str; 2] = ["int8-", "cellular-"];

/// The shipped model `NAME-VERSION`, or the model of a folder, such as one that was trained with
/// another seed.
fn model_of(name: &str, text: &str) -> Result<Loaded, String> {
    // For `owl`, owl-v1 is version `v1`; owl-loss-v1 leaves `loss-v1`, which is not a version.
    let version_of = |title: &'static str| {
        let version = title.strip_prefix(name)?.strip_prefix('-')?;
        let of_kind = KINDS.iter().find_map(|kind| version.strip_prefix(kind));
        let number = of_kind.unwrap_or(version);
        number.starts_with('v').then_some(version)
    };
    let of_name = || {
        let all = shipped().iter();
        all.filter_map(|one| Some((one, version_of(one.title)?)))
    };
    let said = |error: ModelError| error.to_string();
    if let Some((one, _)) = of_name().find(|(_, own)| *own == text) {
        return Ok(loaded(one.model().map_err(said)?));
    }
    if !Path::new(text).is_dir() {
        let known = suggest(text, of_name().map(|(_, own)| own));
        return Err(format!(
            "{known}; a folder of another training is right too"
        ));
    }
    let model = Model::load(Path::new(text)).map_err(said)?;
    for (one, _) in of_name() {
        let ours = one.model().map_err(said)?;
        if model.is_like(&ours)
            || name == interval::INTERVAL.name && model.is_like_at_any_clock(&ours)
        {
            return Ok(loaded(model));
        }
    }
    Err(format!(
        "its agent or its network differs from those that {name} has; run it as learned:model={text}"
    ))
}

/// Builds the sender's half with the model of parameter `model`, which answers after [`LATENCY`].
fn build(setup: &Setup, values: &Values, model: &Param) -> Box<dyn CongestionControl> {
    deployed(setup, values, &values.loaded::<Model>(model))
}

/// Builds the sender's half with this model.
fn deployed(setup: &Setup, values: &Values, model: &Model) -> Box<dyn CongestionControl> {
    let limits = values.is_on(&GUARD).then(Limits::default);
    let controller = model.deployed(setup, values.time(&LATENCY), limits);
    controller.expect("the agent of a loaded model is checked")
}
