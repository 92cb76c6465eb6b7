//! The two ends of a flow over the kernel's TCP, as iperf3 runs them: one writes blocks of 128 kB,
//! the other discards the data.

use std::io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time;

use headway_cc::{Bytes, Duration, SchemeError, Time};
use headway_net::transport::Source;
use headway_record::GridSample;
use headway_world::FlowPlan;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{MsgFlags, recv, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};

use super::estimates::{Estimate, Watch};
use super::report::{Bins, Cpu, sleep_until};
use super::{Completion, HostError, ReceiverReport, SenderReport, kernel};
use crate::sys::{BbrInfo, Clock, TcpInfo, bbr_info, clamp_window, limit_receive_window, tcp_info};

const LIMIT_WINDOW: &str = "limit a TCP receive window";
/// The size of iperf3's reads and writes.
const BLOCK: usize = 128 * 1024;
/// The number of blocks that an end writes before it looks for other work.
const BLOCKS_AT_ONCE: usize = 64;
static ZEROS: [u8; BLOCK] = [0; BLOCK];
/// The longest wait, so that an end notices the end of the run.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The end of a flow that sends data under a controller of the kernel.
#[derive(Debug)]
pub struct Sender {
    plan: FlowPlan,
    socket: Socket,
    remote: SocketAddr,
    source: Source,
    /// Bytes taken from the source and not yet written.
    pending: usize,
    headers: Bytes,
    is_paced: bool,
    /// Everything has been written.
    has_closed: bool,
    /// The control socket of a daemon that knows BBR's model of the path.
    daemon: Option<PathBuf>,
    /// Asks that daemon while the flow runs.
    watch: Option<Watch>,
    report: SenderReport,
}

/// What a sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Room in the socket.
    Room,
    /// New data at that time.
    Data(Time),
    /// The other end's confirmation that it has everything.
    Farewell,
}

