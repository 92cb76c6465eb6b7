//! The fake kernel: scripted sockets, a full ring, actions that expire.

use headway_cc::testing::{MSS, feedback, rto, setup};
use headway_cc::{Congestion, CongestionControl, Duration, Feedback, Recovery, Time};
use headway_kernel::abi::{
    ActionSlot, CLOSE, CounterValues, Message, OPEN, REPORT, SettingValues, VERDICT,
};
use headway_kernel::{Datapath, FakeKernel, Ring, TcpSock};
use headway_policy::schemes::PolicySpec;
use headway_policy::{Action, AgentSpec, Record};
use zerocopy::IntoBytes;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Fields in the kernel's units, as `struct tcp_sock` holds them.
#[test]
fn records_are_in_the_kernels_units() {
    let kernel = FakeKernel::new(1 << 16);
    let sock = TcpSock {
        snd_cwnd: 20,
        packets_out: 15,
        sacked_out: 4,
        lost_out: 2,
        retrans_out: 1,
        data_segs_out: 120,
        total_retrans: 3,
        delivered: 100,
        delivered_ce: 5,
        lost: 4,
        rate_delivered: 10,
        rate_interval_us: 40_500,
        mss_cache: 1448,
        tcp_header_len: 32,
        sk_pacing_rate: 1_250_000,
        app_limited: 7,
        is_cwnd_limited: true,
        icsk_ca_state: 3,
        rtt_us: 41_000,
        srtt_us: 40_125 << 3 | 5,
        mdev_us: 2_000 << 2 | 3,
        min_rtt_us: 40_000,
    };
    let flow = kernel.replay(MSS, &[(5_000_000, sock, 2)]);
    let open = Message::read(&kernel.next_message().expect("it opens")).expect("a message");
    assert!(matches!(open, Message::Open(open) if open.header.flow == flow && open.mss == 1500));
    let message = Message::read(&kernel.next_message().expect("it reports")).expect("a message");
    let Message::Report(report) = message else {
        panic!("{message:?}");
    };
    let right = Record {
        now_ns: 5_000_000,
        pacing_rate: 1_250_000,
        sent: 120,
        retransmitted: 3,
        delivered: 100,
        delivered_ce: 5,
        lost: 4,
        in_flight: 10,
        cwnd: 20,
        mss: 1500,
        rtt_us: 41_000,
        srtt_us: 40_125,
        rttvar_us: 2_000,
        min_rtt_us: 40_000,
        rate_delivered: 10,
        rate_interval_us: 40_500,
        acks: 2,
        flags: Record::APP_LIMITED | Record::CWND_LIMITED | Record::RECOVERING,
        // Only BBR has a model of the path, and this socket has no BBR.
        ..Record::default()
    };
    assert_eq!(report.record, right);
    let unpaced = TcpSock {
        sk_pacing_rate: u64::MAX,
        rtt_us: -1,
        ..sock
    };
    let record = unpaced.record(0, 1);
    assert_eq!(
        (record.pacing_rate, record.rtt_us),
        (0, 0),
        "none of either"
    );
}

/// Samples of 100, 200 and 150 ms. The values follow RFC 6298 by hand, as in `tests/clocks.rs` of
/// crates/policy.
#[test]
fn rtt_statistics_follow_rfc_6298_in_whole_numbers() {
    let mut sock = TcpSock::new(MSS);
    let mut after = |rtt_us| {
        sock.sample_rtt(rtt_us);
        (sock.srtt_us >> 3, sock.mdev_us >> 2, sock.min_rtt_us)
    };
    assert_eq!(after(100_000), (100_000, 50_000, 100_000));
    assert_eq!(after(200_000), (112_500, 62_500, 100_000));
    assert_eq!(after(-1), (112_500, 62_500, 100_000), "no sample");
    assert_eq!(after(150_000), (117_187, 56_250, 100_000));
}

