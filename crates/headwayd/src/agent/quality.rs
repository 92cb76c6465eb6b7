//! Compares a learner's flow with the guard's own Cubic. Other flows start only from what good
//! flows have learned.

use std::collections::VecDeque;

use headway_cc::{Duration, Time};
use headway_fixed::{Carried, Guard, Limits};
use headway_policy::Record;
use zerocopy::transmute_ref;

/// Seconds that ended earlier are not judged.
const MINUTE: Duration = Duration::from_secs(60);
/// A flow with fewer judged seconds is not good.
const LEAST_SECONDS: i64 = 10;

/// Judges the last minute of a flow, by what its path has carried since the flow began.
#[derive(Debug)]
pub struct Quality {
    limits: Limits,
    /// A guard whose Cubic sees what the flow sees.
    guard: Guard,
    /// The record that began the present second.
    begun: Record,
    /// In the present second the application or receiver limited the flow, or it was in fallback.
    is_excused: bool,
    /// What the path has carried over the whole flow, in fallback too.
    path: Carried,
    /// The seconds of the last minute in which only the path limited the flow.
    seconds: VecDeque<Second>,
    /// When the flow was last in fallback.
    tripped: Option<Time>,
}

/// A judged second. Utilities are in 1/65536.
#[derive(Clone, Copy, Debug)]
struct Second {
    end: Time,
    /// The flow's utility minus Cubic's.
    lead: i64,
    /// The flow's utility.
    own: i64,
}

impl Quality {
    /// The quality of a flow with this first record.
    pub fn new(first: &Record) -> Quality {
        Quality {
            limits: Limits::default(),
            guard: Guard::new(first.now_ns, first.cwnd, 0),
            begun: *first,
            is_excused: false,
            path: Carried {
                peak: 1,
                least_us: u32::MAX,
                longest_us: 0,
                has_lost: false,
            },
            seconds: VecDeque::new(),
            tripped: None,
        }
    }

    /// Takes a record of the flow.
    pub fn on_record(&mut self, record: &Record) {
        self.guard.judge(&self.limits, transmute_ref!(record));
        if record.has(Record::TRIPPED) {
            self.tripped = Some(record.now());
            self.seconds.clear();
        }
        let excuses = Record::TRIPPED | Record::APP_LIMITED | Record::RWND_LIMITED;
        self.is_excused |= record.flags & excuses != 0;
        let length = record.now().since(self.begun.now());
        if length >= Duration::from_secs(1) {
            if record.min_rtt_us > 0 {
                self.close(record, length);
            }
            (self.begun, self.is_excused) = (*record, false);
        }
    }

    /// Compares a second with Cubic's window, by what the path has carried over the whole flow: a
    /// flow may starve for longer than the guard looks back.
    fn close(&mut self, record: &Record, length: Duration) {
        let delivered = record.delivered.wrapping_sub(self.begun.delivered);
        let own = u64::from(delivered) * 256_000_000 / (length.as_nanos() / 1000);
        let path = &mut self.path;
        path.peak = path.peak.max(own);
        path.least_us = path.least_us.min(record.min_rtt_us);
        path.longest_us = path.longest_us.max(record.srtt_us);
        let (lost, marked) = (self.begun.lost, self.begun.delivered_ce);
        path.has_lost |= (record.lost, record.delivered_ce) != (lost, marked);
        if self.is_excused {
            return;
        }
        let own = (self.limits).utility(own, record.srtt_us, path.least_us);
        let second = Second {
            end: record.now(),
            lead: own - self.guard.cubic_utility(&self.limits, path),
            own,
        };
        self.seconds.push_back(second);
        (self.seconds).retain(|second| record.now().since(second.end) < MINUTE);
    }

