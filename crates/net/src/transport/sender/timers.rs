//! Retransmission, probing, reordering, and the controller's own timer.

use headway_cc::{Duration, Recovery, Time};

use super::Sender;
use super::report::Report;
use crate::transport::Profile;

impl Sender {
    /// When to call [`on_wake`](Self::on_wake) next; [`Time::NEVER`] for not at all.
    #[inline]
    pub fn next_wake(&self) -> Time {
        let timers = self.rto_deadline.min(self.cc_timer).min(self.blocked_until);
        timers.min(self.reorder_deadline.min(self.probe_deadline))
    }

    /// Runs the timers that are due. Poll for packets afterwards.
    pub fn on_wake(&mut self, now: Time) {
        if self.stopped {
            return;
        }
        if self.cc_timer <= now {
            self.cc.on_timer(now);
            self.refresh();
        }
        if self.reorder_deadline <= now {
            self.reorder_deadline = Time::NEVER;
            self.clear_news();
            let prior_in_flight = self.in_flight;
            let congestion = self.detect_losses(now);
            if self.losses.packets > 0 {
                self.probe_deadline = Time::NEVER;
                self.report(
                    now,
                    Report {
                        prior_in_flight,
                        rtt: None,
                        in_order: false,
                        congestion,
                        message: &[],
                    },
                );
            }
        }
        if self.probe_deadline <= now {
            // RFC 8985 §7.3: the probe is one packet beyond the window; then the ordinary timeout
            // follows.
            self.probe_deadline = Time::NEVER;
            self.probing = true;
            self.rto_deadline = now + self.rtt.rto(self.timeouts);
        } else if self.rto_deadline <= now {
            self.time_out(now);
        }
    }

    /// RFC 6298 §5.2, §5.3: the timer runs while something is in flight.
    #[inline]
    pub(super) fn restart_timers(&mut self, now: Time) {
        if self.in_flight == 0 {
            self.rto_deadline = Time::NEVER;
            self.probe_deadline = Time::NEVER;
            if self.is_done() {
                self.stop();
            }
            return;
        }
        self.rto_deadline = now + self.rtt.rto(self.timeouts);
        if self.config.profile == Profile::Linux {
            self.arm_probe(now);
        }
    }

    /// The tail loss probe (RFC 8985 §7.2): two round trips after the last packet or
    /// acknowledgement, if that is sooner than the timeout.
    pub(super) fn arm_probe(&mut self, now: Time) {
        let slack = match self.in_flight <= self.config.mss.get() {
            true => Duration::from_millis(200), // the receiver may delay its acknowledgement
            false => Duration::from_millis(2),
        };
        let probe = now + self.rtt.stats().smoothed * 2 + slack;
        let useful = self.recovery.phase == Recovery::Open
            && !self.rtt.stats().latest.is_zero()
            && probe < self.rto_deadline;
        self.probe_deadline = if useful { probe } else { Time::NEVER };
    }
}
