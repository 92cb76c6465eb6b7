//! Random Early Detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993), gentle, with ECN (RFC 3168 §7).

use headway_cc::{Duration, Stream, Time};

use super::backlog::{Backlog, Waiting};
use super::{Limits, Queue};
use crate::Packet;

/// Parameters of RED, with the paper's names in brackets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParams {
    /// Below this average nothing is dropped, in packets (min_th).
    pub min_packets: f64,
    /// At this average the probability is `max_probability`, in packets (max_th). It has to be over
    /// `min_packets`.
    pub max_packets: f64,
    /// The weight of a new queue length in the average, 0 to 1 (w_q).
    pub weight: f64,
    /// The probability of a drop at `max_packets`, 0 to 1 (max_p).
    pub max_probability: f64,
    /// Beyond `max_packets` the probability rises to 1 at twice that average, instead of at once.
    pub gentle: bool,
    /// Marks ECN-capable packets instead of dropping them early.
    pub ecn: bool,
    /// How long a packet takes to send (s): the average of an idle queue decays by it. It has to be
    /// over zero.
    pub packet_time: Duration,
}

impl Default for RedParams {
    /// The paper's §4 and §6: 5 and 15 packets, w_q .002, max_p 1/50; a packet takes 1 ms, as 1500
    /// bytes do at 12 Mbit/s. It is gentle, as Floyd has recommended since 2000, and does not mark.
    fn default() -> RedParams {
        RedParams {
            min_packets: 5.0,
            max_packets: 15.0,
            weight: 0.002,
            max_probability: 0.02,
            gentle: true,
            ecn: false,
            packet_time: Duration::from_millis(1),
        }
    }
}

/// The decision about an arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// Let it wait.
    Accept,
    /// Signal congestion: by a mark if the packet is ECN-capable.
    Early,
    /// Drop it, even if it is ECN-capable.
    Forced,
}

#[derive(Debug)]
pub(super) struct Red {
    backlog: Backlog,
    limits: Limits,
    params: RedParams,
    stream: Stream,
    /// The average queue length in packets (avg).
    average: f64,
    /// Arrivals since the last drop while the average was over the minimum (count, which is -1
    /// below it).
    since_drop: Option<u64>,
    /// Since when the queue has been empty (q_time).
    empty_since: Option<Time>,
}

impl Red {
    pub(super) fn new(params: RedParams, limits: Limits, overhead: u32, stream: Stream) -> Red {
        Red {
            backlog: Backlog::new(overhead),
            limits,
            params,
            stream,
            average: 0.0,
            since_drop: None,
            empty_since: Some(Time::ZERO),
        }
    }

    /// Updates the average by the queue length that an arrival finds (fig. 2).
    fn update_average(&mut self, now: Time) {
        let weight = self.params.weight;
        match self.empty_since {
            None => {
                let packets = self.backlog.waiting().packets as f64;
                self.average += weight * (packets - self.average);
            }
            // The queue counts as if this many small packets had found it empty.
            Some(since) => {
                let idle_packets =
                    now.since(since).as_secs_f64() / self.params.packet_time.as_secs_f64();
                self.average *= libm::pow(1.0 - weight, idle_packets);
            }
        }
    }

    /// The probability by the average alone (p_b); `None` if the packet has to be dropped.
    fn base_probability(&self) -> Option<f64> {
        let RedParams {
            min_packets,
            max_packets,
            max_probability,
            gentle,
            ..
        } = self.params;
        if self.average < max_packets {
            Some(max_probability * (self.average - min_packets) / (max_packets - min_packets))
        } else if gentle && self.average < 2.0 * max_packets {
            Some(max_probability + (1.0 - max_probability) * (self.average / max_packets - 1.0))
        } else {
            None
        }
    }

    /// With no more than one packet waiting nothing is dropped. Floyd's own code in ns-2 does so;
    /// the paper does not. The average falls too slowly to show that the queue has long been empty.
    fn judge(&mut self) -> Verdict {
        if self.average < self.params.min_packets || self.backlog.waiting().packets <= 1 {
            self.since_drop = None;
            return Verdict::Accept;
        }
        let Some(base) = self.base_probability() else {
            self.since_drop = Some(0);
            return Verdict::Forced;
        };
        let count = self.since_drop.map_or(0, |n| n + 1);
        if self.stream.chance(spread(base, count)) {
            self.since_drop = Some(0);
            Verdict::Early
        } else {
            self.since_drop = Some(count);
            Verdict::Accept
        }
    }
}

