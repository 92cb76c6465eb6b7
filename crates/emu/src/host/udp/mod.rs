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

/// The number of datagrams that an end reads, or sends, before it looks for other work.
const BATCH: usize = 64;

/// Waits for a flow's datagrams or a time.
#[derive(Debug)]
struct Bell {
    flow: u32,
    waiter: Waiter,
    /// When it rings.
    alarm: Time,
}

impl Bell {
    fn new(flow: u32, socket: &FlowSocket, clock: Clock) -> Result<Bell, HostError> {
        let waiter = Waiter::new(clock).map_err(HostError::system(flow, "make a timer"))?;
        waiter
            .add(socket, 0)
            .map_err(HostError::system(flow, "wait for a UDP socket"))?;
        Ok(Bell {
            flow,
            waiter,
            alarm: Time::ZERO,
        })
    }

    /// Waits until something has come, or until `until` at the latest. Returns whether something
    /// has come.
    fn wait(&mut self, now: Time, until: Time) -> Result<bool, HostError> {
        // A timeout moves with every acknowledgement: one that rings too early now and then costs
        // less than to set it again each time.
        if !(now..=until).contains(&self.alarm) {
            self.alarm = until;
        }
        let ready = self.waiter.wait(self.alarm);
        let ready = ready.map_err(HostError::system(self.flow, "wait for a UDP socket"))?;
        Ok(!ready.is_empty())
    }
}
