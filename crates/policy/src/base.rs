//! What a learned controller steers: a sending rate, or another controller.

use headway_cc::schemes::{bbr, cubic, newreno};
use headway_cc::{
    Base, Bytes, CongestionControl, Control, Duration, EcnUse, Feedback, Param, PathModel, Phase,
    Rate, Registry, Rto, RttStats, Scheme, Selection, Setup, Time, Tunable, Values, suggest,
};
use serde::{Deserialize, Serialize};

use crate::{Action, ActionSpec, Effect, FlowGuard, SpecError};

/// Matches an action of one value with this effect.
macro_rules! of_effect {
    ($effect:pat) => {
        ActionSpec::Discrete {
            effect: $effect,
            ..
        } | ActionSpec::Continuous {
            effect: $effect,
            ..
        }
    };
}
/// What a learned controller steers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BaseSpec {
    /// A sending rate, as Aurora has.
    Rate {
        /// The rate at the start, in Mbit/s.
        initial_mbps: f64,
        /// The lowest rate, in Mbit/s.
        min_mbps: f64,
        /// The highest rate, in Mbit/s.
        max_mbps: f64,
    },
    /// Another controller. If its window is steered (Owl over Cubic), the policy acts only in
    /// congestion avoidance. If its parameters are set (the BBR tuner), the policy may act at any
    /// time.
    Scheme {
        /// The controller's name: `newreno` or `cubic` to steer a window, with parameters as in
        /// `cubic:hystart=classic`; `bbr` or `cubic`, without parameters, to set parameters.
        name: String,
        /// Does the window also grow by itself in congestion avoidance? If not, only the policy
        /// moves it there (Owl §IV-A and §VI). Slow start, losses and timeouts always belong to the
        /// controller.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        grows: bool,
    },
}

fn yes() -> bool {
    true
}

fn is_yes(flag: &bool) -> bool {
    *flag
}

impl BaseSpec {
    /// Checks that the base controller exists and that `action` fits it.
    ///
    /// # Errors
    /// [`SpecError`]
    pub fn check(&self, action: &ActionSpec) -> Result<(), SpecError> {
        match (self, action) {
            (
                BaseSpec::Rate {
                    initial_mbps,
                    min_mbps,
                    max_mbps,
                },
                of_effect!(Effect::ScaleRate { .. }),
            ) => {
                let ordered = 1e-3 <= *min_mbps
                    && min_mbps <= initial_mbps
                    && initial_mbps <= max_mbps
                    && *max_mbps <= 1e6;
                ordered.then_some(()).ok_or_else(|| {
                    SpecError(format!(
                        "base: rates {min_mbps} <= {initial_mbps} <= {max_mbps} must lie in that order from 0.001 to 1000000 Mbit/s"
                    ))
                })
            }
            (
                BaseSpec::Scheme { name, .. },
                of_effect!(Effect::AddCwnd | Effect::ScaleCwnd { .. })
                | ActionSpec::Steps { .. },
            ) => steered(name).map(|_| ()),
            (BaseSpec::Scheme { grows: false, .. }, _) => Err(SpecError(
                "base: grows = false is for a window that is steered, by steps, add-cwnd or scale-cwnd"
                    .to_owned(),
            )),
            (BaseSpec::Scheme { name, .. }, ActionSpec::Settings { parameters, choices }) => {
                let tunables = tunable_named(name)?.tunables;
                for (i, parameter) in parameters.iter().enumerate() {
                    let values = choices.iter().map(|choice| choice[i]);
                    check_parameter(tunables, name, parameter, values)?;
                }
                Ok(())
            }
            (
                BaseSpec::Scheme { name, .. },
                ActionSpec::Discrete {
                    effect: Effect::Set { parameter },
                    choices,
                },
            ) => check_parameter(
                tunable_named(name)?.tunables,
                name,
                parameter,
                choices.iter().copied(),
            ),
            _ => Err(SpecError(
                "base: a rate takes scale-rate; newreno and cubic take steps, add-cwnd and scale-cwnd; bbr and cubic take settings, and set with discrete choices"
                    .to_owned(),
            )),
        }
    }
}

