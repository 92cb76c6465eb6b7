//! Programs that outlive their agent, on the command line: pinning, adopting and removing them.

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
        /// An option asks for it.
        is_asked: bool,
    },
    /// The programs end with the agent. If no option asked for that, this is why.
    Nowhere(Option<String>),
}

/// Where the controller of that name is to be pinned.
///
/// # Errors
/// One line: another agent serves it, an earlier one has left it, or `--keep` cannot be used.
pub fn place(run: &Run, name: &str) -> Result<Pinned> {
    let (folder, is_asked) = (run.kept.folder(), run.kept.keep.is_some());
    let shown = folder.path().display();
    if run.no_keep || run.no_agent || (run.until_stdin_closes && !is_asked) {
        return match folder.find(name) {
            None => Ok(Pinned::Nowhere(None)),
            Some(_) => Err(Error::Failed(format!(
                "{name} is kept in {shown} from an earlier agent; remove it first: headwayd unload --name {name}"
            ))),
        };
    }
    match folder.claim(name) {
        Ok(place) => Ok(Pinned::At { place, is_asked }),
        Err(Refusal::Taken) => Err(Error::Failed(format!(
            "another headwayd serves {name} ({shown}); give this one another name: --name NAME"
        ))),
        Err(Refusal::Unusable(why)) if is_asked => {
            Err(Error::Usage(format!("--keep {shown}: {why}")))
        }
        Err(Refusal::Unusable(why)) => Ok(Pinned::Nowhere(Some(why))),
    }
}

impl Pinned {
    /// The program that an earlier agent has left, if this one can use it.
    pub fn adopted(&self, controller: Controller, options: Options<'_>) -> Option<Program> {
        let Pinned::At { place, .. } = self else {
            return None;
        };
        let (name, pins) = (options.name, place.find(controller)?);
        let adopted = Program::adopt(controller, options, &pins);
        if let Err(error) = &adopted {
            tracing::warn!(name, %error, "the pinned programs of an earlier agent cannot be used");
        }
        adopted.ok()
    }

    /// Removes what an earlier agent has left under the program's name, unless this agent has
    /// adopted it.
    ///
    /// # Errors
    /// One line, if it cannot be removed.
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

    /// Pins a program that serves from now on, and logs whether it is pinned.
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

    /// Logs that the controller of that name stays registered when its agent ends.
    pub fn say_end(&self, name: &str) {
        if let Pinned::At { .. } = self {
            tracing::info!(
                "{name} stays registered, and Cubic (BBR, for headway_bbr) controls its flows, until headwayd runs again; headwayd unload removes it"
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
        "the agent adopted the pinned programs of an earlier agent"
    );
    let own = Version::own(program.controller).digest;
    if *version != own {
        tracing::warn!(
            name,
            "this headwayd has other programs ({own}); to use them: headwayd unload, then start headwayd"
        );
    }
}

/// The controllers that are pinned and have no agent, each with its program and ABI.
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

/// Adds to the error that no agent answers which controllers are pinned.
pub fn with_kept(error: Error, folder: &Folder) -> Error {
    match &without_agent(folder)[..] {
        [] => error,
        kept => Error::Failed(format!(
            "{error}; kept in {} without an agent: {}; headwayd run adopts it, headwayd unload removes it",
            folder.path().display(),
            kept.join(", ")
        )),
    }
}

/// Removes what ended agents have left.
///
/// # Errors
/// One line, if an agent serves it, or it cannot be removed.
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
    // If an agent serves one of them, the others are unloaded all the same.
    let mut done = Ok(());
    for name in names {
        match unload_one(at, folder, name) {
            Ok(()) => say(&format!("{name} is unloaded\n"))?,
            Err(error) => done = Err(error),
        }
    }
    done
}

/// Restores the system's default that a killed agent has left, if its programs were not pinned.
fn set_killed_back(at: &At, name: Option<&str>) -> Result<()> {
    let all = Controller::ALL.map(Controller::name);
    let names = name.map_or(all.to_vec(), |name| vec![name]);
    // An agent serves those that are registered.
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

/// Unregisters the controllers that killed agents have left. This is for Linux before 6.4, where
/// nothing can be pinned.
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
