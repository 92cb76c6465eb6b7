//! Google Congestion Control as WebRTC runs it at the sender: a rate from the trend of the delay, a
//! rate from losses, the smaller of the two, and probes that find the capacity quickly.
//!
//! draft-ietf-rmcat-gcc-02 describes the parts. What has been measured and used since 2016 is the
//! code, `modules/congestion_controller/goog_cc` (followed as of 2020, in AlphaRTC), which differs
//! in the detector, most constants and the probes. Comments name its files. Rates are bits a
//! second.
//!
//! The encoder always produces as much as it is asked for, in packets rather than in frames.

mod acked;
mod aimd;
mod arrival;
mod feedback;
mod loss;
mod probe;
mod trendline;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use acked::AckedBitrate;
use aimd::Aimd;
use arrival::{InterArrival, ms};
use feedback::{History, Report, Reporter};
use loss::LossBased;
use probe::{ProbeEstimator, Prober};
use trendline::{Trendline, Usage};

use crate::{
    Bytes, CongestionControl, Control, Duration, Family, Feedback, Kind, Need, Param, Probe, Rate,
    Rto, Scheme, Sent, Setup, Tag, Time, Values,
};

const START_BITRATE: Param = Param {
    name: "start_bitrate",
    help: "initial bitrate of the encoder",
    kind: Kind::Rate {
        default: Rate::from_bps(300_000),
        min: Rate::from_bps(5_000),
        max: Rate::from_bps(1_000_000_000),
    },
};
const MIN_BITRATE: Param = Param {
    name: "min_bitrate",
    help: "lowest bitrate of the encoder",
    kind: Kind::Rate {
        default: Rate::from_bps(5_000),
        min: Rate::from_bps(5_000),
        max: Rate::from_bps(10_000_000),
    },
};
const MAX_BITRATE: Param = Param {
    name: "max_bitrate",
    help: "highest bitrate of the encoder, or min_bitrate if that is higher; applications set a few Mbit/s",
    kind: Kind::Rate {
        default: Rate::from_bps(1_000_000_000),
        min: Rate::from_bps(100_000),
        max: Rate::from_bps(100_000_000_000),
    },
};
const FEEDBACK_INTERVAL: Param = Param {
    name: "feedback_interval",
    help: "time between two reports of the receiver",
    kind: Kind::Time {
        default: Duration::from_millis(50),
        min: Duration::from_millis(5),
        max: Duration::from_millis(1000),
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "gcc",
    family: Family::Delay,
    summary: "WebRTC's controller: backs off when the delay grows or 10% is lost; probes for capacity",
    source: "draft-ietf-rmcat-gcc-02 as implemented in WebRTC's goog_cc (2020, sender side)",
    deviations: &[
        "The encoder is always full and produces packets, not frames: packets leave evenly at the target bitrate, without the pacer's 2.5 times that drains frames.",
        "It is never application-limited, so WebRTC's probes for that case (every five seconds, and after a drop) are left out.",
        "No congestion window (an experiment in WebRTC): only the bitrate limits what is in flight.",
        "The loss controller is that of the draft and of WebRTC until 2022. The later second version is left out.",
        "A report comes every 50 ms, as at more than 217 kbit/s, where WebRTC slows down to 250 ms so that reports take 5% of the receiver's bitrate.",
        "The detector uses exact sending times and the reports' resolution of 250 us, as WebRTC since 2021, not whole milliseconds.",
        "Lost data is sent again, as new packets at the target bitrate.",
        "The loss controller's RTT does not contain the wait for a report. WebRTC's arithmetic (as in AlphaRTC) in effect adds it.",
        "After an outage the bitrate rises from the lowest one by 8% a second, as in WebRTC: after an outage of 30 s it takes about 100 s to reach 8 Mbit/s.",
    ],
    needs: &[
        Need::PerSend,
        Need::Pacing,
        Need::Receiver,
        Need::ReceiverTime,
    ],
    params: &[START_BITRATE, MIN_BITRATE, MAX_BITRATE, FEEDBACK_INTERVAL],
    build: |setup, values| Box::new(Gcc::new(setup, values)),
    receiver: Some(|setup, values| {
        Box::new(Reporter::new(values.time(&FEEDBACK_INTERVAL), setup.mss))
    }),
    router: None,
};

/// `kProcessInterval`.
const PROCESS_INTERVAL: Duration = Duration::from_millis(25);
/// The time without reports after which the detector starts again (`kStreamTimeOut`).
const STREAM_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of reports over which the RTT is averaged (`kMaxFeedbackRttWindow`).
const RTT_WINDOW: usize = 32;

/// The state of one GCC flow.
#[derive(Debug)]
pub struct Gcc {
    history: History,
    report: Report,
    arrivals: InterArrival,
    trendline: Trendline,
    last_packet: Option<Time>,
    acked: AckedBitrate,
    aimd: Aimd,
    loss: LossBased,
    prober: Prober,
    probe_estimator: ProbeEstimator,
    rtts: VecDeque<Duration>,
    next_process: Time,
}

impl Gcc {
    /// A flow at its start bitrate, with two probes to send.
    pub fn new(setup: &Setup, values: &Values) -> Gcc {
        let bps = |param| values.rate(param).as_bps() as f64;
        let min_rate = bps(&MIN_BITRATE);
        let max_rate = bps(&MAX_BITRATE).max(min_rate);
        let start = bps(&START_BITRATE).min(max_rate).max(min_rate);
        Gcc {
            history: History::default(),
            report: Report::default(),
            arrivals: InterArrival::default(),
            trendline: Trendline::new(),
            last_packet: None,
            acked: AckedBitrate::new(),
            aimd: Aimd::new(start, min_rate),
            loss: LossBased::new(start, min_rate, max_rate),
            prober: Prober::new(setup.start, start, max_rate),
            probe_estimator: ProbeEstimator::default(),
            rtts: VecDeque::with_capacity(RTT_WINDOW),
            next_process: setup.start + PROCESS_INTERVAL,
        }
    }

    /// `OnTransportPacketsFeedback`.
    fn on_report(&mut self, now: Time, report: &Report) {
        self.update_rtts(now, report);
        let received = report.received.len() as u64;
        self.loss
            .on_report(now, report.lost, received + report.lost);
        let mut probed = None;
        for packet in &report.received {
            self.acked
                .on_arrival(ms(packet.received), packet.size.as_f64());
            if let Some(train) = packet.probe {
                probed = self.probe_estimator.on_packet(train, packet).or(probed);
            }
        }
        for packet in &report.received {
            self.detect(now, ms(packet.sent), ms(packet.received));
        }
        self.update_delay_based(now, probed);
        self.prober.on_target(now, self.loss.target);
    }

    /// The delay-based rate gets the longest RTT of each report. The loss-based rate gets the
    /// shortest, without the time that the packet waited for the report.
    fn update_rtts(&mut self, now: Time, report: &Report) {
        let received = || report.received.iter();
        let Some(last) = received().map(|p| p.received).max() else {
            return;
        };
        let longest = received().map(|p| now.since(p.sent)).max();
        if self.rtts.len() == RTT_WINDOW {
            self.rtts.pop_front();
        }
        self.rtts.push_back(longest.unwrap_or_default());
        let sum: Duration = self.rtts.iter().copied().sum();
        self.aimd.set_rtt(sum / self.rtts.len() as u64);
        let propagation = received()
            .map(|p| now.since(p.sent).saturating_sub(last.since(p.received)))
            .min();
        self.loss.on_rtt(now, propagation.unwrap_or_default());
    }

    /// `IncomingPacketFeedback`.
    fn detect(&mut self, now: Time, sent: f64, received: f64) {
        if self
            .last_packet
            .is_none_or(|t| now.since(t) > STREAM_TIMEOUT)
        {
            self.arrivals = InterArrival::default();
            self.trendline = Trendline::new();
        }
        self.last_packet = Some(now);
        if let Some(deltas) = self.arrivals.on_packet(sent, received, ms(now)) {
            self.trendline.update(deltas, received);
        }
    }

    /// `MaybeUpdateEstimate`.
    fn update_delay_based(&mut self, now: Time, probed: Option<f64>) {
        let usage = self.trendline.usage;
        let throughput = self.acked.bps();
        match (usage, throughput, probed) {
            (Usage::Over, Some(bps), _) => {
                if !self.aimd.time_to_reduce(now, bps) {
                    return;
                }
                self.aimd.update(now, usage, throughput);
            }
            // Nothing has been measured yet.
            (Usage::Over, None, _) => self.aimd.set_rate(now, self.aimd.rate / 2.0),
            (_, _, Some(rate)) => {
                self.aimd.set_rate(now, rate);
                self.loss.on_probe_result(rate);
            }
            _ => self.aimd.update(now, usage, throughput),
        }
        self.loss.set_delay_limit(self.aimd.rate);
    }
}

impl CongestionControl for Gcc {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.loss.on_sent(sent.now);
        let train = self.prober.on_sent(sent.size);
        self.history.on_sent(sent, train);
        Tag::NONE
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if f.message.is_empty() {
            return;
        }
        let mut report = std::mem::take(&mut self.report);
        self.history.read(f.message, &mut report);
        if !report.received.is_empty() || report.lost > 0 {
            self.on_report(f.now, &report);
        }
        self.report = report;
    }

    /// Losses come from the reports, and `loss` handles silence.
    fn on_rto(&mut self, _: &Rto<'_>) {}

    fn next_timer(&self) -> Time {
        self.next_process
    }

    /// `OnProcessInterval`.
    fn on_timer(&mut self, now: Time) {
        let late = now.since(self.next_process).as_nanos() / PROCESS_INTERVAL.as_nanos();
        self.next_process += PROCESS_INTERVAL * (late + 1);
        self.loss.update(now);
        self.prober.process(now);
        self.prober.on_target(now, self.loss.target);
    }

    fn control(&self) -> Control {
        let target = self.loss.target;
        let pacing_rate = Rate::from_bps_f64(self.prober.rate().unwrap_or(target));
        Control {
            target_bitrate: Some(Rate::from_bps_f64(target)),
            ..Control::paced(Bytes::MAX, pacing_rate)
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("target_bitrate_mbps", self.loss.target / 1e6);
        probe.value("delay_based_mbps", self.aimd.rate / 1e6);
        probe.value("acked_bitrate_mbps", self.acked.bps().unwrap_or(0.0) / 1e6);
        probe.value("trend_ms", self.trendline.trend);
        probe.value("threshold_ms", self.trendline.threshold.value);
        probe.value("loss", self.loss.loss);
    }
}
