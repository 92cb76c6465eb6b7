//! Learned controllers as schemes, for every host to register.

mod learned;

use std::sync::Arc;

use headway_cc::{CongestionControl, Duration, Kind, Loaded, Param, Scheme, Setup, Values};

use crate::model::Model;

/// Every scheme of this crate.
pub static SCHEMES: &[Scheme] = &[learned::SCHEME];

/// How long an answer takes.
const LATENCY: Param = Param {
    name: "latency",
    help: "how long an answer takes to take effect, as inference does",
    kind: Kind::Time {
        default: Duration::ZERO,
        min: Duration::ZERO,
        max: Duration::from_secs(10),
    },
};

/// A model as a parameter's value.
fn loaded(model: Model) -> Loaded {
    Loaded {
        id: model.id(),
        content: Arc::new(model),
    }
}

/// Builds the sender's half: the model of parameter `model`, answering after [`LATENCY`].
fn build(setup: &Setup, values: &Values, model: &Param) -> Box<dyn CongestionControl> {
    let model = values.loaded::<Model>(model);
    let controller = model.controller(setup, values.time(&LATENCY));
    Box::new(controller.expect("the agent of a loaded model is checked"))
}
