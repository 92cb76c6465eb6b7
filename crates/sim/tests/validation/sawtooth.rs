//! The steady state of one flow through one queue, computed from its packets.

use headway_scenario::{Network, RateSpec};

use crate::watch::{self, Delivery};

/// A single flow's steady state at a bottleneck of a fixed rate.
#[derive(Clone, Copy, Debug)]
pub struct Sawtooth {
    /// Departures divided by capacity.
    pub utilisation: f64,
    /// Drops divided by arrivals.
    pub loss: f64,
    /// The time-weighted mean of the waiting packets (without the one in transmission), in the time
    /// that it takes to send them.
    pub mean_queue_ms: f64,
    /// The 95th percentile of the same, over time.
    pub p95_queue_ms: f64,
    /// The mean time between the beginnings of loss events; NaN with fewer than two.
    pub period_s: f64,
}

/// Runs `scheme` on `network`, and measures the seconds `from_s` to `to_s`. No packet overtakes
/// another there, so a gap in the numbers that arrive is a drop.
pub fn run(network: &Network, scheme: &str, from_s: u64, to_s: u64) -> Sawtooth {
    run_of_seed(network, scheme, from_s, to_s, 1)
}

/// Same as `run` with another seed, for queues that draw random numbers.
pub fn run_of_seed(network: &Network, scheme: &str, from_s: u64, to_s: u64, seed: u64) -> Sawtooth {
    let RateSpec::Fixed(rate) = network.links[0].rate else {
        panic!("a fixed rate");
    };
    let packet_ns = rate.time_to_send(network.packet_size).as_nanos();
    let delay_ns = network.links[0].delay.as_nanos();
    let left = |d: &Delivery| d.received.as_nanos() - delay_ns;
    let (from, to) = (from_s * 1_000_000_000, to_s * 1_000_000_000);
    let mut seen = watch::deliveries_of_seed(network, scheme, to_s as f64 + 1.0, seed);
    seen.retain(|d| (from..to).contains(&left(d)));

    let to_send_ns = |d: &Delivery| rate.time_to_send(d.size).as_nanos();
    let departures = seen.len() as u64;
    let arrivals = 1 + seen[seen.len() - 1].number - seen[0].number;
    let mut changes: Vec<(u64, i64)> = seen
        .iter()
        .flat_map(|d| [(d.sent.as_nanos(), 1), (left(d) - to_send_ns(d), -1)])
        .collect();
    // A packet that finds an empty link arrives and leaves at one time, in this order.
    changes.sort_unstable_by_key(|&(at, step)| (at, -step));
    let (mut time_with, mut waiting) = (vec![0; 1000], 0i64);
    for pair in changes.windows(2) {
        waiting += pair[0].1;
        time_with[waiting as usize] += pair[1].0 - pair[0].0;
    }
    let total: u64 = time_with.iter().sum();
    let weighted: u64 = time_with.iter().zip(0..).map(|(t, n)| n * t).sum();
    let mut below = 0;
    let p95 = time_with.iter().take_while(|&t| {
        below += t;
        below * 100 < total * 95
    });

    let packet_ms = packet_ns as f64 / 1e6;
    Sawtooth {
        utilisation: seen.iter().map(to_send_ns).sum::<u64>() as f64 / (to - from) as f64,
        loss: (arrivals - departures) as f64 / arrivals as f64,
        mean_queue_ms: weighted as f64 / total as f64 * packet_ms,
        p95_queue_ms: p95.count() as f64 * packet_ms,
        period_s: period_s(&seen, left),
    }
}

/// The mean period. Losses less than a second apart belong to one event, because a window is
/// answered once.
fn period_s(seen: &[Delivery], left: impl Fn(&Delivery) -> u64) -> f64 {
    let mut events: Vec<(u64, u64)> = Vec::new();
    for pair in seen.windows(2) {
        if pair[1].number > pair[0].number + 1 {
            let at = left(&pair[1]);
            match events.last_mut() {
                Some((_, latest)) if at < *latest + 1_000_000_000 => *latest = at,
                _ => events.push((at, at)),
            }
        }
    }
    match events[..] {
        [(first, _), .., (last, _)] => (last - first) as f64 / 1e9 / (events.len() - 1) as f64,
        _ => f64::NAN,
    }
}
