//! Steps that were acted with the same weights, and their feedback.

use super::nets::{MAX_OUTPUTS, Memories};
use crate::nn::{Network, Trace};

/// Stands for a step's number once the partial action was answered.
const ANSWERED: u32 = u32::MAX;

/// A segment with room for more steps, or for eight times as many partial actions, is not kept.
const SMALL: usize = 128;

/// One action.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<const N: usize> {
    pub outputs: [f32; MAX_OUTPUTS],
    pub values: [f32; N],
    pub action: f32,
    /// Units of partial actions that may be in flight: w of Eq. 5.
    pub window: f32,
    /// The sum of the feedback so far.
    pub rewards: [f32; N],
}

/// Steps that were acted with the same weights. The networks' records are kept from the forward
/// pass, so the gradient needs no second one: Algorithm 2 restores them in its lines 5 and 6.
#[derive(Clone, Debug)]
pub(super) struct Segment<const N: usize> {
    /// The number of its first partial action.
    pub first: u64,
    /// The step of each partial action; [`ANSWERED`] once its feedback has come.
    parts: Vec<u32>,
    pub nets: Vec<Network>,
    pub traces: Vec<Trace>,
    pub steps: Vec<Step<N>>,
    /// The unit of each reward.
    pub units: [f32; N],
    /// Units of partial actions until the round is over (Algorithm 3).
    left: f32,
    /// The number of partial actions without feedback.
    awaited: usize,
    /// What its own weights predict for the step after its last one. It is set once the segment is
    /// over.
    pub continuation: Option<[f32; N]>,
}

impl<const N: usize> Segment<N> {
    pub fn new(nets: &[Network]) -> Segment<N> {
        Segment {
            first: 0,
            parts: Vec::new(),
            nets: nets.to_vec(),
            traces: nets.iter().map(Network::trace).collect(),
            steps: Vec::new(),
            units: [1.0; N],
            left: 0.0,
            awaited: 0,
            continuation: None,
        }
    }

    /// Starts the segment again with these weights. `first` is the number of the next partial
    /// action.
    pub fn begin(&mut self, first: u64, nets: &[Network], units: [f32; N]) {
        for (mine, net) in self.nets.iter_mut().zip(nets) {
            mine.parameters_mut().copy_from_slice(net.parameters());
        }
        self.traces.iter_mut().for_each(Trace::clear);
        self.steps.clear();
        self.parts.clear();
        (self.first, self.units, self.awaited) = (first, units, 0);
        self.continuation = None;
    }

    /// Has it room for only a few steps?
    pub fn is_small(&self) -> bool {
        self.steps.capacity() <= SMALL && self.parts.capacity() <= 8 * SMALL
    }

    /// All outputs for an observation: mean and standard deviation, then the critics' outputs. The
    /// step is added to the traces.
    #[inline]
    pub fn outputs(&mut self, memories: &mut Memories, observation: &[f32]) -> [f32; MAX_OUTPUTS] {
        let (mut outputs, mut at) = ([0.0; MAX_OUTPUTS], 0);
        let nets = self.nets.iter().zip(&mut self.traces);
        for ((net, trace), memory) in nets.zip(&mut memories.0) {
            let n = net.spec().outputs();
            net.forward_traced(memory, trace, observation, &mut outputs[at..at + n]);
            at += n;
        }
        outputs
    }

    /// All outputs for an observation, without a trace.
    pub fn outputs_untraced(
        &self,
        memories: &mut Memories,
        observation: &[f32],
    ) -> [f32; MAX_OUTPUTS] {
        let (mut outputs, mut at) = ([0.0; MAX_OUTPUTS], 0);
        for (net, memory) in self.nets.iter().zip(&mut memories.0) {
            let n = net.spec().outputs();
            net.forward(memory, observation, &mut outputs[at..at + n]);
            at += n;
        }
        outputs
    }

    /// Adds a step. The first step's window is the round (Algorithm 3), unless `round` is shorter.
    pub fn add(&mut self, step: Step<N>, action_scale: f32, round: f32) {
        if self.steps.is_empty() {
            self.left = (step.window + action_scale * step.action)
                .min(round)
                .floor();
        }
        self.steps.push(step);
    }

    /// The last action has caused a partial action of this size.
    #[inline]
    pub fn cause(&mut self, size: f32) {
        self.parts.push(self.steps.len() as u32 - 1);
        self.awaited += 1;
        self.left -= size;
    }

    /// Takes the feedback for one of its partial actions; a second one is ignored.
    #[inline]
    pub fn feedback(&mut self, number: u64, rewards: &[f32; N]) {
        let part = self.parts.get_mut((number - self.first) as usize);
        let Some(part) = part.filter(|part| **part != ANSWERED) else {
            return;
        };
        let step = &mut self.steps[std::mem::replace(part, ANSWERED) as usize];
        for (sum, reward) in step.rewards.iter_mut().zip(rewards) {
            *sum += reward;
        }
        self.awaited -= 1;
    }

    /// Has it caused as much as a round, or become too long?
    #[inline]
    pub fn is_due(&self, shortest: usize, longest: usize) -> bool {
        let steps = self.steps.len();
        (self.left <= 0.0 && steps >= shortest) || steps >= longest
    }

    /// Is every action of it rewarded?
    #[inline]
    pub fn is_rewarded(&self) -> bool {
        self.continuation.is_some() && self.awaited == 0
    }
}
