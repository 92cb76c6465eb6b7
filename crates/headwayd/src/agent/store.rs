//! What policies have learned, from flow to flow and from start to start.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use headway_policy::model::sha256;
use headway_policy::schemes::{Experience, PolicySpec};

use super::{Class, Policies};
use crate::error::{Error, Result};
use crate::system::clock;

/// What a flow of each policy has learned last, to each class of destinations; a new flow goes on
/// from it. Without a folder there is none: each flow begins with the model, whichever were before.
#[derive(Debug, Default)]
pub struct Store {
    folder: Option<PathBuf>,
    /// The users whose flows may change what is kept; all if there are none.
    teachers: Vec<u32>,
    /// The folder, locked: no other agent writes there.
    lock: Option<File>,
    /// By file name; nothing where there was no file.
    learned: HashMap<String, Option<Learned>>,
    /// Names of files that could not be read, and are still there: nothing is written over them,
    /// and none is removed.
    read_only: HashSet<String>,
    /// Has come since it was saved.
    changed: Vec<String>,
    /// What is being written now.
    writing: Vec<String>,
    /// A thread writes it: a disk may take longer than a flow can wait. It says whether that went
    /// well.
    writes: Option<Receiver<bool>>,
    failed: bool,
    /// How many there have been.
    versions: u64,
}

#[derive(Clone, Debug)]
struct Learned {
    bytes: Vec<u8>,
    /// Read once, for the first flow that goes on from it.
    read: Option<Experience>,
    /// How many gradients that took.
    experience: u64,
    /// The number of the flow that learned it; 0 if a file has it from an earlier agent.
    flow: u32,
    version: Version,
}

/// Tells what was learned apart from what replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

/// A disk may never answer: the agent ends without it.
const END_WITHIN: Duration = Duration::from_secs(5);
/// A flow with fewer gradients of its own has learned too little to be handed on.
const LEAST_EXPERIENCE: u64 = 100;

impl Store {
    /// In a folder that is there, or nowhere.
    pub fn new(folder: Option<PathBuf>) -> Store {
        Store {
            folder,
            ..Store::default()
        }
    }

    /// Only flows of these users change what is kept, or of all users if there are none.
    #[must_use]
    pub fn learning_from(mut self, users: Vec<u32>) -> Store {
        self.teachers = users;
        self
    }

    /// May a user's flows change what is kept?
    pub fn learns_from(&self, user: u32) -> bool {
        self.teachers.is_empty() || self.teachers.contains(&user)
    }