    /// How good the flow was over the last minute, if other flows may start from what it has
    /// learned: its mean utility minus that of the largest throughput that it has ever had, at its
    /// minimum RTT, in 1/65536. 0 is best. A flow that never found how much its path carries has
    /// nothing larger to be compared with. It is `None` if the flow was in fallback
    /// within the last minute, if too few seconds were judged since, or if its mean utility was
    /// below Cubic's by more than a quarter of the guard's margin. A quarter, because means vary
    /// less than the guard's epochs.
    ///
    /// Flows are not compared by their leads over Cubic. Cubic's utility depends on the longest RTT
    /// that each flow has seen, so flows that once filled a queue would lead by most.
    pub fn score(&self, now: Time) -> Option<i64> {
        let is_calm = self.tripped.is_none_or(|at| now.since(at) >= MINUTE);
        let (mut count, mut lead, mut own) = (0, 0, 0);
        for second in &self.seconds {
            if now.since(second.end) < MINUTE {
                count += 1;
                lead += second.lead;
                own += second.own;
            }
        }
        let least = -i64::from(self.limits.margin / 4);
        let is_good = is_calm && count >= LEAST_SECONDS && lead >= least * count;
        let Carried { peak, least_us, .. } = self.path;
        is_good.then(|| own / count - self.limits.utility(peak, least_us, least_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow with a minimum RTT of 20 ms. An acknowledgement arrives every 10 ms.
    #[derive(Default)]
    struct Run {
        quality: Option<Quality>,
        now_ns: u64,
        delivered: u64,
    }

    impl Run {
        /// The flow delivers `rate` packets per second at a smoothed RTT of `srtt_ms`, for
        /// `seconds`.
        fn goes_on(&mut self, seconds: u64, rate: u64, srtt_ms: u32, flags: u32) {
            for _ in 0..seconds * 100 {
                self.now_ns += 10_000_000;
                self.delivered += rate / 100;
                let window = (rate * u64::from(srtt_ms) / 1000) as u32;
                let record = Record {
                    now_ns: self.now_ns,
                    delivered: self.delivered as u32,
                    in_flight: window,
                    cwnd: window,
                    mss: 1500,
                    rtt_us: srtt_ms * 1000,
                    srtt_us: srtt_ms * 1000,
                    min_rtt_us: 20_000,
                    acks: 1,
                    flags,
                    ..Record::default()
                };
                let quality = self.quality.get_or_insert_with(|| Quality::new(&record));
                quality.on_record(&record);
            }
        }

        fn is_good(&self) -> bool {
            let now = Time::from_nanos(self.now_ns);
            let quality = self.quality.as_ref().expect("it has begun");
            quality.score(now).is_some()
        }
    }

    #[test]
    fn a_flow_that_fills_its_path_with_a_short_queue_is_good() {
        let mut run = Run::default();
        run.goes_on(90, 1000, 22, 0);
        assert!(run.is_good());
    }

    /// Cubic's window grows with each acknowledgement, and the flow's does not.
    #[test]
    fn a_flow_that_leaves_its_path_unused_is_not_good() {
        let mut run = Run::default();
        run.goes_on(20, 1000, 22, 0);
        run.goes_on(50, 100, 20, 0);
        assert!(!run.is_good());
        // That holds however long it does so, because what its path carries is known.
        run.goes_on(600, 100, 20, 0);
        assert!(!run.is_good());
        // It has another minute to show that it has learned better.
        run.goes_on(61, 1000, 22, 0);
        assert!(run.is_good());
    }

    /// Any sender has ten packets in its first round trip, which are 500 a second.
    #[test]
    fn a_flow_that_has_starved_since_it_began_is_not_good() {
        let mut run = Run::default();
        run.goes_on(120, 100, 20, 0);
        assert!(!run.is_good());
        // If the RTT shows a queue, the path carries no more.
        let mut run = Run::default();
        run.goes_on(120, 100, 100, 0);
        assert!(run.is_good());
    }

    #[test]
    fn a_flow_that_was_judged_for_less_than_ten_seconds_is_not_good() {
        let mut run = Run::default();
        run.goes_on(9, 1000, 22, 0);
        assert!(!run.is_good());
        run.goes_on(2, 1000, 22, 0);
        assert!(run.is_good());
        let mut run = Run::default();
        run.goes_on(60, 1000, 22, Record::APP_LIMITED);
        assert!(!run.is_good());
    }

    #[test]
    fn a_flow_is_not_good_within_a_minute_of_a_trip() {
        let mut run = Run::default();
        run.goes_on(30, 1000, 22, 0);
        assert!(run.is_good());
        run.goes_on(10, 1000, 22, Record::TRIPPED);
        assert!(!run.is_good());
        run.goes_on(59, 1000, 22, 0);
        assert!(!run.is_good());
        run.goes_on(2, 1000, 22, 0);
        assert!(run.is_good());
    }

    /// The policy is not to blame for what the application does not send. But what it has learned
    /// in a silent minute was not judged either.
    #[test]
    fn application_limited_seconds_are_not_judged() {
        let mut run = Run::default();
        run.goes_on(20, 1000, 22, 0);
        run.goes_on(40, 100, 20, Record::APP_LIMITED);
        assert!(run.is_good());
        run.goes_on(30, 100, 20, Record::APP_LIMITED);
        assert!(!run.is_good());
    }

    /// The utility is the binary logarithm of the delivery rate, with the same queue.
    #[test]
    fn a_good_flow_is_at_most_half_a_unit_of_utility_below_cubic() {
        // The rates are below the first by 0, 0.4 and 0.6.
        for (rate, is_good) in [(10_000, true), (7600, true), (6600, false)] {
            let mut run = Run::default();
            run.goes_on(10, 10_000, 22, 0);
            run.goes_on(70, rate, 22, 0);
            assert_eq!(run.is_good(), is_good, "{rate}");
        }
    }

    /// A unit is a doubling of the throughput. How much the path carries does not matter.
    #[test]
    fn the_score_is_the_distance_to_the_paths_throughput_at_its_minimum_rtt() {
        for full in [800, 8000] {
            let scored = |rate, srtt_ms| {
                let mut run = Run::default();
                run.goes_on(10, full, 20, 0);
                run.goes_on(70, rate, srtt_ms, 0);
                let quality = run.quality.expect("it has begun");
                let score = quality.score(Time::from_nanos(run.now_ns));
                score.expect("it is good") as f64 / 65_536.0
            };
            assert!(scored(full, 20).abs() < 0.01);
            // The binary logarithm of three quarters.
            assert!((scored(full * 3 / 4, 20) + 0.415).abs() < 0.01);
            assert!(scored(full, 30) < -0.1, "a queue costs utility");
        }
    }

    /// The throughput rises for a minute, and all of the minute is compared with its end.
    #[test]
    fn the_score_of_a_minute_counts_what_the_flow_found_later() {
        let mut run = Run::default();
        for second in 1..=50 {
            run.goes_on(1, 100 * second, 20, 0);
        }
        let quality = run.quality.expect("it has begun");
        let score = quality.score(Time::from_nanos(run.now_ns));
        // Below full throughput by 1.4 doublings on average, as the sum of the logarithms gives.
        let score = score.expect("it is good") as f64 / 65_536.0;
        assert!((score + 1.4).abs() < 0.1, "{score}");
    }
}
