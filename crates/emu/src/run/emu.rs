//! World 2 as a world of a batch: each run is a process of its own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration as Wait;

use headway_cc::{Duration, Registry, SchemeError, Time};
use headway_net::transport::SUPPLIES;
use headway_world::{Ended, Outcome, Recorded, RunError, Trial, World};

use super::job::{Answer, Job, RunTask, Task};
use super::plan::Plan;
use crate::host::Driver;
use crate::sys::Clock;

/// This world and what it supplies, over UDP.
pub const WORLD: headway_cc::World = headway_cc::World {
    name: "emu",
    supplies: SUPPLIES,
};

/// World 2: real packets in real time.
#[derive(Debug)]
pub struct Emu {
    registry: Registry,
    /// Starts a process that calls [`worker`](super::worker).
    command: Vec<OsString>,
    /// What has been tried: namespaces alone, and with each controller of the kernel's.
    tried: Mutex<HashMap<Option<String>, Result<(), String>>>,
}

impl Emu {
    /// With these schemes over UDP. `command` is a program, with its arguments, that calls
    /// [`worker`](super::worker).
    pub fn new(registry: Registry, command: Vec<OsString>) -> Emu {
        Emu {
            registry,
            command,
            tried: Mutex::default(),
        }
    }

    /// Is what a run needs permitted here?
    fn probe(&self, controller: Option<&str>) -> Result<(), String> {
        let key = controller.map(str::to_owned);
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let result = tried.entry(key.clone()).or_insert_with(|| {
            let task = Task::Probe { controller: key };
            let done = Worker::start(&self.command, task)?.listen(&mut |_| true)?;
            done.0.map(|_| ()).ok_or_else(|| "stopped".to_owned())
        });
        result.clone()
    }
}

impl World for Emu {
    fn about(&self) -> headway_cc::World {
        WORLD
    }

    fn canonical(&self, scheme: &str) -> Result<String, SchemeError> {
        Ok(match Driver::parse(scheme, &self.registry)? {
            Driver::Kernel(name) => format!("kernel-{name}"),
            Driver::Udp(selection) => format!("udp-{}", selection.canonical()),
        })
    }

    /// One: runs that share the processors disturb each other.
    fn default_jobs(&self) -> Option<usize> {
        Some(1)
    }

    /// The machine is never twice the same.
    fn is_deterministic(&self) -> bool {
        false
    }

    fn check(&self, trial: &Trial<'_>) -> Result<(), RunError> {
        if let Some(recording) = &trial.recording
            && (recording.wanted.pcap || recording.wanted.qlog)
        {
            let why = "the world 'emu' writes --logs, but neither --pcap nor --qlog";
            return Err(RunError::Failed(why.to_owned()));
        }
        let plan = Plan::new(trial.network, trial.scheme, &self.registry, trial.options)?;
        self.probe(None).map_err(RunError::Failed)?;
        for flow in &plan.flows {
            if let Driver::Kernel(name) = &flow.driver {
                self.probe(Some(name)).map_err(RunError::Failed)?;
            }
        }
        Ok(())
    }

    fn run(&self, trial: &Trial<'_>, go_on: &mut dyn FnMut(Duration) -> bool) -> Ended {
        let task = Task::Run(Box::new(RunTask::of(trial)));
        let worker = Worker::start(&self.command, task);
        match worker.and_then(|worker| worker.listen(go_on)) {
            Ok((outcome, recorded)) => Ended {
                outcome: Ok(outcome),
                recorded,
            },
            Err(why) => Ended::failed(RunError::Failed(why)),
        }
    }
}

/// A worker process. Dropped, it is killed, and with it goes all that it has made.
#[derive(Debug)]
struct Worker {
    process: Child,
    /// Closed, it asks the worker to stop.
    stdin: Option<ChildStdin>,
    answers: Receiver<Answer>,
    /// What it said on standard error, at most so much.
    complaints: Option<JoinHandle<String>>,
}

impl Worker {
    /// A worker says something every tenth of a second; after so long it is taken for dead.
    const PATIENCE: Time = Time::from_millis(30_000);
    /// So long it may take to end the log of a run that is stopped.
    const ENDING: Duration = Duration::from_millis(3_000);
    /// How often is looked whether to stop.
    const LOOK: Wait = Wait::from_millis(100);
    /// So much of its complaints is kept.
    const COMPLAINTS: u64 = 16 * 1024;

