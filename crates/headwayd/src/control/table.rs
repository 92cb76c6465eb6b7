//! `headwayd status` for people.

use std::fmt::Write;

use serde_json::Value;

/// Columns of the table of flows: heading, where the status has it, decimals.
const COLUMNS: [(&str, &str, usize); 10] = [
    ("flow", "flow", 0),
    ("to", "remote", 0),
    ("policy", "policy", 0),
    ("age s", "age_s", 1),
    ("cwnd", "cwnd_packets", 0),
    ("srtt ms", "srtt_ms", 2),
    ("Mbit/s", "delivery_rate_mbps", 2),
    ("lost", "lost_packets", 0),
    ("guard", "guard", 0),
    ("trips", "guard_trips", 0),
];

/// Its lines.
pub fn text(status: &Value) -> String {
    let mut text = String::new();
    for one in status["controllers"].as_array().into_iter().flatten() {
        let word = |key: &str| one[key].as_str().unwrap_or_default();
        let _ = writeln!(
            text,
            "{}: {} ({})",
            word("name"),
            word("policy"),
            word("model")
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
        count("slots_full"),
    );
    let us = |p: &str| status["latency_us"][p].as_f64();
    if let (Some(p50), Some(p99)) = (us("p50"), us("p99")) {
        let _ = writeln!(
            text,
            "from a record to its answer: {p50:.1} us median, {p99:.1} us 99th percentile"
        );
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
