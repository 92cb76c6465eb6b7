//! LEDBAT: a scavenger that keeps one target of queueing delay (RFC 6817).
//!
//! The receiver's arrival times give one-way delays. They do not depend on the way back, and an
//! offset between the clocks cancels out. What exceeds the minimum of the last minutes is the
//! queueing delay. Below the target the window grows by at most a packet a round trip, and above it
//! the window shrinks in proportion.

use crate::base_delay::BaseDelay;
use crate::{
    Bytes, CongestionControl, Control, Duration, Family, Feedback, Kind, Need, Param, Probe, Rto,
    Scheme, Setup, Time, Values,
};

const TARGET: Param = Param {
    name: "target",
    help: "the target queueing delay; RFC 6817 allows 100ms at most",
    kind: Kind::Time {
        default: Duration::from_millis(100),
        min: Duration::from_millis(1),
        max: Duration::from_secs(1),
    },
};
const GAIN: Param = Param {
    name: "gain",
    help: "packets by which the window grows each round trip without a queue",
    kind: Kind::Number {
        default: 1.0,
        min: 0.01,
        max: 1.0,
    },
};
const ALLOWED_INCREASE: Param = Param {
    name: "allowed_increase",
    help: "packets by which the window may exceed what is in flight",
    kind: Kind::Number {
        default: 1.0,
        min: 0.1,
        max: 100.0,
    },
};
const BASE_HISTORY: Param = Param {
    name: "base_history",
    help: "minutes whose minimum delay counts as the path's delay without a queue",
    kind: Kind::Count {
        default: 10,
        min: 1,
        max: 60,
    },
};
const CURRENT_FILTER: Param = Param {
    name: "current_filter",
    help: "number of newest delays whose minimum counts as the current delay",
    kind: Kind::Count {
        default: 4,
        min: 1,
        max: 64,
    },
};
const SLOW_START: Param = Param {
    name: "slow_start",
    help: "double the window each round trip until the queueing delay is nine tenths of the target, as libutp does",
    kind: Kind::Choice(&["off", "on"]),
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "ledbat",
    family: Family::Delay,
    summary: "a scavenger that aims at 100 ms of queueing delay and yields to others",
    source: "RFC 6817",
    deviations: &[
        "The newest delays are filtered by their minimum over four samples, as in ns-3; the RFC leaves the filter open.",
        "No slow start unless slow_start=on, because the RFC's algorithm has none. libutp and ns-3 have one.",
        "What is in flight bounds growth; the RFC also cuts the window down to it, which after a loss would undo that \
         a reduction for packets that were only late is taken back.",
    ],
    needs: &[Need::PerPacket, Need::ReceiverTime],
    params: &[
        TARGET,
        GAIN,
        ALLOWED_INCREASE,
        BASE_HISTORY,
        CURRENT_FILTER,
        SLOW_START,
    ],
    build: |setup, values| Box::new(Ledbat::new(setup, values)),
    receiver: None,
    router: None,
};

/// The state of one LEDBAT flow. Windows are in bytes. Delays are in nanoseconds on two clocks that
/// differ.
#[derive(Debug)]
pub struct Ledbat {
    mss: f64,
    target: f64,
    gain: f64,
    allowed_increase: f64,
    cwnd: f64,
    /// The window doubles below this; zero without slow start.
    ssthresh: f64,
    slow_start: bool,
    /// The window before the last reduction, for [`Feedback::undo`].
    undo: Option<f64>,
    base_delay: BaseDelay,
    current_delays: CurrentDelays,
    /// The last queueing delay.
    queuing_delay: f64,
}

impl Ledbat {
    /// RFC 6817 §2.4.2: `INIT_CWND` and `MIN_CWND` should both be two packets.
    const INIT_CWND: f64 = 2.0;
    const MIN_CWND: f64 = 2.0;
    /// As in libutp, slow start ends when this share of the target is in the queue.
    const SLOW_START_TARGET: f64 = 0.9;

