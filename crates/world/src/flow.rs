//! What is counted of one flow, whatever world it is in.

use headway_cc::{Bytes, Duration, Time};
use headway_net::Link;
use headway_record::{Bottleneck, Convergence, FlowMeter, Grid, GridSample, Metrics};
use headway_scenario::FlowSpec;

use crate::Options;
use crate::outcome::FlowOutcome;
use crate::window::Window;

/// A world's flow, as far as it is measured.
pub trait Measured {
    /// What is counted of it.
    fn measured(&self) -> &MeasuredFlow;
    /// The same, to count on.
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

/// What is counted of a flow. Its world tells it of each packet.
#[derive(Debug)]
pub struct MeasuredFlow {
    /// Counts packets.
    pub meter: FlowMeter,
    /// The links that its data crosses.
    pub data_route: Box<[u32]>,
    /// When it begins.
    pub start: Time,
    /// Is it the scheme under test, or a competitor that the scenario names?
    pub under_test: bool,
    /// What it runs.
    pub scheme: String,
    /// The trained model that decides for it, if one does.
    pub model: Option<String>,
    /// Has it begun?
    pub started: bool,
    pub(crate) convergence: Convergence,
    pub(crate) grid: Option<Grid>,
    /// When it stops, or its data was all there; never if it runs to the end.
    pub(crate) ends: Time,
    pub(crate) has_ended: bool,
    /// The links on its way while it is measured, and what it sent and had delivered meanwhile.
    pub(crate) window: Window,
    pub(crate) window_bytes: u64,
}

impl MeasuredFlow {
    /// A flow of `spec` that runs `scheme`, for which `model` decides if it is a learned one.
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

    /// A data packet has crossed the network, `queued` of its time in queues and transmission.
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

    /// A bin of the time series ends now; `sample` is asked for if there is one and the flow is
    /// there.
    pub fn on_bin_end(&mut self, now: Time, sample: impl FnOnce() -> GridSample) {
        if let Some(grid) = &mut self.grid
            && self.started
            && !self.has_ended
        {
            grid.on_bin_end(now, sample());
        }
    }

    /// What its sender counted in another place: RTT samples, losses, and itself as each bin ended.
    pub fn add(&mut self, meter: &FlowMeter, grid: Option<&Grid>) {
        self.meter.merge(meter);
        if let (Some(own), Some(more)) = (&mut self.grid, grid) {
            own.merge(more);
        }
    }

    /// Its data was all there at `at`, which is told a little later.
    pub fn was_complete_at(&mut self, at: Time) {
        self.ends = self.ends.min(at);
    }

    /// Is it over, and measured no more?
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// It is over, and measured no more.
    pub(crate) fn end(&mut self, now: Time, links: &mut [Link]) {
        self.has_ended = true;
        self.ends = self.ends.min(now);
        self.window.close(links, &self.data_route, now);
        self.window_bytes = self.meter.delivered_bytes();
    }

    /// Was it there from `from` to `to`, all the time?
    pub(crate) fn covers(&self, from: Time, to: Time) -> bool {
        self.start <= from && self.ends >= to
    }

    /// Was it there at some time from `from` to `to`?
    pub(crate) fn overlaps(&self, from: Time, to: Time) -> bool {
        self.start < to && self.ends > from
    }

    /// Its metrics, once it is over.
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
