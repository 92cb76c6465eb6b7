//! Rax: congestion control that learns while it runs, from random weights, on every
//! acknowledgement.

use std::any::Any;
use std::sync::Arc;

use headway_cc::schemes::newreno::NewReno;
use headway_cc::{
    Base, Bytes, CongestionControl, Control, Duration, EcnUse, Family, Feedback, Kind, Need, Param,
    Probe, Rto, Scheme, Sent, Setup, Stream, Tag, Time,
};
use serde::{Deserialize, Serialize};

use crate::nn::NetError;
use crate::pal::{Agent, Checkpoint, PalSpec, Task, Weights};

pub(super) const ALPHA: Param = Param {
    name: "alpha",
    help: "weight of a lost packet relative to a delivered one (Eq. 7); 1, 2 and 4 in the paper",
    kind: Kind::Number {
        default: 4.0,
        min: 0.0,
        max: 100.0,
    },
};

const RESTART: Param = Param {
    name: "restart",
    help: "time after which the flow restarts with a window of 1 packet and keeps its learned state (§4.3); 0s: never",
    kind: Kind::Time {
        default: Duration::ZERO,
        min: Duration::ZERO,
        max: Duration::from_secs(1_000_000),
    },
};

/// Rax, by Bachl, Zseby and Fabini 2019.
pub const SCHEME: Scheme = Scheme {
    name: "rax",
    family: Family::Learned,
    summary: "learns while it runs, from random weights: at every acknowledgement a network of gated units draws the change of the window",
    source: "Bachl, Zseby and Fabini, Rax: Deep Reinforcement Learning for Congestion Control (docs/decisions/0040-rax.md)",
    deviations: &[
        "the paper does not state widths, optimiser, learning rates, beta, and scales of features and actions; ours are in docs/decisions/0040-rax.md",
        "rewards are averaged by Eq. 1. Algorithm 2, line 9, as printed has other weights, with which a flow stays at 70% of the paper's link",
        "a gradient is applied after one round trip's worth of packets if the window is larger than that; without this, windows grew without bound",
        "advantages are centred and scaled by recent advantages, so that one set of learning rates works for links of any speed",
        "the first action follows the first acknowledgement, because there is no observation before it",
        "a window of more than 32 times the packets that the path returns in a round trip, and weights that are too large or not finite, count as divergence. Then NewReno runs for 10 s, and the flow starts again with random weights",
        "both RTT features are capped at 1.5 times the flow's minimum RTT",
        "over the kernel's TCP, windows are whole packets and at least 4; a window that is not filled does not grow; packets act in the order of sending, at most four of those that a record reports as received, and four of those that it reports as lost",
    ],
    needs: &[Need::PerPacket],
    params: &[ALPHA, RESTART],
    build: |setup, values| {
        let spec = RaxSpec {
            alpha: values.number(&ALPHA) as f32,
            restart: values.time(&RESTART),
            ..RaxSpec::default()
        };
        Box::new(Rax::new(setup, spec).expect("a test builds it"))
    },
    receiver: None,
    router: None,
};

/// How a flow learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RaxSpec {
    /// The weight of a lost packet against a delivered one (Eq. 7).
    pub alpha: f32,
    /// The settings of the learning; windows are in packets.
    pub pal: PalSpec,
    /// The time after which the flow restarts with its weights; zero for never.
    #[serde(skip)]
    pub restart: Duration,
}

impl Default for RaxSpec {
    fn default() -> RaxSpec {
        RaxSpec {
            alpha: 4.0,
            pal: PalSpec::default(),
            restart: Duration::ZERO,
        }
    }
}

/// The number of features of an observation.
const FEATURES: usize = 8;
/// Rewards: packets received, packets sent, ms between acknowledgements.
const REWARDS: usize = 3;
/// Rewards of the same kind are predicted together (Fig. 4).
const CRITICS: [usize; 2] = [2, 1];

