//! Measures how long a user's flows wait for answers while flows of other users send more requests
//! than the agent can answer.
//!
//! The agent's clock moves only with its own answers, each of which takes as long as the test says.

use std::cell::RefCell;
use std::collections::HashMap;
use std::iter;
use std::sync::{Arc, Mutex};

use headway_cc::testing::setup;
use headway_cc::{Duration, Time};
use headway_fixed::Int8;
use headway_kernel::abi::{ActionSlot, CounterValues, Known, Message, SettingValues};
use headway_kernel::{FakeKernel, FlowSlot};
use headway_policy::Record;
use headwayd::agent::{Agent, AgentOptions, Kernel, Policies, Store, Wait, turn};
use headwayd::{Controller, Result};

use crate::host::ms;

/// The time of a turn (`Shares::TURN`).
const TURN: Duration = Duration::from_millis(1);
/// The time between two looks of an agent that is awake.
const LOOKS_IN: Duration = Duration::from_micros(20);
/// The time between two acknowledgements of a flow.
const APART: Duration = Duration::from_millis(4);

/// The answers that the agent has written into slots, and when.
type Answers = Arc<Mutex<Vec<(Time, u16, ActionSlot)>>>;

/// A program whose answers take time.
struct Costly {
    controller: Controller,
    kernel: FakeKernel,
    /// The time that an answer takes, by slot. Answers in other slots take no time.
    costs: Arc<Mutex<HashMap<u16, Duration>>>,
    answers: Answers,
    /// The time between two looks at the clock: what the agent does between them takes this long.
    step: Duration,
}

impl Kernel for Costly {
    fn controller(&self) -> Controller {
        self.controller
    }

    fn name(&self) -> &str {
        self.controller.name()
    }

    fn version(&self) -> &str {
        "costly"
    }

    fn now(&self) -> Time {
        self.kernel.set_now(self.kernel.now() + self.step);
        self.kernel.now()
    }

    fn write_slot(&self, slot: u16, action: &ActionSlot) {
        let costs = self.costs.lock().expect("no panic");
        let cost = costs.get(&slot).copied().unwrap_or_default();
        self.kernel.set_now(self.kernel.now() + cost);
        let mut answers = self.answers.lock().expect("no panic");
        answers.push((self.kernel.now(), slot, *action));
    }

    fn counters(&self) -> CounterValues {
        self.kernel.counters()
    }

    fn remember(&self, message: &Message) {
        self.kernel.remember(message);
    }

    fn known(&self) -> Vec<Known> {
        self.kernel.known()
    }

    fn configure(&mut self, settings: SettingValues, own_policy: Option<&Int8>) -> Result<()> {
        Ok(self.kernel.configure(settings, own_policy)?)
    }

    fn set_served_until(&self, until: Time) {
        self.kernel.set_served_until(until);
    }

    fn set_awake(&self, is_awake: bool) {
        self.kernel.set_awake(is_awake);
    }
}

/// A flow, as its program sees it.
struct Flow {
    user: u32,
    place: FlowSlot,
    acked: u32,
    /// The time of a request without an answer.
    asked: Option<Time>,
    /// The first acknowledgement from this time on is a request.
    due: Time,
    /// The time at which each request came, or a decision was due, and how long its answer took.
    waited: Vec<(Time, Duration)>,
}

impl Flow {
    /// An acknowledgement arrives.
    fn acknowledge(&mut self, now: Time, kernel: &FakeKernel) {
        self.acked += 1;
        let asks = now >= self.due && self.asked.is_none();
        if asks {
            self.asked = Some(now);
        }
        let record = Record {
            now_ns: now.as_nanos(),
            sent: self.acked + 10,
            delivered: self.acked,
            in_flight: 10,
            cwnd: 10,
            mss: 1500,
            rtt_us: 20_000,
            srtt_us: 20_000,
            rttvar_us: 1000,
            min_rtt_us: 20_000,
            rate_delivered: 10,
            rate_interval_us: 20_000,
            acks: 1,
            flags: Record::STEERABLE | if asks { Record::ASKS } else { 0 },
            ..Record::default()
        };
        assert!(kernel.report(self.place, record), "room in the ring");
    }
}

/// Users: each has a number, a number of flows, and the time that an answer takes.
struct Users<'a>(&'a [(u32, usize, Duration)]);

