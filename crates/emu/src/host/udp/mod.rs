//! Our own transport over UDP sockets: any scheme of the registry, in real time.

mod receiver;
mod sender;
mod socket;

use headway_cc::Time;

use super::HostError;
use crate::sys::{Clock, Waiter};
pub use receiver::Receiver;
pub use sender::Sender;
use socket::FlowSocket;

/// How many datagrams an end reads, or sends, before it looks for other work.
const BATCH: usize = 64;

/// Waits for a flow's datagrams, or until a time.
#[derive(Debug)]
struct FlowWaiter {
    flow: u32,
    waiter: Waiter,
    /// When the timer fires.
    alarm: Time,
}

impl FlowWaiter {
    fn new(flow: u32, socket: &FlowSocket, clock: Clock) -> Result<FlowWaiter, HostError> {
        let waiter = Waiter::new(clock).map_err(HostError::system(flow, "make a timer"))?;
        waiter
            .add(socket, 0)
            .map_err(HostError::system(flow, "wait for a UDP socket"))?;
        Ok(FlowWaiter {
            flow,
            waiter,
            alarm: Time::ZERO,
        })
    }

    /// Waits until something has come, or until `until` at the latest. Returns whether something
    /// has come.
    fn wait(&mut self, now: Time, until: Time) -> Result<bool, HostError> {
        // A timeout moves with every acknowledgement: an early wake-up now and then costs less than
        // setting the timer again each time.
        if !(now..=until).contains(&self.alarm) {
            self.alarm = until;
        }
        let ready = self.waiter.wait(self.alarm);
        let ready = ready.map_err(HostError::system(self.flow, "wait for a UDP socket"))?;
        Ok(!ready.is_empty())
    }
}
