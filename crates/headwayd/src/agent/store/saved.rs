//! Reads states that an earlier agent has saved. A disk may take long, so while the agent serves,
//! the thread of a reload does this.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use headway_policy::schemes::{Experience, PolicySpec};

use super::{file_name, name_of, sync_folder};
use crate::agent::{Class, Policies};
use crate::system::clock;

/// The saved states of policies, by the names of their files.
#[derive(Clone, Debug, Default)]
pub struct SavedStates(pub(super) Vec<(String, Saved)>);

/// What a file holds.
#[derive(Clone, Debug)]
pub(super) enum Saved {
    /// A state, and the same parsed.
    State(Vec<u8>, Experience),
    /// Nothing: there is no file, or it was refused and set aside.
    Nothing,
    /// A state that is refused. It could not be set aside.
    Refused,
    /// It cannot be read now. This may pass, for instance if too many files are open.
    Unreadable(String),
}

impl SavedStates {
    /// Reads the states from which flows of these policies start. Files that cannot be used are
    /// logged and set aside.
    pub fn read(folder: &Path, policies: &Policies) -> SavedStates {
        let mut found = Vec::new();
        for (prefix, served) in policies.learners() {
            set_aside_unclassed(folder, served);
            for class in Class::of_policy(prefix) {
                let name = file_name(served, class);
                let saved = Saved::read(&folder.join(&name), served);
                found.push((name, saved));
            }
        }
        SavedStates(found)
    }
}

impl Saved {
    /// Reads a file of this policy.
    pub(super) fn read(file: &Path, served: &PolicySpec) -> Saved {
        let refused = match fs::read(file) {
            Ok(bytes) => match served.experience(&bytes) {
                Ok(read) => return Saved::State(bytes, read),
                Err(error) => error.to_string(),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => return Saved::Nothing,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => error.to_string(),
            Err(error) => return Saved::Unreadable(error.to_string()),
        };
        tracing::warn!(file = %file.display(), why = refused, "flows start from the model, because their saved state is refused");
        match set_aside(file) {
            Ok(kept) => {
                tracing::warn!(file = %kept.display(), "the refused file is kept");
                Saved::Nothing
            }
            Err(error) => {
                tracing::warn!(
                    file = %file.display(), %error,
                    "the refused file cannot be renamed, so nothing that this policy learns is saved"
                );
                Saved::Refused
            }
        }
    }
}

/// Sets aside the file of an agent from before there were classes: it was learned from flows to all
/// destinations, so it belongs to no class.
fn set_aside_unclassed(folder: &Path, served: &PolicySpec) {
    let file = folder.join(name_of(served, None));
    match set_aside(&file) {
        Ok(kept) => tracing::warn!(
            file = %file.display(), kept = %kept.display(),
            "the file is not used, because an older headwayd learned it from flows to all classes of destinations"
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(
            file = %file.display(), %error,
            "the file is not used, because an older headwayd learned it from flows to all classes of destinations; it cannot be renamed"
        ),
    }
}

/// Renames a file to `NAME.refused-<unix time>`, and returns that name. Files that were refused
/// before stay.
fn set_aside(file: &Path) -> io::Result<PathBuf> {
    let name = |time: u64| PathBuf::from(format!("{}.refused-{time}", file.display()));
    let free = (clock::unix_time()..).map(name);
    let free = free.filter(|name| fs::symlink_metadata(name).is_err());
    let aside = free.into_iter().next().unwrap_or_else(|| name(0));
    fs::rename(file, &aside)?;
    sync_folder(file)?;
    Ok(aside)
}
