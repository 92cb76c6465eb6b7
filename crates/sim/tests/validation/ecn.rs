//! ECN from a queue's threshold to the sender's window.

use headway_net::queue::{Discipline, StepParams};
use headway_scenario::{Network, QueueSpec};

use crate::networks::{fixed, metrics, options, packets};

/// A link of 12 Mbit/s and 120 ms, with an unlimited queue that marks from `threshold_packets` on.
fn marking(threshold_packets: u64) -> Network {
    let mut network = fixed(12.0, 60, 1000, 1500);
    network.links[0].queue = QueueSpec {
        discipline: Discipline::Step(StepParams { threshold_packets }),
        ..packets(1000)
    };
    network
}

/// RFC 3168 §5: a sender answers a mark as a loss. A queue that marks above 60 packets gives
/// NewReno and Cubic the utilisation that dropping above 60 gives in the fluid model (algorithms.md
/// §14.4), and nothing is lost. RFC 8511: with a smaller reduction more of the link is used.
#[test]
fn marks_are_answered_like_losses_and_lose_nothing() {
    for (scheme, model) in [("newreno", 0.965), ("cubic", 1.0)] {
        let run = |spec: &str| {
            let seen = metrics(&marking(60), spec, options(400.0, 100.0));
            println!("{spec}, marked above 60 packets: {seen:?}");
            let missing = seen.sent_packets - seen.delivered_packets;
            (seen.utilisation.expect("a link"), missing)
        };
        // Packets missing at the end are under way: a window, which is two and a half BDP at most.
        let (used, missing) = run(&format!("{scheme}:ecn=on"));
        assert!((used - model).abs() <= 0.02, "{scheme}: {used}, {model}");
        assert!(missing <= 300, "{scheme}: {missing}");
        let (abe, missing) = run(&format!("{scheme}:ecn=abe"));
        assert!(abe >= used && missing <= 300, "{scheme}: {abe}, {used}");
        // Without ECN nothing is marked: the queue fills up to its thousand packets and drops.
        let (_, missing) = run(scheme);
        assert!(missing > 300, "{scheme}: {missing}");
    }
}
