//! Compares a flow's path with the paths that its model was trained on.

use std::collections::VecDeque;

use headway_cc::{Duration, Time};
use headway_policy::Record;
use headway_policy::model::TrainingRange;

/// What a flow measures may be off by this share.
const SLACK: f64 = 0.1;
/// The time between two checks of a path.
const SECOND: Duration = Duration::from_secs(1);
/// The time over which a flow's rate is averaged. A card's range averages the rates of traces over
/// the same time.
const RATES_OVER: Duration = Duration::from_secs(10);
/// A path that was outside counts as outside for this time.
const KEEPS: Duration = Duration::from_secs(10);
/// The time that a policy has to drain Cubic's queue, after it has taken a flow from Cubic.
const DRAINS: Duration = Duration::from_secs(10);

/// The property of a path that is outside the training range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// Its rate.
    Rate,
    /// Its minimum RTT.
    Rtt,
    /// The queueing delay, which is longer than the full queues of the training.
    Buffer,
}

impl Outside {
    /// The property in one word.
    pub fn name(self) -> &'static str {
        match self {
            Outside::Rate => "rate",
            Outside::Rtt => "rtt",
            Outside::Buffer => "buffer",
        }
    }
}

/// Compares a flow's path with the training range of its model, once a second. The rate is the
/// flow's own, so a flow that shares its slowest link may be below the range. The queueing delay is
/// judged only while the policy has the flow, because Cubic fills any queue. Loss is not judged,
/// because a sender cannot tell random loss from that of a full queue.
#[derive(Debug)]
pub struct PathWatch {
    range: TrainingRange,
    /// One mark a second. The oldest one is ten seconds old, or the flow's first.
    marks: VecDeque<Mark>,
    /// In the present second the application or the receiver limited the flow, or it is the flow's
    /// first second.
    is_excused: bool,
    /// From this time on the policy, and not Cubic, has made the queue.
    fills_from: Time,
    has_judged: bool,
    /// The property that was outside last, and until when that counts.
    outside: Option<(Outside, Time)>,
}

/// How much a flow had delivered when a second ended.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Time,
    delivered: u32,
    /// The application or the receiver limited the flow in this second.
    is_excused: bool,
}

impl Mark {
    fn of(record: &Record, is_excused: bool) -> Mark {
        Mark {
            at: record.now(),
            delivered: record.delivered,
            is_excused,
        }
    }
}

impl PathWatch {
    /// The watch of a flow with this first record.
    pub fn new(range: TrainingRange, first: &Record) -> PathWatch {
        PathWatch {
            range,
            marks: VecDeque::from([Mark::of(first, true)]),
            is_excused: true,
            fills_from: Time::ZERO,
            has_judged: false,
            outside: None,
        }
    }

    /// Takes a record of the flow. `policy_acts`: the policy controls the flow, and not Cubic.
    pub fn on_record(&mut self, record: &Record, policy_acts: bool) {
        let now = record.now();
        self.is_excused |= record.flags & (Record::APP_LIMITED | Record::RWND_LIMITED) != 0;
        if !policy_acts {
            self.fills_from = now + DRAINS;
        }
        if self.marks.back().is_some_and(|m| now.since(m.at) < SECOND) {
            return;
        }
        self.marks.push_back(Mark::of(record, self.is_excused));
        self.is_excused = false;
        let is_old = |mark: &Mark| now.since(mark.at) >= RATES_OVER;
        while self.marks.get(1).is_some_and(is_old) {
            self.marks.pop_front();
        }
        if record.min_rtt_us > 0 {
            self.has_judged = true;
            if let Some(what) = self.outside_now(record) {
                self.outside = Some((what, now + KEEPS));
            }
        }
    }

    fn outside_now(&self, record: &Record) -> Option<Outside> {
        let is_below = |value: f64, [least, _]: [f64; 2]| value < least * (1.0 - SLACK);
        let is_above = |value: f64, [_, most]: [f64; 2]| value > most * (1.0 + SLACK);
        let TrainingRange {
            rate_mbps,
            rtt_ms,
            buffer_ms,
            ..
        } = self.range;
        let (rtt, srtt) = (ms(record.min_rtt_us), ms(record.srtt_us));
        let mbps = self.mbps(record);
        let is_slow = self.has_ten_seconds_of_the_path(record) && is_below(mbps, rate_mbps);
        if is_above(mbps, rate_mbps) || is_slow {
            Some(Outside::Rate)
        } else if is_below(rtt, rtt_ms) || is_above(rtt, rtt_ms) {
            Some(Outside::Rtt)
        } else if record.now() >= self.fills_from
            && buffer_ms.is_some_and(|[_, most]| is_above(srtt - rtt, [0.0, most]))
        {
            Some(Outside::Buffer)
        } else {
            None
        }
    }