#[test]
fn a_full_ring_drops_and_counts() {
    let mut ring = Ring::new(64);
    ring.push(&[1; 16]); // 24 bytes with its header
    ring.push(&[2; 20]); // 32 in steps of 8
    ring.push(&[3; 8]);
    assert_eq!(ring.dropped(), 1);
    assert_eq!(ring.pop().expect("the first")[0], 1);
    ring.push(&[4; 8]);
    assert_eq!(ring.dropped(), 1);
    assert_eq!(ring.pop().expect("the second")[0], 2);
    assert_eq!(ring.pop().expect("the fourth")[0], 4);
    assert!(ring.pop().is_none());

    let kernel = FakeKernel::new(340);
    kernel.replay(MSS, &[(0, TcpSock::new(MSS), 1); 5]);
    assert_eq!(kernel.dropped(), 3);
}

fn owl() -> AgentSpec {
    let text = "clock = { kind = \"every-ack\" }\nbase = { kind = \"scheme\", name = \"newreno\" }\n\
         action = { kind = \"discrete\", choices = [0, 10], effect = { does = \"add-cwnd\" } }\n\
         observation = { history = 1, features = [{ name = \"rtt_ms\" }] }\n";
    let table: toml::Table = text.parse().expect("TOML");
    AgentSpec::read(table).expect("a spec")
}

/// A kernel with an agent at all times.
fn kernel_with_agent(slots: u16) -> FakeKernel {
    let kernel = FakeKernel::with_slots(1 << 16, slots);
    kernel.set_served_until(Time::NEVER);
    kernel
}

/// A NewReno flow that has lost a packet: it is past slow start, and in recovery.
fn flow(kernel: &FakeKernel) -> Datapath {
    let mut flow = Datapath::new(kernel, &owl(), &setup()).expect("NewReno");
    flow.on_feedback(&feedback(at(1)));
    flow.on_feedback(&loss(at(2)));
    flow
}

fn loss(now: Time) -> Feedback<'static> {
    Feedback {
        congestion: Some(Congestion::Loss),
        lost_bytes: MSS,
        prior_in_flight: MSS * 10,
        recovery: Recovery::Recovery,
        ..feedback(now)
    }
}

/// An acknowledgement comes with this action in the flow's slot. Returns by how many packets the
/// window has grown.
fn after(kernel: &FakeKernel, flow: &mut Datapath, ms: u64, action: Option<ActionSlot>) -> u64 {
    if let Some(action) = action {
        kernel.write_bytes(0, action.as_bytes()).expect("a slot");
    }
    let before = flow.control().cwnd;
    flow.on_feedback(&feedback(at(ms)));
    (flow.control().cwnd - before).get() / MSS.get()
}

#[test]
fn an_action_is_applied_once_if_complete_and_in_time() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let action = |sequence, expires| ActionSlot {
        sequence,
        expires_ns: at(expires).as_nanos(),
        flow: 1,
        ..ActionSlot::of(Action::AddCwnd(10.0), &[])
    };
    let mut flow_in_slow_start = Datapath::new(&kernel, &owl(), &setup()).expect("NewReno");
    let mut after_in_slow_start =
        |ms, action| after(&kernel, &mut flow_in_slow_start, ms, Some(action));
    assert!(after_in_slow_start(1, action(1, 1000)) < 10);
    assert!(
        after_in_slow_start(2, action(2, 1000)) < 10,
        "slow start is the controller's"
    );
    assert!(kernel.write_bytes(1, &[0; 39]).is_err());

    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let mut flow = flow(&kernel);
    let mut after = |ms, action| after(&kernel, &mut flow, ms, action);
    assert_eq!(after(3, None), 0, "none is there");
    assert_eq!(after(4, Some(action(3, 1000))), 0, "half written");
    assert_eq!(after(5, Some(action(4, 1000))), 10);
    assert_eq!(after(6, None), 0, "once");
    assert_eq!(after(7, Some(action(6, 7))), 0, "expired");
    assert_eq!(after(8, Some(action(8, 9))), 10);
    let another = ActionSlot {
        flow: 2,
        ..action(10, 1000)
    };
    assert_eq!(after(9, Some(another)), 0, "another flow's");
}

