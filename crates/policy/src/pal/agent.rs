//! An agent that acts, and learns from feedback that comes later.

use std::collections::VecDeque;

use headway_cc::Stream;

use super::gaussian::Gaussian;
use super::nets::{self, Memories};
use super::segment::{Segment, Step};
use super::{Diverged, PalSpec, Task, Weights};

/// One agent: its actions, and the feedback that is outstanding (Algorithm 1).
#[derive(Clone, Debug)]
pub struct Agent<T, const N: usize> {
    task: T,
    random: Stream,
    memories: Memories,
    /// Work space for a prediction that changes no state.
    scratch: Memories,
    /// The segments, the oldest first; the last one is in progress.
    segments: VecDeque<Segment<N>>,
    /// Segments to use again, only those with little memory.
    spare: Vec<Segment<N>>,
    /// The number of the next partial action.
    next: u64,
    policy: Gaussian,
    values: [f32; N],
    forgotten: u64,
}

impl<T: Task<N>, const N: usize> Agent<T, N> {
    /// A new agent, which will act with `weights`.
    pub fn new(task: T, weights: &Weights<N>, random: Stream) -> Agent<T, N> {
        let memories = Memories::of(&weights.nets);
        Agent {
            task,
            random,
            scratch: memories.clone(),
            memories,
            segments: VecDeque::new(),
            spare: Vec::new(),
            next: 0,
            policy: Gaussian {
                mean: 0.0,
                deviation: 1.0,
            },
            values: [0.0; N],
            forgotten: 0,
        }
    }

    /// Acts on an observation, after it has learned from complete segments. `window` is the number
    /// of units of partial actions that may be in flight, `round` the number that is answered in a
    /// round trip; a segment is as long as the shorter of the two. `units` is the expected size of
    /// each reward.
    ///
    /// # Errors
    /// [`Diverged`]: the weights are no longer usable.
    pub fn act(
        &mut self,
        weights: &mut Weights<N>,
        observation: &[f32],
        window: f32,
        round: f32,
        units: [f32; N],
    ) -> Result<f32, Diverged> {
        self.end_segment(weights.spec(), observation);
        self.learn(weights)?;
        self.begin_segment(weights, units);
        let segment = self.segments.back_mut().expect("one is under way");
        let outputs = segment.outputs(&mut self.memories, observation);
        let values = nets::values(&outputs, &segment.units);
        let PalSpec {
            initial_deviation,
            least_deviation,
            action_scale,
            ..
        } = *weights.spec();
        let policy = Gaussian::of([outputs[0], outputs[1]], initial_deviation, least_deviation);
        let action = policy.mean + policy.deviation * self.random.normal() as f32;
        if !action.is_finite() {
            return Err(Diverged);
        }
        (self.policy, self.values) = (policy, values);
        let step = Step {
            outputs,
            values,
            action,
            window,
            rewards: [0.0; N],
        };
        segment.add(step, action_scale, round);
        Ok(action)
    }

    /// The last action has caused a partial action of this size. Returns its number, for
    /// [`feedback`](Self::feedback), or `u64::MAX` before the first action.
    #[inline]
    pub fn partial_action(&mut self, size: f32) -> u64 {
        if let Some(segment) = self.segments.back_mut() {
            segment.cause(size);
            self.next += 1;
        }
        self.next.wrapping_sub(1)
    }

    /// Takes the feedback for the partial action with that number. A partial action that was
    /// dropped or already answered is ignored.
    #[inline]
    pub fn feedback(&mut self, number: u64, rewards: &[f32; N]) {
        let segment = self.segments.iter_mut().rev().find(|s| s.first <= number);
        if let Some(segment) = segment {
            segment.feedback(number, rewards);
        }
    }

    /// The memories of its networks: the actor's units, then the critics'.
    pub fn memories(&self) -> Vec<Vec<f32>> {
        let memories = self.memories.0.iter();
        memories.map(|state| state.memory().to_vec()).collect()
    }

    /// Restores the memories of its networks.
    ///
    /// # Panics
    /// If they have other sizes.
    pub fn remember(&mut self, memories: &[Vec<f32>]) {
        for (state, memory) in self.memories.0.iter_mut().zip(memories) {
            state.memory_mut().copy_from_slice(memory);
        }
    }

    /// Draws its actions from this random stream from now on.
    pub fn draw_from(&mut self, random: Stream) {
        self.random = random;
    }

    /// Forgets all segments and memories.
    pub fn reset(&mut self) {
        while let Some(segment) = self.segments.pop_front() {
            self.spare(segment);
        }
        self.memories.reset();
    }

    /// The distribution from which the last action was drawn.
    pub fn policy(&self) -> Gaussian {
        self.policy
    }

    /// The critics' predictions for the last action.
    pub fn values(&self) -> &[f32; N] {
        &self.values
    }

    /// The number of actions that wait for feedback.
    pub fn awaited(&self) -> usize {
        self.segments
            .iter()
            .map(|segment| segment.steps.len())
            .sum()
    }

    /// Was the last action the first of its segment?
    pub fn began_segment(&self) -> bool {
        self.segments.back().is_some_and(|s| s.steps.len() == 1)
    }

    /// The number of actions that were dropped because their feedback did not come.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Learns from every complete segment, the oldest first.
    fn learn(&mut self, weights: &mut Weights<N>) -> Result<(), Diverged> {
        while self.segments.front().is_some_and(Segment::is_rewarded) {
            let mut segment = self
                .segments
                .pop_front()
                .expect("the queue lost the rewarded segment at its front");
            let learned = weights.learn(&self.task, &mut segment);
            self.spare(segment);
            learned?;
        }
        Ok(())
    }

    /// Keeps a segment to use it again. The memory of a long one is released: any segment can
    /// become long once, and together they would hold far more than is ever in use.
    fn spare(&mut self, segment: Segment<N>) {
        if segment.is_small() {
            self.spare.push(segment);
        }
    }

    /// Ends the current segment if it is time (Algorithm 3). Its averages end with what its own
    /// weights predict for the next step (Algorithm 1, line 8).
    fn end_segment(&mut self, spec: &PalSpec, observation: &[f32]) {
        let under_way = self.segments.back_mut();
        if let Some(segment) = under_way.filter(|s| s.is_due(spec.shortest, spec.longest)) {
            self.scratch.copy_from(&self.memories);
            let outputs = segment.outputs_untraced(&mut self.scratch, observation);
            segment.continuation = Some(nets::values(&outputs, &segment.units));
        }
    }

    /// Begins a segment with the newest weights if none is in progress (Algorithm 1, lines 9 to
    /// 13).
    fn begin_segment(&mut self, weights: &Weights<N>, units: [f32; N]) {
        if self
            .segments
            .back()
            .is_some_and(|s| s.continuation.is_none())
        {
            return;
        }
        if self.segments.len() >= weights.spec().most_awaited
            && let Some(segment) = self.segments.pop_front()
        {
            self.forgotten += segment.steps.len() as u64;
            self.spare(segment);
        }
        let spare = self.spare.pop();
        let mut segment = spare.unwrap_or_else(|| Segment::new(&weights.nets));
        segment.begin(self.next, &weights.nets, units);
        self.segments.push_back(segment);
    }
}
