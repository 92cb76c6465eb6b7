//! A `headwayd` that belongs to this process: it gives the kernel a controller for one learned
//! scheme.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, sleep};
use std::time::Duration as Wait;

use headway_cc::{Duration, Time};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{AccessFlags, Pid, access, mkdtemp};
use serde::Deserialize;

use super::complaints::{complaints_of, last_line};
use crate::host::AgentDriver;
use crate::sys::Clock;

/// The program's name, and the variable of the environment with its path.
const PROGRAM: &str = "headwayd";
const VARIABLE: &str = "HEADWAYD";

/// Finds `headwayd`: the environment variable `HEADWAYD` names it, or it is in the folder `beside`,
/// or on the PATH.
///
/// # Errors
/// One line, if it is in none of these places.
pub fn find_headwayd(beside: Option<&Path>) -> Result<PathBuf, String> {
    let path = env::var_os("PATH");
    find_in(env::var_os(VARIABLE).as_deref(), beside, path.as_deref())
}

fn find_in(
    given: Option<&OsStr>,
    beside: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, String> {
    let runs = |file: &PathBuf| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        let file = PathBuf::from(given);
        return match runs(&file) {
            true => Ok(file),
            false => Err(format!(
                "{VARIABLE}={}: no such program; 'make headwayd' builds one",
                file.display()
            )),
        };
    }
    let folders = beside.map(Path::to_owned).into_iter();
    let folders = folders.chain(path.map(env::split_paths).into_iter().flatten());
    let mut files = folders.map(|folder| folder.join(PROGRAM));
    files
        .find(runs)
        .ok_or_else(|| format!("there is no {PROGRAM} here; 'make headwayd' builds it"))
}

/// A daemon that serves one scheme. It ends when this is dropped, or when this process ends.
#[derive(Debug)]
pub(super) struct Daemon {
    program: PathBuf,
    process: Child,
    /// The daemon ends when this closes, which happens even if this process is killed.
    _stdin: Option<ChildStdin>,
    /// A folder of this daemon alone, with its socket.
    folder: PathBuf,
    driver: AgentDriver,
}

/// The daemon's message that it is ready.
#[derive(Debug, Deserialize)]
struct Ready {
    event: String,
    controllers: Vec<Controller>,
}

#[derive(Debug, Deserialize)]
struct Controller {
    name: String,
    model: String,
}

/// The daemon's counters since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Counters {
    /// Connections that it has served.
    pub flows_opened: u64,
    /// How often the guard took a connection from the policy.
    pub guard_trips: u64,
    /// How often a policy gave its connection to Cubic for a while, because its learner diverged.
    pub divergences: u64,
    /// Connections for which it had no slot.
    pub slots_full: u64,
}

#[derive(Debug, Deserialize)]
struct Status {
    counters: Counters,
}

impl Counters {
    /// The difference from `before`.
    pub fn since(self, before: Counters) -> Counters {
        Counters {
            flows_opened: self.flows_opened.saturating_sub(before.flows_opened),
            guard_trips: self.guard_trips.saturating_sub(before.guard_trips),
            divergences: self.divergences.saturating_sub(before.divergences),
            slots_full: self.slots_full.saturating_sub(before.slots_full),
        }
    }
}

impl Daemon {
    /// The time limit for its start. It loads a model and programs for the kernel, which takes a
    /// second at most.
    const TO_SERVE: Wait = Wait::from_secs(20);
    const TO_ANSWER: Wait = Wait::from_secs(5);
    /// The daemon is killed after this time.
    const TO_END: Duration = Duration::from_secs(2);

