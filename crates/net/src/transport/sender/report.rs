//! Reports to the controller, and applies its answer.

use headway_cc::{Bytes, Congestion, Duration, Feedback, Recovery, Time};

use super::Sender;
use crate::transport::Profile;
use crate::transport::prr::Prr;

/// The parts of a report beyond the sender's own state.
pub(super) struct Report<'a> {
    pub(super) prior_in_flight: u64,
    pub(super) rtt: Option<Duration>,
    /// The stream's beginning advanced.
    pub(super) in_order: bool,
    pub(super) congestion: Option<Congestion>,
    pub(super) message: &'a [u8],
}

impl Sender {
    /// Reports to the controller, and applies its answer.
    #[inline(always)]
    pub(super) fn report(&mut self, now: Time, r: Report<'_>) {
        let prior_cwnd = self.control.cwnd;
        let acked_bytes = Bytes::new(self.acked_bytes);
        self.counters.delivered += acked_bytes;
        if self.acked_bytes > 0 {
            self.delivery.advance(now, self.acked_bytes);
        }
        let rate = match self.wants_rate {
            true => self
                .delivery
                .sample(now, self.rtt.stats().min, self.counters.lost.get()),
            false => None,
        };
        let feedback = Feedback {
            now,
            acked: &self.acked,
            lost: &self.lost,
            acked_bytes,
            lost_bytes: Bytes::new(self.lost_bytes),
            rtt: r.rtt,
            rtt_stats: self.rtt.stats(),
            rate,
            counters: self.counters,
            in_flight: Bytes::new(self.in_flight),
            prior_in_flight: Bytes::new(r.prior_in_flight),
            largest_acked: self.acks.largest,
            next_number: self.flight.next(),
            cwnd_limited: self.cwnd_limited,
            app_limited: self.delivery.is_app_limited(),
            recovery: match self.recovery.phase {
                Recovery::Open if !r.in_order && self.acked_bytes > 0 => Recovery::Disorder,
                phase => phase,
            },
            congestion: r.congestion,
            undo: self.undo,
            message: r.message,
        };
        self.cc.on_feedback(&feedback);
        self.refresh();
        if self.config.profile == Profile::Linux {
            let progress = r.in_order && self.losses.packets == 0;
            self.reduce_proportionally(r.congestion.is_some(), prior_cwnd, acked_bytes, progress);
        }
    }

    fn reduce_proportionally(
        &mut self,
        begins: bool,
        prior_cwnd: Bytes,
        acked: Bytes,
        progress: bool,
    ) {
        let (in_flight, mss) = (Bytes::new(self.in_flight), self.config.mss);
        if begins && !self.cc.owns_recovery() {
            self.prr = Some(Prr::new(prior_cwnd, self.control.cwnd, in_flight, mss));
        }
        if !matches!(self.recovery.phase, Recovery::Recovery | Recovery::Cwr) {
            self.prr = None;
        }
        if let Some(prr) = &mut self.prr {
            prr.on_ack(acked, in_flight, mss, progress);
        }
    }
}
