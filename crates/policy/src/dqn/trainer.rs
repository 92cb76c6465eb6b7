//! Gradient steps of a flow that learns in use, on its own thread or on another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

use headway_cc::Stream;

use super::{DqnSpec, Learner, Replay, Transition};
use crate::nn::{NetError, Network};

/// What learns: the transitions that it learns from, and the network that gradient steps change.
#[derive(Clone, Debug)]
pub struct Trainer {
    learner: Learner,
    replay: Replay,
    /// Which transitions the next gradient step takes.
    batch: Vec<usize>,
}

impl Trainer {
    /// Goes on from a network's parameters, without a transition.
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

    /// The network that it changes, and how many gradient steps it has taken.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// Goes on from what another has learned in this many gradient steps, if it is of the same
    /// size.
    pub fn go_on_from(&mut self, network: &Network, steps: u64) {
        self.learner.go_on_from(network, steps);
    }

    /// Keeps a transition.
    pub fn push(&mut self, transition: Transition<'_>) {
        self.replay.push(transition);
    }

    /// How many transitions it keeps.
    pub fn transitions(&self) -> usize {
        self.replay.len()
    }

    /// Draws the transitions of the next gradient step.
    pub fn draw(&mut self, count: usize, random: &mut Stream) {
        self.batch.clear();
        self.batch.extend(self.replay.draw(count, random));
    }

    /// Takes a gradient step with the transitions that were [drawn](Self::draw), and copies the
    /// parameters into `network`. Returns the loss; `None`, with nothing changed, if it is not
    /// finite.
    pub fn step(&mut self, network: &mut Network) -> Option<f32> {
        let batch = self.batch.iter().map(|index| self.replay.get(*index));
        let loss = self.learner.learn(batch);
        let parameters = self.learner.network().parameters();
        network.parameters_mut().copy_from_slice(parameters);
        loss
    }
}

/// A gradient step that another thread takes, so that the thread that decides does not wait.
#[derive(Debug)]
pub struct Step {
    trainer: Box<Trainer>,
    /// Room for the parameters that come of it.
    network: Network,
    /// What came of it, once it was taken.
    loss: Option<f32>,
    done: SyncSender<Done>,
    /// Nobody waits for it any more.
    is_abandoned: Arc<AtomicBool>,
}

/// A gradient step that was taken.
#[derive(Debug)]
pub struct Done {
    pub trainer: Box<Trainer>,
    pub network: Network,
    pub loss: Option<f32>,
}

impl Step {
    /// How many transitions its trainer keeps.
    pub fn transitions(&self) -> usize {
        self.trainer.transitions()
    }

    /// Takes it, unless its flow has ended meanwhile. Allocates nothing, frees nothing and waits
    /// for nobody.
    pub fn take(&mut self) {
        if !self.is_abandoned.load(Ordering::Relaxed) {
            self.loss = self.trainer.step(&mut self.network);
        }
    }

    /// Gives it back, taken, to its flow. If that has ended, its memory is freed here.
    pub fn give_back(self) {
        // There is room for one.
        let _ = self.done.try_send(Done {
            trainer: self.trainer,
            network: self.network,
            loss: self.loss,
        });
    }
}

/// A gradient step that is under way on another thread.
#[derive(Debug)]
pub struct UnderWay {
    done: Receiver<Done>,
    is_abandoned: Arc<AtomicBool>,
    /// What followed decisions meanwhile: state, action, reward, next state.
    waiting: Vec<(Vec<f32>, usize, f32, Vec<f32>)>,
}

/// Why another thread does not take a step; with what was to be sent there.
#[derive(Debug)]
pub enum Refused {
    /// It has as many to take as it has room for.
    Busy(Box<Trainer>, Box<Network>),
    /// It has ended.
    Gone,
}

/// What has become of a gradient step on another thread.
#[derive(Debug)]
pub enum Progress {
    UnderWay,
    /// It was taken; the transitions of the meantime are with the trainer.
    Done(Done),
    /// The thread has ended, and what learned with it.
    Lost,
}

impl UnderWay {
    /// Transitions beyond these are not learned from.
    pub const MOST_WAITING: usize = 256;

    /// Gives a step to another thread.
    ///
    /// # Errors
    /// [`Refused`], if it takes none.
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

    /// Keeps a transition until the trainer is back. Was there room?
    pub fn push(&mut self, transition: Transition<'_>) -> bool {
        let has_room = self.waiting.len() < UnderWay::MOST_WAITING;
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

    /// Looks whether the step was taken. It does not wait.
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
