//! Tests commands whose output cannot be written.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

fn full() -> Stdio {
    let full = File::options().write(true).open("/dev/full");
    full.expect("Linux has it").into()
}

/// The exit code, and the text on standard error.
fn headwayd(word: &str, out: impl Into<Stdio>, err: Stdio) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwayd"));
    let child = command.arg(word).stdout(out).stderr(err).spawn();
    let done = child.expect("it starts").wait_with_output();
    let done = done.expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

#[test]
fn a_full_disk_is_an_error_of_one_line() {
    let (code, said) = headwayd("systemd-unit", full(), Stdio::piped());
    let why = "No space left on device (os error 28)";
    assert_eq!(said, format!("headwayd: standard output: {why}\n"));
    assert_eq!(code, Some(1));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    let (code, said) = headwayd("systemd-unit", writer, Stdio::piped());
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

#[test]
fn wrong_usage_has_its_exit_code_even_if_standard_error_is_full() {
    let (code, _) = headwayd("bogus", Stdio::null(), full());
    assert_eq!(code, Some(2));
}
