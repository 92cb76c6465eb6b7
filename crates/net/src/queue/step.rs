//! Marking above a threshold, as a DCTCP switch does it.

use headway_cc::Time;

use super::backlog::{Backlog, Waiting};
use super::{Limits, Queue};
use crate::Packet;

/// Parameters of step marking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepParams {
    /// K in packets: an arrival is marked if more than K packets wait, including itself.
    pub threshold_packets: u64,
}

impl Default for StepParams {
    /// 20 packets: K at 1 Gbit/s in Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, §3.4.
    fn default() -> StepParams {
        StepParams {
            threshold_packets: 20,
        }
    }
}

/// A drop-tail queue that marks an ECN-capable arrival by the instantaneous queue (DCTCP, SIGCOMM
/// 2010, §3.1). Only the limits apply to other packets: DCTCP's rule does not cover them, while a
/// switch that imitates the step with RED would drop them at K (RFC 8257 §5).
#[derive(Debug)]
pub(super) struct Step {
    backlog: Backlog,
    limits: Limits,
    params: StepParams,
}

impl Step {
    pub(super) fn new(params: StepParams, limits: Limits, overhead: u32) -> Step {
        Step {
            backlog: Backlog::new(overhead),
            limits,
            params,
        }
    }
}

impl Queue for Step {
    fn enqueue(&mut self, _: Time, mut packet: Packet, dropped: &mut Vec<Packet>) {
        if !self.backlog.has_room(&packet, &self.limits) {
            dropped.push(packet);
            return;
        }
        if self.backlog.waiting().packets as u64 >= self.params.threshold_packets {
            packet.mark();
        }
        self.backlog.push(packet);
    }

    fn dequeue(&mut self, _: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        self.backlog.pop()
    }

    fn waiting(&self) -> Waiting {
        self.backlog.waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{ecns, packet};
    use headway_cc::Ecn;

    #[test]
    fn arrivals_beyond_the_threshold_are_marked() {
        let params = StepParams {
            threshold_packets: 2,
        };
        let mut queue = Step::new(params, Limits::new(Some(4), None), 0);
        let mut dropped = Vec::new();
        for (number, ecn) in [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1]
            .into_iter()
            .enumerate()
        {
            let packet = Packet {
                ecn,
                ..packet(0, number as u64, 1500)
            };
            queue.enqueue(Time::ZERO, packet, &mut dropped);
        }
        assert_eq!(ecns(&dropped), [Ecn::Ect1]);
        let out: Vec<Packet> =
            std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut dropped)).collect();
        assert_eq!(ecns(&out), [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::NotEct]);
    }
}
