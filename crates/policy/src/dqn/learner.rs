//! Gradient steps on temporal differences.

use super::{DqnSpec, TdLoss, Transition};
use crate::action::largest;
use crate::nn::{NetError, NetKind, Network, Optimizer, OptimizerSpec, State, Trace, clip_norm};

/// A network of Q-values that learns. `Q(s, a)` moves towards `r + gamma max_b Q'(s', b)` (Owl, Eq.
/// 2 and 3), where Q' is the target network, an older copy of Q.
#[derive(Clone, Debug)]
pub struct Learner {
    spec: DqnSpec,
    network: Network,
    target: Network,
    optimizer: Optimizer,
    steps: u64,
    /// Gradient steps of the network with which it began.
    inherited: u64,
    // Work space.
    state: State,
    trace: Trace,
    gradient: Vec<f32>,
    values: Vec<f32>,
    next_values: Vec<f32>,
}

impl Learner {
    /// Begins with a network's parameters.
    ///
    /// # Errors
    /// [`NetError`], one line: a setting is out of range, or the network is recurrent.
    pub fn new(network: Network, spec: DqnSpec) -> Result<Learner, NetError> {
        spec.check()
            .map_err(|text| NetError(format!("online learning: {text}")))?;
        if network.spec().kind != NetKind::Mlp {
            return Err(NetError(
                "online learning: the network is recurrent, must be an mlp".to_owned(),
            ));
        }
        let adam = OptimizerSpec::Adam {
            lr: spec.learning_rate,
            betas: [0.9, 0.999],
            eps: 1e-8,
        };
        let size = network.parameters().len();
        let outputs = network.spec().outputs();
        Ok(Learner {
            spec,
            target: network.clone(),
            optimizer: Optimizer::new(adam, size)?,
            steps: 0,
            inherited: 0,
            state: network.state(),
            trace: network.trace(),
            gradient: vec![0.0; size],
            values: vec![0.0; outputs],
            next_values: vec![0.0; outputs],
            network,
        })
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Continues with a network that another flow learned in this many steps, if its size is the
    /// same and it is finite.
    pub fn continue_from(&mut self, learned: &Network, steps: u64) {
        let parameters = learned.parameters();
        let is_its = parameters.len() == self.network.parameters().len();
        if is_its && parameters.iter().all(|x| x.is_finite()) {
            self.network.parameters_mut().copy_from_slice(parameters);
            self.target.parameters_mut().copy_from_slice(parameters);
            self.inherited = steps;
        }
    }

    /// The target network.
    pub fn target(&self) -> &Network {
        &self.target
    }

    /// The settings of the learning.
    pub fn spec(&self) -> &DqnSpec {
        &self.spec
    }

    /// The number of gradient steps, including those of the network with which it began.
    pub fn steps(&self) -> u64 {
        self.inherited.saturating_add(self.steps)
    }

    /// Takes one gradient step on the mean loss of some transitions, and returns that loss. Returns
    /// `None`, with nothing changed, if there is no transition or if the loss or its gradient is
    /// not finite.
    pub fn learn<'a>(&mut self, batch: impl Iterator<Item = Transition<'a>>) -> Option<f32> {
        self.gradient.fill(0.0);
        let (mut loss, mut count) = (0.0, 0);
        for transition in batch {
            loss += self.add_gradient(transition);
            count += 1;
        }
        if count == 0 {
            return None;
        }
        let mean = 1.0 / count as f32;
        self.gradient.iter_mut().for_each(|g| *g *= mean);
        let norm = clip_norm(&mut self.gradient, self.spec.gradient_norm);
        loss *= mean;
        if !(loss.is_finite() && norm.is_finite()) {
            return None;
        }
        self.optimizer
            .step(self.network.parameters_mut(), &self.gradient);
        self.steps += 1;
        if self.steps.is_multiple_of(self.spec.target_every) {
            let parameters = self.network.parameters();
            self.target.parameters_mut().copy_from_slice(parameters);
        }
        Some(loss)
    }

    /// Adds the gradient of one transition's loss, and returns the loss.
    fn add_gradient(&mut self, transition: Transition<'_>) -> f32 {
        let target = self.target_of(transition);
        self.trace.clear();
        self.network.forward_traced(
            &mut self.state,
            &mut self.trace,
            transition.state,
            &mut self.values,
        );
        let error = self.values[transition.action] - target;
        let (loss, slope) = match self.spec.loss {
            TdLoss::Mse => (error * error, 2.0 * error),
            TdLoss::Huber if error.abs() <= 1.0 => (0.5 * error * error, error),
            TdLoss::Huber => (error.abs() - 0.5, error.signum()),
        };
        // Only the chosen action's value has an error.
        self.values.fill(0.0);
        self.values[transition.action] = slope;
        self.network
            .backward(&mut self.trace, &self.values, &mut self.gradient, &mut []);
        loss
    }

    /// Eq. 3. A flow's decisions have no last one, so there is always a next value.
    fn target_of(&mut self, transition: Transition<'_>) -> f32 {
        let Transition { reward, next, .. } = transition;
        let values = &mut self.next_values;
        self.target.forward(&mut self.state, next, values);
        let value = match self.spec.double {
            false => values.iter().copied().fold(f32::NEG_INFINITY, f32::max),
            true => {
                self.network
                    .forward(&mut self.state, next, &mut self.values);
                values[largest(&self.values)]
            }
        };
        reward + self.spec.gamma as f32 * value
    }
}
