use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::sync_channel;

use headway_cc::NetworkView;
use headway_kernel::FakeKernel;
use headway_kernel::abi::Header;
use headway_policy::Record;

use super::described::TOLD_AT_ONCE;
use super::folder::Folder;
use super::reload::RENEWED_AT_ONCE;
use super::*;
use crate::network::Path;
use program::Program;

#[path = "../../tests/agent/program.rs"]
mod program;

/// An agent of which at most `learners` flows learn at once.
fn agent(spec: &str, learners: usize) -> Agent<Program> {
    let policies = policies(spec);
    let program = Program {
        controller: policies.controller(),
        kernel: FakeKernel::new(0),
    };
    let (store, options) = (Store::default(), AgentOptions::default());
    Agent::new(
        program,
        Some(policies),
        None,
        store,
        options,
        learners,
        Time::ZERO,
    )
}

fn policies(spec: &str) -> Policies {
    Policies::read([spec]).expect("a policy")
}

/// Reloads part by part, as the control socket does.
fn reload(agent: &mut Agent<Program>, spec: &str) {
    let saved = SavedStates::default();
    (agent.take_policies(Some(policies(spec)), saved)).expect("they fit together");
    let mut next = Some(0);
    while let Some(from) = next {
        next = agent.renew(from);
    }
}

fn begin(agent: &mut Agent<Program>, number: u32) {
    let header = Header::of::<Open>(headway_kernel::abi::OPEN, number, number as u16);
    let open = Open {
        header,
        mss: 1500,
        initial_cwnd: 10,
        ..Open::default()
    };
    agent.begin(&Known::of(open));
}

fn end(agent: &mut Agent<Program>, number: u32) {
    let header = Header::of::<Report>(headway_kernel::abi::CLOSE, number, number as u16);
    let record = Default::default();
    agent.on_close(&Report { header, record });
}

/// Gives a flow over a thousand decisions, from record `from` on.
fn teach(agent: &mut Agent<Program>, number: u32, from: u64) {
    let flows = &mut agent.flows;
    flows.change(number as u16, |flow| flow::tests::teach_from(flow, from));
}

/// Reports a window beyond a learner's largest, after which Cubic controls the flow.
fn report_divergence(agent: &mut Agent<Program>, number: u32) {
    let header = Header::of::<Report>(headway_kernel::abi::REPORT, number, number as u16);
    let runaway = flow::tests::runaway(10);
    for record in runaway.into_iter().chain([runaway[1]]) {
        agent.on_report(&Report { header, record });
    }
}

/// Reports a second in which the flow had a thousand packets at its minimum RTT.
fn report_second(agent: &mut Agent<Program>, number: u32, second: u64, flags: u32) {
    report_at_rtt(agent, number, second, 20_000, flags);
}

/// Reports the same at this smoothed RTT. Above 20 ms there is a queue.
fn report_at_rtt(agent: &mut Agent<Program>, number: u32, second: u64, srtt_us: u32, flags: u32) {
    let header = Header::of::<Report>(headway_kernel::abi::REPORT, number, number as u16);
    let record = Record {
        now_ns: second * 1_000_000_000,
        sent: second as u32 * 1000 + 20,
        delivered: second as u32 * 1000,
        mss: 1500,
        cwnd: 20,
        in_flight: 20,
        srtt_us,
        min_rtt_us: 20_000,
        acks: 1,
        flags,
        ..Record::default()
    };
    agent.on_report(&Report { header, record });
}

fn counted(agent: &Agent<Program>, name: &str) -> u64 {
    agent.counters(Time::ZERO)["counters"][name]
        .as_u64()
        .expect("a count")
}

/// The policy of each flow, in the order of their slots.
fn policies_of(agent: &Agent<Program>) -> Vec<Option<&str>> {
    agent.flows.iter().map(Flow::policy).collect()
}

#[test]
fn a_flow_that_may_not_learn_and_has_no_model_has_no_policy() {
    let mut agent = agent("rax", 1);
    (1..=3).for_each(|number| begin(&mut agent, number));
    assert_eq!(policies_of(&agent), [Some("rax"), None, None]);
    assert_eq!(counted(&agent, "flows"), 3);
    assert_eq!(counted(&agent, "learners_refused"), 2);
    // The agent knows the flow.
    let header = Header::of::<Report>(headway_kernel::abi::REPORT, 3, 3);
    assert!(agent.flows.of(&header).is_some());
    // The flow that learned has ended. After a reload another one learns.
    end(&mut agent, 1);
    reload(&mut agent, "rax");
    assert_eq!(policies_of(&agent), [Some("rax"), None]);
    assert_eq!(counted(&agent, "learners"), 1);
}

