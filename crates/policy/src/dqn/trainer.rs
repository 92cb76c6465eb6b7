//! Gradient steps of a flow that learns in use, on its own thread or on another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

use headway_cc::Stream;

use super::{DqnSpec, Learner, Replay, Transition};
use crate::nn::{NetError, Network};

/// The transitions of a flow, and the network that gradient steps change.
#[derive(Clone, Debug)]
pub struct Trainer {
    learner: Learner,
    replay: Replay,
    /// The transitions of the next gradient step.
    batch: Vec<usize>,
}

impl Trainer {
    /// Begins with a network's parameters and no transitions.
    ///
    /// # Errors
    /// [`NetError`], one line, as [`Learner::new`].
    pub fn new(network: Network, spec: DqnSpec) -> Result<Trainer, NetError> {
        Ok(Trainer {
            replay: Replay::new(spec.capacity, network.spec().inputs()),
            batch: Vec::new(),
            learner: Learner::new(network, spec)?,
        })
    }

    /// The learner: its network, and its number of gradient steps.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// Continues with a network that another flow learned in this many gradient steps, if its size
    /// is the same.
    pub fn continue_from(&mut self, network: &Network, steps: u64) {
        self.learner.continue_from(network, steps);
    }

    /// Stores a transition.
    pub fn push(&mut self, transition: Transition<'_>) {
        self.replay.push(transition);
    }

    /// The number of stored transitions.
    pub fn transitions(&self) -> usize {
        self.replay.len()
    }

    /// Draws the transitions of the next gradient step.
    pub fn draw(&mut self, count: usize, random: &mut Stream) {
        self.batch.clear();
        self.batch.extend(self.replay.draw(count, random));
    }

    /// Takes a gradient step with the [drawn](Self::draw) transitions, copies the parameters into
    /// `network`, and returns the loss. Returns `None`, with nothing changed, if the loss is not
    /// finite.
    pub fn step(&mut self, network: &mut Network) -> Option<f32> {
        let batch = self.batch.iter().map(|index| self.replay.get(*index));
        let loss = self.learner.learn(batch);
        let parameters = self.learner.network().parameters();
        network.parameters_mut().copy_from_slice(parameters);
        loss
    }
}

/// A gradient step that another thread takes, so that the deciding thread does not wait.
#[derive(Debug)]
pub struct Step {
    trainer: Box<Trainer>,
    /// Space for the step's parameters.
    network: Network,
    /// The step's loss, once it is done.
    loss: Option<f32>,
    done: SyncSender<Done>,
    /// Has the flow ended, so that the result is not needed?
    is_abandoned: Arc<AtomicBool>,
}

/// A gradient step that is done.
#[derive(Debug)]
pub struct Done {
    pub trainer: Box<Trainer>,
    pub network: Network,
    pub loss: Option<f32>,
}

impl Step {
    /// The number of transitions that its trainer stores.
    pub fn transitions(&self) -> usize {
        self.trainer.transitions()
    }

    /// Takes the step, unless its flow has ended meanwhile. It does not allocate, free or block.
    pub fn take(&mut self) {
        if !self.is_abandoned.load(Ordering::Relaxed) {
            self.loss = self.trainer.step(&mut self.network);
        }
    }

    /// Returns the finished step to its flow. If the flow has ended, the step's memory is freed
    /// here.
    pub fn give_back(self) {
        // The channel has room for one step.
        let _ = self.done.try_send(Done {
            trainer: self.trainer,
            network: self.network,
            loss: self.loss,
        });
    }
}

/// A gradient step in progress on another thread.
#[derive(Debug)]
pub struct UnderWay {
    done: Receiver<Done>,
    is_abandoned: Arc<AtomicBool>,
    /// Transitions since it was sent: state, action, reward, next state.
    waiting: Vec<(Vec<f32>, usize, f32, Vec<f32>)>,
}

/// Why another thread did not accept a step, with what was to be sent.
#[derive(Debug)]
pub enum Refused {
    /// The thread's queue is full.
    Busy(Box<Trainer>, Box<Network>),
    /// The thread has ended.
    Gone,
}

/// The state of a gradient step on another thread.
#[derive(Debug)]
pub enum Progress {
    UnderWay,
    /// The step is done, and the trainer has the transitions that came meanwhile.
    Done(Done),
    /// The thread has ended, and the trainer with it.
    Lost,
}

impl UnderWay {
    /// The most transitions that are kept while a step is in progress; later ones are dropped.
    pub const MAX_WAITING: usize = 256;

    /// Sends a step to another thread.
    ///
    /// # Errors
    /// [`Refused`] if the thread accepts none.
    pub fn send(
        to: &SyncSender<Step>,
        trainer: Box<Trainer>,
        network: Network,
    ) -> Result<UnderWay, Refused> {
        let (sender, done) = sync_channel(1);
        let is_abandoned = Arc::default();
        let step = Step {
            trainer,
            network,
            loss: None,
            done: sender,
            is_abandoned: Arc::clone(&is_abandoned),
        };
        match to.try_send(step) {
            Ok(()) => Ok(UnderWay {
                done,
                is_abandoned,
                waiting: Vec::new(),
            }),
            Err(TrySendError::Full(step)) => {
                Err(Refused::Busy(step.trainer, Box::new(step.network)))
            }
            Err(TrySendError::Disconnected(_)) => Err(Refused::Gone),
        }
    }

    /// Stores a transition until the trainer is back. Was there room?
    pub fn push(&mut self, transition: Transition<'_>) -> bool {
        let has_room = self.waiting.len() < UnderWay::MAX_WAITING;
        if has_room {
            let Transition {
                state,
                action,
                reward,
                next,
            } = transition;
            (self.waiting).push((state.to_vec(), action, reward, next.to_vec()));
        }
        has_room
    }

    /// Checks whether the step is done, without waiting.
    pub fn look(&mut self) -> Progress {
        match self.done.try_recv() {
            Ok(mut done) => {
                for (state, action, reward, next) in self.waiting.drain(..) {
                    done.trainer.push(Transition {
                        state: &state,
                        action,
                        reward,
                        next: &next,
                    });
                }
                Progress::Done(done)
            }
            Err(TryRecvError::Empty) => Progress::UnderWay,
            Err(TryRecvError::Disconnected) => Progress::Lost,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }
}
