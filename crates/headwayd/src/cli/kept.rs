//! Programs that outlive their agent, on the command line: who pins them, goes on with them, and
//! takes them away.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{At, Run, say};
use crate::error::{Error, Result};
use crate::programs::kept::{ControllerPins, Folder, Refusal, Version};
use crate::programs::{Controller, KnownFlows, Options, Program, left_over};
use crate::system::default_controller::set_back;
use crate::system::kernel;

#[derive(Debug, Args)]
pub struct Kept {
    /// Folder of a bpffs in which programs are pinned, so that they outlive the agent. Default:
    /// /sys/fs/bpf/headway, if that is possible.
    #[arg(long, env = "HEADWAYD_KEEP", value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
}

impl Kept {
    pub fn folder(&self) -> Folder {
        Folder::new(self.keep.as_deref().unwrap_or(Path::new(Folder::USUAL)))
    }
}

/// Where an agent's programs are pinned.
pub enum Pinned {
    At {
        place: ControllerPins,
        /// By an option.
        is_asked: bool,
    },
    /// They end with the agent. If that was not asked for, this is why.
    Nowhere(Option<String>),
}

/// Where the controller of that name is pinned.
///
/// # Errors
/// One line: another agent has it, or this one is asked for what cannot be had.
pub fn place(run: &Run, name: &str) -> Result<Pinned> {
    let (folder, is_asked) = (run.kept.folder(), run.kept.keep.is_some());
    let shown = folder.path().display();
    if run.no_keep || run.no_agent || (run.until_stdin_closes && !is_asked) {
        return match folder.find(name) {
            None => Ok(Pinned::Nowhere(None)),
            Some(_) => Err(Error::Failed(format!(
                "{name} is kept in {shown} from an earlier agent; take it away first: headwayd unload --name {name}"
            ))),
        };
    }
    match folder.claim(name) {
        Ok(place) => Ok(Pinned::At { place, is_asked }),
        Err(Refusal::Taken) => Err(Error::Failed(format!(
            "another headwayd serves {name} ({shown}); --name gives this one another"
        ))),
        Err(Refusal::Unusable(why)) if is_asked => {
            Err(Error::Usage(format!("--keep {shown}: {why}")))
        }
        Err(Refusal::Unusable(why)) => Ok(Pinned::Nowhere(Some(why))),
    }
}

impl Pinned {
    /// What an earlier agent has left, if this one can go on with it.
    pub fn adopted(&self, controller: Controller, options: Options<'_>) -> Option<Program> {
        let Pinned::At { place, .. } = self else {
            return None;
        };
        let (name, pins) = (options.name, place.find(controller)?);
        let adopted = Program::adopt(controller, options, &pins);
        if let Err(error) = &adopted {
            tracing::warn!(name, %error, "what an earlier agent has left cannot be used");
        }
        adopted.ok()
    }

    /// Takes away what an earlier agent has left under the program's name, unless that is the
    /// program.
    ///
    /// # Errors
    /// One line, if it cannot be taken away.
    pub fn make_room(&self, program: &Program) -> Result<()> {
        let Pinned::At { place, .. } = self else {
            return Ok(());
        };
        if !program.is_adopted() && place.clear()? {
            tracing::warn!(
                name = program.name,
                "the programs of an earlier agent are replaced: the flows that have them stay with Cubic, or BBR"
            );
        }
        Ok(())
    }

    /// Pins a program that serves from now on, and says what becomes of it.
    ///
    /// # Errors
    /// One line, if it cannot be pinned.
    pub fn keep(&mut self, program: &mut Program) -> Result<()> {
        if program.is_adopted() {
            say_adopted(program);
            return Ok(());
        }
        let why = match self {
            Pinned::At { place, is_asked } => match program.keep(place) {
                Ok(()) => return Ok(()),
                Err(error) if *is_asked => return Err(error),
                Err(error) => error.to_string(),
            },
            Pinned::Nowhere(None) => return Ok(()),
            Pinned::Nowhere(Some(why)) => std::mem::take(why),
        };
        tracing::info!(
            why,
            "the programs end with this agent, because they cannot be pinned"
        );
        *self = Pinned::Nowhere(None);
        Ok(())
    }