/// Runs the users' flows for this time. Returns the flows, and how many reports had to wait.
fn served(policy: &str, users: &Users<'_>, lasts: Duration) -> (Vec<Flow>, u64) {
    let kernel = FakeKernel::new(64 << 20);
    let policies = Policies::read([policy]).expect("a policy");
    let (costs, answers) = (Arc::default(), Answers::default());
    let mut program = Costly {
        controller: policies.controller(),
        kernel: kernel.clone(),
        costs: Arc::clone(&costs),
        answers: Arc::clone(&answers),
        step: Duration::ZERO,
    };
    policies
        .configure(&mut program, AgentOptions::default())
        .expect("limits in their ranges");
    let (store, options) = (Store::default(), AgentOptions::default());
    let policies = Some(policies);
    let agent = Agent::new(program, policies, None, store, options, 64, Time::ZERO);
    let agent = RefCell::new(agent);
    let mut flows = Vec::new();
    for (user, count, cost) in users.0 {
        kernel.set_user(*user);
        for _ in 0..*count {
            let place = kernel.take_slot().expect("a slot");
            assert!(kernel.open(place, &setup()), "room in the ring");
            costs.lock().expect("no panic").insert(place.slot, *cost);
            flows.push(Flow {
                user: *user,
                place,
                acked: 0,
                asked: None,
                due: Time::ZERO,
                waited: Vec::new(),
            });
        }
    }
    let (mut next, end) = (Time::ZERO + APART, Time::ZERO + lasts);
    while kernel.now() < end {
        // These acknowledgements came while the agent was at work.
        while next <= kernel.now() {
            (flows.iter_mut()).for_each(|flow| flow.acknowledge(next, &kernel));
            next += APART;
        }
        let wait = turn(&agent, |most| {
            let messages = iter::from_fn(|| kernel.next_message()).take(most);
            let read = messages.map(|message| agent.borrow_mut().on_message(&message));
            Ok(read.count())
        });
        let wait = wait.expect("messages can be read");
        for (now, slot, action) in answers.lock().expect("no panic").drain(..) {
            let flow = &mut flows[usize::from(slot)];
            let due = flow.asked.take().unwrap_or(flow.due);
            if due > Time::ZERO {
                flow.waited.push((due, now.since(due)));
            }
            flow.due = Time::from_nanos(action.due_ns);
        }
        let rests = match wait {
            Wait::Look => LOOKS_IN,
            Wait::Nap(time) | Wait::Sleep(time) => time,
        };
        kernel.set_now(kernel.now().max((kernel.now() + rests).min(next)));
    }
    let counters = agent.borrow().counters(kernel.now())["counters"].clone();
    (flows, counters["delayed"].as_u64().expect("a count"))
}

/// The number of answers for a user's flows, and the longest wait for one.
fn of_user(flows: &[Flow], user: u32) -> (usize, Duration) {
    since(Time::ZERO, flows, user)
}

/// The number of answers to requests since `begun` for a user's flows, and the longest wait for
/// one.
fn since(begun: Time, flows: &[Flow], user: u32) -> (usize, Duration) {
    let flows = flows.iter().filter(|flow| flow.user == user);
    let waited = flows.flat_map(|flow| flow.waited.iter());
    let waited: Vec<Duration> = (waited.filter(|(asked, _)| *asked >= begun))
        .map(|(_, waited)| *waited)
        .collect();
    let longest = waited.iter().max().expect("an answer");
    (waited.len(), *longest)
}

const LASTS: Duration = Duration::from_millis(3000);
const OWN_COST: Duration = Duration::from_micros(20);

/// Decisions are very slow or very many. Owl decides at requests, and Aurora's clock decides. A
/// request that comes just after the ring was read waits for the rest of that turn and the decision
/// that overruns it, and is next then.
#[test]
fn a_user_with_too_many_requests_does_not_delay_others() {
    for policy in ["owl", "aurora"] {
        for (count, cost) in [(500, ms(5)), (3000, Duration::from_micros(50))] {
            let users = Users(&[(1000, count, cost), (1001, 1, OWN_COST)]);
            let (flows, delayed) = served(policy, &users, LASTS);
            let (asked, longest) = of_user(&flows, 1001);
            let bound = TURN + cost + OWN_COST;
            assert!(longest <= bound, "{policy}, {cost:?}: {longest:?}");
            assert!(asked >= 50, "{policy}, {cost:?}: {asked} answers");
            // The user's own flows wait far longer than the guard permits, because there is not
            // enough time for them.
            let (_, longest) = of_user(&flows, 1000);
            assert!(longest > ms(100), "{policy}, {cost:?}: {longest:?}");
            assert!(delayed > 1000, "{policy}, {cost:?}: {delayed}");
        }
    }
}

/// None of the agent's time is lost.
#[test]
fn a_user_without_competitors_has_all_the_time() {
    for (count, cost) in [(500, ms(5)), (3000, Duration::from_micros(50))] {
        let (flows, _) = served("owl", &Users(&[(1000, count, cost)]), LASTS);
        let answers = flows.iter().map(|flow| flow.waited.len()).sum::<usize>();
        let busy = cost * answers as u64;
        assert!(busy >= LASTS - APART * 2, "{busy:?} of {LASTS:?}");
        // Each of the user's flows has its turn.
        let fewest = flows.iter().map(|flow| flow.waited.len()).min();
        assert!(
            fewest >= Some(answers / count * 3 / 4),
            "{fewest:?} of {answers}"
        );
    }
}

