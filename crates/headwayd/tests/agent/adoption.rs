//! An agent adopts the flows of an agent that has ended.

use headway_cc::{CongestionControl, testing};
use headway_fixed::Reason;
use headway_kernel::Datapath;
use headway_kernel::abi::CounterValues;
use headway_policy::schemes::PolicySpec;
use headwayd::Controller;
use headwayd::agent::{Agent, AgentOptions};

use crate::host::{CUBIC, Case, Fault, HOLDS, World, agent, at, plain, status};
use crate::program::Program;
use crate::seen::State;

const POLICIES: [(Controller, &str); 4] = [
    (Controller::Owl, "owl"),
    (Controller::Window, "owl"),
    (Controller::Rate, "aurora"),
    (Controller::Bbr, "bbr-tuner-ppo"),
];

/// The guard waits at least 100 ms for an answer.
#[test]
fn a_flow_stays_with_its_policy_if_the_next_agent_is_in_time() {
    for (controller, policy) in POLICIES {
        let case = Case {
            controller: Some(controller),
            seconds: 20,
            ..Case::of(policy)
        };
        let mut world = World::new(&case);
        world.run_until(at(6000));
        let before = world.status()["flows"][0].clone();
        world.fault = Fault::Killed(at(6000));
        world.run_until(at(6080));
        world.restart(&case);
        world.run_until(at(12_000));
        let status = world.status();
        let flow = &status["flows"][0];
        assert_eq!(world.kernel.counters().trips, [0; 8], "{controller:?}");
        assert_eq!(flow["flow"], before["flow"]);
        assert_eq!(flow["guard"], "policy", "{flow}");
        assert!(
            flow["decisions"].as_u64() > Some(4),
            "{controller:?}: {flow}"
        );
        for count in ["reports_of_unknown_flows", "malformed_messages"] {
            assert_eq!(world.count(count), 0, "{controller:?}: {count}");
        }
        assert_eq!(world.count("flows"), 1);
    }
}

/// The flow is in fallback meanwhile. The guard gives it to the next agent's policy after the
/// probation.
#[test]
fn a_flow_returns_to_its_policy_if_the_next_agent_is_late() {
    for (controller, policy) in POLICIES {
        let case = Case {
            controller: Some(controller),
            seconds: 40,
            ..Case::of(policy)
        };
        let mut world = World::new(&case);
        world.run_until(at(6000));
        world.fault = Fault::Killed(at(6000));
        world.run_until(at(14_000));
        assert_eq!(world.trips(Reason::Stale), 1, "{controller:?}");
        world.restart(&case);
        world.run_until(at(14_100));
        let status = world.status();
        let flow = &status["flows"][0];
        // The verdict is among the messages that no agent had read.
        assert_eq!(flow["guard"], "cubic", "{controller:?}: {flow}");
        assert_eq!(flow["guard_reason"], "stale");
        assert_eq!(flow["guard_trips"], 1);
        // Requests from before the agent started are up to eight seconds old.
        let slowest = &status["latency_us"]["p99"];
        assert!(
            slowest.as_f64().is_none_or(|us| us < 1e6),
            "{controller:?}: {slowest}"
        );
        world.run_until(at(30_000));
        let status = world.status();
        let flow = &status["flows"][0];
        assert_eq!(flow["guard"], "policy", "{controller:?}: {flow}");
        assert!(
            flow["decisions"].as_u64() > Some(4),
            "{controller:?}: {flow}"
        );
        assert_eq!(world.trips(Reason::Stale), 1, "{controller:?}");
        assert_eq!(world.count("reports_of_unknown_flows"), 0);
    }
}

/// The case with `--shadow`.
fn in_shadow(case: &Case) -> Case {
    Case {
        options: AgentOptions {
            is_shadow: true,
            ..AgentOptions::default()
        },
        ..case.clone()
    }
}

/// Under `--shadow` Cubic controls every flow, those that a policy controlled before included. The
/// policy controls them again as soon as an agent without `--shadow` runs.
#[test]
fn a_shadow_takes_over_the_flows_of_a_policy() {
    for (controller, policy) in POLICIES {
        let normal = Case {
            controller: Some(controller),
            seconds: 40,
            ..Case::of(policy)
        };
        let mut world = World::new(&normal);
        world.run_until(at(6000));
        world.restart(&in_shadow(&normal));
        world.run_until(at(6500));
        let guard = world.status()["flows"][0]["guard"].clone();
        assert_eq!(guard, "cubic", "{controller:?}");
        world.run_until(at(24_000));
        // Cubic fills the queue until packets are lost, and keeps seven tenths of its window.
        let windows: Vec<f64> = {
            let seen = world.seen();
            let states = seen.from(0, at(12_000)).iter();
            let open = states.filter(|state| !state.is_repairing);
            open.map(|state| state.cwnd).collect()
        };
        let most = windows.iter().copied().fold(0.0, f64::max);
        let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(
            (0.95..1.1).contains(&(most / HOLDS)),
            "{controller:?}: {most}"
        );
        assert!(
            (0.65..0.75).contains(&(least / most)),
            "{controller:?}: {least} of {most}"
        );
        assert_eq!(world.kernel.counters().trips, [0; 8], "{controller:?}");
        world.restart(&normal);
        world.run_until(at(26_000));
        let guard = world.status()["flows"][0]["guard"].clone();
        assert_eq!(guard, "policy", "{controller:?}");
    }
}