/// The flow may have ended, and its CLOSE may have found no room in the ring.
#[test]
fn a_silent_learner_gives_up_its_place_and_begins_again_with_its_next_record() {
    let mut agent = agent("rax", 1);
    begin(&mut agent, 1);
    report_second(&mut agent, 1, 100, 0);
    let header = Header::of::<VerdictMessage>(headway_kernel::abi::VERDICT, 1, 1);
    let verdict = VerdictMessage {
        header,
        reason: 2,
        trips: 3,
        ..VerdictMessage::default()
    };
    agent.on_verdict(&verdict);
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    agent.on_timers(at(350));
    begin(&mut agent, 2);
    assert_eq!(policies_of(&agent), [Some("rax"), None]);
    agent.on_timers(at(401));
    begin(&mut agent, 3);
    // The second flow stays without a policy.
    assert_eq!(policies_of(&agent), [None, Some("rax")]);
    assert_eq!(counted(&agent, "learners"), 1);
    // The first flow had not ended.
    report_second(&mut agent, 1, 402, 0);
    assert_eq!(policies_of(&agent), [None, None, Some("rax")]);
    assert_eq!(agent.flows.iter().count(), 3);
    let verdict = agent.flows.get(1).map(|flow| flow.known().verdict.trips);
    assert_eq!(verdict, Some(3));
    assert_eq!(counted(&agent, "reports_of_unknown_flows"), 0);
}

#[test]
fn reload_admits_no_learner_beyond_the_limit() {
    let mut agent = agent("owl:online=true", 2);
    (1..=5).for_each(|number| begin(&mut agent, number));
    // The flows in the first slots do not learn.
    end(&mut agent, 1);
    end(&mut agent, 2);
    begin(&mut agent, 6);
    begin(&mut agent, 7);
    let (learns, frozen) = (Some("owl:online=true"), Some("owl:online=false"));
    let expected = [frozen, frozen, frozen, learns, learns];
    assert_eq!(policies_of(&agent), expected);
    for _ in 0..3 {
        reload(&mut agent, "owl:online=true");
        assert_eq!(policies_of(&agent), expected);
        assert_eq!(counted(&agent, "learners"), 2);
        assert_eq!(counted(&agent, "learners_refused"), 3, "each flow once");
    }
}

/// Between two parts the agent answers flows. Each flow is in one part, whichever slots are empty.
#[test]
fn many_flows_are_renewed_and_described_in_small_parts() {
    let mut agent = agent("owl:online=true", 1000);
    (1..=200).for_each(|number| begin(&mut agent, number));
    (1..=200)
        .step_by(3)
        .for_each(|number| end(&mut agent, number));
    let there: Vec<u16> = (1..=200).filter(|number| number % 3 != 1).collect();
    for most in [TOLD_AT_ONCE, RENEWED_AT_ONCE, 1000] {
        let (mut found, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            let (slots, goes_on) = agent.slots(from, most);
            assert!(slots.len() <= most && !slots.is_empty());
            found.extend(slots);
            next = goes_on;
        }
        assert_eq!(found, there);
    }
    // After two parts of a reload, the flows in them do not learn any more.
    agent
        .take_policies(Some(policies("owl")), SavedStates::default())
        .expect("they fit together");
    let next = agent.renew(0).expect("there are more flows to renew");
    let next = agent.renew(next).expect("there are more flows to renew");
    assert_eq!(next, there[2 * RENEWED_AT_ONCE]);
    let left = there.len() - 2 * RENEWED_AT_ONCE;
    assert_eq!(counted(&agent, "learners"), left as u64);
    // A flow that begins meanwhile has the new policy.
    begin(&mut agent, 1);
    assert_eq!(policies_of(&agent)[0], Some("owl"));
    assert_eq!(counted(&agent, "learners"), left as u64);
    // No part follows the last flow.
    assert_eq!(agent.slots(201, 8), (vec![], None));
}

#[test]
fn learners_are_counted_as_flows_come_and_go() {
    let mut agent = agent("owl:online=true", 64);
    let walked = |agent: &Agent<Program>| {
        let learn = agent.flows.iter().filter(|flow| flow.learns().is_some());
        learn.count() as u64
    };
    (1..=5).for_each(|number| begin(&mut agent, number));
    assert_eq!((counted(&agent, "learners"), walked(&agent)), (5, 5));
    end(&mut agent, 2);
    // Another flow opens in a slot whose flow has ended without a CLOSE.
    let header = Header::of::<Open>(headway_kernel::abi::OPEN, 9, 3);
    agent.on_open(&Open {
        header,
        ..Open::default()
    });
    assert_eq!((counted(&agent, "learners"), walked(&agent)), (3, 3));
    reload(&mut agent, "owl");
    assert_eq!((counted(&agent, "learners"), walked(&agent)), (0, 0));
}

