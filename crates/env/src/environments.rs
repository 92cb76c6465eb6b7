//! Many environments side by side, each with one learning flow.

use std::sync::Arc;

use headway_cc::Stream;
use headway_policy::Answer;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::episode::{End, Episode, Pause};
use crate::measurement::width;
use crate::{EnvError, EnvSpec};

/// Environments side by side. Each runs the episodes of its own seed, one after the other. Nothing
/// else influences it, in particular not the number of threads.
#[derive(Debug)]
pub struct Environments {
    spec: Arc<EnvSpec>,
    slots: Vec<Slot>,
    /// `None` for one thread, which is the caller's.
    pool: Option<ThreadPool>,
    threads: usize,
    /// The process that has the pool's threads: a forked process does not inherit them.
    owner: u32,
}

/// One environment.
#[derive(Debug)]
struct Slot {
    seed: u64,
    index: u64,
    next_episode: u64,
    episode: Option<Episode>,
    /// Data packets of earlier episodes.
    packets: u64,
    /// Why its last failed episode failed.
    failure: Option<EnvError>,
}

/// What happens to an environment after the end of an episode, by Gymnasium's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autoreset {
    /// It has to be [reset](Environments::reset) before the next answer.
    Disabled,
    /// Its next episode begins in the step that ended the last one.
    SameStep,
    /// Its next episode begins in the next step, which ignores the answer.
    NextStep,
}

/// The outputs of a step: for each environment a row, one after the other.
#[derive(Debug)]
pub struct Outputs<'a> {
    /// Each agent's present observation; if its episode has ended, the first of the next one.
    pub observations: &'a mut [f32],
    /// Each agent's last observation of an episode that has ended; unchanged if the episode
    /// continues.
    pub final_observations: &'a mut [f32],
    /// The measurements of each step.
    pub measurements: &'a mut [f64],
    /// Why each episode has ended, an [`End`](crate::End); 0 if it continues.
    pub ends: &'a mut [u8],
}

impl Environments {
    /// `count` environments, seeded by `seed`, before their first [`reset`](Self::reset). The
    /// default of `threads` is one a core.
    ///
    /// # Errors
    /// [`EnvError::Usage`] if a scenario does not have exactly one learning flow, or threads cannot
    /// be started.
    pub fn new(
        spec: Arc<EnvSpec>,
        count: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> Result<Environments, EnvError> {
        let learners = spec.learners()?;
        if learners != 1 {
            return Err(EnvError::Usage(format!(
                "scenario '{}': {learners} flows learn, but here only one may; give the others a scheme",
                spec.tasks[0].scenario.name()
            )));
        }
        let threads = threads.unwrap_or_else(|| {
            let cores = std::thread::available_parallelism();
            cores.map_or(1, |n| n.get()).min(count)
        });
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let cannot = |e| EnvError::Usage(format!("threads: cannot start {threads}: {e}"));
        let slot = |index| Slot {
            seed,
            index,
            next_episode: 0,
            episode: None,
            packets: 0,
            failure: None,
        };
        Ok(Environments {
            spec,
            slots: (0..count as u64).map(slot).collect(),
            pool: match threads {
                0 | 1 => None,
                _ => Some(pool.build().map_err(cannot)?),
            },
            threads,
            owner: std::process::id(),
        })
    }

    /// Makes a new pool in a forked process.
    fn own_threads(&mut self) -> Result<(), EnvError> {
        if self.pool.is_some() && self.owner != std::process::id() {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads);
            let pool = pool.build().map_err(|e| {
                EnvError::Usage(format!("threads: cannot start {}: {e}", self.threads))
            })?;
            // Ending the other process's threads would wait for ever.
            std::mem::forget(self.pool.replace(pool));
            self.owner = std::process::id();
        }
        Ok(())
    }

    /// The number of environments.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Are there no environments?
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Seeds an environment again: its next episode is the first of (`seed`, `index`).
    pub fn seed(&mut self, environment: usize, seed: u64, index: u64) {
        let slot = &mut self.slots[environment];
        (slot.seed, slot.index, slot.next_episode) = (seed, index, 0);
    }

    /// Begins the next episode of the environments selected by `which`, and writes their first
    /// observations.
    ///
    /// # Errors
    /// [`EnvError`]
    pub fn reset(&mut self, which: &[bool], observations: &mut [f32]) -> Result<(), EnvError> {
        self.own_threads()?;
        let spec = &*self.spec;
        let length = spec.agent.observation.len();
        let rows = observations.par_chunks_exact_mut(length);
        let work = |((slot, row), which): ((&mut Slot, &mut [f32]), &bool)| match which {
            true => slot.begin(spec, row),
            false => Ok(()),
        };
        match &self.pool {
            Some(pool) => {
                let slots = self.slots.par_iter_mut().zip(rows).zip(which);
                pool.install(|| slots.map(work).collect::<Vec<_>>())
                    .into_iter()
                    .collect()
            }
            None => {
                let rows = observations.chunks_exact_mut(length);
                let mut slots = self.slots.iter_mut().zip(rows).zip(which);
                slots.try_for_each(work)
            }
        }
    }