impl Sender {
    /// See [`sender`](super::sender). Series have BBR's estimates from the socket, or else from the
    /// daemon with this control socket.
    ///
    /// # Errors
    /// If the socket cannot be made, or the controller is not available.
    pub fn new(
        plan: &FlowPlan,
        controller: &str,
        daemon: Option<PathBuf>,
        mut local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Sender, HostError> {
        // Runs side by side have the same addresses: a port of its own tells a flow from theirs.
        local.set_port(0);
        let socket = open(plan, local)?;
        setsockopt(&socket, sockopt::TcpCongestion, &controller.into())
            .map_err(|why| refused(controller, why))?;
        if matches!(plan.data, headway_scenario::Source::OnOff { .. }) {
            // A flow that stops has to fall silent soon, not once a long buffer has drained.
            socket
                .set_tcp_notsent_lowat(BLOCK as u32)
                .map_err(HostError::system(plan.flow, "set up a TCP socket"))?;
        }
        Ok(Sender {
            source: plan.source(),
            pending: 0,
            headers: headers(local),
            // Without the qdisc fq, acknowledgements alone clock these two.
            is_paced: !matches!(controller, "reno" | "cubic"),
            has_closed: false,
            daemon,
            watch: None,
            report: SenderReport::new(plan),
            plan: plan.clone(),
            socket,
            remote,
        })
    }

    /// See [`SenderEnd::run`](super::SenderEnd::run).
    ///
    /// # Errors
    /// If the receiver does not listen, or the connection breaks.
    pub fn run(mut self, clock: Clock, over: &AtomicBool) -> Result<SenderReport, HostError> {
        let cpu = Cpu::start();
        let mut bins = Bins::new(&self.plan);
        sleep_until(self.plan.start, clock, over);
        if self.connect(clock, over)? {
            self.begin_watch();
            while !self.is_over(clock, over) && self.report.finished.is_none() {
                match self.step(&mut bins, clock) {
                    // The other end may have noticed first that the run is over.
                    Err(error) if !self.is_over(clock, over) => return Err(error),
                    _ => {}
                }
            }
            self.read_info(clock.now(), |_, _| {});
        }
        if self.report.finished.is_none() {
            // Data that is not sent yet is thrown away.
            let _ = self.socket.set_linger(Some(time::Duration::ZERO));
        }
        self.report.cpu = cpu.used();
        Ok(self.report)
    }

    /// Starts to ask the daemon, if there is a series to put its estimates into.
    fn begin_watch(&mut self) {
        let daemon = self.daemon.take().filter(|_| self.report.grid.is_some());
        let local = self.socket.local_addr().ok().and_then(|a| a.as_socket());
        if let (Some(path), Some(local)) = (daemon, local) {
            self.watch = Some(Watch::of(path, local, self.remote));
        }
    }

    /// Writes what it can, and waits.
    fn step(&mut self, bins: &mut Bins, clock: Clock) -> Result<(), HostError> {
        let next = self
            .go_on(clock.now())
            .map_err(HostError::system(self.plan.flow, "send over TCP"))?;
        self.wait(next, bins.next, clock)?;
        let now = clock.now();
        if bins.next <= now {
            self.read_info(now, |report, sample| bins.close(now, report, || sample));
        }
        Ok(())
    }

    fn is_over(&self, clock: Clock, over: &AtomicBool) -> bool {
        over.load(Ordering::Relaxed) || clock.now() >= self.plan.stop
    }

    /// Connects. Returns false if the flow was over first.
    fn connect(&self, clock: Clock, over: &AtomicBool) -> Result<bool, HostError> {
        let failed = || HostError::system(self.plan.flow, "connect over TCP");
        match self.socket.connect(&self.remote.into()) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => return Err(failed()(e)),
            _ => {}
        }
        while !self.is_over(clock, over) {
            let until = self.plan.stop;
            let ready = wait(&self.socket, PollFlags::POLLOUT, until, clock);
            if ready.map_err(failed())? {
                return match self.socket.take_error().map_err(failed())? {
                    Some(error) => Err(failed()(error)),
                    None => Ok(true),
                };
            }
        }
        Ok(false)
    }

