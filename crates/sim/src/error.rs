//! Why a run cannot be had, or cannot go on.

use headway_cc::{SchemeError, Time};
use headway_world::{RunError, SetupError};

/// A run that cannot be set up, or that cannot go on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SimulationError {
    /// It cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Nothing holds a flow back: it would fill the memory.
    #[error(
        "flow {flow}, scheme '{scheme}': {packets} packets in flight at {at:?}, so nothing limits it; give a link on its way a rate or a shorter queue, or the scheme a window"
    )]
    Unlimited {
        /// The flow's index.
        flow: usize,
        /// What it ran.
        scheme: String,
        /// So many were allowed.
        packets: u64,
        /// When.
        at: Time,
    },
    /// A scheme's timer is due again and again, so that time stands still.
    #[error(
        "flow {flow}, scheme '{scheme}': {part} timer is still due after {times} calls of on_timer at {at:?}; on_timer has to move next_timer later"
    )]
    Stuck {
        /// The flow's index.
        flow: usize,
        /// What it ran.
        scheme: String,
        /// Whose timer: the controller's or the receiver's.
        part: &'static str,
        /// How often it was called.
        times: u32,
        /// When.
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
