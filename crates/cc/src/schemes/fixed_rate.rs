//! A constant rate: a baseline for pacing, and a source of known load.

use crate::{
    Bytes, CongestionControl, Control, Family, Feedback, Kind, Need, Param, Rate, Rto, Scheme,
    Setup, Values,
};

const RATE: Param = Param {
    name: "rate",
    help: "sending rate on the wire",
    kind: Kind::Rate {
        default: Rate::from_bps(10_000_000),
        min: Rate::from_bps(1_000),
        max: Rate::from_bps(1_000_000_000_000),
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "fixed-rate",
    family: Family::Fixed,
    summary: "a constant sending rate without a window",
    source: "our own, as a baseline",
    deviations: &[],
    needs: &[Need::Pacing],
    params: &[RATE],
    build: |setup, values| Box::new(FixedRate::new(setup, values)),
    receiver: None,
    router: None,
};

/// Sends at a fixed rate, whatever happens.
#[derive(Debug)]
pub struct FixedRate {
    rate: Rate,
}

impl FixedRate {
    /// A sender with the rate of parameter `rate`.
    pub fn new(_: &Setup, values: &Values) -> FixedRate {
        FixedRate {
            rate: values.rate(&RATE),
        }
    }
}

impl CongestionControl for FixedRate {
    fn on_feedback(&mut self, _: &Feedback<'_>) {}
    fn on_rto(&mut self, _: &Rto<'_>) {}
    fn control(&self) -> Control {
        Control::paced(Bytes::MAX, self.rate)
    }
    fn owns_recovery(&self) -> bool {
        true
    }
}
