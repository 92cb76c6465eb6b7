//! The C functions of `native.c`.
#![allow(unsafe_code, reason = "functions of C")]

unsafe extern "C" {
    pub safe fn headway_native_log2(x: u64) -> u32;
}
