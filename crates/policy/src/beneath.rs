//! What a learned controller steers: a sending rate, or another controller.

use headway_cc::{
    Base, Bytes, CongestionControl, Control, Duration, EcnUse, Feedback, Phase, Rate, Rto,
    RttStats, Setup, Time, Values,
};
use serde::{Deserialize, Serialize};

use crate::{Action, Effect, SpecError};

/// What a learned controller steers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BeneathSpec {
    /// A sending rate (Aurora).
    Rate {
        /// Where it begins, in Mbit/s.
        initial_mbps: f64,
        /// The least, in Mbit/s.
        min_mbps: f64,
        /// The most, in Mbit/s.
        max_mbps: f64,
    },
    /// Another controller, left to itself outside congestion avoidance (Owl over Cubic).
    Scheme {
        /// Its name: one of `newreno`, `cubic`.
        name: String,
    },
}

impl BeneathSpec {
    /// That it can be had, and that `effect` means something to it.
    ///
    /// # Errors
    /// [`SpecError`]
    pub fn check(&self, effect: &Effect) -> Result<(), SpecError> {
        match (self, effect) {
            (
                BeneathSpec::Rate {
                    initial_mbps,
                    min_mbps,
                    max_mbps,
                },
                Effect::ScaleRate { .. },
            ) => {
                let ordered = 1e-3 <= *min_mbps
                    && min_mbps <= initial_mbps
                    && initial_mbps <= max_mbps
                    && *max_mbps <= 1e6;
                ordered.then_some(()).ok_or_else(|| {
                    SpecError(format!(
                        "beneath: rates {min_mbps} <= {initial_mbps} <= {max_mbps} must lie in that order from 0.001 to 1000000 Mbit/s"
                    ))
                })
            }
            (BeneathSpec::Scheme { name }, Effect::AddCwnd | Effect::ScaleCwnd { .. }) => {
                match base_named(name) {
                    Some(_) => Ok(()),
                    None => Err(SpecError(format!(
                        "beneath: '{name}' cannot be steered; it must be one of newreno, cubic"
                    ))),
                }
            }
            _ => Err(SpecError(
                "beneath: a rate takes the effect scale-rate, a scheme add-cwnd or scale-cwnd"
                    .to_owned(),
            )),
        }
    }
}

type BuildBase = fn(&Setup) -> Box<dyn Base>;

fn base_named(name: &str) -> Option<BuildBase> {
    use headway_cc::schemes::{cubic, newreno};
    match name {
        "cubic" => Some(|setup| {
            Box::new(cubic::Cubic::new(
                setup,
                &Values::defaults(cubic::SCHEME.params),
            ))
        }),
        "newreno" => Some(|setup| Box::new(newreno::NewReno::new(setup, EcnUse::Off))),
        _ => None,
    }
}

/// What a learned controller steers, at work.
#[derive(Debug)]
pub enum Beneath {
    /// A sending rate.
    Rate(RateControl),
    /// Another controller.
    Scheme(Box<dyn Base>),
}

impl Beneath {
    /// For one flow.
    ///
    /// # Errors
    /// [`SpecError`] if there is no such controller.
    pub fn new(spec: &BeneathSpec, setup: &Setup) -> Result<Beneath, SpecError> {
        match spec {
            BeneathSpec::Rate {
                initial_mbps,
                min_mbps,
                max_mbps,
            } => Ok(Beneath::Rate(RateControl {
                rate: Rate::from_mbps(*initial_mbps),
                min: Rate::from_mbps(*min_mbps),
                max: Rate::from_mbps(*max_mbps),
                mss: setup.mss,
                rtt: Duration::ZERO,
            })),
            BeneathSpec::Scheme { name } => match base_named(name) {
                Some(build) => Ok(Beneath::Scheme(build(setup))),
                None => Err(SpecError(format!("beneath: '{name}' cannot be steered"))),
            },
        }
    }

    /// The controller beneath.
    pub fn controller(&self) -> &dyn CongestionControl {
        match self {
            Beneath::Rate(rate) => rate,
            Beneath::Scheme(scheme) => scheme.as_ref(),
        }
    }

    /// The controller beneath.
    pub fn controller_mut(&mut self) -> &mut dyn CongestionControl {
        match self {
            Beneath::Rate(rate) => rate,
            Beneath::Scheme(scheme) => scheme.as_mut(),
        }
    }

    /// May a policy act now?
    pub fn may_act(&self) -> bool {
        match self {
            Beneath::Rate(_) => true,
            Beneath::Scheme(scheme) => scheme.phase() == Phase::CongestionAvoidance,
        }
    }

    /// Carries an action out; one that means nothing here is ignored (specs are checked).
    pub fn act(&mut self, now: Time, mss: Bytes, rtt: &RttStats, action: Action<'_>) {
        match (self, action) {
            (Beneath::Rate(control), Action::ScaleRate(factor)) => {
                control.rate = control.rate.mul_f64(factor).clamp(control.min, control.max);
            }
            (Beneath::Scheme(scheme), Action::AddCwnd(packets)) => {
                let cwnd = scheme.control().cwnd.as_f64() + packets * mss.as_f64();
                scheme.set_cwnd(now, rtt.smoothed, Bytes::from_f64(cwnd.max(mss.as_f64())));
            }
            (Beneath::Scheme(scheme), Action::ScaleCwnd(factor)) => {
                let cwnd = scheme.control().cwnd.as_f64() * factor;
                scheme.set_cwnd(now, rtt.smoothed, Bytes::from_f64(cwnd.max(mss.as_f64())));
            }
            _ => {}
        }
    }
}

/// A sending rate, with a window that only bounds what an outage can pile up.
#[derive(Debug)]
pub struct RateControl {
    rate: Rate,
    min: Rate,
    max: Rate,
    mss: Bytes,
    rtt: Duration,
}

impl CongestionControl for RateControl {
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.rtt = feedback.rtt_stats.smoothed;
    }

    fn on_rto(&mut self, _: &Rto<'_>) {}

    fn control(&self) -> Control {
        let cwnd = match self.rtt.is_zero() {
            true => self.mss * 100,
            false => self.rate.bytes_in(self.rtt) * 2 + self.mss * 10,
        };
        Control::paced(cwnd, self.rate)
    }

    fn owns_recovery(&self) -> bool {
        true
    }
}
