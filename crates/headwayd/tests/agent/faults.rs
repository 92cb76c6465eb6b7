//! Faults of an agent, with flows of each controller. No flow stalls, and each does as well as
//! Cubic does on the same link. The guard returns the flow once the agent is well.

use headway_cc::{Duration, Time};
use headway_fixed::Reason;
use headwayd::Controller;

use crate::host::{CUBIC, Case, Fault, HOLDS, LINK, World, at, ms, plain};
use crate::models::{Folder, Layer};
use crate::seen::Seen;

/// Each controller with a policy, that policy's model, and the numbers of its inputs and outputs.
const SERVED: [(Controller, &str, &str, [usize; 2]); 4] = [
    (Controller::Owl, "owl", "owl-v1", [100, 7]),
    (Controller::Window, "owl", "owl-v1", [100, 7]),
    (Controller::Rate, "aurora", "aurora-v2", [50, 1]),
    (
        Controller::Bbr,
        "bbr-tuner-ppo",
        "bbr-tuner-ppo-v1",
        [60, 15],
    ),
];
/// These controllers and policies, and Rax, which learns in use and sends a request with each
/// acknowledgement.
fn served() -> impl Iterator<Item = (Controller, &'static str)> {
    let shipped = SERVED.map(|(controller, policy, ..)| (controller, policy));
    let learner = (Controller::Window, "rax-pretrained");
    shipped.into_iter().chain([learner])
}

const SEEDS: [u64; 3] = [1, 2, 3];
/// Flows are judged over this time.
const AFTER: Duration = Duration::from_secs(5);
/// The longest time without an arrival from a flow. One timeout, of 0.2 s and a round trip, is
/// permitted. Two in a row are a stall.
const LONGEST_GAP: Duration = Duration::from_millis(600);
/// A flow needs this share of plain Cubic's throughput.
const LEAST: f64 = 0.9;
/// A flow needs this share of it from a bad policy's begin to 5 s after the trip.
const LEAST_UNSEEN: f64 = 0.5;
/// A flow needs this share of it if the guard does not trip. If a policy never filled the path, the
/// guard does not know what the path carries, and its margin of utility is two powers of two.
const LEAST_UNKNOWN: f64 = 0.25;
/// Each of several flows needs this part of an equal share. Over seconds they share unevenly.
const LEAST_SHARE: f64 = 0.1;
/// The guard's first probation.
const PROBATION: Duration = Duration::from_secs(10);
/// The guard may take this long to see that a policy is bad.
const PATIENCE: Duration = Duration::from_secs(12);

/// When the fault begins: the time differs with the seed.
fn begins(seed: u64) -> Time {
    at(4000 + 137 * seed)
}

fn case(controller: Controller, policy: &str, seed: u64) -> Case {
    Case {
        controller: Some(controller),
        seed,
        seconds: 30,
        ..Case::of(policy)
    }
}

fn no_flow_stalls(seen: &Seen, since: Time, what: &str) {
    let until = since + AFTER;
    let total = seen.mbps(since, until);
    for flow in 0..seen.flows() {
        let gap = seen.longest_gap(flow, since, until);
        assert!(
            gap <= LONGEST_GAP,
            "{what}: nothing arrives from flow {flow} for {gap:?}"
        );
        let least = LEAST_SHARE * total / seen.flows() as f64;
        let mbps = seen.mbps_of(flow, since, until);
        assert!(mbps >= least, "{what}: {mbps:.2} Mbit/s of flow {flow}");
    }
}

fn does_as_well(seen: &Seen, cubic: &Seen, (since, until): (Time, Time), least: f64, what: &str) {
    let share = seen.mbps(since, until) / cubic.mbps(since, until);
    println!("{what}: {share:.3} of Cubic's in {:?}", until.since(since));
    assert!(share >= least, "{what}: {share:.3} of Cubic's");
}

/// Windows grow until the path holds no more, and fall to 0.7 (RFC 9438, 4.6).
fn fills_as_cubic(seen: &Seen, since: Time, what: &str) {
    let states = seen.from(0, since);
    let until = states.partition_point(|state| state.at < since + AFTER);
    let cwnds: Vec<f64> = states[..until].iter().map(|state| state.cwnd).collect();
    let top = (0..cwnds.len())
        .max_by(|a, b| cwnds[*a].total_cmp(&cwnds[*b]))
        .expect("some");
    let least = cwnds[top..].iter().copied().fold(f64::INFINITY, f64::min);
    assert!(
        cwnds[top] >= 0.9 * HOLDS,
        "{what}: {} packets at most",
        cwnds[top]
    );
    assert!(
        least <= 0.75 * cwnds[top],
        "{what}: from {} to {least}",
        cwnds[top]
    );
}

