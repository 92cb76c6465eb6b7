//! Vegas: keeps a few packets of its own in the bottleneck's queue (Brakmo and Peterson 1995).
//!
//! It uses Brakmo's rule with the round trips of Linux (`tcp_vegas.c`) and ns-3 (`tcp-vegas.cc`):
//! the window is judged once a round trip by the minimum RTT of that round trip. Loss, timeouts and
//! idleness are NewReno's, as there. Where the three differ, a comment at the rule says so. Windows
//! here are real numbers of packets, so a difference of 4.76 is neither Linux's 4 nor ns-3's 5.

use crate::{
    CongestionControl, Control, Duration, EcnUse, Family, Feedback, Kind, Param, Probe, Recovery,
    RoundCounter, Rto, Scheme, Setup, Time, Values,
};

use super::newreno::NewReno;

const fn packets(name: &'static str, help: &'static str, default: f64) -> Param {
    Param {
        name,
        help,
        kind: Kind::Number {
            default,
            min: 0.0,
            max: 1000.0,
        },
    }
}
const ALPHA: Param = packets(
    "alpha",
    "packets in the queue below which the window grows",
    2.0,
);
const BETA: Param = packets(
    "beta",
    "packets in the queue above which the window shrinks; alpha or more",
    4.0,
);
const GAMMA: Param = packets("gamma", "with more than this slow start ends", 1.0);

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "vegas",
    family: Family::Delay,
    summary: "keeps two to four packets in the queue",
    source: "Brakmo and Peterson 1995; Linux tcp_vegas.c, ns-3 tcp-vegas.cc",
    deviations: &[
        "The transport detects losses, not the paper's finer timers.",
        "Slow start doubles every round trip, as in Linux and ns-3, not every other.",
        "At the end of slow start the queue is drained at once, as in Linux and ns-3, not by an eighth of the window.",
        "Windows are real numbers of packets. Linux rounds the difference down to whole packets, ns-3 rounds it up.",
    ],
    needs: &[],
    params: &[ALPHA, BETA, GAMMA],
    build: |setup, values| Box::new(Vegas::new(setup, values)),
    receiver: None,
    router: None,
};

/// The state of one Vegas flow.
#[derive(Debug)]
pub struct Vegas {
    /// NewReno, which holds the window and does what Vegas does not change.
    reno: NewReno,
    mss: f64,
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// The minimum RTT of the flow, an estimate of the path without a queue.
    base_rtt: Duration,
    rounds: RoundCounter,
    /// The minimum RTT of this round, and the number of samples.
    min_rtt: Duration,
    samples: u32,
    /// False during loss recovery, whose round trips do not count.
    judging: bool,
}

impl Vegas {
    /// As in Linux and ns-3, two samples may both be of delayed acknowledgements.
    const MIN_SAMPLES: u32 = 3;
    /// As in Linux, an RTT is a divisor and must not be zero.
    const SMALLEST_RTT: Duration = Duration::from_nanos(1);
    /// The minimum window, as in Linux and ns-3.
    const MIN_CWND: f64 = 2.0;

    /// A flow at its initial window, in slow start.
    pub fn new(setup: &Setup, values: &Values) -> Vegas {
        Vegas {
            reno: NewReno::new(setup, EcnUse::Off),
            mss: setup.mss.as_f64(),
            alpha: values.number(&ALPHA),
            beta: values.number(&BETA),
            gamma: values.number(&GAMMA),
            base_rtt: Duration::MAX,
            rounds: RoundCounter::default(),
            min_rtt: Duration::MAX,
            samples: 0,
            judging: true,
        }
    }

    /// The packets of this flow in the queue: what the window exceeds rate times base RTT by. This
    /// is Brakmo's and ns-3's `diff`. Linux's is larger by min/base, since it counts from the
    /// expected rate.
    fn queued(&self, cwnd: f64) -> f64 {
        cwnd - self.target(cwnd)
    }

    /// The window that has the same rate without a queue.
    fn target(&self, cwnd: f64) -> f64 {
        cwnd * self.base_rtt.as_secs_f64() / self.min_rtt.as_secs_f64()
    }

