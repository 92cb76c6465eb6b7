//! What flows have of an agent that is well: who decides, how often, and what is kept.

use std::fs;
use std::thread::sleep;

use headway_policy::schemes::Served;
use headwayd::Controller;
use headwayd::agent::{Frame, Store};

use crate::host::{CUBIC, Case, Fault, HOLDS, LINK, World, at, ms, plain};
use crate::models::{Folder, Layer};
use crate::seen::Seen;

/// Owl's clock has 250 jiffies a second, and it decides in congestion avoidance alone.
#[test]
fn each_question_of_owls_is_answered_at_once() {
    let mut world = World::new(&Case::of("owl"));
    world.run_until(at(4000));
    let before = (world.count("actions"), world.looks);
    world.run_until(at(14_000));
    let (decisions, looks) = (world.count("actions") - before.0, world.looks - before.1);
    println!(
        "{decisions} decisions, {looks} looks, {} wakes",
        world.count("wakes")
    );
    assert!(
        (2000..=2500).contains(&decisions),
        "{decisions} in ten seconds"
    );
    assert_eq!(world.count("guard_trips"), 0);
    assert_eq!(world.count("malformed_messages"), 0);
    assert_eq!(world.count("reports_of_unknown_flows"), 0);
    let status = world.status();
    assert_eq!(status["flows"][0]["guard"], "policy");
    // It is up when a question is expected: few of them have to wake it.
    assert!(
        world.count("wakes") < decisions / 2,
        "{} wakes",
        world.count("wakes")
    );
}

/// The policy is evaluated in the kernel.
#[test]
fn an_agent_that_nobody_asks_sleeps() {
    let mut world = World::new(&Case::of("aurora:model=int8-v1"));
    world.run_until(at(4000));
    let before = world.looks;
    world.run_until(at(14_000));
    assert_eq!((world.count("actions"), world.count("wakes")), (0, 0));
    assert_eq!(world.count("guard_trips"), 0);
    // Ten in a second: LONGEST_WAIT.
    assert!(
        world.looks - before <= 101,
        "{} looks",
        world.looks - before
    );
    assert!(world.seen().mbps(at(4000), at(14_000)) > 10.0);
}

/// A clock of a second, and answers of which each is a second old at the next question.
#[test]
fn slow_clocks_are_answered_in_time() {
    let mut world = World::new(&Case::of("bbr-tuner-ppo"));
    world.run_until(at(29_000));
    assert_eq!(world.count("guard_trips"), 0);
    let decisions = world.count("actions");
    assert!((25..=29).contains(&decisions), "{decisions} in 29 s");
}

/// A window that holds still, on a link where one packet in fifty is lost: Cubic's would fall with
/// each loss.
#[test]
fn a_window_policy_has_every_state() {
    let hold = Folder::of_model("owl-v1", Layer::Always(3), 100, 7);
    let link = "rate = \"20Mbps\", delay = \"2ms\", queue = \"60pkt\", loss = 0.02";
    for (controller, holds) in [(Controller::Window, true), (Controller::Owl, false)] {
        let mut world = World::new(&Case {
            controller: Some(controller),
            link,
            ..Case::of(&hold.policy())
        });
        world.run_until(at(10_000));
        // Where losses take what nobody gives back, the guard has its say.
        assert!(!holds || world.count("guard_trips") == 0, "{controller:?}");
        let seen = world.seen();
        let states = &seen.states[0];
        assert!(states.iter().any(|state| state.is_repairing));
        let is_still = states.iter().all(|state| state.cwnd == states[0].cwnd);
        assert_eq!(is_still, holds, "{controller:?}");
    }
}

/// Windows at each acknowledgement are those of a Cubic that nobody asks about.
#[test]
fn a_shadow_is_asked_and_changes_nothing() {
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
            frame: Frame {
                is_shadow: true,
                ..Frame::default()
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
    // Nobody has read it yet.
    world.run_until(at(3400));
    assert_eq!(cwnd(&world), held);
    world.reload(&folder.policy());
    world.run_until(at(3440));
    assert!(cwnd(&world) >= held + 9.0, "{} after {held}", cwnd(&world));
    assert_eq!(world.status()["flows"][0]["flow"], number);
    assert_eq!(world.count("guard_trips"), 0);
}

/// Who decides changes between the program and the agent, and no flow is interrupted.
#[test]
fn who_decides_changes_between_kernel_and_agent() {
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
            // At most one each half round trip, of 20 ms or more.
            true => assert!((50..=400).contains(&decided), "{decided} of the agent's"),
            // What was asked before the change has an answer yet.
            false => assert!(decided <= 1, "{decided} of the agent's"),
        }
        assert_eq!(world.count("guard_trips"), 0, "change {n}");
        let seen = world.seen();
        assert!(
            seen.longest_gap(0, now, now + ms(4000)) < ms(600),
            "change {n}"
        );
    }
}

/// The program evaluates its policy itself: whether an agent is there changes no window.
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

/// No flow may learn, and there is no model without learning: nobody decides, and that is no trip.
#[test]
fn a_flow_that_nobody_decides_for_is_cubics() {
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

/// What a learner learned is kept each 30 seconds: a kill costs no more.
#[test]
fn what_was_learned_outlives_a_kill() {
    let folder = Folder::new("state");
    let files = || fs::read_dir(folder.path()).expect("it is there").count();
    let policy = "rax-pretrained";
    let mut world = World::new(&Case {
        seconds: 40,
        state: Some(folder.path().to_owned()),
        ..Case::of(policy)
    });
    world.run_until(at(29_800));
    assert_eq!(files(), 0, "before its time");
    world.run_until(at(30_200));
    // Nothing is saved as it ends, but a thread may still be writing.
    drop(world);
    let served = Served::read(policy).expect("a scheme of ours");
    let kept = (0..60_000).find_map(|_| {
        sleep(std::time::Duration::from_millis(1));
        let mut store = Store::new(Some(folder.path().to_owned()));
        store.learned(&served).map(|(_, updates)| updates)
    });
    let updates = kept.expect("it goes on from there");
    assert!(updates >= 200, "{updates} gradients");
}