    /// A flow at its initial window.
    pub fn new(setup: &Setup, values: &Values) -> Ledbat {
        let mss = setup.mss.as_f64();
        let slow_start = values.choice(&SLOW_START) == "on";
        Ledbat {
            mss,
            target: values.time(&TARGET).as_nanos() as f64,
            gain: values.number(&GAIN),
            allowed_increase: values.number(&ALLOWED_INCREASE),
            cwnd: Self::INIT_CWND * mss,
            ssthresh: if slow_start { f64::INFINITY } else { 0.0 },
            slow_start,
            undo: None,
            base_delay: BaseDelay::new(values.count(&BASE_HISTORY) as usize),
            current_delays: CurrentDelays::new(values.count(&CURRENT_FILTER) as usize),
            queuing_delay: 0.0,
        }
    }

    /// RFC 6817 §2.4.2, "on acknowledgement": every delay sample, then `queuing_delay`.
    fn measure(&mut self, f: &Feedback<'_>) {
        for packet in f.acked {
            let Some(received) = packet.received else {
                continue;
            };
            let delay = (received.as_nanos() as i64).wrapping_sub(packet.sent.as_nanos() as i64);
            self.base_delay.update(f.now, delay);
            self.current_delays.update(f.now, delay);
        }
        if let Some(current) = self.current_delays.filter(f.now, f.rtt_stats.smoothed) {
            let queuing_delay = current.saturating_sub(self.base_delay.min());
            self.queuing_delay = queuing_delay.max(0) as f64;
        }
    }

    /// `off_target`: 1 without a queue, 0 at the target, negative above.
    fn off_target(&self) -> f64 {
        (self.target - self.queuing_delay) / self.target
    }

    /// RFC 6817 §2.4.2: GAIN * off_target * bytes_newly_acked * MSS / cwnd, bounded by the flight
    /// before this acknowledgement.
    fn adjust(&mut self, acked: f64, flight: f64) {
        if self.queuing_delay > Self::SLOW_START_TARGET * self.target {
            self.ssthresh = self.ssthresh.min(self.cwnd);
        }
        let change = if self.cwnd < self.ssthresh {
            acked
        } else {
            self.gain * self.off_target() * acked * self.mss / self.cwnd
        };
        let max_allowed_cwnd = flight + self.allowed_increase * self.mss;
        // A window that was already above the bound stays, because the flight is also small after a
        // loss.
        self.cwnd = (self.cwnd + change)
            .min(max_allowed_cwnd.max(self.cwnd))
            .max(Self::MIN_CWND * self.mss);
    }

    /// RFC 6817 §2.4.2, "on data loss", at most once a round trip.
    fn reduce(&mut self) {
        self.undo = Some(self.cwnd);
        let half = (self.cwnd / 2.0).max(Self::MIN_CWND * self.mss);
        self.cwnd = self.cwnd.min(half);
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }
}

impl CongestionControl for Ledbat {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.measure(f);
        if f.undo
            && let Some(before) = self.undo.take()
        {
            self.cwnd = self.cwnd.max(before);
        }
        if f.congestion.is_some() {
            self.reduce();
        } else if f.acked_bytes > Bytes::ZERO {
            self.adjust(f.acked_bytes.as_f64(), f.prior_in_flight.as_f64());
        }
    }

    /// RFC 6817 §2.4.2: no acknowledgement within the congestion timeout.
    fn on_rto(&mut self, rto: &Rto<'_>) {
        if rto.consecutive == 1 {
            self.undo = Some(self.cwnd);
            self.ssthresh = if self.slow_start {
                self.cwnd / 2.0
            } else {
                0.0
            };
        }
        self.cwnd = self.mss;
    }

    fn control(&self) -> Control {
        Control::window(Bytes::from_f64(self.cwnd))
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("queuing_delay_ms", self.queuing_delay / 1e6);
        probe.value("off_target", self.off_target());
    }
}

/// `current_delays`: the newest samples with their times.
#[derive(Debug)]
struct CurrentDelays {
    samples: Vec<(Time, i64)>,
    next: usize,
    size: usize,
}

