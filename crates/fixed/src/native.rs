//! The C functions of `native.c`.
#![allow(unsafe_code, reason = "functions of C")]

use crate::{Int8, Mlp, MlpValues, RateAgent, RecordBytes};

// SAFETY: the types are laid out as the headers say (tests/layout.rs), references are valid for as long as a call,
// and the functions keep within what they point to, whatever it holds.
unsafe extern "C" {
    pub safe fn headway_native_log2(x: u64) -> u32;
    pub safe fn headway_native_mlp_run(net: &Mlp, values: &mut MlpValues) -> i64;
    pub safe fn headway_native_rate_agent_open(agent: &mut RateAgent, net: &Int8, now_ns: u64);
    pub safe fn headway_native_rate_agent_record(
        agent: &mut RateAgent,
        net: &Int8,
        record: &RecordBytes,
    ) -> u64;
}
