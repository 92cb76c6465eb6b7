//! A learned controller that is answered from outside, as a scheme that a simulation can run.

use std::sync::Arc;

use headway_cc::{
    CongestionControl, Duration, Family, Kind, Loaded, Need, Param, Scheme, Selection, Setup,
    Values,
};
use headway_policy::{AgentSpec, External, Learned};

const AGENT: Param = Param {
    name: "agent",
    help: "what it sees and does",
    kind: Kind::Loaded {
        what: "an agent's spec",
        default: None,
        load: |_| Err("it is given by the environment".to_owned()),
    },
};

/// Not in any registry: only an environment can answer it.
static SCHEME: Scheme = Scheme {
    name: "external",
    family: Family::Learned,
    summary: "answered from outside, as in training",
    source: "crates/policy",
    deviations: &[],
    needs: &[Need::RateSample, Need::Pacing],
    params: &[AGENT],
    build,
    receiver: None,
    router: None,
};

/// A spec that was checked, and how long an answer takes to take effect.
struct Agent {
    spec: Arc<AgentSpec>,
    latency: Duration,
}

fn build(setup: &Setup, values: &Values) -> Box<dyn CongestionControl> {
    let agent: Arc<Agent> = values.loaded(&AGENT);
    let learned = Learned::new(Arc::clone(&agent.spec), setup, External, agent.latency);
    Box::new(learned.expect("the environment has checked the spec"))
}

/// The scheme with this agent, whose spec has been checked.
pub(crate) fn selection(spec: Arc<AgentSpec>, latency: Duration) -> Selection {
    let agent = Loaded {
        id: "external".to_owned(),
        content: Arc::new(Agent { spec, latency }),
    };
    Selection {
        spec: SCHEME.name.to_owned(),
        scheme: &SCHEME,
        values: Values::defaults(SCHEME.params).with_loaded(&AGENT, agent),
    }
}
