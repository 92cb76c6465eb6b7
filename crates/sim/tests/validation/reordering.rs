//! Packets that are only late: how each scheme reacts when the transport first takes them for lost
//! and then reports that they were not.

use headway_cc::{Duration, Registry, schemes};
use headway_net::Reorder;

use crate::check::{Check, Outside};
use crate::networks::{fixed, metrics, options};

/// These have no other test of this. The first two are never reduced; the PCC family has a test of
/// its own.
const OTHERS: [&str; 7] = [
    "fixed-rate",
    "fixed-window",
    "pcc-allegro",
    "vivace",
    "vivace-loss",
    "proteus-p",
    "proteus-s",
];

/// 12 Mbit/s, 20 ms each way, 100 packets; one packet in twenty comes 10 ms late, ten packets
/// behind. A sender that notices has to continue as if nothing had happened (RFC 3522, RFC 4015):
/// the test requires at least nine tenths of the utilisation without reordering.
#[test]
fn late_packets_cost_little() {
    let utilisation = |scheme: &str, is_reordered: bool| {
        let mut network = fixed(12.0, 20, 100, 1500);
        if is_reordered {
            network.links[0].reorder = Some(Reorder {
                probability: 0.05,
                delay: Duration::from_millis(10),
            });
        }
        metrics(&network, scheme, options(40.0, 10.0))
            .utilisation
            .expect("a rate")
    };
    let registry = Registry::new(schemes::SCHEMES);
    for scheme in registry.iter().map(|s| s.name) {
        if OTHERS.contains(&scheme) {
            continue;
        }
        let (with, without) = (utilisation(scheme, true), utilisation(scheme, false));
        Check {
            scheme,
            what: "12 Mbit/s, 40 ms, 5% of the packets 10 ms late: share of the utilisation without",
            unit: "",
            source: "RFC 3522 and 4015: what was reduced for late packets is restored",
            outside: Outside::Between(0.9, f64::INFINITY),
            ours: with / without,
        }
        .holds();
    }
}
