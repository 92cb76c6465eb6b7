//! The fake kernel: scripted sockets, a ring that is full, actions that expire.

use headway_cc::testing::{MSS, feedback, setup};
use headway_cc::{CongestionControl, Duration, Time};
use headway_kernel::abi::{ActionSlot, Message};
use headway_kernel::{Datapath, FakeKernel, Ring, TcpSock};
use headway_policy::{Action, AgentSpec, Record};
use zerocopy::IntoBytes;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Fields in the kernel's units, as `struct tcp_sock` holds them.
#[test]
fn a_script_is_read_in_the_kernels_units() {
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
        // Of BBR alone, which this socket has not.
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

/// Samples of 100, 200 and 150 ms: RFC 6298 by hand, as in `tests/clocks.rs` of crates/policy.
#[test]
fn rtt_statistics_are_rfc_6298s_in_whole_numbers() {
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
    let text = "clock = { kind = \"every-ack\" }\nbeneath = { kind = \"scheme\", name = \"newreno\" }\n\
         action = { kind = \"discrete\", choices = [0, 10], effect = { does = \"add-cwnd\" } }\n\
         observation = { history = 1, features = [{ name = \"rtt_ms\" }] }\n";
    let table: toml::Table = text.parse().expect("TOML");
    AgentSpec::read(table).expect("a spec")
}

#[test]
fn an_action_is_applied_once_if_it_is_whole_and_in_time() {
    let kernel = FakeKernel::new(1 << 16);
    let mut flow = Datapath::new(&kernel, &owl(), &setup()).expect("NewReno");
    let slot = |sequence, expires| ActionSlot {
        sequence,
        expires_ns: at(expires).as_nanos(),
        ..ActionSlot::of(Action::AddCwnd(10.0), &[])
    };
    let mut after = |ms: u64, slot: Option<ActionSlot>| {
        if let Some(slot) = slot {
            kernel
                .write_action(flow.flow(), slot.as_bytes())
                .expect("a slot");
        }
        let before = flow.control().cwnd;
        flow.on_feedback(&headway_cc::Feedback {
            cwnd_limited: false,
            ..feedback(at(ms))
        });
        (flow.control().cwnd - before).get() / MSS.get()
    };
    assert_eq!(
        after(1, Some(slot(2, 1000))),
        0,
        "slow start is the controller's"
    );
    let kernel2 = kernel.clone();
    assert!(kernel2.write_action(1, &[0; 39]).is_err());
    // Out of slow start by a loss, and out of recovery.
    let mut flow = Datapath::new(&kernel, &owl(), &setup()).expect("NewReno");
    flow.on_feedback(&headway_cc::Feedback {
        congestion: Some(headway_cc::Congestion::Loss),
        lost_bytes: MSS,
        prior_in_flight: MSS * 10,
        recovery: headway_cc::Recovery::Recovery,
        ..feedback(at(2))
    });
    let mut after = |ms: u64, slot: Option<ActionSlot>| {
        if let Some(slot) = slot {
            kernel
                .write_action(flow.flow(), slot.as_bytes())
                .expect("a slot");
        }
        let before = flow.control().cwnd;
        flow.on_feedback(&headway_cc::Feedback {
            cwnd_limited: false,
            ..feedback(at(ms))
        });
        (flow.control().cwnd - before).get() / MSS.get()
    };
    assert_eq!(after(3, None), 0, "none is there");
    assert_eq!(after(4, Some(slot(3, 1000))), 0, "half written");
    assert_eq!(after(5, Some(slot(4, 1000))), 10);
    assert_eq!(after(6, None), 0, "once");
    assert_eq!(after(7, Some(slot(6, 7))), 0, "expired");
    assert_eq!(after(8, Some(slot(8, 9))), 10);
}

#[test]
fn a_flow_says_when_it_ends() {
    let kernel = FakeKernel::new(1 << 16);
    drop(Datapath::new(&kernel, &owl(), &setup()).expect("NewReno"));
    assert!(matches!(
        Message::read(&kernel.next_message().expect("one")),
        Ok(Message::Open(_))
    ));
    assert!(matches!(
        Message::read(&kernel.next_message().expect("two")),
        Ok(Message::Close(_))
    ));
}