/// The guard trips once, for stale answers. That takes 100 ms, or two round trips, from the first
/// request without an answer, which comes within `clock`.
fn trips_once_as_stale(world: &World, since: Time, clock: Duration, what: &str) -> Time {
    let seen = world.seen();
    let (trip, reason) = seen.trip(0).unwrap_or_else(|| panic!("{what}: no trip"));
    assert_eq!(reason, Reason::Stale, "{what}");
    assert!(
        trip > since + ms(90),
        "{what}: after {:?}",
        trip.since(since)
    );
    assert!(
        trip < since + clock + ms(250),
        "{what}: after {:?}",
        trip.since(since)
    );
    let last = seen.states[0].last().expect("some");
    assert_eq!(last.trips, 1, "{what}");
    trip
}

/// How long the policy waits between two decisions.
fn clock_of(controller: Controller) -> Duration {
    match controller {
        Controller::Bbr => Duration::from_secs(1),
        _ => ms(60),
    }
}

#[test]
fn flows_of_a_killed_agent_are_in_fallback() {
    for seed in SEEDS {
        let (since, cubic) = (begins(seed), plain(CUBIC, LINK, 30, seed));
        for (controller, policy) in served() {
            let what = format!("{policy}, {controller:?}, seed {seed}");
            let world = World::finished(&Case {
                fault: Fault::Killed(since),
                ..case(controller, policy, seed)
            });
            trips_once_as_stale(&world, since, clock_of(controller), &what);
            let seen = world.seen();
            assert_eq!(
                seen.returned(0),
                None,
                "{what}: there is no agent to return it to"
            );
            no_flow_stalls(&seen, since, &what);
            does_as_well(&seen, &cubic, (since, since + AFTER), LEAST, &what);
            fills_as_cubic(&seen, since, &what);
        }
    }
}

#[test]
fn eight_flows_of_a_killed_agent_are_in_fallback() {
    let cubic = plain(CUBIC, LINK, 30, 1);
    let since = begins(1);
    for (controller, policy) in served() {
        let what = format!("{policy}, {controller:?}");
        let mut world = World::new(&Case {
            flows: 8,
            fault: Fault::Killed(since),
            ..case(controller, policy, 1)
        });
        world.run_until(since + AFTER + ms(100));
        let seen = world.seen();
        // The guard may have tripped earlier: eight policies can be too much for 20 Mbit/s.
        let last = |flow: usize| seen.states[flow].last().expect("some").reason;
        assert!(
            (0..8).all(|flow| last(flow) != Reason::Fine),
            "{what}: a flow is not in fallback"
        );
        no_flow_stalls(&seen, since, &what);
        does_as_well(&seen, &cubic, (since, since + AFTER), LEAST, &what);
    }
}

#[test]
fn flows_of_a_stopped_agent_are_in_fallback_until_after_the_probation() {
    for seed in SEEDS {
        let (since, cubic) = (begins(seed), plain(CUBIC, LINK, 30, seed));
        for (controller, policy) in served() {
            let what = format!("{policy}, {controller:?}, seed {seed}");
            let world = World::finished(&Case {
                fault: Fault::Stopped(since, since + AFTER + ms(300)),
                ..case(controller, policy, seed)
            });
            let trip = trips_once_as_stale(&world, since, clock_of(controller), &what);
            let seen = world.seen();
            no_flow_stalls(&seen, since, &what);
            does_as_well(&seen, &cubic, (since, since + AFTER), LEAST, &what);
            fills_as_cubic(&seen, since, &what);
            let back = seen
                .returned(0)
                .unwrap_or_else(|| panic!("{what}: never back"));
            let after = back.since(trip);
            assert!(after >= PROBATION, "{what}: back after {after:?}");
            assert!(
                after < PROBATION + ms(50) + clock_of(controller),
                "{what}: {after:?}"
            );
            let (from, until) = (back + ms(500), back + ms(3000));
            does_as_well(&seen, &cubic, (from, until), 0.7, &format!("{what}, back"));
            drop(seen);
            assert_eq!(
                (world.trips(Reason::Stale), world.count("guard_returns")),
                (1, 1),
                "{what}"
            );
            let status = world.status();
            assert_eq!(status["flows"][0]["guard"], "policy", "{what}: {status}");
        }
    }
}