    /// Writes what fits. Returns what to wait for.
    fn go_on(&mut self, now: Time) -> io::Result<Next> {
        for _ in 0..BLOCKS_AT_ONCE {
            let retry = self.take(now);
            if self.pending == 0 {
                if !self.source.is_exhausted() {
                    return Ok(Next::Data(retry));
                }
                if !std::mem::replace(&mut self.has_closed, true) {
                    self.socket.shutdown(Shutdown::Write)?;
                }
                return Ok(Next::Farewell);
            }
            match (&self.socket).write(&ZEROS[..self.pending.min(BLOCK)]) {
                Ok(written) => self.pending -= written,
                Err(e) if e.kind() == WouldBlock => return Ok(Next::Room),
                Err(e) if e.kind() == Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Next::Room)
    }

    /// Takes a block's worth of packets from the source. Returns when the source has more.
    fn take(&mut self, now: Time) -> Time {
        while self.pending < BLOCK {
            match self.source.take(now, self.plan.packet_size) {
                Ok(packet) => {
                    let data = packet.saturating_sub(self.headers).get();
                    self.pending += data.max(1) as usize;
                }
                Err(retry) => return retry,
            }
        }
        now
    }

    fn wait(&mut self, next: Next, bin: Time, clock: Clock) -> Result<(), HostError> {
        let (wanted, until) = match next {
            Next::Room => (PollFlags::POLLOUT, Time::NEVER),
            Next::Data(at) => (PollFlags::empty(), at),
            Next::Farewell => (PollFlags::POLLIN, Time::NEVER),
        };
        let until = until.min(bin).min(self.plan.stop);
        let failed = || HostError::system(self.plan.flow, "send over TCP");
        let ready = wait(&self.socket, wanted, until, clock).map_err(failed())?;
        if let Some(error) = self.socket.take_error().map_err(failed())? {
            return Err(failed()(error));
        }
        if ready && next == Next::Farewell {
            self.report.finished = Some(clock.now());
        }
        Ok(())
    }

    /// BBR's estimate; its rate includes headers.
    fn estimate(&self, bbr: &BbrInfo, info: &TcpInfo) -> Estimate {
        let data = f64::from(info.snd_mss.max(1));
        let packet = data + self.headers.get() as f64;
        let btlbw = bbr.btlbw() as f64 * 8e-6 * packet / data;
        Estimate {
            btlbw_mbps: (btlbw > 0.0).then_some(btlbw),
            rtprop_ms: bbr.rtprop_us().map(|us| f64::from(us) / 1e3),
        }
    }

    /// Reads the kernel's counters, and hands them to `then`.
    fn read_info(&mut self, now: Time, then: impl FnOnce(&mut SenderReport, GridSample)) {
        // A closed connection has no counters.
        let Ok(info) = tcp_info(&self.socket) else {
            return;
        };
        let lost = self.plan.packet_size * u64::from(info.total_retrans);
        self.report.note_lost(now, lost);
        let headers = self.headers * u64::from(info.data_segs_out);
        self.report.sent = Bytes::new(info.bytes_sent) + headers;
        let estimate = match bbr_info(&self.socket) {
            Some(bbr) => self.estimate(&bbr, &info),
            None => self.watch.as_ref().map(Watch::last).unwrap_or_default(),
        };
        then(&mut self.report, sample(&info, estimate, self.is_paced));
    }
}

/// The sender's state as a bin of its series ends.
fn sample(info: &TcpInfo, estimate: Estimate, is_paced: bool) -> GridSample {
    let gone = info.sacked.saturating_add(info.lost);
    let in_flight = info
        .unacked
        .saturating_sub(gone)
        .saturating_add(info.retrans);
    let pacing = (is_paced && info.pacing_rate < u64::MAX).then_some(info.pacing_rate);
    GridSample {
        cwnd_packets: Some(f64::from(info.snd_cwnd)),
        in_flight_packets: f64::from(in_flight),
        pacing_mbps: pacing.map(|bytes| bytes as f64 * 8e-6),
        rtt_ms: (info.rtt_us > 0).then(|| f64::from(info.rtt_us) / 1e3),
        btlbw_mbps: estimate.btlbw_mbps,
        rtprop_ms: estimate.rtprop_ms,
    }
}

/// The error for a controller that the kernel refused.
fn refused(controller: &str, why: Errno) -> HostError {
    let text = match why {
        Errno::ENOENT => kernel::missing(controller, &kernel::available()),
        Errno::EPERM => format!(
            "the kernel lets only root use congestion control '{controller}'; \
             run it as root, or add it to the setting net.ipv4.tcp_allowed_congestion_control"
        ),
        why => format!("the kernel refuses congestion control '{controller}': {why}"),
    };
    SchemeError(text).into()
}

/// Checks that a socket of the calling thread's namespace may use the kernel's `controller`.
///
/// # Errors
/// If the kernel has no such controller, or keeps it for root.
pub fn try_controller(controller: &str) -> Result<(), HostError> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .map_err(HostError::system(0, "open a TCP socket"))?;
    setsockopt(&socket, sockopt::TcpCongestion, &controller.into())
        .map_err(|why| refused(controller, why))
}

/// The end of a flow that discards what comes.
#[derive(Debug)]
pub struct Receiver {
    plan: FlowPlan,
    listener: Socket,
    /// The largest window that it advertises, in bytes of data; `None` is the kernel's choice.
    window: Option<u64>,
    report: ReceiverReport,
    completion: Completion,
}

