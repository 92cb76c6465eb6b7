//! The two windows of BBR's filters, which a tuner may change while it runs ("BBR tuner", §VI).

use super::{BTLBW_WINDOW, Bbr, RTPROP_WINDOW};
use crate::{Duration, Param, PathModel, Tunable};

/// The parameters that a tuner may change.
pub static TUNABLES: [Param; 2] = [BTLBW_WINDOW, RTPROP_WINDOW];

impl Tunable for Bbr {
    fn tunables(&self) -> &'static [Param] {
        &TUNABLES
    }

    /// A shorter window drops old samples at the next one. A longer window starts from what is
    /// known.
    fn tune(&mut self, param: &Param, value: f64) {
        let value = param.kind.within(value);
        if param.name == BTLBW_WINDOW.name {
            self.btlbw.set_window(value as u64);
        } else if param.name == RTPROP_WINDOW.name {
            self.rtprop_window = Duration::from_secs_f64(value);
        }
    }

    fn model(&self) -> PathModel {
        PathModel {
            btlbw: self.btlbw.max(),
            rtprop: match self.rtprop {
                Duration::MAX => Duration::ZERO,
                known => known,
            },
            pacing_gain: self.pacing_gain,
            cwnd_gain: self.cwnd_gain,
        }
    }
}