/// What a flow has learned.
pub(crate) type RaxCheckpoint = Checkpoint<REWARDS>;
/// The gains of the averages (§3.2).
const GAINS: [f32; 2] = [1.0 / 8.0, 1.0 / 256.0];
/// A window of this many times what the path returns in a round trip has run away. Actions no
/// longer change anything, and beyond twice as many, feedback would come only for segments that
/// were dropped ([`PalSpec::most_awaited`]).
const RUNAWAY: f32 = 32.0;
/// The smallest number of packets that a path is assumed to return in a round trip. A flow that
/// begins has not measured it yet.
const MIN_ROUND: f32 = 10.0;
/// How long NewReno runs after the weights diverged or the window ran away.
const FALLBACK: Duration = Duration::from_secs(10);

/// The task that Rax learns: Eq. 5, 7 and 8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throughput {
    /// The weight of a lost packet against a delivered one.
    pub alpha: f32,
}

impl Task<REWARDS> for Throughput {
    fn utility(&self, [received, sent, duration]: &[f32; REWARDS]) -> f32 {
        (received - self.alpha * (sent - received)) / duration.max(1e-6)
    }

    fn gamma(&self, window: f32, [_, sent, _]: &[f32; REWARDS]) -> f32 {
        2.0 / (1.0 + (window / sent.max(1e-6)).max(10.0))
    }
}

/// Averages of the measurements, two of each (§3.2).
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The averages: time between acknowledgements in ms, RTT in ms, loss, window in packets.
    averages: [[f32; 2]; 4],
    is_known: bool,
}

impl State {
    fn update(&mut self, signals: [f32; 4]) {
        for (averages, signal) in self.averages.iter_mut().zip(signals) {
            for (average, gain) in averages.iter_mut().zip(GAINS) {
                *average += if self.is_known { gain } else { 1.0 } * (signal - *average);
            }
        }
        self.is_known = true;
    }

    /// The packets that the path returns in a round trip, by the slow averages.
    fn packets_per_rtt(&self) -> f32 {
        let [gaps, rtts, ..] = self.averages;
        rtts[1] / gaps[1].max(1e-3)
    }

    /// The packets that the path returns in a round trip, as far as they have been measured.
    fn path_holds(&self) -> f32 {
        self.packets_per_rtt().max(MIN_ROUND)
    }

    /// The observation, on scales that suit a network.
    fn observation(&self, min_rtt_ms: f32) -> [f32; FEATURES] {
        let [gaps, rtts, losses, windows] = self.averages;
        let mut all = [0.0; FEATURES];
        for n in 0..2 {
            all[n] = 0.5 * libm::logf(gaps[n] + 0.01);
            all[2 + n] = (10.0 * (rtts[n] / min_rtt_ms - 1.0)).min(5.0);
            all[4 + n] = 10.0 * losses[n];
            all[6 + n] = 0.5 * libm::logf(windows[n]);
        }
        all
    }
}

/// A flow that learns.
#[derive(Debug)]
pub struct Rax {
    setup: Setup,
    spec: RaxSpec,
    random: Stream,
    weights: Weights<REWARDS>,
    /// The weights with which it restarts after it diverged; `None` for random weights.
    origin: Option<Arc<Checkpoint<REWARDS>>>,
    agent: Agent<Throughput, REWARDS>,
    state: State,
    /// The window in packets, at least 1.
    window: f32,
    last_ack: Option<Time>,
    /// When the flow began or restarted. Packets that were sent before do not count.
    begun: Time,
    rtt_ms: f32,
    min_rtt_ms: f32,
    /// NewReno, which replaces a diverged network until this time.
    fallback: Option<(NewReno, Time)>,
    divergences: u64,
}

impl Rax {
    /// A flow with random weights.
    ///
    /// # Errors
    /// [`NetError`], one line: a setting is out of range.
    pub fn new(setup: &Setup, spec: RaxSpec) -> Result<Rax, NetError> {
        let mut random = setup.stream("rax weights");
        let weights = Weights::random(spec.pal.clone(), FEATURES, &CRITICS, &mut random)?;
        Ok(Rax::with(setup, spec, weights, random))
    }

