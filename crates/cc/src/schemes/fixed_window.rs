//! A constant window: the yardstick for links and queues.

use crate::{
    Bytes, CongestionControl, Control, Family, Feedback, Kind, Param, Rto, Scheme, Setup, Values,
};

const WINDOW: Param = Param {
    name: "window",
    help: "packets in flight",
    kind: Kind::Count {
        default: 20,
        min: 1,
        max: 10_000_000,
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "fixed-window",
    family: Family::Fixed,
    summary: "a constant number of packets in flight",
    source: "a yardstick of ours",
    needs: &[],
    params: &[WINDOW],
    build: |setup, values| Box::new(FixedWindow::new(setup, values)),
    receiver: None,
};

/// Keeps a fixed number of packets in flight, whatever happens.
#[derive(Debug)]
pub struct FixedWindow {
    cwnd: Bytes,
}

impl FixedWindow {
    /// A window of `window` packets.
    pub fn new(setup: &Setup, values: &Values) -> FixedWindow {
        FixedWindow {
            cwnd: setup.mss * values.count(&WINDOW),
        }
    }
}

impl CongestionControl for FixedWindow {
    fn on_feedback(&mut self, _: &Feedback<'_>) {}
    fn on_rto(&mut self, _: &Rto<'_>) {}
    fn control(&self) -> Control {
        Control::window(self.cwnd)
    }
    fn owns_recovery(&self) -> bool {
        true
    }
}
