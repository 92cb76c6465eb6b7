//! Tests of an agent without faults: what decides for flows, how often, and what is kept.

use std::thread::sleep;

use headway_policy::schemes::{Experience, PolicySpec};
use headwayd::Controller;
use headwayd::agent::{AgentOptions, Class, Store};

use crate::host::{CUBIC, Case, Fault, HOLDS, LINK, World, at, ms, plain};
use crate::models::{Folder, Layer};
use crate::seen::{Seen, State};

/// Owl decides 250 times a second in congestion avoidance, and not at all in slow start.
#[test]
fn owl_decides_250_times_a_second() {
    let mut world = World::new(&Case::of("owl"));
    world.run_until(at(4000));
    let counts = |world: &World| [world.count("actions"), world.count("wakes"), world.looks];
    let before = counts(&world);
    world.run_until(at(14_000));
    let after = counts(&world);
    let [decisions, wakes, looks] = [0, 1, 2].map(|which| after[which] - before[which]);
    println!("{decisions} decisions, {looks} looks, {wakes} wakes");
    assert!(
        (2000..=2500).contains(&decisions),
        "{decisions} in ten seconds"
    );
    assert_eq!(world.count("guard_trips"), 0);
    assert_eq!(world.count("malformed_messages"), 0);
    assert_eq!(world.count("reports_of_unknown_flows"), 0);
    let status = world.status();
    assert_eq!(status["flows"][0]["guard"], "policy");
    // The agent is awake when it expects a request, so few requests have to wake it.
    assert!(wakes < decisions / 10, "{wakes} wakes");
}

/// The policy is evaluated in the kernel.
#[test]
fn an_agent_without_requests_sleeps() {
    let mut world = World::new(&Case::of("aurora:model=int8-v1"));
    world.run_until(at(4000));
    let before = world.looks;
    world.run_until(at(14_000));
    assert_eq!((world.count("actions"), world.count("wakes")), (0, 0));
    assert_eq!(world.count("guard_trips"), 0);
    // LONGEST_WAIT permits twenty looks in a second.
    assert!(
        world.looks - before <= 201,
        "{} looks",
        world.looks - before
    );
    assert!(world.seen().mbps(at(4000), at(14_000)) > 10.0);
}

/// The tuner decides once a second.
#[test]
fn a_slow_clock_gets_its_decisions_in_time() {
    let mut world = World::new(&Case::of("bbr-tuner-ppo"));
    world.run_until(at(29_000));
    assert_eq!(world.count("guard_trips"), 0);
    let decisions = world.count("actions");
    assert!((25..=29).contains(&decisions), "{decisions} in 29 s");
}

/// The policy holds the window still on a link that loses one packet in fifty. headway_window keeps
/// the window through losses. headway_owl leaves losses to Cubic.
#[test]
fn headway_window_decides_in_every_state() {
    let hold = Folder::of_model("owl-v1", Layer::Always(3), 100, 7);
    let link = "rate = \"20Mbps\", delay = \"2ms\", queue = \"60pkt\", loss = 0.02";
    for (controller, holds) in [(Controller::Window, true), (Controller::Owl, false)] {
        let mut world = World::new(&Case {
            controller: Some(controller),
            link,
            ..Case::of(&hold.policy())
        });
        world.run_until(at(10_000));
        // headway_owl does not recover what losses take from the window, so the guard may trip.
        assert!(!holds || world.count("guard_trips") == 0, "{controller:?}");
        let seen = world.seen();
        let states = &seen.states[0];
        assert!(states.iter().any(|state| state.is_repairing));
        let is_still = states.iter().all(|state| state.cwnd == states[0].cwnd);
        assert_eq!(is_still, holds, "{controller:?}");
    }
}