    /// A flow that continues with the weights of another ([`learned`](Self::learned)).
    ///
    /// # Errors
    /// [`NetError`], one line: the checkpoint is malformed, or not one of this scheme.
    pub fn resumed(setup: &Setup, spec: &RaxSpec, learned: &str) -> Result<Rax, NetError> {
        Ok(Rax::continuing(setup, spec, &Rax::read_learned(learned)?))
    }

    /// Reads another flow's weights once, for many flows.
    ///
    /// # Errors
    /// [`NetError`], one line: the checkpoint is malformed, or not one of this scheme.
    pub(crate) fn read_learned(learned: &str) -> Result<RaxCheckpoint, NetError> {
        Checkpoint::read(learned, FEATURES, &CRITICS)
    }

    /// A flow that continues with these weights.
    pub(crate) fn continuing(setup: &Setup, spec: &RaxSpec, learned: &RaxCheckpoint) -> Rax {
        let spec = RaxSpec {
            pal: learned.weights.spec().clone(),
            ..spec.clone()
        };
        let random = setup.stream("rax weights");
        let mut rax = Rax::with(setup, spec, learned.weights.clone(), random);
        rax.agent.remember(&learned.memories);
        rax
    }

    fn with(setup: &Setup, spec: RaxSpec, weights: Weights<REWARDS>, random: Stream) -> Rax {
        let task = Throughput { alpha: spec.alpha };
        Rax {
            agent: Agent::new(task, &weights, setup.stream("rax")),
            setup: *setup,
            spec,
            random,
            weights,
            origin: None,
            state: State::default(),
            window: 1.0,
            last_ack: None,
            begun: setup.start,
            rtt_ms: 0.0,
            min_rtt_ms: f32::INFINITY,
            fallback: None,
            divergences: 0,
        }
    }

    /// A flow that begins with this one's weights, and returns to them whenever it diverges.
    pub(crate) fn begin_flow(&self, setup: &Setup, alpha: f32) -> Rax {
        let spec = RaxSpec {
            alpha,
            ..self.spec.clone()
        };
        let random = setup.stream("rax weights");
        let origin = self.checkpoint();
        let mut rax = Rax::with(setup, spec, origin.weights.clone(), random);
        rax.agent.remember(&origin.memories);
        rax.origin = Some(Arc::new(origin));
        rax
    }

    /// The same flow, which returns to the weights of `other` when it diverges.
    pub(crate) fn with_origin(mut self, other: &Rax) -> Rax {
        self.origin = Some(Arc::new(other.checkpoint()));
        self
    }

    /// The number of weights of all networks together.
    pub(crate) fn parameters(&self) -> usize {
        let networks = self.weights.networks().iter();
        networks.map(|net| net.parameters().len()).sum()
    }

    /// The number of gradients that were applied.
    pub(crate) fn updates(&self) -> u64 {
        self.weights.updates()
    }

    /// The weights so far, for a [`resumed`](Self::resumed) flow.
    pub fn learned(&self) -> String {
        self.checkpoint().write()
    }

    fn checkpoint(&self) -> Checkpoint<REWARDS> {
        Checkpoint {
            weights: self.weights.clone(),
            memories: self.agent.memories(),
        }
    }

    /// Starts again at `now`, as a new flow with this one's weights.
    fn restart(&mut self, now: Time) {
        let spec = RaxSpec {
            restart: Duration::ZERO,
            ..self.spec.clone()
        };
        let Checkpoint { weights, memories } = self.checkpoint();
        let mut next = Rax::with(&self.setup, spec, weights, self.random.clone());
        next.agent.remember(&memories);
        // The name decides a run's draws, so it stays.
        // codespell:ignore-next-line anew
        next.agent.draw_from(self.setup.stream("rax anew"));
        *self = Rax {
            origin: self.origin.clone(),
            begun: now,
            divergences: self.divergences,
            ..next
        };
    }

