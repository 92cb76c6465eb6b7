//! The two ends of a flow over real sockets, in real time.
//!
//! A [`Driver`] says what carries the flow: the kernel's TCP, or `headway-net`'s transport over
//! UDP. Each end is made in the network namespace of its host ([`sender`], [`receiver`]). It then
//! runs on a thread of its own, by the clock that all ends and the emulator of a run share. Ends
//! report nothing while they run: they hand back their counters at the end.

mod driver;
mod estimates;
pub mod kernel;
mod report;
pub mod rtt;
pub mod tcp;
pub mod udp;
pub mod wire;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use headway_cc::SchemeError;
use headway_world::FlowPlan;

pub use driver::{AgentDriver, Driver};
pub use report::{Completion, Failures, ReceiverReport, SenderReport};

use crate::sys::Clock;

/// An end that cannot be made or cannot go on. The text is one line for the user.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A system call failed.
    #[error("flow {flow}: cannot {what}: {source}")]
    System {
        /// The flow's number.
        flow: u32,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The controller is not available.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// More is in flight than memory may hold.
    #[error("flow {flow}: more than {packets} packets in flight; the scheme sets no limit")]
    Unlimited {
        /// The flow's number.
        flow: u32,
        /// How many are allowed.
        packets: u64,
    },
}

impl HostError {
    /// For `map_err`: makes the error that `what` failed.
    fn system<E: Into<std::io::Error>>(flow: u32, what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| HostError::System {
            flow,
            what,
            source: source.into(),
        }
    }
}

/// The end of a flow that sends data.
#[derive(Debug)]
pub enum SenderEnd {
    /// Over the kernel's TCP.
    Tcp(Box<tcp::Sender>),
    /// Over our own transport.
    Udp(Box<udp::Sender>),
}

/// The end of a flow that data comes to.
#[derive(Debug)]
pub enum ReceiverEnd {
    /// Over the kernel's TCP.
    Tcp(Box<tcp::Receiver>),
    /// Over our own transport.
    Udp(Box<udp::Receiver>),
}

/// Makes the sending end, with a socket of the calling thread's namespace at `local`, for a
/// receiver at `remote`.
///
/// # Errors
/// If the socket cannot be made, or the kernel does not have the controller.
pub fn sender(
    plan: &FlowPlan,
    driver: &Driver,
    local: SocketAddr,
    remote: SocketAddr,
) -> Result<SenderEnd, HostError> {
    let controller = match driver {
        Driver::Udp(scheme) => {
            let end = udp::Sender::new(plan, scheme, local, remote)?;
            return Ok(SenderEnd::Udp(Box::new(end)));
        }
        Driver::Kernel(name) => name,
        Driver::Agent(agent) => &agent.controller,
    };
    let end = tcp::Sender::new(plan, controller, driver.daemon(), local, remote)?;
    Ok(SenderEnd::Tcp(Box::new(end)))
}

/// Makes the receiving end, with a socket of the calling thread's namespace at `local`, for a
/// sender at `remote`. Make it before the sender runs.
///
/// # Errors
/// If the socket cannot be made.
pub fn receiver(
    plan: &FlowPlan,
    driver: &Driver,
    local: SocketAddr,
    remote: SocketAddr,
) -> Result<ReceiverEnd, HostError> {
    Ok(match driver {
        Driver::Kernel(_) | Driver::Agent(_) => {
            ReceiverEnd::Tcp(Box::new(tcp::Receiver::new(plan, local)?))
        }
        Driver::Udp(scheme) => {
            ReceiverEnd::Udp(Box::new(udp::Receiver::new(plan, scheme, local, remote)?))
        }
    })
}

impl SenderEnd {
    /// Sends from the flow's start until its stop, until all its data has been acknowledged, or
    /// until `over` is set, whichever comes first: 100 ms later at most.
    ///
    /// # Errors
    /// [`HostError`], if it cannot go on.
    pub fn run(self, clock: Clock, over: &AtomicBool) -> Result<SenderReport, HostError> {
        match self {
            SenderEnd::Tcp(end) => end.run(clock, over),
            SenderEnd::Udp(end) => end.run(clock, over),
        }
    }
}

impl ReceiverEnd {
    /// Says while the end runs whether all the flow's data has arrived; `None` if the flow has no
    /// end.
    pub fn completion(&self) -> Option<Completion> {
        let (plan, completion) = match self {
            ReceiverEnd::Tcp(end) => end.completion(),
            ReceiverEnd::Udp(end) => end.completion(),
        };
        plan.is_finite().then(|| completion.clone())
    }

    /// Receives until `over` is set: 100 ms longer at most.
    ///
    /// # Errors
    /// [`HostError`], if it cannot go on.
    pub fn run(self, clock: Clock, over: &AtomicBool) -> Result<ReceiverReport, HostError> {
        match self {
            ReceiverEnd::Tcp(end) => end.run(clock, over),
            ReceiverEnd::Udp(end) => end.run(clock, over),
        }
    }
}