/// Two users with too many requests have half of the time each, and root has no more.
#[test]
fn users_who_compete_have_the_same_time() {
    let cost = Duration::from_micros(500);
    let users = Users(&[(0, 1000, cost), (1000, 100, cost), (1001, 1, OWN_COST)]);
    let (flows, _) = served("owl", &users, LASTS);
    let (root, _) = of_user(&flows, 0);
    let (other, _) = of_user(&flows, 1000);
    assert!(root.abs_diff(other) <= root / 50, "{root} and {other}");
    let (_, longest) = of_user(&flows, 1001);
    let bound = TURN + cost + OWN_COST;
    assert!(longest <= bound, "{longest:?}");
}

/// A range in /etc/subuid makes one person many users. A user who needs less than an equal part of
/// the time is next when a turn is over, however many others there are. When all users begin at
/// once, each of the others may have a decision first.
#[test]
fn many_users_with_too_many_requests_do_not_delay_others() {
    const USERS: u32 = 200;
    // An equal part is 20 us of every 4 ms.
    const OWN_COST: Duration = Duration::from_micros(10);
    for policy in ["owl", "aurora"] {
        for (count, us, lone) in [(1, 15, 300_000), (1, 250, 1001), (10, 100, 300_000)] {
            let cost = Duration::from_micros(us);
            let greedy = (100_000..100_000 + USERS).map(|user| (user, count, cost));
            let users: Vec<_> = greedy.clone().chain([(lone, 1, OWN_COST)]).collect();
            let (flows, _) = served(policy, &Users(&users), LASTS);
            let case = format!("{policy}, {count} flows, {cost:?}");
            let (_, longest) = of_user(&flows, lone);
            let bound = cost * u64::from(USERS) + TURN + OWN_COST;
            assert!(longest <= bound, "{case}: {longest:?}");
            let (asked, longest) = since(Time::ZERO + ms(1000), &flows, lone);
            let bound = TURN + cost + OWN_COST;
            assert!(longest <= bound, "{case}: {longest:?}");
            assert!(asked >= 30, "{case}: {asked} answers");
            // The others have the rest in equal parts.
            let all = greedy.map(|(user, ..)| of_user(&flows, user).0);
            let (fewest, most) = (all.clone().min(), all.max());
            assert!(
                most <= fewest.map(|fewest| fewest * 11 / 10 + 2),
                "{case}: {fewest:?}, {most:?}"
            );
        }
    }
}

/// There is enough time for these users.
#[test]
fn reports_wait_only_under_overload() {
    let cost = Duration::from_micros(10);
    let users = Users(&[(1000, 50, cost), (1001, 40, cost)]);
    let (flows, delayed) = served("owl", &users, LASTS);
    assert_eq!(delayed, 0);
    assert!(of_user(&flows, 1000).1 < ms(1));
}

/// A user who opens and closes flows all the time asks for no decision, but the ends take time. The
/// ends of ten flows fill a turn here.
#[test]
fn a_user_is_charged_for_the_end_of_a_flow() {
    let (kernel, answers) = (FakeKernel::new(1 << 20), Answers::default());
    let policies = Policies::read(["owl"]).expect("a policy");
    let mut program = Costly {
        controller: policies.controller(),
        kernel: kernel.clone(),
        costs: Arc::default(),
        answers: Arc::clone(&answers),
        step: TURN / 10,
    };
    policies
        .configure(&mut program, AgentOptions::default())
        .expect("limits in their ranges");
    let (store, options) = (Store::default(), AgentOptions::default());
    let agent = Agent::new(
        program,
        Some(policies),
        None,
        store,
        options,
        64,
        Time::ZERO,
    );
    let agent = RefCell::new(agent);
    let serve = || {
        turn(&agent, |most| {
            let messages = iter::from_fn(|| kernel.next_message()).take(most);
            Ok((messages.map(|message| agent.borrow_mut().on_message(&message))).count())
        })
        .expect("messages can be read");
        let counters = agent.borrow().counters(kernel.now());
        let delayed = counters["counters"]["delayed"].as_u64();
        (
            delayed.expect("a count"),
            answers.lock().expect("no panic").len(),
        )
    };
    let report = |place, flags| {
        let record = Record {
            now_ns: kernel.now().as_nanos(),
            acks: 1,
            flags,
            ..Record::default()
        };
        assert!(kernel.report(place, record), "room in the ring");
    };
    let begin = |user| {
        kernel.set_user(user);
        let place = kernel.take_slot().expect("a slot");
        assert!(kernel.open(place, &setup()), "room in the ring");
        report(place, 0);
        place
    };
    let (flows, other): (Vec<_>, _) = ((0..10).map(|_| begin(1000)).collect(), begin(1001));
    // The flows begin, in a few turns.
    for _ in 0..10 {
        serve();
    }
    let (before, answers) = serve();
    assert_eq!(answers, 0);
    for place in flows {
        kernel.close(place, Record::default());
    }
    report(other, Record::STEERABLE | Record::ASKS);
    // The turn is over when the other user's request is read. The next turn begins with it.
    assert_eq!(serve(), (before + 1, 0));
    assert_eq!(serve(), (before + 1, 1));
}
