//! Why a run cannot start, or cannot go on.

use headway_cc::{SchemeError, Time};
use headway_world::{RunError, SetupError};

/// A run that cannot be set up, or cannot go on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SimulationError {
    /// The run cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Nothing limits a flow, which would fill the memory.
    #[error(
        "flow {flow}, scheme '{scheme}': {packets} packets in flight at {at:?}, so nothing limits it; give a link on its way a rate or a shorter queue, or the scheme a window"
    )]
    Unlimited {
        /// The flow's index.
        flow: usize,
        /// The flow's scheme.
        scheme: String,
        /// The most packets in flight that are allowed.
        packets: u64,
        /// The time at which it happened.
        at: Time,
    },
    /// A scheme's timer is due again and again, so the time does not advance.
    #[error(
        "flow {flow}, scheme '{scheme}': {part} timer is still due after {times} calls of on_timer at {at:?}; on_timer has to move next_timer later"
    )]
    Stuck {
        /// The flow's index.
        flow: usize,
        /// The flow's scheme.
        scheme: String,
        /// The part whose timer it is: the controller or the receiver.
        part: &'static str,
        /// How often the timer was called.
        times: u32,
        /// The time at which it happened.
        at: Time,
    },
}

impl From<SchemeError> for SimulationError {
    fn from(error: SchemeError) -> SimulationError {
        SetupError::from(error).into()
    }
}

impl From<SimulationError> for RunError {
    fn from(error: SimulationError) -> RunError {
        match error {
            SimulationError::Setup(error) => error.into(),
            other => RunError::Failed(other.to_string()),
        }
    }
}
