//! What policies would have done, without doing it.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use headway_policy::schemes::PolicySpec;
use headway_policy::{Action, Record};
use serde::Serialize;

use crate::error::{Error, Result};

/// What becomes of decisions that are not carried out: a line of JSON for each in a file, or
/// nothing. A disk may take longer than a flow can wait, so that a thread of its own writes them.
#[derive(Debug, Default)]
pub struct Shadow {
    writer: Option<Writer>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Lines that will not be in the file.
    dropped: AtomicU64,
    /// And that may be yet: they wait, or are in the writer's buffer.
    left: AtomicU64,
}

#[derive(Debug)]
struct Writer {
    lines: SyncSender<Vec<u8>>,
    /// Nothing is ever said: it is closed when the thread ends.
    ends: Receiver<Infallible>,
}

/// The number of lines that may wait for the disk, of about 300 bytes each.
const MOST_WAITING: usize = 16_384;
/// What has come is in the file at most this time after the last line.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// A disk may never answer: the agent ends without it.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// What a line holds, whose meaning changes with the number: docs/kernel.md.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    policy: &'a str,
    model: &'a str,
    at_ns: u64,
    flow: u32,
    remote: SocketAddr,
    cwnd_packets: u32,
    srtt_us: u32,
    min_rtt_us: u32,
    delivered_packets: u32,
    lost_packets: u32,
    would: &'static str,
    value: serde_json::Value,
}

impl Shadow {
    /// A file, for its owner alone where it is new, or an open stream (`-` is standard output):
    /// opened while there is the right to. What an earlier agent has written there stays, and more
    /// comes after it, in lines of its own: a killed agent may have left half a line.
    ///
    /// # Errors
    /// One line, if it cannot be made.
    pub fn create(path: &Path) -> Result<File> {
        let is_stdout = path == Path::new("-");
        let path = if is_stdout {
            Path::new("/dev/stdout")
        } else {
            path
        };
        let create = || {
            let mut options = OpenOptions::new();
            (options.append(true).create(true).mode(0o600)).open(path)
        };
        let file = headway_record::own_stream(path).unwrap_or_else(create);
        let file = file.and_then(|mut file| {
            let length = file
                .metadata()
                .map(|is| if is.is_file() { is.len() } else { 0 })?;
            let mut last = [b'\n'];
            if length > 0 {
                File::open(path)?.read_exact_at(&mut last, length - 1)?;
            }
            if last != [b'\n'] {
                file.write_all(b"\n")?;
            }
            Ok(file)
        });
        file.map_err(|e| Error::Usage(format!("--shadow: cannot make {}: {e}", path.display())))
    }

    /// Into that, or nowhere. The thread that writes may do what this one may: rights are given up
    /// before.
    pub fn into(file: Option<File>) -> Shadow {
        let mut shadow = Shadow::default();
        shadow.writer = file.map(|file| Writer::start(file, MOST_WAITING, &shadow.counts));
        shadow
    }

    /// Lines that were not written, as too many waited or the disk did not take them.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// A decision that a policy would have taken.
    pub fn write(
        &mut self,
        served: &PolicySpec,
        flow: u32,
        remote: SocketAddr,
        record: &Record,
        action: Action<'_>,
    ) {
        let Some(writer) = &self.writer else { return };
        let (would, value) = in_words(action);
        let line = Line {
            schema: SCHEMA,
            policy: served.spec(),
            model: served.model_id(),
            at_ns: record.now_ns,
            flow,
            remote,
            cwnd_packets: record.cwnd,
            srtt_us: record.srtt_us,
            min_rtt_us: record.min_rtt_us,
            delivered_packets: record.delivered,
            lost_packets: record.lost,
            would,
            value,
        };
        // Before the writer may have it.
        self.counts.left.fetch_add(1, Ordering::Relaxed);
        let sent = serde_json::to_vec(&line).map(|mut line| {
            line.push(b'\n');
            writer.lines.try_send(line).is_ok()
        });
        if !matches!(sent, Ok(true)) {
            self.counts.give_up(1);
        }
    }

    /// Waits until all that came is written, but not for long: what is left then is dropped.
    pub fn finish(&mut self) {
        self.finish_within(FINISH_WITHIN);
    }