    fn packets(&self, size: Bytes) -> f32 {
        size.get() as f32 / self.setup.mss.get() as f32
    }

    /// Counts packets that the last action let out, and returns their number, by which feedback
    /// names them.
    pub(super) fn sent(&mut self, packets: f32) -> Tag {
        if self.fallback.is_some() || !self.state.is_known {
            return Tag::NONE;
        }
        // Before the first action the number is `u64::MAX`, which becomes `Tag::NONE`.
        Tag(self.agent.partial_action(packets).wrapping_add(1))
    }

    /// The time since the last acknowledgement in ms. Time before the packet was sent does not
    /// count, since nothing could arrive then.
    pub(super) fn gap_ms(&mut self, now: Time, sent: Time) -> f32 {
        let last = self
            .last_ack
            .replace(now)
            .map_or(sent, |last| last.max(sent));
        now.since(last).as_millis_f64() as f32
    }

    /// A packet arrived, this long after the one before. The window changes if `acts`.
    pub(super) fn acked(
        &mut self,
        now: Time,
        tag: Tag,
        packets: f32,
        sent: Time,
        gap_ms: f32,
        acts: bool,
    ) {
        self.rtt_ms = now.since(sent).as_millis_f64() as f32;
        self.min_rtt_ms = self.min_rtt_ms.min(self.rtt_ms.max(1e-3));
        self.answer(tag, &[packets, packets, gap_ms]);
        self.state.update([gap_ms, self.rtt_ms, 0.0, self.window]);
        if acts {
            self.act(now);
        }
    }

    /// A packet is taken for lost. The window changes if `acts`.
    pub(super) fn lost(&mut self, now: Time, tag: Tag, packets: f32, acts: bool) {
        self.answer(tag, &[0.0, packets, 0.0]);
        if !self.state.is_known {
            return;
        }
        let gap_ms = self.state.averages[0][0];
        self.state.update([gap_ms, self.rtt_ms, 1.0, self.window]);
        if acts {
            self.act(now);
        }
    }

    /// The fate of a packet is unknown.
    pub(super) fn forget_packet(&mut self, tag: Tag) {
        self.answer(tag, &[0.0; REWARDS]);
    }

    /// Another controller has set the window, in packets.
    pub(super) fn set_window(&mut self, window: f32) {
        self.window = window.max(1.0);
    }

    /// The window in packets, at least 1.
    pub(super) fn window(&self) -> f32 {
        self.window
    }

    /// Has it diverged so recently that NewReno controls the flow?
    pub(super) fn is_falling_back(&self, now: Time) -> bool {
        (self.fallback.as_ref()).is_some_and(|(_, until)| now < *until)
    }

    fn answer(&mut self, tag: Tag, rewards: &[f32; REWARDS]) {
        if let Some(number) = tag.0.checked_sub(1) {
            self.agent.feedback(number, rewards);
        }
    }

    fn act(&mut self, now: Time) {
        if let Some((_, until)) = &self.fallback {
            if now < *until {
                return;
            }
            self.fallback = None;
            self.window = self.window.min(self.largest_window());
        }
        let observation = self.state.observation(self.min_rtt_ms);
        let units = [1.0, 1.0, self.state.averages[1][0].max(1e-3) / self.window];
        // A runaway window is many times that. It has to be learned from before all of it has been
        // sent.
        let round = self.state.packets_per_rtt();
        let action = self
            .agent
            .act(&mut self.weights, &observation, self.window, round, units);
        match action {
            Ok(action) => {
                self.window = (self.window + self.spec.pal.action_scale * action).max(1.0);
                if self.window > self.largest_window() {
                    self.fall_back(now);
                }
            }
            Err(_) => self.fall_back(now),
        }
    }

    fn largest_window(&self) -> f32 {
        RUNAWAY * self.state.path_holds()
    }

