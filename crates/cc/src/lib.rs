//! Congestion controllers, each written once and hosted in every world.
//!
//! A controller implements [`CongestionControl`]. Its host reports what was sent, acknowledged and
//! lost, and the controller answers with a [`Control`] (window, pacing rate). It gets the time from
//! its host, draws random numbers only from a [`Stream`], and knows nothing of its host.
//!
//! One algorithm is one module, listed once in [`schemes`]; see `docs/add-a-controller.md`.

mod base_delay;
mod batched;
mod congestion_control;
mod ecn;
mod events;
mod max_filter;
mod min_rtt;
mod random;
mod registry;
mod round;
pub mod schemes;
mod suggest;
#[doc(hidden)]
pub mod testing;
mod units;

pub use batched::{Batched, DigestInterval};
pub use congestion_control::{
    Base, CongestionControl, Control, PathModel, Phase, Probe, Receiver, Tunable,
};
pub use ecn::{ECN, EcnUse};
pub use events::{
    Acked, Arrival, Congestion, Counters, Ecn, Feedback, Header, Lost, NetworkView, RateSample,
    Recovery, Rto, RttStats, Sent, Stamp, Tag,
};
pub use max_filter::MaxFilter;
pub use min_rtt::MinRtt;
pub use random::Stream;
pub use registry::{
    BuildReceiver, Family, Kind, Loaded, Need, Param, Registry, Router, Scheme, SchemeError,
    Selection, Setup, Values, World, members,
};
pub use round::RoundCounter;
pub use suggest::suggest;
pub use units::{Bytes, Duration, Rate, Time};
