//! Without delay, and with one partial action each, the learner is advantage actor-critic (Mnih et
//! al. 2016). This compares it with an implementation straight from the formulas, in double
//! precision, whose gradients are differences of its loss.

use headway_cc::Stream;
use headway_policy::pal::Weights;

use crate::task::{GAMMA, agent, numbers, observation, plain, reward, weights};

const STEPS: usize = 5;
const INPUTS: usize = 2;

/// A GRU layer and a dense one, with PyTorch's formulas. The tensors follow one another.
struct Net {
    units: usize,
    outputs: usize,
    parameters: Vec<f64>,
}

impl Net {
    fn forward(&self, p: &[f64], hidden: &mut Vec<f64>, x: &[f64]) -> Vec<f64> {
        let u = self.units;
        let (w_ih, rest) = p.split_at(3 * u * INPUTS);
        let (w_hh, rest) = rest.split_at(3 * u * u);
        let (b_ih, rest) = rest.split_at(3 * u);
        let (b_hh, rest) = rest.split_at(3 * u);
        let (w, b) = rest.split_at(self.outputs * u);
        let row = |w: &[f64], b: &[f64], i: usize, x: &[f64]| -> f64 {
            let products = w[i * x.len()..][..x.len()].iter().zip(x);
            b[i] + products.map(|(w, x)| w * x).sum::<f64>()
        };
        let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
        let new = (0..u).map(|i| {
            let gate = |g: usize| {
                (
                    row(w_ih, b_ih, g * u + i, x),
                    row(w_hh, b_hh, g * u + i, hidden),
                )
            };
            let (r, z, (n, q)) = (gate(0), gate(1), gate(2));
            let (r, z) = (sigmoid(r.0 + r.1), sigmoid(z.0 + z.1));
            (1.0 - z) * libm::tanh(n + r * q) + z * hidden[i]
        });
        *hidden = new.collect();
        (0..self.outputs).map(|i| row(w, b, i, hidden)).collect()
    }
}

/// The actor and the critic, and their memories.
struct Reference {
    nets: [Net; 2],
    hidden: [Vec<f64>; 2],
    random: Stream,
}

fn softplus_from_one(x: f64) -> f64 {
    libm::log(1.0 + libm::exp(x + libm::log(std::f64::consts::E - 1.0)))
}

fn policy(outputs: &[f64]) -> (f64, f64) {
    let (initial, least) = (f64::from(0.6_f32), f64::from(0.05_f32));
    (
        outputs[0],
        least + (initial - least) * softplus_from_one(outputs[1]),
    )
}

impl Reference {
    fn of(weights: &Weights<1>) -> Reference {
        let nets = [0, 1].map(|n| {
            let net = &weights.networks()[n];
            let tensors = net.tensors(net.parameters()).into_iter();
            Net {
                units: net.spec().layers[1],
                outputs: net.spec().outputs(),
                parameters: tensors.flat_map(|t| t.2).map(f64::from).collect(),
            }
        });
        Reference {
            hidden: [0, 1].map(|n| vec![0.0; nets[n].units]),
            nets,
            random: Stream::new(7, "actions"),
        }
    }

    fn outputs(&self, n: usize, hidden: &mut Vec<f64>, x: [f32; 2]) -> Vec<f64> {
        let net = &self.nets[n];
        net.forward(&net.parameters, hidden, &x.map(f64::from))
    }

