//! Writes down what policies would have done (`--shadow`).

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use headway_policy::schemes::PolicySpec;
use headway_policy::{Action, Record};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::system::priority;

/// Writes decisions that are not carried out into a file, a line of JSON for each, or nowhere. A
/// disk may take longer than a flow can wait, so a thread of its own writes them.
#[derive(Debug, Default)]
pub struct Shadow {
    writer: Option<Writer>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Lines that will not be in the file.
    dropped: AtomicU64,
    /// Lines that wait, or are in the writer's buffer.
    left: AtomicU64,
}

#[derive(Debug)]
struct Writer {
    lines: SyncSender<Vec<u8>>,
    /// The thread sends nothing. The channel closes when the thread ends.
    ends: Receiver<Infallible>,
}

/// The most lines, of about 300 bytes each, that may wait for the disk.
const MOST_WAITING: usize = 16_384;
/// The buffer is written this time after the last line.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// The longest wait for the disk at the end: a disk may never answer.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// The version of a line's format, which docs/kernel.md describes.
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
    /// Opens the file, or an open stream (`-` is standard output), while the process has the right
    /// to. Only the owner may read a new file. Lines of an earlier agent stay. If the file ends
    /// with a part of a line, because that agent was killed, a line break follows it.
    ///
    /// # Errors
    /// One line, if it cannot be opened.
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
        file.map_err(|e| Error::Usage(format!("--shadow: cannot open {}: {e}", path.display())))
    }

    /// A shadow that writes into this file, or nowhere. Call it once rights are given up, because
    /// its thread inherits them.
    pub fn into(file: Option<File>) -> Result<Shadow> {
        let mut shadow = Shadow::default();
        let writer = file.map(|file| Writer::start(file, MOST_WAITING, &shadow.counts));
        shadow.writer = writer.transpose()?;
        Ok(shadow)
    }

    /// The number of lines that were not written, because too many waited or the disk did not take
    /// them.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Writes a decision that was not carried out.
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
        // The line is counted before the writer can have it.
        self.counts.left.fetch_add(1, Ordering::Relaxed);
        let sent = serde_json::to_vec(&line).map(|mut line| {
            line.push(b'\n');
            writer.lines.try_send(line).is_ok()
        });
        if !matches!(sent, Ok(true)) {
            self.counts.give_up(1);
        }
    }

    /// Waits until all lines are written, for a few seconds at most. The rest is dropped.
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
        // A thread that has ended leaves no line, unless it panicked.
        self.counts
            .give_up(self.counts.left.load(Ordering::Relaxed));
        let dropped = self.dropped();
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "decisions are missing in the shadow file: the disk was too slow or full"
            );
        }
    }
}

impl Counts {
    /// Counts `lines` of those that are left as dropped.
    fn give_up(&self, lines: u64) {
        self.left.fetch_sub(lines, Ordering::Relaxed);
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }
}

impl Writer {
    fn start(
        out: impl Write + Send + 'static,
        most: usize,
        counts: &Arc<Counts>,
    ) -> Result<Writer> {
        let (lines, waiting) = sync_channel(most);
        let (has_ended, ends) = channel();
        let counts = Arc::clone(counts);
        priority::spawn("shadow", move || {
            let _has_ended: Sender<Infallible> = has_ended;
            write_all(out, &waiting, &counts);
        })?;
        Ok(Writer { lines, ends })
    }
}

