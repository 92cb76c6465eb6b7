//! A learned scheme for an agent outside the transport.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use headway_cc::{Param, Probe, Registry, SchemeError, Selection, Setup, Values};
use headway_fixed::Int8;

use super::rax_records::RaxOverRecords;
use super::{Rax, RaxCheckpoint, RaxSpec, SCHEMES, interval, rax_pretrained};
use crate::dqn::Step;
use crate::model::{Learner, Model, SavedNetwork, TrainingRange};
use crate::{AgentSpec, Decider, Policy, Record};

/// A learned scheme for flows of another transport: its agent, and who decides for a flow.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    spec: String,
    model_id: String,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// A trained network, which may go on learning.
    Net(Arc<Model>, Option<Learning>),
    /// Rax, from a learner's weights or from random ones.
    Rax(Option<Arc<Learner>>, RaxSpec),
}

/// How a policy goes on learning in use.
#[derive(Clone, Copy, Debug)]
struct Learning {
    weights: [f64; 2],
    epsilon: f64,
}

/// What a flow has learned ([`FlowPolicy::learned`]), read once for many flows.
#[derive(Clone, Debug)]
pub struct Experience(Learned);

#[derive(Clone, Debug)]
enum Learned {
    Net(Box<SavedNetwork>),
    Rax(Box<RaxCheckpoint>),
}

impl Experience {
    /// The number of its gradient steps.
    pub fn updates(&self) -> u64 {
        match &self.0 {
            Learned::Net(learned) => learned.steps,
            Learned::Rax(learned) => learned.weights.updates(),
        }
    }
}

/// The policy of a flow of another transport.
#[derive(Debug)]
pub enum FlowPolicy {
    /// A network, which decides when its agent's clock says.
    Net(Box<Decider<Box<dyn Policy>>>),
    /// A learner, which decides at each record.
    Rax(Box<RaxOverRecords>),
}

impl PolicySpec {
    /// Reads a scheme as `headway bench --schemes` does: `owl`, `owl:online=true`,
    /// `learned:model=DIR`, `rax:alpha=2`. It refuses parameters that only a simulated flow has.
    ///
    /// # Errors
    /// [`SchemeError`]: there is no such learned scheme or model, or the agent does not have a
    /// parameter.
    pub fn read(spec: &str) -> Result<PolicySpec, SchemeError> {
        let selection = Registry::new(SCHEMES).select(spec)?;
        check(&selection)?;
        let Selection { scheme, values, .. } = selection;
        let param = |name: &str| scheme.params.iter().find(|p| p.name == name);
        let served = |model_id: String, content| PolicySpec {
            spec: spec.to_owned(),
            model_id,
            content,
        };
        if let Some((learner, rax)) = rax_pretrained::read(scheme, &values) {
            let id = learner.as_ref().map_or("rax".to_owned(), |l| l.id());
            return Ok(served(id, Content::Rax(learner, rax)));
        }
        let missing = || {
            SchemeError(format!(
                "'{spec}' has no learned model; name a learned scheme, such as owl"
            ))
        };
        let model = values.loaded::<Model>(param("model").ok_or_else(missing)?);
        let model = interval::with_clock(scheme, &values, &model).map_or(model, Arc::new);
        let learning = learning(&values, param);
        Ok(served(model.id(), Content::Net(model, learning)))
    }

    /// The scheme as it was written.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// The model's id: its name and the hash of its contents.
    pub fn model_id(&self) -> &str {
        &self.model_id
    }

    /// The agent's spec; `None` for Rax, which sets a flow's window at each record.
    pub fn agent(&self) -> Option<&AgentSpec> {
        match &self.content {
            Content::Net(model, _) => Some(&model.card().agent),
            Content::Rax(..) => None,
        }
    }

    /// The training range of its model, if the card has one.
    pub fn range(&self) -> Option<TrainingRange> {
        match &self.content {
            Content::Net(model, _) => model.card().training.range,
            Content::Rax(learner, _) => learner.as_ref()?.card().training.range,
        }
    }

    /// The policy in whole numbers, if there is one, which can be evaluated in the kernel.
    pub fn int8(&self) -> Option<&Int8> {
        match &self.content {
            Content::Net(model, _) => model.int8(),
            Content::Rax(..) => None,
        }
    }