/// The policy holds the window still. Its model was trained at shorter RTTs, so Cubic controls the
/// flow if the range is required, and its window grows.
#[test]
fn cubic_controls_a_flow_outside_a_required_training_range() {
    let hold = Folder::of_model("owl-v1", Layer::Always(3), 100, 7);
    for requires_range in [false, true] {
        let mut world = World::new(&Case {
            controller: Some(Controller::Window),
            link: "rate = \"20Mbps\", delay = \"400ms\", queue = \"2000pkt\"",
            options: requiring(requires_range),
            ..Case::of(&hold.policy())
        });
        world.run_until(at(500));
        assert!(world.status()["flows"][0]["in_range"].is_null());
        world.run_until(at(9000));
        let status = world.status();
        let flow = &status["flows"][0];
        assert_eq!(flow["in_range"], false, "{flow}");
        assert_eq!(flow["outside_range"], "rtt");
        // Only decisions that the flow carries out count.
        let is_counted = world.count("decisions_outside_range") > 0;
        assert_eq!(is_counted, !requires_range);
        assert_eq!(world.count("guard_trips"), 0);
        let seen = world.seen();
        let states = &seen.states[0];
        let is_still = states.iter().all(|state| state.cwnd == states[0].cwnd);
        assert_eq!(is_still, !requires_range);
    }
}

fn requiring(requires_range: bool) -> AgentOptions {
    AgentOptions {
        requires_range,
        ..AgentOptions::default()
    }
}

/// For each second until `end`: whether the flow's path is inside, and what is outside.
fn in_range_each_second(world: &mut World, end: u64) -> Vec<(Option<bool>, Option<String>)> {
    let first = world.now().since(at(0)).as_nanos() / 1_000_000_000 + 1;
    (first..=end)
        .map(|second| {
            world.run_until(at(second * 1000));
            let status = world.status();
            let flow = &status["flows"][0];
            let what = flow["outside_range"].as_str().map(str::to_owned);
            (flow["in_range"].as_bool(), what)
        })
        .collect()
}

/// Does the window stay as it is between two times?
fn is_still(world: &World, from: u64, until: u64) -> bool {
    let seen = world.seen();
    let mut states = seen.from(0, at(from)).iter().filter(|s| s.at < at(until));
    let first = states.next().expect("an acknowledgement").cwnd;
    states.all(|state| state.cwnd == first)
}

/// The policy holds the window still. Its link has half of the lowest rate of its model's training,
/// or twice the highest, and later a rate of the training.
#[test]
fn a_flow_returns_to_its_policy_once_its_rate_is_in_the_range() {
    let hold = Folder::of_model("owl-v1", Layer::Always(3), 100, 7);
    let hold = hold.trained_on("rate_mbps", [4.0, 8.0]);
    for link in [
        "rate = \"2Mbps\", delay = \"10ms\", queue = \"60pkt\"",
        "rate = \"16Mbps\", delay = \"2ms\", queue = \"60pkt\"",
    ] {
        let mut world = World::new(&Case {
            controller: Some(Controller::Window),
            link,
            changes: "{ time = \"30s\", rate = \"6Mbps\" }",
            seconds: 70,
            options: requiring(true),
            ..Case::of(&hold.policy())
        });
        let before = in_range_each_second(&mut world, 29);
        let outside = (Some(false), Some("rate".to_owned()));
        assert!(
            before[14..].iter().all(|seen| *seen == outside),
            "{before:?}"
        );
        assert!(
            !is_still(&world, 15_000, 29_000),
            "{link}: Cubic controls it"
        );
        let after = in_range_each_second(&mut world, 70);
        let is_inside = after[25..].iter().all(|seen| *seen == (Some(true), None));
        assert!(is_inside, "{link}: {after:?}");
        assert!(
            is_still(&world, 60_000, 70_000),
            "{link}: the policy controls it"
        );
        assert_eq!(world.count("guard_trips"), 0);
    }
}