/// RFC 7661: an unfilled window does not show whether the path could carry more.
#[test]
fn an_unfilled_window_may_shrink_but_not_grow() {
    for (packets, is_filled, by) in [(10.0, true, 10), (10.0, false, 0), (-3.0, false, -3)] {
        let kernel = kernel_with_agent(FakeKernel::SLOTS);
        let mut flow = flow(&kernel);
        after(&kernel, &mut flow, 3, None);
        let action = ActionSlot {
            sequence: 2,
            expires_ns: at(1000).as_nanos(),
            flow: 1,
            ..ActionSlot::of(Action::AddCwnd(packets), &[])
        };
        (kernel.write_bytes(0, action.as_bytes())).expect("a slot");
        let before = flow.control().cwnd.get() as i64;
        flow.on_feedback(&Feedback {
            cwnd_limited: is_filled,
            ..feedback(at(4))
        });
        let grown = flow.control().cwnd.get() as i64 - before;
        assert_eq!(grown / MSS.get() as i64, by, "{packets}, {is_filled}");
    }
}

/// The messages in the ring, by their kinds and the slots of their flows.
fn messages(kernel: &FakeKernel) -> Vec<(u16, u16)> {
    let read = std::iter::from_fn(|| kernel.next_message());
    read.map(|bytes| match Message::read(&bytes).expect("a message") {
        Message::Open(open) => open.header,
        Message::Report(report) | Message::Close(report) => report.header,
        Message::Verdict(verdict) => verdict.header,
    })
    .map(|header| (header.kind, header.slot))
    .collect()
}

#[test]
fn a_flow_takes_a_slot_at_its_first_acknowledgement() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    drop(Datapath::new(&kernel, &owl(), &setup()).expect("NewReno"));
    assert_eq!(messages(&kernel), []);
    drop(flow(&kernel));
    assert_eq!(
        messages(&kernel),
        [(OPEN, 0), (REPORT, 0), (REPORT, 0), (CLOSE, 0)]
    );
}

/// A window during a reduction is not one to begin with.
#[test]
fn a_flow_takes_no_slot_during_a_reduction() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let mut flow = Datapath::new(&kernel, &owl(), &setup()).expect("NewReno");
    for (ms, recovery) in [
        (1, Recovery::Recovery),
        (2, Recovery::Cwr),
        (3, Recovery::Loss),
    ] {
        flow.on_feedback(&Feedback {
            recovery,
            ..feedback(at(ms))
        });
        assert_eq!((messages(&kernel), flow.flow()), (vec![], None));
    }
    assert_eq!(kernel.counters().slots_full, 0);
    flow.on_feedback(&Feedback {
        recovery: Recovery::Disorder,
        ..feedback(at(4))
    });
    assert_eq!(flow.flow(), Some(1));
}

/// The base controller keeps the flow, and nothing is counted. The first acknowledgement that finds
/// an agent takes a slot.
#[test]
fn a_flow_takes_no_slot_without_an_agent() {
    let kernel = FakeKernel::new(1 << 16);
    let mut flow = flow(&kernel);
    kernel.set_served_until(at(1000));
    for ms in [1000, 2000] {
        after(&kernel, &mut flow, ms, None);
        assert_eq!((messages(&kernel), flow.flow()), (vec![], None));
    }
    assert_eq!(kernel.counters(), CounterValues::default());
    kernel.set_served_until(at(3000));
    after(&kernel, &mut flow, 2001, None);
    assert_eq!(messages(&kernel), [(OPEN, 0), (REPORT, 0)]);
}