    /// Says what stays of the controller of that name, as its agent ends.
    pub fn say_end(&self, name: &str) {
        if let Pinned::At { .. } = self {
            tracing::info!(
                "{name} stays registered, and Cubic, or BBR, controls its flows, until headwayd runs again; headwayd unload takes it away"
            );
        }
    }
}

fn say_adopted(program: &Program) {
    let (name, version) = (&program.name, &program.version);
    let flows = program.known.iter().flat_map(KnownFlows::read).count();
    tracing::info!(
        name,
        program = version,
        flows,
        "goes on with the programs of an earlier agent"
    );
    let own = Version::own(program.controller).digest;
    if *version != own {
        tracing::warn!(
            name,
            "this headwayd has other programs ({own}); headwayd unload, then start it, replaces them"
        );
    }
}

/// The controllers that are pinned and have no agent, each with what it says of itself.
fn without_agent(folder: &Folder) -> Vec<String> {
    let names = folder.names().unwrap_or_default().into_iter();
    let kept = names.filter_map(|name| {
        let Version { digest, abi, .. } = folder.find(&name)?;
        folder
            .is_left(&name)
            .then(|| format!("{name} (program {digest}, ABI {abi})"))
    });
    kept.collect()
}

/// That no agent answers, and what is pinned.
pub fn with_kept(error: Error, folder: &Folder) -> Error {
    match &without_agent(folder)[..] {
        [] => error,
        kept => Error::Failed(format!(
            "{error}; kept in {} without an agent: {}; headwayd run goes on with it, headwayd unload takes it away",
            folder.path().display(),
            kept.join(", ")
        )),
    }
}

/// Takes away what ended agents have left.
///
/// # Errors
/// One line, if an agent serves it, or it cannot be taken away.
pub fn unload(at: &At, folder: &Folder, name: Option<&str>) -> Result<()> {
    if !kernel::has_links() {
        return unregister(at, name);
    }
    let all = folder.names()?;
    let names: Vec<&str> = (all.iter().map(String::as_str))
        .filter(|one| name.is_none_or(|name| name == *one))
        .collect();
    set_killed_back(at, name)?;
    if names.is_empty() {
        let what = name.unwrap_or("nothing");
        let is = if name.is_some() { "is not" } else { "is" };
        return say(&format!(
            "{what} {is} kept in {}\n",
            folder.path().display()
        ));
    }
    // One that an agent serves keeps no other.
    let mut done = Ok(());
    for name in names {
        match unload_one(at, folder, name) {
            Ok(()) => say(&format!("{name} is unloaded\n"))?,
            Err(error) => done = Err(error),
        }
    }
    done
}

/// The default that an agent whose programs were not pinned has left, as it was killed.
fn set_killed_back(at: &At, name: Option<&str>) -> Result<()> {
    let all = Controller::ALL.map(Controller::name);
    let names = name.map_or(all.to_vec(), |name| vec![name]);
    // One that is registered is served.
    let mut gone = names
        .into_iter()
        .filter(|name| !kernel::has_controller(name));
    gone.try_for_each(|name| set_back(name, &at.default()))
}

fn unload_one(at: &At, folder: &Folder, name: &str) -> Result<()> {
    let place = folder.claim(name).map_err(|refusal| match refusal {
        Refusal::Taken => Error::Failed(format!(
            "an agent serves {name}: stop it first, for example with systemctl stop headwayd"
        )),
        Refusal::Unusable(why) => Error::Failed(format!("cannot unload {name}: {why}")),
    })?;
    set_back(name, &at.default())?;
    place.clear()?;
    Ok(())
}

/// Takes away what killed agents have left, before Linux 6.4: there nothing is pinned.
fn unregister(at: &At, name: Option<&str>) -> Result<()> {
    let all = Controller::ALL.map(Controller::name);
    let names = name.map_or(all.to_vec(), |name| vec![name]);
    let registered = |name: &&str| kernel::has_controller(name);
    let names: Vec<&str> = names.into_iter().filter(registered).collect();
    if names.is_empty() {
        return say("no controller of headwayd's is registered\n");
    }
    for name in names {
        set_back(name, &at.default())?;
        let said = match left_over::unregister(name) {
            true => format!("{name} is unloaded\n"),
            false => format!("{name} stays: an agent serves it, or CAP_SYS_ADMIN is missing\n"),
        };
        say(&said)?;
    }
    Ok(())
}