/// Writes lines until all senders are gone. An error, such as a full disk, is logged once, and
/// writing goes on.
fn write_all(out: impl Write, lines: &Receiver<Vec<u8>>, counts: &Counts) {
    let mut out = BufWriter::new(out);
    // The number of lines in the buffer. If writing fails they stay there, and are written later.
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
            // Dropping the writer would try to write the buffer once more.
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

    /// A disk that writes nothing until it is told to go on.
    struct Disk {
        written: Arc<Mutex<Vec<u8>>>,
        goes_on: Receiver<()>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Once the sender is gone, this does not wait any more.
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
        shadow.writer = Some(Writer::start(disk, most, &shadow.counts).expect("a thread"));
        (shadow, written, go)
    }

    fn write(shadow: &mut Shadow, lines: u32) {
        let served = PolicySpec::read("owl").expect("a model of ours");
        let remote = SocketAddr::from(([192, 0, 2, 1], 443));
        for flow in 0..lines {
            shadow.write(&served, flow, remote, &Record::default(), Action::Nothing);
        }
    }

    /// Other programs may write into the stream too, such as a service's log.
    #[test]
    fn earlier_output_in_a_stream_stays() {
        let file = std::env::temp_dir().join(format!("headwayd-shadow-{}", std::process::id()));
        let mut shared = File::create(&file).expect("there is room");
        shared.write_all(b"theirs\n").expect("there is room");
        let stream = format!("/dev/fd/{}", shared.as_raw_fd());
        let mut shadow = Shadow::into(Some(Shadow::create(Path::new(&stream)).expect("open")))
            .expect("a thread");
        write(&mut shadow, 1);
        shadow.finish();
        let written = std::fs::read_to_string(&file).expect("there");
        std::fs::remove_file(&file).expect("the file exists");
        assert!(written.starts_with("theirs\n{"), "{written}");
    }

    /// That holds too while that agent runs and a second one is refused.
    #[test]
    fn lines_of_an_earlier_agent_stay() {
        let file = std::env::temp_dir().join(format!("headwayd-earlier-{}", std::process::id()));
        for lines in 1..=2 {
            let refused = Shadow::create(&file).expect("there is room");
            let mut shadow = Shadow::into(Some(Shadow::create(&file).expect("there is room")))
                .expect("a thread");
            write(&mut shadow, 1);
            shadow.finish();
            drop(refused);
            let written = std::fs::read_to_string(&file).expect("there");
            assert_eq!(written.lines().count(), lines, "{written}");
        }
        std::fs::remove_file(&file).expect("the file exists");
    }

    #[test]
    fn a_slow_disk_holds_nothing_up_and_waiting_lines_are_written() {
        let (mut shadow, written, go) = stuck(100);
        write(&mut shadow, 1000);
        // The buffer of 8 KiB and the queue of a hundred lines have room.
        let dropped = shadow.dropped() as usize;
        assert!((800..=900).contains(&dropped), "{dropped}");
        drop(go);
        shadow.finish();
        let written = written.lock().expect("no panic");
        let lines = str::from_utf8(&written).expect("JSON").lines().count();
        assert_eq!(lines + dropped, 1000);
        assert!(written.ends_with(b"\n"));
    }

    /// `_go` is held, so that the disk never answers.
    #[test]
    fn the_end_does_not_wait_for_a_disk_that_never_answers() {
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

    /// The few lines are all in the buffer until the end.
    #[test]
    fn lines_that_the_last_flush_does_not_write_are_counted() {
        let line = {
            let (mut shadow, written, go) = stuck(1);
            drop(go);
            write(&mut shadow, 1);
            shadow.finish();
            written.lock().expect("no panic").len()
        };
        // There is room for none, for one and a half, and for all lines.
        for (room, lost) in [(0, 10), (line * 3 / 2, 9), (line * 100, 0)] {
            let mut shadow = Shadow::default();
            shadow.writer = Some(Writer::start(Full(room), 100, &shadow.counts).expect("a thread"));
            write(&mut shadow, 10);
            shadow.finish();
            assert_eq!(shadow.dropped(), lost, "{room} bytes");
        }
    }

    #[test]
    fn half_a_line_of_a_killed_agent_is_ended() {
        let path = std::env::temp_dir().join(format!("headwayd-torn-{}.jsonl", std::process::id()));
        for (there, expected) in [("", ""), ("{}\n", "{}\n"), ("{}\n{\"half", "{}\n{\"half\n")] {
            std::fs::write(&path, there).expect("a file");
            drop(Shadow::create(&path).expect("it can be written"));
            let found = std::fs::read_to_string(&path).expect("the file exists");
            assert_eq!(found, expected);
        }
        std::fs::remove_file(&path).expect("the file exists");
    }
}
