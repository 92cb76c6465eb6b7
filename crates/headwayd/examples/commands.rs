//! Times what commands make the answering thread do between answers: it gives eight flows another
//! policy (`headwayd reload`), or describes 64 flows (`headwayd status`). Prints the median and the
//! longest part in microseconds as JSON, for several policies and 4,096 flows.
//!
//! `cargo run --release -p headwayd --example commands`
#![cfg(target_os = "linux")]

use std::time::Instant;

use headway_cc::Time;
use headway_kernel::FakeKernel;
use headway_kernel::abi::{Header, OPEN, Open, REPORT, Report};
use headway_policy::Record;
use headwayd::agent::{Agent, AgentOptions, Policies, SavedStates, Store};
use zerocopy::IntoBytes;

#[path = "../tests/agent/program.rs"]
mod program;

use program::Program;

const FLOWS: u16 = 4096;
/// All flows may learn.
const LEARNERS: usize = FLOWS as usize;
const ROUNDS: usize = 5;

type Failure = Box<dyn std::error::Error>;

fn policies(spec: &str) -> Result<Policies, Failure> {
    Ok(Policies::read([spec])?)
}

/// An agent whose flows all have this policy.
fn agent(spec: &str) -> Result<Agent<Program>, Failure> {
    let policies = policies(spec)?;
    let learns = policies.of([0, 0, 0, 0].into()).is_learning();
    let program = Program {
        controller: policies.controller(),
        kernel: FakeKernel::with_slots(1 << 20, FLOWS),
    };
    let (store, options) = (Store::default(), AgentOptions::default());
    let mut agent = Agent::new(
        program,
        Some(policies),
        None,
        store,
        options,
        LEARNERS,
        Time::ZERO,
    );
    for slot in 0..FLOWS {
        let open = Open {
            header: Header::of::<Open>(OPEN, u32::from(slot) + 1, slot),
            mss: 1500,
            initial_cwnd: 10,
            ..Open::default()
        };
        agent.on_message(open.as_bytes());
        // The flow gets its policy with its first record.
        let record = Record {
            now_ns: 1_000_000_000,
            mss: 1500,
            cwnd: 10,
            srtt_us: 20_000,
            min_rtt_us: 20_000,
            acks: 1,
            ..Record::default()
        };
        let header = Header::of::<Report>(REPORT, u32::from(slot) + 1, slot);
        agent.on_message(Report { header, record }.as_bytes());
    }
    let counters = &agent.counters(Time::ZERO)["counters"];
    assert_eq!(counters["flows"], FLOWS);
    let learners = if learns { FLOWS } else { 0 };
    assert_eq!(counters["learners"], learners);
    Ok(agent)
}

/// The durations of all parts of a command.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn parts_us(mut part: impl FnMut(u16) -> Option<u16>) -> Vec<f64> {
    let (mut parts, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next {
        let start = Instant::now();
        next = part(from);
        parts.push(start.elapsed().as_secs_f64() * 1e6);
    }
    parts
}

fn say(part: &str, from: &str, to: &str, mut parts: Vec<f64>) {
    parts.sort_by(f64::total_cmp);
    let (median, longest) = (parts[parts.len() / 2], parts[parts.len() - 1]);
    let said = serde_json::json!({
        "part": part, "from": from, "to": to, "parts": parts.len(),
        "median_us": median, "longest_us": longest,
    });
    println!("{said}");
}

fn main() -> Result<(), Failure> {
    for (from, to) in [
        ("owl", "owl:online=true"),
        ("owl:online=true", "owl"),
        ("rax-pretrained", "rax"),
        ("rax", "rax-pretrained"),
    ] {
        let (mut renewed, mut described) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut agent = agent(from)?;
            described.extend(parts_us(|slot| agent.page(slot, Time::ZERO).1));
            agent.take_policies(Some(policies(to)?), SavedStates::default())?;
            renewed.extend(parts_us(|slot| agent.renew(slot)));
        }
        say("describe 64 flows", from, from, described);
        say("give 8 flows a policy", from, to, renewed);
    }
    Ok(())
}
