//! Learned controllers: what they observe, when they decide, what their actions do, and the
//! networks that decide.
//!
//! A [`Learned`] controller is a `CongestionControl` like any other. It turns feedback into
//! [`Record`]s, which have the kernel's format. Its [`Monitor`] sums them up in an [`Interval`],
//! from which the [`Feature`]s of its [`AgentSpec`] are computed. Its [`Clock`] says when a
//! [`Policy`] decides. The action steers the [base controller](BaseController), which is a sending
//! rate or another controller. The same code runs in training ([`External`]), in the simulator,
//! over real packets and in the kernel's agent.

mod action;
mod answer;
mod averages;
mod base;
mod clock;
mod decider;
pub mod dqn;
mod feature;
mod flow_guard;
mod host;
pub mod int8;
mod interval;
mod learned;
pub mod model;
mod monitor;
pub mod nn;
mod observation;
pub mod pal;
mod recent_rate;
mod record;
mod record_builder;
pub mod schemes;
mod spec;
mod step;
mod utility;

pub use action::{Action, ActionSpec, Effect};
pub use answer::Answer;
pub use averages::{Average, Averages};
pub use base::{BaseController, BaseSpec, RateControl, tunables};
pub use clock::{Clock, ClockSpec, RttEstimator};
pub use decider::Decider;
pub use feature::{FEATURES, Feature, Rounding, Source};
pub use flow_guard::FlowGuard;
pub use headway_fixed::Limits;
pub use interval::{Interval, RttSummary};
pub use learned::{External, Learned, Policy};
pub use monitor::{Monitor, NeededStats, observed};
pub use observation::{FeatureUse, Observation, ObservationSpec};
pub use record::Record;
pub use record_builder::RecordBuilder;
pub use spec::{AgentSpec, SpecError};
pub use step::Step;
pub use utility::{Shaping, Utility};
