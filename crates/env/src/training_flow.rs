//! Trains a flow of Rax in one simulation. The learners that come with Headway were made by it.

use headway_cc::{Bytes, Duration, Need, Registry, Scheme, Setup, Time, schemes};
use headway_policy::schemes::{Rax, RaxSpec};
use headway_scenario::{Scenario, TraceSpec, TraceStore};
use headway_sim::{Options, Simulation};

use crate::EnvError;
use crate::spec::may_train;

static LEARNING: Scheme = Scheme::unlisted("rax-learning", &[Need::PerPacket]);

/// Runs a scenario with Rax for `length`. Returns what its first flow has learned by then.
///
/// # Arguments
/// `learned`: what all flows begin with; `None` for random weights.
///
/// # Errors
/// [`EnvError`], one line: the scenario is held out or cannot be run, or `learned` is not complete.
pub fn train_flow(
    scenario: &Scenario,
    seed: u64,
    length: Duration,
    spec: &RaxSpec,
    learned: Option<&str>,
    store: &TraceStore,
) -> Result<String, EnvError> {
    may_train(scenario)?;
    let (spec, learned) = (spec.clone(), learned.map(str::to_owned));
    let begin = move |setup: &Setup| match &learned {
        Some(learned) => Rax::resumed(setup, &spec, learned),
        None => Rax::new(setup, spec.clone()),
    };
    // Building a spare flow first reports errors before the simulation.
    begin(&Setup::new(Bytes::new(1500), 0)).map_err(|e| EnvError::Usage(e.to_string()))?;
    let selection = LEARNING
        .built_by(move |setup| Box::new(begin(setup).expect("the same arguments worked above")));
    let failed = |error| EnvError::Scenario {
        scenario: scenario.name().to_owned(),
        error,
    };
    let options = Options {
        duration: length,
        warmup: Duration::ZERO,
        seed,
        grid: None,
    };
    let traces = |spec: &TraceSpec| scenario.load_trace(spec, store).map_err(|e| e.to_string());
    let registry = Registry::new(schemes::SCHEMES);
    let network = scenario.draw(seed);
    let simulation = Simulation::new(&network, &selection, &registry, &traces, options);
    let mut simulation = simulation.map_err(failed)?;
    simulation.run_until(Time::ZERO + length).map_err(failed)?;
    let rax = simulation.sender_mut(0).steered::<Rax>();
    let rax = rax.ok_or_else(|| {
        let name = scenario.name();
        EnvError::Usage(format!(
            "scenario '{name}': its first flow has a scheme of its own; remove it, so that the flow learns"
        ))
    })?;
    Ok(rax.learned())
}
