//! Tests that the guard inside BPF computes the same bits as the native build. To run it as root:
//! `cargo test -p headwayd --test guard -- --ignored --nocapture`.
#![cfg(target_os = "linux")]

mod bpf;

use bpf::Loaded;
use headway_fixed::vectors::Draw;
use headway_fixed::{Guard, Limits, Reason, RecordBytes, Verdict};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const OBJECT: &[u8] = include_bytes!("../../kernel/bpf/tests/guard_test.bpf.o");
const FLOWS: u64 = 60;
const RECORDS: u64 = 500;

/// `struct asked` of the program: the inputs of a call, and its result.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Asked {
    now_ns: u64,
    decided_ns: u64,
    answered_ns: u64,
    wanted: u64,
    cwnd: u32,
    ssthresh: u32,
    result: u64,
}

/// A flow's guard, natively and in BPF.
struct Both<'a> {
    bpf: &'a Loaded,
    native: Guard,
    limits: Limits,
    what: String,
}

impl Both<'_> {
    /// Runs a program, and checks that its result and the guard's state are those of the native
    /// build.
    fn run(
        &mut self,
        program: &str,
        asked: Asked,
        native: impl FnOnce(&mut Guard, &Limits) -> u64,
    ) {
        let found = self.bpf.run(program, asked);
        let result = native(&mut self.native, &self.limits);
        assert_eq!(found.result, result, "{}: {program}", self.what);
        let after: Guard = self.bpf.get("guard");
        assert_eq!(after, self.native, "{}: {program}", self.what);
    }
}

/// The usual limits, or random ones, in which the smallest window is not above the largest.
fn limits(draw: &mut Draw) -> Limits {
    let mut limits = Limits::default();
    if draw.below(3) == 0 {
        let bytes = limits.as_mut_bytes();
        bytes.iter_mut().for_each(|byte| *byte = draw.bits() as u8);
        limits.max_cwnd = limits.max_cwnd.max(2);
        limits.min_cwnd = limits.min_cwnd.min(limits.max_cwnd);
    }
    limits
}

/// A flow's next record, 10 ms after `last`, with an RTT of 20 ms, of a policy for which the guard
/// is to trip with `reason`. For `Reason::Fine` it is a random record.
fn next_record(draw: &mut Draw, reason: Reason, record: u64, last: &RecordBytes) -> RecordBytes {
    if reason == Reason::Fine {
        return draw.record(last);
    }
    // The first second is fine.
    let (mut delivered, mut lost, mut cwnd, mut srtt_us) = (8 + draw.below(4), 0, 30, 21_000);
    match reason {
        _ if record < 100 => {}
        Reason::Lossy => (lost, cwnd) = (5, 2000),
        Reason::Slow => (cwnd, srtt_us) = (5000, 200_000),
        Reason::Poor => (delivered, cwnd) = (u64::from(record.is_multiple_of(4)), 2),
        _ => {}
    }
    let low = |word: u64, more: u64| u64::from((word as u32).wrapping_add(more as u32));
    let mut next = *last;
    // abi.h has the format; see `Draw::record`.
    next[0] = last[0].wrapping_add(10_000_000);
    next[2] = low(last[2], delivered + lost);
    next[3] = low(last[3], delivered);
    next[4] = low(last[4], lost) | cwnd << 32;
    next[5] = cwnd | 1500 << 32;
    next[6] = srtt_us | srtt_us << 32;
    next[7] = 20_000 << 32;
    next[8] = delivered | 10_000 << 32;
    next[9] = 1;
    next
}

