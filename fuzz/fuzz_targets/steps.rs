#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| headway_fuzz::steps(input));
