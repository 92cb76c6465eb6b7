//! Owl's utility, the reward of an agent that goes on learning.

use serde::{Deserialize, Serialize};

use crate::Interval;

/// Owl's utility (Eq. 7): `x - delta x / (1 - p) - beta ln(RTT / RTTmin)`.
///
/// x is the delivered data in Mbit/s on the wire. p is the share of lost packets among those whose
/// fate became known. RTT is the interval's mean, and RTTmin the minimum of the last 10 s. The
/// reward `owl` of `headway.envs` is the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utility {
    /// The weight of the loss; 0.5 in §VII.
    pub delta: f64,
    /// The weight of the delay; 0.5 in §VII, 0 for Owl-Loss.
    pub beta: f64,
    /// How the training shaped the rate.
    pub shaping: Shaping,
}

/// How the rate counts in training; the default is Eq. 7. A simulation knows the slowest link's
/// rate. In use the flow's largest throughput of an interval takes its place. A fair share is not
/// known in use either, so a flow that was trained with the reward's `fair` has nothing there that
/// stops its growth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shaping {
    /// Rates are multiplied by `scale` over the slowest link's rate to the power `exponent`.
    pub scale: f64,
    /// The exponent, 0 to 1; see `scale`.
    pub exponent: f64,
    /// The share, 0 to 1, that is subtracted of what the link could have carried without loss.
    pub regret: f64,
}

impl Default for Shaping {
    fn default() -> Shaping {
        Shaping {
            scale: 1.0,
            exponent: 0.0,
            regret: 0.0,
        }
    }
}

impl Shaping {
    /// Checks that the utility can be computed.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Shaping {
            scale,
            exponent,
            regret,
        } = *self;
        let share = 0.0..=1.0;
        match scale.is_finite()
            && scale > 0.0
            && share.contains(&exponent)
            && share.contains(&regret)
        {
            true => Ok(()),
            false => Err(format!(
                "reward: scale {scale}, exponent {exponent}, regret {regret} must be above 0, 0 to 1, 0 to 1"
            )),
        }
    }
}

impl Utility {
    /// The largest loss rate that counts, so that the utility stays finite.
    const MAX_LOSS: f64 = 0.999;

    /// The utility of an interval. If rates count relative to the largest throughput, it is `None`
    /// in the first 20 ms of a flow, in which that is not known.
    pub fn of(&self, interval: &Interval) -> Option<f64> {
        let Utility {
            delta,
            beta,
            shaping,
        } = *self;
        let best = interval.mbps(interval.max_throughput);
        if best == 0.0 && (shaping.exponent > 0.0 || shaping.regret > 0.0) {
            return None;
        }
        let scale = shaping.scale / libm::pow(best, shaping.exponent);
        let rate = interval.mbps(interval.per_second(interval.delivered)) * scale;
        let arrived = 1.0 - interval.loss().min(Utility::MAX_LOSS);
        let inflation = match interval.min_rtt_10s_us {
            0 => 1.0,
            least => (interval.rtt.mean_us / f64::from(least)).max(1.0),
        };
        let regret = shaping.regret * (1.0 - delta) * best * scale;
        Some(rate - delta * rate / arrived - beta * libm::log(inflation) - regret)
    }
}
