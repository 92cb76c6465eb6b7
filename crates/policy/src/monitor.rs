//! Sums records up in intervals.

use headway_cc::{Duration, MinRtt, NetworkView, Time};

use crate::recent_rate::RecentRate;
use crate::{Averages, Interval, Record, RttSummary};

/// Counters that are older than ten of Owl's readings count as missing: their reader has failed.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// What a policy observes of the network's report of its path, which came `since` ago.
pub fn observed(report: &NetworkView, since: Duration) -> NetworkView {
    let mut seen = *report;
    if seen.known > 0.0 {
        seen.age += since;
        if seen.age > STALE_AFTER {
            seen = NetworkView::default();
        }
    }
    seen
}

/// Statistics that each acknowledgement updates, if an observation needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeededStats {
    /// [`Averages`] over the flow.
    pub averages: bool,
}

impl NeededStats {
    /// The statistics that either of the two needs.
    #[must_use]
    pub fn and(self, other: NeededStats) -> NeededStats {
        NeededStats {
            averages: self.averages || other.averages,
        }
    }
}

/// Sums a flow's [`Record`]s up in the [`Interval`] between two decisions.
#[derive(Clone, Debug)]
pub struct Monitor {
    start: Time,
    folds: NeededStats,
    begun: Time,
    /// The last record of the last interval.
    before: Record,
    latest: Record,
    has_news: bool,
    acks: u32,
    rtt: Samples,
    last_rtt_us: u32,
    min_rtt: MinRtt,
    last_summary: RttSummary,
    delivery_rate: f64,
    max_delivery_rate: f64,
    max_throughput: f64,
    recent: RecentRate,
    /// Where the span of the next throughput begins, and what had been delivered then.
    span: (Time, u32),
    averages: Averages,
    network: NetworkView,
    network_at: Time,
    action_age: Duration,
}

impl Monitor {
    /// The shortest time over which the largest throughput is measured; it is Orca's interval. With
    /// a faster clock a burst of acknowledgements would set the largest throughput for good.
    pub const THROUGHPUT_SPAN: Duration = Duration::from_millis(20);

    /// The monitor of a flow that begins at `start`.
    pub fn new(start: Time, folds: NeededStats) -> Monitor {
        Monitor {
            start,
            folds,
            begun: start,
            before: Record::default(),
            latest: Record::default(),
            has_news: false,
            acks: 0,
            rtt: Samples::default(),
            last_rtt_us: 0,
            min_rtt: MinRtt::default(),
            last_summary: RttSummary::default(),
            delivery_rate: 0.0,
            max_delivery_rate: 0.0,
            max_throughput: 0.0,
            recent: RecentRate::new(),
            span: (start, 0),
            averages: Averages::default(),
            network: NetworkView::default(),
            network_at: Time::ZERO,
            action_age: Duration::ZERO,
        }
    }

    /// Takes the flow's state at an acknowledgement or a timeout. Records come in the order of
    /// their times.
    #[inline]
    pub fn on_record(&mut self, record: &Record) {
        self.has_news = true;
        self.acks += record.acks;
        if record.rtt_us > 0 {
            let at = record.now().since(self.begun).as_secs_f64();
            self.rtt.add(at, record.rtt_us, self.last_rtt_us);
            self.last_rtt_us = record.rtt_us;
            let rtt = Duration::from_micros(record.rtt_us.into());
            self.min_rtt.add(record.now(), rtt);
        }
        if record.rate_interval_us > 0 {
            self.delivery_rate =
                f64::from(record.rate_delivered) * 1e6 / f64::from(record.rate_interval_us);
            self.max_delivery_rate = self.max_delivery_rate.max(self.delivery_rate);
        }
        if self.folds.averages {
            self.averages.add(record, &self.latest);
        }
        self.latest = *record;
    }

