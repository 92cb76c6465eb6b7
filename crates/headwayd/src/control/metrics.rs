//! Prometheus' text format, over HTTP on loopback.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::AgentCommand;
use super::mailbox::Sender;
use super::patient::{Patient, accepted, answered_apart};

/// The time for a whole request, and then for a client to read the answer.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST_REQUEST: usize = 4096;

/// Answers clients, each in a thread of its own.
pub fn serve(listener: &TcpListener, agent: &Sender) {
    answered_apart(accepted(listener.incoming()), |client| {
        if let Err(error) = answer(&client, agent) {
            tracing::debug!(%error, "a client of the metrics left");
        }
    });
}

fn answer(client: &TcpStream, agent: &Sender) -> std::io::Result<()> {
    let path = path(&mut Patient::new(client, PATIENCE))?;
    let (status, body) = match path.as_deref() {
        Some("/metrics") => ("200 OK", page(&agent.ask(AgentCommand::Counters))),
        Some(_) => ("404 Not Found", "not found; try /metrics\n".to_owned()),
        None => (
            "400 Bad Request",
            "malformed request; try GET /metrics\n".to_owned(),
        ),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    Patient::new(client, PATIENCE).write_all(page.as_bytes())
}

/// The path that a request asks for; `None` if the request is malformed or too long.
fn path(client: &mut impl Read) -> std::io::Result<Option<String>> {
    let mut request = Vec::new();
    let mut part = [0; 512];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        let read = client.read(&mut part)?;
        if read == 0 || request.len() > LONGEST_REQUEST {
            return Ok(None);
        }
        request.extend_from_slice(&part[..read]);
    }
    let request = String::from_utf8_lossy(&request);
    let mut words = request.split_whitespace();
    Ok(match (words.next(), words.next()) {
        (Some("GET"), Some(path)) => Some(path.to_owned()),
        _ => None,
    })
}

/// Each metric: its name, its kind, its help, and its place in the status.
const METRICS: [(&str, &str, &str, &str); 21] = [
    (
        "headway_flows",
        "gauge",
        "Flows that the agent serves now.",
        "/counters/flows",
    ),
    (
        "headway_flows_opened_total",
        "counter",
        "Flows that were given a slot.",
        "/counters/flows_opened",
    ),
    (
        "headway_slots_full_total",
        "counter",
        "Times that a flow found no free slot. A flow looks for one once a second.",
        "/counters/slots_full",
    ),
    (
        "headway_user_full_total",
        "counter",
        "Times that a flow found no slot because its user had as many as --user-share allows.",
        "/counters/user_full",
    ),
    (
        "headway_reports_total",
        "counter",
        "Records received.",
        "/counters/reports",
    ),
    (
        "headway_delayed_total",
        "counter",
        "Times that a flow had to wait because its user's flows had used their share of the agent's time.",
        "/counters/delayed",
    ),
    (
        "headway_ring_dropped_total",
        "counter",
        "Messages that found no room in the ring buffer.",
        "/counters/ring_dropped",
    ),
    (
        "headway_held_back_total",
        "counter",
        "Records without a request that were held back, because less than half of the ring buffer was free.",
        "/counters/held_back",
    ),
    (
        "headway_log_lines_dropped_total",
        "counter",
        "Log lines that were dropped, because too many waited to be written.",
        "/counters/log_lines_dropped",
    ),
    (
        "headway_decisions_total",
        "counter",
        "Decisions of policies.",
        "/counters/actions",
    ),
    (
        "headway_decisions_outside_range_total",
        "counter",
        "Decisions that flows carried out while their paths were outside the training range of their model.",
        "/counters/decisions_outside_range",
    ),
    (
        "headway_decisions_at_bound_total",
        "counter",
        "Decisions that flows carried out and that changed the window or rate by the most that their model can.",
        "/counters/decisions_at_bound",
    ),
    (
        "headway_learners",
        "gauge",
        "Flows that learn now.",
        "/counters/learners",
    ),
    (
        "headway_learners_refused_total",
        "counter",
        "Flows that could not learn because as many learned as --learners or --user-share allows.",
        "/counters/learners_refused",
    ),
    (
        "headway_divergences_total",
        "counter",
        "Times that a flow's learner diverged, after which Cubic controlled the flow for a while.",
        "/counters/divergences",
    ),
    (
        "headway_shadow_dropped_total",
        "counter",
        "Decisions that are missing in the shadow file because the disk was too slow or full.",
        "/counters/shadow_dropped",
    ),
    (
        "headway_wakes_total",
        "counter",
        "Requests that arrived while the agent slept, and that woke it.",
        "/counters/wakes",
    ),
    (
        "headway_guard_returns_total",
        "counter",
        "Times that the guard gave a flow back to its policy.",
        "/counters/guard_returns",
    ),
    (
        "headway_malformed_messages_total",
        "counter",
        "Malformed messages from the kernel.",
        "/counters/malformed_messages",
    ),
    (
        "headway_unknown_reports_total",
        "counter",
        "Records of unknown flows.",
        "/counters/reports_of_unknown_flows",
    ),
    (
        "headway_uptime_seconds",
        "gauge",
        "Time since the agent started.",
        "/uptime_s",
    ),
];