/// While no agent runs, plain Cubic, or BBR, controls new flows from the first packet on.
#[test]
fn a_flow_that_begins_without_an_agent_has_no_policy() {
    for (controller, policy) in POLICIES {
        let case = Case {
            controller: Some(controller),
            seconds: 12,
            fault: Fault::Killed(at(0)),
            ..Case::of(policy)
        };
        let mut world = World::new(&case);
        world.kernel.set_served_until(at(0));
        world.run_until(at(6000));
        let scheme = match controller {
            Controller::Bbr => "bbr",
            _ => CUBIC,
        };
        let alone = plain(scheme, case.link, 6, case.seed);
        let windows = |states: &[State]| -> Vec<_> {
            states.iter().map(|state| (state.at, state.cwnd)).collect()
        };
        let served = windows(&world.seen().states[0]);
        assert_eq!(served, windows(&alone.states[0]), "{controller:?}");
        assert_eq!(world.kernel.counters(), CounterValues::default());
        world.restart(&case);
        world.run_until(at(12_000));
        let flow = world.status()["flows"][0].clone();
        assert_eq!(flow["guard"], "policy", "{controller:?}: {flow}");
        assert!(flow["decisions"].as_u64() > Some(4), "{controller:?}");
        assert_eq!(world.kernel.counters().trips, [0; 8], "{controller:?}");
    }
}

/// Cubic has left slow start because of the delay (HyStart) and has lost nothing, so its window is
/// known.
#[test]
fn a_shadow_does_not_send_a_flow_into_slow_start_again() {
    for (controller, policy) in POLICIES {
        if controller == Controller::Bbr {
            continue;
        }
        let normal = Case {
            controller: Some(controller),
            link: "rate = \"20Mbps\", delay = \"30ms\", queue = \"2000pkt\"",
            seconds: 8,
            fault: Fault::Killed(at(0)),
            ..Case::of(policy)
        };
        let mut world = World::new(&normal);
        world.kernel.set_served_until(at(0));
        world.run_until(at(1500));
        let window = |world: &World| world.seen().states[0].last().expect("a state").cwnd;
        let before = window(&world);
        world.restart(&in_shadow(&normal));
        world.run_until(at(1900));
        let flow = world.status()["flows"][0].clone();
        assert_eq!(flow["guard"], "cubic", "{controller:?}: {flow}");
        assert_eq!(flow["lost_packets"], 0, "{controller:?}: {flow}");
        let after = window(&world);
        assert!(
            (before..1.2 * before).contains(&after),
            "{controller:?}: {before}, {after}"
        );
    }
}

/// The first agent has read the guard's verdict and leaves it to the next.
#[test]
fn the_next_agent_knows_the_guards_verdict() {
    let case = Case {
        seconds: 40,
        fault: Fault::Stopped(at(6000), at(8000)),
        ..Case::of("owl")
    };
    let mut world = World::new(&case);
    world.run_until(at(9000));
    assert_eq!(world.status()["flows"][0]["guard_trips"], 1);
    world.restart(&case);
    world.run_until(at(9200));
    let status = world.status();
    let flow = &status["flows"][0];
    assert_eq!(flow["guard_trips"], 1, "{flow}");
    assert_eq!(flow["guard_reason"], "stale");
}

/// The ring is full long before the next agent starts, so the CLOSE of a flow and the OPEN of the
/// next flow in its slot are dropped.
#[test]
fn the_next_agent_tells_apart_flows_that_used_one_slot_meanwhile() {
    let kernel = headway_kernel::FakeKernel::with_slots(1 << 8, 2);
    let spec = PolicySpec::read("aurora").expect("a policy");
    let spec = spec.agent().cloned().expect("an agent");
    let agent = || agent(&Case::of("aurora"), &kernel, kernel.now());
    let serve = |agent: &mut Agent<Program>| {
        while let Some(message) = kernel.next_message() {
            agent.on_message(&message);
        }
        agent.on_timers(kernel.now());
    };
    let numbers = |agent: &Agent<Program>| -> Vec<u64> {
        let status = status(agent, kernel.now());
        let flows = status["flows"].as_array().expect("a list");
        flows
            .iter()
            .filter_map(|flow| flow["flow"].as_u64())
            .collect()
    };
    let flow = || Datapath::new(&kernel, &spec, &testing::setup()).expect("a rate");
    let acknowledge = |flow: &mut Datapath, millis: u64| {
        kernel.set_now(at(millis));
        flow.on_feedback(&testing::feedback(at(millis)));
    };
    let (mut stays, mut ends) = (flow(), flow());
    let mut first = agent();
    for step in 0..20 {
        acknowledge(&mut stays, 100 + 4 * step);
        acknowledge(&mut ends, 101 + 4 * step);
        serve(&mut first);
    }
    assert_eq!(numbers(&first), [1, 2]);
    drop(first);
    for step in 0..50 {
        acknowledge(&mut stays, 200 + 4 * step);
    }
    let dropped = kernel.dropped();
    drop(ends);
    assert_eq!(
        kernel.dropped(),
        dropped + 1,
        "the ring has no room for CLOSE"
    );
    let mut comes = flow();
    acknowledge(&mut comes, 450);
    assert_eq!(comes.flow(), Some(3), "it has the slot of the second");
    let mut second = agent();
    serve(&mut second);
    for step in 0..20 {
        acknowledge(&mut stays, 600 + 4 * step);
        acknowledge(&mut comes, 601 + 4 * step);
        serve(&mut second);
    }
    assert_eq!(numbers(&second), [1, 3]);
    let counted = &second.counters(kernel.now())["counters"];
    assert_eq!(counted["reports_of_unknown_flows"], 0);
}
