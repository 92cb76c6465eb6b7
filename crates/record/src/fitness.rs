//! Whether the result of a run in real time can be trusted.

use serde::{Deserialize, Serialize};

/// Whether the machine kept up with a run in real time, so that its numbers show the network and
/// not the machine. A run in simulated time has none.
///
/// A figure that could not be measured is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fitness {
    /// How much later than due packets left the emulator: median, ms.
    pub lateness_p50_ms: Option<f64>,
    /// The 99th percentile, ms.
    pub lateness_p99_ms: Option<f64>,
    /// The longest time without a read or write of the emulator although one was possible, ms.
    pub longest_stall_ms: Option<f64>,
    /// The mean wait of the emulator's thread for a CPU, each time it was to run, ms.
    pub emulator_wait_ms: Option<f64>,
    /// The mean wait of hosts' threads for a CPU, each time they were to run, ms; for flows over
    /// UDP.
    pub host_wait_ms: Option<f64>,
    /// Share of all CPUs' time that was idle in the busiest tenth of the run's seconds, 0 to 1.
    pub cpu_idle: Option<f64>,
    /// Share of one CPU that the emulator used, 0 to 1.
    pub emulator_cpu: Option<f64>,
    /// Share of the packets sent that vanished at no link, but at full device or socket queues, 0
    /// to 1.
    pub unexplained_loss: Option<f64>,
    /// Why the run is unfit, if it is: the figure that would change the result and what would help,
    /// in one line.
    pub unfit: Option<String>,
}

impl Fitness {
    /// Every figure with its name, in the order of the columns.
    pub fn named(&self) -> [(&'static str, Option<f64>); 8] {
        self.clone().named_mut().map(|(name, value)| (name, *value))
    }

    /// Same as [`named`](Self::named), to set the figures.
    pub(crate) fn named_mut(&mut self) -> [(&'static str, &mut Option<f64>); 8] {
        [
            ("lateness_p50_ms", &mut self.lateness_p50_ms),
            ("lateness_p99_ms", &mut self.lateness_p99_ms),
            ("longest_stall_ms", &mut self.longest_stall_ms),
            ("emulator_wait_ms", &mut self.emulator_wait_ms),
            ("host_wait_ms", &mut self.host_wait_ms),
            ("cpu_idle", &mut self.cpu_idle),
            ("emulator_cpu", &mut self.emulator_cpu),
            ("unexplained_loss", &mut self.unexplained_loss),
        ]
    }
}
