//! XCP's router (Katabi, Handley and Rohrs, "Congestion Control for High Bandwidth-Delay Product
//! Networks", SIGCOMM 2002, §3.5). Once a mean round trip it computes by how much all windows
//! together should change, and distributes that in the packets' headers. Timers and bounds are
//! those of Katabi's ns-2 code (`xcpq.cc`).
//!
//! A header is [cwnd in bytes, RTT in s, feedback in bytes]. It is zero in other packets.

use headway_cc::{Duration, Rate, Time};

use super::backlog::{Backlog, Waiting};
use super::{Limits, Queue};
use crate::server::Server;
use crate::{Body, Packet};

/// Parameters of the router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XcpParams {
    /// α: the share of the spare bandwidth that is distributed in a round trip.
    pub alpha: f64,
    /// β: the share of the persistent queue drained in a round trip; α²√2 is stable (§4).
    pub beta: f64,
    /// γ: the share of the traffic moved from flow to flow in a round trip.
    pub gamma: f64,
    /// XCP_w of ABC's paper: for a link whose rate is unknown, the capacity is what it could send
    /// in the last control interval, not its long-term mean.
    pub windowed: bool,
}

impl Default for XcpParams {
    /// The values of §3.5 and §4: 0.4, 0.226 and 0.1.
    fn default() -> XcpParams {
        XcpParams {
            alpha: 0.4,
            beta: 0.226,
            gamma: 0.1,
            windowed: false,
        }
    }
}

/// A drop-tail queue that tells each packet's sender by how much to change its window.
#[derive(Debug)]
pub(super) struct Xcp {
    backlog: Backlog,
    limits: Limits,
    params: XcpParams,
    server: Server,
    /// d: the mean round trip, s.
    d: f64,
    /// The control interval. The first packet after its end ends it.
    started: Time,
    ends: Time,
    traffic: Traffic,
    allotment: Allotment,
    /// The shortest queue in bytes during the period that ends at `queue_ends`; then it becomes Q.
    min_queue: u64,
    queue_ends: Time,
    q: f64,
}

/// The traffic of a control interval.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    /// Bytes of all packets.
    bytes: f64,
    /// Bytes of XCP's packets, and their sums Σ rtt s / cwnd and Σ rtt² s / cwnd.
    sizes: f64,
    rtts: f64,
    squares: f64,
}

/// What an interval may distribute: bytes of window, and the shares of each packet (§3.5.2).
#[derive(Clone, Copy, Debug, Default)]
struct Allotment {
    positive: f64,
    negative: f64,
    xi_p: f64,
    xi_n: f64,
}

/// What a packet's header says about its sender.
#[derive(Clone, Copy, Debug)]
struct Claim {
    /// rtt s / cwnd: inverse to the throughput, because a flow's number of packets is proportional
    /// to its throughput.
    share: f64,
    rtt: f64,
    size: f64,
}

impl Claim {
    /// Longer round trips are cut to this, in s (ns-2's `XCP_MAX_INTERVAL`).
    const LONGEST_RTT: f64 = 1.0;

    /// `None` for packets of other schemes, and for the first packets of a flow, which have no
    /// round trip yet.
    fn of(packet: &Packet) -> Option<Claim> {
        let Body::Data(segment) = &packet.body else {
            return None;
        };
        let [cwnd, rtt, _] = segment.header.0.map(f64::from);
        let size = f64::from(packet.size);
        (cwnd >= 1.0 && cwnd.is_finite() && rtt > 0.0).then(|| {
            let rtt = rtt.min(Self::LONGEST_RTT);
            Claim {
                share: rtt * size / cwnd,
                rtt,
                size,
            }
        })
    }
}

impl Xcp {
    /// The mean round trip before the first measurement (ns-2's `INITIAL_Te_VALUE`).
    const FIRST_D: f64 = 0.05;
    /// The shortest control interval, and the shortest time to observe the queue (ns-2).
    const MIN_D: f64 = 0.001;
    const MIN_QUEUE_TIME: f64 = 0.002;

    pub(super) fn new(params: XcpParams, limits: Limits, overhead: u32) -> Xcp {
        Xcp {
            backlog: Backlog::new(overhead),
            limits,
            params,
            server: Server::fixed(Rate::ZERO),
            d: Self::FIRST_D,
            started: Time::ZERO,
            ends: Time::ZERO + Duration::from_secs_f64(Self::FIRST_D),
            traffic: Traffic::default(),
            allotment: Allotment::default(),
            min_queue: 0,
            queue_ends: Time::ZERO,
            q: 0.0,
        }
    }

    /// C in bytes/s.
    fn capacity(&self, now: Time) -> f64 {
        match self.params.windowed {
            true => self.server.capacity(now, Duration::from_secs_f64(self.d)),
            false => self.server.mean_capacity(),
        }
    }

