//! The C functions of `native.c`.
#![allow(unsafe_code, reason = "functions of C")]

use crate::{Cubic, Guard, Int8, Limits, Mlp, MlpValues, RateAgent, RecordBytes};

// SAFETY: the types have the headers' layout (tests/layout.rs), references are valid during a call,
// and the functions stay within what they point to, whatever it holds.
unsafe extern "C" {
    pub safe fn headway_native_mlp_run(net: &Mlp, values: &mut MlpValues) -> i64;
    pub safe fn headway_native_rate_agent_open(agent: &mut RateAgent, net: &Int8, now_ns: u64);
    pub safe fn headway_native_rate_agent_record(
        agent: &mut RateAgent,
        net: &Int8,
        record: &RecordBytes,
    ) -> u64;
    pub safe fn headway_native_cubic_open(cubic: &mut Cubic, cwnd: u32, ssthresh: u32);
    pub safe fn headway_native_cubic_acked(c: &mut Cubic, packets: u32, now_ns: u64, rtt_ns: u64);
    pub safe fn headway_native_cubic_lose(cubic: &mut Cubic, now_ns: u64, rtt_ns: u64);
    pub safe fn headway_native_cubic_time_out(cubic: &mut Cubic, now_ns: u64, is_recovering: i32);
    pub safe fn headway_native_cubic_leave_slow_start(cubic: &mut Cubic);
    pub safe fn headway_native_guard_open(guard: &mut Guard, now_ns: u64, cwnd: u32, ssthresh: u32);
    pub safe fn headway_native_guard_forget(guard: &mut Guard);
    pub safe fn headway_native_guard_acquit(guard: &mut Guard);
    pub safe fn headway_native_guard_ask(guard: &mut Guard, now_ns: u64);
    pub safe fn headway_native_guard_answer(
        guard: &mut Guard,
        limits: &Limits,
        decided_ns: u64,
        answered_ns: u64,
        now_ns: u64,
    ) -> i32;
    pub safe fn headway_native_guard_judge(
        guard: &mut Guard,
        limits: &Limits,
        record: &RecordBytes,
    ) -> i32;
    pub safe fn headway_native_guard_cwnd(guard: &mut Guard, limits: &Limits, wanted: i64) -> u32;
    pub safe fn headway_native_guard_rate(guard: &mut Guard, limits: &Limits, wanted: u64) -> u64;
    pub safe fn headway_native_guard_ignores_loss(
        guard: &Guard,
        limits: &Limits,
        now_ns: u64,
        srtt_us: u32,
    ) -> i32;
    pub safe fn headway_native_guard_restart(
        guard: &Guard,
        limits: &Limits,
        record: &RecordBytes,
    ) -> u32;
    pub safe fn headway_native_guard_reason(guard: &Guard) -> u32;
    pub safe fn headway_native_guard_trips(guard: &Guard) -> u32;
    pub safe fn headway_native_guard_until_ns(guard: &Guard) -> u64;
    pub safe fn headway_native_utility(
        limits: &Limits,
        rate: u64,
        rtt_us: u64,
        least_us: u64,
    ) -> i64;
    pub safe fn headway_native_guard_cubic_utility(
        guard: &Guard,
        limits: &Limits,
        peak: u64,
        least_us: u32,
        longest_us: u32,
        has_lost: i32,
    ) -> i64;
    pub safe fn headway_native_guard_cubic(guard: &Guard, cubic: &mut Cubic);
}
