//! Gradients by backpropagation through the steps of a network.

use super::layer::{Back, Layer};
use super::network::{Network, State};

/// The steps through which a gradient is propagated back, and work space.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The size of a step's record.
    record: usize,
    records: Vec<f32>,
    dy: Vec<f32>,
    dx: Vec<f32>,
    dmemory: Vec<f32>,
    work: Vec<f32>,
}

impl Trace {
    /// Forgets all steps.
    pub fn clear(&mut self) {
        self.records.clear();
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.records.len() / self.record
    }
}

impl Network {
    /// An empty trace, with room for one step.
    pub fn trace(&self) -> Trace {
        let widest = self.spec().layers.iter().max().copied().unwrap_or(0);
        let work = self.layers.iter().map(Layer::work).max().unwrap_or(0);
        Trace {
            record: self.record(),
            records: Vec::with_capacity(self.record()),
            dy: vec![0.0; widest],
            dx: vec![0.0; widest],
            dmemory: vec![0.0; self.layers.iter().map(Layer::memory).sum()],
            work: vec![0.0; work],
        }
    }

    /// [`forward`](Network::forward), with the step added to `trace`.
    ///
    /// # Panics
    /// As `forward`.
    pub fn forward_traced(
        &self,
        state: &mut State,
        trace: &mut Trace,
        input: &[f32],
        output: &mut [f32],
    ) {
        let start = trace.records.len();
        trace.records.resize(start + trace.record, 0.0);
        let record = &mut trace.records[start..];
        self.step(&mut state.memory, record, input);
        output.copy_from_slice(&record[record.len() - output.len()..]);
    }

    /// Propagates gradients back through the steps of `trace`. `outputs` is the gradient of the
    /// loss by the outputs of each step, step by step. The gradient by the
    /// [parameters](Network::parameters) is added to `gradient`. The one by the inputs of each step
    /// is written to `inputs`, which may be empty. The memory before the first step is taken as
    /// constant. The parameters must be those of the steps.
    ///
    /// # Panics
    /// If a length does not fit the network and the number of steps.
    pub fn backward(
        &self,
        trace: &mut Trace,
        outputs: &[f32],
        gradient: &mut [f32],
        inputs: &mut [f32],
    ) {
        let (n_in, n_out) = (self.spec().inputs(), self.spec().outputs());
        let steps = trace.steps();
        assert_eq!(outputs.len(), steps * n_out, "gradients of outputs");
        assert_eq!(gradient.len(), self.parameters().len(), "gradient");
        assert!(
            inputs.is_empty() || inputs.len() == steps * n_in,
            "gradients of inputs"
        );
        trace.dmemory.fill(0.0);
        self.instruction_set.run(
            #[inline(always)]
            || {
                for step in (0..steps).rev() {
                    self.step_back(trace, step, &outputs[step * n_out..][..n_out], gradient);
                    if !inputs.is_empty() {
                        inputs[step * n_in..][..n_in].copy_from_slice(&trace.dy[..n_in]);
                    }
                }
            },
        );
    }

    /// Goes one step back, and leaves the gradient of its inputs in `trace.dy`.
    #[inline(always)]
    fn step_back(&self, trace: &mut Trace, step: usize, outputs: &[f32], gradient: &mut [f32]) {
        let Trace {
            record,
            records,
            dy,
            dx,
            dmemory,
            work,
        } = trace;
        dy[..outputs.len()].copy_from_slice(outputs);
        let mut before = &records[step * *record..][..*record];
        let mut dmemory = &mut dmemory[..];
        for layer in self.layers.iter().rev() {
            let inputs = layer.inputs();
            let (earlier, mine) = before.split_at(before.len() - layer.record());
            let (dearlier, dmine) = dmemory.split_at_mut(dmemory.len() - layer.memory());
            dx[..inputs].fill(0.0);
            layer.backward(Back {
                parameters: self.parameters(),
                x: &earlier[earlier.len() - inputs..],
                record: mine,
                dy: &mut dy[..layer.outputs()],
                dmemory: dmine,
                work,
                gradient,
                dx: &mut dx[..inputs],
            });
            std::mem::swap(dx, dy);
            (before, dmemory) = (earlier, dearlier);
        }
    }
}
