//! Owl's utility: what an agent that goes on learning is rewarded with.

use serde::{Deserialize, Serialize};

use crate::Interval;

/// Owl's utility (Eq. 7): `x - delta x / (1 - p) - beta ln(RTT / RTTmin)`.
///
/// x is what was delivered, in Mbit/s on the wire; p the share lost of the packets whose fate
/// became known; RTT the interval's mean, RTTmin the least sample of the last 10 s. The reward
/// `owl` of `headway.envs` is the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utility {
    /// Weight of the loss; 0.5 in §VII.
    pub delta: f64,
    /// Weight of the delay; 0.5 in §VII, 0 for Owl-Loss.
    pub beta: f64,
    /// How it was shaped in training.
    pub shaping: Shaping,
}

/// How the rate counts in training; as in Eq. 7 unless told. A simulation knows what the slowest
/// link carries; in use the largest throughput of an interval of the flow stands for it. Nor is a
/// fair share known in use: the gain of a flow trained with the reward's `fair` stops nowhere
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shaping {
    /// Rates are multiplied by this ...
    pub scale: f64,
    /// ... over the slowest link's rate to this power, 0 to 1.
    pub exponent: f64,
    /// How much of what the link could have carried at no loss is taken away, 0 to 1.
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
    /// That it can be computed.
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
    /// A larger loss counts as this, so that the utility stays finite.
    const MOST_LOSS: f64 = 0.999;

    /// The utility of an interval; `None` in the first 20 ms of a flow where it counts in shares of
    /// the largest throughput, which is not known before.
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
        let arrived = 1.0 - interval.loss().min(Utility::MOST_LOSS);
        let inflation = match interval.min_rtt_10s_us {
            0 => 1.0,
            least => (interval.rtt.mean_us / f64::from(least)).max(1.0),
        };
        let regret = shaping.regret * (1.0 - delta) * best * scale;
        Some(rate - delta * rate / arrived - beta * libm::log(inflation) - regret)
    }
}
