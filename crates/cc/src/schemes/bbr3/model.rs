//! The model of the path that acknowledgements build (§5.5).

use super::{Bbr3, Sample};
use crate::{Bytes, Feedback, Rate, RateSample};

/// BBR.ExtraAckedFilterLen, in rounds (§2.12).
const EXTRA_ACKED_FILTER_LEN: u64 = 10;

impl Bbr3 {
    /// GenerateRateSample (§4.1.2.3). A sample over less than a round trip is ignored.
    pub(super) fn generate_rate_sample(&mut self, f: &Feedback<'_>) {
        let reliable = |s: &RateSample| !s.interval.is_zero() && s.interval >= f.rtt_stats.min;
        let (from, to) = self.probe_rtt_span;
        self.rs = match f.rate.filter(reliable) {
            Some(s) => Sample {
                delivery_rate: s.delivery_rate(),
                delivered: s.delivered,
                tx_in_flight: s.tx_in_flight,
                lost: s.lost,
                newly_acked: f.acked_bytes,
                is_app_limited: s.app_limited || (from..=to).contains(&s.prior_delivered),
            },
            None => Sample {
                newly_acked: f.acked_bytes,
                is_app_limited: true,
                ..Sample::default()
            },
        };
    }

    /// §5.5.10.3, near the start of ACK processing.
    pub(super) fn update_latest_delivery_signals(&mut self, f: &Feedback<'_>) {
        self.bw_latest = self.bw_latest.max(self.rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(self.rs.delivered);
        self.loss_round_start = self.loss_round.on_feedback(f);
    }

    /// §5.5.10.3, near the end of ACK processing.
    pub(super) fn advance_latest_delivery_signals(&mut self) {
        if self.loss_round_start {
            self.bw_latest = self.rs.delivery_rate;
            self.inflight_latest = self.rs.delivered;
        }
    }

    /// §5.5.10.3: once a round, losses lower the short-term bounds.
    pub(super) fn update_congestion_signals(&mut self, f: &Feedback<'_>) {
        self.update_max_bw(f);
        if self.loss_round_start {
            self.adapt_lower_bounds_from_congestion();
            self.is_loss_in_round = false;
        }
    }

    /// UpdateRound and UpdateMaxBw (§5.5.1, §5.5.5).
    fn update_max_bw(&mut self, f: &Feedback<'_>) {
        self.round_start = self.rounds.on_feedback(f);
        if self.round_start {
            self.cycle.rounds_since_probe_up += 1;
            self.c.cwnd_limited = [f.cwnd_limited, self.c.cwnd_limited[0]];
        }
        let rate = self.rs.delivery_rate;
        if rate > Rate::ZERO && (rate >= self.max_bw || !self.rs.is_app_limited) {
            self.max_bw_filter.update(self.cycle.count, rate);
            self.max_bw = self.max_bw_filter.max();
        }
    }

    /// UpdateACKAggregation (§5.5.9): how much more is acknowledged than `bw` explains, at most a
    /// window.
    pub(super) fn update_ack_aggregation(&mut self) {
        let interval = self.c.now.since(self.extra_acked_interval_start);
        let mut expected = self.bw.bytes_in(interval);
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = Bytes::ZERO;
            self.extra_acked_interval_start = self.c.now;
            expected = Bytes::ZERO;
        }
        self.extra_acked_delivered += self.rs.newly_acked;
        let extra = self.extra_acked_delivered.saturating_sub(expected);
        self.extra_acked_filter
            .set_window(if self.full_pipe.reached {
                EXTRA_ACKED_FILTER_LEN
            } else {
                1
            });
        self.extra_acked_filter
            .update(self.rounds.count(), extra.min(self.cwnd));
    }

    /// BBR.extra_acked.
    pub(super) fn extra_acked(&self) -> Bytes {
        self.extra_acked_filter.max()
    }

    /// §5.5.10.3.
    pub(super) fn bound_bw_for_model(&mut self) {
        self.bw = self.max_bw.min(self.bw_shortterm);
    }
}
