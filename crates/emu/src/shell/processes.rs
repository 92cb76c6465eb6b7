//! Reads processes from /proc, and ends them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::sys::Clock;

/// How long a process has to end after SIGTERM before it gets SIGHUP, and later SIGKILL.
const ASKED_S: f64 = 0.5;
const GRACE_S: f64 = 2.0;
/// How long a process has to end after SIGKILL; while a disk fails, it may take for ever.
const KILLED_S: f64 = 2.0;
const POLL: Duration = Duration::from_millis(10);

/// A line of `/proc/PID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    pub parent: Pid,
    /// The program's name, as `ps` shows it.
    pub name: String,
    /// When it was started, in ticks since the machine started; unique together with the pid.
    pub started: u64,
    state: char,
}

impl Process {
    /// The process `pid`; `None` if it does not exist or has ended.
    pub fn of(pid: Pid) -> Option<Process> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Process::parse(&text).filter(|p| !matches!(p.state, 'Z' | 'X'))
    }

    /// This process.
    pub fn current() -> Option<Process> {
        Process::of(Pid::this())
    }

    /// All processes of this machine that have not ended.
    pub fn all() -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| Process::of(Pid::from_raw(pid)))
            .collect()
    }

    /// The children of `pid`, their children and so on, without `strangers` and their descendants.
    pub fn descendants(pid: Pid, strangers: &[Process]) -> Vec<Process> {
        let mut others = Process::all();
        others.retain(|p| !strangers.iter().any(|s| s.is_same(p)));
        let mut found: Vec<Process> = Vec::new();
        let mut parents = vec![pid];
        while let Some(parent) = parents.pop() {
            let children: Vec<Process> = others.extract_if(.., |p| p.parent == parent).collect();
            parents.extend(children.iter().map(|p| p.pid));
            found.extend(children);
        }
        found
    }

    /// The inode of its network namespace, if it can be read.
    pub fn namespace(&self) -> Option<u64> {
        let meta = fs::metadata(format!("/proc/{}/ns/net", self.pid)).ok()?;
        Some(meta.ino())
    }

    /// Was it started with `variable` set to `value`?
    pub fn has_environment(&self, variable: &str, value: &str) -> bool {
        let wanted = format!("{variable}={value}");
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted.as_bytes())
    }

    /// Does it still run?
    pub fn is_alive(&self) -> bool {
        Process::of(self.pid).is_some_and(|p| p.is_same(self))
    }

    /// Is it the same process, even if its name or state has changed?
    fn is_same(&self, other: &Process) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    fn signal(&self, signal: Signal) {
        // Another process may have its number by now.
        if self.is_alive() {
            let _ = kill(self.pid, signal);
        }
    }

    fn parse(stat: &str) -> Option<Process> {
        // The name is in parentheses and may contain anything, including parentheses.
        let (pid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        // The start time is field 22, counted from 1.
        let started = fields.nth(17)?.parse().ok()?;
        Some(Process {
            pid: Pid::from_raw(pid.parse().ok()?),
            parent: Pid::from_raw(parent),
            name: name.to_owned(),
            started,
            state,
        })
    }
}

/// Ends the processes that `find` finds, again and again until it finds none: first with SIGTERM
/// and SIGHUP, then with SIGKILL. Returns the processes that were there at first, and those that
/// did not end.
pub fn end(mut find: impl FnMut() -> Vec<Process>) -> (Vec<Process>, Vec<Process>) {
    let clock = Clock::start();
    let first = find();
    let mut terminated: Vec<Process> = Vec::new();
    let mut hung_up: Vec<Process> = Vec::new();
    loop {
        let left = find();
        let waited = clock.now().as_secs_f64();
        if left.is_empty() || waited > GRACE_S + KILLED_S {
            return (first, left);
        }
        for process in &left {
            if waited > GRACE_S {
                process.signal(Signal::SIGKILL);
            } else if !terminated.contains(process) {
                process.signal(Signal::SIGTERM);
                // A stopped process does not react to signals.
                process.signal(Signal::SIGCONT);
                terminated.push(process.clone());
            } else if waited > ASKED_S && !hung_up.contains(process) {
                // Interactive shells ignore SIGTERM.
                process.signal(Signal::SIGHUP);
                hung_up.push(process.clone());
            }
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_name_may_contain_parentheses() {
        let line = "4711 (a) b (c) S 17 4711 4711 34816 4711 4194304 1 0 0 0 3 4 0 0 20 0 1 0 987654 0 0\n";
        let found = Process::parse(line).unwrap();
        assert_eq!(found.pid, Pid::from_raw(4711));
        assert_eq!(found.parent, Pid::from_raw(17));
        assert_eq!((found.name.as_str(), found.started), ("a) b (c", 987_654));
        assert_eq!(Process::parse("4711 (sh) S 17"), None);
        assert_eq!(Process::parse(""), None);
    }

    #[test]
    fn this_process_is_found_with_its_attributes() {
        let own = Process::current().unwrap();
        assert_eq!(own.parent, Pid::parent());
        assert!(own.is_alive());
        assert!(own.namespace().is_some());
        assert!(!own.has_environment("HEADWAY_SHELL", "none"));
        let other = Process {
            started: own.started + 1,
            ..own
        };
        assert!(!other.is_alive());
    }

    #[test]
    fn grandchildren_are_descendants() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & wait"])
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        let clock = Clock::start();
        while Process::descendants(pid, &[]).is_empty() && clock.now().as_secs_f64() < 60.0 {
            std::thread::sleep(POLL);
        }
        let found = Process::descendants(pid, &[]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].parent, pid);
        // Its name and state may have changed: it has just become `sleep`.
        let is_among = |later: Vec<Process>| later.iter().any(|p| p.is_same(&found[0]));
        let own = Pid::this();
        assert!(is_among(Process::descendants(own, &[])));
        let shell = Process::of(pid).unwrap();
        assert!(!is_among(Process::descendants(own, &[shell])));
        found[0].signal(Signal::SIGKILL);
        child.wait().unwrap();
    }
}