    /// Acts a few steps, then takes one gradient step on them.
    fn update(&mut self, first: usize, before: f32) -> f32 {
        let start = self.hidden.clone();
        let (mut seen, mut actions, mut rewards, mut values) = (vec![], vec![], vec![], vec![]);
        let mut last = before;
        for step in first..first + STEPS {
            let x = observation(step, last);
            let mut hidden = self.hidden.clone();
            let (mean, deviation) = policy(&self.outputs(0, &mut hidden[0], x));
            values.push(softplus_from_one(self.outputs(1, &mut hidden[1], x)[0]));
            self.hidden = hidden;
            let action = mean + deviation * self.random.normal();
            last = action as f32;
            seen.push(x.map(f64::from));
            actions.push(action);
            rewards.push(f64::from(reward(x, last)));
        }
        let mut ahead = self.hidden[1].clone();
        let mut next =
            softplus_from_one(self.outputs(1, &mut ahead, observation(first + STEPS, last))[0]);
        let mut returns = [0.0; STEPS];
        for step in (0..STEPS).rev() {
            next = f64::from(GAMMA) * rewards[step] + (1.0 - f64::from(GAMMA)) * next;
            returns[step] = next;
        }
        let actor_loss = |p: &[f64]| {
            let mut hidden = start[0].clone();
            let losses = (0..STEPS).map(|step| {
                let (mean, deviation) = policy(&self.nets[0].forward(p, &mut hidden, &seen[step]));
                let z = (actions[step] - mean) / deviation;
                let log_density = -0.5 * z * z - libm::log(deviation);
                let entropy = libm::log(deviation);
                -log_density * (returns[step] - values[step]) - f64::from(0.02_f32) * entropy
            });
            losses.sum::<f64>() / STEPS as f64
        };
        let critic_loss = |p: &[f64]| {
            let mut hidden = start[1].clone();
            let losses = (0..STEPS).map(|step| {
                let value = softplus_from_one(self.nets[1].forward(p, &mut hidden, &seen[step])[0]);
                (returns[step] - value).powi(2)
            });
            losses.sum::<f64>() / STEPS as f64
        };
        let gradients = [
            differences(&self.nets[0].parameters, actor_loss),
            differences(&self.nets[1].parameters, critic_loss),
        ];
        for (net, gradient) in self.nets.iter_mut().zip(gradients) {
            for (p, g) in net.parameters.iter_mut().zip(gradient) {
                *p -= f64::from(0.1_f32) * g;
            }
        }
        last
    }
}

/// The gradient of a loss, by central differences.
fn differences(parameters: &[f64], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut moved = parameters.to_vec();
    let mut slope = |i: usize| {
        let mut at = |offset: f64| {
            moved[i] = parameters[i] + offset;
            loss(&moved)
        };
        let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
        moved[i] = parameters[i];
        slope
    };
    (0..parameters.len()).map(&mut slope).collect()
}

#[test]
fn without_delay_it_is_advantage_actor_critic() {
    let mut weights = weights(plain(STEPS));
    let (mut agent, mut reference) = (agent(&weights), Reference::of(&weights));
    let (mut last, mut reference_last) = (0.0, 0.0);
    let mut act = |step: usize, weights: &mut Weights<1>| {
        let seen = observation(step, last);
        last = agent
            .act(weights, &seen, 1.0, f32::INFINITY, [1.0])
            .expect("finite");
        let number = agent.partial_action(1.0);
        agent.feedback(number, &[reward(seen, last)]);
    };
    let at_first = numbers(&weights);
    act(0, &mut weights);
    for update in 0..20 {
        reference_last = reference.update(update * STEPS, reference_last);
        // The first action of the next five uses what these have taught.
        for step in 1..=STEPS {
            act(update * STEPS + step, &mut weights);
        }
        assert_eq!(weights.updates(), update as u64 + 1);
        let theirs = reference.nets.iter().flat_map(|net| &net.parameters);
        let off = (numbers(&weights).iter().zip(theirs))
            .map(|(ours, theirs)| (f64::from(*ours) - theirs).abs())
            .fold(0.0, f64::max);
        assert!(off < 2e-6, "update {update}: off by {off:e}");
    }
    let moved = (numbers(&weights).into_iter().zip(&at_first)).map(|(a, b)| (a - b).abs());
    assert!(moved.fold(0.0, f32::max) > 0.05, "it has learned something");
}
