//! DCTCP, LEDBAT and Compound: what their sources say of one link, and of two flows on it.

use headway_cc::Time;
use headway_net::queue::{Discipline, StepParams};
use headway_scenario::{Network, Transport};

use crate::check::{Check, Outside};
use crate::networks::{self, bulk, fixed, options};
use crate::sawtooth;

/// 12 Mbit/s, 120 ms, `buffer` packets, marking from `threshold_packets` on.
pub fn marking(threshold_packets: u64, buffer: u64) -> Network {
    let mut network = fixed(12.0, 60, buffer, 1500);
    network.links[0].queue.discipline = Discipline::Step(StepParams { threshold_packets });
    network
}

/// The queue's sawtooth by Alizadeh et al. 2010 §3.3, one flow: K + 1 at the top, and half of
/// sqrt(2 (C RTT + K)) deep. K above C RTT / 7, 17 packets, uses the link fully (§3.4).
#[test]
fn dctcp_keeps_the_queue_below_its_threshold() {
    for k in [17, 20, 40, 80] {
        let depth = (2.0 * (120.0 + k as f64)).sqrt() / 2.0;
        let ours = sawtooth::run(&marking(k, 1000), "dctcp", 100, 400);
        println!("dctcp, K = {k}: {ours:?}");
        assert_eq!(ours.loss, 0.0);
        Check {
            scheme: "dctcp",
            what: &format!("12 Mbit/s, 120 ms, marking above {k} packets: utilisation"),
            unit: "",
            source: "Alizadeh et al. 2010 §3.4",
            outside: Outside::Between(0.99, 1.0),
            ours: ours.utilisation,
        }
        .holds();
        Check {
            scheme: "dctcp",
            what: &format!("12 Mbit/s, 120 ms, marking above {k} packets: mean queue"),
            unit: "packets",
            source: "Alizadeh et al. 2010 §3.3",
            outside: Outside::Difference(k as f64 + 1.0 - depth / 2.0, 1.0),
            ours: ours.mean_queue_ms,
        }
        .holds();
    }
    // Too low a threshold costs utilisation.
    let low = sawtooth::run(&marking(2, 1000), "dctcp", 100, 400);
    assert!(low.utilisation < 0.99, "{low:?}");
}

/// With an acknowledgement every two packets the sawtooth is the same: none speaks for a marked
/// packet and one that is not (RFC 8257 §3.2).
#[test]
fn dctcp_counts_marks_with_delayed_acknowledgements() {
    let mut network = marking(20, 1000);
    let each = sawtooth::run(&network, "dctcp", 100, 400);
    network.transport = Transport::Linux;
    let every_two = sawtooth::run(&network, "dctcp", 100, 400);
    println!("dctcp, an ACK a packet: {each:?}; delayed ACKs: {every_two:?}");
    assert!((every_two.utilisation - each.utilisation).abs() < 0.005);
    assert!((every_two.mean_queue_ms - each.mean_queue_ms).abs() < 2.0);
}

/// RFC 6817 §2.2, algorithms.md §14.4: alone LEDBAT fills the link and keeps its target in the queue.
#[test]
fn ledbat_keeps_its_target_in_the_queue() {
    for (spec, target_ms) in [
        ("ledbat", 100.0),
        ("ledbat:slow_start=on", 100.0),
        ("ledbat:target=25ms", 25.0),
    ] {
        let ours = sawtooth::run(&fixed(12.0, 60, 240, 1500), spec, 150, 400);
        println!("{spec}: {ours:?}");
        assert_eq!(ours.loss, 0.0);
        Check {
            scheme: spec,
            what: "12 Mbit/s, 120 ms, 240 packets: mean queue",
            unit: "ms",
            source: "RFC 6817 §2.2",
            outside: Outside::Percent(target_ms, 5.0),
            ours: ours.mean_queue_ms,
        }
        .holds();
        Check {
            scheme: spec,
            what: "12 Mbit/s, 120 ms, 240 packets: utilisation",
            unit: "",
            source: "algorithms.md §14.4",
            outside: Outside::Between(0.99, 1.0),
            ours: ours.utilisation,
        }
        .holds();
    }
}

/// The share of the second flow, from second 100 to 200, which begins at `start`.
fn share_of_the_second(first: &str, second: &str, start: Time) -> f64 {
    let mut network = fixed(12.0, 20, 400, 1500);
    network.flows = vec![bulk(0, 1), bulk(0, 1)];
    network.flows[1].scheme = Some(second.to_owned());
    network.flows[1].start = start;
    let rows = networks::run(&network, first, options(200.0, 100.0)).rows;
    let mbps = |flow| {
        let row = rows.iter().find(|r| r.flow == flow).expect("a flow");
        row.metrics.throughput_mbps.expect("packets")
    };
    println!(
        "{first} and {second}: {:.2} and {:.2} Mbit/s",
        mbps(0),
        mbps(1)
    );
    mbps(1) / (mbps(0) + mbps(1))
}

/// RFC 6817 §2.2 and §4.2: it yields to TCP, and the latecomer takes the queue that it finds for
/// the path, so that the earlier flow yields to it.
#[test]
fn ledbat_yields_to_newreno_and_to_a_latecomer() {
    Check {
        scheme: "ledbat",
        what: "12 Mbit/s, 40 ms, 400 packets, beside newreno: share",
        unit: "",
        source: "RFC 6817 §2.2 (yields)",
        outside: Outside::Between(0.0, 0.1),
        ours: share_of_the_second("newreno", "ledbat", Time::ZERO),
    }
    .holds();
    Check {
        scheme: "ledbat",
        what: "12 Mbit/s, 40 ms, 400 packets, 60 s after another ledbat: share",
        unit: "",
        source: "RFC 6817 §4.4 (latecomer's advantage)",
        outside: Outside::Between(0.8, 1.0),
        ours: share_of_the_second("ledbat", "ledbat", Time::from_millis(60_000)),
    }
    .holds();
}