/// Runs a flow through both guards, and counts the verdicts and the reasons of trips.
fn compare(
    bpf: &Loaded,
    draw: &mut Draw,
    flow: u64,
    judged: &mut [u64; 4],
    reasons: &mut [u64; 6],
) {
    let reason = Reason::ALL[flow as usize % Reason::ALL.len()];
    let mut both = Both {
        bpf,
        native: Guard::new_zeroed(),
        limits: match reason {
            Reason::Fine => limits(draw),
            _ => Limits::default(),
        },
        what: format!("flow {flow} opens"),
    };
    bpf.put("limits", &both.limits);
    bpf.put("guard", &both.native);
    let mut last: RecordBytes = [draw.below(1 << 40), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut asked = Asked::new_zeroed();
    (asked.now_ns, asked.cwnd, asked.ssthresh) = (last[0], 10, draw.below(2) as u32 * 50);
    let open = |asked: Asked| {
        move |guard: &mut Guard, _: &Limits| {
            *guard = Guard::new(asked.now_ns, asked.cwnd, asked.ssthresh);
            asked.result
        }
    };
    both.run("test_open", asked, open(asked));
    for record in 0..RECORDS {
        both.what = format!("flow {flow}, record {record}");
        last = next_record(draw, reason, record, &last);
        let now = last[0];
        asked.now_ns = now;
        bpf.put("record", &last);
        if draw.below(4) > 0 {
            both.run("test_ask", asked, |guard, _| {
                guard.ask(now);
                asked.result
            });
        }
        if reason != Reason::Stale && draw.below(4) > 0 {
            // The answer is looked for a little after the record's time. Its own times may be
            // random.
            let is_any = reason == Reason::Fine;
            let most = |draw: &mut Draw| if is_any { draw.below(64) } else { 50 };
            let mut before = |from: u64| from.wrapping_sub(draw.bits() >> most(draw));
            asked.now_ns = now.wrapping_add(5000);
            asked.answered_ns = before(asked.now_ns);
            asked.decided_ns = before(asked.answered_ns);
            let Asked {
                decided_ns,
                answered_ns,
                now_ns,
                ..
            } = asked;
            both.run("test_answer", asked, |guard, limits| {
                guard.answer(limits, decided_ns, answered_ns, now_ns).into()
            });
        }
        asked.wanted = match reason {
            Reason::Fine => draw.bits() >> draw.below(64),
            Reason::Wild if record >= 100 => u64::MAX >> 1,
            _ => draw.below(1000),
        };
        let wanted = asked.wanted;
        both.run("test_cwnd", asked, |guard, limits| {
            guard.cwnd(limits, wanted as i64).into()
        });
        both.run("test_rate", asked, |guard, limits| {
            guard.rate(limits, wanted)
        });
        both.run("test_judge", asked, |guard, limits| {
            let verdict = guard.judge(limits, &last);
            judged[verdict as usize] += 1;
            if verdict == Verdict::Trip {
                reasons[guard.reason() as usize] += 1;
            }
            verdict as u64
        });
        both.run("test_restart", asked, |guard, limits| {
            guard.restart(limits, &last).into()
        });
        let (now_ns, srtt_us) = (asked.now_ns, (last[6] >> 32) as u32);
        both.run("test_ignores_loss", asked, |guard, limits| {
            guard.ignores_loss(limits, now_ns, srtt_us).into()
        });
        // Flows of one reason are to trip for it.
        if reason == Reason::Fine && draw.below(50) == 0 {
            both.run("test_acquit", asked, |guard, _| {
                guard.acquit();
                asked.result
            });
        }
        if draw.below(100) == 0 {
            both.run("test_forget", asked, |guard, _| {
                guard.forget();
                asked.result
            });
        }
    }
}

#[test]
#[ignore = "needs root: make test-system"]
fn bpf_judges_as_the_native_build_does() {
    let Some(bpf) = Loaded::new(OBJECT) else {
        return;
    };
    let mut draw = Draw::new(1);
    let (mut judged, mut reasons) = ([0; 4], [0; 6]);
    for flow in 0..FLOWS {
        compare(&bpf, &mut draw, flow, &mut judged, &mut reasons);
    }
    println!("policy's, trips, Cubic's, returns: {judged:?}; by reason: {reasons:?}");
    assert!(judged.iter().all(|count| *count > 10), "{judged:?}");
    assert!(reasons[1..].iter().all(|count| *count > 0), "{reasons:?}");
}