    /// Does it go on learning in use?
    pub fn is_learning(&self) -> bool {
        !matches!(self.content, Content::Net(_, None))
    }

    /// The same scheme without learning, with the network as it was trained. `None` for Rax, which
    /// always learns.
    pub fn frozen(&self) -> Option<PolicySpec> {
        match &self.content {
            Content::Net(model, _) => Some(PolicySpec {
                spec: self.spec.replace(":online=true", ":online=false"),
                model_id: self.model_id.clone(),
                content: Content::Net(Arc::clone(model), None),
            }),
            Content::Rax(..) => None,
        }
    }

    /// What a flow of this scheme has learned, as a file for other flows. `None` if it does not
    /// learn, or if the result is not usable. A network gives a safetensors file, Rax gives text.
    pub fn learned(&self, flow: &FlowPolicy) -> Option<Vec<u8>> {
        match flow {
            FlowPolicy::Net(decider) => {
                let (network, steps) = decider.policy().learned()?;
                let is_sound = network.parameters().iter().all(|x| x.is_finite());
                let write = || SavedNetwork::write(network, steps, self.model_id(), self.spec());
                is_sound.then(write)
            }
            FlowPolicy::Rax(rax) => rax.learned().map(String::into_bytes),
        }
    }

    /// Reads a file of [`Self::learned`].
    ///
    /// # Errors
    /// [`SchemeError`], one line: the file is not of a flow of this scheme, or this scheme does not
    /// learn.
    pub fn experience(&self, learned: &[u8]) -> Result<Experience, SchemeError> {
        let wrong = |e: &dyn std::fmt::Display| SchemeError(e.to_string());
        let learned = match &self.content {
            Content::Rax(..) => {
                let text = str::from_utf8(learned).map_err(|e| wrong(&e))?;
                let read = Rax::read_learned(text).map_err(|e| wrong(&e))?;
                Learned::Rax(Box::new(read))
            }
            Content::Net(model, Some(_)) => {
                let read =
                    SavedNetwork::read(learned, &model.card().net, self.model_id(), self.spec());
                Learned::Net(Box::new(read.map_err(|e| wrong(&e))?))
            }
            Content::Net(_, None) => {
                return Err(wrong(
                    &"this policy does not learn, so it has no saved state",
                ));
            }
        };
        Ok(Experience(learned))
    }

    /// The policy of a flow. A learner continues with `experience`, which another flow of this
    /// scheme learned.
    ///
    /// # Errors
    /// [`SchemeError`], one line: the experience is of another scheme.
    pub fn carried(
        &self,
        setup: &Setup,
        experience: Option<&Experience>,
    ) -> Result<FlowPolicy, SchemeError> {
        let wrong = |e: &dyn std::fmt::Display| SchemeError(e.to_string());
        let other = || SchemeError("the saved state is of another scheme".to_owned());
        match &self.content {
            Content::Rax(learner, spec) => {
                let rax = match (experience, learner) {
                    (Some(Experience(Learned::Rax(learned))), Some(learner)) => {
                        learner.continuing(setup, spec, learned)
                    }
                    (Some(Experience(Learned::Rax(learned))), None) => {
                        Rax::continuing(setup, spec, learned)
                    }
                    (Some(_), _) => return Err(other()),
                    (None, Some(learner)) => learner.flow(setup, spec.alpha),
                    (None, None) => Rax::new(setup, spec.clone()).map_err(|e| wrong(&e))?,
                };
                Ok(FlowPolicy::Rax(Box::new(RaxOverRecords::with(rax))))
            }
            Content::Net(model, learning) => {
                let policy: Box<dyn Policy> = match *learning {
                    None => Box::new(model.policy()),
                    Some(Learning { weights, epsilon }) => {
                        let policy = model.learning_policy(setup, weights, epsilon);
                        let mut policy = policy.map_err(|e| wrong(&e))?;
                        match experience {
                            Some(Experience(Learned::Net(learned))) => {
                                policy.continue_from(&learned.network, learned.steps);
                            }
                            Some(_) => return Err(other()),
                            None => {}
                        }
                        Box::new(policy)
                    }
                };
                let decider = Decider::new(&model.card().agent, setup.start, policy);
                Ok(FlowPolicy::Net(Box::new(decider.map_err(|e| wrong(&e))?)))
            }
        }
    }
}