    fn start(command: &[OsString], task: Task) -> Result<Worker, String> {
        use std::os::unix::process::CommandExt;
        let failed = |e: std::io::Error| format!("cannot start a worker process: {e}");
        let (program, arguments) = command.split_first().ok_or("no worker process")?;
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is its parent's business.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let job = Job {
            parent: std::process::id() as i32,
            task,
        };
        let line = serde_json::to_string(&job).map_err(|e| e.to_string())?;
        let mut stdin = process.stdin.take();
        if let Some(stdin) = &mut stdin {
            // If it is gone already, it has said why.
            let _ = writeln!(stdin, "{line}");
        }
        let (said, answers) = channel();
        if let Some(stdout) = process.stdout.take() {
            thread::spawn(move || {
                let lines = BufReader::new(stdout).lines().map_while(Result::ok);
                for line in lines {
                    if said.send(understood(&line)).is_err() {
                        break;
                    }
                }
            });
        }
        let complaints = process.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut text = Vec::new();
                let _ = stderr
                    .by_ref()
                    .take(Self::COMPLAINTS)
                    .read_to_end(&mut text);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        Ok(Worker {
            process,
            stdin,
            answers,
            complaints,
        })
    }

    /// Hears it out; without an outcome if `go_on` says to stop. Errors are one line.
    fn listen(
        mut self,
        go_on: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<(Option<Outcome>, Option<Recorded>), String> {
        let mut done = 0;
        // Since it was heard last.
        let mut silence = Clock::start();
        loop {
            let answer = self.answers.recv_timeout(Self::LOOK);
            let step = match &answer {
                Ok(Answer::Done { ns }) => ns.saturating_sub(done),
                _ => 0,
            };
            done += step;
            if !go_on(Duration::from_nanos(step)) {
                return Ok((None, self.stop()));
            }
            match answer {
                Ok(Answer::Done { .. }) => silence = Clock::start(),
                Ok(Answer::Finished { outcome, files }) => {
                    return Ok((Some(*outcome), files.map(recorded)));
                }
                Ok(Answer::Failed { why }) => return Err(why),
                Err(RecvTimeoutError::Timeout) if silence.now() < Self::PATIENCE => {}
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = Self::PATIENCE.as_secs_f64();
                    return Err(format!(
                        "the worker process has been silent for {seconds} s"
                    ));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.last_words()),
            }
        }
    }

    /// Has it end early: what it has written down so far.
    fn stop(mut self) -> Option<Recorded> {
        self.stdin = None;
        let clock = Clock::start();
        loop {
            let left = Self::ENDING.saturating_sub(clock.now().since(Time::ZERO));
            let left = Wait::from_nanos(left.as_nanos());
            match self.answers.recv_timeout(left) {
                Ok(Answer::Done { .. }) => {}
                Ok(Answer::Finished { files, .. }) => return files.map(recorded),
                Ok(Answer::Failed { .. }) | Err(_) => return None,
            }
        }
    }

    /// Why it has died, as far as can be told.
    fn last_words(&mut self) -> String {
        let status = self.process.wait();
        let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
        let complaints = self.complaints.take().and_then(|c| c.join().ok());
        let complaints = complaints.unwrap_or_default();
        let last = complaints.lines().rev().find(|l| !l.trim().is_empty());
        format!(
            "the worker process ended with {status}: {}",
            last.unwrap_or("it said nothing")
        )
    }
}

/// What a worker says, in a line of its own.
fn understood(line: &str) -> Answer {
    serde_json::from_str(line).unwrap_or_else(|e| Answer::Failed {
        why: format!(
            "the worker process said what is no answer ({e}): {:?}",
            line.chars().take(60).collect::<String>()
        ),
    })
}

fn recorded((files, failure): (Vec<PathBuf>, Option<String>)) -> Recorded {
    Recorded { files, failure }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker that prints `line`.
    fn heard(line: &str) -> String {
        let command = ["printf", "%s\\n", line].map(OsString::from);
        let worker = Worker::start(&command, Task::Probe { controller: None }).unwrap();
        worker.listen(&mut |_| true).unwrap_err()
    }

    #[test]
    fn a_broken_answer_is_shown() {
        let why = heard(r#"{"Finished":{"outcome":{"#);
        assert_eq!(
            why,
            "the worker process said what is no answer (EOF while parsing an object at line 1 column 24): \
             \"{\\\"Finished\\\":{\\\"outcome\\\":{\""
        );
        assert_eq!(heard(r#"{"Failed":{"why":"no room"}}"#), "no room");
    }
}