/// The agent runs for 5 ms of each second, so that answers come up to a second late.
#[test]
fn flows_of_a_slow_agent_are_in_fallback() {
    for seed in SEEDS {
        // The fault begins far from the tuner's request, which comes once a second too.
        let (since, cubic) = (begins(seed) + ms(400), plain(CUBIC, LINK, 30, seed));
        for (controller, policy) in served() {
            let what = format!("{policy}, {controller:?}, seed {seed}");
            let mut world = World::new(&Case {
                fault: Fault::Slow(since),
                ..case(controller, policy, seed)
            });
            world.run_until(since + AFTER + ms(1000));
            trips_once_as_stale(&world, since, clock_of(controller), &what);
            let seen = world.seen();
            no_flow_stalls(&seen, since, &what);
            does_as_well(&seen, &cubic, (since, since + AFTER), LEAST, &what);
            fills_as_cubic(&seen, since, &what);
        }
    }
}

/// The model is replaced by one that chooses at random. That may do well enough. If the guard sees
/// that it does not, the flow is in fallback.
#[test]
fn a_random_policy_trips_the_guard_or_does_well_enough() {
    let mut caught = 0;
    for seed in SEEDS {
        let (since, cubic) = (begins(seed), plain(CUBIC, LINK, 30, seed));
        for (controller, policy, shipped, [inputs, outputs]) in SERVED {
            let what = format!("{controller:?}, seed {seed}");
            let noise = Folder::of_model(shipped, Layer::Noise, inputs, outputs);
            let mut world = World::new(&case(controller, policy, seed));
            world.run_until(since);
            assert_eq!(world.count("guard_trips"), 0, "{what}");
            world.reload(&noise.policy());
            world.run_until(since + PATIENCE + AFTER);
            assert_eq!(
                world.trips(Reason::Stale),
                0,
                "{what}: it answers all the time"
            );
            let seen = world.seen();
            no_flow_stalls(&seen, since, &what);
            let (until, least) = match seen.trip(0) {
                Some((trip, reason)) if trip < since + PATIENCE => {
                    caught += 1;
                    println!("{what}: {} after {:?}", reason.name(), trip.since(since));
                    no_flow_stalls(&seen, trip, &what);
                    does_as_well(&seen, &cubic, (trip, trip + AFTER), LEAST, &what);
                    (trip + AFTER, LEAST_UNSEEN)
                }
                _ => (since + PATIENCE, LEAST_UNKNOWN),
            };
            does_as_well(
                &seen,
                &cubic,
                (since, until),
                least,
                &format!("{what}, in all"),
            );
        }
    }
    assert!(caught >= 3, "the guard tripped {caught} times");
}

/// The model is replaced by one that removes ten packets with each answer, or adds ten.
#[test]
fn a_model_that_always_shrinks_or_grows_the_window_trips_the_guard() {
    for (choice, reasons) in [
        (0, &[Reason::Poor][..]),
        (6, &[Reason::Lossy, Reason::Slow]),
    ] {
        let wants = Folder::of_model("owl-v1", Layer::Always(choice), 100, 7);
        for (controller, seed) in [Controller::Owl, Controller::Window]
            .into_iter()
            .flat_map(|controller| SEEDS.map(|seed| (controller, seed)))
        {
            let what = format!("{controller:?}, choice {choice}, seed {seed}");
            let (since, cubic) = (begins(seed), plain(CUBIC, LINK, 30, seed));
            let mut world = World::new(&case(controller, "owl", seed));
            world.run_until(since);
            world.reload(&wants.policy());
            world.run_until(since + PATIENCE + AFTER);
            let seen = world.seen();
            let (trip, reason) = seen.trip(0).unwrap_or_else(|| panic!("{what}: no trip"));
            println!("{what}: {} after {:?}", reason.name(), trip.since(since));
            assert!(reasons.contains(&reason), "{what}: {}", reason.name());
            assert!(trip > since && trip < since + PATIENCE, "{what}: {trip:?}");
            no_flow_stalls(&seen, trip, &what);
            does_as_well(&seen, &cubic, (trip, trip + AFTER), LEAST, &what);
        }
    }
}