/// No further record is needed to wake the agent.
#[test]
fn a_request_that_fills_the_ring_wakes_the_agent() {
    // The ring has room for OPEN, with 8 bytes before it, and three reports.
    let kernel = FakeKernel::new(80 + 3 * 120);
    kernel.set_served_until(Time::NEVER);
    let mut flow = flow(&kernel);
    assert!(!kernel.is_woken(), "it cannot be steered yet");
    after(&kernel, &mut flow, 3, None);
    assert!(kernel.is_woken());
    assert_eq!((kernel.counters().wakes, kernel.dropped()), (1, 0));
    after(&kernel, &mut flow, 4, None);
    assert_eq!(kernel.dropped(), 0);
    assert_eq!(kernel.counters().held_back, 1, "it is no request");
}

#[test]
fn a_flow_without_a_slot_tries_again_each_second() {
    let kernel = kernel_with_agent(1);
    let first = flow(&kernel);
    let mut second = flow(&kernel);
    messages(&kernel);
    drop(first);
    assert_eq!(messages(&kernel), [(CLOSE, 0)]);
    after(&kernel, &mut second, 1000, None);
    assert_eq!((messages(&kernel), second.flow()), (vec![], None));
    after(&kernel, &mut second, 1001, None);
    assert_eq!(messages(&kernel), [(OPEN, 0), (REPORT, 0)]);
    assert_eq!(second.flow(), Some(2));
    let counters = kernel.counters();
    assert_eq!((counters.flows, counters.slots_full), (2, 1));
}

/// A user may have two of four slots, and root all that are left.
#[test]
fn one_user_cannot_take_all_slots() {
    let kernel = kernel_with_agent(4);
    let settings = SettingValues {
        flows_of_user: 2,
        ..SettingValues::default()
    };
    kernel
        .configure(settings, None)
        .expect("limits in their ranges");
    let flow_of = |user| {
        kernel.set_user(user);
        flow(&kernel)
    };
    let mut flows: Vec<Datapath> = [1000, 1000, 1000, 1001, 0, 0].map(flow_of).into();
    let numbers: Vec<Option<u32>> = flows.iter().map(Datapath::flow).collect();
    assert_eq!(numbers, [Some(1), Some(2), None, Some(3), Some(4), None]);
    let counters = kernel.counters();
    assert_eq!((counters.user_full, counters.slots_full), (1, 1));
    let users =
        std::iter::from_fn(|| kernel.next_message()).filter_map(|bytes| {
            match Message::read(&bytes).expect("a message") {
                Message::Open(open) => Some(open.user),
                _ => None,
            }
        });
    assert_eq!(users.collect::<Vec<_>>(), [1000, 1000, 1001, 0]);
    // One of the flows ends, and another of the same user takes its place.
    flows.remove(0);
    assert_eq!(flow_of(1000).flow(), Some(5));
}

#[test]
#[should_panic(expected = "slot 0 is freed twice")]
fn freeing_a_slot_twice_panics() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    drop(flow(&kernel));
    kernel.free_slot(0);
}

/// The limit is 100 ms, and two acknowledgements have to find the answer overdue.
#[test]
fn the_guard_trips_without_answers() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let mut flow = flow(&kernel);
    after(&kernel, &mut flow, 3, None);
    let mut in_fallback = |ms| {
        after(&kernel, &mut flow, ms, None);
        (flow.guard().trips(), kernel.counters().trips[1])
    };
    assert_eq!(in_fallback(103), (0, 0), "as long as may be");
    assert_eq!(in_fallback(104), (0, 0), "the first");
    assert_eq!(in_fallback(105), (1, 1));
    let kinds: Vec<u16> = messages(&kernel).iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [
            OPEN, REPORT, REPORT, REPORT, REPORT, REPORT, VERDICT, REPORT
        ]
    );
}