impl CurrentDelays {
    fn new(size: usize) -> CurrentDelays {
        CurrentDelays {
            samples: Vec::with_capacity(size),
            next: 0,
            size,
        }
    }

    fn update(&mut self, now: Time, delay: i64) {
        if self.samples.len() < self.size {
            self.samples.push((now, delay));
        } else {
            self.samples[self.next] = (now, delay);
        }
        self.next = (self.next + 1) % self.size;
    }

    /// `FILTER`: the minimum. RFC 6817 §2.4.2: no sample is older than a round trip.
    fn filter(&self, now: Time, rtt: Duration) -> Option<i64> {
        let recent = self.samples.iter().filter(|s| now.since(s.0) <= rtt);
        recent.map(|s| s.1).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, feedback, rto, select, setup};
    use crate::{Acked, Congestion, Ecn, Tag};

    fn ledbat(spec: &str, cwnd: f64) -> Ledbat {
        let mut ledbat = Ledbat::new(&setup(), &select(spec).values);
        ledbat.cwnd = cwnd * ledbat.mss;
        ledbat
    }

    /// A packet is acknowledged at `at_ms` that took `delay_ms`, on clocks that are an hour apart.
    fn arrive(ledbat: &mut Ledbat, at_ms: u64, delay_ms: u64) {
        let now = Time::from_millis(at_ms);
        let acked = [Acked {
            number: 0,
            size: MSS,
            sent: Time::from_millis(at_ms + 3_600_000),
            received: Some(Time::from_millis(at_ms + delay_ms)),
            tag: Tag::NONE,
            ecn: Ecn::NotEct,
            echo: 0.0,
        }];
        let full = ledbat.control().cwnd;
        ledbat.on_feedback(&Feedback {
            acked: &acked,
            acked_bytes: MSS,
            prior_in_flight: full,
            ..feedback(now)
        });
    }

    fn packets(ledbat: &Ledbat) -> f64 {
        ledbat.cwnd / ledbat.mss
    }

    /// algorithms.md §14.5: 50 ms of 100 ms are an off_target of 0.5. A packet acknowledged at a
    /// window of a hundred grows it by 0.005. The window is constant at the target, and shrinks at
    /// twice the target.
    #[test]
    fn the_window_follows_the_distance_from_the_target() {
        for (queue_ms, change) in [
            (0, 0.01),
            (50, 0.005),
            (100, 0.0),
            (200, -0.01),
            (300, -0.02),
        ] {
            let mut ledbat = ledbat("ledbat:current_filter=1", 100.0);
            ledbat.measure_base(1_000);
            arrive(&mut ledbat, 1_000, 20 + queue_ms);
            let grown = packets(&ledbat) - 100.0;
            assert!((grown - change).abs() < 1e-9, "{queue_ms} ms: {grown}");
        }
    }

    impl Ledbat {
        /// The path takes 20 ms without a queue.
        fn measure_base(&mut self, at_ms: u64) {
            let delay = 20_000_000 - 3_600_000_000_000;
            self.base_delay.update(Time::from_millis(at_ms), delay);
        }
    }

    /// GAIN scales the growth. A window that is not in flight does not grow beyond
    /// ALLOWED_INCREASE.
    #[test]
    fn growth_is_bounded_by_gain_and_by_the_flight() {
        let mut slow = ledbat("ledbat:gain=0.25", 100.0);
        arrive(&mut slow, 0, 20);
        assert!((packets(&slow) - 100.0025).abs() < 1e-9);
        for (spec, cwnd, most) in [
            ("ledbat", 10.99, 11.0),
            ("ledbat:allowed_increase=3", 12.99, 13.0),
            ("ledbat", 100.0, 100.0),
        ] {
            let mut unused = ledbat(spec, cwnd);
            unused.on_feedback(&Feedback {
                acked_bytes: MSS,
                prior_in_flight: MSS * 10,
                ..feedback(Time::ZERO)
            });
            assert_eq!(packets(&unused), most);
        }
    }

