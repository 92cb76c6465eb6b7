//! How a flow that the guard takes follows Cubic's law: at each acknowledgement, beside the guard's
//! own Cubic in whole numbers.

use headway_fixed::{Cubic, Reason};
use headwayd::Controller;

use crate::host::{Case, Fault, World, at, ms};
use crate::models::{Folder, Layer};
use crate::seen::State;

/// The BDP is 167 packets, and the queue holds 500: slow start does not end at once.
const LINK: &str = "rate = \"20Mbps\", delay = \"50ms\", queue = \"500pkt\"";
/// The guard promises that a flow follows Cubic's law within this many round trips.
const ROUND_TRIPS: u64 = 2;

/// Runs a Cubic in whole numbers beside the flow's window, from the trip to the first loss. Returns
/// by which share they differ at most, and over how many acknowledgements.
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
        // HyStart ends slow start, which the other does not have: it is told.
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
fn from_a_stale_answer_on_it_is_cubics() {
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

/// The model is replaced by one that wants ten packets less with each answer.
#[test]
fn from_a_window_that_is_too_small_on_it_is_cubics() {
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
