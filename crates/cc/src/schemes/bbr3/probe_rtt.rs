//! ProbeRTT: half a BDP in flight for a short time, to measure the path without a queue (§5.3.4).

use super::probe_bw::AckPhase;
use super::{Bbr3, State};
use crate::{Bytes, Duration};

/// BBR.ProbeRTTDuration (§2.16.2).
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

impl Bbr3 {
    /// UpdateMinRTT (§5.3.4.3).
    pub(super) fn update_min_rtt(&mut self, rtt: Option<Duration>) {
        self.probe_rtt_expired = self.probe_rtt_min_delay != Duration::MAX
            && self.c.now > self.probe_rtt_min_stamp + self.probe_rtt_interval;
        if let Some(rtt) = rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_stamp = self.c.now;
        }
        let min_rtt_expired = self.c.now > self.min_rtt_stamp + self.min_rtt_filter_len;
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// CheckProbeRTT (§5.3.4.3).
    pub(super) fn check_probe_rtt(&mut self) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
            self.probe_rtt_span = (self.c.delivered, self.c.delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt();
        }
        self.idle_restart &= self.rs.delivered == Bytes::ZERO;
    }

    /// HandleProbeRTT (§5.3.4.3).
    fn handle_probe_rtt(&mut self) {
        // MarkConnectionAppLimited (§4.1.2.4): low samples of these packets are ignored.
        self.probe_rtt_span.1 = self.c.delivered + self.c.inflight;
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done();
            }
        } else if self.c.inflight <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_stamp = Some(self.c.now + PROBE_RTT_DURATION);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    /// CheckProbeRTTDone (§5.3.4.3).
    pub(super) fn check_probe_rtt_done(&mut self) {
        if self
            .probe_rtt_done_stamp
            .is_some_and(|done| self.c.now > done)
        {
            self.probe_rtt_min_stamp = self.c.now; // schedules the next
            self.restore_cwnd();
            self.exit_probe_rtt();
        }
    }

    /// ExitProbeRTT (§5.3.4.4).
    fn exit_probe_rtt(&mut self) {
        self.reset_short_term_model();
        if self.full_pipe.reached {
            self.start_probe_bw_down();
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }
}