    fn run_timers(&mut self, now: Time) {
        if now >= self.ends {
            let elapsed = now.since(self.started).as_secs_f64();
            let traffic = std::mem::take(&mut self.traffic);
            if traffic.rtts > 0.0 {
                self.d = (traffic.squares / traffic.rtts).max(Self::MIN_D);
            }
            let capacity = self.capacity(now);
            self.allotment = allot(&self.params, self.d, elapsed, capacity, self.q, &traffic);
            self.started = now;
            self.ends = now + Duration::from_secs_f64(self.d);
        }
        if now >= self.queue_ends {
            let queue = self.backlog.waiting().bytes;
            self.q = self.min_queue.min(queue) as f64;
            self.min_queue = queue;
            let drains = queue as f64 / self.capacity(now).max(1.0);
            let time = ((self.d - drains) / 2.0).max(Self::MIN_QUEUE_TIME);
            self.queue_ends = now + Duration::from_secs_f64(time);
        }
    }
}

/// §3.5.1 and §3.5.2: the aggregate feedback φ of an interval of `elapsed` seconds, and the share
/// of each packet in the next one.
fn allot(
    params: &XcpParams,
    d: f64,
    elapsed: f64,
    capacity: f64,
    q: f64,
    traffic: &Traffic,
) -> Allotment {
    if traffic.rtts <= 0.0 || elapsed <= 0.0 {
        return Allotment::default();
    }
    let y = traffic.bytes / elapsed;
    let phi = params.alpha * d * (capacity - y) - params.beta * q;
    // Even without spare bandwidth some of it moves from fast flows to slow ones.
    let h = (params.gamma * y * d - phi.abs()).max(0.0);
    let (positive, negative) = (h + phi.max(0.0), h + (-phi).max(0.0));
    Allotment {
        positive,
        negative,
        xi_p: positive / (d * traffic.rtts),
        xi_n: negative / (d * traffic.sizes),
    }
}

impl Allotment {
    /// The feedback of a packet to which earlier routers have `granted` this much: it is never more
    /// than that, and no more than is left. Returns the feedback now granted.
    fn take(&mut self, claim: &Claim, granted: f64) -> f64 {
        let positive = (self.xi_p * claim.rtt * claim.share).min(self.positive);
        let negative = (self.xi_n * claim.rtt * claim.size).min(self.negative);
        let feedback = positive - negative;
        let (positive, negative, feedback) = if granted >= feedback {
            (positive, negative, feedback)
        } else {
            // A router upstream grants less; the difference is returned to this account.
            let negative = (negative + (feedback - granted)).min(self.negative);
            ((granted + negative).max(0.0), negative, granted)
        };
        self.positive = (self.positive - positive).max(0.0);
        self.negative = (self.negative - negative).max(0.0);
        feedback
    }
}

