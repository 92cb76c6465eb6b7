//! Tests what wakes the agent: what it tells the programs before it sleeps, and what it looks for
//! then.

use std::cell::{Cell, RefCell};

use headway_cc::testing::{feedback, setup};
use headway_cc::{CongestionControl, Duration, Time};
use headway_kernel::{Datapath, FakeKernel};
use headway_policy::Record;
use headwayd::agent::{Agent, Policies, SavedStates, Wait, turn};

use crate::host::{self, Case, at, ms};
use crate::program::Program;

fn agent(policy: &str, kernel: &FakeKernel) -> RefCell<Agent<Program>> {
    RefCell::new(host::agent(&Case::of(policy), kernel, Time::ZERO))
}

fn count(agent: &RefCell<Agent<Program>>, what: &str) -> u64 {
    let counters = agent.borrow().counters(Time::ZERO);
    counters["counters"][what].as_u64().expect("a count")
}

/// An agent, and a flow that sends it requests.
struct Asked {
    kernel: FakeKernel,
    agent: RefCell<Agent<Program>>,
    flow: RefCell<Datapath>,
}

impl Asked {
    fn new() -> Asked {
        let kernel = FakeKernel::new(1 << 20);
        let flow = Datapath::of_window(&kernel, &setup());
        Asked {
            agent: agent("owl", &kernel),
            kernel,
            flow: RefCell::new(flow),
        }
    }

    /// The flow has been answered at 2 ms, and sends a request again from 6 ms on.
    fn answered() -> Asked {
        let asked = Asked::new();
        asked.acknowledge(at(2));
        asked.kernel.clear_wake();
        asked.turn(|_| {});
        asked
    }

    fn acknowledge(&self, now: Time) {
        self.kernel.set_now(now);
        self.flow.borrow_mut().on_feedback(&feedback(now));
    }

    /// Runs a turn, and calls `happens` with its number after each reading.
    fn turn(&self, happens: impl Fn(u32)) -> Wait {
        let readings = Cell::new(0);
        let wait = turn(&self.agent, |_| {
            let mut count = 0;
            while let Some(message) = self.kernel.next_message() {
                self.agent.borrow_mut().on_message(&message);
                count += 1;
            }
            happens(readings.replace(readings.get() + 1));
            Ok(count)
        });
        wait.expect("messages can be read")
    }

    /// Runs a turn that ends with a nap: as many messages as it may read come just before it
    /// sleeps.
    fn much_at_second_look(&self) -> Wait {
        let readings = Cell::new(0);
        let wait = turn(&self.agent, |most| {
            let is_second = readings.replace(readings.get() + 1) == 1;
            Ok(if is_second { most } else { 0 })
        });
        wait.expect("messages can be read")
    }
}

/// The flow's program knows that the agent is awake, and does not wake it.
#[test]
fn a_request_between_two_looks_is_answered_before_the_agent_sleeps() {
    let asked = Asked::answered();
    let before = count(&asked.agent, "actions");
    asked.turn(|reading| {
        if reading == 0 {
            asked.acknowledge(at(8));
        }
    });
    assert!(!asked.kernel.is_woken());
    assert_eq!(count(&asked.agent, "actions"), before + 1);
}

#[test]
fn a_request_wakes_a_sleeping_agent() {
    let asked = Asked::answered();
    assert!(matches!(asked.turn(|_| {}), Wait::Sleep(_)));
    asked.acknowledge(at(8));
    assert!(asked.kernel.is_woken());
}

/// The agent is awake again soon, and no flow has to wake it until then.
#[test]
fn an_agent_with_many_messages_naps_and_counts_as_awake() {
    let asked = Asked::answered();
    let wait = asked.much_at_second_look();
    assert!(matches!(wait, Wait::Nap(_)), "{wait:?}");
    asked.acknowledge(at(8));
    assert!(!asked.kernel.is_woken());
}

/// New settings overwrite the flag for that.
#[test]
fn an_agent_with_new_policies_counts_as_awake() {
    let asked = Asked::answered();
    asked.much_at_second_look();
    let policies = Policies::read(["owl"]).expect("a policy");
    let taken = asked
        .agent
        .borrow_mut()
        .take_policies(Some(policies), SavedStates::default());
    taken.expect("they fit together");
    asked.turn(|reading| {
        if reading == 0 {
            assert_eq!(asked.kernel.settings().is_awake, 1);
        }
    });
}

/// The acknowledgements of a flow come regularly. The agent has a turn when its wait ends, or when
/// a hook has woken it. Returns its decisions, and how often it was woken.
fn served_regularly(policy: &str, every: Duration, rtt: Duration) -> (u64, u64) {
    let kernel = FakeKernel::new(1 << 20);
    let agent = agent(policy, &kernel);
    let place = kernel.take_slot().expect("a slot");
    assert!(kernel.open(place, &setup()), "room in the ring");
    let (mut turns, mut asked) = (Time::ZERO, None);
    for acked in 1..=2000_u32 {
        let now = Time::ZERO + every * u64::from(acked);
        while turns < now {
            kernel.set_now(turns);
            let wait = turn(&agent, |_| {
                let messages = std::iter::from_fn(|| kernel.next_message());
                let read = messages.map(|message| agent.borrow_mut().on_message(&message));
                Ok(read.count())
            });
            turns += match wait.expect("messages can be read") {
                Wait::Look => Duration::from_micros(10),
                Wait::Nap(time) | Wait::Sleep(time) => time.max(Duration::from_micros(6)),
            };
        }
        let action = kernel.action(place.slot, 0).unwrap_or_default();
        let is_answered = asked.is_none_or(|asked: Time| action.answered_ns >= asked.as_nanos());
        let asks = is_answered && now.as_nanos() >= action.due_ns;
        let rtt_us = (rtt.as_nanos() / 1000) as u32;
        let record = Record {
            now_ns: now.as_nanos(),
            sent: acked + 10,
            delivered: acked,
            in_flight: 10,
            cwnd: 10,
            mss: 1500,
            rtt_us,
            srtt_us: rtt_us,
            rttvar_us: 10,
            min_rtt_us: rtt_us,
            rate_delivered: 10,
            rate_interval_us: rtt_us,
            acks: 1,
            flags: Record::STEERABLE | if asks { Record::ASKS } else { 0 },
            ..Record::default()
        };
        kernel.set_now(now);
        assert!(kernel.report(place, record), "room in the ring");
        if asks {
            asked = Some(now);
            kernel.wake();
        }
        if kernel.is_woken() {
            kernel.clear_wake();
            turns = turns.min(now + Duration::from_micros(30));
        }
    }
    (count(&agent, "actions"), count(&agent, "wakes"))
}

/// Aurora's clock runs out each half of a round trip, between two acknowledgements.
#[test]
fn a_request_after_a_clock_ran_out_does_not_wake_the_agent() {
    let (decisions, wakes) = served_regularly("aurora", ms(4), ms(2));
    assert!(decisions >= 1900, "{decisions}");
    // The first requests wake the agent, until it knows their spacing.
    assert!(wakes <= 40, "{wakes} wakes");
}

/// Rax decides with each acknowledgement.
#[test]
fn requests_with_each_acknowledgement_do_not_wake_the_agent() {
    let (decisions, wakes) = served_regularly("rax-pretrained", ms(4), ms(20));
    assert!(decisions >= 1900, "{decisions}");
    // The first requests wake the agent, until it knows their spacing.
    assert!(wakes <= 40, "{wakes} wakes");
}