    /// The mean rate over the last ten seconds. For a younger flow the time before its begin counts
    /// with rate 0.
    fn mbps(&self, record: &Record) -> f64 {
        let Some(first) = self.marks.front() else {
            return 0.0;
        };
        let packets = record.delivered.wrapping_sub(first.delivered);
        let length = record.now().since(first.at).max(RATES_OVER);
        f64::from(packets) * f64::from(record.mss) * 8.0 / length.as_secs_f64() * 1e-6
    }

    /// Did only the path limit the flow in the last ten seconds?
    fn has_ten_seconds_of_the_path(&self, record: &Record) -> bool {
        let mut seconds = self.marks.iter().skip(1);
        (self.marks.front()).is_some_and(|first| record.now().since(first.at) >= RATES_OVER)
            && seconds.all(|mark| !mark.is_excused)
    }

    /// The property of the path that is outside, now or within the last ten seconds.
    pub fn outside(&self, now: Time) -> Option<Outside> {
        self.outside
            .and_then(|(what, until)| (now < until).then_some(what))
    }

    /// Is the path inside? `None` before the first second has ended.
    pub fn is_inside(&self, now: Time) -> Option<bool> {
        self.has_judged.then(|| self.outside(now).is_none())
    }
}

fn ms(us: u32) -> f64 {
    f64::from(us) * 1e-3
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headway_cc::Stream;
    use headway_net::trace::Trace;
    use headway_scenario::Scenario;
    use headway_world::PathRange;

    use super::*;

    const RANGE: TrainingRange = TrainingRange {
        rate_mbps: [12.0, 120.0],
        rtt_ms: [20.0, 100.0],
        buffer_ms: Some([10.0, 200.0]),
        loss: [0.0, 0.0],
    };

    /// A flow that acknowledges packets of 1500 bytes every 10 ms: 1000 a second are 12 Mbit/s.
    struct Run {
        watch: PathWatch,
        record: Record,
        /// In hundredths of a packet.
        delivered: u64,
        policy_acts: bool,
    }

    impl Run {
        fn new() -> Run {
            let record = Record {
                now_ns: 1,
                mss: 1500,
                ..Record::default()
            };
            Run {
                watch: PathWatch::new(RANGE, &record),
                record,
                delivered: 0,
                policy_acts: true,
            }
        }

        /// Runs for `s` seconds at a rate, with a minimum and a smoothed RTT. Returns what is
        /// outside at the end.
        fn goes_on(&mut self, s: u64, mbps: u64, min_ms: u32, srtt_ms: u32) -> Option<Outside> {
            self.goes_on_with(s, mbps, (min_ms, srtt_ms), 0)
        }

        fn goes_on_with(
            &mut self,
            s: u64,
            mbps: u64,
            (min_ms, srtt_ms): (u32, u32),
            flags: u32,
        ) -> Option<Outside> {
            for _ in 0..s * 100 {
                self.delivered += mbps * 10_000 / 120;
                self.record = Record {
                    now_ns: self.record.now_ns + 10_000_000,
                    delivered: (self.delivered / 100) as u32,
                    min_rtt_us: min_ms * 1000,
                    srtt_us: srtt_ms * 1000,
                    flags,
                    ..self.record
                };
                self.watch.on_record(&self.record, self.policy_acts);
            }
            self.watch.outside(self.record.now())
        }
    }

    #[test]
    fn a_path_of_the_training_is_inside() {
        let mut run = Run::new();
        assert_eq!(run.watch.is_inside(run.record.now()), None);
        assert_eq!(run.goes_on(30, 60, 50, 250), None);
        assert_eq!(run.watch.is_inside(run.record.now()), Some(true));
    }

    #[test]
    fn each_bound_holds_on_both_sides() {
        for (mbps, min_ms, srtt_ms, outside) in [
            (130, 50, 60, None),
            (134, 50, 60, Some(Outside::Rate)),
            (11, 50, 60, None),
            (10, 50, 60, Some(Outside::Rate)),
            (60, 109, 120, None),
            (60, 111, 120, Some(Outside::Rtt)),
            (60, 19, 30, None),
            (60, 17, 30, Some(Outside::Rtt)),
            (60, 50, 269, None),
            (60, 50, 271, Some(Outside::Buffer)),
        ] {
            let found = Run::new().goes_on(12, mbps, min_ms, srtt_ms);
            assert_eq!(found, outside, "{mbps} Mbit/s, {min_ms} ms, {srtt_ms} ms");
        }
    }

    /// Recorded links vary within ten seconds, in training and in use.
    #[test]
    fn one_slow_or_fast_second_does_not_count() {
        let mut run = Run::new();
        for _ in 0..10 {
            assert_eq!(run.goes_on(1, 240, 50, 60), None);
            assert_eq!(run.goes_on(3, 6, 50, 60), None);
        }
    }

    /// The range in the card and the flow's rates are measured in the same way. A flow that fills
    /// the link is inside, whenever it begins. On a link of half or twice the rate it is outside at
    /// times.
    #[test]
    fn a_flow_that_fills_a_recorded_link_of_the_training_is_inside() {
        let mut chance = Stream::new(1, "rates");
        let rates: Vec<f64> = (0..60)
            .map(|_| chance.uniform())
            .map(|share| 0.5 + 49.5 * share * share)
            .collect();
        let recorded = |factor: f64| {
            let rates: Vec<f64> = rates.iter().map(|mbps| mbps * factor).collect();
            Arc::new(Trace::from_rates(&rates, SECOND).expect("a trace"))
        };
        let text = "schema = 1\nname = \"recorded\"\nseconds = 20\n\
                    bottleneck = { trace = \"own.down\", delay = \"20ms\", queue = \"100pkt\" }\n";
        let scenario = Scenario::parse(text, "recorded").expect("a scenario");
        let mut seen = PathRange::default();
        let traces = |_: &_| Ok(recorded(1.0));
        seen.see(&scenario, &traces, 1).expect("a path");
        let range = TrainingRange {
            rate_mbps: seen.rate_mbps,
            ..RANGE
        };
        let shares = |factor| {
            let trace = recorded(factor);
            let starts = (0..30).map(|n| Duration::from_millis(n * 1970));
            let shares = starts.map(move |start| outside_while_full(range, &trace, start));
            shares.sum::<f64>() / 30.0
        };
        assert_eq!(shares(1.0), 0.0);
        assert!(shares(0.5) > 0.1, "{}", shares(0.5));
        assert!(shares(2.0) > 0.1, "{}", shares(2.0));
    }

    /// A flow fills a recorded link from `start` on. Returns the share of two minutes in which it
    /// is outside.
    fn outside_while_full(range: TrainingRange, trace: &Trace, start: Duration) -> f64 {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let record = |ms: u64| Record {
            now_ns: at(ms).as_nanos(),
            delivered: trace.opportunities_between(start, Time::ZERO, at(ms)) as u32,
            mss: 1500,
            min_rtt_us: 50_000,
            srtt_us: 60_000,
            ..Record::default()
        };
        let mut watch = PathWatch::new(range, &record(0));
        let times = (1..=12_000).map(|n| n * 10);
        let is_outside = times.filter(|&ms| {
            watch.on_record(&record(ms), true);
            watch.outside(at(ms)).is_some()
        });
        is_outside.count() as f64 / 12_000.0
    }

    /// A flow's first seconds count in the average over ten.
    #[test]
    fn a_fast_path_is_noticed_before_ten_seconds_have_passed() {
        let mut run = Run::new();
        assert_eq!(run.goes_on(2, 600, 50, 60), None);
        assert_eq!(run.goes_on(1, 600, 50, 60), Some(Outside::Rate));
    }

    #[test]
    fn a_path_is_inside_again_ten_seconds_after_it_was_outside() {
        let mut run = Run::new();
        assert_eq!(run.goes_on(2, 60, 300, 310), Some(Outside::Rtt));
        assert_eq!(run.goes_on(9, 60, 50, 60), Some(Outside::Rtt));
        assert_eq!(run.goes_on(2, 60, 50, 60), None);
    }

    #[test]
    fn a_path_whose_rate_returns_to_the_range_is_inside_again() {
        for mbps in [6, 240] {
            let mut run = Run::new();
            assert_eq!(run.goes_on(12, mbps, 50, 60), Some(Outside::Rate));
            assert_eq!(run.goes_on(9, 60, 50, 60), Some(Outside::Rate));
            assert_eq!(run.goes_on(12, 60, 50, 60), None, "{mbps} Mbit/s before");
        }
    }

    #[test]
    fn the_queue_is_judged_from_ten_seconds_after_the_policy_took_the_flow() {
        let mut run = Run::new();
        assert_eq!(run.goes_on(2, 60, 50, 400), Some(Outside::Buffer));
        // Cubic has the flow and fills the queue all the time.
        run.policy_acts = false;
        assert_eq!(run.goes_on(9, 60, 50, 400), Some(Outside::Buffer));
        assert_eq!(run.goes_on(60, 60, 50, 400), None);
        // The policy drains the queue.
        run.policy_acts = true;
        assert_eq!(run.goes_on(9, 60, 50, 400), None);
        assert_eq!(run.goes_on(60, 60, 50, 200), None);
        // The policy does not drain it.
        assert_eq!(run.goes_on(2, 60, 50, 400), Some(Outside::Buffer));
    }

    #[test]
    fn a_flow_that_its_application_limits_is_not_on_a_slow_path() {
        let mut run = Run::new();
        let limited = run.goes_on_with(30, 1, (50, 60), Record::APP_LIMITED);
        assert_eq!(limited, None);
        assert_eq!(run.goes_on(9, 1, 50, 60), None);
        assert_eq!(run.goes_on(2, 1, 50, 60), Some(Outside::Rate));
    }
}
