//! A shell from its beginning to its end.

use std::ffi::{OsStr, OsString};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use headway_cc::{Duration, Time};
use headway_net::Link;
use headway_record::recording::File;
use headway_scenario::{Network, TraceStore};
use headway_world::{LinkLogs, build_links};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::ShellError;
use super::address::{Slice, ipv6};
use super::clean::clean;
use super::hosts::{Hosts, taken_addresses};
use super::live::{Display, Live};
use super::meter::{Meter, Summary, Sums};
use super::path::{PathOptions, UP};
use super::programs::{Launch, Programs, Signals};
use super::registry::{Claim, HOST, Registry, Request, VARIABLE};
use crate::emulator::{Emulator, Links, PRIORITY, Report};
use crate::log::{EventLog, LoggedLink};
use crate::sys::{Clock, Namespace, Privilege, SetupError, Tun, become_able, real_time};

/// The options of a shell.
#[derive(Debug)]
pub struct Options {
    /// The links.
    pub path: PathOptions,
    /// Folders with traces, besides the usual ones.
    pub trace_dirs: Vec<PathBuf>,
    /// The seed of everything random about the links.
    pub seed: u64,
    /// How many hosts share them, from 1 to [`Slice::MOST_HOSTS`].
    pub hosts: usize,
    /// The command that runs on each host; if empty, the user's shell.
    pub command: Vec<OsString>,
    /// The command that runs on the far side, for `sh -c`.
    pub peer: Option<OsString>,
    /// The folder for logs of every packet.
    pub log: Option<PathBuf>,
    /// The live figures; `None` for the default.
    pub live: Option<Live>,
}

/// The end of a shell.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The exit code of its program: 128 and the number of the signal if one ended it.
    pub code: i32,
    /// The summary of both directions.
    pub summary: Summary,
}

/// How long a program has to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a program behind an emulated link until it ends. The process must have a single thread: it
/// may have to make itself a user namespace.
///
/// # Errors
/// Wrong options, before anything is started; and what the kernel does not permit.
pub fn run(options: &Options) -> Result<End, ShellError> {
    if !(1..=Slice::MOST_HOSTS).contains(&options.hosts) {
        return Err(ShellError::Option {
            option: "--hosts",
            given: options.hosts.to_string(),
            what: format!("write a number from 1 to {}", Slice::MOST_HOSTS),
        });
    }
    let store = TraceStore::new(options.trace_dirs.iter().cloned());
    let network = options.path.network(options.seed, &store)?;
    let traces = |spec: &_| store.load_spec(spec).map_err(|e| e.to_string());
    let (links, _) = build_links(&network, None, &traces, options.seed)
        .map_err(|e| ShellError::Failed(e.to_string()))?;
    let (command, is_shell) = options.command();

    let registry = Registry::open()?;
    let signals = Signals::take()?;
    let far_is_new = become_able()? == Privilege::UserNamespace;
    let hosts = Hosts::create(options.hosts, far_is_new)?;
    let inodes: Result<Vec<u64>, SetupError> = hosts.inside.iter().map(Namespace::inode).collect();
    let outside = hosts.far.inode()?;
    let claim = registry.claim(Request {
        hosts: inodes?,
        far: far_is_new.then_some(outside),
        outside,
        taken: taken_addresses()?,
        command: command.join(OsStr::new(" ")).to_string_lossy().into_owned(),
    })?;
    let log = |links_of_ways: &[usize]| options.log_of(&network, links_of_ways);
    let emulation = Emulation::start(&hosts, claim.slice, links, log)?;
    let suiting = Live::suiting(is_shell && options.hosts == 1);
    let display = Display::new(options.live.unwrap_or(suiting), emulation.sums());

    let mut programs = Programs::new()?;
    if let Some(peer) = &options.peer {
        programs.start(
            Launch {
                command: &["sh".into(), "-c".into(), peer.clone()],
                environment: environment(&claim, hosts.has_ipv6, None),
                namespace: &hosts.far,
                is_awaited: false,
            },
            options.hosts,
        )?;
    }
    for (host, namespace) in hosts.inside.iter().enumerate() {
        programs.start(
            Launch {
                command: &command,
                environment: environment(&claim, hosts.has_ipv6, Some(host)),
                namespace,
                is_awaited: true,
            },
            options.hosts,
        )?;
    }
    supervise(&mut programs, &signals, &emulation, display)?;
    let code = programs.end();
    // Shells inside that were killed have left something.
    clean(&registry, |entry| {
        entry.parent.as_deref() == Some(claim.path())
    })?;
    let summary = emulation.end(&hosts)?;
    Ok(End { code, summary })
}

impl Options {
    /// The command, and whether it is an interactive shell without arguments.
    fn command(&self) -> (Vec<OsString>, bool) {
        const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "tcsh"];
        match &self.command[..] {
            [] => {
                let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
                (vec![shell.unwrap_or_else(|| "/bin/sh".into())], true)
            }
            [program] => {
                let name = Path::new(program).file_name().and_then(OsStr::to_str);
                let is_shell = name.is_some_and(|name| SHELLS.contains(&name));
                (self.command.clone(), is_shell)
            }
            _ => (self.command.clone(), false),
        }
    }

    /// Begins the log, if one is requested.
    fn log_of(
        &self,
        network: &Network,
        link_of_way: &[usize],
    ) -> Result<Option<EventLog>, ShellError> {
        let Some(folder) = &self.log else {
            return Ok(None);
        };
        let wrong = |e: std::io::Error| ShellError::Option {
            option: "--log",
            given: folder.display().to_string(),
            what: format!("{e}; give a folder that can be written to"),
        };
        let file = |name: &str| File::create(&folder.join(format!("{name}.log")));
        // Names of files and arguments need not be UTF-8: a log's heading replaces invalid bytes.
        let words = std::env::args_os();
        let command: Vec<String> = words.map(|word| word.to_string_lossy().into()).collect();
        let logs = LinkLogs::new(network, None, &command.join(" "), |link| file(&link.name));
        let logs = logs.map_err(wrong)?.into_logs();
        let links = network
            .links
            .iter()
            .zip(logs)
            .map(|(link, log)| LoggedLink {
                name: link.name.clone(),
                log,
            });
        let far = |link: &usize| if *link == UP { "far" } else { "inside" }.to_owned();
        let hosts: Vec<String> = link_of_way.iter().map(far).collect();
        std::fs::create_dir_all(folder).map_err(wrong)?;
        let log = EventLog::start(&folder.join("events.parquet"), links.collect(), &hosts);
        log.map(Some).map_err(wrong)
    }
}

