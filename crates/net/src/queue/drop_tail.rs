//! A FIFO queue, with or without limits.

use headway_cc::Time;

use super::backlog::{Backlog, Waiting};
use super::{Limits, Queue};
use crate::Packet;

/// Drops an arrival that would exceed either limit (mahimahi's `droptail`, or `infinite`).
#[derive(Debug)]
pub struct DropTail {
    backlog: Backlog,
    limits: Limits,
}

impl DropTail {
    /// An empty queue.
    pub fn new(limits: Limits) -> DropTail {
        DropTail {
            backlog: Backlog::new(0),
            limits,
        }
    }

    /// Adds these bytes to each packet's size: mahimahi's queues count the header of its tunnel.
    pub fn with_overhead(self, overhead: u32) -> DropTail {
        DropTail {
            backlog: Backlog::new(overhead),
            ..self
        }
    }
}

impl Queue for DropTail {
    fn enqueue(&mut self, _: Time, packet: Packet, dropped: &mut Vec<Packet>) {
        if self.backlog.has_room(&packet, &self.limits) {
            self.backlog.push(packet);
        } else {
            dropped.push(packet);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        self.backlog.pop()
    }

    fn waiting(&self) -> Waiting {
        self.backlog.waiting()
    }
}