    /// Has the folder for this agent alone, and tries to write a file into it, with the rights that
    /// the process has by now.
    ///
    /// # Errors
    /// One line, if another agent has it, or this one may not write there.
    pub fn claim(&mut self) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let refused = |why: String| Error::Usage(format!("--state {}: {why}", folder.display()));
        let may_not = |error: io::Error| {
            refused(format!(
                "cannot write there: {error}; give a folder that is headwayd's own"
            ))
        };
        // The folder itself: no file is left there, nor can one be removed.
        let lock = File::open(folder).map_err(may_not)?;
        match lock.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => {
                let why = "another headwayd keeps what it learns there; give another folder";
                return Err(refused(why.to_owned()));
            }
            // Some network file systems keep no locks.
            Err(TryLockError::Error(error)) => tracing::warn!(
                folder = %folder.display(), %error,
                "the folder cannot be locked; let no other agent write there"
            ),
        }
        // No policy's file has this name.
        let file = folder.join(".headwayd-probe");
        match write(&file, &[]).and_then(|()| fs::remove_file(&file)) {
            Ok(()) => (),
            // There may be room later, and flows are served meanwhile.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded
                ) =>
            {
                tracing::warn!(folder = %folder.display(), %error, "the disk is full: nothing that is learned is kept for now");
            }
            Err(error) => return Err(may_not(error)),
        }
        self.lock = Some(lock);
        Ok(())
    }

    /// Reads what is kept of these policies, so that what cannot be used is set aside, and said,
    /// before the first flow.
    pub fn read(&mut self, policies: &Policies) {
        for (prefix, served) in policies.learners() {
            self.set_aside_unclassed(served);
            for class in Class::of_policy(prefix) {
                self.learned(served, class);
            }
        }
    }

    /// A file that an agent without classes has left was learned from flows to all destinations: it
    /// is of no class.
    fn set_aside_unclassed(&mut self, served: &PolicySpec) {
        let Some(folder) = &self.folder else { return };
        let file = folder.join(name_of(served, None));
        match set_aside(&file) {
            Ok(kept) => tracing::warn!(
                file = %file.display(), kept = %kept.display(),
                "the file was learned before classes of destinations were kept apart, and is not used"
            ),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(
                file = %file.display(), %error,
                "the file was learned before classes of destinations were kept apart: it is not used, and cannot be renamed"
            ),
        }
    }

    /// Is anything kept?
    pub fn is_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// What a new flow goes on from.
    pub fn learned(&mut self, served: &PolicySpec, class: Class) -> Option<&Experience> {
        if !served.is_learning() {
            return None;
        }
        let folder = self.folder.as_ref()?;
        let name = file_name(served, class);
        if !self.learned.contains_key(&name) {
            let file = folder.join(&name);
            self.versions += 1;
            let version = Version(self.versions);
            let read = match fs::read(&file) {
                Ok(bytes) => understand(bytes, served, version).map(Some),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error.to_string()),
                // As of a process that has too many files open: the next flow may be able to.
                Err(error) => {
                    if self.read_only.insert(name) {
                        tracing::warn!(
                            file = %file.display(), %error,
                            "what was learned cannot be read now: flows begin with the model, and nothing of them is saved"
                        );
                    }
                    return None;
                }
            };
            self.read_only.remove(&name);
            let read = read.unwrap_or_else(|why| {
                tracing::warn!(file = %file.display(), why, "flows start from the model, because the file of what was learned is refused");
                self.refuse(&name, &file);
                None
            });
            if let Some(read) = &read {
                tracing::info!(
                    file = name,
                    bytes = read.bytes.len(),
                    "goes on from what was learned"
                );
            }
            self.learned.insert(name.clone(), read);
        }
        let learned = self.learned.get_mut(&name)?.as_mut()?;
        if learned.read.is_none() {
            // A flow of this policy has just written it.
            learned.read = served.experience(&learned.bytes).ok();
        }
        learned.read.as_ref()
    }

    /// Puts a file that could not be read out of the way, so that nothing is written over it.
    fn refuse(&mut self, name: &str, file: &Path) {
        match set_aside(file) {
            Ok(kept) => tracing::warn!(file = %kept.display(), "the refused file is kept"),
            Err(error) => {
                tracing::warn!(
                    file = %file.display(), %error,
                    "the refused file cannot be renamed: nothing of this policy is saved"
                );
                self.read_only.insert(name.to_owned());
            }
        }
    }

    /// Would it keep what was learned with this much experience? Not if another flow of the policy
    /// and class had more, even if this one ends later.
    pub fn wants(&self, served: &PolicySpec, class: Class, experience: u64) -> bool {
        let name = file_name(served, class);
        let known = self.learned.get(&name).and_then(Option::as_ref);
        let least = known.map_or(0, |known| known.experience);
        self.is_kept()
            && !self.read_only.contains(&name)
            && experience >= least.saturating_add(LEAST_EXPERIENCE)
    }

    /// The flow of that number has learned this, which is [wanted](Self::wants).
    pub fn keep(
        &mut self,
        served: &PolicySpec,
        class: Class,
        bytes: Vec<u8>,
        experience: u64,
        flow: u32,
    ) {
        if !self.wants(served, class, experience) {
            return;
        }
        let name = file_name(served, class);
        self.versions += 1;
        let learned = Learned {
            bytes,
            read: None,
            experience,
            flow,
            version: Version(self.versions),
        };
        self.learned.insert(name.clone(), Some(learned));
        if !self.changed.contains(&name) {
            self.changed.push(name);
        }
    }

    /// The version of what a new flow goes on from.
    pub fn version(&mut self, served: &PolicySpec, class: Class) -> Option<Version> {
        self.learned(served, class)?;
        let known = self.learned.get(&file_name(served, class))?.as_ref()?;
        Some(known.version)
    }

    /// The flow of that number, which started from this version, has diverged. Deletes what is kept
    /// of its policy and class, and the file, if that is this version or the flow's own: another
    /// flow that starts from it may diverge.
    pub fn forget(
        &mut self,
        served: &PolicySpec,
        class: Class,
        flow: u32,
        started_from: Option<Version>,
    ) {
        let name = file_name(served, class);
        let Some(Some(known)) = self.learned.get(&name) else {
            return;
        };
        if known.flow != flow && Some(known.version) != started_from {
            return;
        }
        self.learned.insert(name.clone(), None);
        if !self.changed.contains(&name) {
            self.changed.push(name);
        }
        self.save();
    }

    /// Begins to write what has changed. What cannot be written is said once, and tried again.
    pub fn save(&mut self) {
        if !self.is_written_within(Duration::ZERO) {
            return;
        }
        let Some(folder) = &self.folder else { return };
        let files: Vec<(PathBuf, Option<Vec<u8>>)> = (self.changed.iter())
            .map(|name| {
                let learned = self.learned.get(name).and_then(Option::as_ref);
                let bytes = learned.map(|learned| learned.bytes.clone());
                (folder.join(name), bytes)
            })
            .collect();
        if files.is_empty() {
            return;
        }
        self.writing = std::mem::take(&mut self.changed);
        let failed = self.failed;
        let (says, writes) = channel();
        let write = move || {
            // Nobody may listen any more.
            let _ = says.send(write_all(&files, failed));
        };
        match Builder::new().spawn(write) {
            Ok(_) => self.writes = Some(writes),
            Err(error) => {
                if !failed {
                    tracing::error!(%error, "cannot keep what was learned: no thread can be begun");
                }
                self.fail();
            }
        }
    }

    /// Writes what has changed, and waits until all is written, but not for long.
    pub fn end(&mut self) {
        self.end_within(END_WITHIN);
    }

    fn end_within(&mut self, most: Duration) {
        // What has changed is written after what is being written.
        let mut is_done = self.is_written_within(most / 2);
        if is_done {
            self.save();
            is_done = self.is_written_within(most / 2);
        }
        if !is_done {
            tracing::error!("the disk is too slow: not all that was learned is saved");
        }
    }

    /// Waits for what is being written, for `most` at the longest.
    fn is_written_within(&mut self, most: Duration) -> bool {
        let Some(writes) = &self.writes else {
            return true;
        };
        let said = writes.recv_timeout(most);
        if said == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        self.writes = None;
        match said {
            Ok(true) => self.failed = false,
            _ => self.fail(),
        }
        true
    }

    /// Waits until all is written.
    #[cfg(test)]
    pub fn finish(&mut self) {
        let is_written = self.is_written_within(Duration::from_secs(600));
        assert!(is_written, "a disk that stands still");
    }

    /// What was to be written is still to be.
    fn fail(&mut self) {
        self.failed = true;
        for name in self.writing.drain(..) {
            if !self.changed.contains(&name) {
                self.changed.push(name);
            }
        }
    }
}

