//! The meaning of a scenario's file.

mod changes;
mod draws;
mod every_key;
mod hashes;
mod links;
mod queues;

use headway_scenario::Scenario;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test").unwrap_or_else(|e| panic!("{e}"))
}

const ONE: &str = r#"
schema = 1
name = "one"
seconds = 60
[bottleneck]
rate = "12Mbps"
delay = "20ms"
queue = "0.5bdp"
loss = 0.01
"#;
