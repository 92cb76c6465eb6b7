//! Fuzzes every registered scheme, with any parameters and any events of a flow.

use headway_cc::testing::{drive, setup};
use headway_cc::{Kind, Param, Registry, schemes};

use super::Bytes;
use super::model::fixture;

/// The first bytes choose the scheme and its parameters. The rest is the script of [`drive`], which
/// checks that the controller keeps its promises to its host.
pub fn controller(input: &[u8]) {
    let mut input = Bytes(input);
    let spec = spec(&mut input);
    let registry = registry();
    let selection = registry.select(&spec).expect("a value within its range");
    let half = selection.build_receiver(&setup());
    drive(selection.build(&setup()), half, input.0);
}

/// Every scheme.
pub fn registry() -> Registry {
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(headway_policy::schemes::SCHEMES);
    registry
}

/// The scheme and the parameters at the beginning of `input`, as a user would write them.
pub fn spec(input: &mut Bytes<'_>) -> String {
    let registry = registry();
    let all: Vec<_> = registry.iter().collect();
    let scheme = all[usize::from(input.byte()) % all.len()];
    let params = scheme.params.iter();
    let params = params.map(|param| format!(":{}={}", param.name, value(param, input)));
    scheme.name.to_owned() + &params.collect::<String>()
}

/// A value of `param` as a user would write it.
fn value(param: &Param, input: &mut Bytes<'_>) -> String {
    let mut between = |min: f64, max: f64| (min + input.share() * (max - min)).clamp(min, max);
    match &param.kind {
        Kind::Number { min, max, .. } => between(*min, *max).to_string(),
        Kind::Count { min, max, .. } => (between(*min as f64, *max as f64) as u64).to_string(),
        Kind::Time { min, max, .. } => {
            format!(
                "{}ns",
                between(min.as_nanos() as f64, max.as_nanos() as f64)
            )
        }
        Kind::Rate { min, max, .. } => {
            format!("{}bps", between(min.as_bps() as f64, max.as_bps() as f64))
        }
        Kind::Choice(words) => words[usize::from(input.byte()) % words.len()].to_owned(),
        Kind::Switch => ["off", "on"][usize::from(input.byte() % 2)].to_owned(),
        Kind::Loaded { default, .. } => match default {
            Some(text) => (*text).to_owned(),
            None => fixture().display().to_string(),
        },
    }
}