    /// A round trip is over.
    fn judge(&mut self, f: &Feedback<'_>) {
        let cwnd = self.reno.cwnd.as_f64() / self.mss;
        let queued = self.queued(cwnd);
        let slow_start = self.reno.cwnd < self.reno.ssthresh;
        let (next, ends_slow_start) = if slow_start && queued > self.gamma {
            // As in Linux and ns-3, so that the queue drains at once. Brakmo lowers the window by
            // an eighth.
            (cwnd.min(self.target(cwnd) + 1.0), true)
        } else if slow_start {
            // Linux and ns-3 double the window every round trip, Brakmo every other one.
            return self.reno.on_feedback(f);
        } else if queued > self.beta {
            (cwnd - 1.0, true)
        } else if queued < self.alpha && f.cwnd_limited {
            (cwnd + 1.0, false)
        } else {
            (cwnd, false)
        };
        let next = next.max(Self::MIN_CWND);
        // As in Linux and ns-3: neither a decrease nor the end of slow start leads back into slow
        // start, even if the window stays the same, and ssthresh follows the window.
        let bytes = |packets: f64| crate::Bytes::from_f64(packets * self.mss);
        let mut ssthresh = self.reno.ssthresh;
        if ends_slow_start {
            ssthresh = ssthresh.min(bytes(next - 1.0));
        }
        let ssthresh = ssthresh.max(bytes(0.75 * next));
        (self.reno.cwnd, self.reno.ssthresh) = (bytes(next), ssthresh);
    }

    fn begin_round(&mut self) {
        (self.min_rtt, self.samples) = (Duration::MAX, 0);
    }

    /// Earlier measurements do not fit the current window, so it waits for a whole round trip.
    fn restart(&mut self, next_number: u64) {
        self.rounds.restart(next_number);
        self.begin_round();
    }
}

impl CongestionControl for Vegas {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if let Some(rtt) = f.rtt {
            let rtt = rtt.max(Self::SMALLEST_RTT);
            self.base_rtt = self.base_rtt.min(rtt);
            self.min_rtt = self.min_rtt.min(rtt);
            self.samples += 1;
        }
        if f.recovery != Recovery::Open || f.congestion.is_some() || f.undo {
            self.judging = false;
            return self.reno.on_feedback(f);
        }
        if !self.judging {
            self.judging = true;
            self.restart(f.next_number);
        }
        if self.rounds.on_feedback(f) {
            if self.samples >= Self::MIN_SAMPLES {
                self.judge(f);
            } else {
                self.reno.on_feedback(f);
            }
            self.begin_round();
        } else if self.reno.cwnd < self.reno.ssthresh {
            self.reno.on_feedback(f);
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.judging = false;
        self.reno.on_rto(rto);
    }

