//! How fast and how punctual the emulator is, between two namespaces:
//! `cargo run --release -p headway-emu --example link_speed -- --rate 1000 --seconds 10`.
//!
//! A kernel TCP flow fills the link (`--idle` leaves it empty), and small UDP packets that carry
//! their time of sending measure the delay of the other direction's link beyond what was asked for.

use std::io::{self, IoSliceMut, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Wait;

use headway_cc::{Duration, Rate, Time};
use headway_emu::emulator::{Emulator, Links, PRIORITY, Way};
use headway_emu::log::{EventLog, LoggedLink};
use headway_emu::sys::{Clock, Namespace, Tun, become_able, real_time};
use headway_net::Link;
use headway_net::queue::Limits;
use headway_record::LogHistogram;
use headway_record::recording::{File, LinkLog, LinkLogHead};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};

struct Options {
    rate_mbps: f64,
    delay_ms: f64,
    seconds: f64,
    queue_packets: u64,
    idle: bool,
    ordinary: bool,
    log: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    become_able()?;
    let (near, far) = (Namespace::create()?, Namespace::create()?);
    let near_tun = near.within(|| Tun::create("near"))??;
    let far_tun = far.within(|| Tun::create("far"))??;
    near.ip(&(near_tun.up(["10.0.0.1/24"]) + "route add 10.0.0.0/24 dev near\n"))?;
    far.ip(&(far_tun.up(["10.0.0.2/24"]) + "route add 10.0.0.0/24 dev far\n"))?;

    let link = || {
        let delay = Duration::from_secs_f64(options.delay_ms / 1e3);
        let limits = Limits::new(Some(options.queue_packets), None);
        Link::fifo(Rate::from_mbps(options.rate_mbps), limits, delay).observed()
    };
    let way = |from: usize, to: [u8; 4]| Way {
        from,
        to: (to.into(), 32),
        links: [from as u32].into(),
        port: 1 - from,
        flow: None,
        host_jitter: None,
    };
    let log = options.log.as_deref().map(begin_log).transpose()?;
    let clock = Clock::start();
    let mut emulator = Emulator::new(
        clock,
        vec![near_tun, far_tun],
        vec![way(0, [10, 0, 0, 2]), way(1, [10, 0, 0, 1])],
        Links::new(vec![link(), link()], vec![]),
        log,
    )?;

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        let stop = &stop;
        let running = scope.spawn(move || {
            let is_real_time = !options.ordinary && real_time(PRIORITY);
            emulator
                .run(Time::NEVER, stop)
                .map(|()| (emulator, is_real_time))
        });
        let errors = far.within(|| UdpSocket::bind("10.0.0.2:9"))??;
        let probe = near.within(|| UdpSocket::bind("10.0.0.1:0"))??;
        let delay = Duration::from_secs_f64(options.delay_ms / 1e3);
        let sink = scope.spawn(move || receive_probes(&errors, clock, delay, stop));
        scope.spawn(move || send_probes(&probe, clock, stop));
        // Data goes from far to near, so that probes meet only acknowledgements in their queue.
        let listener = near.within(|| TcpListener::bind("10.0.0.1:9"))??;
        let counted = (!options.idle).then(|| scope.spawn(move || drain(&listener, clock)));
        if !options.idle {
            let stream = far.within(|| TcpStream::connect("10.0.0.1:9"))??;
            scope.spawn(move || fill(stream, stop));
        }
        std::thread::sleep(Wait::from_secs_f64(options.seconds));
        stop.store(true, Ordering::Relaxed);
        let (emulator, is_real_time) = running.join().map_err(|_| "the emulator panicked")??;
        let error = sink.join().map_err(|_| "the sink panicked")?;
        let report = emulator.report().clone();
        let (_, _, log, _) = emulator.into_parts();
        let logged = log.map(EventLog::finish);
        let log_cpu_s = logged
            .as_ref()
            .map_or(0.0, |logged| logged.cpu.as_secs_f64());
        if let Some(failure) = logged.and_then(|logged| logged.failure) {
            return Err(failure.into());
        }
        let rate = match counted {
            Some(counted) => {
                let (bytes, span) = counted.join().map_err(|_| "the drain panicked")?;
                // There are 52 bytes of headers for 1448 of data.
                bytes as f64 * 1500.0 / 1448.0 * 8e-6 / span.as_secs_f64()
            }
            None => 0.0,
        };
        let cpu_s = report.cpu.as_secs_f64() + log_cpu_s;
        println!(
            "{{\"real_time\": {is_real_time}, \"rate_mbps\": {rate:.1}, \"cpu_s_per_gb\": {:.2}, \"cpu_share\": {:.3}, \"packets\": {}, \"refused\": {}, \"late_us\": {}, \"delay_error_us\": {}}}",
            cpu_s / (report.written_bytes as f64 / 1e9),
            cpu_s / report.elapsed.as_secs_f64(),
            report.written,
            report.refused + report.no_room,
            percentiles(&report.lateness),
            percentiles(&error),
        );
        Ok(())
    })
}

