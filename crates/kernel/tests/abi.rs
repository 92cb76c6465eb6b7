//! Compares the C compiler's layout of `bpf/abi.h` and `bpf/settings.h` with the Rust types.

use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use headway_cc::schemes::bbr;
use headway_kernel::AbiError;
use headway_kernel::abi::{
    self, ActionSlot, CounterValues, Header, Message, Open, Report, SettingValues, VerdictMessage,
};
use headway_policy::{Action, Record};
use zerocopy::IntoBytes;

/// The lines of a C program: each prints an expression, which has this value in Rust.
fn expressions() -> Vec<(String, u64)> {
    let mut all = Vec::new();
    macro_rules! layout {
        ($c:literal, $rust:ty: $($field:ident),+) => {
            all.push((format!("sizeof(struct {})", $c), size_of::<$rust>() as u64));
            $(all.push((
                format!("offsetof(struct {}, {})", $c, stringify!($field)),
                offset_of!($rust, $field) as u64,
            ));)+
            // The fields above fill the struct, so none is missing.
            let last = [$(offset_of!($rust, $field)),+];
            assert!(last.is_sorted(), "{}: in the order of the header", $c);
        };
    }
    layout!("headway_header", Header: magic, version, kind, flow, slot, size);
    layout!("headway_record", Record: now_ns, pacing_rate, sent, retransmitted, delivered, delivered_ce, lost,
        in_flight, cwnd, mss, rtt_us, srtt_us, rttvar_us, min_rtt_us, rate_delivered, rate_interval_us, acks, flags,
        btlbw, rtprop_us, pacing_gain, cwnd_gain);
    layout!("headway_open", Open: header, start_ns, local_address, remote_address, local_port, remote_port, mss,
        initial_cwnd, user);
    layout!("headway_verdict", VerdictMessage: header, now_ns, reason, trips);
    layout!("headway_report", Report: header, record);
    layout!("headway_counters", CounterValues: flows, slots_full, user_full, ring_dropped, returns, wakes, trips, held_back);
    layout!("headway_action", ActionSlot: decided_ns, answered_ns, expires_ns, due_ns, values, kind, flags, which, sequence, flow);
    layout!("headway_settings", SettingValues: initial_rate, min_rate, max_rate, served_until_ns, report_interval_us,
        grows, is_shadow, is_awake, flows_of_user, serves_loopback, most_waiting_bytes, unused, limits, learner_limits);
    for (c, rust) in [
        ("HEADWAY_LATEST_DUE_NS", abi::LATEST_DUE),
        ("HEADWAY_ASK_AGAIN_NS", abi::ASK_AGAIN),
        ("HEADWAY_LOOK_AGAIN_NS", abi::LOOK_AGAIN),
    ] {
        all.push((c.to_owned(), rust.as_nanos()));
    }
    for (c, rust) in [
        ("HEADWAY_FLOWS", abi::FLOWS),
        ("HEADWAY_MAGIC", abi::MAGIC),
        ("HEADWAY_VERSION", abi::VERSION.into()),
        ("HEADWAY_OPEN", abi::OPEN.into()),
        ("HEADWAY_REPORT", abi::REPORT.into()),
        ("HEADWAY_CLOSE", abi::CLOSE.into()),
        ("HEADWAY_VERDICT", abi::VERDICT.into()),
        ("HEADWAY_NOTHING", abi::NOTHING.into()),
        ("HEADWAY_ADD_CWND", abi::ADD_CWND.into()),
        ("HEADWAY_SCALE_CWND", abi::SCALE_CWND.into()),
        ("HEADWAY_SCALE_RATE", abi::SCALE_RATE.into()),
        ("HEADWAY_SET_CWND", abi::SET_CWND.into()),
        ("HEADWAY_LEAVE", abi::LEAVE.into()),
        ("HEADWAY_SET", abi::SET.into()),
        ("HEADWAY_LEARNER", abi::LEARNER.into()),
        ("HEADWAY_PARAMETERS", abi::PARAMETERS as u32),
        ("HEADWAY_APP_LIMITED", Record::APP_LIMITED),
        ("HEADWAY_RWND_LIMITED", Record::RWND_LIMITED),
        ("HEADWAY_CWND_LIMITED", Record::CWND_LIMITED),
        ("HEADWAY_RECOVERING", Record::RECOVERING),
        ("HEADWAY_STEERABLE", Record::STEERABLE),
        ("HEADWAY_TRIPPED", Record::TRIPPED),
        ("HEADWAY_ASKS", Record::ASKS),
    ] {
        all.push((c.to_owned(), rust.into()));
    }
    all
}