/// The program evaluates the policy itself, without the agent. The policy always halves the rate.
#[test]
fn an_int8_policy_that_always_halves_the_rate_trips_the_guard() {
    for seed in SEEDS {
        let (since, cubic) = (begins(seed), plain(CUBIC, LINK, 30, seed));
        let what = format!("seed {seed}");
        let less = Folder::of_less_in_whole_numbers();
        let mut world = World::new(&case(Controller::Rate, "aurora:model=int8-v1", seed));
        world.run_until(since);
        world.reload(&less.policy());
        world.run_until(since + PATIENCE);
        assert_eq!(world.count("actions"), 0, "{what}");
        let seen = world.seen();
        let (trip, reason) = seen.trip(0).unwrap_or_else(|| panic!("{what}: no trip"));
        println!("{what}: {} after {:?}", reason.name(), trip.since(since));
        assert_eq!(reason, Reason::Poor, "{what}");
        assert!(trip > since && trip < since + ms(3000), "{what}: {trip:?}");
        no_flow_stalls(&seen, trip, &what);
        does_as_well(&seen, &cubic, (trip, trip + AFTER), LEAST, &what);
    }
}

#[test]
fn cubic_controls_a_flow_without_a_slot() {
    for seed in SEEDS {
        let (since, cubic) = (begins(seed), plain(CUBIC, LINK, 30, seed));
        for (controller, policy) in served() {
            let what = format!("{policy}, {controller:?}, seed {seed}");
            let mut world = World::new(&Case {
                flows: 3,
                slots: 1,
                ..case(controller, policy, seed)
            });
            world.run_until(since + AFTER);
            let counters = world.kernel.counters();
            assert_eq!(counters.flows, 1, "{what}");
            // Two flows look for one at once, and each second again.
            let looked = 2 * (since + AFTER).as_nanos() / 1_000_000_000;
            let found = counters.slots_full;
            assert!(
                (looked - 2..=looked + 2).contains(&found),
                "{what}: {found} times"
            );
            let seen = world.seen();
            no_flow_stalls(&seen, since, &what);
            does_as_well(&seen, &cubic, (since, since + AFTER), LEAST, &what);
        }
    }
}

/// The ring holds four records, so requests find no room.
#[test]
fn flows_are_in_fallback_while_the_ring_is_full() {
    for seed in SEEDS {
        let (since, cubic) = (begins(seed), plain(CUBIC, LINK, 30, seed));
        for (controller, policy) in served() {
            let what = format!("{policy}, {controller:?}, seed {seed}");
            let mut world = World::new(&Case {
                ring_bytes: 1 << 9,
                fault: Fault::Stopped(since, since + AFTER + ms(300)),
                ..case(controller, policy, seed)
            });
            world.run_until(since + AFTER + ms(800));
            trips_once_as_stale(&world, since, clock_of(controller), &what);
            assert!(world.count("ring_dropped") > 0, "{what}");
            assert!(world.count("held_back") > 100, "{what}");
            let status = world.status();
            assert_eq!(status["flows"][0]["guard"], "cubic", "{what}: {status}");
            let seen = world.seen();
            no_flow_stalls(&seen, since, &what);
            does_as_well(&seen, &cubic, (since, since + AFTER), LEAST, &what);
            fills_as_cubic(&seen, since, &what);
        }
    }
}

/// At 2 Mbit/s acknowledgements are at least 6 ms apart, so each finds the answer to the one
/// before, a little later than its own record's time. Rax sends a request with each
/// acknowledgement, so that each finds an answer on fast paths too.
#[test]
fn flows_return_if_each_acknowledgement_finds_an_answer() {
    const SLOW: &str = "rate = \"2Mbps\", delay = \"10ms\", queue = \"20pkt\"";
    let (all, rax): (Vec<_>, _) = (served().collect(), (Controller::Window, "rax-pretrained"));
    for seed in SEEDS {
        let since = begins(seed);
        for (link, served) in [(SLOW, all.clone()), (LINK, vec![rax])] {
            for (controller, policy) in served {
                let what = format!("{policy}, {controller:?}, {link}, seed {seed}");
                let world = World::finished(&Case {
                    link,
                    seconds: 22,
                    fault: Fault::Stopped(since, since + ms(2000)),
                    ..case(controller, policy, seed)
                });
                let seen = world.seen();
                let (trip, reason) = seen.trip(0).unwrap_or_else(|| panic!("{what}: no trip"));
                assert_eq!(reason, Reason::Stale, "{what}");
                assert!(trip > since + ms(90), "{what}: {trip:?}");
                no_flow_stalls(&seen, since, &what);
                let back = seen
                    .returned(0)
                    .unwrap_or_else(|| panic!("{what}: never back"));
                let after = back.since(trip);
                assert!(after >= PROBATION, "{what}: back after {after:?}");
                assert!(
                    after < PROBATION + ms(250) + clock_of(controller),
                    "{what}: {after:?}"
                );
            }
        }
    }
}