    /// Gives every agent its answer, which has as many numbers as
    /// [`AgentSpec::answers`](headway_policy::AgentSpec::answers) says, and runs each environment
    /// to its next decision. `autoreset` says when the next episode begins after an end. The
    /// measurements of a step that only begins an episode are zeros.
    ///
    /// # Errors
    /// [`EnvError`], the first one by environment: it has no active episode, or the next one cannot
    /// begin. A failure during an episode only [ends](crate::End::Failed) it.
    pub fn step(
        &mut self,
        answers: &[f32],
        outputs: Outputs<'_>,
        autoreset: Autoreset,
    ) -> Result<(), EnvError> {
        self.own_threads()?;
        let spec = &*self.spec;
        let (length, width) = (spec.agent.observation.len(), width());
        let work = |(slot, answer, row): (&mut Slot, &[f32], Row<'_>)| {
            slot.step(spec, answer_of(answer), row, autoreset)
        };
        let rows = outputs.rows(length, width);
        let answers = answers.chunks_exact(spec.agent.answers());
        let jobs: Vec<_> = self.slots.iter_mut().zip(answers).zip(rows).collect();
        let job = |((slot, answer), row)| work((slot, answer, row));
        match &self.pool {
            Some(pool) => pool
                .install(|| jobs.into_par_iter().map(job).collect::<Vec<_>>())
                .into_iter()
                .collect(),
            None => jobs.into_iter().try_for_each(job),
        }
    }

    /// Data packets that the learning flows have sent since the start.
    pub fn packets(&mut self) -> u64 {
        let packets =
            |slot: &mut Slot| slot.packets + slot.episode.as_mut().map_or(0, Episode::packets);
        self.slots.iter_mut().map(packets).sum()
    }

    /// Why the last [failed](crate::End::Failed) episode of an environment failed.
    pub fn failure(&self, environment: usize) -> Option<&EnvError> {
        self.slots[environment].failure.as_ref()
    }

    /// The scenario and the seed of an environment's episode.
    pub fn episode(&self, environment: usize) -> Option<(&str, u64)> {
        let episode = self.slots[environment].episode.as_ref()?;
        Some((episode.scenario(), episode.seed()))
    }
}

/// Reads an action, and the length of the next interval if it is given.
fn answer_of(numbers: &[f32]) -> Answer {
    Answer {
        action: numbers[0],
        interval: numbers.get(1).copied(),
    }
}

/// One environment's part of the [`Outputs`].
struct Row<'a> {
    observation: &'a mut [f32],
    final_observation: &'a mut [f32],
    measurements: &'a mut [f64],
    end: &'a mut u8,
}

impl Drop for Environments {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            std::mem::forget(self.pool.take());
        }
    }
}

impl<'a> Outputs<'a> {
    fn rows(self, length: usize, width: usize) -> impl Iterator<Item = Row<'a>> {
        let observations = self.observations.chunks_exact_mut(length);
        let finals = self.final_observations.chunks_exact_mut(length);
        let measurements = self.measurements.chunks_exact_mut(width);
        let rows = observations.zip(finals).zip(measurements).zip(self.ends);
        rows.map(
            |(((observation, final_observation), measurements), end)| Row {
                observation,
                final_observation,
                measurements,
                end,
            },
        )
    }
}

impl Slot {
    /// Begins the next episode that reaches a decision.
    fn begin(&mut self, spec: &EnvSpec, observation: &mut [f32]) -> Result<(), EnvError> {
        const MOST_TRIES: u32 = 100;
        for _ in 0..MOST_TRIES {
            self.packets += self.episode.take().map_or(0, |mut e| e.packets());
            let name = format!("environment.{}.episode.{}", self.index, self.next_episode);
            self.next_episode += 1;
            let mut episode = Episode::new(spec, Stream::new(self.seed, &name).bits())?;
            let pause = episode.advance();
            if pause == Pause::End(End::Failed) {
                self.failure = episode.failure().cloned();
            }
            if pause == Pause::Decision {
                observation.copy_from_slice(episode.observation(0));
                self.episode = Some(episode);
                return Ok(());
            }
        }
        Err(EnvError::Usage(format!(
            "{MOST_TRIES} episodes in a row ended before a decision; let them last longer, or have a faster clock"
        )))
    }

    fn step(
        &mut self,
        spec: &EnvSpec,
        answer: Answer,
        row: Row<'_>,
        autoreset: Autoreset,
    ) -> Result<(), EnvError> {
        let Some(episode) = &mut self.episode else {
            if autoreset == Autoreset::NextStep && self.next_episode > 0 {
                row.measurements.fill(0.0);
                *row.end = 0;
                return self.begin(spec, row.observation);
            }
            return Err(EnvError::Usage(
                "reset an environment before its first step, and after the end of each episode"
                    .to_owned(),
            ));
        };
        episode.answer(0, answer);
        episode.resume();
        let pause = episode.advance();
        episode.measure(0, row.measurements);
        let Pause::End(end) = pause else {
            *row.end = 0;
            row.observation.copy_from_slice(episode.observation(0));
            return Ok(());
        };
        *row.end = end as u8;
        if end == End::Failed {
            self.failure = episode.failure().cloned();
        }
        row.final_observation
            .copy_from_slice(episode.observation(0));
        match autoreset {
            Autoreset::SameStep => self.begin(spec, row.observation),
            Autoreset::Disabled | Autoreset::NextStep => {
                row.observation.copy_from_slice(row.final_observation);
                self.packets += self.episode.take().map_or(0, |mut e| e.packets());
                Ok(())
            }
        }
    }
}
