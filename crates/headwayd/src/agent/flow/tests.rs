use super::*;

fn flow(spec: &str) -> Flow {
    let open = Open {
        mss: 1500,
        initial_cwnd: 10,
        ..Open::default()
    };
    let served = Served::read(spec).expect("a model of ours");
    Flow::new(&open, Some(Arc::new(served)), None).expect("a flow")
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

/// A flow whose clock runs out; and when.
fn with_clock() -> (Flow, u64) {
    let mut flow = flow("aurora");
    flow.on_record(&record(1000, 0));
    let Decides::Policy(_, Carried::Net(decider)) = &flow.decides else {
        panic!("it has a policy")
    };
    let due = decider.due().as_nanos() / 1000;
    assert!(flow.has_clock() && due > 1000);
    (flow, due)
}

#[test]
fn what_a_clock_decides_answers_the_record_that_came_after() {
    let (mut flow, due) = with_clock();
    let (slot, is_decision) = flow.decide(&[], us(due), us(due + 300), None);
    assert!(is_decision);
    // As the guard sees it: not older than the question.
    assert_eq!(slot.decided_ns, (due + 300) * 1000);
    flow.answered = us(due + 350);
    assert!(!flow.on_record(&record(due + 300, Record::ASKS)));
    assert!(!flow.on_record(&record(due + 900, 0)));
}

#[test]
fn a_question_that_came_while_a_clock_answered_is_answered_after_that() {
    let (mut flow, due) = with_clock();
    flow.decide(&[], us(due), us(due), None);
    flow.answered = us(due + 50);
    // The flow has not seen the answer yet: another would take its place.
    assert!(!flow.on_record(&record(due + 20, Record::ASKS)));
    assert!(flow.on_record(&record(due + 60, 0)));
    let (slot, is_decision) = flow.decide(&[], us(due + 60), us(due + 60), None);
    assert!(!is_decision);
    assert!(slot.decided_ns > (due + 20) * 1000);
    flow.answered = us(due + 61);
    assert!(!flow.on_record(&record(due + 70, 0)));
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
fn a_verdict_that_was_lost_is_seen_in_the_records() {
    let verdict = |at: u64, reason| Verdict {
        now_ns: at * 1000,
        reason,
        trips: 1,
        ..Verdict::default()
    };
    let mut flow = flow("owl");
    let guard = |flow: &Flow| flow.describe("headway_owl", us(99))["guard"].clone();
    flow.on_record(&record(10, 0));
    assert_eq!(guard(&flow), "policy");
    flow.on_record(&record(20, Record::TRIPPED));
    assert_eq!(guard(&flow), "cubic");
    flow.on_verdict(&verdict(30, 0));
    assert_eq!(guard(&flow), "policy");
    // Its own record comes after it.
    flow.on_verdict(&verdict(40, 1));
    assert_eq!(guard(&flow), "cubic");
    flow.on_record(&record(40, Record::TRIPPED));
    assert_eq!(guard(&flow), "cubic");
    flow.on_record(&record(50, 0));
    assert_eq!(guard(&flow), "policy");
}

#[test]
fn another_policy_keeps_what_was_seen_if_it_sees_the_same() {
    let mut flow = flow("owl");
    let served = |spec: &str| Arc::new(Served::read(spec).expect("a model of ours"));
    let next = flow.policy_of(served("owl:online=true"), None);
    assert_eq!(flow.policy(), Some("owl"));
    flow.take_policy(next.expect("a policy").expect("another"));
    assert_eq!(flow.policy(), Some("owl:online=true"));
    assert!(flow.learned().is_some());
    let next = flow.policy_of(served("aurora"), None);
    flow.take_policy(next.expect("a policy").expect("another"));
    assert_eq!(flow.policy(), Some("aurora"));
}

/// One that changes its controller in mid-life is one that begins: what it did before was not this policy's.
#[test]
fn what_was_counted_before_is_not_the_policys() {
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
    // Of one that begins all counts, also an answer to its whole first window.
    let first = Record {
        sent: 10,
        delivered: 11,
        ..Record::default()
    };
    assert_eq!(first.since(&counted_before(&first, &setup)), first);
}