type BuildTunable = fn(&Setup) -> Box<dyn Tunable>;

/// Controllers whose window can be steered.
static STEERED: [Scheme; 2] = [cubic::SCHEME, newreno::SCHEME];

/// Reads `name` or `name:key=value`, as in every other place.
fn steered(spec: &str) -> Result<Selection, SpecError> {
    let name = spec.split(':').next().unwrap_or_default();
    if STEERED.iter().all(|scheme| scheme.name != name) {
        return Err(SpecError(format!(
            "base: the window of '{name}' cannot be steered; those of newreno and cubic can"
        )));
    }
    Registry::new(&STEERED)
        .select(spec)
        .map_err(|why| SpecError(format!("base: {why}")))
}

fn build_steered(spec: &str, setup: &Setup) -> Result<Box<dyn Base>, SpecError> {
    let Selection { scheme, values, .. } = steered(spec)?;
    Ok(match scheme.name == cubic::SCHEME.name {
        true => Box::new(cubic::Cubic::new(setup, &values)),
        false => Box::new(newreno::NewReno::new(setup, EcnUse::of(&values))),
    })
}

/// A controller whose parameters a policy may set.
struct Tuned {
    name: &'static str,
    tunables: &'static [Param],
    build: BuildTunable,
}

/// Every controller that implements [`Tunable`].
static TUNED: [Tuned; 2] = [
    Tuned {
        name: bbr::SCHEME.name,
        tunables: &bbr::TUNABLES,
        build: |setup| {
            let values = Values::defaults(bbr::SCHEME.params);
            Box::new(bbr::Bbr::new(setup, &values))
        },
    },
    Tuned {
        name: cubic::SCHEME.name,
        tunables: &cubic::TUNABLES,
        build: |setup| {
            let values = Values::defaults(cubic::SCHEME.params);
            Box::new(cubic::Cubic::new(setup, &values))
        },
    },
];

/// The controllers whose parameters a policy may set while they run, by name, with these
/// parameters.
pub fn tunables() -> impl Iterator<Item = (&'static str, &'static [Param])> {
    TUNED.iter().map(|tuned| (tuned.name, tuned.tunables))
}

fn tunable_named(name: &str) -> Result<&'static Tuned, SpecError> {
    TUNED
        .iter()
        .find(|tuned| tuned.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = tunables().map(|(name, _)| name).collect();
            SpecError(format!(
                "base: '{name}' has no parameters to set; {} have",
                names.join(" and ")
            ))
        })
}

fn check_parameter(
    tunables: &[Param],
    scheme: &str,
    parameter: &str,
    mut values: impl Iterator<Item = f64>,
) -> Result<(), SpecError> {
    let Some(param) = tunables.iter().find(|p| p.name == parameter) else {
        return Err(SpecError(format!(
            "action: {scheme} has no parameter '{parameter}' to set; {}",
            suggest(parameter, tunables.iter().map(|p| p.name))
        )));
    };
    match values.find(|&v| param.kind.within(v) != v) {
        None => Ok(()),
        Some(value) => Err(SpecError(format!(
            "action: {parameter} = {value} must be {} (times are in seconds here)",
            param.kind
        ))),
    }
}

/// A flow's base controller.
#[derive(Debug)]
pub enum BaseController {
    /// A sending rate.
    Rate(RateControl),
    /// A controller whose window is steered.
    Base(Box<dyn Base>),
    /// A controller whose parameters are set.
    Tunable(Box<dyn Tunable>),
}