/// The policy holds the window still, and the queue is longer than those of its model's training.
/// Cubic fills the queue too. The policy keeps Cubic's window when it gets the flow back, so the
/// queue stays too long.
#[test]
fn a_flow_with_too_long_a_queue_alternates_between_cubic_and_policy() {
    let hold = Folder::of_model("owl-v1", Layer::Always(3), 100, 7);
    let hold = hold.trained_on("buffer_ms", [1.0, 10.0]);
    let mut world = World::new(&Case {
        controller: Some(Controller::Window),
        link: "rate = \"2Mbps\", delay = \"10ms\", queue = \"60pkt\"",
        options: requiring(true),
        ..Case::of(&hold.policy())
    });
    let seen = in_range_each_second(&mut world, 60);
    let outside: Vec<_> = seen
        .iter()
        .filter_map(|(_, what)| what.as_deref())
        .collect();
    assert!(outside.iter().all(|what| *what == "buffer"), "{seen:?}");
    let mut is_in = seen.iter().filter_map(|(is_in, _)| *is_in);
    // The path is outside, inside, outside and inside again.
    for wanted in [false, true, false, true] {
        assert!(is_in.any(|is_in| is_in == wanted), "{seen:?}");
    }
    assert_eq!(world.count("guard_trips"), 0);
}

/// The link is faster than those of Rax's pretraining, and later as fast as those.
#[test]
fn rax_leaves_a_flow_outside_a_required_range_and_gets_it_back() {
    for requires_range in [false, true] {
        let mut world = World::new(&Case {
            link: "rate = \"90Mbps\", delay = \"30ms\", queue = \"100pkt\"",
            changes: "{ time = \"30s\", rate = \"20Mbps\" }",
            seconds: 80,
            options: requiring(requires_range),
            ..Case::of("rax-pretrained")
        });
        let told = |world: &mut World, second: u64| {
            world.run_until(at(second * 1000));
            let flow = world.status()["flows"][0].clone();
            let count = |key: &str| flow[key].as_u64().expect("a count");
            (
                count("decisions"),
                count("updates"),
                flow["outside_range"].clone(),
            )
        };
        let (first, second) = (told(&mut world, 15), told(&mut world, 29));
        assert_eq!(
            (first.2.as_str(), second.2.as_str()),
            (Some("rate"), Some("rate"))
        );
        // Rax does not learn from what Cubic does.
        let goes_on = (second.0 > first.0, second.1 > first.1);
        assert_eq!(goes_on, (!requires_range, !requires_range));
        let (third, fourth) = (told(&mut world, 65), told(&mut world, 80));
        assert!(fourth.2.is_null(), "{fourth:?}");
        assert!(
            fourth.0 > third.0 && fourth.1 > third.1,
            "{third:?}, {fourth:?}"
        );
    }
}

/// The policy always adds the most that it can, on a path outside its model's range.
#[test]
fn decisions_of_a_shadow_are_not_counted_as_carried_out() {
    let grow = Folder::of_model("owl-v1", Layer::Always(6), 100, 7);
    for is_shadow in [false, true] {
        let mut world = World::new(&Case {
            controller: Some(Controller::Window),
            link: "rate = \"20Mbps\", delay = \"400ms\", queue = \"2000pkt\"",
            options: AgentOptions {
                is_shadow,
                ..AgentOptions::default()
            },
            ..Case::of(&grow.policy())
        });
        world.run_until(at(5000));
        assert_eq!(world.status()["flows"][0]["outside_range"], "rtt");
        assert!(world.count("actions") > 0);
        for count in ["decisions_outside_range", "decisions_at_bound"] {
            assert_eq!(world.count(count) > 0, !is_shadow, "{count}");
        }
    }
}