/// The thread takes no step here, and no decision waits for it: `teach_from` checks their number.
#[test]
fn new_and_renewed_flows_leave_gradient_steps_to_the_thread() {
    let mut agent = agent("owl:online=true", 1);
    let (thread, steps) = sync_channel(1);
    agent.gradients = Some(thread);
    begin(&mut agent, 1);
    for (first, spec) in [
        (1, "owl:online=true"),
        (3001, "owl:online=true:epsilon=0.02"),
    ] {
        reload(&mut agent, spec);
        assert_eq!(policies_of(&agent), [Some(spec)]);
        teach(&mut agent, 1, first);
        let flow = agent.flows.get(1).expect("flow 1 is served");
        assert_eq!(flow.experience(), 0);
        assert!(steps.try_recv().is_ok() && steps.try_recv().is_err());
    }
}

/// The thread has ended. The flow keeps what it has learned, and reports this once.
#[test]
fn a_flow_reports_once_that_the_learning_thread_is_gone() {
    let mut agent = agent("owl:online=true", 1);
    let (thread, steps) = sync_channel(1);
    agent.gradients = Some(thread);
    begin(&mut agent, 1);
    let said = |agent: &mut Agent<Program>| {
        let mut said = false;
        agent.flows.change(1, |flow| said = flow.stops_learning());
        said
    };
    assert!(!said(&mut agent));
    drop(steps);
    teach(&mut agent, 1, 1);
    assert!(said(&mut agent) && !said(&mut agent));
    let flow = agent.flows.get(1).expect("flow 1 is served");
    let told = flow.describe("headway_owl", headway_cc::Time::ZERO);
    assert_eq!(told["has_ended_learning"], true);
}