fn page(status: &Value) -> String {
    let mut page = String::new();
    let mut say = |line: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = page.write_fmt(line);
    };
    for (name, kind, help, place) in METRICS {
        if let Some(value) = status.pointer(place).and_then(Value::as_f64) {
            say(format_args!(
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
            ));
        }
    }
    let name = "headway_guard_trips_total";
    say(format_args!(
        "# HELP {name} Times that the guard gave a flow to Cubic, by reason.\n# TYPE {name} counter\n"
    ));
    let reasons = status.pointer("/counters/guard_trips_by_reason");
    for (reason, count) in reasons.and_then(Value::as_object).into_iter().flatten() {
        say(format_args!("{name}{{reason=\"{reason}\"}} {count}\n"));
    }
    let name = "headway_decision_latency_seconds";
    say(format_args!(
        "# HELP {name} Time from a record, or from a clock's due time, to the answer. Excludes late timers.\n\
         # TYPE {name} histogram\n"
    ));
    let latency = &status["latency_us"];
    let seconds = |us: &Value| us.as_f64().unwrap_or_default() / 1e6;
    for bound in latency["at_most"].as_array().into_iter().flatten() {
        let (at_most, count) = (seconds(&bound[0]), &bound[1]);
        say(format_args!("{name}_bucket{{le=\"{at_most}\"}} {count}\n"));
    }
    let count = latency["count"].as_u64().unwrap_or_default();
    let sum = seconds(&latency["sum"]);
    say(format_args!(
        "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n"
    ));
    let name = "headway_controller_info";
    say(format_args!(
        "# HELP {name} The controller with its policy, its model, and the build of its program.\n# TYPE {name} gauge\n"
    ));
    for one in status["controllers"].as_array().into_iter().flatten() {
        let word = |key: &str| {
            one[key]
                .as_str()
                .unwrap_or_default()
                .replace(['"', '\\', '\n'], "_")
        };
        say(format_args!(
            "{name}{{name=\"{}\",policy=\"{}\",model=\"{}\",program=\"{}\"}} 1\n",
            word("name"),
            word("policy"),
            word("model"),
            word("program")
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Each byte comes in time, and the request never ends.
    #[test]
    fn the_time_limit_holds_for_the_whole_request() {
        let patience = Duration::from_millis(100);
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("it has one");
        let slow = thread::spawn(move || {
            let mut agent = TcpStream::connect(address).expect("it listens");
            while agent.write_all(b"G").is_ok() {
                thread::sleep(patience / 20);
            }
        });
        let (client, _) = listener.accept().expect("a client");
        // Without a time limit the request would be too long after 20 s, which is no error.
        assert!(path(&mut Patient::new(&client, patience)).is_err());
        drop(client);
        slow.join().expect("it ends");
    }
}