/// Whether it went well. Of which nothing is kept, the file goes.
fn write_all(files: &[(PathBuf, Option<Vec<u8>>)], failed_before: bool) -> bool {
    let mut is_well = true;
    for (file, bytes) in files {
        let done = match bytes {
            Some(bytes) => write(file, bytes).map(|()| "saved what was learned"),
            None => remove(file).map(|()| "removed what was learned, because a learner diverged"),
        };
        match done {
            Ok(what) => tracing::info!(file = %file.display(), "{what}"),
            Err(error) => {
                if is_well && !failed_before {
                    tracing::error!(file = %file.display(), %error, "cannot save what was learned");
                }
                is_well = false;
            }
        }
    }
    is_well
}

/// All of it or nothing, also if the power fails.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = file.with_extension("learned.part");
    let mut options = OpenOptions::new();
    let mut new = (options.write(true).create(true).truncate(true).mode(0o600)).open(&part)?;
    new.write_all(bytes)?;
    new.sync_all()?;
    fs::rename(&part, file)?;
    sync_folder(file)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_folder(file)),
    }
}

/// That a file has come or gone is kept too, if the power fails.
fn sync_folder(file: &Path) -> io::Result<()> {
    file.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Renames a file to `NAME.refused-<unix time>`, which it returns. What was refused before stays.
fn set_aside(file: &Path) -> io::Result<PathBuf> {
    let name = |time: u64| PathBuf::from(format!("{}.refused-{time}", file.display()));
    let free = (clock::unix_time()..).map(name);
    let free = free.filter(|name| fs::symlink_metadata(name).is_err());
    let aside = free.into_iter().next().unwrap_or_else(|| name(0));
    fs::rename(file, &aside)?;
    sync_folder(file)?;
    Ok(aside)
}

/// What was saved.
///
/// # Errors
/// One line, if a flow cannot go on from it.
fn understand(
    bytes: Vec<u8>,
    served: &PolicySpec,
    version: Version,
) -> std::result::Result<Learned, String> {
    let read = served.experience(&bytes).map_err(|e| e.to_string())?;
    Ok(Learned {
        bytes,
        experience: read.updates(),
        read: Some(read),
        flow: 0,
        version,
    })
}

/// The same model, told to learn in the same way, for the same class: the model's id and the class
/// for people, and a hash of the id and the spec, which may be longer than a file's name.
fn file_name(served: &PolicySpec, class: Class) -> String {
    name_of(served, Some(class))
}

fn name_of(served: &PolicySpec, class: Option<Class>) -> String {
    let (id, spec) = (served.model_id(), served.spec());
    let hash = sha256(format!("{id}\n{spec}").as_bytes());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let id = id.replace(|c: char| !is_plain(c), "-");
    let id = &id[..id.len().min(100)];
    let class = class.map_or_else(String::new, |class| format!("-{}", class.suffix()));
    format!("{id}-{}{class}.learned", &hash[..16])
}

#[cfg(test)]
mod tests;
