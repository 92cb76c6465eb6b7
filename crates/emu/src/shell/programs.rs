//! The programs of a shell: starts them, gives them the terminal and takes it back, and ends them
//! with everything that they have started.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::{Command, Stdio};

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::ShellError;
use super::processes::{Process, end};
use crate::sys::{Namespace, SetupError, confine};

/// A program to start, and where.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// Environment variables that are added to those of this process.
    pub environment: Vec<(String, String)>,
    /// The namespace in which it runs.
    pub namespace: &'a Namespace,
    /// The shell ends when all programs with this have ended.
    pub is_awaited: bool,
}

/// Programs that run.
#[derive(Debug)]
pub struct Programs {
    all: Vec<Program>,
    terminal: Option<Terminal>,
    /// Processes that this process had started before, as when a shell has replaced itself by it
    /// (`exec`).
    strangers: Vec<Process>,
}

#[derive(Debug)]
struct Program {
    pid: Pid,
    is_awaited: bool,
    end: Option<i32>,
}

/// The terminal. The one program that uses it has it while it runs.
#[derive(Debug)]
struct Terminal {
    /// The process group of this process, which had the terminal before.
    own: Pid,
    program: Pid,
}

impl Terminal {
    /// This process's group if a person uses its terminal: standard input and output are one.
    fn of_person() -> Option<Pid> {
        let own = getpgrp();
        let has = io::stdin().is_terminal() && io::stdout().is_terminal();
        (has && tcgetpgrp(io::stdin()) == Ok(own)).then_some(own)
    }

    /// Puts `group` into the foreground. The caller blocks SIGTTOU.
    fn give(group: Pid) {
        // The terminal may be gone.
        let _ = tcsetpgrp(io::stdin(), group);
    }
}

impl Programs {
    /// Starts with no program. Orphans among its descendants become children of this process.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new() -> Result<Programs, ShellError> {
        prctl::set_child_subreaper(true)
            .map_err(|e| SetupError::system("adopt the children of programs", e))?;
        Ok(Programs {
            all: Vec::new(),
            terminal: None,
            strangers: Process::descendants(Pid::this(), &[]),
        })
    }

    /// Starts a program. It gets the terminal if it is the program of `hosts` and a person uses the
    /// terminal.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn start(&mut self, launch: Launch<'_>, hosts: usize) -> Result<(), ShellError> {
        let Some((program, arguments)) = launch.command.split_first() else {
            return Ok(());
        };
        let terminal = Terminal::of_person().filter(|_| launch.is_awaited && hosts == 1);
        let mut command = Command::new(program);
        command.args(arguments).envs(launch.environment);
        if !launch.is_awaited || hosts > 1 {
            command.stdin(Stdio::null());
        }
        confine(&mut command, launch.namespace, terminal.is_some());
        let child = command.spawn().map_err(|source| ShellError::Program {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        let pid = Pid::from_raw(child.id() as i32);
        if let Some(own) = terminal {
            self.terminal = Some(Terminal { own, program: pid });
        }
        self.all.push(Program {
            pid,
            is_awaited: launch.is_awaited,
            end: None,
        });
        Ok(())
    }

    /// Notes children that have ended or stopped.
    pub fn reap(&mut self) {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        loop {
            match waitpid(Pid::from_raw(-1), Some(flags)) {
                Ok(WaitStatus::Exited(pid, code)) => self.on_end(pid, code),
                Ok(WaitStatus::Signaled(pid, signal, _)) => self.on_end(pid, 128 + signal as i32),
                Ok(WaitStatus::Stopped(pid, _)) => self.on_stop(pid),
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    fn on_end(&mut self, pid: Pid, code: i32) {
        if let Some(program) = self.all.iter_mut().find(|p| p.pid == pid) {
            program.end = Some(code);
        }
    }

    /// A program that has the terminal was stopped. This process then stops too, so that the
    /// program that started it gets the terminal. When this process continues, it lets the program
    /// continue.
    fn on_stop(&mut self, pid: Pid) {
        let Some(terminal) = self.terminal.as_ref().filter(|t| t.program == pid) else {
            return;
        };
        Terminal::give(terminal.own);
        let _ = raise(Signal::SIGSTOP);
        if tcgetpgrp(io::stdin()) == Ok(terminal.own) {
            Terminal::give(pid);
        }
        let _ = kill(Pid::from_raw(-pid.as_raw()), Signal::SIGCONT);
    }

    /// Have all awaited programs ended?
    pub fn have_ended(&self) -> bool {
        self.all.iter().all(|p| p.end.is_some() || !p.is_awaited)
    }

    /// Sends a signal to all programs that run.
    pub fn signal(&self, signal: Signal) {
        for program in self.all.iter().filter(|p| p.end.is_none()) {
            let _ = kill(program.pid, signal);
        }
    }

    /// Ends all programs and everything they have started, but no process that was there before
    /// them, and takes the terminal back. Returns the exit code of the first awaited program, in
    /// order, that failed; 128 and the signal's number if a signal ended it.
    pub fn end(&mut self) -> i32 {
        let own = Pid::this();
        end(|| {
            self.reap();
            Process::descendants(own, &self.strangers)
        });
        self.reap();
        if let Some(terminal) = self.terminal.take() {
            Terminal::give(terminal.own);
        }
        // A process that cannot be ended counts as killed.
        let killed = 128 + Signal::SIGKILL as i32;
        let mut codes = self
            .all
            .iter()
            .filter(|p| p.is_awaited)
            .map(|p| p.end.unwrap_or(killed));
        codes.find(|code| *code != 0).unwrap_or(0)
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        if self.all.iter().any(|p| p.end.is_none()) || self.terminal.is_some() {
            self.end();
        }
    }
}

/// The signals that a shell handles itself, for as long as this lives. Afterwards they are as
/// before.
#[derive(Debug)]
pub struct Signals {
    before: SigSet,
    descriptor: nix::sys::signalfd::SignalFd,
}

impl Signals {
    /// The signals that end a program.
    const ENDING: [Signal; 4] = [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ];

    /// Takes the signals over. Call it before any thread is started, so that all threads block
    /// them.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn take() -> Result<Signals, ShellError> {
        use nix::sys::signal::{SigmaskHow, pthread_sigmask};
        use nix::sys::signalfd::{SfdFlags, SignalFd};
        let failed = |e| SetupError::system("wait for signals", e);
        let mut wanted: SigSet = Self::ENDING.into_iter().collect();
        wanted.add(Signal::SIGCHLD);
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let descriptor = SignalFd::with_flags(&wanted, flags).map_err(failed)?;
        // SIGTTOU is blocked too, so that the shell can give the terminal away and take it back.
        wanted.add(Signal::SIGTTOU);
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&wanted), Some(&mut before)).map_err(failed)?;
        Ok(Signals { before, descriptor })
    }

    /// The ending signals that have arrived since the last call, and whether a process sent each.
    /// The terminal sends a signal to the program too.
    pub fn came(&self) -> Vec<(Signal, bool)> {
        let mut came = Vec::new();
        while let Ok(Some(info)) = self.descriptor.read_signal() {
            let signal = Signal::try_from(info.ssi_signo as i32);
            if let Some(signal) = signal.ok().filter(|s| Self::ENDING.contains(s)) {
                came.push((signal, info.ssi_code != libc::SI_KERNEL));
            }
        }
        came
    }
}

impl std::os::fd::AsFd for Signals {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}
