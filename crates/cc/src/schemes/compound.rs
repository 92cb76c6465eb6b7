//! Compound TCP: NewReno's window plus one that follows delay (draft-sridharan-tcpm-ctcp-02; Tan,
//! Song, Zhang, Sridharan 2006).
//!
//! The window is `win = cwnd + dwnd`. `cwnd` is NewReno's. `dwnd` grows steeply in large windows
//! while few packets of the flow wait in the queue, and shrinks when more do.

use crate::{
    Bytes, CongestionControl, Control, Duration, EcnUse, Family, Feedback, Kind, Param, Probe,
    Recovery, RoundCounter, Rto, Scheme, Setup, Time, Values,
};

use super::newreno::NewReno;

const fn number(name: &'static str, help: &'static str, default: f64, max: f64) -> Param {
    Param {
        name,
        help,
        kind: Kind::Number {
            default,
            min: 0.0,
            max,
        },
    }
}
const ALPHA: Param = number(
    "alpha",
    "win grows by alpha win^k packets a round trip",
    0.125,
    1.0,
);
const K: Param = number("k", "the exponent of that", 0.75, 1.0);
const BETA: Param = Param {
    name: "beta",
    help: "the share of win that a loss takes",
    kind: Kind::Number {
        default: 0.5,
        min: 0.1,
        max: 0.9,
    },
};
const ZETA: Param = number(
    "zeta",
    "packets by which dwnd shrinks for each packet in the queue",
    1.0,
    10.0,
);
const GAMMA: Param = number(
    "gamma",
    "packets in the queue from which on dwnd shrinks; the largest value that tuning sets",
    30.0,
    1000.0,
);
const TUNING: Param = Param {
    name: "tuning",
    help: "set gamma from the packets in the queue at a loss, so that flows share small buffers fairly",
    kind: Kind::Choice(&["on", "off"]),
};
const LOW_WINDOW: Param = number(
    "low_window",
    "window in packets below which dwnd does not grow",
    38.0,
    1000.0,
);

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "compound",
    family: Family::Loss,
    summary: "NewReno plus a second window that follows delay",
    source: "draft-sridharan-tcpm-ctcp-02; Tan et al. 2006; Linux tcp_compound.c",
    deviations: &[
        "Gamma's weight lambda is one half, as in Linux's last tcp_compound.c.",
        "dwnd is a real number of packets. In Linux it grows by whole packets, so it does not grow below 41 packets.",
    ],
    needs: &[],
    params: &[ALPHA, K, BETA, ZETA, GAMMA, TUNING, LOW_WINDOW],
    build: |setup, values| Box::new(Compound::new(setup, values)),
    receiver: None,
    router: None,
};

/// The state of one Compound flow.
#[derive(Debug)]
pub struct Compound {
    /// NewReno, which holds `cwnd` and does what Compound does not change.
    reno: NewReno,
    /// The delay-based window in packets; zero in slow start.
    dwnd: f64,
    mss: f64,
    alpha: f64,
    k: f64,
    beta: f64,
    zeta: f64,
    low_window: f64,
    gamma: f64,
    gamma_high: f64,
    tuning: bool,
    /// The packets of `cwnd` alone that waited in the last round, NewReno's share of the queue.
    diff_reno: Option<f64>,
    /// `dwnd` before the last reduction, for [`Feedback::undo`].
    undo: f64,
    base_rtt: Duration,
    /// The minimum RTT of this round, and the number of samples.
    min_rtt: Duration,
    samples: u32,
    smoothed_rtt: Duration,
    rounds: RoundCounter,
    /// `win` and `cwnd` in packets at the beginning of this round, to which its acknowledgements
    /// belong.
    win_before: f64,
    cwnd_before: f64,
    /// False during loss recovery, whose round trips do not count.
    judging: bool,
}

impl Compound {
    /// The draft's bounds of gamma, and the share of the backlog that a sample is.
    const GAMMA_LOW: f64 = 5.0;
    const GAMMA_SHARE: f64 = 0.75;
    /// Linux: the weight of a sample.
    const LAMBDA: f64 = 0.5;
    /// As in Linux, two samples may both be of delayed acknowledgements.
    const MIN_SAMPLES: u32 = 3;
    /// An RTT is a divisor, so it must not be zero.
    const SMALLEST_RTT: Duration = Duration::from_nanos(1);