impl FlowPolicy {
    /// Takes the flow's state.
    pub fn on_record(&mut self, record: &Record) {
        match self {
            FlowPolicy::Net(decider) => decider.on_record(record),
            FlowPolicy::Rax(rax) => rax.on_record(record),
        }
    }

    /// Lets another thread take a network's gradient steps, so that no answer waits for one. Rax's
    /// steps are part of each answer.
    pub fn step_on_thread(&mut self, thread: &SyncSender<Step>) {
        match self {
            FlowPolicy::Net(decider) => decider.policy_mut().step_on_thread(thread),
            FlowPolicy::Rax(_) => {}
        }
    }

    /// Has the policy stopped learning for good, and kept what it had learned? Rax starts again
    /// instead.
    pub fn has_ended_learning(&self) -> bool {
        match self {
            FlowPolicy::Net(decider) => decider.policy().has_ended_learning(),
            FlowPolicy::Rax(_) => false,
        }
    }

    /// The number of gradient steps, including those of the experience with which it began; 0 if it
    /// does not learn.
    pub fn updates(&self) -> u64 {
        match self {
            FlowPolicy::Net(decider) => decider.policy().learned().map_or(0, |(_, steps)| steps),
            FlowPolicy::Rax(rax) => rax.updates(),
        }
    }

    /// Named values for recordings.
    pub fn probe(&self, probe: &mut dyn Probe) {
        match self {
            FlowPolicy::Net(decider) => decider.policy().probe(probe),
            FlowPolicy::Rax(rax) => rax.probe(probe),
        }
    }
}

/// Checks that no parameter is only for simulated flows. `guard=on` is allowed, since it always
/// holds.
fn check(selection: &Selection) -> Result<(), SchemeError> {
    let spec = &selection.spec;
    let refused = |why: &str| Err(SchemeError(format!("scheme '{spec}': {why}")));
    if selection.digests.is_some() {
        return refused(
            "only simulated flows have digests; here the report interval sets how many acknowledgements make a record",
        );
    }
    for given in spec.split(':').skip(1) {
        if given.starts_with("latency=") {
            return refused(
                "'latency' is only for simulated agents, and this agent's latency is real; leave it out",
            );
        }
        if given.starts_with("restart=") {
            return refused(
                "'restart' is only for simulated flows, and these flows end by themselves; leave it out",
            );
        }
        if given == "guard=off" {
            return refused("here the guard watches every flow; leave 'guard=off' out");
        }
    }
    Ok(())
}

fn learning<'a>(values: &Values, param: impl Fn(&str) -> Option<&'a Param>) -> Option<Learning> {
    let is_on = values.choice(param("online")?) == "true";
    is_on.then_some(())?;
    Some(Learning {
        weights: [
            values.number(param("delta")?),
            values.number(param("beta")?),
        ],
        epsilon: values.number(param("epsilon")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulation_only_parameters_are_refused() {
        for (spec, hint) in [
            ("owl:latency=10ms", "'latency' is only for simulated agents"),
            ("owl:online=true:latency=26us", "leave it out"),
            ("rax:restart=10s", "'restart' is only for simulated flows"),
            ("aurora:guard=off", "leave 'guard=off' out"),
            ("batched-owl:interval=10ms", "the report interval"),
        ] {
            let error = PolicySpec::read(spec).expect_err(spec).to_string();
            let is_line = error.contains(spec) && !error.contains('\n');
            assert!(is_line && error.contains(hint), "{error}");
        }
        let frozen = PolicySpec::read("owl:online=true").expect("owl").frozen();
        let frozen = frozen.expect("a network that was trained before");
        assert!(!frozen.is_learning());
        let read = PolicySpec::read(frozen.spec()).expect("a scheme");
        assert!(!read.is_learning());
        assert!(PolicySpec::read("rax").expect("rax").frozen().is_none());
        let served = PolicySpec::read("owl:guard=on").expect("it is guarded");
        assert_eq!(served.spec(), "owl:guard=on");
    }
}
