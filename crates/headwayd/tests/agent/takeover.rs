//! Tests that a flow in fallback follows Cubic's law: its window is compared with the guard's own
//! Cubic in whole numbers at each acknowledgement.

use headway_fixed::{Cubic, Reason};
use headwayd::Controller;

use crate::host::{Case, Fault, World, at, ms};
use crate::models::{Folder, Layer};
use crate::seen::State;

/// The BDP is 167 packets, and the queue holds 500, so that slow start does not end at once.
const LINK: &str = "rate = \"20Mbps\", delay = \"50ms\", queue = \"500pkt\"";
/// The guard promises that a flow follows Cubic's law within this many round trips.
const ROUND_TRIPS: u64 = 2;

/// Compares the flow's window with a Cubic in whole numbers, from the trip to the first loss.
/// Returns the largest relative difference, and the number of acknowledgements.
fn off(states: &[State]) -> (f64, usize) {
    let ns = |time: headway_cc::Time| time.as_nanos();
    let whole = |packets: f64| {
        if packets.is_finite() {
            packets as u32
        } else {
            0
        }
    };
    let (first, rest) = states.split_first().expect("a trip");
    let mut cubic = Cubic::new(whole(first.cwnd), whole(first.ssthresh));
    let (mut worst, mut count, mut before) = (0.0_f64, 0, first);
    for state in rest.iter().take_while(|state| !state.is_repairing) {
        // The Cubic in whole numbers has no HyStart, so it is told when slow start ends.
        if state.ssthresh < before.ssthresh {
            cubic.leave_slow_start();
        }
        cubic.acked(state.acked as u32, ns(state.at), state.srtt.as_nanos());
        worst = worst.max((state.cwnd - cubic.cwnd()).abs() / cubic.cwnd());
        (count, before) = (count + 1, state);
    }
    (worst, count)
}

/// The flow follows Cubic's law from the trip on, for two round trips or longer.
fn follows_cubic(world: &World, reason: Reason, what: &str) {
    let seen = world.seen();
    let (trip, why) = seen.trip(0).unwrap_or_else(|| panic!("{what}: no trip"));
    assert_eq!(why, reason, "{what}");
    let states = seen.from(0, trip);
    let (worst, count) = off(states);
    let last = states[count].at.since(trip);
    println!("{what}: off by {worst:.4} at most, over {count} acknowledgements in {last:?}");
    assert!(
        last >= states[0].srtt * ROUND_TRIPS,
        "{what}: a loss after {last:?}"
    );
    assert!(worst < 0.02, "{what}: {worst:.3} off Cubic's window");
}

#[test]
fn a_flow_follows_cubic_after_a_stale_answer() {
    for (controller, policy) in [
        (Controller::Owl, "owl"),
        (Controller::Window, "owl"),
        (Controller::Rate, "aurora"),
        (Controller::Bbr, "bbr-tuner-ppo"),
    ] {
        for seed in [1, 2, 3] {
            let world = World::finished(&Case {
                controller: Some(controller),
                link: LINK,
                seconds: 12,
                seed,
                fault: Fault::Killed(at(6000) + ms(137 * seed)),
                ..Case::of(policy)
            });
            follows_cubic(
                &world,
                Reason::Stale,
                &format!("{controller:?}, seed {seed}"),
            );
        }
    }
}

/// The model is replaced by one that removes ten packets with each answer.
#[test]
fn a_flow_follows_cubic_after_too_small_a_window() {
    let less = Folder::of_model("owl-v1", Layer::Always(0), 100, 7);
    for controller in [Controller::Owl, Controller::Window] {
        for seed in [1, 2, 3] {
            let mut world = World::new(&Case {
                controller: Some(controller),
                link: LINK,
                seconds: 20,
                seed,
                ..Case::of("owl")
            });
            world.run_until(at(6000) + ms(137 * seed));
            world.reload(&less.policy());
            world.run_until(at(16_000));
            follows_cubic(
                &world,
                Reason::Poor,
                &format!("{controller:?}, seed {seed}"),
            );
        }
    }
}
