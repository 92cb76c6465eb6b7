//! Fuzzes scenario files.

use headway_scenario::Scenario;

use super::one_line;

/// Reads the input as a scenario and draws two runs of it. There is no panic, errors are one line,
/// and the same text and seed give the same network.
pub fn scenario(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match Scenario::parse_all(text, "fuzz") {
        Err(error) => one_line(&error),
        Ok(scenarios) => scenarios.iter().for_each(check),
    }
    match Scenario::parse(text, "fuzz") {
        Err(error) => one_line(&error),
        Ok(scenario) => check(&scenario),
    }
}

fn check(scenario: &Scenario) {
    let again = Scenario::parse_all(scenario.text(), "again").expect("it was read before");
    assert!(again.iter().any(|s| s.hash() == scenario.hash()));
    for seed in [1, 2] {
        assert_eq!(scenario.draw(seed), scenario.draw(seed));
    }
    scenario.varies();
    scenario.traces();
}