/// The environment variables that tell a program on host `host`, or on the far side, about its
/// network.
fn environment(claim: &Claim, has_ipv6: bool, host: Option<usize>) -> Vec<(String, String)> {
    let mut all = vec![(
        VARIABLE.to_owned(),
        claim.path().to_string_lossy().into_owned(),
    )];
    let mut add = |name: &str, suffix: &str, address: Ipv4Addr| {
        all.push((format!("HEADWAY_{name}{suffix}"), address.to_string()));
        if has_ipv6 {
            let sixth = ipv6(address).to_string();
            all.push((format!("HEADWAY_{name}6{suffix}"), sixth));
        }
    };
    let slice = claim.slice;
    let (own, peer) = match host {
        Some(host) => (slice.host(host), slice.peer()),
        None => (slice.peer(), slice.host(0)),
    };
    add("ADDRESS", "", own);
    add("PEER", "", peer);
    if host.is_some() {
        for (level, peer) in claim.peers.iter().enumerate() {
            add("PEER", &format!("_{}", level + 1), *peer);
        }
    }
    // Hosts count from 1; 0 is the far side.
    let number = host.map_or(0, |host| host + 1);
    all.push((HOST.to_owned(), number.to_string()));
    all
}

/// Waits until the programs have ended, or a signal has asked them to end and their time is up.
fn supervise(
    programs: &mut Programs,
    signals: &Signals,
    emulation: &Emulation,
    mut display: Display,
) -> Result<(), ShellError> {
    let clock = emulation.clock;
    let mut next = Time::ZERO + Display::PERIOD;
    let mut deadline = Time::NEVER;
    loop {
        let mut ready = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let wait = next.min(deadline).since(clock.now());
        let timeout = (wait.as_nanos() / 1_000_000 + 1).min(1000) as u16;
        // It looks at everything, whatever wakes it.
        let _ = poll(&mut ready, PollTimeout::from(timeout));
        let now = clock.now();
        for (signal, from_process) in signals.came() {
            if from_process {
                programs.signal(signal);
            }
            deadline = deadline.min(now + PATIENCE);
        }
        programs.reap();
        if programs.have_ended() || now >= deadline || emulation.has_ended() {
            display.hide();
            return Ok(());
        }
        if now >= next {
            display.show(now);
            next = now + Display::PERIOD;
        }
    }
}

/// An emulator at work on a thread of its own.
#[derive(Debug)]
struct Emulation {
    clock: Clock,
    sums: [Arc<Sums>; 2],
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Finished, std::io::Error>>>,
}

/// The results of an emulator.
#[derive(Debug)]
struct Finished {
    /// The far side's device, then those of the hosts.
    devices: Vec<Tun>,
    meter: Meter,
    report: Report,
}

impl Emulation {
    fn start(
        hosts: &Hosts,
        slice: Slice,
        links: Vec<Link>,
        log: impl FnOnce(&[usize]) -> Result<Option<EventLog>, ShellError>,
    ) -> Result<Emulation, ShellError> {
        let devices = hosts.connect(slice)?;
        let (ways, link_of_way) = hosts.ways(slice);
        // The log begins only once packets will follow.
        let log = log(&link_of_way)?;
        let meter = Meter::new(link_of_way, log);
        let sums = meter.sums();
        let links = links.into_iter().map(Link::observed).collect();
        let links = Links::new(links, Vec::new());
        let clock = Clock::start();
        let failed = |e| SetupError::system("start the emulator", e);
        let mut emulator = Emulator::new(clock, devices, ways, links, meter).map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = move || {
            real_time(PRIORITY);
            emulator.run(Time::NEVER, &stopped)?;
            let (devices, _, meter, report) = emulator.into_parts();
            Ok(Finished {
                devices,
                meter,
                report,
            })
        };
        let thread = std::thread::Builder::new().name("emulator".to_owned());
        let thread = Some(thread.spawn(work).map_err(failed)?);
        Ok(Emulation {
            clock,
            sums,
            stop,
            thread,
        })
    }

    fn sums(&self) -> [Arc<Sums>; 2] {
        self.sums.clone()
    }

    /// Before its time, it ends only if it fails.
    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn end(mut self, hosts: &Hosts) -> Result<Summary, ShellError> {
        self.stop.store(true, Ordering::Relaxed);
        let died = || Err(std::io::Error::other("its thread has died"));
        let result = self.thread.take().map(JoinHandle::join);
        let result = result.and_then(Result::ok).unwrap_or_else(died);
        let done = result.map_err(|e| SetupError::system("run the emulator", e))?;
        let namespaces = std::iter::once(&hosts.far).chain(&hosts.inside);
        let mut counters = Vec::new();
        for (namespace, device) in namespaces.zip(&done.devices) {
            let counted = namespace.within(|| device.counters())?;
            counters.push(counted.map_err(|e| SetupError::system("read a device's counters", e))?);
        }
        Ok(done.meter.summary(&done.report, &counters))
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
