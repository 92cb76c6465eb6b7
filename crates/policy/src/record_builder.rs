//! Turns a transport's feedback into the records that the kernel would give.

use headway_cc::{Bytes, Control, Duration, Feedback, RateSample, Recovery, Rto, Sent, Time};

use crate::Record;

/// Turns the feedback of a simulated or user-space transport into [`Record`]s. Only full packets
/// count: a last packet that the data does not fill is left out.
#[derive(Clone, Debug)]
pub struct RecordBuilder {
    mss: u64,
    latest: Record,
}

impl RecordBuilder {
    /// The builder of a flow with packets of `mss`.
    pub fn new(mss: Bytes) -> RecordBuilder {
        RecordBuilder {
            mss: mss.get().max(1),
            latest: Record {
                mss: mss.get() as u32,
                ..Record::default()
            },
        }
    }

    /// A packet was sent.
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        let repeats = u32::from(sent.retransmission);
        self.latest.sent = self.latest.sent.wrapping_add(1);
        self.latest.retransmitted = self.latest.retransmitted.wrapping_add(repeats);
    }

    /// The record of acknowledgements after which the controller allows `control`.
    #[inline]
    pub fn on_feedback(&mut self, feedback: &Feedback<'_>, control: &Control) -> Record {
        let packets = |bytes: Bytes| (bytes.get() / self.mss) as u32;
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let recovering = matches!(feedback.recovery, Recovery::Recovery | Recovery::Loss);
        let (rate_delivered, rate_interval_us) = self.rate(feedback.rate);
        self.latest = Record {
            delivered: packets(feedback.counters.delivered),
            delivered_ce: packets(feedback.counters.ce),
            lost: (self.latest.lost).wrapping_add(packets(feedback.lost_bytes)),
            in_flight: packets(feedback.in_flight),
            // Zero would mean that there is no sample.
            rtt_us: feedback.rtt.map_or(0, |rtt| micros(rtt).max(1)),
            srtt_us: micros(feedback.rtt_stats.smoothed),
            rttvar_us: micros(feedback.rtt_stats.variation),
            min_rtt_us: micros(feedback.rtt_stats.min),
            rate_delivered,
            rate_interval_us,
            acks: 1,
            flags: flag(feedback.app_limited, Record::APP_LIMITED)
                | flag(feedback.cwnd_limited, Record::CWND_LIMITED)
                | flag(recovering, Record::RECOVERING),
            ..self.latest
        };
        self.stamped(feedback.now, control)
    }

    /// The retransmission timer ran out.
    pub fn on_rto(&mut self, rto: &Rto<'_>, control: &Control) -> Record {
        let lost = (rto.prior_in_flight.get() / self.mss) as u32;
        self.latest = Record {
            lost: self.latest.lost.wrapping_add(lost),
            in_flight: 0,
            rtt_us: 0,
            acks: 0,
            flags: Record::RECOVERING,
            ..self.latest
        };
        self.stamped(rto.now, control)
    }

    fn stamped(&mut self, now: Time, control: &Control) -> Record {
        self.latest.now_ns = now.as_nanos();
        self.latest.pacing_rate = control.pacing_rate.map_or(0, |rate| rate.as_bps() / 8);
        self.latest.cwnd = (control.cwnd.get() / self.mss).min(u64::from(u32::MAX)) as u32;
        self.latest
    }

    /// As `tcp_rate_gen()` does: the newest sample that the network limited, or one that the
    /// application limited if it is larger.
    fn rate(&self, sample: Option<RateSample>) -> (u32, u32) {
        let before = (self.latest.rate_delivered, self.latest.rate_interval_us);
        let Some(sample) = sample else { return before };
        let (delivered, interval_us) = (
            (sample.delivered.get() / self.mss) as u32,
            micros(sample.interval),
        );
        let product = |a: u32, b: u32| u64::from(a) * u64::from(b);
        let larger = product(delivered, before.1) >= product(before.0, interval_us);
        match !sample.app_limited || larger {
            true => (delivered, interval_us),
            false => before,
        }
    }
}

fn micros(duration: Duration) -> u32 {
    (duration.as_nanos() / 1000).min(u64::from(u32::MAX)) as u32
}