    /// ns-3 and Brakmo keep the base RTT over a silence, Linux drops it.
    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.judging = false;
        self.reno.on_idle(now, idle);
    }

    fn control(&self) -> Control {
        self.reno.control()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.reno.probe(probe);
        if self.base_rtt < Duration::MAX {
            probe.value("base_rtt_ms", self.base_rtt.as_millis_f64());
        }
        if self.samples > 0 {
            let cwnd = self.reno.cwnd.as_f64() / self.mss;
            probe.value("queued_packets", self.queued(cwnd));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, MSS, feedback, rto, select, setup};
    use crate::{Congestion, Rate};

    const BASE: Duration = Duration::from_millis(120);

    /// A flow with a window of `cwnd` packets, in congestion avoidance or in slow start. It has
    /// seen the base RTT, and is at the beginning of a round.
    fn vegas(cwnd: u64, slow_start: bool) -> Vegas {
        let mut vegas = Vegas::new(&setup(), &Values::defaults(SCHEME.params));
        vegas.base_rtt = BASE;
        vegas.reno.cwnd = MSS * cwnd;
        if !slow_start {
            vegas.reno.ssthresh = MSS * cwnd;
        }
        vegas.restart(100);
        vegas
    }

    /// A round of `samples` acknowledgements with this RTT. The last one ends it.
    fn round(vegas: &mut Vegas, samples: u64, rtt: Duration) {
        for i in 1..=samples {
            vegas.on_feedback(&Feedback {
                rtt: Some(rtt),
                acked_bytes: MSS,
                largest_acked: if i == samples { 100 } else { 99 },
                next_number: 200,
                ..feedback(Time::ZERO)
            });
        }
    }

    fn packets(vegas: &Vegas) -> f64 {
        vegas.control().cwnd.as_f64() / MSS.as_f64()
    }

    /// By hand: 100 packets are 96, 95.2 and 98.4 at the base RTT.
    #[test]
    fn the_window_keeps_alpha_to_beta_packets_in_the_queue() {
        for (rtt_ms, after) in [(125, 100.0), (126, 99.0), (122, 101.0), (120, 101.0)] {
            let mut vegas = vegas(100, false);
            round(&mut vegas, 10, Duration::from_millis(rtt_ms));
            assert_eq!(packets(&vegas), after, "{rtt_ms} ms");
        }
    }

    /// The minimum RTT of the round counts, and not the last.
    #[test]
    fn jitter_is_not_a_queue() {
        let mut vegas = vegas(100, false);
        vegas.on_feedback(&Feedback {
            rtt: Some(Duration::from_millis(121)),
            ..feedback(Time::ZERO)
        });
        round(&mut vegas, 10, Duration::from_millis(150));
        assert_eq!(packets(&vegas), 101.0);
    }

    /// 100 packets at 125 ms are a rate of 96 a base RTT. One packet more than that is left, and
    /// slow start ends.
    #[test]
    fn slow_start_ends_with_gamma_packets_in_the_queue() {
        let mut leaves = vegas(100, true);
        round(&mut leaves, 3, Duration::from_millis(125));
        // Two acknowledgements grew the window to 102 before the round ended.
        assert!((packets(&leaves) - (102.0 * 120.0 / 125.0 + 1.0)).abs() < 1e-3);
        assert!(leaves.reno.ssthresh <= leaves.reno.cwnd);
        let mut stays = vegas(100, true);
        round(&mut stays, 10, Duration::from_millis(121));
        assert_eq!(packets(&stays), 110.0);
    }

    /// Half a packet waits, which is less than the packet by which the window may exceed its
    /// target.
    #[test]
    fn slow_start_also_ends_without_a_window_reduction() {
        for (gamma, stays) in [(0.0, false), (0.4, false), (0.6, true)] {
            let mut vegas = vegas(10, true);
            vegas.gamma = gamma;
            // Two acknowledgements grow the window to 12 packets first.
            round(&mut vegas, 3, BASE.mul_f64(12.0 / 11.5));
            assert_eq!(vegas.reno.cwnd < vegas.reno.ssthresh, stays, "{gamma}");
            assert_eq!(packets(&vegas), if stays { 13.0 } else { 12.0 });
        }
    }

    /// As in Linux and ns-3, a round with two samples or fewer is not judged, however long its RTT.
    /// Its last acknowledgement grows the window as Reno's does. The fourth packet completes a
    /// window.
    #[test]
    fn two_samples_are_not_enough() {
        let mut vegas = vegas(4, false);
        for after in [4.0, 4.0, 4.0, 5.0] {
            vegas.restart(100);
            round(&mut vegas, 2, Duration::from_millis(400));
            assert_eq!(packets(&vegas), after);
        }
        vegas.restart(100);
        round(&mut vegas, 3, Duration::from_secs(1));
        assert_eq!(packets(&vegas), 4.0, "three are");
    }

    #[test]
    fn the_window_stays_at_two_packets_or_more() {
        let mut vegas = vegas(2, false);
        vegas.beta = 0.5;
        round(&mut vegas, 3, Duration::from_millis(400));
        assert_eq!(packets(&vegas), 2.0);
    }

    /// A host with a coarse clock measures an RTT of zero.
    #[test]
    fn an_rtt_of_zero_means_no_queue() {
        let mut vegas = vegas(10, false);
        round(&mut vegas, 3, Duration::ZERO);
        assert_eq!(packets(&vegas), 11.0);
    }

    /// A loss reduces the window as in Reno, and earlier measurements are not used after it.
    #[test]
    fn a_loss_halves_the_window_once_per_round_trip() {
        let mut vegas = vegas(100, false);
        vegas.on_feedback(&Feedback {
            congestion: Some(Congestion::Loss),
            recovery: Recovery::Recovery,
            prior_in_flight: MSS * 100,
            ..feedback(Time::ZERO)
        });
        assert_eq!(packets(&vegas), 50.0);
        round(&mut vegas, 10, Duration::from_millis(200));
        assert_eq!(packets(&vegas), 50.0);
        vegas.on_rto(&rto(Time::ZERO, 50, 1));
        assert_eq!(packets(&vegas), 1.0);
    }

    /// algorithms.md §4: alone on 12 Mbit/s and 120 ms two to four packets wait, as many as
    /// milliseconds.
    #[test]
    fn two_to_four_packets_stay_queued_on_a_link() {
        let mut link = Link::new(&select("vegas"), Rate::from_mbps(12.0), BASE, 240);
        link.run(Duration::from_secs(60));
        for _ in 0..1000 {
            link.run(Duration::from_millis(7));
            // The packet in service does not count, since it is part of the base RTT.
            let waiting = link.queue() - 1.0;
            assert!((1.0..=4.0).contains(&waiting), "{waiting}");
        }
        assert!(link.utilisation(Duration::from_secs(10)) > 0.999);
    }
}