impl Queue for Xcp {
    fn enqueue(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) {
        self.run_timers(now);
        self.traffic.bytes += self.backlog.cost(&packet) as f64;
        if let Some(claim) = Claim::of(&packet) {
            self.traffic.sizes += claim.size;
            self.traffic.rtts += claim.share;
            self.traffic.squares += claim.rtt * claim.share;
        }
        if self.backlog.has_room(&packet, &self.limits) {
            self.backlog.push(packet);
        } else {
            dropped.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        self.run_timers(now);
        let mut packet = self.backlog.pop()?;
        self.min_queue = self.min_queue.min(self.backlog.waiting().bytes);
        let claim = Claim::of(&packet);
        if let Body::Data(segment) = &mut packet.body {
            let granted = &mut segment.header.0[2];
            *granted = claim.map_or(0.0, |c| self.allotment.take(&c, f64::from(*granted)) as f32);
        }
        Some(packet)
    }

    fn waiting(&self) -> Waiting {
        self.backlog.waiting()
    }

    fn serve_by(&mut self, server: &Server) {
        self.server = server.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;
    use headway_cc::Header;

    const MSS: f64 = 1500.0;
    const D: f64 = 0.12;

    fn of_flow(flow: u32, cwnd_packets: f64, rtt_s: f64, granted: f64) -> Packet {
        let mut packet = packet(flow, 0, 1500);
        if let Body::Data(segment) = &mut packet.body {
            segment.header = Header([(cwnd_packets * MSS) as f32, rtt_s as f32, granted as f32]);
        }
        packet
    }

    fn granted(packet: &Packet) -> f64 {
        match &packet.body {
            Body::Data(segment) => f64::from(segment.header.0[2]),
            _ => f64::NAN,
        }
    }

    /// 108 packets in 120 ms, of one flow that has 108 packets in flight.
    fn a_flow() -> Traffic {
        Traffic {
            bytes: 108.0 * MSS,
            sizes: 108.0 * MSS,
            rtts: 108.0 * D / 108.0,
            squares: 108.0 * D * D / 108.0,
        }
    }

    /// Values of algorithms.md §14.5: C = 1000 packets/s, y = 900, d = 120 ms. With Q = 0 and 20
    /// packets the feedback is 4.8 and 0.28 packets an interval. Shuffling moves 10.8 packets: it
    /// gives as much as it takes.
    #[test]
    fn aggregate_feedback_matches_the_paper() {
        for (q, phi) in [(0.0, 4.8), (20.0, 0.28)] {
            let traffic = a_flow();
            let a = allot(&XcpParams::default(), D, D, 1000.0 * MSS, q * MSS, &traffic);
            let found = (a.positive - a.negative) / MSS;
            assert!((found - phi).abs() < 1e-9, "{found}");
            assert!((a.positive.min(a.negative) / MSS - (10.8 - phi)).abs() < 1e-9);
        }
    }

    /// A router downstream grants no more than one upstream has, and keeps the rest in its account
    /// (ns-2's `xcpq.cc`, "L 26" and "L 27").
    #[test]
    fn the_smallest_feedback_counts() {
        let claim = Claim::of(&of_flow(0, 10.0, 0.1, 0.0)).expect("an XCP packet");
        let full = || Allotment {
            positive: 10_000.0,
            negative: 100.0,
            xi_p: 1000.0 / (claim.rtt * claim.share),
            xi_n: 100.0 / (claim.rtt * claim.size),
        };
        for (granted, feedback, positive, negative) in [
            (f64::INFINITY, 900.0, 9_000.0, 0.0),
            (900.0, 900.0, 9_000.0, 0.0),
            (200.0, 200.0, 9_700.0, 0.0),
            (-50.0, -50.0, 9_950.0, 0.0),
        ] {
            let mut account = full();
            assert!((account.take(&claim, granted) - feedback).abs() < 1e-6);
            let left = (account.positive, account.negative);
            assert!(
                (left.0 - positive).abs() < 1e-6 && (left.1 - negative).abs() < 1e-6,
                "{left:?}"
            );
        }
    }

    /// Feedback stays a number for every header, and packets of other schemes get none.
    #[test]
    fn feedback_is_finite_for_every_header() {
        let mut queue = Xcp::new(XcpParams::default(), Limits::NONE, 0);
        queue.serve_by(&Server::fixed(Rate::from_mbps(12.0)));
        let odd = [0.0, -1.0, 1e-30, 1.0, 1e30, f64::INFINITY, f64::NAN];
        let mut now = Time::ZERO;
        for round in 0..200 {
            for cwnd in odd {
                for rtt in odd {
                    now += Duration::from_millis(1);
                    queue.enqueue(now, of_flow(0, cwnd, rtt, f64::INFINITY), &mut Vec::new());
                    let packet = queue.dequeue(now, &mut Vec::new()).expect("a packet");
                    assert!(granted(&packet).is_finite(), "{round} {cwnd} {rtt}");
                }
            }
        }
        queue.enqueue(now, packet(1, 0, 1500), &mut Vec::new());
        let other = queue.dequeue(now, &mut Vec::new()).expect("a packet");
        assert_eq!(granted(&other), 0.0);
    }

    /// The packets of an interval, of all flows, together get the interval's feedback (§3.5.2).
    #[test]
    fn packets_together_get_the_intervals_feedback() {
        for flows in [
            &[(60.0_f64, 0.12_f64)][..],
            &[(100.0, 0.12), (20.0, 0.24), (4.0, 0.06)],
        ] {
            let mut queue = Xcp::new(XcpParams::default(), Limits::NONE, 0);
            queue.serve_by(&Server::fixed(Rate::from_mbps(24.0)));
            queue.ends = Time::NEVER;
            let interval = 0.24;
            let mut packets = Vec::new();
            for (i, &(cwnd, rtt)) in flows.iter().enumerate() {
                let number = (cwnd / rtt * interval).round() as usize;
                packets.extend((0..number).map(|_| of_flow(i as u32, cwnd, rtt, f64::INFINITY)));
            }
            for p in &packets {
                queue.enqueue(Time::ZERO, *p, &mut Vec::new());
            }
            let traffic = queue.traffic;
            let d = traffic.squares / traffic.rtts;
            queue.allotment = allot(&queue.params, d, interval, 3e6, 0.0, &traffic);
            let phi = 0.4 * d * (3e6 - traffic.bytes / interval);
            let mut changes = vec![0.0; flows.len()];
            while let Some(p) = queue.dequeue(Time::ZERO, &mut Vec::new()) {
                changes[p.flow as usize] += granted(&p);
            }
            // The sums cover the whole interval, which is `interval / d` mean round trips long.
            let total: f64 = changes.iter().sum();
            assert!((total / phi - 1.0).abs() < 1e-3, "{total} {phi}");
            // Without shuffling, as here, all throughputs change by the same amount.
            let speedups: Vec<f64> = changes.iter().zip(flows).map(|(c, f)| c / f.1).collect();
            for s in &speedups {
                assert!((s / speedups[0] - 1.0).abs() < 1e-3, "{speedups:?}");
            }
        }
    }
}