/// The window at each acknowledgement is that of Cubic without an agent.
#[test]
fn a_shadow_decides_and_changes_nothing() {
    let cubic = plain(CUBIC, LINK, 20, 1);
    for (policy, controller) in [
        ("owl", Controller::Owl),
        ("owl", Controller::Window),
        ("aurora", Controller::Rate),
        ("bbr-tuner-ppo", Controller::Bbr),
    ] {
        let world = World::finished(&Case {
            controller: Some(controller),
            seconds: 20,
            options: AgentOptions {
                is_shadow: true,
                ..AgentOptions::default()
            },
            ..Case::of(policy)
        });
        let least = if controller == Controller::Bbr {
            15
        } else {
            100
        };
        assert!(
            world.count("actions") > least,
            "{policy}: {}",
            world.count("actions")
        );
        assert_eq!(world.count("guard_trips"), 0, "{policy}");
        let seen = world.seen();
        let windows = |seen: &Seen| -> Vec<(u64, u64)> {
            let states = seen.states[0].iter();
            states
                .map(|s| (s.at.as_nanos(), s.cwnd.to_bits()))
                .collect()
        };
        let (ours, cubics) = (windows(&seen), windows(&cubic));
        let first = ours.iter().zip(&cubics).find(|(one, other)| one != other);
        assert!(
            ours == cubics,
            "{controller:?}: other windows, first {first:?}"
        );
    }
}

#[test]
fn another_model_decides_after_a_reload() {
    let folder = Folder::of_model("owl-v1", Layer::Always(3), 100, 7);
    let mut world = World::new(&Case {
        controller: Some(Controller::Window),
        link: "rate = \"20Mbps\", delay = \"2ms\", queue = \"60pkt\"",
        ..Case::of(&folder.policy())
    });
    world.run_until(at(3000));
    let cwnd = |world: &World| world.seen().states[0].last().expect("some").cwnd;
    let (held, number) = (cwnd(&world), world.status()["flows"][0]["flow"].clone());
    folder.write_model("owl-v1", Layer::Always(5), 100, 7);
    // The agent has not read the new model yet.
    world.run_until(at(3400));
    assert_eq!(cwnd(&world), held);
    world.reload(&folder.policy());
    world.run_until(at(3440));
    assert!(cwnd(&world) >= held + 9.0, "{} after {held}", cwnd(&world));
    assert_eq!(world.status()["flows"][0]["flow"], number);
    assert_eq!(world.count("guard_trips"), 0);
}

/// A reload moves decisions from the program to the agent, or back. The flow is not interrupted.
#[test]
fn a_reload_moves_decisions_between_kernel_and_agent() {
    let (kernels, agents) = ("aurora:model=int8-v1", "aurora");
    let mut world = World::new(&Case::of(kernels));
    world.run_until(at(4000));
    assert_eq!(world.count("actions"), 0);
    for (n, policy) in [agents, kernels, agents].into_iter().enumerate() {
        let (now, before) = (world.now(), world.count("actions"));
        world.reload(policy);
        world.run_until(now + ms(4000));
        let decided = world.count("actions") - before;
        match policy == agents {
            // There is at most one each half round trip, of 20 ms or more.
            true => assert!((50..=400).contains(&decided), "{decided} of the agent"),
            // A request from before the change is still answered.
            false => assert!(decided <= 1, "{decided} of the agent"),
        }
        assert_eq!(world.count("guard_trips"), 0, "change {n}");
        let seen = world.seen();
        assert!(
            seen.longest_gap(0, now, now + ms(4000)) < ms(600),
            "change {n}"
        );
    }
}

/// The program evaluates the policy itself. Each window is the same without the agent.
#[test]
fn a_policy_in_the_kernel_needs_no_agent() {
    let states = |fault| {
        let world = World::finished(&Case {
            seconds: 20,
            fault,
            ..Case::of("aurora:model=int8-v1")
        });
        assert_eq!(world.count("guard_trips"), 0);
        let seen = world.seen();
        assert!(seen.mbps(at(4000), at(20_000)) > 10.0);
        seen.states[0].clone()
    };
    assert!(states(Fault::None) == states(Fault::Killed(at(4000))));
}