impl BaseController {
    /// Builds the base controller of one flow, which actions of `action` will steer.
    ///
    /// # Errors
    /// [`SpecError`] if there is no such controller.
    pub fn new(
        spec: &BaseSpec,
        action: &ActionSpec,
        setup: &Setup,
    ) -> Result<BaseController, SpecError> {
        match (spec, action) {
            (
                BaseSpec::Rate {
                    initial_mbps,
                    min_mbps,
                    max_mbps,
                },
                _,
            ) => {
                let [initial, min, max] =
                    [*initial_mbps, *min_mbps, *max_mbps].map(Rate::from_mbps);
                let control = RateControl::new(setup.mss, initial);
                Ok(BaseController::Rate(RateControl {
                    min,
                    max,
                    ..control
                }))
            }
            (
                BaseSpec::Scheme { name, .. },
                ActionSpec::Settings { .. } | of_effect!(Effect::Set { .. }),
            ) => Ok(BaseController::Tunable((tunable_named(name)?.build)(setup))),
            (BaseSpec::Scheme { name, grows }, _) => {
                let mut scheme = build_steered(name, setup)?;
                if !grows {
                    scheme.hold();
                }
                Ok(BaseController::Base(scheme))
            }
        }
    }

    /// The base controller.
    pub fn controller(&self) -> &dyn CongestionControl {
        match self {
            BaseController::Rate(rate) => rate,
            BaseController::Base(scheme) => scheme.as_ref(),
            BaseController::Tunable(scheme) => scheme.as_ref(),
        }
    }

    /// The base controller.
    pub fn controller_mut(&mut self) -> &mut dyn CongestionControl {
        match self {
            BaseController::Rate(rate) => rate,
            BaseController::Base(scheme) => scheme.as_mut(),
            BaseController::Tunable(scheme) => scheme.as_mut(),
        }
    }

    /// The controller's model of the path, if its parameters are set.
    pub fn model(&self) -> Option<PathModel> {
        match self {
            BaseController::Tunable(scheme) => Some(scheme.model()),
            BaseController::Rate(_) | BaseController::Base(_) => None,
        }
    }

    /// The guard gives the flow back to its policy. A window stays as it is. A rate starts from the
    /// window that Cubic left.
    pub fn return_to_policy(&mut self, spec: &BaseSpec, left: Option<Bytes>, rtt: &RttStats) {
        match (self, spec) {
            (BaseController::Base(scheme), BaseSpec::Scheme { grows: false, .. }) => scheme.hold(),
            (BaseController::Rate(control), _) => {
                if let Some(rate) = left.and_then(|cwnd| rate_of(cwnd, rtt)) {
                    control.set(rate);
                }
            }
            _ => {}
        }
    }

    /// May the policy act now?
    pub fn may_act(&self) -> bool {
        match self {
            BaseController::Rate(_) | BaseController::Tunable(_) => true,
            BaseController::Base(scheme) => scheme.phase() == Phase::CongestionAvoidance,
        }
    }

    /// Carries an action out, within the guard's bounds. An action that does not fit the base
    /// controller is ignored; [`AgentSpec::check`](crate::AgentSpec::check) refuses such specs.
    pub fn act(
        &mut self,
        now: Time,
        mss: Bytes,
        rtt: &RttStats,
        action: Action<'_>,
        guard: Option<&mut FlowGuard>,
    ) {
        match (self, action) {
            // The base controller goes on as if it had no policy.
            (_, Action::AddCwnd(0.0) | Action::ScaleCwnd(1.0)) => {}
            (BaseController::Rate(control), Action::ScaleRate(factor)) => {
                let wanted = control.within(control.rate.mul_f64(factor));
                control.set(guard.map_or(wanted, |guard| guard.rate(wanted)));
            }
            (BaseController::Base(scheme), Action::AddCwnd(packets)) => {
                let cwnd = scheme.control().cwnd.as_f64() + packets * mss.as_f64();
                scheme.set_cwnd(now, rtt.smoothed, within_window(cwnd, mss, guard));
            }
            (BaseController::Base(scheme), Action::ScaleCwnd(factor)) => {
                let cwnd = scheme.control().cwnd.as_f64() * factor;
                scheme.set_cwnd(now, rtt.smoothed, within_window(cwnd, mss, guard));
            }
            (BaseController::Tunable(scheme), Action::Set(parameter, value)) => {
                tune(scheme.as_mut(), parameter, value);
            }
            (BaseController::Tunable(scheme), Action::Settings(parameters, values)) => {
                for (parameter, value) in parameters.iter().zip(values) {
                    tune(scheme.as_mut(), parameter, *value);
                }
            }
            _ => {}
        }
    }
}

