//! Jain's index for flows that come and go.

use headway_cc::Time;
use headway_record::jain_index;

use crate::flow::Measured;

/// Jain's index among the measured flows under test: the index of the data that each has delivered
/// between two starts or ends of flows, averaged over time. If all flows run throughout, it is the
/// index of their throughputs.
#[derive(Debug, Default)]
pub(crate) struct Fairness {
    /// When the last flow began or ended, and the data that each had delivered by then.
    since: Time,
    before: Vec<u64>,
    /// The sum of the index times seconds, and the sum of seconds, over all stretches with several
    /// flows.
    weighted: f64,
    seconds: f64,
}

impl Fairness {
    /// A flow is about to begin or to end.
    pub fn on_change<F: Measured>(&mut self, now: Time, flows: &[F]) {
        self.before.resize(flows.len(), 0);
        let measured = || flows.iter().map(F::measured);
        let there = measured().zip(&self.before);
        let shares: Vec<f64> = there
            .filter(|(flow, _)| flow.under_test && flow.window.is_open())
            .map(|(flow, before)| (flow.meter.arrived_bytes() - before) as f64)
            .collect();
        let stretch = now.since(self.since).as_secs_f64();
        if shares.len() > 1
            && let Some(index) = jain_index(&shares)
        {
            self.weighted += index * stretch;
            self.seconds += stretch;
        }
        self.since = now;
        for (before, flow) in self.before.iter_mut().zip(measured()) {
            *before = flow.meter.arrived_bytes();
        }
    }

    /// `None` if no two flows ever ran at the same time and delivered something.
    pub fn index(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.weighted / self.seconds)
    }
}
