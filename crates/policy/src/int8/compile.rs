//! Turns an agent's spec into the constants of `rate_agent.h`.

use std::f64::consts::LN_2;

use headway_fixed::{FEATURES, HISTORY, Int8, Mlp};

use super::quantised::input;
use crate::{
    ActionSpec, AgentSpec, BaseSpec, ClockSpec, Effect, FeatureUse, RttEstimator, SpecError,
};

/// The features that the kernel's program sees, each with whether it takes the logarithm of 1 + x.
const SEEN: [(&str, bool); FEATURES] = [
    ("rtt_slope", false),
    ("rtt_ratio", true),
    ("send_ratio", true),
    ("loss", false),
    ("delivered_packets", true),
];
/// The number 1 in the program's fixed-point format.
const ONE: f64 = 65536.0;
/// A generation that marks a usable policy: it is even and not 0.
const GENERATION: u32 = 2;

/// The policy for the kernel's program: `agent` with the network `net`.
///
/// # Errors
/// [`SpecError`], one line: the program cannot see, decide or do what `agent` says.
pub fn compile(agent: &AgentSpec, net: Mlp) -> Result<Int8, SpecError> {
    let mut policy = Int8 {
        generation: GENERATION,
        net,
        ..Int8::default()
    };
    policy.interval = match agent.clock {
        ClockSpec::Rtt {
            n,
            estimator: RttEstimator::Mean,
        } if n < 16.0 => whole(n * ONE),
        _ => return Err(wrong("clock", "kind rtt, n below 16, estimator mean")),
    };
    let ActionSpec::Continuous {
        effect: Effect::ScaleRate { delta },
        limit,
    } = agent.action
    else {
        return Err(wrong("action", "continuous, and scale a rate"));
    };
    if limit >= 16.0 || delta >= 1.0 {
        return Err(wrong("action", "of a limit below 16 and a delta below 1"));
    }
    (policy.limit, policy.delta) = (whole(limit * ONE), whole(delta * ONE));
    let BaseSpec::Rate {
        initial_mbps,
        min_mbps,
        max_mbps,
    } = agent.base
    else {
        return Err(wrong("base", "a rate"));
    };
    let bytes = |mbps: f64| (mbps * 1e6 / 8.0).round() as u64;
    policy.initial_rate = bytes(initial_mbps);
    policy.min_rate = bytes(min_mbps);
    policy.max_rate = bytes(max_mbps);
    let features = &agent.observation.features;
    let seen = features.iter().map(|used| (used.name.as_str(), used.log));
    if agent.observation.history != HISTORY || !seen.eq(SEEN) {
        let names = SEEN.map(|(name, log)| format!("{name} (log = {log})"));
        let wanted = format!("the last {HISTORY} intervals' {}", names.join(", "));
        return Err(wrong("observation", &wanted));
    }
    for (n, used) in features.iter().enumerate() {
        (policy.offsets[n], policy.steps[n]) = scale(used)?;
        policy.blank[n] = input(0.0, used);
    }
    Ok(policy)
}

/// The value that becomes input 0, and the inputs for one unit, in 1/65536. The value is x in
/// 1/65536, or log2(1 + x).
fn scale(used: &FeatureUse) -> Result<(i32, u32), SpecError> {
    let unit = if used.log { LN_2 } else { 1.0 };
    let [low, high] = used.clip;
    let offset = ONE * (used.offset + low / used.scale) / unit;
    let steps = ONE * 255.0 * used.scale * unit / (high - low);
    // Both bounds leave room for the multiplications in rate_agent.h.
    match used.scale > 0.0 && offset.abs() < 2f64.powi(30) && (1.0..2f64.powi(30)).contains(&steps)
    {
        true => Ok((offset.round() as i32, whole(steps))),
        false => Err(SpecError(format!(
            "int8: feature '{}': scale must be above 0, and clip about as wide as the values that occur, because an input has 256 steps between its limits",
            used.name
        ))),
    }
}

fn whole(number: f64) -> u32 {
    number.round() as u32
}

fn wrong(what: &str, must: &str) -> SpecError {
    SpecError(format!(
        "int8: {what} must be {must}; the kernel's program has no other"
    ))
}
