//! Every mistake is answered by one line: where, what, and what would be right.

mod any_text;
mod graphs;
mod links;
mod queues;
mod traffic;
mod whole_file;

use headway_scenario::Scenario;

fn refused(text: &str) -> String {
    match Scenario::parse(text, "x.toml") {
        Ok(_) => panic!("accepted: {text}"),
        Err(e) => e.to_string(),
    }
}

/// Lines 1 to 3, then the case from line 4 on.
fn with_head(rest: &str) -> String {
    format!("schema = 1\nname = \"x\"\nseconds = 60\n{rest}")
}
