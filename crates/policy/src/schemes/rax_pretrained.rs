//! Rax from a learner's weights, instead of random ones (§4.3).

use std::path::Path;
use std::sync::Arc;

use headway_cc::{Kind, Loaded, Param, Scheme, Values, suggest};

use super::rax::{self, RaxSpec};
use crate::model::{Learner, shipped_learners};

const MODEL: Param = Param {
    name: "model",
    help: "the learner with which it begins: one that comes with Headway, or a folder",
    kind: Kind::Loaded {
        what: "v3, or the path of a learner's folder",
        default: Some("v3"),
        load,
    },
};

/// Rax from a learner's folder.
pub const SCHEME: Scheme = Scheme {
    name: "rax-pretrained",
    summary: "Rax that begins with what another flow has learned, and continues to learn",
    source: "Bachl, Zseby and Fabini, Rax (§4.3); models/rax-v3 learned it here (docs/models.md)",
    deviations: &["all of `rax`'s, except that a flow that diverged begins with the model again"],
    params: &[MODEL, rax::ALPHA],
    build: |setup, values| {
        let learner = values.loaded::<Learner>(&MODEL);
        Box::new(learner.flow(setup, values.number(&rax::ALPHA) as f32))
    },
    ..rax::SCHEME
};

/// The learner and the settings of a scheme of Rax; `None` for another scheme.
pub(super) fn read(scheme: &Scheme, values: &Values) -> Option<(Option<Arc<Learner>>, RaxSpec)> {
    let learner = match scheme.name {
        name if name == rax::SCHEME.name => None,
        name if name == SCHEME.name => Some(values.loaded::<Learner>(&MODEL)),
        _ => return None,
    };
    let alpha = values.number(&rax::ALPHA) as f32;
    Some((
        learner,
        RaxSpec {
            alpha,
            ..RaxSpec::default()
        },
    ))
}

fn load(text: &str) -> Result<Loaded, String> {
    let version = |title: &'static str| title.strip_prefix("rax-");
    let shipped = shipped_learners();
    let learner = match shipped.iter().find(|one| version(one.title) == Some(text)) {
        Some(one) => one.learner(),
        None if text.contains(['/', '.']) || Path::new(text).is_dir() => {
            Learner::load(Path::new(text))
        }
        None => {
            let known = shipped.iter().filter_map(|one| version(one.title));
            return Err(suggest(text, known));
        }
    };
    let learner = learner.map_err(|e| e.to_string())?;
    Ok(Loaded {
        id: learner.id(),
        content: Arc::new(learner),
    })
}
