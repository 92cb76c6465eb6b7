//! How good a learner's flow is beside the Cubic that the guard runs: what is handed on to others is to be good.

use std::collections::VecDeque;

use headway_cc::{Duration, Time};
use headway_fixed::{Guard, Limits, log2};
use headway_policy::Record;
use zerocopy::transmute_ref;

/// What is judged: the last minute, in seconds.
const SECONDS: usize = 60;
const MINUTE: Duration = Duration::from_secs(SECONDS as u64);
/// Fewer say nothing.
const LEAST_SECONDS: usize = 10;

/// The last minute of a flow.
#[derive(Debug)]
pub struct Quality {
    limits: Limits,
    /// Its Cubic sees what the flow sees.
    guard: Guard,
    /// The record that began the second under way.
    begun: Record,
    /// In that second application or receiver had too little.
    is_limited: bool,
    seconds: VecDeque<Second>,
    /// When the guard had the flow last.
    tripped: Option<Time>,
}

/// A second that the path alone limited.
#[derive(Clone, Copy, Debug)]
struct Second {
    /// Packets, times 256.
    rate: u64,
    srtt_us: u64,
    /// Its utility less that of Cubic, in 1/65536.
    lead: i64,
}

impl Quality {
    /// For a flow that this record is the first of.
    pub fn new(first: &Record) -> Quality {
        Quality {
            limits: Limits::default(),
            guard: Guard::new(first.now_ns, first.cwnd, 0),
            begun: *first,
            is_limited: false,
            seconds: VecDeque::new(),
            tripped: None,
        }
    }

    /// Takes the flow's state.
    pub fn on_record(&mut self, record: &Record) {
        self.guard.judge(&self.limits, transmute_ref!(record));
        if record.has(Record::TRIPPED) {
            self.tripped = Some(record.now());
            self.seconds.clear();
            self.begin(record);
            return;
        }
        self.is_limited |= record.has(Record::APP_LIMITED) || record.has(Record::RWND_LIMITED);
        let length = record.now().since(self.begun.now());
        if length >= Duration::from_secs(1) {
            if !self.is_limited && record.min_rtt_us > 0 {
                self.close(record, length);
            }
            self.begin(record);
        }
    }

    fn begin(&mut self, record: &Record) {
        (self.begun, self.is_limited) = (*record, false);
    }

    /// As headway_cubics_utility() in guard.h: what Cubic's window brings, by what the path has carried of late.
    fn close(&mut self, record: &Record, length: Duration) {
        let us = length.as_nanos() / 1000;
        let delivered = record.delivered.wrapping_sub(self.begun.delivered);
        let (srtt_us, least) = (u64::from(record.srtt_us), u64::from(record.min_rtt_us));
        let own = Second {
            rate: u64::from(delivered) * 256_000_000 / us,
            srtt_us,
            lead: 0,
        };
        if self.seconds.len() == SECONDS {
            self.seconds.pop_front();
        }
        self.seconds.push_back(own);
        let most = |of: fn(&Second) -> u64| self.seconds.iter().map(of).max().unwrap_or(0);
        let (peak, longest) = (most(|s| s.rate).max(1), most(|s| s.srtt_us));
        let cwnd = (self.guard.cubic().cwnd() * 256.0) as u64;
        let cubics = cwnd * 1_000_000 / least;
        let (rate, rtt_us) = match cubics > peak {
            true => (peak, (cwnd * 1_000_000 / peak).min(longest)),
            false => (cubics, least),
        };
        let lead = self.utility(own.rate, srtt_us, least) - self.utility(rate, rtt_us, least);
        if let Some(last) = self.seconds.back_mut() {
            last.lead = lead;
        }
    }

    /// log2(rate) - weight * log2(rtt / least), in 1/65536.
    fn utility(&self, rate: u64, rtt_us: u64, least_us: u64) -> i64 {
        let inflation = i64::from(log2(rtt_us)) - i64::from(log2(least_us));
        let price = (inflation.max(0) * i64::from(self.limits.weight)) >> 16;
        i64::from(log2(rate)) - price
    }

    /// May others begin with what it has learned? Not if the guard had the flow within the last minute, nor if its mean
    /// utility was below Cubic's by more than a quarter of the guard's margin: means vary less than its epochs.
    pub fn is_good(&self, now: Time) -> bool {
        let is_calm = self.tripped.is_none_or(|at| now.since(at) >= MINUTE);
        let lead: i64 = self.seconds.iter().map(|second| second.lead).sum();
        let count = self.seconds.len();
        let is_near =
            count < LEAST_SECONDS || lead + i64::from(self.limits.margin / 4) * count as i64 >= 0;
        is_calm && is_near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow, whose least RTT is 20 ms; an acknowledgement comes each 10 ms.
    #[derive(Default)]
    struct Run {
        quality: Option<Quality>,
        now_ns: u64,
        delivered: u64,
    }

    impl Run {
        /// For so many seconds it has so many packets a second, at such a smoothed RTT.
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
            self.quality.as_ref().expect("it has begun").is_good(now)
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
    fn a_flow_that_leaves_its_path_to_others_is_not() {
        let mut run = Run::default();
        run.goes_on(20, 1000, 22, 0);
        run.goes_on(50, 100, 20, 0);
        assert!(!run.is_good());
        // It has another minute to show that it has learned better.
        run.goes_on(61, 1000, 22, 0);
        assert!(run.is_good());
    }

    #[test]
    fn a_minute_has_to_pass_after_a_trip() {
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

    /// What the application does not send says nothing against the policy.
    #[test]
    fn seconds_of_little_data_are_not_judged() {
        let mut run = Run::default();
        run.goes_on(20, 1000, 22, 0);
        run.goes_on(70, 100, 20, Record::APP_LIMITED);
        assert!(run.is_good());
    }
}
