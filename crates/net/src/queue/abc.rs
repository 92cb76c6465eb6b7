//! ABC's router (Goyal et al., "ABC: A Simple Explicit Congestion Controller for Wireless
//! Networks", NSDI 2020, §3 and §4): turns as many accelerations into brakes as brings the senders
//! to the rate that the link will bear.

use std::collections::VecDeque;

use headway_cc::{Duration, Ecn, Rate, Time};

use super::backlog::{Backlog, Waiting};
use super::{Limits, Queue};
use crate::Packet;
use crate::server::{Server, TraceCursor};

/// Parameters of the router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbcParams {
    /// η: the target share of the capacity.
    pub eta: f64,
    /// δ: the time in which a queue that is too long is drained; more than 2/3 of a round trip
    /// (§4.2).
    pub delta: Duration,
    /// d_t: queueing delay up to this does not count; it comes from a link that serves in batches.
    pub target: Duration,
    /// T: the time over which capacity and dequeue rate are measured.
    pub window: Duration,
    /// How many accelerations may be saved up.
    pub tokens: f64,
    /// Uses the rule of the authors' published router, with which their figures were measured: η
    /// applies to the dequeue rate, so a rate rises only by saved-up unused opportunities.
    pub observed: bool,
}

impl Default for AbcParams {
    /// The parameters for the paper's cellular links with a round trip of 100 ms. The published
    /// router has the same (`prateshg/ABC-NSDI2020`, `cellular_packet_queue.cc`: 1/δ is written
    /// .75/100 ms there).
    fn default() -> AbcParams {
        AbcParams {
            eta: 0.98,
            delta: Duration::from_millis(133),
            target: Duration::from_millis(50),
            window: Duration::from_millis(20),
            tokens: 5.0,
            observed: false,
        }
    }
}

impl AbcParams {
    /// f(t), the share of packets that accelerate (§3.1, Eq. 1 and 2), from capacity and dequeue
    /// rate in the same unit and the queueing delay. An acceleration puts two packets on the way
    /// and a brake none, so the next round trip's rate is 2 f cr.
    fn accelerations(&self, mu: f64, cr: f64, x: Duration) -> f64 {
        let excess = x.saturating_sub(self.target).as_secs_f64();
        let aim = if self.observed { cr } else { mu };
        let tr = self.eta * aim - mu / self.delta.as_secs_f64() * excess;
        match (tr > 0.0, cr > 0.0) {
            (true, true) => (0.5 * tr / cr).min(1.0),
            // The link was idle: every packet may accelerate.
            (true, false) => 1.0,
            (false, _) => 0.0,
        }
    }
}

/// A drop-tail queue that marks packets as they leave. Packets of other schemes pass unchanged.
#[derive(Debug)]
pub(super) struct Abc {
    backlog: Backlog,
    limits: Limits,
    params: AbcParams,
    server: Server,
    sent: Sent,
    token: f64,
    /// When the last packet had left.
    idle_since: Time,
}

impl Abc {
    /// How many tokens an unused opportunity gives in the published router.
    const SAVED: f64 = 0.49;

    pub(super) fn new(params: AbcParams, limits: Limits, overhead: u32) -> Abc {
        Abc {
            backlog: Backlog::new(overhead),
            limits,
            params,
            server: Server::fixed(Rate::MAX),
            sent: Sent::default(),
            token: params.tokens,
            idle_since: Time::ZERO,
        }
    }

    /// Tokens that were saved up by opportunities since the last packet's.
    fn saved(&self, now: Time) -> f64 {
        let before = now.saturating_sub(Duration::from_nanos(1));
        let idle = before.since(self.idle_since);
        if !self.params.observed || idle.is_zero() {
            return 0.0;
        }
        let bytes = self.server.capacity(before, idle) * idle.as_secs_f64();
        Self::SAVED * bytes / f64::from(TraceCursor::OPPORTUNITY)
    }

    /// f(t) when `bytes` leave.
    fn accelerations(&mut self, now: Time, bytes: f64) -> f64 {
        let window = self.params.window;
        // The capacity is computed on each use: a link that changed its rate a moment ago is judged
        // by the new one.
        let mu = self.server.capacity(now, window);
        let on_wire = match &self.server {
            Server::Fixed(rate) => rate.rate().time_to_send(headway_cc::Bytes::from_f64(bytes)),
            // The packet takes a part of an opportunity, which takes no time.
            Server::Trace(_) => Duration::ZERO,
        };
        self.idle_since = now + on_wire;
        let cr = self.sent.rate(now, window, on_wire, bytes);
        let waiting = self.backlog.waiting().bytes as f64 + bytes;
        let x = Duration::from_secs_f64(waiting / mu);
        self.params.accelerations(mu, cr, x)
    }
}