    fn finish_within(&mut self, most: Duration) {
        let Some(Writer { lines, ends }) = self.writer.take() else {
            return;
        };
        drop(lines);
        if ends.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
            tracing::error!(
                "the disk is too slow for the shadow file: some decisions are not in it"
            );
        }
        // Of a thread that has ended there is none, unless it panicked.
        self.counts
            .give_up(self.counts.left.load(Ordering::Relaxed));
        let dropped = self.dropped();
        if dropped > 0 {
            tracing::warn!(dropped, "decisions that are not in the file");
        }
    }
}

impl Counts {
    /// `lines` of those that were left will not be in the file.
    fn give_up(&self, lines: u64) {
        self.left.fetch_sub(lines, Ordering::Relaxed);
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }
}

impl Writer {
    fn start(out: impl Write + Send + 'static, most: usize, counts: &Arc<Counts>) -> Writer {
        let (lines, waiting) = sync_channel(most);
        let (has_ended, ends) = channel();
        let counts = Arc::clone(counts);
        thread::spawn(move || {
            let _has_ended: Sender<Infallible> = has_ended;
            write_all(out, &waiting, &counts);
        });
        Writer { lines, ends }
    }
}

/// Until nobody sends any more. A full disk is said once, and ends nothing.
fn write_all(out: impl Write, lines: &Receiver<Vec<u8>>, counts: &Counts) {
    let mut out = BufWriter::new(out);
    // Lines in the buffer, or a part of them: where writing fails they stay there, and are tried
    // again.
    let mut held = 0;
    let mut failed = false;
    let mut is_done = |done: io::Result<()>| {
        if let Err(error) = &done
            && !std::mem::replace(&mut failed, true)
        {
            tracing::error!(%error, "cannot write what the policy would have done");
        }
        done.is_ok()
    };
    loop {
        let is_last = match lines.recv_timeout(FLUSH_AFTER) {
            Ok(line) => {
                held += 1;
                if !is_done(out.write_all(&line)) {
                    counts.give_up(1);
                    held -= 1;
                }
                false
            }
            Err(RecvTimeoutError::Timeout) => {
                is_done(out.flush());
                false
            }
            Err(RecvTimeoutError::Disconnected) => {
                is_done(out.flush());
                true
            }
        };
        let holds = out.buffer().iter().filter(|byte| **byte == b'\n').count() as u64;
        counts.left.fetch_sub(held - holds, Ordering::Relaxed);
        held = holds;
        if is_last {
            counts.give_up(held);
            // Dropped whole it would be tried once more.
            let _ = out.into_parts();
            return;
        }
    }
}