/// `headwayd set` sets windows of BBR. They stay set without the agent, and the flow does not fall
/// back.
#[test]
fn settings_of_bbr_stay_without_the_agent() {
    let states = |fault| {
        let mut world = World::new(&Case {
            policy: None,
            seconds: 20,
            fault,
            ..Case::of("")
        });
        world.run_until(at(4000));
        let set = world
            .agent
            .get_mut()
            .set(Some(1), "btlbw_window=4 rtprop_window=2s");
        assert_eq!(set.expect("flow 1"), 1);
        world.run_until(at(20_000));
        assert_eq!((world.count("guard_trips"), world.count("actions")), (0, 0));
        let seen = world.seen();
        // RTprop is measured every two seconds, with four packets in flight: at least six times.
        let states = &seen.states[0];
        let probes = |pair: &&[State]| pair[0].cwnd > 4.0 && pair[1].cwnd == 4.0;
        let count = states.windows(2).filter(probes).count();
        assert!((6..=9).contains(&count), "{count} probes");
        states.clone()
    };
    assert!(states(Fault::None) == states(Fault::Killed(at(8000))));
}

/// No flow may learn, and Rax has no model without learning. So no policy decides, which is not a
/// trip.
#[test]
fn cubic_controls_a_flow_for_which_no_policy_decides() {
    let cubic = plain(CUBIC, LINK, 20, 1);
    let world = World::finished(&Case {
        seconds: 20,
        learners: 0,
        ..Case::of("rax")
    });
    assert_eq!(world.count("learners_refused"), 1);
    assert_eq!(
        (world.count("guard_trips"), world.count("guard_returns")),
        (0, 0)
    );
    let seen = world.seen();
    let (since, until) = (at(1000), at(20_000));
    let share = seen.mbps(since, until) / cubic.mbps(since, until);
    assert!(share >= 0.99, "{share} of Cubic's");
    let states = seen.from(0, since).iter();
    assert!(
        states.clone().any(|state| state.cwnd >= 0.9 * HOLDS),
        "it fills the path"
    );
}

/// The folder may contain another model at the time of the reload.
#[test]
fn a_reload_keeps_a_learner_unless_its_model_has_changed() {
    let folder = Folder::copied("owl-v1");
    let policy = format!("owl:online=true:model={}", folder.path().display());
    let mut world = World::new(&Case {
        seconds: 6,
        ..Case::of(&policy)
    });
    let decisions = |world: &World| {
        let decisions = world.status()["flows"][0]["decisions"].as_u64();
        decisions.expect("a count")
    };
    world.run_until(at(4000));
    let before = decisions(&world);
    assert!(before > 100, "{before} decisions");
    world.reload(&policy);
    assert_eq!(decisions(&world), before);
    folder.rename("owl", "another");
    world.reload(&policy);
    assert_eq!(decisions(&world), 0);
    world.run_until(at(6000));
    assert!(decisions(&world) > 10, "the other model decides");
}

/// The agent saves what was learned each 30 seconds.
#[test]
fn saved_state_outlives_a_kill() {
    let folder = Folder::new("state");
    let files = || folder.count();
    let policy = "rax-pretrained";
    let mut world = World::new(&Case {
        seconds: 40,
        state: Some(folder.path().to_owned()),
        ..Case::of(policy)
    });
    world.run_until(at(29_800));
    assert_eq!(files(), 0, "too early");
    world.run_until(at(30_200));
    // A killed agent saves nothing as it ends, but its thread may still be writing.
    drop(world);
    let served = PolicySpec::read(policy).expect("a scheme of ours");
    let kept = (0..60_000).find_map(|_| {
        sleep(std::time::Duration::from_millis(1));
        let mut store = Store::new(Some(folder.path().to_owned()));
        // These flows go to the address `::`.
        store
            .learned(&served, Class::Private)
            .map(Experience::updates)
    });
    let updates = kept.expect("the state was saved");
    assert!(updates >= 200, "{updates} gradients");
}