/// The agent still has the request, so no second one is needed.
#[test]
fn a_dropped_record_without_a_request_cancels_no_request() {
    // The ring has room for OPEN, with 8 bytes before it, and three reports: two without a request,
    // and the request.
    let kernel = FakeKernel::new(80 + 3 * 120);
    kernel.set_served_until(Time::NEVER);
    let mut flow = flow(&kernel);
    after(&kernel, &mut flow, 3, None);
    assert_eq!((kernel.counters().wakes, kernel.dropped()), (1, 0));
    // Only a timeout's record is neither a request nor held back.
    flow.on_rto(&rto(at(4), 10, 1));
    assert_eq!(kernel.dropped(), 1);
    while kernel.next_message().is_some() {}
    flow.on_feedback(&feedback(at(5)));
    let message = kernel.next_message().expect("a record");
    let Message::Report(report) = Message::read(&message).expect("a message") else {
        panic!("it is a record");
    };
    assert!(!report.record.has(Record::ASKS));
}

/// Between two reports acknowledgements add up. A timeout is reported at once, and covers none of
/// them.
#[test]
fn acknowledgements_are_counted_across_a_timeout() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let settings = SettingValues {
        report_interval_us: 50_000,
        ..kernel.settings()
    };
    kernel
        .configure(settings, None)
        .expect("limits in their ranges");
    let mut flow = Datapath::new(&kernel, &owl(), &setup()).expect("NewReno");
    for ms in 1..=200 {
        flow.on_feedback(&feedback(at(ms)));
        if ms == 75 {
            flow.on_rto(&rto(at(ms), 10, 1));
        }
    }
    let mut acks = Vec::new();
    while let Some(message) = kernel.next_message() {
        if let Message::Report(report) = Message::read(&message).expect("a message") {
            acks.push((report.record.now_ns / 1_000_000, report.record.acks));
        }
    }
    assert_eq!(
        acks.iter().filter(|(_, acks)| *acks == 0).count(),
        1,
        "{acks:?}"
    );
    let (last, _) = acks.last().expect("a report");
    let counted: u32 = acks.iter().map(|(_, acks)| acks).sum();
    assert_eq!(u64::from(counted), *last, "one a millisecond: {acks:?}");
}

/// Writes an action for the flow with that number. It was decided at `decided`, and written a
/// millisecond later.
fn write_action(kernel: &FakeKernel, number: u32, decided: u64, action: ActionSlot) {
    let action = ActionSlot {
        decided_ns: at(decided).as_nanos(),
        answered_ns: at(decided + 1).as_nanos(),
        expires_ns: at(decided + 1000).as_nanos(),
        due_ns: at(decided + 1).as_nanos(),
        sequence: 2 * number,
        flow: 1,
        ..action
    };
    (kernel.write_bytes(0, action.as_bytes())).expect("a slot");
}

fn mark(now: Time) -> Feedback<'static> {
    Feedback {
        congestion: Some(Congestion::Ecn),
        prior_in_flight: MSS * 10,
        recovery: Recovery::Cwr,
        ..feedback(now)
    }
}

fn packets(flow: &Datapath) -> u64 {
    flow.control().cwnd.get() / MSS.get()
}

/// A mark leaves seven tenths (RFC 9438, 4.6). A decision from before the mark does not raise the
/// window again.
#[test]
fn a_mark_lowers_the_window_of_a_policy() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let mut flow = Datapath::of_window(&kernel, &setup());
    flow.on_feedback(&feedback(at(1)));
    write_action(&kernel, 1, 1, ActionSlot::of_cwnd(100));
    flow.on_feedback(&feedback(at(3)));
    assert_eq!(packets(&flow), 100);
    write_action(&kernel, 2, 4, ActionSlot::of_cwnd(120));
    flow.on_feedback(&mark(at(6)));
    assert_eq!(packets(&flow), 70, "decided before the mark");
    for (number, decided, wanted, then) in [(3, 5, 120, 70), (4, 5, 60, 60), (5, 6, 90, 90)] {
        write_action(&kernel, number, decided, ActionSlot::of_cwnd(wanted));
        flow.on_feedback(&Feedback {
            recovery: Recovery::Cwr,
            ..feedback(at(5 + u64::from(number)))
        });
        assert_eq!(packets(&flow), then, "decided at {decided} ms");
    }
    // This is the smallest window that the guard allows.
    write_action(&kernel, 6, 10, ActionSlot::of_cwnd(2));
    flow.on_feedback(&feedback(at(20)));
    flow.on_feedback(&mark(at(30)));
    assert_eq!(packets(&flow), 2);
}

