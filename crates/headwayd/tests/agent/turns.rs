//! Who wakes the agent: what it tells the programs before it sleeps, and what it looks for then.

use std::cell::{Cell, RefCell};

use headway_cc::testing::{feedback, setup};
use headway_cc::{CongestionControl, Time};
use headway_kernel::{Datapath, FakeKernel};
use headwayd::Controller;
use headwayd::agent::{Agent, AgentOptions, Policies, Store, Wait, turn};

use crate::host::{Program, at};

/// An agent, and a flow that asks it.
struct Asked {
    kernel: FakeKernel,
    agent: RefCell<Agent<Program>>,
    flow: RefCell<Datapath>,
}

impl Asked {
    fn new() -> Asked {
        let policies = Policies::read(["owl"]).expect("a policy");
        let kernel = FakeKernel::new(1 << 20);
        let mut program = Program {
            controller: Controller::Window,
            kernel: kernel.clone(),
        };
        let options = AgentOptions::default();
        let configured = policies.configure(&mut program, options);
        configured.expect("limits in their ranges");
        let programs = vec![(program, Some(policies))];
        let agent = Agent::new(programs, None, Store::default(), options, 64, Time::ZERO);
        let flow = Datapath::of_window(&kernel, &setup());
        Asked {
            kernel,
            agent: RefCell::new(agent),
            flow: RefCell::new(flow),
        }
    }

    /// One that has been answered, at 2 ms: the flow asks again from 6 ms on.
    fn answered() -> Asked {
        let asked = Asked::new();
        asked.acknowledge(at(2));
        asked.kernel.hear_wake();
        asked.turn(|_| {});
        asked
    }

    fn acknowledge(&self, now: Time) {
        self.kernel.set_now(now);
        self.flow.borrow_mut().on_feedback(&feedback(now));
    }

    /// A turn, in which something happens after each reading, whose number is told.
    fn turn(&self, happens: impl Fn(u32)) -> Wait {
        let readings = Cell::new(0);
        let wait = turn(&self.agent, |_| {
            let mut count = 0;
            while let Some(message) = self.kernel.next_message() {
                self.agent.borrow_mut().on_message(0, &message);
                count += 1;
            }
            happens(readings.replace(readings.get() + 1));
            Ok(count)
        });
        wait.expect("messages can be read")
    }

    /// A turn, which ends with a nap: as many messages as it may read come just before it sleeps.
    fn much_at_second_look(&self) -> Wait {
        let readings = Cell::new(0);
        let wait = turn(&self.agent, |most| {
            let is_second = readings.replace(readings.get() + 1) == 1;
            Ok(if is_second { most } else { 0 })
        });
        wait.expect("messages can be read")
    }

    fn answers(&self) -> u64 {
        let counters = self.agent.borrow().counters(self.kernel.now());
        counters["counters"]["actions"].as_u64().expect("a count")
    }
}

/// It reads that the agent is awake, and wakes nobody.
#[test]
fn who_asks_between_two_looks_is_answered_before_the_agent_sleeps() {
    let asked = Asked::answered();
    let before = asked.answers();
    asked.turn(|reading| {
        if reading == 0 {
            asked.acknowledge(at(8));
        }
    });
    assert!(!asked.kernel.is_woken());
    assert_eq!(asked.answers(), before + 1);
}

#[test]
fn who_asks_a_sleeping_agent_wakes_it() {
    let asked = Asked::answered();
    assert!(matches!(asked.turn(|_| {}), Wait::Sleep(_)));
    asked.acknowledge(at(8));
    assert!(asked.kernel.is_woken());
}

/// It is up again soon, and nobody has to wake it until then.
#[test]
fn an_agent_that_finds_much_to_do_as_it_goes_to_sleep_naps_and_says_that_it_is_awake() {
    let asked = Asked::answered();
    let wait = asked.much_at_second_look();
    assert!(matches!(wait, Wait::Nap(_)), "{wait:?}");
    asked.acknowledge(at(8));
    assert!(!asked.kernel.is_woken());
}

/// New settings do not say that it is.
#[test]
fn an_agent_with_new_policies_says_that_it_is_awake() {
    let asked = Asked::answered();
    asked.much_at_second_look();
    let policies = Policies::read(["owl"]).expect("a policy");
    let taken = asked.agent.borrow_mut().take_policies(vec![Some(policies)]);
    taken.expect("they fit");
    asked.turn(|reading| {
        if reading == 0 {
            assert_eq!(asked.kernel.settings().is_awake, 1);
        }
    });
}
