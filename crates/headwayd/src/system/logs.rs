//! Log lines on standard error.
//!
//! Once the agent has given up its rights, a thread writes them. So a reader of the log that
//! stalls, such as a journal on a full disk, delays no answer.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use std::{env, panic};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use super::priority;
use crate::error::Result;

/// The number of lines that may wait for the thread. Further lines are dropped.
const MOST_WAITING: usize = 4096;
/// A reader that stalls delays the end of the agent by this time, in ms, at most.
const FINISH_WITHIN_MS: u32 = 1000;

static LINES: OnceLock<SyncSender<Vec<u8>>> = OnceLock::new();
/// The number of lines that the thread has not written yet.
static WAITING: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Writes all lines from INFO on, or those that `RUST_LOG` asks for, as text or as JSON.
pub fn start(as_json: bool) {
    let asked = env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let levels = asked
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let logs = tracing_subscriber::fmt::layer()
        .with_writer(|| Line)
        .with_ansi(false)
        .with_target(false);
    let registry = tracing_subscriber::registry().with(levels);
    match as_json {
        false => registry.with(logs.compact()).init(),
        true => registry.with(logs.json().flatten_event(true)).init(),
    }
    // The lines before a panic are those that explain it.
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        // The report of the panic would wait for a reader that stalls, and the agent would not end.
        if finish() {
            report(what);
        }
    }));
}

/// Leaves all further lines to a thread with the rights of the calling one.
///
/// # Errors
/// One line, if the system has no room for a thread.
pub fn write_by_thread() -> Result<()> {
    let (lines, waiting) = sync_channel(MOST_WAITING);
    priority::spawn("logs", move || write_all(&waiting))?;
    let _ = LINES.set(lines);
    Ok(())
}

/// Waits until no line waits, for a second at most. Returns whether all are written.
pub fn finish() -> bool {
    let is_finished = || WAITING.load(Ordering::Relaxed) == 0;
    for _ in 0..FINISH_WITHIN_MS {
        if is_finished() {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    is_finished()
}

/// The number of lines that were dropped, because too many waited or they could not be written.
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

fn write_all(lines: &Receiver<Vec<u8>>) {
    let mut said = 0;
    for line in lines {
        let is_written = io::stderr().write_all(&line).is_ok();
        DROPPED.fetch_add(u64::from(!is_written), Ordering::Relaxed);
        let left = WAITING.fetch_sub(1, Ordering::Relaxed) - 1;
        let dropped = dropped();
        // Where lines cannot be written, this one could not be either.
        if is_written && left == 0 && dropped > said {
            tracing::warn!(lines = dropped - said, "log lines were dropped");
            said = dropped;
        }
    }
}

/// Each write is a whole line: tracing-subscriber formats it first.
struct Line;

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let Some(lines) = LINES.get() else {
            return io::stderr().write(line);
        };
        // The line is counted before the thread can have it.
        WAITING.fetch_add(1, Ordering::Relaxed);
        if lines.try_send(line.to_vec()).is_err() {
            WAITING.fetch_sub(1, Ordering::Relaxed);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// The test runs itself in another process, which has this variable.
    const INSIDE: &str = "HEADWAYD_TEST_PANICS";
    const NAME: &str = "system::logs::tests::a_panic_ends_the_process_while_its_log_is_not_read";
    /// For two minutes.
    const LOOKS: u32 = 6000;

    #[test]
    fn a_panic_ends_the_process_while_its_log_is_not_read() {
        if env::var_os(INSIDE).is_some() {
            start(false);
            write_by_thread().expect("a thread");
            // These are far more bytes than a pipe holds.
            for line in 0..MOST_WAITING {
                tracing::info!(line, "{}", "a line of the log ".repeat(10));
            }
            panic!("nobody reads this");
        }
        let program = env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["--exact", NAME, "--nocapture"])
            .env(INSIDE, "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let is_over = (0..LOOKS).any(|_| {
            thread::sleep(Duration::from_millis(20));
            child.try_wait().expect("its state").is_some()
        });
        child.kill().expect("a process that ends");
        let status = child.wait().expect("its state");
        assert!(is_over, "it hangs");
        assert_eq!(status.code(), Some(101));
    }
}
