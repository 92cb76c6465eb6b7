//! Tests that slots are used again, and that each answer goes to the flow that sent the request.

use headway_cc::testing::{feedback, setup};
use headway_cc::{CongestionControl, Duration, Time};
use headway_kernel::{Datapath, FakeKernel};
use headway_policy::schemes::PolicySpec;

use crate::host::{Case, agent, at, ms};

/// A thousand flows use three slots, at most three at once. Each sends requests, and gets each
/// answer 1 ms later.
#[test]
fn slots_are_used_again() {
    let spec = PolicySpec::read("aurora")
        .expect("a policy")
        .agent()
        .cloned()
        .expect("an agent");
    let kernel = FakeKernel::with_slots(1 << 20, 3);
    let mut agent = agent(&Case::of("aurora"), &kernel, Time::ZERO);
    let mut serve = |now: Time| {
        kernel.set_now(now);
        while let Some(message) = kernel.next_message() {
            agent.on_message(&message);
        }
        agent.on_timers(now);
        let counted = agent.counters(now)["counters"].clone();
        (
            counted["flows"].as_u64(),
            counted["reports_of_unknown_flows"].as_u64(),
        )
    };
    let mut flows: Vec<Datapath> = Vec::new();
    for number in 1..=1000_u32 {
        let begins = at(u64::from(number) * 100);
        if flows.len() == 3 {
            flows.remove(number as usize % 3);
        }
        let mut flow = Datapath::new(&kernel, &spec, &setup()).expect("a rate");
        for step in 0..20 {
            let now = begins + ms(4) * step;
            flow.on_feedback(&feedback(now));
            serve(now + Duration::from_millis(1));
        }
        assert_eq!(flow.flow(), Some(number), "the slot that was left");
        assert_eq!(flow.guard().trips(), 0, "flow {number} is answered");
        flows.push(flow);
        let there = flows.len() as u64;
        assert_eq!(
            serve(begins + ms(90)),
            (Some(there), Some(0)),
            "flow {number}"
        );
    }
    assert_eq!(kernel.counters().slots_full, 0);
    drop(flows);
    assert_eq!(serve(at(200_000)), (Some(0), Some(0)));
}
