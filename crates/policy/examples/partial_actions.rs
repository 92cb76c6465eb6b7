//! Times a step of Rax's learner on one core: acting alone (no feedback comes, so nothing is
//! learned), and acting while every action is learned from. Prints microseconds a step as JSON, of
//! the fastest of many rounds. It also prints the median over rounds of the longest step in a round
//! of 10,000, which includes interruptions by other programs, for a round of 100 packets and for
//! the longest segment.
//!
//! A flow over a kernel learns from records, and a record may report many packets at once. So it
//! prints the median over rounds of the longest record too, for 4,096 packets a record: all of them
//! acknowledged, and all of them lost.
//!
//! `cargo run --release -p headway-policy --example partial_actions`

use std::time::Instant;

use headway_cc::{Bytes, Setup, Stream};
use headway_policy::Record;
use headway_policy::pal::{Agent, PalSpec, Task, Weights};
use headway_policy::schemes::{RaxOverRecords, RaxSpec};
use serde_json::json;

const FEATURES: usize = 8;
/// The packets in a round, as on Rax's link.
const WINDOW: f32 = 100.0;
/// A round of more packets than the longest segment has actions (`PalSpec::longest`).
const LARGE_WINDOW: f32 = 4000.0;
/// The most packets that a flow learns from with one record.
const RECORD_PACKETS: u32 = 4096;

/// Rax's rewards.
#[derive(Clone, Copy, Debug)]
struct Throughput;

impl Task<3> for Throughput {
    fn utility(&self, [received, sent, duration]: &[f32; 3]) -> f32 {
        (received - 4.0 * (sent - received)) / duration.max(1e-6)
    }

    fn gamma(&self, window: f32, [_, sent, _]: &[f32; 3]) -> f32 {
        2.0 / (1.0 + (window / sent).max(10.0))
    }
}

/// Microseconds a step, and of each round's longest step.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn step_us(is_learning: bool, window: f32) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let mut random = Stream::new(1, "benchmark");
    let mut weights = Weights::random(PalSpec::default(), FEATURES, &[2, 1], &mut random)?;
    let mut agent = Agent::new(Throughput, &weights, Stream::new(2, "benchmark"));
    let mut observation = || [(); FEATURES].map(|()| random.uniform() as f32);
    let observations: Vec<[f32; FEATURES]> = (0..64).map(|_| observation()).collect();
    let (mut best, mut longest) = (f64::INFINITY, Vec::new());
    for _ in 0..50 {
        let start = Instant::now();
        let mut most = 0.0_f64;
        let mut last = start;
        for n in 0..10_000 {
            agent.act(
                &mut weights,
                &observations[n % 64],
                window,
                f32::INFINITY,
                [1.0, 1.0, 0.5],
            )?;
            let number = agent.partial_action(1.0);
            if is_learning {
                agent.feedback(number, &[1.0, 1.0, 0.5]);
            }
            let now = Instant::now();
            most = most.max((now - last).as_secs_f64());
            last = now;
        }
        best = best.min(start.elapsed().as_secs_f64() / 10_000.0);
        longest.push(most);
    }
    longest.sort_by(f64::total_cmp);
    Ok((best * 1e6, longest[longest.len() / 2] * 1e6))
}

/// Microseconds of the longest record of a flow that sends 4,096 packets in a round trip. A record
/// then reports that all were acknowledged, or all lost.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn record_us(are_lost: bool) -> Result<f64, Box<dyn std::error::Error>> {
    let setup = Setup::new(Bytes::new(1250), 1);
    let mut rax = RaxOverRecords::new(&setup, &RaxSpec::default(), None)?;
    let mut record = Record {
        cwnd: RECORD_PACKETS,
        rtt_us: 50_000,
        srtt_us: 50_000,
        min_rtt_us: 50_000,
        mss: 1250,
        acks: 1,
        ..Record::default()
    };
    let mut longest = Vec::new();
    for _ in 0..50 {
        let mut most = 0.0_f64;
        for _ in 0..100 {
            for part in 1..=RECORD_PACKETS / 64 {
                record.now_ns += 50_000_000 * 64 / u64::from(RECORD_PACKETS);
                record.sent += 64;
                record.in_flight = 64 * part;
                rax.on_record(&record);
            }
            match are_lost {
                true => record.lost += RECORD_PACKETS,
                false => record.delivered += RECORD_PACKETS,
            }
            record.now_ns += 50_000_000;
            record.in_flight = 0;
            let start = Instant::now();
            rax.on_record(&record);
            most = most.max(start.elapsed().as_secs_f64());
        }
        longest.push(most);
    }
    longest.sort_by(f64::total_cmp);
    Ok(longest[longest.len() / 2] * 1e6)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (acting, learning) = (step_us(false, WINDOW)?, step_us(true, WINDOW)?);
    let large = step_us(true, LARGE_WINDOW)?;
    println!(
        "{}",
        json!({
            "acting": acting.0, "learning": learning.0, "longest": learning.1,
            "longest_of_all": large.1, "record_acknowledged": record_us(false)?,
            "record_lost": record_us(true)?,
        })
    );
    Ok(())
}
