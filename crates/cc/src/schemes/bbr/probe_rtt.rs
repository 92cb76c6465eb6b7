//! ProbeRTT (§4.3.5): now and then only few packets are in flight, to measure the path without its
//! queue.

use super::{Bbr, HIGH_GAIN, State};
use crate::{Duration, Feedback};

const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

impl Bbr {
    pub(super) fn check_probe_rtt(&mut self, f: &Feedback<'_>, expired: bool) {
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_cwnd();
            self.enter(State::ProbeRtt, 1.0, 1.0);
            self.probe_rtt_done = None;
            self.probe_rtt_span = (f.counters.delivered, f.counters.delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(f);
        }
        self.idle_restart = false;
    }

    /// Keeps four packets in flight for 200 ms and a round.
    fn handle_probe_rtt(&mut self, f: &Feedback<'_>) {
        self.probe_rtt_span.1 = f.counters.delivered + f.in_flight;
        match self.probe_rtt_done {
            None if f.in_flight <= self.min_pipe_cwnd() => {
                self.probe_rtt_done = Some(f.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.rounds.restart(f.next_number);
            }
            None => {}
            Some(done) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && f.now > done {
                    self.rtprop_stamp = f.now;
                    self.restore_cwnd();
                    if self.filled_pipe {
                        self.enter_probe_bw(f.now);
                    } else {
                        self.enter(State::Startup, HIGH_GAIN, HIGH_GAIN);
                    }
                }
            }
        }
    }
}