fn in_words(action: Action<'_>) -> (&'static str, serde_json::Value) {
    match action {
        Action::Nothing => ("nothing", serde_json::Value::Null),
        Action::AddCwnd(packets) => ("add-cwnd", packets.into()),
        Action::ScaleCwnd(factor) => ("scale-cwnd", factor.into()),
        Action::ScaleRate(factor) => ("scale-rate", factor.into()),
        Action::Set(name, value) => ("set", serde_json::json!({ name: value })),
        Action::Settings(names, values) => {
            let pairs = names
                .iter()
                .cloned()
                .zip(values.iter().map(|v| (*v).into()));
            ("set", serde_json::Value::Object(pairs.collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::sync::Mutex;

    use super::*;

    /// A disk that writes nothing before it is told to, and then all.
    struct Disk {
        written: Arc<Mutex<Vec<u8>>>,
        goes_on: Receiver<()>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Who tells is gone: on and on.
            let _ = self.goes_on.recv();
            self.written.lock().expect("no panic").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn stuck(most: usize) -> (Shadow, Arc<Mutex<Vec<u8>>>, Sender<()>) {
        let (go, goes_on) = channel();
        let written = Arc::default();
        let disk = Disk {
            written: Arc::clone(&written),
            goes_on,
        };
        let mut shadow = Shadow::default();
        shadow.writer = Some(Writer::start(disk, most, &shadow.counts));
        (shadow, written, go)
    }

    fn write(shadow: &mut Shadow, lines: u32) {
        let served = PolicySpec::read("owl").expect("a model of ours");
        let remote = SocketAddr::from(([192, 0, 2, 1], 443));
        for flow in 0..lines {
            shadow.write(&served, flow, remote, &Record::default(), Action::Nothing);
        }
    }

    /// As a service's log is, into which others write too.
    #[test]
    fn what_a_stream_has_already_stays() {
        let file = std::env::temp_dir().join(format!("headwayd-shadow-{}", std::process::id()));
        let mut shared = File::create(&file).expect("room");
        shared.write_all(b"theirs\n").expect("room");
        let stream = format!("/dev/fd/{}", shared.as_raw_fd());
        let mut shadow = Shadow::into(Some(Shadow::create(Path::new(&stream)).expect("open")));
        write(&mut shadow, 1);
        shadow.finish();
        let written = std::fs::read_to_string(&file).expect("there");
        std::fs::remove_file(&file).expect("ours");
        assert!(written.starts_with("theirs\n{"), "{written}");
    }

    /// Also that of an agent that runs, while the next is refused.
    #[test]
    fn what_an_earlier_agent_has_written_stays() {
        let file = std::env::temp_dir().join(format!("headwayd-earlier-{}", std::process::id()));
        for lines in 1..=2 {
            let refused = Shadow::create(&file).expect("room");
            let mut shadow = Shadow::into(Some(Shadow::create(&file).expect("room")));
            write(&mut shadow, 1);
            shadow.finish();
            drop(refused);
            let written = std::fs::read_to_string(&file).expect("there");
            assert_eq!(written.lines().count(), lines, "{written}");
        }
        std::fs::remove_file(&file).expect("ours");
    }

    #[test]
    fn a_disk_that_stands_still_holds_nobody_up_and_what_waits_is_not_lost() {
        let (mut shadow, written, go) = stuck(100);
        write(&mut shadow, 1000);
        // A buffer of 8 KiB, and a hundred that wait.
        let dropped = shadow.dropped() as usize;
        assert!((800..=900).contains(&dropped), "{dropped}");
        drop(go);
        shadow.finish();
        let written = written.lock().expect("no panic");
        let lines = str::from_utf8(&written).expect("JSON").lines().count();
        assert_eq!(lines + dropped, 1000);
        assert!(written.ends_with(b"\n"));
    }

    /// `go` is held: the disk never answers.
    #[test]
    fn a_disk_that_never_answers_is_not_waited_for() {
        let (mut shadow, _, _go) = stuck(1000);
        write(&mut shadow, 500);
        assert_eq!(shadow.dropped(), 0);
        shadow.finish_within(Duration::from_millis(50));
        assert_eq!(shadow.dropped(), 500);
    }

    /// A disk with room for this number of bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.0);
            self.0 -= fits;
            match fits {
                0 => Err(io::ErrorKind::StorageFull.into()),
                _ => Ok(fits),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Few lines, which all are in the buffer until the end.
    #[test]
    fn what_the_last_flush_does_not_write_is_counted() {
        let line = {
            let (mut shadow, written, go) = stuck(1);
            drop(go);
            write(&mut shadow, 1);
            shadow.finish();
            written.lock().expect("no panic").len()
        };
        // One and a half of them fit.
        for (room, lost) in [(0, 10), (line * 3 / 2, 9), (line * 100, 0)] {
            let mut shadow = Shadow::default();
            shadow.writer = Some(Writer::start(Full(room), 100, &shadow.counts));
            write(&mut shadow, 10);
            shadow.finish();
            assert_eq!(shadow.dropped(), lost, "{room} bytes");
        }
    }

    #[test]
    fn what_a_killed_agent_left_of_a_line_is_a_line_of_its_own() {
        let path = std::env::temp_dir().join(format!("headwayd-torn-{}.jsonl", std::process::id()));
        for (there, expected) in [("", ""), ("{}\n", "{}\n"), ("{}\n{\"half", "{}\n{\"half\n")] {
            std::fs::write(&path, there).expect("a file");
            drop(Shadow::create(&path).expect("it can be written"));
            let found = std::fs::read_to_string(&path).expect("it is there");
            assert_eq!(found, expected);
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