    /// Runs NewReno for a time, starting with at most what the path holds. Then Rax starts again
    /// with a model's weights, or random ones.
    fn fall_back(&mut self, now: Time) {
        self.divergences += 1;
        self.window = self.window.min(self.state.path_holds());
        let mut newreno = NewReno::new(&self.setup, EcnUse::Off);
        let cwnd = self.control().cwnd;
        newreno.go_alone(cwnd, cwnd);
        self.fallback = Some((newreno, now + FALLBACK));
        self.agent.reset();
        if let Some(origin) = &self.origin {
            self.weights = origin.weights.clone();
            self.agent.remember(&origin.memories);
        } else {
            let spec = self.spec.pal.clone();
            let weights = Weights::random(spec, FEATURES, &CRITICS, &mut self.random);
            self.weights = weights.expect("the same as before");
        }
    }
}

impl CongestionControl for Rax {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.sent(self.packets(sent.size))
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let restart = self.spec.restart;
        if restart > Duration::ZERO && feedback.now >= self.begun + restart {
            self.restart(feedback.now);
        }
        if let Some((newreno, _)) = &mut self.fallback {
            newreno.on_feedback(feedback);
            self.window = self.packets(self.control().cwnd);
        }
        let begun = self.begun;
        for lost in feedback.lost.iter().filter(|lost| lost.sent >= begun) {
            self.lost(feedback.now, lost.tag, self.packets(lost.size), true);
        }
        for acked in feedback.acked.iter().filter(|acked| acked.sent >= begun) {
            let packets = self.packets(acked.size);
            let gap_ms = self.gap_ms(feedback.now, acked.sent);
            self.acked(feedback.now, acked.tag, packets, acked.sent, gap_ms, true);
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        if let Some((newreno, _)) = &mut self.fallback {
            newreno.on_rto(rto);
            self.window = self.packets(self.control().cwnd);
        }
        let begun = self.begun;
        for lost in rto.lost.iter().filter(|lost| lost.sent >= begun) {
            self.lost(rto.now, lost.tag, self.packets(lost.size), true);
        }
    }

    fn control(&self) -> Control {
        match &self.fallback {
            Some((newreno, _)) => newreno.control(),
            None => Control::window(self.setup.mss.mul_f64(f64::from(self.window))),
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn steered(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let policy = self.agent.policy();
        let [received, sent, duration] = *self.agent.values();
        probe.value("window_packets", self.window.into());
        probe.value("action_mean", policy.mean.into());
        probe.value("action_deviation", policy.deviation.into());
        probe.value("expected_received_packets", received.into());
        probe.value("expected_sent_packets", sent.into());
        probe.value("expected_duration_ms", duration.into());
        probe.value("updates", self.weights.updates() as f64);
        probe.value("divergences", self.divergences as f64);
        // Results count fallbacks to NewReno under this name.
        probe.value("guard_trips", self.divergences as f64);
        probe.value("forgotten_actions", self.agent.forgotten() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weights that a flow has after it diverged.
    fn after_divergence(mut rax: Rax) -> String {
        rax.fall_back(Time::from_millis(1));
        rax.learned()
    }

    #[test]
    fn a_diverged_flow_restarts_from_its_initial_weights() {
        let setup = Setup::new(Bytes::new(1500), 1);
        let rax = |seed| {
            let setup = Setup::new(Bytes::new(1500), seed);
            Rax::new(&setup, RaxSpec::default()).expect("the default")
        };
        let (model, other) = (rax(2), rax(3));
        let resumed = || {
            let resumed = Rax::resumed(&setup, &RaxSpec::default(), &other.learned());
            resumed.expect("it was just written")
        };
        assert_eq!(
            after_divergence(model.begin_flow(&setup, 4.0)),
            model.learned()
        );
        assert_eq!(
            after_divergence(resumed().with_origin(&model)),
            model.learned()
        );
        let random = after_divergence(resumed());
        assert!(![model.learned(), other.learned()].contains(&random));
    }
}
