//! Fuzzes traces: mahimahi's format, series of rates, rates with durations, scaling, cutting, and
//! the recognition of files that are not traces.

use headway_cc::{Duration, Rate};
use headway_net::trace::{Trace, looks_like};

use super::{Bytes, one_line};

/// The limit of opportunities here. A trace may have a hundred million, but many such traces would
/// only be slow.
const MOST: f64 = 1e6;
/// The limit of a trace made from steps, so that thousands are made in a second.
const MOST_OF_STEPS: f64 = 1e4;

/// Whether this time at this rate (Mbit/s) makes more opportunities than the limit.
fn is_slow(mbps: f64, time: Duration) -> bool {
    mbps * 1e6 * time.as_secs_f64() / 12_000.0 > MOST
}

/// The first sixteen bytes choose the operations on the trace in the rest. If the rest is not a
/// trace, it is read as a series of rates.
pub fn trace(input: &[u8]) {
    let (head, body) = input.split_at(input.len().min(16));
    let mut head = Bytes(head);
    let (mean, interval) = (
        f32::from_le_bytes(head.array()),
        u32::from_le_bytes(head.array()),
    );
    let interval = Duration::from_nanos(u64::from(interval));
    let from = Duration::from_millis(u64::from(u16::from_le_bytes(head.array())));
    let length = Duration::from_millis(u64::from(u16::from_le_bytes(head.array())));
    if let Some(what) = looks_like(body) {
        one_line(&what);
        assert!(Trace::parse(body).is_err());
    }
    let trace = Trace::parse(body).or_else(|error| {
        one_line(&error);
        let rates: Vec<f64> = body
            .chunks_exact(4)
            .map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]])))
            .collect();
        let positive = rates.iter().filter(|r| **r > 0.0).sum();
        match is_slow(positive, interval) {
            true => Err(error),
            false => Trace::from_rates(&rates, interval),
        }
    });
    let trace = match trace {
        Ok(trace) => trace,
        Err(error) => return one_line(&error),
    };
    check(&trace);
    // A bin for each microsecond of a month would be a correct answer of many gigabytes.
    if trace.period().as_secs_f64() <= MOST * interval.as_secs_f64() {
        let rates = trace.rates_mbps(interval);
        assert!(rates.iter().all(|r| r.is_finite() && *r >= 0.0));
    }
    let mean = f64::from(mean);
    if is_slow(mean, trace.period()) {
        return;
    }
    match trace.scaled_to_mean(Rate::from_mbps(mean)) {
        Ok(scaled) => {
            check(&scaled);
            assert_eq!(scaled.period(), trace.period());
        }
        Err(error) => one_line(&error),
    }
    match trace.cut(&[from..from + length]) {
        Ok(part) => {
            check(&part);
            assert_eq!(part.period(), length);
            assert!(part.count() <= trace.count());
        }
        Err(error) => one_line(&error),
    }
}

/// Checks the trace of a table with two columns. Seven bytes are the nanoseconds for which a rate
/// holds, and the rate. The trace is as long as the rates hold, and carries as much, to a packet.
pub fn steps(input: &[u8]) {
    let steps: Vec<_> = (input.chunks_exact(7))
        .map(|chunk| {
            let mut bytes = Bytes(chunk);
            let length = u64::from(u32::from_le_bytes(bytes.array())) << (bytes.byte() % 16);
            let mbps = f64::from(u16::from_le_bytes(bytes.array())) / 1000.0;
            (Duration::from_nanos(length), mbps)
        })
        .collect();
    let packets: f64 = (steps.iter())
        .map(|(length, mbps)| mbps * 1e6 * length.as_secs_f64() / 12_000.0)
        .sum();
    if packets > MOST_OF_STEPS {
        return;
    }
    match Trace::from_steps(&steps) {
        Ok(trace) => {
            check(&trace);
            let nanos: u64 = steps.iter().map(|(length, _)| length.as_nanos()).sum();
            assert_eq!(
                trace.period(),
                Duration::from_millis(nanos.div_ceil(1_000_000))
            );
            assert!((trace.count() as f64 - packets).abs() <= 1.0 + 1e-9 * packets);
            let half = trace.count() / 2;
            assert_eq!(
                trace.lines(0, half) + &trace.lines(half, trace.count()),
                trace.to_mahimahi()
            );
        }
        Err(error) => one_line(&error),
    }
}

/// Checks the promises of every trace: its opportunities are in order, it has a length, and it is
/// read back as it was written.
fn check(trace: &Trace) {
    let at = trace.opportunities();
    assert_eq!(at.len(), trace.count());
    assert!(at.is_sorted());
    let last = Duration::from_millis(u64::from(*at.last().expect("an opportunity")));
    assert_eq!(trace.period(), last);
    assert!(trace.mean_mbps().is_finite() && trace.mean_mbps() > 0.0);
    let read = Trace::parse(trace.to_mahimahi()).expect("what was written is read");
    assert_eq!(read.opportunities(), at);
}