    /// Starts `program` for `scheme`, and waits until it serves.
    ///
    /// # Errors
    /// One line.
    pub fn start(program: &Path, scheme: &str) -> Result<Daemon, String> {
        let name = own_name();
        // The folder's name is random, and other users cannot enter it.
        let folder = env::temp_dir().join("headway-XXXXXX");
        let folder =
            mkdtemp(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let socket = folder.join("socket");
        let mut command = Command::new(program);
        command
            .args(["run", "--policy", scheme, "--name", &name, "--socket"])
            .arg(&socket)
            // All flows belong to one user, who may have all slots.
            .args(["--user-share", "100", "--until-stdin-closes"])
            // HEADWAYD_KEEP is for agents that should keep their programs loaded.
            .arg("--no-keep")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The parent process handles Ctrl-C.
            .process_group(0);
        let mut process = command.spawn().map_err(|e| {
            let _ = fs::remove_dir(&folder);
            format!("cannot start {}: {e}", program.display())
        })?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let complaints = process.stderr.take().map(complaints_of);
        let mut daemon = Daemon {
            program: program.to_owned(),
            process,
            _stdin: stdin,
            folder,
            driver: AgentDriver {
                scheme: scheme.to_owned(),
                controller: String::new(),
                model: String::new(),
                socket,
            },
        };
        let lines = stdout.map(first_line_of);
        match lines.and_then(|line| line.recv_timeout(Self::TO_SERVE).ok()) {
            Some(line) if !line.is_empty() => {
                let controller = ready(&line)?;
                daemon.driver.controller = controller.name;
                daemon.driver.model = controller.model;
                Ok(daemon)
            }
            Some(_) => {
                // The daemon has ended, or is about to, and has said why.
                daemon.end();
                let said = complaints.and_then(|c| c.join().ok()).unwrap_or_default();
                let why = last_line(&said);
                Err(match why.starts_with(PROGRAM) {
                    true => why.to_owned(),
                    false => format!("{PROGRAM} ended before it was ready: {why}"),
                })
            }
            None => Err(format!(
                "{PROGRAM} was not ready to serve '{scheme}' within {} s",
                Self::TO_SERVE.as_secs()
            )),
        }
    }

    /// The scheme that it serves, its controller's name, and its model.
    pub fn driver(&self) -> &AgentDriver {
        &self.driver
    }

    /// Asks for its counters.
    ///
    /// # Errors
    /// One line, for example if it has ended.
    pub fn counters(&self) -> Result<Counters, String> {
        let mut asking = Command::new(&self.program)
            .args(["status", "--json", "--socket"])
            .arg(&self.driver.socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", self.program.display()))?;
        let complaints = asking.stderr.take().map(complaints_of);
        let answer = asking.stdout.take().map(all_of);
        let answer = answer.and_then(|text| text.recv_timeout(Self::TO_ANSWER).ok());
        // If it has answered, it has ended already.
        let _ = asking.kill();
        let _ = asking.wait();
        let text = answer.ok_or_else(|| {
            let seconds = Self::TO_ANSWER.as_secs();
            format!("{PROGRAM} did not answer a status request within {seconds} s")
        })?;
        if text.trim().is_empty() {
            let said = complaints.and_then(|c| c.join().ok()).unwrap_or_default();
            return Err(format!("{PROGRAM} has stopped: {}", last_line(&said)));
        }
        let status: Result<Status, _> = serde_json::from_str(&text);
        status.map(|s| s.counters).map_err(|e| strange(&text, &e))
    }

    fn end(&mut self) {
        let _ = kill(Pid::from_raw(self.process.id() as i32), Signal::SIGTERM);
        let clock = Clock::start();
        while clock.now() < Time::ZERO + Self::TO_END {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            sleep(Wait::from_millis(5));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After a wait, the process number may belong to another process.
        if matches!(self.process.try_wait(), Ok(None)) {
            self.end();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A random name for a controller. All containers of a machine share these names, and each
/// container counts processes for itself, so a process number would not do. A name has at most 15
/// characters, of those that the kernel accepts for a BPF object.
fn own_name() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("hw_{:010x}", random >> 24)
}

/// Reads the daemon's message that it is ready.
fn ready(line: &str) -> Result<Controller, String> {
    let ready: Ready = serde_json::from_str(line).map_err(|e| strange(line, &e))?;
    let mut controllers = ready.controllers;
    match (ready.event.as_str(), controllers.pop()) {
        ("ready", Some(controller)) if controllers.is_empty() => Ok(controller),
        _ => Err(strange(line, &"not ready with one controller")),
    }
}

fn strange(text: &str, why: &dyn std::fmt::Display) -> String {
    let text: String = text.trim().chars().take(60).collect();
    format!("{PROGRAM} gave a malformed answer ({why}): {text:?}")
}

/// The first line, or an empty one if there is none; the rest is read and thrown away.
fn first_line_of(stdout: ChildStdout) -> Receiver<String> {
    let (said, line) = channel();
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut first = String::new();
        let _ = stdout.read_line(&mut first);
        let _ = said.send(first);
        let _ = std::io::copy(&mut stdout, &mut std::io::sink());
    });
    line
}

/// The whole output, once it ends.
fn all_of(mut stdout: ChildStdout) -> Receiver<String> {
    let (said, text) = channel();
    thread::spawn(move || {
        let mut all = String::new();
        let _ = stdout.read_to_string(&mut all);
        let _ = said.send(all);
    });
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A program in a folder of its own; dropping it deletes the folder.
    pub struct Program(pub PathBuf);

    impl Drop for Program {
        fn drop(&mut self) {
            let _ = self.0.parent().map(fs::remove_dir_all);
        }
    }

    pub fn program(name: &str, text: &str) -> Program {
        let folder = env::temp_dir().join(format!("headway-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let file = folder.join(PROGRAM);
        // A process writes the file: a file that this process has open for writing could not be run
        // by another thread.
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#;
        let mut shell = Command::new("sh");
        let done = shell.arg("-c").arg(write).arg(&file).arg(text).status();
        assert!(done.unwrap().success());
        Program(file)
    }

    pub const READY: &str = r#"[ "$1" = status ] && { echo '{"flows":[],"counters":{"flows_opened":3,"guard_trips":2,"divergences":4,"reports":9,"actions":9,"ring_dropped":0,"slots_full":1}}'; exit; }
echo '{"event":"ready","controllers":[{"name":"'$5'","policy":"'$3'","model":"owl-v1@abcdef123456"}]}'
echo $$ > "$(dirname "$7")/pid""#;

    #[test]
    fn daemon_serves_until_dropped() {
        let file = program("serves", &format!("{READY}\nexec cat"));
        let daemon = Daemon::start(&file.0, "owl:online=true").unwrap();
        let driver = daemon.driver();
        assert_eq!(driver.scheme, "owl:online=true");
        assert_eq!(driver.model, "owl-v1@abcdef123456");
        let name = &driver.controller;
        assert!(name.starts_with("hw_") && name.len() <= 15, "{name}");
        let counters = daemon.counters().unwrap();
        let expected = Counters {
            flows_opened: 3,
            guard_trips: 2,
            divergences: 4,
            slots_full: 1,
        };
        assert_eq!(counters, expected);
        assert_eq!(counters.since(counters), Counters::default());
        let (folder, process) = (daemon.folder.clone(), daemon.process.id());
        drop(daemon);
        assert!(!folder.exists());
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }

    /// The pipe closes in the same way when this process is killed.
    #[test]
    fn daemon_ends_when_stdin_closes() {
        let file = program("stdin", &format!("{READY}\nexec cat"));
        let mut daemon = Daemon::start(&file.0, "owl").unwrap();
        daemon._stdin = None;
        let clock = Clock::start();
        while matches!(daemon.process.try_wait(), Ok(None)) {
            assert!(clock.now() < Time::from_millis(60_000), "it goes on");
            sleep(Wait::from_millis(5));
        }
    }

    #[test]
    fn daemon_that_ignores_sigterm_is_killed() {
        let file = program(
            "deaf",
            &format!("trap '' TERM\n{READY}\nwhile :; do sleep 1; done"),
        );
        let daemon = Daemon::start(&file.0, "owl").unwrap();
        let (clock, process) = (Clock::start(), daemon.process.id());
        drop(daemon);
        let took = clock.now();
        let bounds = Time::from_millis(2_000)..Time::from_millis(60_000);
        assert!(bounds.contains(&took), "{took:?}");
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }

    #[test]
    fn start_failures_are_one_line() {
        for (name, text, says) in [
            (
                "refuses",
                "echo noise >&2; echo 'headwayd: needs CAP_BPF; run as root' >&2; exit 2",
                "headwayd: needs CAP_BPF; run as root",
            ),
            (
                "crashes",
                "exit 1",
                "headwayd ended before it was ready: it said nothing",
            ),
            (
                "babbles",
                "echo hello; cat",
                "headwayd gave a malformed answer (expected value at line 1 column 1): \"hello\"",
            ),
            (
                "other",
                r#"echo '{"event":"ready","controllers":[]}'; cat"#,
                "headwayd gave a malformed answer (not ready with one controller): \
                 \"{\\\"event\\\":\\\"ready\\\",\\\"controllers\\\":[]}\"",
            ),
        ] {
            let why = Daemon::start(&program(name, text).0, "owl").unwrap_err();
            assert_eq!(why, says, "{name}");
        }
    }

    #[test]
    fn a_dead_daemon_is_reported() {
        let text = "[ $1 = status ] && { echo 'headwayd: no daemon at x' >&2; exit 1; }";
        let file = program("dies", &format!("{text}\n{READY}\nexec cat"));
        let daemon = Daemon::start(&file.0, "owl").unwrap();
        let why = daemon.counters().unwrap_err();
        assert_eq!(why, "headwayd has stopped: headwayd: no daemon at x");
    }

    #[test]
    fn headwayd_is_found_by_variable_folder_and_path() {
        let (named, beside, on_path) = (
            program("named", ""),
            program("beside", ""),
            program("path", ""),
        );
        let folder = |file: &Program| file.0.parent().unwrap().to_owned();
        let path = env::join_paths([Path::new("/nowhere"), &folder(&on_path)]).unwrap();
        let find = |given: Option<&Path>, beside: Option<&Path>| {
            find_in(given.map(Path::as_os_str), beside, Some(&path))
        };
        assert_eq!(
            find(Some(&named.0), Some(&folder(&beside))).unwrap(),
            named.0
        );
        assert_eq!(find(None, Some(&folder(&beside))).unwrap(), beside.0);
        assert_eq!(find(None, None).unwrap(), on_path.0);
        let wrong = find(Some(Path::new("/nowhere/headwayd")), None).unwrap_err();
        assert_eq!(
            wrong,
            "HEADWAYD=/nowhere/headwayd: no such program; 'make headwayd' builds one"
        );
        let none = find_in(None, None, None).unwrap_err();
        assert!(none.contains("'make headwayd' builds it"), "{none}");
    }
}
