//! The PCC family: it tries rates and keeps those with higher utility (Dong et al., NSDI 2015).
//!
//! Time is divided into *monitor intervals*. In a trial packets are sent at the rate under test.
//! About a round trip after its end the fate of all of them is known, and a *utility function*
//! turns it into a number. Until then the sender keeps its old rate. The members differ in the
//! utility and in how they change the rate: [`allegro`] compares, [`vivace`] follows the utility's
//! gradient ([`ascent`]), and [`proteus`] does so with filters for noise.
//!
//! Rates are in Mbit/s where a formula of the papers uses Mbit/s.

mod allegro;
mod ascent;
mod monitor;
mod noise;
mod proteus;
mod starting;
mod vivace;

#[cfg(test)]
mod tests;

pub use allegro::SCHEME as ALLEGRO;
pub use proteus::{PRIMARY as PROTEUS_P, SCAVENGER as PROTEUS_S};
pub use vivace::{LOSS as VIVACE_LOSS, SCHEME as VIVACE};

use std::fmt::Debug;

use monitor::{Monitor, Summary};

use crate::{
    Bytes, CongestionControl, Control, Duration, Feedback, Need, Probe, Rate, Rto, Sent, Setup,
    Stream, Tag, Time,
};

/// The needs of all members: they decide when a packet is sent, and use each packet's fate.
const NEEDS: &[Need] = &[Need::PerPacket, Need::Pacing, Need::PerSend];

/// Where the whole family does something that the papers do not describe.
macro_rules! deviations {
    ($($own:expr),* $(,)?) => {
        &[
            "The first rate is the host's initial window a round trip, as with every scheme here and in the authors' code; the paper begins with 2 packets.",
            "In the state Starting, the sender stays at the last good rate until the trial's result is known. Only then does it double the rate, as in the authors' later code. So no more than one doubling overshoots.",
            "No more than 2.5 x rate x smoothed RTT may be in flight, so that a path that falls silent is not flooded; the paper has no bound, the authors' code one that grows with the rate too.",
            "A trial that would last over a second lasts 300 ms, as in the authors' code; the papers have no bound.",
            "A trial in which the application had too little to send is repeated; the papers suppose endless data.",
            "A trial with fewer than four RTTs to go by is judged by its loss if its packets were lost, and repeated if their RTTs were distrusted; the authors' code lasts until it has four.",
            "A packet that arrives after it was taken for lost is not lost, and its RTT is not counted, since it was overtaken; the papers have no reordering.",
            $($own),*
        ]
    };
}
use deviations;

/// How a member of the family changes its rate.
trait RateControl: Debug + Send {
    /// The rate between trials, in Mbit/s.
    fn rate(&self) -> f64;
    /// Begins with `rate`, once the first RTT is known.
    fn start(&mut self, rate: f64);
    /// The rate of the next trial. `None` if results have to come first.
    fn next_trial(&mut self) -> Option<f64>;
    /// Takes the result of the oldest trial.
    fn on_result(&mut self, summary: &Summary) -> Verdict;
    /// Drops all trials so far.
    fn abandon(&mut self);
    /// Is this RTT, of an acknowledgement at `now`, reliable?
    fn is_reliable(&mut self, _now: Time, _rtt: Duration, _smoothed: Duration) -> bool {
        true
    }
    /// Reports named values.
    fn probe(&self, probe: &mut dyn Probe);
}

/// What a result leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing changes, and the other trials go on.
    Wait,
    /// The rate changed, or the trials start again. The trials in flight are dropped.
    Move,
}

/// The length of trials.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// The length in round trips, uniform in this range.
    rtts: (f64, f64),
    /// The smallest number of packets.
    packets: u64,
}

/// One flow under a rate control of the family.
#[derive(Debug)]
struct Pcc<C> {
    control: C,
    pace: Pace,
    random: Stream,
    mss: Bytes,
    initial_cwnd: Bytes,
    monitor: Monitor,
    /// The shortest length of the open trial.
    duration: Duration,
    /// The rate in Mbit/s of the open trial, or between trials.
    rate: f64,
    /// May a trial begin with the next packet?
    ready: bool,
    /// The smoothed RTT; zero until there is one.
    smoothed_rtt: Duration,
}

