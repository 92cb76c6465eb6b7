//! A scheme for any model folder.

use std::path::Path;

use headway_cc::{Family, Kind, Need, Param, Scheme};

use super::{GUARD, LATENCY, build, loaded};
use crate::model::Model;

const MODEL: Param = Param {
    name: "model",
    help: "the folder of the model that decides",
    kind: Kind::Loaded {
        what: "the path of a model's folder",
        default: None,
        load: |text| {
            let model = Model::load(Path::new(text)).map_err(|e| e.to_string())?;
            Ok(loaded(model))
        },
    },
};

/// The scheme `learned:model=DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "learned",
    family: Family::Learned,
    summary: "runs any trained model; the model's card says what it observes and does",
    source: "a model's folder (docs/models.md)",
    deviations: &[],
    needs: &[Need::RateSample, Need::Pacing],
    params: &[MODEL, LATENCY, GUARD],
    build: |setup, values| build(setup, values, &MODEL),
    receiver: None,
    router: None,
};
