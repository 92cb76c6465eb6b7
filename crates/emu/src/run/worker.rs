//! The process that carries out one run.

use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;

use headway_cc::{Registry, Time};
use headway_scenario::{Scenario, TraceSpec, TraceStore};
use headway_world::{Outcome, Recorded};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use super::bed;
use super::job::{Answer, Job, RunTask, Task};
use super::plan::Plan;
use super::play::play_logged;
use crate::sys::become_able;

/// Reads a job from standard input, does it, and answers on standard output, in lines of JSON. Call
/// it in a process that does nothing else and has only one thread.
pub fn worker(registry: &Registry) {
    let answer = match work(registry) {
        Ok((outcome, recorded)) => Answer::finished(outcome, recorded),
        Err(why) => Answer::Failed { why },
    };
    say(&answer);
}

fn work(registry: &Registry) -> Result<(Outcome, Option<Recorded>), String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|e| format!("cannot read the job: {e}"))?;
    let job: Job = serde_json::from_str(&line).map_err(|e| format!("malformed job: {e}"))?;
    become_able().map_err(|e| e.to_string())?;
    // This has to come after a new user namespace, which clears it.
    set_pdeathsig(Signal::SIGKILL)
        .map_err(|e| format!("cannot arrange to end with its parent process: {e}"))?;
    if getppid().as_raw() != job.parent {
        return Err("its parent process has ended".to_owned());
    }
    match job.task {
        Task::Probe { controller } => {
            bed::probe(controller.as_deref())?;
            Ok((Outcome::default(), None))
        }
        Task::Run(task) => run(&task, registry),
    }
}

fn run(task: &RunTask, registry: &Registry) -> Result<(Outcome, Option<Recorded>), String> {
    let options = task.options();
    let scenario = Scenario::parse(&task.scenario, &task.name).map_err(|e| e.to_string())?;
    let scenario = scenario.beside(&task.scenario_folders);
    let mut network = scenario.draw_for(options.seed, options.duration);
    network.transport = task.transport();
    let plan = Plan::hosted(&network, &task.scheme, &task.hosting, registry, options);
    let plan = plan.map_err(|e| e.to_string())?;
    let store = TraceStore::of(task.trace_folders.iter().cloned());
    let traces = |spec: &TraceSpec| store.load_spec(spec).map_err(|e| e.to_string());
    let mut go_on = |at: Time| {
        say(&Answer::Done { ns: at.as_nanos() });
        !is_stopped()
    };
    play_logged(&plan, &traces, task.log.as_ref(), &mut go_on)
}

/// Has its parent closed standard input?
fn is_stopped() -> bool {
    let stdin = io::stdin();
    let mut look = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
    poll(&mut look, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Writes a line. If nothing reads it any more, the process ends.
fn say(answer: &Answer) {
    let line = serde_json::to_string(answer).unwrap_or_default();
    let mut out = io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}
