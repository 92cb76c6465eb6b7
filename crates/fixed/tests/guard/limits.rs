//! Each limit changes exactly its own decisions, and has a range.

use super::detectors::{begins_with, gives_up};
use super::probations::probation_of;
use super::*;

/// A situation, and the guard's decision in words.
type Situation = (&'static str, fn(&Limits) -> String);

fn said(trip: Option<(u64, Reason)>) -> String {
    trip.map_or("none".to_owned(), |(at, reason)| {
        format!("{} at {at}", reason.name())
    })
}

/// A flow with these RTTs in ms, which delivers and loses this many packets each 10 ms with this
/// many in flight.
fn flow(min_ms: u64, srtt_ms: u64, cwnd: u64) -> Flow {
    Flow {
        min_ms,
        srtt_ms,
        cwnd,
        ..FLOW
    }
}

fn runs(limits: &Limits, flow: Flow, seconds: u32, delivered: u64, lost: u64) -> String {
    let (mut guard, mut flow) = (Guard::new(0, 10, 0), flow);
    said(follow_by(
        limits,
        &mut guard,
        &mut flow,
        seconds * 100,
        |_, f| {
            f.delivered += delivered;
            f.lost += lost;
        },
    ))
}

/// A request at 100 ms that is not answered.
fn asks(limits: &Limits, rtt_ms: u64) -> String {
    let (mut guard, mut flow) = (Guard::new(0, 10, 0), flow(rtt_ms, rtt_ms, 100));
    let well = |_: &mut Guard, f: &mut Flow| f.delivered += 10;
    assert_eq!(follow_by(limits, &mut guard, &mut flow, 10, well), None);
    guard.ask(100 * MS);
    said(follow_by(limits, &mut guard, &mut flow, 200, well))
}

/// A second with ten packets in 10 ms, then what `change` does.
fn after_a_second(limits: &Limits, seconds: u32, change: fn(&mut Flow)) -> String {
    let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
    let well = |_: &mut Guard, f: &mut Flow| f.delivered += 10;
    assert_eq!(follow_by(limits, &mut guard, &mut flow, 100, well), None);
    said(follow_by(
        limits,
        &mut guard,
        &mut flow,
        seconds * 100,
        |_, f| change(f),
    ))
}

/// A policy's largest rate, in packets/s, after a second at 1000 packets/s and `seconds` more at
/// 100 packets/s.
fn rate_after(limits: &Limits, seconds: u32) -> String {
    let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
    follow_by(limits, &mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    follow_by(limits, &mut guard, &mut flow, seconds * 100, |_, f| {
        f.delivered += 1;
        // The flag is HEADWAY_APP_LIMITED.
        f.flags = 1;
    });
    format!("{}", guard.rate(limits, 1 << 50) / 1500)
}

/// A flow that tripped because an answer did not come.
fn tripped(limits: &Limits) -> (Guard, Flow) {
    let (mut guard, mut flow) = begun();
    guard.ask(flow.now_ms * MS);
    follow_by(limits, &mut guard, &mut flow, 200, |_, f| f.delivered += 10).expect("stale");
    (guard, flow)
}

const SITUATIONS: &[Situation] = &[
    ("a policy asks for any rate", |l| {
        Guard::new(0, 10, 0).rate(l, 1 << 50).to_string()
    }),
    ("any rate after 1000 packets/s", |l| rate_after(l, 0)),
    ("any rate 15 s later", |l| rate_after(l, 15)),
    ("a window below the least", |l| {
        Guard::new(0, 10, 0).cwnd(l, -5).to_string()
    }),
    ("a window above the largest", |l| {
        Guard::new(0, 10, 0).cwnd(l, 1 << 40).to_string()
    }),
    ("windows out of bounds again and again", |l| {
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        said(follow_by(l, &mut guard, &mut flow, 100, |g, f| {
            f.delivered += 10;
            g.cwnd(l, 1 << 40);
        }))
    }),
    ("no answer, RTT 20 ms", |l| asks(l, 20)),
    ("no answer, RTT 100 ms", |l| asks(l, 100)),
    ("no answer, RTT 400 ms", |l| asks(l, 400)),
    ("an answer of 900 ms ago", |l| {
        let mut guard = Guard::new(0, 10, 0);
        guard.answer(l, 100 * MS, 101 * MS, 1000 * MS).to_string()
    }),
    ("the end of a probation, 800 ms after an answer", |l| {
        let (mut guard, mut flow) = tripped(l);
        flow.now_ms = guard.until_ns() / MS - 800;
        let now = flow.now_ms * MS;
        guard.answer(l, now, now, now);
        flow.now_ms += 800;
        format!("{:?}", guard.judge(l, &flow.record()))
    }),
    ("losses, RTT 20 ms", |l| {
        runs(l, flow(20, 20, 100), 10, 7, 3)
    }),
    ("losses, RTT 150 ms", |l| {
        runs(l, flow(150, 150, 100), 10, 7, 3)
    }),
    ("losses, RTT 20 ms, queue of 480 ms", |l| {
        runs(l, flow(20, 500, 100), 10, 7, 3)
    }),
    ("a queue of 400 ms", |l| {
        runs(l, flow(100, 500, 2000), 20, 10, 0)
    }),
    ("a queue of 400 ms, losses at 100 ms", |l| {
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        let trip = follow_by(l, &mut guard, &mut flow, 100, |_, f| {
            f.delivered += 10;
            f.lost += u64::from(f.now_ms == 500);
            f.srtt_ms = 200;
        });
        assert_eq!(trip, None);
        said(follow_by(l, &mut guard, &mut flow, 2000, |_, f| {
            f.delivered += 10;
            (f.srtt_ms, f.cwnd) = (500, 2000);
        }))
    }),
    ("a tenth of the rate", |l| {
        after_a_second(l, 20, |f| {
            f.delivered += 1;
            f.cwnd = 10;
        })
    }),
    ("a tenth of the rate, RTT 113 ms", |l| {
        after_a_second(l, 4, |f| {
            f.delivered += 1;
            (f.cwnd, f.srtt_ms) = (10, 113);
        })
    }),
    ("two packets, and a queue of others", |l| {
        after_a_second(l, 4, |f| {
            f.delivered += u64::from(f.now_ms % 100 == 0);
            (f.cwnd, f.srtt_ms) = (2, 200);
        })
    }),
    ("one packet a round trip since the beginning", |l| {
        said(begins_with(l, 1, false))
    }),
    ("three packets a round trip since the beginning", |l| {
        said(begins_with(l, 3, false))
    }),
    ("six tenths of the rate", |l| said(gives_up(l, 6, 200))),
    ("nine tenths of the rate", |l| said(gives_up(l, 9, 200))),
    ("probations", |l| {
        let (mut guard, mut flow) = begun();
        let all = [(); 7].map(|()| probation_of(l, &mut guard, &mut flow) / 1000);
        format!("{all:?}")
    }),
    ("11 minutes after three trips", |l| {
        let (mut guard, mut flow) = begun();
        for _ in 0..3 {
            probation_of(l, &mut guard, &mut flow);
        }
        follow_by(l, &mut guard, &mut flow, 66_000, |_, f| f.delivered += 10);
        (probation_of(l, &mut guard, &mut flow) / 1000).to_string()
    }),
    ("a loss 150 ms after a trip", |l| {
        let (mut guard, mut flow) = begun();
        let wild = |g: &mut Guard, f: &mut Flow| {
            f.delivered += 10;
            g.cwnd(l, 1 << 40);
        };
        follow_by(l, &mut guard, &mut flow, 1000, wild);
        let at = (flow.now_ms + 150) * MS;
        guard.ignores_loss(l, at, 100_000).to_string()
    }),
    ("Cubic takes over at one packet", |l| {
        let mut guard = Guard::new(0, 1, 0);
        let flow = Flow {
            cwnd: 1,
            now_ms: 10,
            ..FLOW
        };
        guard.judge(l, &flow.record());
        let flow = Flow {
            now_ms: 1000,
            marked: 1,
            ..flow
        };
        guard.judge(l, &flow.record());
        guard.restart(l, &flow.record()).to_string()
    }),
    ("the shadow Cubic after a second", |l| {
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        follow_by(l, &mut guard, &mut flow, 101, |_, f| f.delivered += 10);
        guard.cubic().cwnd().to_string()
    }),
];

/// A limit, a value, and the situations that it changes, each with the guard's new decision.
type Change = (&'static str, u64, &'static [(&'static str, &'static str)]);

/// Each limit with another value, and the new decision in each situation that it changes. All other
/// situations stay the same.
#[rustfmt::skip]
const CHANGES: &[Change] = &[
    ("max_rate", 12_500_000_001, &[("a policy asks for any rate", "12500000001")]),
    ("rate_gain", 4, &[("any rate after 1000 packets/s", "4000"), ("any rate 15 s later", "4000")]),
    ("min_cwnd", 3, &[("a window below the least", "3")]),
    ("max_cwnd", 99_999, &[("a window above the largest", "99999")]),
    ("wild_answers", 33, &[("windows out of bounds again and again", "bounds at 330")]),
    // The second acknowledgement after this time trips.
    ("answer_us", 110_000, &[("no answer, RTT 20 ms", "stale at 230")]),
    ("answer_rtts", 3, &[("no answer, RTT 100 ms", "stale at 420")]),
    // Twice 390 ms are less than 800 ms.
    ("answer_most_us", 390_000, &[
        ("no answer, RTT 400 ms", "stale at 510"),
        ("the end of a probation, 800 ms after an answer", "Fallback"),
    ]),
    ("answer_keeps_ms", 899, &[("an answer of 900 ms ago", "false")]),
    ("stale_answers", 3, &[
        ("no answer, RTT 20 ms", "stale at 230"),
        ("no answer, RTT 100 ms", "stale at 330"),
        ("no answer, RTT 400 ms", "stale at 630"),
    ]),
    ("return_patiences", 1, &[("the end of a probation, 800 ms after an answer", "Fallback")]),
    // Epochs begin at 10 ms. Five bad epochs trip for `loss` and `utility`, ten for `delay`.
    ("epoch_us", 210_000, &[
        ("losses, RTT 20 ms", "loss at 1060"),
        ("a queue of 400 ms, losses at 100 ms", "delay at 5850"),
        ("a tenth of the rate", "utility at 2110"),
        ("a tenth of the rate, RTT 113 ms", "utility at 2110"),
        ("two packets, and a queue of others", "utility at 2110"),
        ("one packet a round trip since the beginning", "utility at 1060"),
        ("six tenths of the rate", "utility at 14290"),
        ("the shadow Cubic after a second", "210.7578125"),
    ]),
    ("epoch_min_rtts", 3, &[
        ("losses, RTT 150 ms", "loss at 2260"),
        ("a queue of 400 ms, losses at 100 ms", "delay at 5910"),
        ("a tenth of the rate", "utility at 2710"),
        ("a tenth of the rate, RTT 113 ms", "utility at 2710"),
        ("two packets, and a queue of others", "utility at 2710"),
        ("one packet a round trip since the beginning", "utility at 1510"),
        ("six tenths of the rate", "utility at 17710"),
        ("the shadow Cubic after a second", "210.47265625"),
    ]),
    ("epoch_srtts", 2, &[
        ("losses, RTT 20 ms, queue of 480 ms", "loss at 5010"),
        ("a queue of 400 ms", "delay at 10010"),
        ("a queue of 400 ms, losses at 100 ms", "delay at 10810"),
        ("a tenth of the rate, RTT 113 ms", "utility at 2190"),
        ("two packets, and a queue of others", "utility at 3210"),
        ("six tenths of the rate", "utility at 14260"),
    ]),
    // A queue is an RTT above 112.94 ms, or 112.999. With a queue the path is slow, and not the
    // policy.
    ("queue_share", 28, &[("a tenth of the rate, RTT 113 ms", "none")]),
    ("queue_us", 499, &[("a tenth of the rate, RTT 113 ms", "none")]),
    ("few_packets", 1, &[("two packets, and a queue of others", "none")]),
    // The peak is remembered for seven to 14 seconds.
    ("peak_ms", 7000, &[("any rate 15 s later", "300")]),
    ("mean_shift", 6, &[("six tenths of the rate", "utility at 17810")]),
    // The flow has less than a quarter of it.
    ("initial_window", 13, &[("three packets a round trip since the beginning", "utility at 1010")]),
    // The path held 100 packets.
    ("shadow_gain", 3, &[("the shadow Cubic after a second", "310")]),
    ("shadow_packets", 11, &[("the shadow Cubic after a second", "211")]),
    ("beyond", 65_536, &[
        ("losses, RTT 20 ms", "none"),
        ("losses, RTT 150 ms", "none"),
        ("losses, RTT 20 ms, queue of 480 ms", "none"),
    ]),
    ("ahead", 65_536, &[("a queue of 400 ms", "none"), ("a queue of 400 ms, losses at 100 ms", "none")]),
    // 19660.8 in 65536 are lost.
    ("loss", 19_661, &[
        ("losses, RTT 20 ms", "none"),
        ("losses, RTT 150 ms", "none"),
        ("losses, RTT 20 ms, queue of 480 ms", "none"),
    ]),
    // An epoch of 200 ms has 200 packets.
    ("loss_packets", 201, &[("losses, RTT 20 ms", "none")]),
    ("epochs", 6, &[
        ("losses, RTT 20 ms", "loss at 1210"),
        ("losses, RTT 150 ms", "loss at 1810"),
        ("losses, RTT 20 ms, queue of 480 ms", "loss at 3010"),
        ("a tenth of the rate", "utility at 2210"),
        ("a tenth of the rate, RTT 113 ms", "utility at 2210"),
        ("two packets, and a queue of others", "utility at 2210"),
        ("one packet a round trip since the beginning", "utility at 1210"),
    ]),
    ("inflation", 5 * 256, &[("a queue of 400 ms", "none"), ("a queue of 400 ms, losses at 100 ms", "none")]),
    ("inflation_us", 400_000, &[("a queue of 400 ms", "none"), ("a queue of 400 ms, losses at 100 ms", "none")]),
    ("full_rtts", 3, &[("a queue of 400 ms, losses at 100 ms", "none")]),
    ("slow_epochs", 11, &[
        ("a queue of 400 ms", "delay at 5510"),
        ("a queue of 400 ms, losses at 100 ms", "delay at 6310"),
    ]),
    // log2(0.6) is above log2(1/2), so half of the RTT is worth half of the rate.
    ("weight", 65_536, &[("six tenths of the rate", "none")]),
    // A tenth of the rate is above the new margin, which is a sixteenth.
    ("margin", 4 * 65_536, &[
        ("a tenth of the rate", "none"),
        ("a tenth of the rate, RTT 113 ms", "none"),
        ("one packet a round trip since the beginning", "none"),
    ]),
    ("share", 32_768, &[("six tenths of the rate", "none")]),
    ("long_margin", 65_536, &[("six tenths of the rate", "none")]),
    ("long_epochs", 21, &[("six tenths of the rate", "utility at 14210")]),
    ("probation_ms", 11_000, &[
        ("probations", "[11, 22, 44, 88, 176, 352, 352]"),
        ("11 minutes after three trips", "44"),
    ]),
    ("undoubled", 1, &[
        ("probations", "[10, 10, 20, 40, 80, 160, 320]"),
        ("11 minutes after three trips", "20"),
    ]),
    ("doublings", 4, &[("probations", "[10, 20, 40, 80, 160, 160, 160]")]),
    ("pardon_ms", 300_000, &[("11 minutes after three trips", "20")]),
    ("spared_rtts", 1, &[("a loss 150 ms after a trip", "false")]),
    ("least_ssthresh", 5, &[("Cubic takes over at one packet", "5")]),
];

#[test]
fn each_limit_changes_only_its_own_cases() {
    let usual = Limits::default();
    let before: Vec<String> = SITUATIONS.iter().map(|(_, is)| is(&usual)).collect();
    let mut limits = CHANGES.iter().map(|(limit, ..)| *limit);
    let mut named = Limits::RANGES.iter().map(|(limit, _)| *limit);
    assert!(
        limits
            .by_ref()
            .eq(named.by_ref().filter(|limit| *limit != "unused"))
    );
    for (limit, value, changes) in CHANGES {
        let changed = usual.with(limit, *value).expect(limit);
        changed.check().expect("within its range");
        let known = |what: &&(&str, &str)| SITUATIONS.iter().any(|(name, _)| *name == what.0);
        assert!(
            !changes.is_empty() && changes.iter().all(|what| known(&what)),
            "{limit}"
        );
        for ((name, is), before) in SITUATIONS.iter().zip(&before) {
            let change = changes.iter().find(|(where_, _)| where_ == name);
            let expected = change.map_or(before.as_str(), |(_, expected)| *expected);
            assert_eq!(is(&changed), expected, "{limit} = {value}: {name}");
            assert!(
                change.is_none() || expected != before,
                "{limit} = {value}: {name}"
            );
        }
    }
}

/// The table's situations with the default limits.
#[test]
#[rustfmt::skip]
fn default_limits_decide_as_the_guide_says() {
    let usual = Limits::default();
    for (name, expected) in [
        ("windows out of bounds again and again", "bounds at 320"),
        ("no answer, RTT 20 ms", "stale at 220"),
        ("no answer, RTT 100 ms", "stale at 320"),
        ("no answer, RTT 400 ms", "stale at 620"),
        ("losses, RTT 20 ms", "loss at 1010"),
        ("losses, RTT 150 ms", "loss at 1510"),
        ("losses, RTT 20 ms, queue of 480 ms", "loss at 2510"),
        ("a queue of 400 ms", "delay at 5010"),
        ("a tenth of the rate", "utility at 2010"),
        ("one packet a round trip since the beginning", "utility at 1010"),
        ("three packets a round trip since the beginning", "none"),
        ("nine tenths of the rate", "none"),
        ("the shadow Cubic after a second", "210"),
    ] {
        let (_, is) = SITUATIONS.iter().find(|(one, _)| *one == name).expect(name);
        assert_eq!(is(&usual), expected, "{name}");
    }
}

/// A third of an epoch's twelve packets is lost, with 5000 in flight.
#[test]
fn loss_packets_sets_the_smallest_epoch_judged_for_loss() {
    let trip = |limits: &Limits| {
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        let trip = follow_by(limits, &mut guard, &mut flow, 1000, |_, f| {
            f.cwnd = 5000;
            f.delivered += u64::from(f.now_ms.is_multiple_of(50)) * 2;
            f.lost += u64::from(f.now_ms.is_multiple_of(50));
        });
        trip.map(|(_, reason)| reason)
    };
    let usual = Limits::default();
    let few = Limits {
        loss_packets: 10,
        ..usual
    };
    assert_eq!((trip(&usual), trip(&few)), (None, Some(Reason::Lossy)));
    assert_eq!(trip(&few.without_epochs()), None);
}

/// For each limit the value just outside its range is refused, in one line with the limit's name.
#[test]
fn a_limit_out_of_its_range_is_refused() {
    for limits in [
        Limits::default(),
        Limits::default().for_learners(),
        Limits::default().without_epochs().for_learners(),
        Limits::default().without_answer_limits(),
    ] {
        limits.check().expect("what is used");
    }
    // Both ends of one limit, with the widest range of windows.
    let wide = Limits {
        min_cwnd: 1,
        max_cwnd: 1_000_000,
        ..Limits::default()
    };
    for (name, range) in Limits::RANGES {
        let (least, most) = (*range.start(), *range.end());
        for inside in [least, most] {
            let limits = wide.with(name, inside).expect(name);
            limits.check().unwrap_or_else(|why| panic!("{why}"));
        }
        let outside = [least.checked_sub(1), most.checked_add(1)];
        for outside in outside.into_iter().flatten() {
            // A value that does not fit the limit's type cannot be set at all.
            let Some(limits) = wide.with(name, outside) else {
                assert!(outside > u32::MAX.into(), "{name}");
                continue;
            };
            let why = limits.check().expect_err(name).to_string();
            assert!(
                why.contains(&format!("limit {name} is {outside}, must be")),
                "{why}"
            );
            assert!(!why.contains('\n'), "{why}");
        }
    }
    let crossed = Limits {
        min_cwnd: 11,
        max_cwnd: 10,
        ..wide
    };
    let why = crossed.check().expect_err("no window is left").to_string();
    assert_eq!(why, "the guard's limit min_cwnd is 11, must be 1 to 10");
}

/// In C an unsigned number that wraps is not an error, but clang has a sanitizer that ends the
/// program there.
#[test]
fn arithmetic_does_not_wrap_at_the_ends_of_the_ranges() {
    let row = |(name, range): &(&str, std::ops::RangeInclusive<u64>)| {
        format!(
            "\t{{ {}ull, {}ull }}, /* {name} */\n",
            range.start(),
            range.end()
        )
    };
    let rows: String = Limits::RANGES.iter().map(row).collect();
    let ranges = format!("static const __u64 ranges[][2] = {{\n{rows}}};\n");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("ranges.h"), ranges).expect("a file");
    if let Some(trips) = crate::sanitized::run_without_wraps("ends") {
        assert!(trips > 1000, "{trips} trips");
    }
}

/// A flow without a policy waits for any time: 65,535 records find no answer in two hours. That is
/// longer than the longest limit on an answer's time, 71 minutes.
#[test]
fn without_a_time_limit_no_answer_is_too_late() {
    let limits = Limits::default().without_answer_limits();
    let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
    guard.ask(10 * MS);
    for _ in 0..70_000 {
        flow.now_ms += 110;
        flow.delivered += 110;
        assert_eq!(guard.judge(&limits, &flow.record()), Verdict::Policy);
    }
}