/// The largest window, in packets, that an action can set. It is more than 10 Gbit/s need at 100
/// ms, and memory can hold it. It is a constant and not part of a spec, because only a policy that
/// has failed gets here.
const MAX_PACKETS: u64 = 100_000;

/// A window of this many bytes, bounded to one packet to [`MAX_PACKETS`], or by the guard's
/// limits.
fn within_window(cwnd: f64, mss: Bytes, guard: Option<&mut FlowGuard>) -> Bytes {
    match guard {
        Some(guard) => guard.cwnd(cwnd),
        None => Bytes::from_f64(cwnd.clamp(mss.as_f64(), (mss * MAX_PACKETS).as_f64())),
    }
}

fn tune(scheme: &mut dyn Tunable, parameter: &str, value: f64) {
    if let Some(param) = scheme.tunables().iter().find(|p| p.name == parameter) {
        scheme.tune(param, value);
    }
}

/// A sending rate. Its window only bounds what can pile up during an outage.
#[derive(Debug)]
pub struct RateControl {
    rate: Rate,
    min: Rate,
    max: Rate,
    mss: Bytes,
    rtt: Duration,
}

impl RateControl {
    /// Starts at `initial`, and allows any rate.
    pub fn new(mss: Bytes, initial: Rate) -> RateControl {
        RateControl {
            rate: initial,
            min: Rate::ZERO,
            max: Rate::MAX,
            mss,
            rtt: Duration::ZERO,
        }
    }

    /// The sending rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Sets the sending rate, within its limits.
    pub fn set(&mut self, rate: Rate) {
        self.rate = self.within(rate);
    }

    /// The nearest rate within the limits.
    fn within(&self, rate: Rate) -> Rate {
        rate.clamp(self.min, self.max)
    }
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

/// The rate at which a window of this size sends.
pub(crate) fn rate_of(cwnd: Bytes, rtt: &RttStats) -> Option<Rate> {
    let seconds = rtt.smoothed.as_secs_f64();
    (seconds > 0.0).then(|| Rate::from_bps_f64(cwnd.as_f64() * 8.0 / seconds))
}

#[cfg(test)]
mod tests {
    use headway_cc::testing::{MSS, feedback, rto, setup};
    use headway_cc::{Congestion, Recovery};

    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn no_answer_exceeds_the_largest_window() {
        let mss = Bytes::new(1500);
        let setup = Setup::new(mss, 1);
        let action = ActionSpec::Continuous {
            effect: Effect::ScaleCwnd { base: 4.0 },
            limit: 1.0,
        };
        let spec = BaseSpec::Scheme {
            name: "newreno".to_owned(),
            grows: true,
        };
        let mut base = BaseController::new(&spec, &action, &setup).unwrap();
        for (action, packets) in [
            (Action::ScaleCwnd(1e300), 100_000),
            (Action::AddCwnd(1e300), 100_000),
            (Action::AddCwnd(-1e300), 1),
            (Action::ScaleCwnd(4.0), 4),
        ] {
            base.act(Time::ZERO, mss, &RttStats::default(), action, None);
            assert_eq!(base.controller().control().cwnd, mss * packets);
        }
    }