    /// The minimum of CURRENT_FILTER samples counts, and none is older than a round trip.
    #[test]
    fn a_single_late_packet_is_not_a_queue() {
        let mut ledbat = ledbat("ledbat", 100.0);
        for (at, delay_ms, queue_ms) in [
            (0, 20, 0.0),
            (10, 220, 0.0),
            (20, 120, 0.0),
            (30, 320, 0.0),
            (40, 320, 100.0),
            // The RTT is 100 ms, so only the newest of the four is left.
            (200, 220, 200.0),
        ] {
            arrive(&mut ledbat, at, delay_ms);
            assert_eq!(ledbat.queuing_delay / 1e6, queue_ms, "{at} ms");
        }
    }

    /// BASE_HISTORY minutes count: a path that got longer looks like a queue until the old minutes
    /// are forgotten.
    #[test]
    fn the_base_delay_covers_the_last_minutes() {
        let mut ledbat = ledbat("ledbat:base_history=2:current_filter=1", 100.0);
        for (minute, delay_ms, queue_ms) in [
            (0, 20, 0.0),
            (1, 50, 30.0),
            (1, 60, 40.0),
            (2, 60, 10.0),
            // Minutes without a sample are not in the list.
            (9, 60, 0.0),
        ] {
            arrive(&mut ledbat, minute * 60_000 + delay_ms, delay_ms);
            assert_eq!(ledbat.queuing_delay / 1e6, queue_ms, "minute {minute}");
        }
    }

    /// RFC 6817 §2.4.2: INIT_CWND, MIN_CWND, half of the window on loss, one packet after a
    /// timeout.
    #[test]
    fn a_loss_halves_the_window_to_two_packets_at_least() {
        let init = Ledbat::new(&setup(), &select("ledbat").values);
        assert_eq!(init.control().cwnd, MSS * 2);
        let loss = Feedback {
            congestion: Some(Congestion::Loss),
            ..feedback(Time::ZERO)
        };
        for (cwnd, after) in [(100.0, 50.0), (3.0, 2.0), (1.0, 1.0)] {
            let mut ledbat = ledbat("ledbat", cwnd);
            ledbat.on_feedback(&loss);
            assert_eq!(packets(&ledbat), after);
        }
        let mut ledbat = ledbat("ledbat", 100.0);
        ledbat.on_rto(&rto(Time::ZERO, 100, 1));
        assert_eq!(packets(&ledbat), 1.0);
        arrive(&mut ledbat, 0, 20);
        assert_eq!(packets(&ledbat), 2.0);
    }

    /// The late packet is itself acknowledged, while half a window is in flight.
    #[test]
    fn a_spurious_reduction_is_undone() {
        let mut ledbat = ledbat("ledbat", 100.0);
        ledbat.reduce();
        ledbat.on_feedback(&Feedback {
            undo: true,
            acked_bytes: MSS,
            prior_in_flight: MSS * 50,
            ..feedback(Time::ZERO)
        });
        assert_eq!(packets(&ledbat), 100.0);
    }

    /// As in libutp, each acknowledged packet adds a packet until nine tenths of the target are in
    /// the queue.
    #[test]
    fn slow_start_ends_before_the_target() {
        let mut ledbat = ledbat("ledbat:slow_start=on:current_filter=1", 10.0);
        arrive(&mut ledbat, 0, 20);
        arrive(&mut ledbat, 1, 109);
        assert_eq!(packets(&ledbat), 12.0);
        arrive(&mut ledbat, 2, 111);
        assert!((packets(&ledbat) - (12.0 + 0.09 / 12.0)).abs() < 1e-9);
        arrive(&mut ledbat, 3, 20);
        assert!(packets(&ledbat) < 12.2, "it does not come back");
        ledbat.on_rto(&rto(Time::ZERO, 12, 1));
        (4..8).for_each(|at| arrive(&mut ledbat, at, 20));
        assert!((packets(&ledbat) - 5.0).abs() < 1e-9);
    }
}
