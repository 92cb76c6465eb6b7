//! Keeps the beginning of a program's standard error.

use std::io::{self, Read};
use std::process::ChildStderr;
use std::thread::{self, JoinHandle};

/// How many bytes are kept.
const MOST: u64 = 16 * 1024;

/// Reads all of it until it ends, so that the program never waits, and keeps the beginning.
pub(super) fn complaints_of(mut stderr: ChildStderr) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.by_ref().take(MOST).read_to_end(&mut text);
        let _ = io::copy(&mut stderr, &mut io::sink());
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// The last line that is not blank.
pub(super) fn last_line(complaints: &str) -> &str {
    let last = complaints.lines().rev().find(|l| !l.trim().is_empty());
    last.unwrap_or("it said nothing")
}
