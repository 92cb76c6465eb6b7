//! The measurements of one flow, in every world.

use headway_cc::{Bytes, Duration, Time};
use headway_net::Link;
use headway_record::{Bottleneck, Convergence, FlowMeter, Grid, GridSample, Metrics};
use headway_scenario::FlowSpec;

use crate::Options;
use crate::outcome::FlowOutcome;
use crate::window::Window;

/// A world's flow, with its measurements.
pub trait Measured {
    /// The flow's measurements.
    fn measured(&self) -> &MeasuredFlow;
    /// The flow's measurements, to update them.
    fn measured_mut(&mut self) -> &mut MeasuredFlow;
}

impl Measured for MeasuredFlow {
    fn measured(&self) -> &MeasuredFlow {
        self
    }

    fn measured_mut(&mut self) -> &mut MeasuredFlow {
        self
    }
}

/// The measurements of a flow. Its world reports each packet to it.
#[derive(Debug)]
pub struct MeasuredFlow {
    /// Counts packets.
    pub meter: FlowMeter,
    /// The links that its data crosses.
    pub data_route: Box<[u32]>,
    /// The time at which it begins.
    pub start: Time,
    /// Whether it runs the scheme under test, rather than a competitor that the scenario names.
    pub under_test: bool,
    /// The flow's scheme.
    pub scheme: String,
    /// The trained model that decides for it, if one does.
    pub model: Option<String>,
    /// Has it begun?
    pub started: bool,
    pub(crate) convergence: Convergence,
    pub(crate) grid: Option<Grid>,
    /// When it stops, or when all its data has arrived; never if it runs to the end.
    pub(crate) ends: Time,
    pub(crate) has_ended: bool,
    /// The links on its way while it is measured, and the data that it sent and delivered
    /// meanwhile.
    pub(crate) window: Window,
    pub(crate) window_bytes: u64,
}

impl MeasuredFlow {
    /// A flow of `spec` that runs `scheme`; `model` decides for it if the scheme is a learned one.
    pub fn new(
        spec: &FlowSpec,
        scheme: &str,
        model: Option<&str>,
        data_route: Box<[u32]>,
        options: &Options,
    ) -> MeasuredFlow {
        MeasuredFlow {
            meter: FlowMeter::new(Time::ZERO + options.warmup),
            data_route,
            start: spec.start,
            under_test: spec.scheme.is_none(),
            scheme: scheme.to_owned(),
            model: model.map(str::to_owned),
            started: false,
            convergence: Convergence::default(),
            grid: options.grid.map(Grid::new),
            ends: spec.stop.unwrap_or(Time::NEVER),
            has_ended: false,
            window: Window::default(),
            window_bytes: 0,
        }
    }

    /// A data packet enters the network.
    #[inline]
    pub fn on_sent(&mut self, now: Time, size: Bytes) {
        self.meter.on_sent(now, size);
        if let Some(grid) = &mut self.grid {
            grid.on_sent(now, size);
        }
    }

    /// A data packet has crossed the network; it spent `queued` of the time in queues and
    /// transmission.
    #[inline]
    pub fn on_delivered(&mut self, now: Time, sent: Time, queued: Duration, size: Bytes) {
        self.meter.on_delivered(now, sent, queued, size);
        if let Some(grid) = &mut self.grid {
            grid.on_delivered(now, sent, queued, size);
        }
    }

    /// The sender took `size` for lost.
    #[inline]
    pub fn on_lost(&mut self, now: Time, size: impl FnOnce() -> Bytes) {
        if let Some(grid) = &mut self.grid {
            grid.on_lost(now, size());
        }
    }

    /// A bin of the time series ends. It calls `sample` if there is a series and the flow is
    /// running.
    pub fn on_bin_end(&mut self, now: Time, sample: impl FnOnce() -> GridSample) {
        if let Some(grid) = &mut self.grid
            && self.started
            && !self.has_ended
        {
            grid.on_bin_end(now, sample());
        }
    }

    /// Adds the measurements that its sender took elsewhere: RTT samples, losses, and its state as
    /// each bin ended.
    pub fn add(&mut self, meter: &FlowMeter, grid: Option<&Grid>) {
        self.meter.merge(meter);
        if let (Some(own), Some(more)) = (&mut self.grid, grid) {
            own.merge(more);
        }
    }

    /// All its data had arrived at `at`; the call comes a little later.
    pub fn was_complete_at(&mut self, at: Time) {
        self.ends = self.ends.min(at);
    }

    /// Has the flow ended?
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Ends the flow and its measurement.
    pub(crate) fn end(&mut self, now: Time, links: &mut [Link]) {
        self.has_ended = true;
        self.ends = self.ends.min(now);
        self.window.close(links, &self.data_route, now);
        self.window_bytes = self.meter.delivered_bytes();
    }

    /// Did it run from `from` to `to` without a break?
    pub(crate) fn covers(&self, from: Time, to: Time) -> bool {
        self.start <= from && self.ends >= to
    }

    /// Did it run at some time from `from` to `to`?
    pub(crate) fn overlaps(&self, from: Time, to: Time) -> bool {
        self.start < to && self.ends > from
    }

    /// The flow's metrics, after it has ended.
    pub(crate) fn outcome(&self, index: usize) -> FlowOutcome {
        let own_share = self.window.bottleneck().map(|b| Bottleneck {
            used_bytes: self.window_bytes as f64,
            ..b
        });
        let mut metrics = Metrics::of(&self.meter, self.ends, own_share);
        metrics.convergence_s = self.convergence.seconds();
        FlowOutcome {
            flow: index as i32,
            scheme: self.scheme.clone(),
            model: self.model.clone(),
            metrics,
        }
    }
}
