use std::sync::Mutex;

use headway_cc::testing::{MSS, feedback, rto, setup};
use headway_cc::{Congestion, CongestionControl, Feedback, Recovery};
use headway_kernel::{Datapath, FakeKernel};
use headway_policy::{Answer, Decider, Interval, Policy};

use super::*;

fn flow(spec: &str) -> Flow {
    let open = Open {
        mss: 1500,
        initial_cwnd: 10,
        ..Open::default()
    };
    let served = PolicySpec::read(spec).expect("a model of ours");
    Flow::new(&open, Some(Arc::new(served)), None).expect("a flow")
}

/// A record with a window of this many packets, all of which are in flight.
fn full(at: u64, cwnd: u32, flags: u32) -> Record {
    Record {
        delivered: at as u32,
        sent: at as u32 + cwnd,
        in_flight: cwnd,
        cwnd,
        ..record(at, flags)
    }
}

fn us(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

fn record(at: u64, flags: u32) -> Record {
    Record {
        now_ns: at * 1000,
        mss: 1500,
        delivered: at as u32 / 1000,
        rtt_us: 20_000,
        srtt_us: 20_000,
        min_rtt_us: 20_000,
        acks: 1,
        flags: flags | Record::STEERABLE,
        ..Record::default()
    }
}

/// A flow with a clock, and the time in us at which that runs out.
fn with_clock() -> (Flow, u64) {
    let mut flow = flow("aurora");
    flow.on_record(&record(1000, 0));
    let Driver::Policy(_, FlowPolicy::Net(decider)) = &flow.driver else {
        panic!("it has a policy")
    };
    let due = decider.due().as_nanos() / 1000;
    assert!(flow.has_clock() && due > 1000);
    (flow, due)
}

#[test]
fn a_late_clocks_decision_answers_a_request_that_came_after_it() {
    let (mut flow, due) = with_clock();
    let (slot, is_decision) = flow.decide(&[], us(due), us(due + 300), None);
    assert!(is_decision);
    // The guard compares this with the time of the request.
    assert_eq!(slot.decided_ns, (due + 300) * 1000);
    flow.last_answer = us(due + 350);
    assert!(!flow.on_record(&record(due + 300, Record::ASKS)));
    assert!(!flow.on_record(&record(due + 900, 0)));
}

#[test]
fn a_request_during_a_clocks_answer_is_answered_with_the_next_record() {
    let (mut flow, due) = with_clock();
    flow.decide(&[], us(due), us(due), None);
    flow.last_answer = us(due + 50);
    // The flow has not found the clock's answer yet, which another answer would replace.
    assert!(!flow.on_record(&record(due + 20, Record::ASKS)));
    assert!(flow.on_record(&record(due + 60, 0)));
    let (slot, is_decision) = flow.decide(&[], us(due + 60), us(due + 60), None);
    assert!(!is_decision);
    assert!(slot.decided_ns > (due + 20) * 1000);
    flow.last_answer = us(due + 61);
    assert!(!flow.on_record(&record(due + 70, 0)));
}

/// The agent may have been away for longer than an answer is valid. The answer's age counts from
/// the record that it answers, and not from the clock's time.
#[test]
fn a_very_late_clocks_answer_expires_only_after_its_full_time() {
    let (mut flow, due) = with_clock();
    let read = due + 3_000_000;
    let (slot, is_decision) = flow.decide(&[], us(due), us(read), None);
    assert!(is_decision);
    assert_eq!(slot.expires_ns, read * 1000 + EXPIRES_AFTER.as_nanos());
}

#[test]
fn the_clock_of_a_silent_flow_stands_still() {
    let (mut flow, due) = with_clock();
    assert!(flow.is_due(us(due + 299_000_000)));
    let late = due + 301_000_000;
    assert!(!flow.is_due(us(late)));
    flow.on_record(&record(late, 0));
    assert!(flow.is_due(us(late)));
}

#[test]
fn records_show_a_verdict_that_was_lost() {
    let verdict = |at: u64, reason| VerdictMessage {
        now_ns: at * 1000,
        reason,
        trips: 1,
        ..VerdictMessage::default()
    };
    let mut flow = flow("owl");
    let guard = |flow: &Flow| flow.describe("headway_owl", us(99))["guard"].clone();
    flow.on_record(&record(10, 0));
    assert_eq!(guard(&flow), "policy");
    flow.on_record(&record(20, Record::TRIPPED));
    assert_eq!(guard(&flow), "cubic");
    flow.on_verdict(&verdict(30, 0));
    assert_eq!(guard(&flow), "policy");
    // The verdict's own record comes after it.
    flow.on_verdict(&verdict(40, 1));
    assert_eq!(guard(&flow), "cubic");
    flow.on_record(&record(40, Record::TRIPPED));
    assert_eq!(guard(&flow), "cubic");
    flow.on_record(&record(50, 0));
    assert_eq!(guard(&flow), "policy");
}

#[test]
fn a_policy_with_the_same_features_keeps_the_observations() {
    let mut flow = flow("owl");
    let served = |spec: &str| Arc::new(PolicySpec::read(spec).expect("a model of ours"));
    let next = flow.policy_of(served("owl:online=true"), None);
    assert_eq!(flow.policy(), Some("owl"));
    flow.take_policy(next.expect("a policy").expect("another policy"));
    assert_eq!(flow.policy(), Some("owl:online=true"));
    assert!(flow.learned().is_some());
    let next = flow.policy_of(served("aurora"), None);
    flow.take_policy(next.expect("a policy").expect("another policy"));
    assert_eq!(flow.policy(), Some("aurora"));
}

/// Gives the flow twelve seconds of records, which are over a thousand decisions.
pub fn teach_from(flow: &mut Flow, first: u64) {
    let before = flow.decisions;
    for at in first..first + 3000 {
        let at = at * 4000;
        flow.on_record(&full(at, 20 + (at / 4000 % 7) as u32, Record::ASKS));
        flow.decisions += u64::from(flow.decide(&[], us(at), us(at), None).1);
    }
    let decisions = flow.decisions - before;
    assert!(decisions > 1000, "{decisions}");
}

/// A flow that has learned from over a thousand decisions.
fn taught() -> Flow {
    let mut flow = flow("owl:online=true");
    let begins = flow.learned().expect("it learns").1;
    teach_from(&mut flow, 1);
    assert_ne!(flow.learned().expect("it learns").1, begins);
    assert!(flow.experience() > 0);
    let told = flow.describe("headway_owl", us(1));
    assert_eq!(told["updates"], flow.experience());
    flow
}

#[test]
fn a_reload_keeps_a_learner_of_the_same_model() {
    let flow = taught();
    let served = |spec: &str| Arc::new(PolicySpec::read(spec).expect("a model of ours"));
    let same = flow.policy_of(served("owl:online=true"), None);
    assert!(same.expect("a policy").is_none());
}

#[test]
fn another_policy_counts_gradient_steps_and_decisions_from_zero() {
    let served = |spec: &str| Arc::new(PolicySpec::read(spec).expect("a model of ours"));
    for spec in ["owl:online=true:epsilon=0.02", "owl"] {
        let mut flow = taught();
        let next = flow.policy_of(served(spec), None).expect("a policy");
        flow.take_policy(next.expect("another policy"));
        assert_eq!(flow.policy(), Some(spec));
        assert_eq!((flow.experience(), flow.decisions), (0, 0));
    }
    // A frozen model that is read again is the same.
    let mut flow = flow("owl");
    flow.decisions = 30;
    let next = flow.policy_of(served("owl"), None).expect("a policy");
    flow.take_policy(next.expect("another of the same"));
    assert_eq!(flow.decisions, 30);
}

/// The new flow counts the gradient steps of the flow that it starts from, and its own.
#[test]
fn a_flow_starts_from_what_another_learned_and_from_its_count() {
    let taught = taught();
    let (served, file) = taught.learned().expect("it learns");
    let learned = served.experience(&file).expect("its own file");
    assert_eq!(learned.updates(), taught.experience());
    let open = Open {
        mss: 1500,
        initial_cwnd: 10,
        ..Open::default()
    };
    let next = Flow::new(&open, Some(Arc::new(served.clone())), Some(&learned));
    let next = next.expect("a flow");
    assert_eq!(next.experience(), taught.experience());
    assert_eq!(next.learned().expect("it learns").1, file);
}

/// A connection may change its controller in mid-life. The policy does not see what it did before.
#[test]
fn counts_from_before_the_policy_are_left_out() {
    let setup = flow("owl").setup;
    let first = Record {
        sent: 200_050,
        delivered: 200_000,
        lost: 20,
        in_flight: 30,
        ..Record::default()
    };
    let then = first.since(&counted_before(&first, &setup));
    assert_eq!((then.sent, then.delivered, then.lost), (30, 0, 0));
    // For a new connection everything counts, even an acknowledgement of its whole first window.
    let first = Record {
        sent: 10,
        delivered: 11,
        ..Record::default()
    };
    assert_eq!(first.since(&counted_before(&first, &setup)), first);
}

/// The program sends a request again each second, because a policy may decide then.
#[test]
fn program_learns_that_no_policy_decides() {
    let mut flow = Flow::without_policy(&Open::default());
    assert!(flow.on_record(&record(1000, Record::ASKS)));
    let (slot, is_decision) = flow.decide(&[], us(1000), us(1000), None);
    assert_eq!(
        (slot.kind, is_decision),
        (headway_kernel::abi::LEAVE, false)
    );
    assert_eq!(slot.due_ns, 1_001_000_000);
    assert!(flow.policy().is_none() && !flow.has_clock());
    let served = Arc::new(PolicySpec::read("rax").expect("rax"));
    let next = flow.policy_of(served, None).expect("a policy");
    flow.take_policy(next.expect("another policy"));
    assert_eq!(flow.policy(), Some("rax"));
}

/// The guard gives learners longer limits, and knows them by the flag of the answer.
#[test]
fn each_answer_says_whether_its_policy_learns() {
    let flags = |flow: &mut Flow, at: u64| {
        flow.on_record(&record(at, Record::ASKS));
        flow.decide(&[], us(at), us(at), None).0.flags
    };
    for (spec, learner) in [("owl", 0), ("owl:online=true", LEARNER), ("rax", LEARNER)] {
        assert_eq!(flags(&mut flow(spec), 1000), learner, "{spec}");
    }
    let mut flow = flow("owl:online=true");
    let served = Arc::new(PolicySpec::read("owl").expect("a model of ours"));
    let next = flow.policy_of(served, None).expect("a policy");
    flow.take_policy(next.expect("another policy"));
    assert_eq!(flags(&mut flow, 2000), 0, "after a reload");
    assert_eq!(flags(&mut Flow::without_policy(&Open::default()), 1000), 0);
}

/// Records with which a learner diverges: another controller gives the flow a window beyond the
/// learner's largest.
pub fn runaway(at: u64) -> [Record; 3] {
    let away = full(at + 1, 5000, Record::TRIPPED);
    [full(at, 10, 0), away, full(at + 2, 5000, 0)]
}

#[test]
fn a_diverged_learner_leaves_the_flow_at_once_and_gets_it_back() {
    let mut flow = flow("rax");
    let told = |flow: &mut Flow, at: u64| {
        let (slot, is_decision) = flow.decide(&[], us(at), us(at), None);
        (slot.kind, is_decision)
    };
    for record in runaway(10) {
        assert!(!flow.has_diverged());
        flow.on_record(&record);
    }
    assert!(flow.has_diverged());
    assert_eq!(told(&mut flow, 12), (headway_kernel::abi::LEAVE, false));
    assert_eq!(flow.next_query(), us(1_000_012), "requests go on");
    let described = flow.describe("headway_window", us(99));
    assert_eq!(described["divergences"], 1);
    // A divergence is reported once.
    flow.on_record(&full(13, 20, Record::TRIPPED));
    assert!(!flow.has_diverged());
    // The learner acts again, and starts from the present window.
    flow.on_record(&full(11_000_000, 20, Record::TRIPPED | Record::ASKS));
    let (slot, is_decision) = flow.decide(&[], us(11_000_000), us(11_000_000), None);
    assert_eq!(
        (slot.kind, slot.values[0], is_decision),
        (headway_kernel::abi::SET_CWND, 20, true)
    );
    assert!(!flow.has_diverged());
}

/// A learner learns only from packets that are sent under its own actions, and starts from the
/// flow's present window.
#[test]
fn another_learner_does_not_see_the_flows_history() {
    for before in ["owl", "rax", "aurora"] {
        let mut flow = flow(before);
        (1..=3000).for_each(|at| {
            flow.on_record(&full(at, 40, 0));
        });
        let served = Arc::new(PolicySpec::read("rax:alpha=2").expect("rax"));
        let next = flow.policy_of(served, None).expect("a policy");
        flow.take_policy(next.expect("another policy"));
        flow.on_record(&full(3001, 40, Record::ASKS));
        let (slot, _) = flow.decide(&[], us(3001), us(3001), None);
        assert_eq!(slot.values[0], 40, "after {before}");
        // The acknowledgement of a packet brings one action.
        flow.on_record(&full(3002, 40, Record::ASKS));
        let (slot, _) = flow.decide(&[], us(3002), us(3002), None);
        assert!((35..=45).contains(&slot.values[0]), "{slot:?}");
        let told = flow.describe("headway_window", us(3002));
        assert_eq!(
            (&told["updates"], &told["forgotten_actions"]),
            (&0.into(), &0.into())
        );
    }
}

/// Always chooses ten packets more, and counts how many of its answers were refused.
#[derive(Debug)]
struct Listens(Arc<Mutex<u64>>);

impl Policy for Listens {
    fn decide(&mut self, _: &[f32], _: &Interval) -> Option<Answer> {
        Some(Answer::from(6.0))
    }

    fn on_refused(&mut self) {
        *self.0.lock().expect("no panic") += 1;
    }
}

/// A flow with Owl's features and such a policy, and that policy's count.
fn listened() -> (Flow, Arc<Mutex<u64>>) {
    let mut flow = flow("owl");
    let Driver::Policy(served, _) = &flow.driver else {
        panic!("it has a policy")
    };
    let (served, refused) = (Arc::clone(served), Arc::default());
    let policy: Box<dyn Policy> = Box::new(Listens(Arc::clone(&refused)));
    let agent = served.agent().expect("an agent");
    let decider = Decider::new(agent, Time::ZERO, policy).expect("a shipped agent");
    flow.driver = Driver::Policy(served, FlowPolicy::Net(Box::new(decider)));
    (flow, refused)
}

/// In each case a decision of 4000 us is written at 4030 us, and these records follow.
#[test]
fn the_first_acknowledgement_after_an_answer_says_whether_it_was_carried_out() {
    let steerable = |at| record(at, 0);
    let repairs = |at| Record {
        flags: Record::RECOVERING,
        ..record(at, 0)
    };
    let timeout = |at| Record {
        acks: 0,
        ..repairs(at)
    };
    let tripped = |at| record(at, Record::TRIPPED);
    let expired = 4000 + EXPIRES_AFTER.as_nanos() / 1000;
    for (records, is_refused, what) in [
        (vec![steerable(4031), repairs(4500)], false, "at once"),
        (
            vec![repairs(4031), repairs(4500)],
            true,
            "in recovery, once",
        ),
        (vec![repairs(4031), steerable(4500)], true, "not later"),
        (vec![tripped(4031), tripped(4500)], true, "in fallback"),
        (
            vec![repairs(4020), steerable(4040)],
            false,
            "record before it",
        ),
        (vec![tripped(4020), steerable(4040)], true, "as Cubic left"),
        (
            vec![timeout(4031), steerable(4500)],
            false,
            "not at a timeout",
        ),
        (vec![timeout(4031), repairs(4500)], true, "after a timeout"),
        (vec![steerable(expired - 1)], false, "not expired"),
        (vec![steerable(expired)], true, "expired"),
        (vec![], false, "no record"),
    ] {
        let (mut flow, refused) = listened();
        flow.on_record(&record(4000, Record::ASKS));
        assert!(flow.decide(&[], us(4000), us(4000), None).1, "{what}");
        flow.last_answer = us(4030);
        for record in records {
            flow.on_record(&record);
        }
        let refused = *refused.lock().expect("no panic");
        assert_eq!(refused, u64::from(is_refused), "{what}");
    }
}

#[test]
fn an_answer_that_is_replaced_before_an_acknowledgement_was_not_carried_out() {
    let (mut flow, refused) = listened();
    for at in [4000, 8000] {
        flow.on_record(&record(at, Record::ASKS));
        assert!(flow.decide(&[], us(at), us(at), None).1);
        // The next record comes while this answer is written.
        flow.last_answer = us(8001);
    }
    assert_eq!(*refused.lock().expect("no panic"), 1);
}

/// The fake kernel's program carries out an answer by a window that is ten packets larger.
#[test]
fn a_policy_is_told_of_each_answer_that_was_not_carried_out() {
    let kernel = FakeKernel::new(1 << 20);
    kernel.set_served_until(Time::NEVER);
    let (mut flow, refused) = listened();
    let agent = PolicySpec::read("owl").expect("a model of ours");
    let agent = agent.agent().expect("an agent");
    let mut datapath = Datapath::new(&kernel, agent, &setup()).expect("Cubic");
    let (mut decisions, mut carried_out) = (0, 0);
    let mut step = |datapath: &mut Datapath, at: u64, recovery: Recovery| {
        let before = datapath.control().cwnd;
        datapath.on_feedback(&Feedback {
            acked_bytes: MSS,
            recovery,
            congestion: (at == 2000).then_some(Congestion::Loss),
            prior_in_flight: MSS * 10,
            ..feedback(us(at))
        });
        carried_out += u64::from(datapath.control().cwnd >= before + MSS * 10);
        while let Some(message) = kernel.next_message() {
            let Ok(Message::Report(report)) = Message::read(&message) else {
                continue;
            };
            let now = report.record.now();
            if flow.on_record(&report.record) {
                let (mut slot, is_decision) = flow.decide(&[], now, now, None);
                decisions += u64::from(is_decision);
                flow.last_answer = now + Duration::from_micros(30);
                slot.flow = report.header.flow;
                slot.answered_ns = flow.last_answer.as_nanos();
                kernel.write_slot(report.header.slot, &slot);
            }
        }
    };
    // A recovery of 14 ms begins each 48 ms, as each twelfth answer is written.
    for at in 1..150 {
        let recovery = match at % 24 {
            1..=7 => Recovery::Recovery,
            _ => Recovery::Open,
        };
        step(&mut datapath, at * 2000, recovery);
    }
    let while_recovering = *refused.lock().expect("no panic");
    // Nothing is acknowledged for longer than an answer is valid, and then there is a timeout.
    step(&mut datapath, 1_800_000, Recovery::Open);
    step(&mut datapath, 1_804_000, Recovery::Open);
    datapath.on_rto(&rto(us(1_805_000), 10, 1));
    step(&mut datapath, 1_806_000, Recovery::Loss);
    step(&mut datapath, 1_808_000, Recovery::Loss);
    assert_eq!(datapath.guard().trips(), 0);
    let refused = *refused.lock().expect("no panic");
    assert!(
        while_recovering > 2 && refused > while_recovering,
        "{refused}"
    );
    assert!(carried_out > 20, "{carried_out}");
    assert_eq!(refused, decisions - carried_out, "of {decisions}");
}
