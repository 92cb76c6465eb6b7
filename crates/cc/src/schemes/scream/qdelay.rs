//! SCReAM's queueing delay: the delay above the minimum one-way delay, its average, and its floor.

use crate::base_delay::BaseDelay;
use crate::{Acked, Duration, Time};

/// QDELAY_AVG_G (draft §"Detecting Increased Queue Delay").
const QDELAY_AVG_G: f64 = 1.0 / 4.0;
/// QDELAY_MIN_AVG_ALPHA (draft §"Clock drift issues and remedies").
const QDELAY_MIN_AVG_ALPHA: f64 = 1.0 / 256.0;

/// qdelay and its averages, in seconds.
#[derive(Debug, Default)]
pub(super) struct QueueDelay {
    /// RFC 6817's base delay, to which the draft refers, with its ten minutes.
    base: BaseDelay,
    /// qdelay: the queueing delay of the newest packet.
    pub(super) latest: f64,
    /// qdelay_avg: it falls at once and rises slowly, so that a spike is not congestion.
    pub(super) average: f64,
    averaged_at: Time,
    /// qdelay_min: the minimum of this round trip.
    round_min: Option<f64>,
    /// qdelay_min_avg: the floor of the delay, averaged over hundreds of round trips.
    floor_average: f64,
}

impl QueueDelay {
    /// Takes an arrival. `interval` is min(VIRTUAL_RTT, s_rtt).
    pub(super) fn on_acked(&mut self, now: Time, acked: &Acked, interval: Duration) {
        let Some(received) = acked.received else {
            return;
        };
        let one_way = received.as_nanos().wrapping_sub(acked.sent.as_nanos()) as i64;
        self.base.update(now, one_way);
        self.latest = one_way.saturating_sub(self.base.min()) as f64 / 1e9;
        self.round_min = Some(self.round_min.map_or(self.latest, |m| m.min(self.latest)));
        if now.since(self.averaged_at) >= interval {
            self.averaged_at = now;
            self.average = self
                .latest
                .min(self.average + QDELAY_AVG_G * (self.latest - self.average));
        }
    }

    /// Ends a round trip. Returns true if the floor has long been above a quarter of `target`,
    /// because clocks drift apart or a queue stood when the flow began. It then clears the history.
    pub(super) fn on_round(&mut self, target: f64) -> bool {
        let Some(least) = self.round_min.take() else {
            return false;
        };
        self.floor_average += QDELAY_MIN_AVG_ALPHA * (least - self.floor_average);
        let stands = self.floor_average > target / 4.0;
        if stands {
            self.floor_average = 0.0;
            self.base.forget();
        }
        stands
    }
}

/// The target of the queueing delay, which is larger against flows that fill the queue (draft
/// §"Competing Flows Compensation").
#[derive(Debug)]
pub(super) struct DelayTarget {
    /// qdelay_target in seconds.
    pub(super) value: f64,
    /// The history of qdelay / QDELAY_TARGET_LO.
    history: [f64; DelayTarget::LONG],
    next: usize,
    sampled_at: Time,
    /// The share of round trips with losses.
    loss_event_rate: f64,
}

impl DelayTarget {
    /// QDELAY_TARGET_LO, QDELAY_TARGET_HI.
    pub(super) const LOW: f64 = 0.06;
    const HIGH: f64 = 0.4;
    const LONG: usize = 200;
    const SHORT: usize = 50;
    /// The sampling interval of Ericsson's code (`kSlowUpdateInterval_ntp`); the draft gives none.
    const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
    /// The gain of Ericsson's code (`lossEventRate`); the draft gives none.
    const LOSS_EVENT_GAIN: f64 = 0.02;

    pub(super) fn new(start: Time) -> DelayTarget {
        DelayTarget {
            value: Self::LOW,
            history: [0.0; Self::LONG],
            next: 0,
            sampled_at: start,
            loss_event_rate: 0.0,
        }
    }

    /// Ends a round trip, with losses or without.
    pub(super) fn on_round(&mut self, lossy: bool) {
        let share = if lossy { 1.0 } else { 0.0 };
        self.loss_event_rate += Self::LOSS_EVENT_GAIN * (share - self.loss_event_rate);
    }

    /// `adjust_qdelay_target`.
    pub(super) fn adjust(&mut self, now: Time, qdelay: f64) {
        if now.since(self.sampled_at) < Self::SAMPLE_INTERVAL {
            return;
        }
        self.sampled_at = now;
        self.history[self.next] = qdelay / Self::LOW;
        self.next = (self.next + 1) % Self::LONG;
        let recent =
            (1..=Self::SHORT).map(|i| self.history[(self.next + Self::LONG - i) % Self::LONG]);
        let average = recent.sum::<f64>() / Self::SHORT as f64;
        let mean = self.history.iter().sum::<f64>() / Self::LONG as f64;
        let squares = self.history.iter().map(|q| (q - mean) * (q - mean));
        let variance = squares.sum::<f64>() / Self::LONG as f64;

        let new_target = (average + libm::sqrt(variance)) * Self::LOW;
        self.value = if self.loss_event_rate > 0.002 {
            1.5 * new_target
        } else if variance < 0.2 {
            new_target
        } else if new_target < Self::LOW {
            new_target.max(0.5 * self.value)
        } else {
            0.9 * self.value
        };
        self.value = self.value.clamp(Self::LOW, Self::HIGH);
    }
}
