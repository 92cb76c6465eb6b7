//! CoDel (RFC 8289): drops when packets have waited too long for too long.

use headway_cc::{Bytes, Duration, Time};

use super::backlog::{Backlog, Waiting};
use super::{Limits, Queue};
use crate::Packet;

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoDelParams {
    /// The target waiting time.
    pub target: Duration,
    /// How long the target has to be exceeded: about the longest round trip of the flows.
    pub interval: Duration,
    /// If no more than this waits, nothing is dropped. Overhead does not count here.
    pub mtu: Bytes,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for CoDelParams {
    /// RFC 8289 §4.2 and §4.3: 5 ms, 100 ms; no marking.
    fn default() -> CoDelParams {
        CoDelParams {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: Bytes::new(1500),
            ecn: false,
        }
    }
}

/// One queue under CoDel.
#[derive(Debug)]
pub(super) struct CoDel {
    backlog: Backlog,
    limits: Limits,
    params: CoDelParams,
    control: Control,
}

impl CoDel {
    pub(super) fn new(params: CoDelParams, limits: Limits, overhead: u32) -> CoDel {
        CoDel {
            backlog: Backlog::new(overhead),
            limits,
            params,
            control: Control::default(),
        }
    }
}

impl Queue for CoDel {
    fn enqueue(&mut self, _: Time, packet: Packet, dropped: &mut Vec<Packet>) {
        if self.backlog.has_room(&packet, &self.limits) {
            self.backlog.push(packet);
        } else {
            dropped.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.control
            .dequeue(&self.params, now, &mut self.backlog, dropped)
    }

    fn waiting(&self) -> Waiting {
        self.backlog.waiting()
    }
}

/// CoDel's state for one queue, with the names of RFC 8289 §5.3.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// The time at which the waiting time will have been over the target for an interval.
    first_above_time: Option<Time>,
    /// In the dropping state: when the next packet is to be dropped.
    drop_next: Time,
    /// About how many packets were dropped in this dropping state, and the same count at the
    /// beginning of the last one.
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// Takes the next packet of `backlog` (RFC 8289 §5.5). It never drops the last waiting packet.
    pub(super) fn dequeue(
        &mut self,
        params: &CoDelParams,
        now: Time,
        backlog: &mut Backlog,
        dropped: &mut Vec<Packet>,
    ) -> Option<Packet> {
        let (mut packet, mut ok_to_drop) = self.pop(params, now, backlog)?;
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                // RFC 8290 §4.2: a mark replaces a drop, and the packet is sent.
                if params.ecn && packet.mark() {
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                    break;
                }
                dropped.push(packet);
                (packet, ok_to_drop) = self.pop(params, now, backlog)?;
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !(params.ecn && packet.mark()) {
                dropped.push(packet);
                (packet, _) = self.pop(params, now, backlog)?;
            }
            self.dropping = true;
            // A dropping state soon after another resumes at about that one's count.
            let delta = self.count - self.last_count;
            let soon = now.since(self.drop_next) < params.interval * 16;
            self.count = if delta > 1 && soon { delta } else { 1 };
            self.drop_next = control_law(now, params.interval, self.count);
            self.last_count = self.count;
        }
        Some(packet)
    }

    /// The packet at the head, and whether it may be dropped (`dodequeue`).
    fn pop(
        &mut self,
        params: &CoDelParams,
        now: Time,
        backlog: &mut Backlog,
    ) -> Option<(Packet, bool)> {
        let Some(packet) = backlog.pop() else {
            self.first_above_time = None;
            return None;
        };
        let sojourn = now.since(packet.arrived);
        if sojourn < params.target || backlog.at_most(params.mtu) {
            self.first_above_time = None;
            return Some((packet, false));
        }
        let first_above_time = *self.first_above_time.get_or_insert(now + params.interval);
        Some((packet, now >= first_above_time))
    }
}

