//! A worker, seen from its parent: a process that gets a task and reports its progress.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration as Wait;

use headway_cc::{Duration, Time};
use headway_world::{Outcome, Recorded};

use super::complaints::{complaints_of, last_line};
use super::job::{Answer, Job, Task};
use crate::sys::Clock;

/// A worker process. It is killed when this is dropped, and everything that it has made vanishes.
#[derive(Debug)]
pub(super) struct Worker {
    process: Child,
    /// The worker stops when this closes.
    stdin: Option<ChildStdin>,
    answers: Receiver<Answer>,
    /// The beginning of its standard error.
    complaints: Option<JoinHandle<String>>,
}

impl Worker {
    /// A worker reports every tenth of a second; after this much silence it is taken for dead.
    const PATIENCE: Time = Time::from_millis(30_000);
    /// How long it may take to end the log of a run that is stopped.
    const ENDING: Duration = Duration::from_millis(3_000);
    /// How often its parent checks whether to stop.
    const LOOK: Wait = Wait::from_millis(100);

    /// Starts a worker, and gives it its task.
    pub fn start(command: &[OsString], task: Task) -> Result<Worker, String> {
        use std::os::unix::process::CommandExt;
        let failed = |e: std::io::Error| format!("cannot start a worker process: {e}");
        let (program, arguments) = command
            .split_first()
            .ok_or("the command of the worker process is empty")?;
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The parent process handles Ctrl-C.
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
            // If it has ended already, it has said why.
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
        let complaints = process.stderr.take().map(complaints_of);
        Ok(Worker {
            process,
            stdin,
            answers,
            complaints,
        })
    }

    /// Listens until the task is done. There is no outcome if `go_on` says to stop. Errors are one
    /// line.
    pub fn listen(
        mut self,
        go_on: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<(Option<Outcome>, Option<Recorded>), String> {
        let mut done = 0;
        // The time since its last message.
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

    /// Stops the worker early; returns what it has recorded so far.
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

    /// Why it has ended, as far as is known.
    fn last_words(&mut self) -> String {
        let status = self.process.wait();
        let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
        let complaints = self.complaints.take().and_then(|c| c.join().ok());
        let complaints = complaints.unwrap_or_default();
        format!(
            "the worker process ended with {status}: {}",
            last_line(&complaints)
        )
    }
}

/// Reads an answer of the worker, which is one line.
fn understood(line: &str) -> Answer {
    serde_json::from_str(line).unwrap_or_else(|e| Answer::Failed {
        why: format!(
            "the worker process gave a malformed answer ({e}): {:?}",
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

    /// What a worker's parent says if the worker prints `line`.
    fn error_of(line: &str) -> String {
        let command = ["printf", "%s\\n", line].map(OsString::from);
        let worker = Worker::start(&command, Task::Probe { controller: None }).unwrap();
        worker.listen(&mut |_| true).unwrap_err()
    }

    #[test]
    fn a_broken_answer_is_shown() {
        let why = error_of(r#"{"Finished":{"outcome":{"#);
        assert_eq!(
            why,
            "the worker process gave a malformed answer (EOF while parsing an object at line 1 column 24): \
             \"{\\\"Finished\\\":{\\\"outcome\\\":{\""
        );
        assert_eq!(error_of(r#"{"Failed":{"why":"no room"}}"#), "no room");
    }
}
