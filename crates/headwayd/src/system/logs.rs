//! Log lines on standard error.
//!
//! Once the agent serves, a thread of its own writes them: a reader of the log that stalls, such as
//! a journal on a full disk, delays no answer.

use std::env;
use std::io::{self, Write};
use std::sync::OnceLock;

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// The number of lines that may wait. Further ones are dropped, and counted.
const MOST_WAITING: usize = 4096;

static WRITER: OnceLock<NonBlocking> = OnceLock::new();

/// Writes all lines from INFO on, or those that `RUST_LOG` asks for, as text or as JSON.
pub fn start(as_json: bool) {
    let asked = env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let levels = asked
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let logs = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(false)
        .with_target(false);
    let registry = tracing_subscriber::registry().with(levels);
    match as_json {
        false => registry.with(logs.compact()).init(),
        true => registry.with(logs.json().flatten_event(true)).init(),
    }
}

fn writer() -> Box<dyn Write> {
    match WRITER.get() {
        Some(writer) => Box::new(writer.clone()),
        None => Box::new(io::stderr()),
    }
}

/// Leaves the lines from now on to a thread, which has the rights of the calling one. It ends when
/// the guard is dropped, and then writes what waits, for a second at most.
pub fn write_by_thread() -> WorkerGuard {
    let builder = NonBlockingBuilder::default()
        .buffered_lines_limit(MOST_WAITING)
        .lossy(true)
        .thread_name("logs");
    let (writer, guard) = builder.finish(io::stderr());
    let _ = WRITER.set(writer);
    guard
}

/// The number of lines that were dropped, because too many waited.
pub fn dropped() -> usize {
    WRITER
        .get()
        .map_or(0, |writer| writer.error_counter().dropped_lines())
}
