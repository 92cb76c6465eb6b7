//! FQ-CoDel (RFC 8290): a queue for each flow, served by deficit round robin, each under CoDel.

use std::collections::VecDeque;

use headway_cc::{Bytes, Stream, Time};

use super::backlog::{Backlog, Waiting};
use super::codel::{CoDelParams, Control};
use super::{Limits, Queue};
use crate::{Body, Packet};

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodelParams {
    /// How many queues flows are hashed to; 0 counts as 1.
    pub flows: u16,
    /// Bytes a queue may send in its turn; 0 counts as 1.
    pub quantum: Bytes,
    /// Packets that are dropped at most when the limits are exceeded.
    pub drop_batch: usize,
    /// CoDel's parameters for every queue.
    pub codel: CoDelParams,
}

impl Default for FqCodelParams {
    /// RFC 8290 §5.2 and §4.1.3: 1024 queues, 1514 bytes, 64 packets, CoDel's own with marking. Its
    /// limit of 10240 packets is for [`Limits`] to give.
    fn default() -> FqCodelParams {
        FqCodelParams {
            flows: 1024,
            quantum: Bytes::new(1514),
            drop_batch: 64,
            codel: CoDelParams {
                ecn: true,
                ..CoDelParams::default()
            },
        }
    }
}

/// One of the queues.
#[derive(Debug, Default)]
struct Flow {
    backlog: Backlog,
    control: Control,
    /// Bytes that it may still send in its turn (its byte credits).
    deficit: i64,
    /// Is it on a list?
    active: bool,
}

#[derive(Debug)]
pub(super) struct FqCodel {
    params: FqCodelParams,
    limits: Limits,
    flows: Vec<Flow>,
    /// Flows that have just begun to send, and those that went on after their first quantum.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    /// Of all queues.
    waiting: Waiting,
    /// Makes each run's collisions its own (RFC 8290 §4.1.1).
    salt: u64,
}

impl FqCodel {
    pub(super) fn new(
        params: FqCodelParams,
        limits: Limits,
        overhead: u32,
        mut stream: Stream,
    ) -> FqCodel {
        let flow = || Flow {
            backlog: Backlog::new(overhead),
            ..Flow::default()
        };
        FqCodel {
            params,
            limits,
            flows: (0..params.flows.max(1)).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: Waiting::default(),
            salt: stream.bits(),
        }
    }

    /// Which queue the packet belongs to. The two directions of a flow are two.
    fn classify(&self, packet: &Packet) -> u16 {
        let kind = match packet.body {
            Body::Data(_) => 0,
            Body::Ack(_) => 1,
            Body::Cross => 2,
        };
        // The finaliser of MurmurHash3: every bit of the key moves every bit of the hash.
        let mut hash = (u64::from(packet.flow) << 2 | kind) ^ self.salt;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^= hash >> 33;
        (hash % self.flows.len() as u64) as u16
    }

    fn quantum(&self) -> i64 {
        self.params.quantum.get().max(1) as i64
    }

    /// Drops from the head of the queue with the most bytes, until half of them or a whole batch
    /// are gone (RFC 8290 §4.1.3).
    fn drop_from_the_fattest(&mut self, dropped: &mut Vec<Packet>) {
        // The first among equals: `max_by_key` gives the last.
        let fattest = self
            .flows
            .iter_mut()
            .rev()
            .max_by_key(|flow| flow.backlog.waiting().bytes);
        let Some(flow) = fattest else { return };
        let before = flow.backlog.waiting();
        let enough = before.bytes / 2;
        for _ in 0..self.params.drop_batch.max(1) {
            dropped.extend(flow.backlog.pop());
            if flow.backlog.waiting().bytes <= enough {
                break;
            }
        }
        let after = flow.backlog.waiting();
        self.waiting.packets -= before.packets - after.packets;
        self.waiting.bytes -= before.bytes - after.bytes;
    }
}

impl Queue for FqCodel {
    fn enqueue(&mut self, _: Time, packet: Packet, dropped: &mut Vec<Packet>) {
        let index = self.classify(&packet);
        let quantum = self.quantum();
        let flow = &mut self.flows[usize::from(index)];
        self.waiting.packets += 1;
        self.waiting.bytes += flow.backlog.cost(&packet);
        flow.backlog.push(packet);
        if !flow.active {
            flow.active = true;
            flow.deficit = quantum;
            self.new.push_back(index);
        }
        while !self.limits.allow(self.waiting.packets, self.waiting.bytes) {
            self.drop_from_the_fattest(dropped);
        }
    }

    /// RFC 8290 §4.2.
    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let quantum = self.quantum();
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[usize::from(index)];
            if flow.deficit <= 0 {
                flow.deficit += quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = flow.backlog.waiting();
            let packet = flow
                .control
                .dequeue(&self.params.codel, now, &mut flow.backlog, dropped);
            let after = flow.backlog.waiting();
            self.waiting.packets -= before.packets - after.packets;
            self.waiting.bytes -= before.bytes - after.bytes;
            if let Some(packet) = packet {
                flow.deficit -= i64::from(packet.size);
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                // Once round the old ones, lest a flow stay new by sending a packet at a time.
                self.old.push_back(index);
            } else {
                flow.active = false;
            }
        }
    }

    fn waiting(&self) -> Waiting {
        self.waiting
    }
}