#[test]
fn the_learning_thread_takes_gradient_steps_at_idle_priority() {
    let mut agent = agent("owl:online=true", 1);
    agent.gradients = Some(gradients::start(1).expect("a thread"));
    begin(&mut agent, 1);
    // The thread takes a step as soon as it has a processor, which may be late.
    let learned = |agent: &Agent<Program>| {
        let flow = agent.flows.get(1).expect("flow 1 is served");
        flow.experience() > 0
    };
    for turn in 0..600 {
        teach(&mut agent, 1, 1 + 3000 * turn);
        if learned(&agent) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(learned(&agent));
    let read = |task: &std::path::Path, file| std::fs::read_to_string(task.join(file));
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    let policies: BTreeMap<String, i32> = tasks
        .filter_map(|task| {
            let task = task.expect("a thread").path();
            let name = read(&task, "comm").ok()?.trim_end().to_owned();
            // The policy is field 41 of proc_pid_stat(5); field 2 ends with the last bracket.
            let stat = read(&task, "stat").ok()?;
            let policy = stat.rsplit(')').next()?.split_whitespace().nth(38)?;
            Some((name, policy.parse().ok()?))
        })
        .collect();
    assert_eq!(policies[gradients::NAME], libc::SCHED_IDLE);
    assert_eq!(policies[gradients::CARRIER], libc::SCHED_OTHER);
}

/// Otherwise it could hold malloc's lock while it waits for a processor. The second flow has ended.
#[test]
fn the_idle_thread_allocates_and_frees_nothing() {
    let mut agent = agent("owl:online=true", 2);
    let (thread, steps) = sync_channel(2);
    agent.gradients = Some(thread);
    for number in 1..=2 {
        begin(&mut agent, number);
        teach(&mut agent, number, 1);
    }
    end(&mut agent, 2);
    let (to_idle, given) = sync_channel(2);
    (steps.try_iter()).for_each(|step| to_idle.try_send(step).expect("there is room"));
    drop(to_idle);
    let (back, taken) = sync_channel(2);
    let cost = allocation_counter::measure(|| gradients::take(&given, &back));
    assert_eq!((cost.count_total, cost.count_current), (0, 0));
    taken.try_iter().for_each(Step::give_back);
    teach(&mut agent, 1, 3001);
    let flow = agent.flows.get(1).expect("flow 1 is served");
    assert_eq!(flow.experience(), 1);
}

/// The flows of this test are root's.
#[test]
fn only_flows_of_named_users_change_the_saved_state() {
    let folder = Folder::new("named");
    let saved = |users: Vec<u32>, diverges: bool| {
        let mut agent = agent("rax-pretrained", 2);
        agent.store = Store::new(Some(folder.path().to_owned())).learning_from(users);
        begin(&mut agent, 1);
        (1..=11).for_each(|second| report_second(&mut agent, 1, second, 0));
        if diverges {
            report_divergence(&mut agent, 1);
        } else {
            agent.keep_learned();
            agent.store.save();
        }
        agent.store.finish();
        folder.count()
    };
    assert_eq!(saved(vec![1000], false), 0);
    assert_eq!(saved(vec![1000, 0], false), 1);
    assert_eq!(saved(vec![1000], true), 1);
    assert_eq!(saved(vec![], true), 0);
}

/// A state from which a flow started and diverged is deleted, or each later flow would start from
/// it. The divergence of a flow that started without it does not count.
#[test]
fn the_state_from_which_a_diverged_flow_started_is_deleted() {
    let folder = Folder::new("diverged");
    let mut agent = agent("rax-pretrained", 5);
    agent.store = Store::new(Some(folder.path().to_owned()));
    let files = || folder.count();
    let is_good = |agent: &mut Agent<Program>, number| {
        (1..=11).for_each(|second| report_second(agent, number, second, 0));
    };
    (1..=4).for_each(|number| begin(&mut agent, number));
    (2..=4).for_each(|number| is_good(&mut agent, number));
    agent.keep_learned();
    agent.store.save();
    agent.store.finish();
    assert_eq!(files(), 1, "the state of a good flow");
    begin(&mut agent, 5);
    report_divergence(&mut agent, 1);
    agent.store.finish();
    assert_eq!((counted(&agent, "divergences"), files()), (1, 1));
    report_divergence(&mut agent, 5);
    agent.store.finish();
    assert_eq!((counted(&agent, "divergences"), files()), (2, 0));
    // The flow in fallback is as good as the others otherwise, and its state is not kept.
    end(&mut agent, 1);
    agent.store.save();
    agent.store.finish();
    assert_eq!(files(), 0);
    // A state that a flow has learned is deleted once that flow diverges.
    agent.keep_learned();
    agent.store.save();
    agent.store.finish();
    assert_eq!(files(), 1);
    (2..=4).for_each(|number| report_divergence(&mut agent, number));
    agent.store.finish();
    assert_eq!(files(), 0);
}

#[test]
fn new_flows_get_the_settings_that_were_made_for_all() {
    let mut agent = agent("owl", 64);
    agent.policies = None;
    agent.set(None, "btlbw_window=4").expect("it is BBR's");
    agent.set(None, "rtprop_window=2s").expect("it is BBR's");
    agent.set(None, "btlbw_window=6").expect("it is BBR's");
    agent
        .set(Some(1), "btlbw_window=9")
        .expect_err("there is no flow yet");
    begin(&mut agent, 1);
    let flow = agent.flows.iter().next().expect("a flow");
    let settings = &flow.describe("headway_bbr", Time::ZERO)["settings"];
    let expected = serde_json::json!({ "btlbw_window": 6.0, "rtprop_window": 2.0 });
    assert_eq!(settings, &expected);
}

#[test]
fn the_state_of_a_flow_is_kept_after_ten_judged_seconds() {
    let folder = Folder::new("judged");
    let mut agent = agent("rax-pretrained", 1);
    agent.store = Store::new(Some(folder.path().to_owned()));
    begin(&mut agent, 1);
    for second in 0..=11 {
        agent.keep_learned();
        agent.store.save();
        agent.store.finish();
        let kept = folder.count();
        // The first report begins the first second.
        assert_eq!(kept, usize::from(second == 11), "after {second} reports");
        report_second(&mut agent, 1, second + 1, 0);
    }
}

/// The flow's learned state may be the reason for its fallback.
#[test]
fn the_state_of_a_flow_in_fallback_is_kept_a_minute_later() {
    let folder = Folder::new("tripped");
    let mut agent = agent("rax-pretrained", 1);
    agent.store = Store::new(Some(folder.path().to_owned()));
    begin(&mut agent, 1);
    for second in 1..=61 {
        let flags = if second == 1 { Record::TRIPPED } else { 0 };
        report_second(&mut agent, 1, second, flags);
        agent.keep_learned();
        agent.store.save();
        agent.store.finish();
        let kept = folder.count();
        assert_eq!(kept, usize::from(second == 61), "after {second} s");
    }
}

/// Without netwatch's later reports a flow's view grows old, and is empty after ten seconds.
#[test]
fn a_flow_says_how_much_of_its_path_is_known_and_how_old_that_is() {
    let mut agent = agent("owl", 1);
    begin(&mut agent, 1);
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let said = |agent: &Agent<Program>, now| {
        let flow = agent.flows.iter().next().expect("a flow");
        let told = flow.describe("headway_owl", now);
        (
            told["network_known"].as_f64(),
            told["network_age_s"].as_f64(),
        )
    };
    report_second(&mut agent, 1, 1, 0);
    assert_eq!(said(&agent, at(1)), (None, None));
    let path = Path {
        name: "near".to_owned(),
        from: "::/0".parse().expect("a prefix"),
        to: "::/0".parse().expect("a prefix"),
        view: NetworkView {
            known: 0.5,
            age: Duration::from_secs(1),
            ..NetworkView::default()
        },
    };
    agent.on_network(News::Paths {
        reported_at: at(2),
        paths: std::iter::once(path).collect(),
        refused: 0,
    });
    report_second(&mut agent, 1, 3, 0);
    assert_eq!(said(&agent, at(3)), (Some(0.5), Some(2.0)));
    assert_eq!(said(&agent, at(11)), (Some(0.5), Some(10.0)));
    assert_eq!(said(&agent, at(12)), (Some(0.0), Some(11.0)));
}

/// The flow with the smaller queue has fewer gradient steps.
#[test]
fn the_best_flow_hands_on_its_state_and_not_the_most_experienced() {
    let folder = Folder::new("best");
    let mut agent = agent("rax-pretrained", 2);
    agent.store = Store::new(Some(folder.path().to_owned()));
    (1..=2).for_each(|number| begin(&mut agent, number));
    (1..=24).for_each(|second| report_at_rtt(&mut agent, 2, second, 25_000, 0));
    (13..=24).for_each(|second| report_at_rtt(&mut agent, 1, second, 20_000, 0));
    let offer = |agent: &Agent<Program>, slot| {
        let flow = agent.flows.get(slot).expect("it is served");
        flow.offer().expect("it is good")
    };
    let (best, other) = (offer(&agent, 1), offer(&agent, 2));
    assert!(best.score > other.score && best.experience < other.experience);
    agent.keep_learned();
    let served = policies("rax-pretrained").of(IpAddr::V4([0; 4].into()));
    let class = agent.flows.get(1).expect("it is served").class;
    let kept = agent.store.learned(&served, class).expect("it is kept");
    assert_eq!(kept.updates(), best.experience);
}

/// The flow is not good any more when the next state is saved.
#[test]
fn a_reload_keeps_what_the_replaced_learners_have_learned() {
    let folder = Folder::new("replaced");
    let mut agent = agent("rax-pretrained", 1);
    agent.store = Store::new(Some(folder.path().to_owned()));
    begin(&mut agent, 1);
    (1..=11).for_each(|second| report_second(&mut agent, 1, second, 0));
    reload(&mut agent, "rax");
    agent.store.save();
    agent.store.finish();
    let kept = folder.count();
    assert_eq!(kept, 1);
}

/// A late answer is the agent's doing, and other users' flows do not count.
#[test]
fn a_trip_for_what_the_policy_did_ends_the_hour_of_the_saved_state() {
    let served = policies("rax-pretrained").of(IpAddr::V4([0; 4].into()));
    for (reason, teachers, is_doubted) in [
        (Reason::Poor, vec![], true),
        (Reason::Poor, vec![0], true),
        (Reason::Poor, vec![1000], false),
        (Reason::Stale, vec![], false),
        (Reason::Fine, vec![], false),
    ] {
        let folder = Folder::new("doubts");
        let mut agent = agent("rax-pretrained", 2);
        agent.store = Store::new(Some(folder.path().to_owned()));
        (1..=2).for_each(|number| begin(&mut agent, number));
        for second in 1..=12 {
            report_at_rtt(&mut agent, 1, second, 20_000, 0);
        }
        agent.keep_learned();
        let flow = agent.flows.get(1).expect("it is served");
        let (class, best) = (flow.class, flow.offer().expect("it is good"));
        let other = store::Offer {
            flow: 2,
            experience: best.experience + 100,
            ..best
        };
        assert!(!agent.store.wants(&served, class, &other));
        agent.store = agent.store.learning_from(teachers);
        let header = Header::of::<VerdictMessage>(headway_kernel::abi::VERDICT, 1, 1);
        agent.on_verdict(&VerdictMessage {
            header,
            reason: reason as u32,
            ..VerdictMessage::default()
        });
        let is_open = agent.store.wants(&served, class, &other);
        assert_eq!(is_open, is_doubted, "{reason:?}");
    }
}