/// p_a: makes the gaps between drops uniform, up to 1/p_b, instead of geometric (§7, method 2).
fn spread(base: f64, since_drop: u64) -> f64 {
    let rest = 1.0 - since_drop as f64 * base;
    if base < rest { base / rest } else { 1.0 }
}

impl Queue for Red {
    fn enqueue(&mut self, now: Time, mut packet: Packet, dropped: &mut Vec<Packet>) {
        self.update_average(now);
        let verdict = self.judge();
        let is_taken = match verdict {
            Verdict::Accept => true,
            Verdict::Early => self.params.ecn && packet.mark(),
            Verdict::Forced => false,
        };
        if is_taken && self.backlog.has_room(&packet, &self.limits) {
            self.backlog.push(packet);
            self.empty_since = None;
        } else {
            if verdict == Verdict::Accept {
                // A full buffer has dropped it, which is a signal too.
                self.since_drop = self.since_drop.map(|_| 0);
            }
            dropped.push(packet);
            if let Some(since) = &mut self.empty_since {
                // The average has decayed until now.
                *since = now;
            }
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        let packet = self.backlog.pop()?;
        if self.backlog.waiting().packets == 0 {
            self.empty_since = Some(now);
        }
        Some(packet)
    }

    fn waiting(&self) -> Waiting {
        self.backlog.waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    fn red(params: RedParams) -> Red {
        Red::new(params, Limits::NONE, 0, Stream::new(1, "red"))
    }

    #[test]
    fn the_average_matches_the_paper() {
        let mut queue = red(RedParams {
            weight: 0.5,
            min_packets: 100.0,
            max_packets: 200.0,
            ..RedParams::default()
        });
        let mut dropped = Vec::new();
        let mut averages = Vec::new();
        for number in 0..4 {
            queue.enqueue(Time::ZERO, packet(0, number, 1500), &mut dropped);
            averages.push(queue.average);
        }
        // Arrivals find 0, 1, 2 and 3 packets in the queue.
        assert_eq!(averages, [0.0, 0.5, 1.25, 2.125]);
        while queue.dequeue(Time::from_millis(10), &mut dropped).is_some() {}
        // The queue is idle for the time of three packets.
        queue.enqueue(Time::from_millis(13), packet(0, 4, 1500), &mut dropped);
        assert_eq!(queue.average, 2.125 / 8.0);
    }

    #[test]
    fn the_probability_matches_the_paper() {
        let mut queue = red(RedParams::default());
        let mut at = |average: f64| {
            queue.average = average;
            queue.base_probability()
        };
        assert_eq!(at(5.0), Some(0.0));
        assert_eq!(at(10.0), Some(0.01));
        // Gentle: .02 at 15, 1 at 30.
        assert_eq!(at(15.0), Some(0.02));
        assert_eq!(at(22.5), Some(0.51));
        assert_eq!(at(30.0), None);
        queue.params.gentle = false;
        queue.average = 15.0;
        assert_eq!(queue.base_probability(), None);

        assert_eq!(spread(0.01, 0), 0.01);
        assert_eq!(spread(0.01, 50), 0.02);
        assert_eq!(spread(0.01, 100), 1.0);
        assert_eq!(spread(0.01, 1_000), 1.0);
    }

    /// The paper's §7: gaps between drops are uniform from 1 to 1/p_b arrivals.
    #[test]
    fn gaps_between_drops_are_uniform() {
        let mut queue = red(RedParams::default());
        queue.backlog.push(packet(0, 0, 1500));
        queue.backlog.push(packet(0, 1, 1500));
        queue.average = 10.0;
        let mut gaps = Vec::new();
        let mut gap = 0;
        while gaps.len() < 20_000 {
            gap += 1;
            if queue.judge() == Verdict::Early {
                gaps.push(gap);
                gap = 0;
            }
        }
        let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
        assert!((mean - 50.5).abs() < 1.0, "{mean}");
        assert!(gaps.iter().all(|g| (1..=101).contains(g)));
        let short = gaps.iter().filter(|g| **g <= 25).count() as f64 / gaps.len() as f64;
        assert!((short - 0.25).abs() < 0.015, "{short}");

        queue.backlog.pop();
        assert!((0..1_000).all(|_| queue.judge() == Verdict::Accept));
    }
}