    /// Owl's base controller has Cubic's window without its growth in congestion avoidance.
    #[test]
    fn a_held_window_is_constant_in_avoidance_and_cubics_otherwise() {
        let action = ActionSpec::Continuous {
            effect: Effect::AddCwnd,
            limit: 10.0,
        };
        let spec = BaseSpec::Scheme {
            name: "cubic".to_owned(),
            grows: false,
        };
        let mut held = BaseController::new(&spec, &action, &setup()).unwrap();
        let values = Values::defaults(cubic::SCHEME.params);
        let mut plain = cubic::Cubic::new(&setup(), &values);
        let packets = |cc: &dyn CongestionControl| cc.control().cwnd.as_f64() / MSS.as_f64();
        let acked = |ms: u64| Feedback {
            acked_bytes: MSS,
            ..feedback(at(ms))
        };
        let loss = |ms: u64, in_flight: u64| Feedback {
            congestion: Some(Congestion::Loss),
            recovery: Recovery::Recovery,
            prior_in_flight: MSS * in_flight,
            ..acked(ms)
        };
        // Slow start from 10 to 100 packets, and the first loss: the windows are equal.
        for ms in 0..90 {
            held.controller_mut().on_feedback(&acked(ms));
            plain.on_feedback(&acked(ms));
            assert_eq!(packets(held.controller()), packets(&plain));
        }
        assert!(!held.may_act());
        held.controller_mut().on_feedback(&loss(100, 100));
        plain.on_feedback(&loss(100, 100));
        assert_eq!((packets(held.controller()), packets(&plain)), (70.0, 70.0));
        // In congestion avoidance the window stays the same for ten seconds and 10,000
        // acknowledgements.
        for ms in 200..10_200 {
            held.controller_mut().on_feedback(&acked(ms));
            plain.on_feedback(&acked(ms));
            assert_eq!(packets(held.controller()), 70.0);
            assert!(held.may_act());
        }
        assert!(packets(&plain) > 150.0, "{}", packets(&plain));
        // RFC 9438 §4.6: a loss leaves 0.7 of what was in flight. §4.8: after a timeout slow start
        // leads back to that window.
        held.controller_mut().on_feedback(&loss(10_200, 70));
        assert!((packets(held.controller()) - 49.0).abs() < 1e-9);
        held.controller_mut().on_rto(&rto(at(10_300), 49, 1));
        assert_eq!(packets(held.controller()), 1.0);
        for ms in 10_400..10_600 {
            held.controller_mut().on_feedback(&acked(ms));
        }
        assert!((packets(held.controller()) - 0.7 * 49.0).abs() < 1.0);
    }

    /// Acknowledgements 1 ms apart span half of the minimum RTT. Linux's HyStart ends slow start
    /// there, and RFC 9406's HyStart++ does not.
    #[test]
    fn parameters_reach_the_base_controller() {
        let action = ActionSpec::Continuous {
            effect: Effect::AddCwnd,
            limit: 10.0,
        };
        for (name, has_left) in [("cubic", false), ("cubic:hystart=classic", true)] {
            let spec = BaseSpec::Scheme {
                name: name.to_owned(),
                grows: false,
            };
            let mut base = BaseController::new(&spec, &action, &setup()).unwrap();
            for ms in 0..90 {
                let acked = Feedback {
                    acked_bytes: MSS,
                    // From 20 packets on a second round begins.
                    largest_acked: u64::from(ms >= 20),
                    next_number: if ms < 20 { 1 } else { 2 },
                    ..feedback(at(ms))
                };
                base.controller_mut().on_feedback(&acked);
            }
            assert_eq!(base.may_act(), has_left, "{name}");
        }
    }

    #[test]
    fn only_a_window_can_be_held() {
        let spec = BaseSpec::Scheme {
            name: "bbr".to_owned(),
            grows: false,
        };
        let action = ActionSpec::Settings {
            parameters: vec!["btlbw_window".to_owned()],
            choices: vec![vec![10.0], vec![5.0]],
        };
        assert_eq!(
            spec.check(&action).unwrap_err().to_string(),
            "base: grows = false is for a window that is steered, by steps, add-cwnd or scale-cwnd"
        );
    }
}
