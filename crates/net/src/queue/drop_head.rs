//! A FIFO queue that drops the oldest packets to make room for the newest.

use headway_cc::Time;

use super::backlog::{Backlog, Waiting};
use super::{Limits, Queue};
use crate::Packet;

/// Takes every arrival, and then drops from the head until the limits hold (mahimahi's `drophead`).
/// A packet that exceeds the byte limit by itself is dropped as well.
#[derive(Debug)]
pub(super) struct DropHead {
    backlog: Backlog,
    limits: Limits,
}

impl DropHead {
    pub(super) fn new(limits: Limits, overhead: u32) -> DropHead {
        DropHead {
            backlog: Backlog::new(overhead),
            limits,
        }
    }
}

impl Queue for DropHead {
    fn enqueue(&mut self, _: Time, packet: Packet, dropped: &mut Vec<Packet>) {
        self.backlog.push(packet);
        loop {
            let Waiting { packets, bytes } = self.backlog.waiting();
            if self.limits.allow(packets, bytes) {
                return;
            }
            dropped.extend(self.backlog.pop());
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        self.backlog.pop()
    }

    fn waiting(&self) -> Waiting {
        self.backlog.waiting()
    }
}