#[test]
fn c_and_rust_layouts_agree() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("abi.c"), folder.join("abi"));
    let mut c = "#include <stdio.h>\n#include <stddef.h>\n#include \"abi.h\"\n#include \"settings.h\"\nint main(void) {\n"
        .to_owned();
    for (expression, _) in expressions() {
        writeln!(
            c,
            "printf(\"%llu\\n\", (unsigned long long)({expression}));"
        )
        .expect("text");
    }
    c += "return 0; }\n";
    std::fs::write(&source, c).expect("a file");
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Wpadded", "-Werror", "-I"];
    let built = Command::new("cc")
        .args(flags)
        .arg(&bpf)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    let Ok(built) = built else {
        eprintln!("skipped: there is no C compiler 'cc'");
        return;
    };
    let complaints = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{complaints}");
    let said = Command::new(&program).output().expect("it runs").stdout;
    let said = String::from_utf8(said).expect("numbers");
    let said: Vec<u64> = said.lines().map(|n| n.parse().expect("a number")).collect();
    assert_eq!(said.len(), expressions().len());
    for (c, (expression, rust)) in said.iter().zip(expressions()) {
        assert_eq!(*c, rust, "{expression}: C says {c}, Rust {rust}");
    }
}

fn report() -> Report {
    Report {
        header: Header::of::<Report>(abi::REPORT, 7, 3),
        record: Record {
            now_ns: 1,
            flags: 5,
            ..Record::default()
        },
    }
}

#[test]
fn malformed_messages_are_refused_in_one_line() {
    assert_eq!(
        Message::read(report().as_bytes()),
        Ok(Message::Report(report()))
    );
    let refused = |change: fn(&mut Report), hint: &str| {
        let mut wrong = report();
        change(&mut wrong);
        let error = Message::read(wrong.as_bytes()).expect_err(hint).to_string();
        assert!(error.contains(hint) && !error.contains('\n'), "{error}");
    };
    refused(
        |r| r.header.magic = 0,
        "does not begin with Headway's magic number",
    );
    refused(
        |r| r.header.version = 3,
        "speak version 3 of the ABI and this agent version 12",
    );
    refused(|r| r.header.kind = 9, "no message of kind 9");
    refused(
        |r| r.header.kind = abi::OPEN,
        "112 bytes, which is not its size",
    );
    refused(|r| r.header.size = 111, "which is not its size");
    let report = report();
    let short = &report.as_bytes()[..50];
    assert_eq!(
        Message::read(short),
        Err(AbiError::Size { kind: 2, bytes: 50 })
    );
    assert_eq!(
        Message::read(&[]),
        Err(AbiError::Size { kind: 0, bytes: 0 })
    );
}

/// Factors are in steps of 1/65536, windows in whole packets, times in nanoseconds.
#[test]
fn actions_survive_conversion_to_whole_numbers() {
    for action in [
        Action::AddCwnd(-10.0),
        Action::AddCwnd(3.0),
        Action::ScaleCwnd(0.25),
        Action::ScaleCwnd(2.0),
        Action::ScaleRate(1.5),
        Action::Set("rtprop_window", 2.5),
    ] {
        let slot = ActionSlot::of(action, &bbr::TUNABLES);
        assert_eq!(slot.actions(&bbr::TUNABLES), [action]);
    }
    let slot = ActionSlot::of(Action::ScaleRate(1.025), &[]);
    let [Action::ScaleRate(factor)] = slot.actions(&[])[..] else {
        panic!("a rate");
    };
    assert!((factor - 1.025).abs() <= 0.5 / 65536.0);
    for nothing in [ActionSlot::of(Action::Nothing, &[]), ActionSlot::default()] {
        assert_eq!(nothing.actions(&bbr::TUNABLES), []);
    }
}

/// BBR's parameters are btlbw_window, a count of rounds, and rtprop_window, a time.
#[test]
fn parameters_are_sent_in_the_headers_units() {
    assert!(bbr::TUNABLES.len() <= abi::PARAMETERS);
    let encoded = |action| {
        let slot = ActionSlot::of(action, &bbr::TUNABLES);
        assert_eq!(slot.kind, abi::SET);
        (slot.which, slot.values)
    };
    let rounds = Action::Set("btlbw_window", 10.0);
    let seconds = Action::Set("rtprop_window", 2.5);
    assert_eq!(encoded(rounds), (0b01, [10, 0, 0, 0]));
    assert_eq!(encoded(seconds), (0b10, [0, 2_500_000_000, 0, 0]));

    let names = ["rtprop_window".to_owned(), "btlbw_window".to_owned()];
    let both = Action::Settings(&names, &[2.5, 10.0]);
    assert_eq!(encoded(both), (0b11, [10, 2_500_000_000, 0, 0]));
    let slot = ActionSlot::of(both, &bbr::TUNABLES);
    assert_eq!(slot.actions(&bbr::TUNABLES), [rounds, seconds]);
}
