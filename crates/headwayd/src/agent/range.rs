//! Whether a flow's path is like those that its model was trained on.

use std::collections::VecDeque;

use headway_cc::{Duration, Time};
use headway_policy::Record;
use headway_policy::model::TrainingRange;

/// What a flow measures may be off by this share.
const SLACK: f64 = 0.1;
/// Rates are means over so long.
const SECOND: Duration = Duration::from_secs(1);
/// A path is slower than those of the training if its rate was for so many seconds.
const SECONDS: usize = 10;
/// A path that was outside counts as outside for so long.
const KEEPS: Duration = Duration::from_secs(10);

/// What of a path is outside the training range.
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
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Outside::Rate => "rate",
            Outside::Rtt => "rtt",
            Outside::Buffer => "buffer",
        }
    }
}

/// Compares a flow's path with the training range of its model, once a second. The rate is the flow's own, so a flow that
/// shares its slowest link may be below the range. Loss is not judged: a sender cannot tell random loss from that of a
/// full queue.
#[derive(Debug)]
pub struct PathWatch {
    range: TrainingRange,
    /// The record that began the second under way.
    begun: Record,
    /// In that second the application or the receiver limited the flow.
    is_excused: bool,
    /// Mbit/s, of the last seconds in which only the path limited the flow.
    rates: VecDeque<f64>,
    has_judged: bool,
    /// What was outside last, and until when that counts.
    outside: Option<(Outside, Time)>,
}

impl PathWatch {
    /// For a flow that this record is the first of.
    pub fn new(range: TrainingRange, first: &Record) -> PathWatch {
        PathWatch {
            range,
            begun: *first,
            is_excused: false,
            rates: VecDeque::with_capacity(SECONDS),
            has_judged: false,
            outside: None,
        }
    }

    /// Takes the flow's state.
    pub fn on_record(&mut self, record: &Record) {
        self.is_excused |= record.flags & (Record::APP_LIMITED | Record::RWND_LIMITED) != 0;
        let length = record.now().since(self.begun.now());
        if length < SECOND {
            return;
        }
        if record.min_rtt_us > 0 {
            let delivered = record.delivered.wrapping_sub(self.begun.delivered);
            let bits = f64::from(delivered) * f64::from(record.mss) * 8.0;
            self.judge(record, bits / length.as_secs_f64() * 1e-6);
        }
        (self.begun, self.is_excused) = (*record, false);
    }

    fn judge(&mut self, record: &Record, mbps: f64) {
        if self.is_excused {
            self.rates.clear();
        } else {
            if self.rates.len() == SECONDS {
                self.rates.pop_front();
            }
            self.rates.push_back(mbps);
        }
        self.has_judged = true;
        if let Some(what) = self.outside_now(record, mbps) {
            self.outside = Some((what, record.now() + KEEPS));
        }
    }

    fn outside_now(&self, record: &Record, mbps: f64) -> Option<Outside> {
        let is_below = |value: f64, [least, _]: [f64; 2]| value < least * (1.0 - SLACK);
        let is_above = |value: f64, [_, most]: [f64; 2]| value > most * (1.0 + SLACK);
        let TrainingRange {
            rate_mbps,
            rtt_ms,
            buffer_ms,
            ..
        } = self.range;
        let (rtt, srtt) = (ms(record.min_rtt_us), ms(record.srtt_us));
        let is_slow =
            self.rates.len() == SECONDS && self.rates.iter().all(|rate| is_below(*rate, rate_mbps));
        if is_above(mbps, rate_mbps) || is_slow {
            Some(Outside::Rate)
        } else if is_below(rtt, rtt_ms) || is_above(rtt, rtt_ms) {
            Some(Outside::Rtt)
        } else if buffer_ms.is_some_and(|[_, most]| is_above(srtt, [0.0, rtt + most])) {
            Some(Outside::Buffer)
        } else {
            None
        }
    }

    /// What of the path is outside, now or within the last ten seconds.
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
        /// A hundredth of a packet.
        delivered: u64,
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
            }
        }

        /// For so many seconds at a rate, with a minimum and a smoothed RTT; what is outside at the end.
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
                self.watch.on_record(&self.record);
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
    fn either_side_of_each_bound_is_told_apart() {
        for (mbps, min_ms, srtt_ms, outside) in [
            (130, 50, 60, None),
            (134, 50, 60, Some(Outside::Rate)),
            (11, 50, 60, None),
            (10, 50, 60, Some(Outside::Rate)),
            (60, 109, 120, None),
            (60, 111, 120, Some(Outside::Rtt)),
            (60, 19, 30, None),
            (60, 17, 30, Some(Outside::Rtt)),
            (60, 50, 274, None),
            (60, 50, 276, Some(Outside::Buffer)),
        ] {
            let found = Run::new().goes_on(11, mbps, min_ms, srtt_ms);
            assert_eq!(found, outside, "{mbps} Mbit/s, {min_ms} ms, {srtt_ms} ms");
        }
    }

    #[test]
    fn what_was_outside_counts_for_ten_seconds() {
        let mut run = Run::new();
        assert_eq!(run.goes_on(2, 500, 50, 60), Some(Outside::Rate));
        assert_eq!(run.goes_on(9, 60, 50, 60), Some(Outside::Rate));
        assert_eq!(run.goes_on(2, 60, 50, 60), None);
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