    /// Takes a report of the network's switches.
    pub fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.network = *view;
        self.network_at = now;
    }

    /// An action took effect `age` after it was decided.
    pub fn on_action(&mut self, age: Duration) {
        self.action_age = age;
    }

    /// Did a record come in the current interval?
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Ends the interval at `now` and begins the next.
    pub fn close(&mut self, now: Time) -> Interval {
        self.measure_throughput(now);
        let (latest, before) = (&self.latest, &self.before);
        let rtt = self.rtt.summary(&self.last_summary);
        let network = observed(&self.network, now.since(self.network_at));
        let mut interval = Interval {
            end: now,
            age: now.since(self.start),
            length: now.since(self.begun),
            acks: self.acks,
            sent: latest.sent.wrapping_sub(before.sent),
            retransmitted: latest.retransmitted.wrapping_sub(before.retransmitted),
            delivered: latest.delivered.wrapping_sub(before.delivered),
            delivered_ce: latest.delivered_ce.wrapping_sub(before.delivered_ce),
            lost: latest.lost.wrapping_sub(before.lost),
            rtt,
            min_rtt_10s_us: (self.min_rtt.get().as_nanos() / 1000) as u32,
            min_rtt_10s_age: self.min_rtt.age(),
            latest: *latest,
            max_delivery_rate: self.max_delivery_rate,
            delivery_rate: self.delivery_rate,
            max_throughput: self.max_throughput,
            recent_throughput: 0.0,
            peak_throughput: 0.0,
            averages: self.averages,
            network,
            action_age: self.action_age,
        };
        let rate = interval.per_second(interval.delivered);
        let least = interval.min_rtt_10s_us;
        self.recent.add(interval.length, rate, least);
        interval.recent_throughput = self.recent.mean();
        interval.peak_throughput = self.recent.peak();
        self.begun = now;
        self.before = self.latest;
        self.has_news = false;
        self.acks = 0;
        self.rtt = Samples::default();
        self.last_summary = rtt;
        interval
    }

    fn measure_throughput(&mut self, now: Time) {
        let (begun, before) = self.span;
        let length = now.since(begun);
        if length >= Monitor::THROUGHPUT_SPAN {
            let delivered = f64::from(self.latest.delivered.wrapping_sub(before));
            self.max_throughput = self.max_throughput.max(delivered / length.as_secs_f64());
            self.span = (now, self.latest.delivered);
        }
    }
}

/// Running sums of RTT samples; times in seconds since the interval began.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: u32,
    min_us: u32,
    max_us: u32,
    latest_us: u32,
    change_us: f64,
    sum_us: f64,
    sum_at: f64,
    sum_at_at: f64,
    sum_at_us: f64,
}

impl Samples {
    #[inline]
    fn add(&mut self, at: f64, rtt_us: u32, last_us: u32) {
        let us = f64::from(rtt_us);
        self.min_us = match self.count {
            0 => rtt_us,
            _ => self.min_us.min(rtt_us),
        };
        self.max_us = self.max_us.max(rtt_us);
        self.latest_us = rtt_us;
        self.change_us = match last_us {
            0 => 0.0,
            last => us - f64::from(last),
        };
        self.count += 1;
        self.sum_us += us;
        self.sum_at += at;
        self.sum_at_at += at * at;
        self.sum_at_us += at * us;
    }

    /// `last` is the summary of the last interval with samples.
    fn summary(&self, last: &RttSummary) -> RttSummary {
        if self.count == 0 {
            return RttSummary {
                samples: 0,
                change_us: 0.0,
                growth: 1.0,
                slope: 0.0,
                ..*last
            };
        }
        let n = f64::from(self.count);
        let spread = n * self.sum_at_at - self.sum_at * self.sum_at;
        let rise = n * self.sum_at_us - self.sum_at * self.sum_us;
        let mean_us = self.sum_us / n;
        RttSummary {
            samples: self.count,
            mean_us,
            min_us: self.min_us,
            max_us: self.max_us,
            latest_us: self.latest_us,
            change_us: self.change_us,
            growth: match last.mean_us > 0.0 {
                true => mean_us / last.mean_us,
                false => 1.0,
            },
            // Samples of a single moment have no slope.
            slope: match spread > 1e-12 * n {
                true => rise / spread * 1e-6,
                false => 0.0,
            },
        }
    }
}