/// The lowest rate, in Mbit/s. Trials of a lower rate would be too long.
const MIN_RATE: f64 = 0.1;
/// The highest rate, in Mbit/s.
const MAX_RATE: f64 = 1e5;
/// The assumed RTT until there is a sample (PCC-Uspace, `kInitialRtt`).
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// The longest trial. A longer one would last `CAPPED_TRIAL`.
const MAX_TRIAL: Duration = Duration::from_secs(1);
/// The length that replaces one above `MAX_TRIAL` (PCC-Uspace, branch NSDI-2018, `start_monitor`).
/// A standing queue of seconds should not make trials as long.
const CAPPED_TRIAL: Duration = Duration::from_millis(300);
/// The packets that may be in flight, in round trips of the rate (PCC-Uspace,
/// `bytes_in_flight_gain`).
const IN_FLIGHT_GAIN: f64 = 2.5;

/// The rate, within the bounds for trials.
fn bounded_rate(rate: f64) -> f64 {
    rate.clamp(MIN_RATE, MAX_RATE)
}

impl<C: RateControl> Pcc<C> {
    fn new(setup: &Setup, control: C, pace: Pace) -> Pcc<C> {
        Pcc {
            control,
            pace,
            random: setup.stream("pcc-interval"),
            mss: setup.mss,
            initial_cwnd: setup.initial_cwnd,
            monitor: Monitor::new(),
            duration: Duration::ZERO,
            rate: bounded_rate(Rate::from_bytes_per(setup.initial_cwnd, INITIAL_RTT).as_mbps()),
            ready: false,
            smoothed_rtt: Duration::ZERO,
        }
    }

    /// Ends the open trial if it is over, and begins the next if there is one.
    fn turn_interval(&mut self, now: Time) {
        if let Some((lasted, packets)) = self.monitor.open(now) {
            if lasted < self.duration || packets < self.pace.packets {
                return;
            }
            self.monitor.close();
        } else if !self.ready {
            return;
        }
        self.ready = false;
        match self.control.next_trial() {
            Some(rate) => {
                let (low, high) = self.pace.rtts;
                let rtts = self.random.range(low, high);
                self.duration = self.smoothed_rtt.mul_f64(rtts);
                if self.duration > MAX_TRIAL {
                    self.duration = CAPPED_TRIAL;
                }
                self.rate = bounded_rate(rate);
                self.monitor.begin(self.rate, now);
            }
            None => self.wait(),
        }
    }

    /// Goes back to the rate between trials.
    fn wait(&mut self) {
        self.rate = bounded_rate(self.control.rate());
    }

    /// Starts the trials again.
    fn restart_trials(&mut self) {
        self.monitor.forget();
        self.ready = !self.smoothed_rtt.is_zero();
        self.wait();
    }

    fn take_results(&mut self) {
        while let Some(result) = self.monitor.next_result() {
            let verdict = match result {
                Some(summary) => self.control.on_result(&summary),
                None => {
                    self.control.abandon();
                    Verdict::Move
                }
            };
            match verdict {
                Verdict::Move => self.restart_trials(),
                // Between trials there may be more to try now.
                Verdict::Wait => self.ready = !self.smoothed_rtt.is_zero(),
            }
        }
    }
}

impl<C: RateControl> CongestionControl for Pcc<C> {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.turn_interval(sent.now);
        self.monitor.on_sent(sent)
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if let Some(rtt) = f.rtt
            && !rtt.is_zero()
        {
            if self.smoothed_rtt.is_zero() {
                let rate = bounded_rate(Rate::from_bytes_per(self.initial_cwnd, rtt).as_mbps());
                self.control.start(rate);
                self.ready = true;
                self.rate = rate;
            }
            self.smoothed_rtt = f.rtt_stats.smoothed.max(Duration::from_nanos(1));
        }
        for packet in f.acked {
            let rtt = f.now.since(packet.sent);
            let trusted = self.control.is_reliable(f.now, rtt, self.smoothed_rtt);
            self.monitor.on_acked(packet, trusted.then_some(rtt));
        }
        for packet in f.lost {
            self.monitor.on_lost(packet);
        }
        self.take_results();
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        for packet in rto.lost {
            self.monitor.on_lost(packet);
        }
        self.take_results();
    }

    fn on_idle(&mut self, _: Time, _: Duration) {
        self.control.abandon();
        self.restart_trials();
    }

    fn control(&self) -> Control {
        let rate = Rate::from_mbps(self.rate);
        let rtt = if self.smoothed_rtt.is_zero() {
            INITIAL_RTT
        } else {
            self.smoothed_rtt
        };
        let flight = rate.as_bytes_per_sec() * rtt.as_secs_f64() * IN_FLIGHT_GAIN;
        let cwnd = Bytes::from_f64(flight).max(self.initial_cwnd.max(self.mss));
        Control::paced(cwnd, rate)
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("trial_mbps", self.rate);
        self.control.probe(probe);
    }
}
