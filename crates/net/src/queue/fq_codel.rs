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
    /// The number of queues to which flows are hashed; 0 counts as 1.
    pub flows: u16,
    /// Bytes that a queue may send in its turn; 0 counts as 1.
    pub quantum: Bytes,
    /// The most packets dropped at once when the limits are exceeded.
    pub drop_batch: usize,
    /// CoDel's parameters for every queue.
    pub codel: CoDelParams,
}

impl Default for FqCodelParams {
    /// RFC 8290 §5.2 and §4.1.3: 1024 queues, 1514 bytes, 64 packets, CoDel's own parameters with
    /// marking. Its limit of 10240 packets belongs to [`Limits`].
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
    /// Whether it is on a list.
    active: bool,
}

#[derive(Debug)]
pub(super) struct FqCodel {
    params: FqCodelParams,
    limits: Limits,
    flows: Vec<Flow>,
    /// Flows that have just begun to send; after their first quantum they move to `old`.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    /// The total of all queues.
    waiting: Waiting,
    /// Gives each run its own collisions (RFC 8290 §4.1.1).
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

    /// The queue of the packet. The two directions of a flow have different ones.
    fn classify(&self, packet: &Packet) -> u16 {
        let kind = match packet.body {
            Body::Data(_) => 0,
            Body::Ack(_) => 1,
            Body::Cross => 2,
        };
        // The finaliser of MurmurHash3: every bit of the key affects every bit of the hash.
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
    /// are dropped (RFC 8290 §4.1.3).
    fn drop_from_the_fattest(&mut self, dropped: &mut Vec<Packet>) {
        // It takes the first among equals; `max_by_key` would give the last.
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

    /// Takes the next packet, as RFC 8290 §4.2 says.
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
                // It moves to the old flows; otherwise a flow could stay new by sending one packet
                // at a time.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    fn fq_codel(limits: Limits) -> FqCodel {
        FqCodel::new(
            FqCodelParams::default(),
            limits,
            0,
            Stream::new(1, "fq-codel"),
        )
    }

    /// A packet leaves every ms. Flow 0 sends two in that time, flow 1 one every 20 ms. Returns
    /// how long those of flow 1 waited, in ms, and how many of each flow were dropped.
    #[test]
    fn a_sparse_flow_does_not_feel_a_flood() {
        let mut queue = fq_codel(Limits::new(Some(200), None));
        let (mut dropped, mut waits) = (Vec::new(), Vec::new());
        for ms in 0..10_000 {
            let now = Time::from_millis(ms);
            let arrive = |flow, number, size| Packet {
                arrived: now,
                ..packet(flow, number, size)
            };
            for copy in 0..2 {
                queue.enqueue(now, arrive(0, 2 * ms + copy, 1500), &mut dropped);
            }
            if ms % 20 == 7 {
                queue.enqueue(now, arrive(1, ms, 200), &mut dropped);
            }
            let sent = queue.dequeue(now, &mut dropped);
            waits.extend(sent.filter(|p| p.flow == 1).map(|p| now.since(p.arrived)));
        }
        assert!(waits.len() >= 499, "{}", waits.len());
        let longest = waits.into_iter().max();
        assert!(
            longest <= Some(headway_cc::Duration::from_millis(1)),
            "{longest:?}"
        );
        assert!(dropped.iter().all(|p| p.flow == 0) && dropped.len() > 4_000);
    }

    #[test]
    fn flows_share_bytes_rather_than_packets() {
        let mut queue = fq_codel(Limits::NONE);
        let mut dropped = Vec::new();
        for number in 0..6_000 {
            queue.enqueue(Time::ZERO, packet(0, number, 1500), &mut dropped);
            queue.enqueue(Time::ZERO, packet(1, number, 300), &mut dropped);
        }
        let mut bytes = [0u64; 2];
        for _ in 0..6_000 {
            let packet = queue.dequeue(Time::ZERO, &mut dropped).expect("a packet");
            bytes[packet.flow as usize] += u64::from(packet.size);
        }
        // The difference is at most a quantum and a packet.
        assert!(bytes[0].abs_diff(bytes[1]) <= 1514 + 1500, "{bytes:?}");
    }

    /// RFC 8290 §4.1.3: drops come from the head of the longest queue, half of it or 64 packets.
    #[test]
    fn a_full_queue_drops_in_bulk_from_the_longest_queue() {
        for (limit, batch) in [(100, 46), (1_000, 64)] {
            let mut queue = fq_codel(Limits::new(Some(limit), None));
            let mut dropped = Vec::new();
            for number in 0..10 {
                queue.enqueue(Time::ZERO, packet(1, number, 1500), &mut dropped);
            }
            for number in 0..=limit - 10 {
                queue.enqueue(Time::ZERO, packet(0, number, 1500), &mut dropped);
            }
            let numbers: Vec<u64> = dropped
                .iter()
                .filter_map(|p| match p.body {
                    Body::Data(segment) => (p.flow == 0).then_some(segment.number),
                    _ => None,
                })
                .collect();
            assert!(numbers.into_iter().eq(0..batch), "{limit}");
            assert_eq!(dropped.len() as u64, batch);
        }
    }

    #[test]
    fn the_salt_makes_collisions_depend_on_the_seed() {
        let collide = |seed| {
            let stream = Stream::new(seed, "fq-codel");
            let params = FqCodelParams {
                flows: 16,
                ..FqCodelParams::default()
            };
            let queue = FqCodel::new(params, Limits::NONE, 0, stream);
            queue.classify(&packet(0, 0, 1500)) == queue.classify(&packet(1, 0, 1500))
        };
        let share = (0..4_000).filter(|&seed| collide(seed)).count() as f64 / 4_000.0;
        assert!((share - 1.0 / 16.0).abs() < 0.015, "{share}");
    }
}
