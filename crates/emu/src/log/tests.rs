use std::fs;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use headway_cc::{Header, Stream};
use headway_net::queue::{DropTail, Limits};
use headway_net::trace::Trace;
use headway_net::{Link, Segment, Server};
use headway_record::recording::LinkLogHead;

use super::*;

/// A folder of one test, which is deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let name = format!("headway-log-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A link whose log is `NAME.log` in this folder.
    fn link(&self, name: &str, rated_from: Time) -> LoggedLink {
        let head = LinkLogHead {
            link: name,
            source: "a source",
            queue: "infinite",
            command: "a test",
            rated_from,
        };
        let file = File::create(&self.file(&format!("{name}.log"))).unwrap();
        LoggedLink {
            name: name.to_owned(),
            log: Some(LinkLog::new(file, &head).unwrap()),
        }
    }

    fn log(&self, behind: usize) -> EventLog {
        let links = vec![self.link("up", Time::ZERO)];
        let events = self.file("events.parquet");
        EventLog::start_with(&events, links, &["far".to_owned()], behind).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn packet(seq: u64, size: u16) -> Packet {
    Packet {
        flow: 0,
        size,
        hops_left: 0,
        ecn: Ecn::NotEct,
        arrived: Time::ZERO,
        body: Body::Data(Segment {
            number: seq % 10,
            seq,
            sent: Time::ZERO,
            queued: Duration::ZERO,
            header: Header::default(),
        }),
    }
}

fn arrival(seq: u64, at: Time) -> LinkEvent {
    LinkEvent {
        at,
        what: LinkEventKind::Arrival(packet(seq, 1500)),
    }
}

/// Waits until `is_so`, for sixty seconds at most.
fn eventually(is_so: impl Fn() -> bool) -> bool {
    (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_so()
    })
}

/// Packets reach the link of a trace at random times, and its events are taken at random times, as
/// an emulator does. The log then has every opportunity of the trace in its millisecond, used or
/// not, line by line.
#[test]
fn opportunities_are_the_trace_line_by_line() {
    let folder = Folder::new("trace");
    let times = [0, 3, 3, 4, 10, 10, 10, 200, 201, 350];
    let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
    let trace = Trace::parse(&text).unwrap();
    let queue = Box::new(DropTail::new(Limits::new(Some(2), None)));
    let server = Server::trace(Arc::new(trace), Duration::ZERO, false);
    let mut link = Link::queued(queue, server, Duration::from_millis(20)).observed();
    let links = vec![folder.link("down", Time::NEVER)];
    let events = folder.file("events.parquet");
    let mut log = EventLog::start(&events, links, &["far".to_owned()]).unwrap();
    let mut stream = Stream::new(1, "log");
    let (mut now, mut taken) = (Time::ZERO, Vec::new());
    let passes = 40;
    let end = Time::from_millis(passes * 350);
    for seq in 1.. {
        now = (now + Duration::from_secs_f64(stream.exponential(1.0) * 0.01)).min(end);
        if now == end {
            break;
        }
        link.arrive(now, &packet(seq, 40 + (stream.uniform() * 1460.0) as u16));
        if stream.chance(0.3) {
            taken.extend(link.take_events(now));
        }
        for event in taken.drain(..) {
            log.on_link_event(0, &event);
        }
        while let Some(packet) = link.deliver(now) {
            log.on_delivery(now, packet.arrived, 0, &packet, &[]);
        }
    }
    for event in link.take_events(end) {
        log.on_link_event(0, &event);
    }
    let logged = log.finish();
    assert_eq!(logged.failure, None);

    let text = fs::read_to_string(folder.file("down.log")).unwrap();
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let (opportunities, others): (Vec<&str>, Vec<&str>) = lines.partition(|l| l.contains('#'));
    // mahimahi's rule: each pass begins where the one before had its last opportunity.
    let passes = (0..=passes).flat_map(|pass| times.map(|ms| pass * 350 + ms));
    let passes = passes.filter(|&ms| ms <= end.as_nanos() / 1_000_000);
    let wanted: Vec<String> = passes.map(|ms| format!("{ms} # 1504")).collect();
    assert_eq!(opportunities, wanted);
    let count = |event: &str| others.iter().filter(|l| l.contains(event)).count();
    assert!(
        count(" - ") > 100 && count(" d 1 ") > 100,
        "{}",
        others.len()
    );
    assert!(count(" + ") >= count(" - ") + count(" d "));
    assert!(logged.events as usize > opportunities.len() + others.len());
    assert!(events.exists() && !folder.file("events.parquet.part").exists());
}

/// If the process is killed, everything handed over some time ago is in the mahimahi log already.
#[test]
fn a_log_can_be_read_while_it_is_written() {
    let folder = Folder::new("partial");
    let mut log = folder.log(16);
    log.on_link_event(0, &arrival(1, Time::from_millis(1)));
    assert_eq!(log.next_call(), Time::from_millis(21));
    log.hand_over();
    let so_far = || fs::read_to_string(folder.file("up.log")).unwrap();
    assert!(eventually(|| so_far().ends_with("\n1 + 1500\n")));
    assert!(
        !folder.file("events.parquet").exists(),
        "it has no footer yet"
    );
    // A thread that is dropped leaves complete files as well.
    drop(log);
    assert!(eventually(|| folder.file("events.parquet").exists()));
}

/// If the disk takes nothing, the log ends, and the emulator does not notice.
#[test]
fn a_log_that_cannot_keep_up_ends() {
    let folder = Folder::new("stuck");
    let fifo = folder.file("up.log");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut reader = fs::OpenOptions::new();
    let reader = reader.read(true).custom_flags(libc::O_NONBLOCK);
    let mut reader = reader.open(&fifo).unwrap();
    let mut log = folder.log(4);
    let each = Duration::from_micros(10);
    // 200,000 lines are 2 MB, far more than a pipe holds.
    for seq in 0..200_000 {
        log.on_link_event(0, &arrival(seq, Time::ZERO + each * seq));
    }
    let ended = log
        .overrun_at
        .expect("the log ends because nothing is read");
    assert!(ended < Time::from_millis(2000), "{ended:?}");
    assert!(log.batch.len() <= EventLog::BATCH);
    let drain = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        // It reads 0 once the writer has closed its end; before that there may be nothing to read.
        while !matches!(reader.read(&mut buffer), Ok(0)) {}
    });
    let failure = log.finish().failure.unwrap();
    assert!(failure.contains("could not keep up"), "{failure}");
    assert!(!failure.contains('\n'));
    drain.join().unwrap();
}

/// If the disk is full, the log ends, and the error names the file.
#[test]
fn an_error_names_the_file() {
    let folder = Folder::new("full");
    symlink("/dev/full", folder.file("up.log")).unwrap();
    let mut log = folder.log(16);
    log.on_link_event(0, &arrival(1, Time::ZERO));
    log.hand_over();
    assert!(eventually(|| log.writer.as_ref().unwrap().is_finished()));
    log.on_link_event(0, &arrival(2, Time::from_millis(1)));
    log.hand_over();
    assert!(log.full.is_none(), "the log has ended");
    let failure = log.finish().failure.unwrap();
    assert!(failure.contains("up.log: "), "{failure}");
}