    /// A flow at its initial window, in slow start.
    pub fn new(setup: &Setup, values: &Values) -> Compound {
        Compound {
            reno: NewReno::new(setup, EcnUse::Off),
            dwnd: 0.0,
            mss: setup.mss.as_f64(),
            alpha: values.number(&ALPHA),
            k: values.number(&K),
            beta: values.number(&BETA),
            zeta: values.number(&ZETA),
            low_window: values.number(&LOW_WINDOW),
            gamma: values.number(&GAMMA),
            gamma_high: values.number(&GAMMA),
            tuning: values.choice(&TUNING) == "on",
            diff_reno: None,
            undo: 0.0,
            base_rtt: Duration::MAX,
            min_rtt: Duration::MAX,
            samples: 0,
            smoothed_rtt: Duration::MAX,
            rounds: RoundCounter::default(),
            win_before: 0.0,
            cwnd_before: 0.0,
            judging: true,
        }
    }

    fn cwnd(&self) -> f64 {
        self.reno.cwnd.as_f64() / self.mss
    }

    fn win(&self) -> f64 {
        self.cwnd() + self.dwnd
    }

    /// The share of `cwnd` in a change of `win`: all of it in slow start and in small windows.
    fn share(&self, bytes: Bytes) -> Bytes {
        if self.dwnd == 0.0 {
            bytes
        } else {
            bytes.mul_f64(self.cwnd() / self.win())
        }
    }

    /// NewReno's part: it adds a packet for each `win` acknowledged, and takes half of its share on
    /// congestion.
    fn lead_reno(&mut self, f: &Feedback<'_>) {
        self.reno.on_feedback(&Feedback {
            acked_bytes: self.share(f.acked_bytes),
            prior_in_flight: self.share(f.prior_in_flight),
            ..*f
        });
    }

    /// A round trip is over, in which `diff` packets of this flow waited in the queue.
    fn judge(&mut self, f: &Feedback<'_>) {
        let waiting = 1.0 - self.base_rtt.as_secs_f64() / self.min_rtt.as_secs_f64();
        let diff = self.win_before * waiting;
        self.diff_reno = Some(self.cwnd_before * waiting);
        if diff >= self.gamma {
            self.dwnd = (self.dwnd - self.zeta * diff).max(0.0);
        } else if f.cwnd_limited && self.win_before >= self.low_window {
            // NewReno adds one packet of the increase, which is therefore subtracted.
            let step = self.alpha * libm::pow(self.win_before, self.k) - 1.0;
            self.dwnd += step.max(0.0);
        }
    }

    /// A loss leaves `win (1 - beta)`, of which NewReno's half is `cwnd`.
    fn reduce(&mut self, f: &Feedback<'_>) {
        self.tune();
        self.undo = self.dwnd;
        let used = self.win().min(f.prior_in_flight.as_f64() / self.mss);
        self.lead_reno(f);
        if self.dwnd > 0.0 {
            self.dwnd = (used * (1.0 - self.beta) - self.cwnd()).max(0.0);
        }
    }

    /// Keeps gamma below the queue that NewReno alone would have when it overflows.
    fn tune(&mut self) {
        if let Some(diff) = self.diff_reno.take().filter(|_| self.tuning) {
            let sample = Self::GAMMA_SHARE * diff;
            let gamma = (1.0 - Self::LAMBDA) * self.gamma + Self::LAMBDA * sample;
            self.gamma = gamma.max(Self::GAMMA_LOW).min(self.gamma_high);
        }
    }

    fn begin_round(&mut self) {
        (self.min_rtt, self.samples) = (Duration::MAX, 0);
        (self.win_before, self.cwnd_before) = (self.win(), self.cwnd());
    }

    fn measure(&mut self, f: &Feedback<'_>) {
        if let Some(rtt) = f.rtt {
            let rtt = rtt.max(Self::SMALLEST_RTT);
            self.base_rtt = self.base_rtt.min(rtt);
            self.min_rtt = self.min_rtt.min(rtt);
            self.samples += 1;
            self.smoothed_rtt = f.rtt_stats.smoothed.max(Self::SMALLEST_RTT);
        }
    }
}