fn percentiles(histogram: &LogHistogram) -> String {
    let us = |p| histogram.percentile_ms(p).unwrap_or(f64::NAN) * 1e3;
    format!(
        "{{\"p50\": {:.1}, \"p90\": {:.1}, \"p99\": {:.1}, \"p99.9\": {:.1}, \"max\": {:.1}}}",
        us(0.5),
        us(0.9),
        us(0.99),
        us(0.999),
        us(1.0)
    )
}

/// Begins a log of every event on both links, as `headway shell --log` writes it.
fn begin_log(folder: &Path) -> io::Result<EventLog> {
    let link = |name: &str| {
        let head = LinkLogHead {
            link: name,
            source: "a rate",
            queue: "droptail",
            command: "speed",
            rated_from: Time::ZERO,
        };
        let file = File::create(&folder.join(format!("{name}.log")))?;
        Ok(LoggedLink {
            name: name.to_owned(),
            log: Some(LinkLog::new(file, &head)?),
        })
    };
    let links = [link("there"), link("back")]
        .into_iter()
        .collect::<io::Result<_>>()?;
    let hosts = ["far".to_owned(), "near".to_owned()];
    EventLog::start(&folder.join("events.parquet"), links, &hosts)
}

fn send_probes(socket: &UdpSocket, clock: Clock, stop: &AtomicBool) {
    let to: SocketAddr = ([10, 0, 0, 2], 9).into();
    while !stop.load(Ordering::Relaxed) {
        let _ = socket.send_to(&clock.now().as_nanos().to_le_bytes(), to);
        std::thread::sleep(Wait::from_micros(1937));
    }
}

/// Receives probes, and gives how much later than `delay` each reached the far kernel. The kernel
/// stamps them, so a late wake-up of this thread does not count.
fn receive_probes(
    socket: &UdpSocket,
    clock: Clock,
    delay: Duration,
    stop: &AtomicBool,
) -> LogHistogram {
    let mut errors = LogHistogram::default();
    let _ = socket.set_read_timeout(Some(Wait::from_millis(100)));
    let _ = setsockopt(socket, sockopt::ReceiveTimestampns, &true);
    while !stop.load(Ordering::Relaxed) {
        let mut sent = [0; 8];
        let mut parts = [IoSliceMut::new(&mut sent)];
        let mut space = nix::cmsg_space!(TimeSpec);
        let flags = MsgFlags::empty();
        let Ok(message) = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)
        else {
            continue;
        };
        let stamp = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|c| match c {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
                _ => None,
            })
        });
        // The stamp is a time of day. Its age is the same on both clocks.
        let (Some(stamp), Ok(today)) = (stamp, clock_gettime(ClockId::CLOCK_REALTIME)) else {
            continue;
        };
        let now = clock.now();
        let ago = Duration::from_nanos((today - stamp).num_nanoseconds().max(0) as u64);
        let took = now
            .saturating_sub(ago)
            .since(Time::from_nanos(u64::from_le_bytes(sent)));
        errors.add(took.saturating_sub(delay));
    }
    errors
}

fn fill(mut stream: TcpStream, stop: &AtomicBool) {
    let _ = stream.set_write_timeout(Some(Wait::from_millis(200)));
    let block = vec![0; 128 << 10];
    while !stop.load(Ordering::Relaxed) {
        let _ = stream.write(&block);
    }
}

fn drain(listener: &TcpListener, clock: Clock) -> (u64, Duration) {
    let Ok((mut stream, _)) = listener.accept() else {
        return (0, Duration::ZERO);
    };
    let _ = stream.set_read_timeout(Some(Wait::from_millis(500)));
    let mut block = vec![0; 1 << 20];
    let (mut bytes, begin) = (0, clock.now());
    let mut last = begin;
    while let Ok(read @ 1..) = stream.read(&mut block) {
        bytes += read as u64;
        last = clock.now();
    }
    (bytes, last.since(begin))
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        rate_mbps: 100.0,
        delay_ms: 20.0,
        seconds: 10.0,
        queue_packets: 1000,
        idle: false,
        ordinary: false,
        log: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().and_then(|v| v.parse::<f64>().ok());
            value.ok_or(format!("{word} needs a number"))
        };
        match word.as_str() {
            "--rate" => options.rate_mbps = number()?,
            "--delay" => options.delay_ms = number()?,
            "--seconds" => options.seconds = number()?,
            "--queue" => options.queue_packets = number()? as u64,
            "--log" => options.log = words.next().map(PathBuf::from),
            "--idle" => options.idle = true,
            "--ordinary" => options.ordinary = true,
            _ => {
                return Err(format!(
                    "unknown option {word}; there are --rate MBPS, --delay MS, --seconds S, --queue PACKETS, --log FOLDER, --idle, --ordinary"
                ));
            }
        }
    }
    Ok(options)
}
