//! World 3 as a world of a batch: runs of world 2 in which every flow is a socket of the kernel,
//! and learned schemes are controllers that `headwayd` gives the kernel.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use headway_cc::{Duration, Family, Registry, Scheme, SchemeError};
use headway_net::transport::SUPPLIES;
use headway_world::{Ended, Outcome, RunError, SetupError, Trial, World};

use super::daemon::{Counters, Daemon, find_headwayd};
use super::emu::Emu;
use super::hosting::Hosting;
use crate::host::Driver;

/// This world. A scheme's own half in the kernel, if there is one, supplies what the scheme needs.
pub const KERNEL: headway_cc::World = headway_cc::World {
    name: "kernel",
    supplies: SUPPLIES,
};

/// World 3: sockets of the kernel, through emulated links.
#[derive(Debug)]
pub struct Kernel {
    emu: Emu,
    /// By scheme, the daemons that serve no run now. They end with this world.
    idle: Mutex<HashMap<String, Vec<Daemon>>>,
}

impl Kernel {
    /// Takes the same as [`Emu::new`].
    pub fn new(registry: Registry, command: Vec<OsString>) -> Kernel {
        Kernel {
            emu: Emu::new(registry, command),
            idle: Mutex::default(),
        }
    }

    /// The model by which a scheme decides, if a daemon can serve it; the scheme's own name if it
    /// begins without one.
    fn model_of(&self, scheme: &str) -> Result<Option<String>, SchemeError> {
        let Driver::Udp(selection) = Driver::parse(scheme, self.emu.registry())? else {
            return Ok(None);
        };
        let is_served = selection.scheme.family == Family::Learned
            && !Driver::names_udp(scheme)
            && selection.digests.is_none();
        let model = || {
            selection
                .model()
                .unwrap_or(selection.scheme.name)
                .to_owned()
        };
        Ok(is_served.then(model))
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<String, Vec<Daemon>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A daemon for a learned scheme that serves no other run, started if need be; `None` if the
    /// scheme needs none.
    fn daemon(&self, scheme: &str) -> Result<Option<Daemon>, RunError> {
        let Some(model) = self.model_of(scheme).map_err(SetupError::from)? else {
            return Ok(None);
        };
        if let Some(daemon) = self.idle().get_mut(scheme).and_then(Vec::pop) {
            return Ok(Some(daemon));
        }
        let beside = self.emu.program().and_then(Path::parent);
        let program = find_headwayd(beside).map_err(|why| SetupError::Unserved {
            scheme: scheme.to_owned(),
            why,
        })?;
        self.emu.check_place()?;
        let daemon = Daemon::start(&program, scheme).map_err(RunError::Failed)?;
        let other = &daemon.driver().model;
        if *other != model {
            let why = format!(
                "{} serves {other}, and this Headway has {model}; 'make headwayd' builds one with the same models",
                program.display()
            );
            return Err(RunError::Failed(why));
        }
        Ok(Some(daemon))
    }

    /// The daemons that a run needs. [Give them back](Self::give_back) afterwards.
    fn daemons(&self, trial: &Trial<'_>) -> Result<Vec<Daemon>, RunError> {
        let others = trial.network.flows.iter();
        let mut schemes: Vec<&str> = others.filter_map(|f| f.scheme.as_deref()).collect();
        schemes.push(trial.scheme);
        schemes.sort_unstable();
        schemes.dedup();
        let mut daemons = Vec::new();
        for scheme in schemes {
            daemons.extend(self.daemon(scheme)?);
        }
        Ok(daemons)
    }

    fn give_back(&self, daemons: Vec<Daemon>) {
        let mut idle = self.idle();
        for daemon in daemons {
            let scheme = daemon.driver().scheme.clone();
            idle.entry(scheme).or_default().push(daemon);
        }
    }

    /// Carries out a run, with the daemons that it needs. If the run fails, its daemons are ended.
    fn run_with_daemons(
        &self,
        trial: &Trial<'_>,
        go_on: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Ended, RunError> {
        let daemons = self.daemons(trial)?;
        let ended = self.counted(trial, &daemons, go_on)?;
        self.give_back(daemons);
        Ok(ended)
    }

    /// Carries out a run, and notes what its scheme's daemon counted meanwhile.
    fn counted(
        &self,
        trial: &Trial<'_>,
        daemons: &[Daemon],
        go_on: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Ended, RunError> {
        let hosting = hosting(daemons);
        let own = daemons.iter().find(|d| d.driver().scheme == trial.scheme);
        let Some(daemon) = own else {
            return Ok(self.emu.run_in(trial, &hosting, go_on));
        };
        let before = daemon.counters().map_err(RunError::Failed)?;
        let mut ended = self.emu.run_in(trial, &hosting, go_on);
        if let Ok(Some(outcome)) = &mut ended.outcome {
            let counted = daemon.counters().map_err(RunError::Failed)?.since(before);
            note(outcome, counted).map_err(RunError::Failed)?;
        }
        Ok(ended)
    }
}

/// The hosting of a run with these daemons.
fn hosting(daemons: &[Daemon]) -> Hosting {
    Hosting::Kernel(daemons.iter().map(|d| d.driver().clone()).collect())
}

/// Notes in a run's outcome how often Cubic took over: by the guard, or as a learner diverged.
///
/// # Errors
/// If the daemon did not serve the run's flows: then the run is no result of its scheme.
fn note(outcome: &mut Outcome, counted: Counters) -> Result<(), String> {
    let Some(pooled) = outcome.rows.first_mut() else {
        return Ok(());
    };
    if counted.slots_full > 0 {
        return Err("headwayd had no room for some of the run's flows".to_owned());
    }
    if counted.flows_opened == 0 && pooled.metrics.delivered_packets > 0 {
        return Err("headwayd served none of the run's flows".to_owned());
    }
    pooled.metrics.guard_trips = counted.guard_trips + counted.divergences;
    Ok(())
}

impl World for Kernel {
    fn about(&self) -> headway_cc::World {
        KERNEL
    }

    fn serves(&self, scheme: &Scheme) -> bool {
        Driver::is_kernels(scheme.name) || scheme.family == Family::Learned
    }

    fn canonical(&self, scheme: &str) -> Result<String, SchemeError> {
        Ok(match Driver::parse(scheme, self.emu.registry())? {
            Driver::Kernel(name) => format!("kernel-{name}"),
            Driver::Agent(agent) => agent.scheme,
            // The name has every parameter and the model. What this world cannot run is refused
            // when a run is checked.
            Driver::Udp(selection) => selection.canonical(),
        })
    }

    fn default_jobs(&self) -> Option<usize> {
        self.emu.default_jobs()
    }

    fn is_deterministic(&self) -> bool {
        self.emu.is_deterministic()
    }

    fn check(&self, trial: &Trial<'_>) -> Result<(), RunError> {
        let daemons = self.daemons(trial)?;
        let checked = self.emu.check_in(trial, &hosting(&daemons));
        self.give_back(daemons);
        checked
    }

    fn run(&self, trial: &Trial<'_>, go_on: &mut dyn FnMut(Duration) -> bool) -> Ended {
        self.run_with_daemons(trial, go_on)
            .unwrap_or_else(Ended::failed)
    }
}

#[cfg(test)]
mod tests {
    use headway_cc::schemes;
    use headway_record::ALL_FLOWS;
    use headway_world::FlowOutcome;

    use super::super::daemon::tests::{READY, program};
    use super::*;

    fn kernel() -> Kernel {
        let mut registry = Registry::new(schemes::SCHEMES);
        registry.add(headway_policy::schemes::SCHEMES);
        Kernel::new(registry, vec!["/bin/false".into()])
    }

    #[test]
    fn learned_schemes_need_a_daemon() {
        let world = kernel();
        for (scheme, model) in [
            ("owl", Some("owl-v1@")),
            ("owl:online=true", Some("owl-v1@")),
            ("aurora:model=v1", Some("aurora-v1@")),
            ("rax-pretrained", Some("rax-v3@")),
            ("rax:alpha=2", Some("rax")),
            ("cubic", None),
            ("kernel-reno", None),
            // These are not for a daemon; another check refuses them.
            ("copa", None),
            ("udp-owl", None),
            ("batched-owl:interval=10ms", None),
        ] {
            let found = world.model_of(scheme).unwrap();
            match (model, &found) {
                (None, None) => {}
                (Some(model), Some(found)) if found.starts_with(model) => {}
                _ => panic!("{scheme}: {found:?}"),
            }
        }
        assert!(world.model_of("owl:onlin=true").is_err());
    }

    #[test]
    fn kernel_world_serves_kernel_and_learned_schemes() {
        let world = kernel();
        let schemes = world.emu.registry().iter().filter(|s| world.serves(s));
        let mut names: Vec<&str> = schemes.map(|s| s.name).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "aurora",
                "bbr",
                "bbr-tuner-a2c",
                "bbr-tuner-dqn",
                "bbr-tuner-ppo",
                "cubic",
                "interval",
                "interval-learned",
                "learned",
                "newreno",
                "owl",
                "owl-loss",
                "rax",
                "rax-pretrained"
            ]
        );
    }

    #[test]
    fn two_spellings_are_one_scheme() {
        let world = kernel();
        let same = |a: &str, b: &str| world.canonical(a).unwrap() == world.canonical(b).unwrap();
        assert!(same("newreno", "kernel-reno"));
        assert!(same("owl", "owl:online=false"));
        assert!(!same("owl", "owl:online=true"));
        assert!(!same("owl", "owl-loss"));
        // The name includes the model, so results of another model are not taken for this one's.
        assert!(world.canonical("owl").unwrap().contains("owl-v1@"));
    }

    /// A daemon's counters belong to one run alone.
    #[test]
    fn runs_at_the_same_time_have_a_daemon_each() {
        let file = program("each", &format!("{READY}\nexec cat"));
        let start = || Daemon::start(&file.0, "owl").unwrap();
        let (first, second) = (start(), start());
        let mut names = [&first, &second].map(|d| d.driver().controller.clone());
        names.sort_unstable();
        let world = kernel();
        world.give_back(vec![first, second]);
        let taken = [(); 2].map(|()| world.daemon("owl").unwrap().unwrap());
        let mut found = taken.each_ref().map(|d| d.driver().controller.clone());
        found.sort_unstable();
        assert_eq!(found, names);
        assert!(world.idle()["owl"].is_empty());
        assert_eq!(hosting(&taken).world().name, KERNEL.name);
    }

    fn outcome(delivered_packets: u64) -> Outcome {
        let mut row = FlowOutcome {
            flow: ALL_FLOWS,
            scheme: "owl".to_owned(),
            model: None,
            metrics: headway_record::Metrics::default(),
        };
        row.metrics.delivered_packets = delivered_packets;
        Outcome {
            rows: vec![row],
            ..Outcome::default()
        }
    }

    #[test]
    fn a_run_says_how_often_cubic_took_over() {
        let counted = |flows_opened, guard_trips, slots_full| Counters {
            flows_opened,
            guard_trips,
            divergences: 2 * guard_trips,
            slots_full,
        };
        let mut run = outcome(9);
        note(&mut run, counted(1, 3, 0)).unwrap();
        assert_eq!(run.rows[0].metrics.guard_trips, 9);
        let full = note(&mut outcome(9), counted(1, 0, 2)).unwrap_err();
        assert_eq!(full, "headwayd had no room for some of the run's flows");
        let unseen = note(&mut outcome(9), counted(0, 0, 0)).unwrap_err();
        assert_eq!(unseen, "headwayd served none of the run's flows");
        // A flow that has not begun was not served yet.
        note(&mut outcome(0), counted(0, 0, 0)).unwrap();
    }
}
