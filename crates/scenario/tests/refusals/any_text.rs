//! Any text is either a scenario or refused.

use headway_scenario::{Scenario, shipped};
use proptest::prelude::*;

/// A shipped scenario with up to two lines lost or replaced.
fn nearly_right() -> impl Strategy<Value = String> {
    const LINES: &[&str] = &[
        "",
        "# comment",
        "rate = \"1Mbps..9Mbps\"",
        "rate = \"..\"",
        "trace = \"a\"",
        "delay = \"3ms..9ms\"",
        "delay = \"1000000000s\"",
        "queue = \"1bdp..2bdp\"",
        "queue = \"1pkt..9pkt\"",
        "queue = { kind = \"codel\", bytes = \"1bdp\", target = \"1ms..9ms\" }",
        "queue = { kind = \"red\", min = \"1pkt..9pkt\", weight = \"0..1\" }",
        "mean = \"3Mbps\"",
        "loss = 1e999",
        "loss = 0x1",
        "loss = { kind = \"gilbert-elliott\", to_bad = \"0..1\", to_good = 1 }",
        "jitter = \"1ns..9ms\"\nreorder = { probability = 1, delay = \"1ms..2ms\" }",
        "from = \"d\"",
        "duplex = false",
        "count = 7",
        "start = \"1s..2s\"",
        "stop = \"9s..10s\"",
        "bytes = \"3pkt..9pkt\"",
        "present = \"1s..2s\"\nabsent = \"1ms..2s\"",
        "[[every]]\ngap = \"1ms..2s\"\ndelay = \"3ms..9ms\"",
        "route = [\"a\", \"b\"]",
        "on = \"1s..2s\"\noff = \"1s\"",
        "[[flow]]",
        "[[cross]]",
        "[return]",
        "name = \"\u{e9}\\n\"",
        "[sweep]\nkey = \"bottleneck.queue\"\nvalues = [\"1pkt\", \"2pkt\"]",
        "[sweep]\nkey = \"flow[0]\"\nvalues = [1]",
    ];
    let edits = prop::collection::vec(
        (any::<prop::sample::Index>(), prop::sample::select(LINES)),
        0..3,
    );
    (prop::sample::select(shipped()), edits).prop_map(|(name, edits)| {
        let all = Scenario::load_all(name).unwrap();
        let mut lines: Vec<&str> = all[0].text().lines().collect();
        for (index, line) in edits {
            let at = index.index(lines.len());
            lines[at] = line;
        }
        lines.join("\n")
    })
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in prop_oneof!["\\PC{0,60}", any::<String>(), nearly_right()], seed: u64) {
        match Scenario::parse_all(&text, "x.toml") {
            Ok(all) => for scenario in all {
                prop_assert_eq!(scenario.draw(seed), scenario.draw(seed));
            },
            Err(e) => prop_assert!(!e.to_string().contains(char::is_control), "{e}"),
        }
    }
}