/// When the next drop is due (RFC 8289 §5.4).
fn control_law(at: Time, interval: Duration, count: u32) -> Time {
    at + interval.mul_f64(1.0 / f64::from(count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;
    use headway_cc::Ecn;

    /// A queue whose packets, all with this `ecn`, have waited since time zero.
    fn standing(params: CoDelParams, packets: u64, ecn: Ecn) -> CoDel {
        let mut queue = CoDel::new(params, Limits::NONE, 0);
        for number in 0..packets {
            let packet = Packet {
                ecn,
                ..packet(0, number, 1500)
            };
            queue.enqueue(Time::ZERO, packet, &mut Vec::new());
        }
        queue
    }

    /// Takes a packet every 0.1 ms, from `from_ms` on. Returns the times of the signals, in ms.
    fn signals(queue: &mut CoDel, from_ms: u64, until_ms: u64) -> Vec<f64> {
        let mut times = Vec::new();
        for tick in from_ms * 10..until_ms * 10 {
            let mut dropped = Vec::new();
            let packet = queue.dequeue(Time::from_nanos(tick * 100_000), &mut dropped);
            let marked = packet.is_some_and(|p| p.ecn == Ecn::Ce);
            times.extend((0..dropped.len() + usize::from(marked)).map(|_| tick as f64 / 10.0));
        }
        times
    }

    #[track_caller]
    fn follow(times: &[f64], expected: &[f64]) {
        assert_eq!(times.len(), expected.len(), "{times:?}");
        for (time, expected) in times.iter().zip(expected) {
            // A signal comes with the first packet that the server takes after it is due.
            assert!((0.0..0.1001).contains(&(time - expected)), "{times:?}");
        }
    }

    /// RFC 8289 §3.2: from 100 ms over the target on, drops 100 ms / sqrt(count) apart.
    const LAW: [f64; 6] = [110.0, 210.0, 280.711, 338.446, 388.446, 433.167];

    #[test]
    fn drops_come_by_the_control_law() {
        let mut queue = standing(CoDelParams::default(), 9_000, Ecn::Ect0);
        follow(&signals(&mut queue, 10, 470), &LAW);
    }

    #[test]
    fn marks_come_when_drops_would() {
        let params = CoDelParams {
            ecn: true,
            ..CoDelParams::default()
        };
        let mut queue = standing(params, 9_000, Ecn::Ect0);
        follow(&signals(&mut queue, 10, 470), &LAW);
        let sent = 9_000 - queue.waiting().packets;
        assert_eq!(sent, 4_600, "a mark takes no packet away");
    }

    /// RFC 8289 §4.4: a new dropping state soon after another begins with that one's number of
    /// drops, less those that it began with; 16 intervals later it begins with one.
    #[test]
    fn a_dropping_state_resumes() {
        for (pause_ms, apart) in [(500, 100.0 / 5f64.sqrt()), (2_500, 100.0)] {
            let mut queue = standing(CoDelParams::default(), 100_000, Ecn::NotEct);
            assert_eq!(signals(&mut queue, 10, 470).len(), 6);
            // A single packet that has just arrived ends it.
            let again = 470 + pause_ms;
            let fresh = Time::from_millis(again);
            let mut waiting = std::mem::take(&mut queue.backlog);
            let arrived = |p: Packet| Packet {
                arrived: fresh,
                ..p
            };
            while let Some(packet) = waiting.pop() {
                queue.backlog.push(arrived(packet));
            }
            let times = signals(&mut queue, again, again + 260);
            let first = again as f64 + 5.0 + 100.0;
            follow(&times[..2], &[first, first + apart]);
        }
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let mut queue = standing(CoDelParams::default(), 3, Ecn::NotEct);
        let mut dropped = Vec::new();
        for ms in [50, 10_000, 20_000] {
            assert!(queue.dequeue(Time::from_millis(ms), &mut dropped).is_some());
        }
        assert_eq!(dropped.len(), 0);
        assert!(
            queue
                .dequeue(Time::from_millis(30_000), &mut dropped)
                .is_none()
        );
    }
}