impl Receiver {
    /// See [`receiver`](super::receiver).
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn new(plan: &FlowPlan, local: SocketAddr) -> Result<Receiver, HostError> {
        let listener = open(plan, local)?;
        // The kernel's window counts data; a scenario's counts whole packets.
        let data = plan.packet_size.saturating_sub(headers(local));
        let share = data.as_f64() / plan.packet_size.as_f64();
        let window = plan.receive_window.map(|all| all.mul_f64(share).get());
        if let Some(bytes) = window {
            limit_receive_window(&listener, bytes)
                .map_err(HostError::system(plan.flow, LIMIT_WINDOW))?;
        }
        listener
            .listen(1)
            .map_err(HostError::system(plan.flow, "listen over TCP"))?;
        Ok(Receiver {
            plan: plan.clone(),
            listener,
            window,
            report: ReceiverReport::default(),
            completion: Completion::default(),
        })
    }

    pub(super) fn completion(&self) -> (&FlowPlan, &Completion) {
        (&self.plan, &self.completion)
    }

    /// Ends also once the sender has ended. See [`ReceiverEnd::run`](super::ReceiverEnd::run).
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn run(mut self, clock: Clock, over: &AtomicBool) -> Result<ReceiverReport, HostError> {
        let cpu = Cpu::start();
        let failed = || HostError::system(self.plan.flow, "receive over TCP");
        let mut connection = None;
        let mut buffer = vec![0; BLOCK];
        while !over.load(Ordering::Relaxed) {
            let socket = connection.as_ref().unwrap_or(&self.listener);
            if !wait(socket, PollFlags::POLLIN, Time::NEVER, clock).map_err(failed())? {
                continue;
            }
            let Some(connected) = &connection else {
                match self.listener.accept() {
                    Ok((accepted, _)) => connection = Some(accepted),
                    // No connection waits any more, or the sender's time was up meanwhile.
                    Err(e) if matches!(e.kind(), WouldBlock | ConnectionAborted) => {}
                    Err(e) => return Err(failed()(e)),
                }
                continue;
            };
            // With this flag the kernel discards the data without copying it.
            let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
            match recv(connected.as_raw_fd(), &mut buffer, flags) {
                Ok(0) => {
                    self.report.complete = Some(clock.now());
                    self.completion.reach();
                    break;
                }
                Ok(length) => {
                    self.report.received += Bytes::new(length as u64);
                    if let Some(bytes) = self.window {
                        clamp_window(connected, bytes)
                            .map_err(HostError::system(self.plan.flow, LIMIT_WINDOW))?;
                    }
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                // The sender's time was up.
                Err(Errno::ECONNRESET) => break,
                Err(e) => return Err(failed()(e.into())),
            }
        }
        self.report.cpu = cpu.used();
        Ok(self.report)
    }
}

/// What IP and TCP add to a full packet's data at that address, including timestamps.
fn headers(local: SocketAddr) -> Bytes {
    Bytes::new(if local.is_ipv6() { 72 } else { 52 })
}

/// Opens a TCP socket at `local` that never blocks.
fn open(plan: &FlowPlan, local: SocketAddr) -> Result<Socket, HostError> {
    let domain = Domain::for_address(local);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
        .map_err(HostError::system(plan.flow, "open a TCP socket"))?;
    socket
        .set_nonblocking(true)
        .and_then(|()| socket.set_reuse_address(true))
        .map_err(HostError::system(plan.flow, "set up a TCP socket"))?;
    socket
        .bind(&local.into())
        .map_err(HostError::system(plan.flow, "bind a TCP socket"))?;
    Ok(socket)
}

/// Waits for `wanted` until `until`, or for the longest wait. Returns whether something has
/// happened at the socket.
fn wait(socket: &Socket, wanted: PollFlags, until: Time, clock: Clock) -> io::Result<bool> {
    let longest = until.since(clock.now()).min(LONGEST_WAIT);
    let timeout = TimeSpec::from(time::Duration::from_nanos(longest.as_nanos()));
    match ppoll(
        &mut [PollFd::new(socket.as_fd(), wanted)],
        Some(timeout),
        None,
    ) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}
