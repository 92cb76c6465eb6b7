//! DCTCP, LEDBAT and Compound: what their sources say of one link, and of two flows on it.

use headway_net::queue::{Discipline, StepParams};
use headway_scenario::{Network, Transport};

use crate::check::{Check, Outside};
use crate::networks::fixed;
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
