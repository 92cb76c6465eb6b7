//! A constant window: a baseline for links and queues.

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
    source: "our own, as a baseline",
    deviations: &[],
    needs: &[],
    params: &[WINDOW],
    build: |setup, values| Box::new(FixedWindow::new(setup, values)),
    receiver: None,
    router: None,
};

/// Keeps a fixed number of packets in flight, whatever is lost.
#[derive(Debug)]
pub struct FixedWindow {
    window: Bytes,
    mss: Bytes,
    timed_out: bool,
}

impl FixedWindow {
    /// A sender with the window of parameter `window`.
    pub fn new(setup: &Setup, values: &Values) -> FixedWindow {
        FixedWindow {
            window: setup.mss * values.count(&WINDOW),
            mss: setup.mss,
            timed_out: false,
        }
    }
}

impl CongestionControl for FixedWindow {
    fn on_feedback(&mut self, _: &Feedback<'_>) {
        self.timed_out = false;
    }

    /// RFC 5681 §3.1: the window is one packet until something is acknowledged. The flight may only
    /// be late, in a queue; if it were sent again at once, it would be there twice.
    fn on_rto(&mut self, _: &Rto<'_>) {
        self.timed_out = true;
    }

    fn control(&self) -> Control {
        Control::window(if self.timed_out {
            self.mss
        } else {
            self.window
        })
    }

    fn owns_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::testing::{MSS, feedback, rto, setup};

    #[test]
    fn after_a_timeout_the_window_is_one_packet_until_an_ack() {
        let mut fixed = FixedWindow::new(&setup(), &Values::defaults(SCHEME.params));
        assert_eq!(fixed.control().cwnd, MSS * 20);
        fixed.on_rto(&rto(Time::ZERO, 20, 1));
        assert_eq!(fixed.control().cwnd, MSS);
        fixed.on_feedback(&feedback(Time::ZERO));
        assert_eq!(fixed.control().cwnd, MSS * 20);
    }
}