impl Queue for Abc {
    fn enqueue(&mut self, _: Time, packet: Packet, dropped: &mut Vec<Packet>) {
        if self.backlog.has_room(&packet, &self.limits) {
            self.backlog.push(packet);
        } else {
            dropped.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        let mut packet = self.backlog.pop()?;
        let saved = self.saved(now);
        let f = self.accelerations(now, self.backlog.cost(&packet) as f64);
        // §3.1, Algorithm 1: a token bucket spreads accelerations evenly. A brake stays a brake, so
        // that of several routers the slowest decides.
        if matches!(packet.ecn, Ecn::Ect0 | Ecn::Ect1) {
            self.token = (self.token + saved + f).min(self.params.tokens);
        }
        if packet.ecn == Ecn::Ect1 {
            if self.token > 1.0 {
                self.token -= 1.0;
            } else {
                packet.ecn = Ecn::Ect0;
            }
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

/// The packets that have left recently.
#[derive(Debug, Default)]
struct Sent {
    /// For each packet, the times at which its transmission began and ended, and its bytes.
    packets: VecDeque<(Time, Time, f64)>,
    bytes: f64,
}

impl Sent {
    /// cr(t): bytes a second over the last `window`, as `bytes` more leave, which take `on_wire`.
    /// If a packet began before the window, only its part within counts; otherwise a slow link
    /// would seem fast.
    fn rate(&mut self, now: Time, window: Duration, on_wire: Duration, bytes: f64) -> f64 {
        self.packets.push_back((now, now + on_wire, bytes));
        self.bytes += bytes;
        let since = now.saturating_sub(window);
        while let Some(&(_, end, bytes)) = self.packets.front()
            && end <= since
            && end < now
        {
            self.packets.pop_front();
            self.bytes -= bytes;
        }
        let part =
            |&(from, end, bytes): &(Time, Time, f64), outside: Duration| match end.since(from) {
                Duration::ZERO => 0.0,
                length => bytes * outside.as_secs_f64() / length.as_secs_f64(),
            };
        let early = self
            .packets
            .front()
            .map_or(0.0, |p| part(p, since.since(p.0)));
        let late = self.packets.back().map_or(0.0, |p| part(p, p.1.since(now)));
        (self.bytes - early - late).max(0.0) / window.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{ecns, packet};
    use crate::trace::Trace;
    use headway_cc::Bytes;
    use std::sync::Arc;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn abc(server: Server, waiting: u64, ecn: Ecn) -> Abc {
        let mut queue = Abc::new(AbcParams::default(), Limits::NONE, 0);
        queue.serve_by(&server);
        for number in 0..waiting {
            let packet = Packet {
                ecn,
                ..packet(0, number, 1500)
            };
            queue.enqueue(Time::ZERO, packet, &mut Vec::new());
        }
        queue
    }

    /// Takes a packet at each of these times.
    fn take(queue: &mut Abc, at_ms: impl Iterator<Item = u64>) -> Vec<Packet> {
        let mut dropped = Vec::new();
        let taken = at_ms.filter_map(|at| queue.dequeue(Time::from_millis(at), &mut dropped));
        taken.collect()
    }

    fn accelerated(packets: &[Packet]) -> usize {
        let accelerated = |ecn: &&Ecn| **ecn == Ecn::Ect1;
        ecns(packets).iter().filter(accelerated).count()
    }

    /// Values of algorithms.md §14.5: a packet arrives and leaves each millisecond. The HotNets
    /// paper has its 1/δ as .75/100 ms.
    #[test]
    fn share_of_accelerations_matches_the_paper() {
        let nsdi = AbcParams::default();
        let hotnets = AbcParams {
            delta: ms(100).mul_f64(1.0 / 0.75),
            ..nsdi
        };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 5e-5, "{found}");
        near(nsdi.accelerations(1.0, 1.0, ms(21)), 0.490);
        near(nsdi.accelerations(1.0, 1.0, ms(100)), 0.3020);
        near(hotnets.accelerations(1.0, 1.0, ms(100)), 0.3025);
        // By hand: half the capacity is in use; then 0.98 - (250 - 50) / 133 is less than nothing;
        // then the link is idle.
        near(nsdi.accelerations(1.0, 0.5, ms(21)), 0.98);
        near(nsdi.accelerations(1.0, 1.0, ms(250)), 0.0);
        near(nsdi.accelerations(1.0, 0.0, ms(0)), 1.0);
        let observed = AbcParams {
            observed: true,
            ..nsdi
        };
        near(observed.accelerations(1.0, 0.5, ms(21)), 0.49);
    }

    /// A busy link with a queue of 20 packets: 49% of many packets accelerate, evenly spread.
    #[test]
    fn accelerations_are_spread_evenly() {
        let mut queue = abc(Server::fixed(Rate::from_mbps(12.0)), 1020, Ecn::Ect1);
        take(&mut queue, 1..=20);
        let mut all = Vec::new();
        for at in 21..=1000 {
            // The queue keeps its length.
            let next = Packet {
                ecn: Ecn::Ect1,
                ..packet(0, at, 1500)
            };
            queue.backlog.push(next);
            while queue.backlog.waiting().packets > 21 {
                queue.backlog.pop();
            }
            all.extend(take(&mut queue, at..=at));
        }
        let share = accelerated(&all) as f64 / all.len() as f64;
        assert!((share - 0.49).abs() < 0.005, "{share}");
        for ten in all[10..].chunks_exact(10) {
            assert!((4..=6).contains(&accelerated(ten)), "{:?}", ecns(ten));
        }
    }

    /// The capacity is that of all opportunities, used or not (§3.1). If only every fourth is used,
    /// all packets may accelerate, because twice .98 / 2 of four times the rate is more than one.
    #[test]
    fn unused_opportunities_add_to_the_capacity() {
        let every_ms: Vec<u8> = (1..=1000)
            .flat_map(|t| format!("{t}\n").into_bytes())
            .collect();
        let trace = Arc::new(Trace::parse(every_ms).expect("a trace"));
        let mut queue = abc(Server::trace(trace, Duration::ZERO, false), 8, Ecn::Ect1);
        let all = take(&mut queue, (4..=32).step_by(4));
        assert_eq!(accelerated(&all), 8);
        let mu = queue.server.capacity(Time::from_millis(40), ms(20));
        assert_eq!(mu, 1504e3);
    }

    /// In the published router, seven unused opportunities save up .49 tokens each. Then 49%
    /// accelerate, however much of the link is free.
    #[test]
    fn the_published_router_saves_up_unused_opportunities() {
        let every_ms: Vec<u8> = (1..=1000)
            .flat_map(|t| format!("{t}\n").into_bytes())
            .collect();
        let trace = Arc::new(Trace::parse(every_ms).expect("a trace"));
        let mut queue = abc(Server::trace(trace, Duration::ZERO, false), 500, Ecn::Ect1);
        queue.params.observed = true;
        queue.params.target = Duration::from_secs(100);
        queue.token = 0.0;
        take(&mut queue, 1..=1);
        let before = queue.token;
        take(&mut queue, 9..=9);
        assert!((queue.token - (before + 7.0 * 0.49 + 0.49 - 1.0)).abs() < 1e-9);
        take(&mut queue, 40..=60);
        let all = take(&mut queue, 61..=260);
        let share = accelerated(&all) as f64 / all.len() as f64;
        assert!((share - 0.49).abs() < 0.01, "{share}");
    }

    /// A packet takes 24 ms, more than the window of 20 ms, and still has to count.
    #[test]
    fn the_rate_of_a_slow_link_is_exact() {
        for mbps in [0.5, 2.64, 12.0] {
            let rate = Rate::from_mbps(mbps);
            let mut sent = Sent::default();
            let on_wire = rate.time_to_send(Bytes::new(1500));
            let mut now = Time::ZERO;
            for _ in 0..50 {
                sent.rate(now, ms(20), on_wire, 1500.0);
                now += on_wire;
            }
            let busy = sent.rate(now, ms(20), on_wire, 1500.0) * 8e-6;
            assert!((busy / mbps - 1.0).abs() < 1e-6, "{busy}");
            let idle = sent.rate(now + ms(100), ms(20), on_wire, 1500.0);
            assert_eq!(idle, 0.0);
        }
    }

    /// §3.1.1 and §5.1: a brake is never upgraded; ABC leaves CE and packets that are not
    /// ECN-capable alone.
    #[test]
    fn only_accelerations_are_turned_into_brakes() {
        for ecn in [Ecn::Ect0, Ecn::Ce, Ecn::NotEct] {
            let mut queue = abc(Server::fixed(Rate::from_mbps(12.0)), 400, ecn);
            let all = take(&mut queue, 1..=400);
            assert!(ecns(&all).iter().all(|&e| e == ecn));
        }
        // All of these may accelerate: the first few do, by the tokens in the bucket, and then none
        // with 300 ms of queue.
        let mut queue = abc(Server::fixed(Rate::from_mbps(12.0)), 400, Ecn::Ect1);
        let all = take(&mut queue, 1..=100);
        assert_eq!(accelerated(&all), 4);
    }

    /// The router uses the current rate.
    #[test]
    fn a_new_rate_takes_effect_at_once() {
        let mut queue = abc(Server::fixed(Rate::from_mbps(12.0)), 400, Ecn::Ect1);
        queue.token = 0.0;
        take(&mut queue, 1..=100);
        queue.serve_by(&Server::fixed(Rate::from_mbps(1200.0)));
        assert_eq!(accelerated(&take(&mut queue, 101..=110)), 9);
    }
}
