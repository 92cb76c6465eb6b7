//! The guard: each rule by hand, and all rules with random records and answers.

mod answers;
mod any;
mod bounds;
mod cubic;
mod detectors;
mod limits;
mod probations;
mod takeover;

use headway_fixed::{Cubic, Guard, Limits, Reason, RecordBytes, Verdict};

const MS: u64 = 1_000_000;

/// A flow with a record every 10 ms.
#[derive(Clone, Copy)]
struct Flow {
    now_ms: u64,
    delivered: u64,
    marked: u64,
    lost: u64,
    cwnd: u64,
    min_ms: u64,
    srtt_ms: u64,
    acks: u64,
    flags: u64,
}

const FLOW: Flow = Flow {
    now_ms: 0,
    delivered: 0,
    marked: 0,
    lost: 0,
    cwnd: 100,
    min_ms: 100,
    srtt_ms: 100,
    acks: 1,
    flags: 0,
};

impl Flow {
    /// `abi.h`: the packets in flight equal the window.
    fn record(&self) -> RecordBytes {
        [
            self.now_ms * MS,
            0,
            0,
            self.delivered | self.marked << 32,
            self.lost | self.cwnd << 32,
            self.cwnd | 1500 << 32,
            self.srtt_ms * 1000 * (1 | 1 << 32),
            (self.min_ms * 1000) << 32,
            0,
            self.acks | self.flags << 32,
            0,
            0,
        ]
    }
}

/// Runs this many records 10 ms apart, with `change` before each. Returns the time in ms and the
/// reason of a trip.
fn follow(
    guard: &mut Guard,
    flow: &mut Flow,
    records: u32,
    change: impl FnMut(&mut Guard, &mut Flow),
) -> Option<(u64, Reason)> {
    follow_by(&Limits::default(), guard, flow, records, change)
}

fn follow_by(
    limits: &Limits,
    guard: &mut Guard,
    flow: &mut Flow,
    records: u32,
    mut change: impl FnMut(&mut Guard, &mut Flow),
) -> Option<(u64, Reason)> {
    for _ in 0..records {
        flow.now_ms += 10;
        change(guard, flow);
        if guard.judge(limits, &flow.record()) == Verdict::Trip {
            return Some((flow.now_ms, guard.reason()));
        }
    }
    None
}

/// A guard and a flow whose time is not zero, because a request at time zero would count as none.
fn begun() -> (Guard, Flow) {
    (Guard::new(0, 10, 0), Flow { now_ms: 10, ..FLOW })
}