impl CongestionControl for Compound {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.measure(f);
        if f.undo {
            self.dwnd = self.dwnd.max(std::mem::take(&mut self.undo));
        }
        if f.congestion.is_some() {
            self.judging = false;
            return self.reduce(f);
        }
        self.lead_reno(f);
        if f.recovery != Recovery::Open || f.undo {
            self.judging = false;
        } else if !self.judging {
            self.judging = true;
            self.rounds.restart(f.next_number);
            self.begin_round();
        } else if self.rounds.on_feedback(f) {
            // As in the draft, slow start has no dwnd.
            if self.samples >= Self::MIN_SAMPLES && self.reno.cwnd >= self.reno.ssthresh {
                self.judge(f);
            }
            self.begin_round();
        }
    }

    /// As in the draft, the path may have changed. All starts again, with the smoothed RTT as the
    /// base RTT.
    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.judging = false;
        if rto.consecutive == 1 {
            // NewReno's ssthresh is half of what was in flight, including `dwnd`.
            self.reno.cwnd = Bytes::from_f64(self.win() * self.mss);
            self.base_rtt = self.smoothed_rtt;
            (self.gamma, self.diff_reno) = (self.gamma_high, None);
        }
        (self.dwnd, self.undo) = (0.0, 0.0);
        self.reno.on_rto(rto);
    }

    /// As in Linux, the base RTT stays and `dwnd` is dropped.
    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.judging = false;
        (self.dwnd, self.undo) = (0.0, 0.0);
        self.reno.on_idle(now, idle);
    }

    fn control(&self) -> Control {
        let dwnd = Bytes::from_f64(self.dwnd * self.mss);
        Control::window(self.reno.cwnd.saturating_add(dwnd))
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.reno.probe(probe);
        probe.value("dwnd_packets", self.dwnd);
        probe.value("gamma_packets", self.gamma);
        if self.base_rtt < Duration::MAX {
            probe.value("base_rtt_ms", self.base_rtt.as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, MSS, feedback, rto, select, setup};
    use crate::{Congestion, Rate};

    const BASE: Duration = Duration::from_millis(100);

    /// A flow in congestion avoidance with `cwnd` and `dwnd` packets. It has seen the base RTT, and
    /// is at the beginning of a round.
    fn compound(cwnd: u64, dwnd: f64) -> Compound {
        let mut c = Compound::new(&setup(), &select("compound").values);
        c.base_rtt = BASE;
        (c.reno.cwnd, c.reno.ssthresh, c.dwnd) = (MSS * cwnd, MSS * cwnd, dwnd);
        c.rounds.restart(100);
        c.begin_round();
        c
    }

    /// A round of ten acknowledgements with too few bytes to grow `cwnd`.
    fn round(c: &mut Compound, rtt_ms: f64) {
        for i in 1..=10 {
            c.on_feedback(&Feedback {
                rtt: Some(BASE.mul_f64(rtt_ms / 100.0)),
                acked_bytes: Bytes::new(1),
                largest_acked: if i == 10 { 100 } else { 99 },
                next_number: 200,
                ..feedback(Time::ZERO)
            });
        }
    }

    fn loss(in_flight: u64) -> Feedback<'static> {
        Feedback {
            congestion: Some(Congestion::Loss),
            recovery: Recovery::Recovery,
            prior_in_flight: MSS * in_flight,
            ..feedback(Time::ZERO)
        }
    }

    /// By hand: 256^0.75 = 64 and 625^0.75 = 125. An eighth of that minus one is added.
    #[test]
    fn dwnd_grows_by_a_power_of_the_window() {
        for (cwnd, dwnd, after) in [(256, 0.0, 7.0), (200, 56.0, 63.0), (625, 0.0, 14.625)] {
            let mut c = compound(cwnd, dwnd);
            round(&mut c, 100.0);
            assert!((c.dwnd - after).abs() < 1e-9, "{cwnd}, {dwnd}: {}", c.dwnd);
        }
    }

    /// Below the low window `dwnd` does not grow. From 41 packets on the step is a whole packet.
    #[test]
    fn dwnd_does_not_grow_below_the_low_window() {
        for (cwnd, least, most) in [(37, 0.0, 0.0), (38, 0.9, 1.0), (41, 1.0, 1.1)] {
            let mut c = compound(cwnd, 0.0);
            round(&mut c, 100.0);
            assert!((least..=most).contains(&c.dwnd), "{cwnd}: {}", c.dwnd);
        }
    }

    /// 256 packets at an RTT of 128 ms have 56 in the queue, and `dwnd` shrinks by zeta for each.
    /// 25 packets are fewer than gamma.
    #[test]
    fn dwnd_shrinks_when_packets_queue() {
        for (dwnd, rtt_ms, after) in [(156.0, 128.0, 100.0), (50.0, 128.0, 0.0)] {
            let mut c = compound(256 - dwnd as u64, dwnd);
            round(&mut c, rtt_ms);
            assert!((c.dwnd - after).abs() < 1e-6, "{dwnd}: {}", c.dwnd);
        }
        let mut c = compound(156, 100.0);
        round(&mut c, 100.0 * 256.0 / 231.0);
        assert!((c.dwnd - 107.0).abs() < 1e-6, "{}", c.dwnd);
    }

    /// Two samples may be of delayed acknowledgements, and slow start has no dwnd.
    #[test]
    fn dwnd_ignores_slow_start_and_rounds_with_few_samples() {
        let mut c = compound(256, 0.0);
        c.samples = 0;
        c.on_feedback(&Feedback {
            acked_bytes: Bytes::new(1),
            largest_acked: 100,
            ..feedback(Time::ZERO)
        });
        assert_eq!(c.dwnd, 0.0);
        let mut c = compound(256, 0.0);
        c.reno.ssthresh = MSS * 1000;
        round(&mut c, 100.0);
        assert_eq!(c.dwnd, 0.0);
    }

    /// `win` is halved, and so is `cwnd`: dwnd = win (1 - beta) - cwnd / 2.
    #[test]
    fn a_loss_halves_both_windows() {
        let mut c = compound(100, 60.0);
        c.on_feedback(&loss(160));
        assert!((c.cwnd() - 50.0).abs() < 0.01 && (c.win() - 80.0).abs() < 0.01);
        c.on_feedback(&Feedback {
            undo: true,
            ..feedback(Time::ZERO)
        });
        assert_eq!((c.cwnd(), c.dwnd), (100.0, 60.0));
        // With a smaller beta dwnd gets what cwnd loses.
        let mut c = compound(100, 60.0);
        c.beta = 0.25;
        c.on_feedback(&loss(160));
        assert!((c.cwnd() - 50.0).abs() < 0.01 && (c.win() - 120.0).abs() < 0.01);
    }

    /// `cwnd` grows by a packet when `win` packets are acknowledged, not `cwnd`.
    #[test]
    fn cwnd_grows_by_a_packet_a_round_trip() {
        let mut c = compound(100, 100.0);
        let acked = Feedback {
            acked_bytes: MSS,
            largest_acked: 50,
            ..feedback(Time::ZERO)
        };
        (0..199).for_each(|_| c.on_feedback(&acked));
        assert_eq!(c.cwnd(), 100.0);
        (0..2).for_each(|_| c.on_feedback(&acked));
        assert_eq!(c.cwnd(), 101.0);
    }

    /// Three quarters of `cwnd`'s 8 packets in the queue, averaged with gamma's 30, are 18. The
    /// minimum is five.
    #[test]
    fn gamma_follows_the_queue_at_a_loss() {
        let mut c = compound(100, 60.0);
        round(&mut c, 100.0 / 0.92);
        c.on_feedback(&loss(160));
        assert!((c.gamma - 18.0).abs() < 1e-6, "{}", c.gamma);
        c.on_feedback(&loss(80));
        assert!((c.gamma - 18.0).abs() < 1e-6, "a sample serves once");
        c.diff_reno = Some(-20.0);
        c.on_feedback(&loss(40));
        assert_eq!(c.gamma, 5.0);
        let mut fixed = compound(100, 60.0);
        fixed.tuning = false;
        round(&mut fixed, 100.0 / 0.92);
        fixed.on_feedback(&loss(160));
        assert_eq!(fixed.gamma, 30.0);
    }

    #[test]
    fn a_timeout_resets_both_windows() {
        let mut c = compound(100, 60.0);
        c.gamma = 7.0;
        c.smoothed_rtt = BASE * 2;
        c.on_rto(&rto(Time::ZERO, 160, 1));
        assert_eq!((c.win(), c.gamma, c.base_rtt), (1.0, 30.0, BASE * 2));
        assert_eq!(c.reno.ssthresh, MSS * 80);
    }

    /// algorithms.md §3: with less than 38 packets in flight Compound equals NewReno, window for
    /// window.
    #[test]
    fn on_a_short_path_compound_equals_newreno() {
        let run = |scheme: &str, mbps: f64, buffer: u64| {
            let rate = Rate::from_mbps(mbps);
            let mut link = Link::new(&select(scheme), rate, BASE, buffer);
            let window = |_| {
                link.run(Duration::from_millis(50));
                link.host.cc.control().cwnd
            };
            (0..1200).map(window).collect::<Vec<_>>()
        };
        let (compound, reno) = (run("compound", 3.0, 10), run("newreno", 3.0, 10));
        assert_eq!(compound, reno);
        assert!(reno.windows(2).any(|w| w[1] < w[0]), "nothing was lost");
        assert_ne!(run("compound", 30.0, 100), run("newreno", 30.0, 100));
    }
}
