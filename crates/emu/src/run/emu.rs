//! World 2 as a world of a batch: each run is a process of its own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use headway_cc::{Duration, Registry, SchemeError};
use headway_net::transport::SUPPLIES;
use headway_world::{Ended, RunError, Trial, World};

use super::hosting::Hosting;
use super::job::{RunTask, Task};
use super::plan::Plan;
use super::worker_process::Worker;
use crate::host::Driver;

/// This world, and what it supplies to schemes over UDP.
pub const EMU: headway_cc::World = headway_cc::World {
    name: "emu",
    supplies: SUPPLIES,
};

/// World 2: real packets in real time.
#[derive(Debug)]
pub struct Emu {
    registry: Registry,
    /// The command for a process that calls [`worker`](super::worker).
    command: Vec<OsString>,
    /// Results of trials: for namespaces alone, and for each controller of the kernel.
    tried: Mutex<HashMap<Option<String>, Result<(), String>>>,
}

impl Emu {
    /// A world with the schemes of `registry`. `command` is a program, with its arguments, that
    /// calls [`worker`](super::worker).
    pub fn new(registry: Registry, command: Vec<OsString>) -> Emu {
        Emu {
            registry,
            command,
            tried: Mutex::default(),
        }
    }

    /// Tries whether namespaces and the controller are permitted here, once for each controller.
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

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The program of the worker processes.
    pub(super) fn program(&self) -> Option<&Path> {
        self.command.first().map(Path::new)
    }

    /// Checks that every run may make what it needs here.
    pub(super) fn check_place(&self) -> Result<(), RunError> {
        self.probe(None).map_err(RunError::Failed)
    }

    /// Checks that a run is possible with this `hosting`.
    pub(super) fn check_in(&self, trial: &Trial<'_>, hosting: &Hosting) -> Result<(), RunError> {
        if let Some(recording) = &trial.recording
            && (recording.wanted.pcap || recording.wanted.qlog)
        {
            let world = hosting.world().name;
            let why = format!("the world '{world}' writes --logs, but neither --pcap nor --qlog");
            return Err(RunError::Failed(why));
        }
        let (network, options) = (trial.network, trial.options);
        let plan = Plan::hosted(network, trial.scheme, hosting, &self.registry, options)?;
        self.check_place()?;
        let controllers = plan.flows.iter().filter_map(|f| f.driver.controller());
        for name in controllers {
            self.probe(Some(name)).map_err(RunError::Failed)?;
        }
        Ok(())
    }

    /// Carries a run out with this `hosting`.
    pub(super) fn run_in(
        &self,
        trial: &Trial<'_>,
        hosting: &Hosting,
        go_on: &mut dyn FnMut(Duration) -> bool,
    ) -> Ended {
        let task = Task::Run(Box::new(RunTask::of(trial, hosting)));
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

impl World for Emu {
    fn about(&self) -> headway_cc::World {
        EMU
    }

    fn canonical(&self, scheme: &str) -> Result<String, SchemeError> {
        Ok(match Driver::parse(scheme, &self.registry)? {
            Driver::Kernel(name) => format!("kernel-{name}"),
            Driver::Agent(agent) => agent.scheme,
            Driver::Udp(selection) => format!("udp-{}", selection.canonical()),
        })
    }

    /// One job at a time: runs that share the processors disturb each other.
    fn default_jobs(&self) -> Option<usize> {
        Some(1)
    }

    /// Two runs are never quite the same, since the machine is not.
    fn is_deterministic(&self) -> bool {
        false
    }

    fn check(&self, trial: &Trial<'_>) -> Result<(), RunError> {
        self.check_in(trial, &Hosting::Emu)
    }

    fn run(&self, trial: &Trial<'_>, go_on: &mut dyn FnMut(Duration) -> bool) -> Ended {
        self.run_in(trial, &Hosting::Emu, go_on)
    }
}
