//! Tests how long an answer may take, to the millisecond, on both sides of each bound.

use headway_cc::testing::{feedback, setup};
use headway_cc::{CongestionControl, Duration, Time};
use headway_fixed::Reason;
use headway_kernel::{Datapath, FakeKernel};
use headwayd::Controller;
use headwayd::agent::{Agent, AgentOptions, Policies, Store};

use crate::host::{Case, Fault, World, at, ms};
use crate::program::Program;

/// Round trips take 10 to 15 ms, so that an answer may take 100 ms. Acknowledgements are at most
/// half a millisecond apart.
const LINK: &str = "rate = \"50Mbps\", delay = \"5ms\", queue = \"20pkt\"";

fn owl() -> Case {
    Case {
        link: LINK,
        seconds: 10,
        ..Case::of("owl")
    }
}

/// The times of the flow's requests after `from`, in a run without a fault.
fn requests(from: Time) -> Vec<Time> {
    let mut world = World::new(&owl());
    world.run_until(from + ms(200));
    let seen = world.seen();
    let asked = seen.asked[&1].iter().copied();
    asked.filter(|time| *time >= from).collect()
}

#[test]
fn an_answer_may_take_a_hundred_milliseconds_and_not_one_more() {
    for request in requests(at(4000)).into_iter().take(10) {
        let trips = |away: Duration| {
            let mut world = World::new(&Case {
                fault: Fault::Stopped(request, request + away),
                ..owl()
            });
            world.run_until(request + ms(1000));
            (world.trips(Reason::Stale), world.count("guard_trips"))
        };
        assert_eq!(trips(ms(40)), (0, 0), "request at {request:?}");
        assert_eq!(trips(ms(100)), (0, 0), "request at {request:?}");
        assert_eq!(trips(ms(101)), (1, 1), "request at {request:?}");
    }
}

/// Each answer takes as long as it may, or a millisecond longer.
#[test]
fn every_answer_may_take_a_hundred_milliseconds() {
    let trips = |late: Duration| {
        let world = World::finished(&Case {
            fault: Fault::Late(at(3000), late),
            ..owl()
        });
        world.count("guard_trips")
    };
    assert_eq!(trips(ms(40)), 0);
    assert_eq!(trips(ms(100)), 0);
    assert!(trips(ms(101)) >= 1);
}

/// The ring holds two records. The agent is away thirty times.
#[test]
fn a_request_that_found_no_room_is_sent_again() {
    let trips = |away: Duration| {
        let mut world = World::new(&Case {
            ring_bytes: 1 << 8,
            seconds: 20,
            ..owl()
        });
        world.run_until(at(3000));
        for _ in 0..30 {
            let now = world.now();
            world.fault = Fault::Stopped(now, now + away);
            world.run_until(now + ms(250));
        }
        assert!(world.count("ring_dropped") > 100);
        world.count("guard_trips")
    };
    assert_eq!(trips(ms(40)), 0);
    assert_eq!(trips(ms(90)), 0);
    assert_eq!(trips(ms(110)), 1, "it stays in fallback after the first");
}

/// The agent is well again half a second after each fault.
#[test]
fn each_probation_is_twice_as_long_as_the_last() {
    let mut world = World::new(&Case {
        seconds: 90,
        ..owl()
    });
    let mut begins = at(3000);
    for (trips, seconds) in [(1, 10), (2, 20), (3, 40)] {
        world.run_until(begins);
        world.fault = Fault::Stopped(begins, begins + ms(500));
        world.run_until(begins + ms(500));
        assert_eq!(world.trips(Reason::Stale), trips);
        let trip = {
            let seen = world.seen();
            let states = seen.from(0, begins);
            states
                .iter()
                .find(|state| u64::from(state.trips) == trips)
                .expect("a trip")
                .at
        };
        let ends = trip + Duration::from_secs(seconds);
        world.run_until(ends + ms(100));
        {
            let seen = world.seen();
            let judged = seen.from(0, trip);
            let back = judged
                .iter()
                .find(|state| state.reason == Reason::Fine)
                .expect("it is back");
            assert!(back.at >= ends, "{:?} before its end", ends.since(back.at));
            assert!(
                back.at <= ends + ms(10),
                "{:?} after its end",
                back.at.since(ends)
            );
        }
        assert_eq!(world.count("guard_returns"), trips);
        begins = world.now() + ms(2000);
    }
}

/// One agent serves both flows. It is away for a second whenever neither flow is in fallback. The
/// learner's first three probations are equally long, and those of the other flow double.
#[test]
fn a_learner_has_other_limits_than_another_flow_of_the_agent() {
    let options = AgentOptions::default();
    let policies = Policies::read(["owl", "2001:db8::/32=owl:online=true"]).expect("policies");
    let kernel = FakeKernel::new(1 << 20);
    let mut program = Program {
        controller: Controller::Window,
        kernel: kernel.clone(),
    };
    policies
        .configure(&mut program, options)
        .expect("limits in their ranges");
    let (store, policies) = (Store::default(), Some(policies));
    let mut agent = Agent::new(program, policies, None, store, options, 64, Time::ZERO);
    let mut flows = [
        [0; 16],
        [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    ]
    .map(|remote: [u8; 16]| {
        kernel.set_remote(remote);
        let mut flow = Datapath::of_window(&kernel, &setup());
        flow.on_feedback(&feedback(at(2)));
        flow
    });
    let mut away = Time::ZERO;
    let mut tripped = [Time::ZERO; 2];
    let mut probations = [vec![], vec![]];
    for now in (1..6000).map(|step| at(step * 20)) {
        kernel.set_now(now);
        for (which, flow) in flows.iter_mut().enumerate() {
            let (trips, was_fine) = (flow.guard().trips(), flow.guard().is_fine());
            flow.on_feedback(&feedback(now));
            if flow.guard().trips() > trips {
                tripped[which] = now;
            } else if !was_fine && flow.guard().is_fine() {
                probations[which].push(now.since(tripped[which]).as_nanos() / 1_000_000_000);
            }
        }
        let both_fine = flows.iter().all(|flow| flow.guard().is_fine());
        if now >= away + ms(2000) && both_fine {
            away = now + ms(1000);
        }
        if now >= away {
            while let Some(message) = kernel.next_message() {
                agent.on_message(&message);
            }
            agent.on_timers(now);
        }
    }
    let first = probations.map(|all: Vec<u64>| all.into_iter().take(3).collect::<Vec<_>>());
    assert_eq!(first, [[10, 20, 40], [10, 10, 10]]);
}
