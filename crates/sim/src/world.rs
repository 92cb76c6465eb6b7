//! The simulator as a world of a batch.

use headway_cc::{Duration, Registry, SchemeError};
use headway_net::transport::SUPPLIES;
use headway_scenario::TraceSpec;
use headway_world::{Ended, Outcome, Recording, RunError, Trial, World};

use crate::simulation::router_of_schemes;
use crate::{Observer, Recorder, Simulation, SimulationError};

/// This world, and what it supplies to schemes.
pub const WORLD: headway_cc::World = headway_cc::World {
    name: "sim",
    supplies: SUPPLIES,
};

/// World 1: simulated time, with the schemes of a registry.
#[derive(Clone, Debug)]
pub struct Sim {
    registry: Registry,
}

impl Sim {
    /// How often a run checks whether to stop, in simulated time.
    const STEP: Duration = Duration::from_millis(10);

    /// A world with the schemes of `registry`.
    pub fn new(registry: Registry) -> Sim {
        Sim { registry }
    }

    fn simulation<O: Observer>(
        &self,
        trial: &Trial<'_>,
        observer: O,
    ) -> Result<Simulation<O>, SimulationError> {
        let test = self.registry.select(trial.scheme)?;
        let traces = |spec: &TraceSpec| trial.traces.load_spec(spec).map_err(|e| e.to_string());
        Simulation::observed(
            trial.network,
            &test,
            &self.registry,
            &traces,
            trial.options,
            observer,
        )
    }

    fn recorder(
        &self,
        trial: &Trial<'_>,
        recording: &Recording<'_>,
    ) -> Result<Recorder, SchemeError> {
        let test = self.registry.select(trial.scheme)?;
        let router = router_of_schemes(trial.network, &test, &self.registry);
        let Recording {
            wanted,
            stem,
            title,
        } = recording;
        Ok(Recorder::new(stem, wanted, trial.network, router, title))
    }
}

impl World for Sim {
    fn about(&self) -> headway_cc::World {
        WORLD
    }

    fn canonical(&self, scheme: &str) -> Result<String, SchemeError> {
        Ok(self.registry.select(scheme)?.canonical())
    }

    fn check(&self, trial: &Trial<'_>) -> Result<(), RunError> {
        self.simulation(trial, ())?;
        Ok(())
    }

    fn run(&self, trial: &Trial<'_>, go_on: &mut dyn FnMut(Duration) -> bool) -> Ended {
        let Some(recording) = &trial.recording else {
            let simulation = self.simulation(trial, ());
            return Ended {
                outcome: simulation
                    .and_then(|s| drive(s, go_on))
                    .map_err(RunError::from),
                recorded: None,
            };
        };
        let mut recorder = match self.recorder(trial, recording) {
            Ok(recorder) => recorder,
            Err(error) => return Ended::failed(SimulationError::from(error).into()),
        };
        let simulation = self.simulation(trial, &mut recorder);
        let outcome = simulation.and_then(|s| drive(s, go_on));
        Ended {
            outcome: outcome.map_err(RunError::from),
            // A run that is cancelled or fails also has a recording, up to its end.
            recorded: Some(recorder.finish()),
        }
    }
}

/// Runs it to its end; `None` if it was stopped on the way.
fn drive<O: Observer>(
    mut simulation: Simulation<O>,
    go_on: &mut dyn FnMut(Duration) -> bool,
) -> Result<Option<Outcome>, SimulationError> {
    let end = simulation.end();
    let mut done = Duration::ZERO;
    while simulation.now() < end {
        if !go_on(done) {
            return Ok(None);
        }
        let before = simulation.now();
        simulation.run_until(before + Sim::STEP)?;
        done = simulation.now().since(before);
    }
    go_on(done);
    simulation.finish().map(Some)
}
