//! Learned controllers: what they observe, when they decide, what their actions do, and the networks that decide.
//!
//! A [`Learned`] controller is a `CongestionControl` like any other. It turns what its host tells it into
//! [`Record`]s, the very records that the kernel gives; its [`Monitor`] folds them into an [`Interval`], from
//! which the [`Feature`]s of its [`AgentSpec`] are computed; its [`Clock`] says when a [`Policy`] decides; and
//! the action steers what is [beneath](Beneath): a sending rate, or another controller. The same code runs in
//! training ([`External`]), in the simulator, over real packets and in the kernel's agent.

mod action;
mod beneath;
mod clock;
mod feature;
mod interval;
mod learned;
mod monitor;
pub mod nn;
mod observation;
mod record;
mod spec;

pub use action::{Action, ActionSpec, Effect};
pub use beneath::{Beneath, BeneathSpec, RateControl};
pub use clock::{Clock, ClockSpec, RttEstimator};
pub use feature::{FEATURES, Feature};
pub use interval::{Interval, RttSummary};
pub use learned::{External, Learned, Policy};
pub use monitor::Monitor;
pub use observation::{FeatureUse, Observation, ObservationSpec};
pub use record::Record;
pub use spec::{AgentSpec, SpecError};