/// The kernel's own network in whole numbers, and a flow of `headway_rate`.
fn rate(kernel: &FakeKernel) -> (PolicySpec, Datapath) {
    let settings = SettingValues {
        initial_rate: 1_000_000,
        min_rate: 10_000,
        max_rate: 10_000_000,
        ..SettingValues::default()
    };
    (kernel.configure(settings, None)).expect("limits in their ranges");
    let policy = PolicySpec::read("aurora:model=int8-v1").expect("a model of ours");
    let agent = policy.agent().expect("an agent");
    let flow = Datapath::new(kernel, agent, &setup()).expect("a rate");
    (policy, flow)
}

fn mbps(flow: &Datapath) -> Option<f64> {
    flow.control().pacing_rate.map(headway_cc::Rate::as_mbps)
}

#[test]
fn a_mark_lowers_the_rate_of_a_policy() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let (_, mut flow) = rate(&kernel);
    flow.on_feedback(&feedback(at(1)));
    let before = mbps(&flow).expect("a rate");
    flow.on_feedback(&mark(at(2)));
    let after = mbps(&flow).expect("a rate");
    assert!((after - before * 0.7).abs() < 1e-6, "{before}, {after}");
}

/// The window of a rate is twice what is in flight. Under Cubic nothing paces it.
#[test]
fn cubic_starts_a_paced_flow_with_the_packets_in_flight() {
    for (flying, recovery, then) in [
        (20, Recovery::Open, Some(20)),
        (3, Recovery::Open, Some(10)),
        // In recovery the kernel's own reduction decides.
        (3, Recovery::Recovery, None),
    ] {
        let kernel = kernel_with_agent(FakeKernel::SLOTS);
        let (_, mut flow) = rate(&kernel);
        flow.on_feedback(&feedback(at(1)));
        let before = packets(&flow);
        assert!(before > 20, "{before}");
        write_action(&kernel, 1, 1, ActionSlot::leave());
        flow.on_feedback(&Feedback {
            in_flight: MSS * flying,
            recovery,
            ..feedback(at(3))
        });
        assert_eq!(mbps(&flow), None, "it is Cubic's");
        match then {
            Some(then) => assert_eq!(packets(&flow), then),
            None => assert!(packets(&flow) > 10),
        }
    }
}

/// A flow that the agent has left to Cubic sends no more requests.
#[test]
fn the_kernels_policy_takes_a_flow_the_agent_released() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let (policy, mut flow) = rate(&kernel);
    flow.on_feedback(&feedback(at(1)));
    write_action(&kernel, 1, 1, ActionSlot::leave());
    flow.on_feedback(&feedback(at(3)));
    assert_eq!(mbps(&flow), None, "it is Cubic's");
    (kernel.configure(kernel.settings(), policy.int8())).expect("limits in their ranges");
    flow.on_feedback(&feedback(at(4)));
    assert!(mbps(&flow).is_some(), "it is the policy's");
}

/// The window is paced at 1.2 windows a round trip, since no acknowledgements clock it out.
#[test]
fn the_window_of_a_policy_is_paced_after_idle_time() {
    let kernel = kernel_with_agent(FakeKernel::SLOTS);
    let mut flow = Datapath::of_window(&kernel, &setup());
    let paced = Some(10.0 * 1500.0 * 8.0 * 1.2 / 0.1 * 1e-6);
    flow.on_feedback(&feedback(at(1)));
    assert_eq!(mbps(&flow), None);
    flow.on_idle(at(2000), Duration::from_millis(1997));
    assert_eq!(mbps(&flow), paced);
    flow.on_feedback(&feedback(at(2099)));
    assert_eq!(mbps(&flow), paced);
    flow.on_feedback(&feedback(at(2100)));
    assert_eq!(mbps(&flow), None);
}
