//! The text that `headwayd status` prints.

use std::fmt::Write;

use serde_json::Value;

use crate::programs::listeners::warning;

/// Columns of the table of flows: the heading, the key in the status, the number of decimals.
const COLUMNS: [(&str, &str, usize); 13] = [
    ("flow", "flow", 0),
    ("to", "remote", 0),
    ("policy", "policy", 0),
    ("model", "model", 0),
    ("age s", "age_s", 1),
    ("cwnd", "cwnd_packets", 0),
    ("srtt ms", "srtt_ms", 2),
    ("Mbit/s", "delivery_rate_mbps", 2),
    ("lost", "lost_packets", 0),
    ("guard", "guard", 0),
    ("trips", "guard_trips", 0),
    ("outside", "outside_range", 0),
    ("program", "program", 0),
];

/// The status as text.
pub fn text(status: &Value) -> String {
    let mut text = String::new();
    for one in status["controllers"].as_array().into_iter().flatten() {
        let word = |key: &str| one[key].as_str().unwrap_or_default();
        let _ = writeln!(
            text,
            "{}: {} ({}); program {}",
            word("name"),
            word("policy"),
            word("model"),
            word("program")
        );
        for prefix in one["prefixes"].as_array().into_iter().flatten() {
            let word = |key: &str| prefix[key].as_str().unwrap_or_default();
            let _ = writeln!(
                text,
                "  to {}: {} ({})",
                word("to"),
                word("policy"),
                word("model")
            );
        }
    }
    let count = |key: &str| status["counters"][key].as_u64().unwrap_or_default();
    let _ = writeln!(
        text,
        "{} flows now, {} so far; {} decisions; guard: {} trips, {} returns; dropped {}, slots missed {}",
        count("flows"),
        count("flows_opened"),
        count("actions"),
        count("guard_trips"),
        count("guard_returns"),
        count("ring_dropped"),
        count("slots_full") + count("user_full"),
    );
    let us = |p: &str| status["latency_us"][p].as_f64();
    if let (Some(p50), Some(p99)) = (us("p50"), us("p99")) {
        let _ = writeln!(
            text,
            "from a record to its answer: {p50:.1} us median, {p99:.1} us 99th percentile"
        );
    }
    let network = &status["network"];
    if !network.is_null() {
        let age = match network["age_s"].as_f64() {
            Some(age) => format!("the newest report came {age:.1} s ago"),
            None => "no report so far".to_owned(),
        };
        let silent = network["silent_because"].as_str();
        let _ = writeln!(
            text,
            "netwatch: paths: {}; {age}{}",
            cell(&network["paths"], 0),
            silent.map_or_else(String::new, |why| format!("; silent: {why}"))
        );
    }
    let listeners = status["listeners_of_ended_agents"].as_array();
    for one in listeners.into_iter().flatten() {
        let word = |key: &str| one[key].as_str().unwrap_or_default();
        let _ = writeln!(text, "{}", warning(word("address"), word("name")));
    }
    let flows: Vec<Vec<String>> = (status["flows"].as_array().into_iter().flatten())
        .map(|flow| {
            COLUMNS
                .iter()
                .map(|(_, key, decimals)| cell(&flow[*key], *decimals))
                .collect()
        })
        .collect();
    if flows.is_empty() {
        return text;
    }
    let widths: Vec<usize> = (COLUMNS.iter().enumerate())
        .map(|(i, (heading, ..))| {
            flows
                .iter()
                .map(|row| row[i].len())
                .fold(heading.len(), usize::max)
        })
        .collect();
    text.push('\n');
    let mut line = |cells: Vec<&str>| {
        let padded: Vec<String> = (cells.iter().zip(&widths))
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        let _ = writeln!(text, "{}", padded.join("  "));
    };
    line(COLUMNS.iter().map(|(heading, ..)| *heading).collect());
    for row in &flows {
        line(row.iter().map(String::as_str).collect());
    }
    text
}

fn cell(value: &Value, decimals: usize) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => format!("{:.decimals$}", number.as_f64().unwrap_or_default()),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_the_networks_report_is_shown() {
        let said = |network: Value| text(&serde_json::json!({ "network": network }));
        let status = serde_json::json!({ "paths": 2, "age_s": 3.21, "silent_because": "connection refused" });
        let line =
            "netwatch: paths: 2; the newest report came 3.2 s ago; silent: connection refused\n";
        assert!(said(status).ends_with(line));
        let status = serde_json::json!({ "paths": 0, "age_s": null, "silent_because": null });
        assert!(said(status).ends_with("netwatch: paths: 0; no report so far\n"));
        assert!(!said(Value::Null).contains("netwatch"));
    }

    #[test]
    fn sockets_that_keep_an_ended_agents_controller_are_named() {
        let listener = serde_json::json!({ "address": "[::]:443", "name": "headway_owl" });
        let status = serde_json::json!({ "listeners_of_ended_agents": [listener] });
        let said = "the socket that listens at [::]:443 keeps headway_owl of an agent that has ended, so connections \
                    that it accepts are not served; restart its program, or let it choose headway_owl again\n";
        assert!(text(&status).ends_with(said), "{}", text(&status));
        // An older agent does not report them, or this one cannot find them.
        for status in [
            serde_json::json!({}),
            serde_json::json!({ "listeners_of_ended_agents": null }),
        ] {
            assert!(!text(&status).contains("listens"));
        }
    }
}
