//! A learned controller with answers from outside, as a scheme that a simulation can run.

use std::sync::Arc;

use headway_cc::{Duration, Need, Scheme, Selection};
use headway_policy::{AgentSpec, External, Learned};

/// Only an environment can answer it.
static SCHEME: Scheme = Scheme::unlisted("external", &[Need::RateSample, Need::Pacing]);

/// The scheme with this agent, whose spec has been checked. An answer takes effect after `latency`.
pub(crate) fn selection(spec: Arc<AgentSpec>, latency: Duration) -> Selection {
    SCHEME.built_by(move |setup| {
        let learned = Learned::new(Arc::clone(&spec), setup, External, latency);
        Box::new(learned.expect("the environment has checked the spec"))
    })
}
