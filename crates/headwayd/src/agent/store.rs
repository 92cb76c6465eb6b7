//! Keeps what policies have learned, for later flows and later agents.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use headway_cc::Time;
use headway_policy::model::sha256;
use headway_policy::schemes::{Experience, PolicySpec};

use super::Class;
use crate::error::{Error, Result};
use crate::system::priority;

mod saved;

use saved::Saved;
pub use saved::SavedStates;

/// What was learned for each policy and class of destinations. A new flow starts from it. Without a
/// folder, every flow starts from the model.
#[derive(Debug, Default)]
pub struct Store {
    folder: Option<PathBuf>,
    /// The users whose flows may change the saved state; all users if there are none.
    teachers: Vec<u32>,
    /// The folder, locked so that no other agent writes there.
    lock: Option<File>,
    /// The names of the files of the present policies that learn.
    present: HashSet<String>,
    /// The learned state by file name; `None` if there is no such file.
    learned: HashMap<String, Option<Learned>>,
    /// The names of files that could not be read and are still there. They are neither overwritten
    /// nor removed.
    read_only: HashSet<String>,
    /// The names of files that could not be read. Flows do not try again until
    /// [`Self::read_again`], because a disk with errors may take long to report each.
    unreadable: HashSet<String>,
    /// The names of files whose state has changed since the last save.
    changed: Vec<String>,
    /// The names of files that are being written now.
    writing: Vec<String>,
    /// The result of the thread that writes: a disk may take longer than a flow can wait.
    writes: Option<Receiver<bool>>,
    /// The last write failed.
    failed: bool,
    /// The number of versions so far.
    versions: u64,
}

#[derive(Clone, Debug)]
struct Learned {
    bytes: Vec<u8>,
    /// The parsed state, which is read once, for the first flow that starts from it.
    read: Option<Experience>,
    /// The number of gradient steps in it.
    experience: u64,
    /// The flow that learned it, and its score; `None` if a file has it from an earlier agent.
    from: Option<Offer>,
    /// The guard has taken a flow that had learned it, or had started from it.
    is_doubted: bool,
    version: Version,
}

/// What a flow says of the state that later flows could start from.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The flow's number.
    pub flow: u32,
    /// The number of gradient steps, those before this flow included.
    pub experience: u64,
    /// How good the flow was over the last minute, in 1/65536
    /// ([`Quality::score`](super::quality::Quality::score)).
    pub score: i64,
    /// The end of that minute.
    pub at: Time,
}

impl Learned {
    /// Does what a flow offers take the place of this state? A better state of another flow does,
    /// and later state of the same flow. [`HOLDS_FOR`] after its score was measured the path may
    /// have changed. Then, or if the score is not known or doubted, more experience is enough.
    fn gives_way_to(&self, offer: &Offer) -> bool {
        let has_more = offer.experience >= self.experience.saturating_add(LEAST_EXPERIENCE);
        let Some(from) = self.from else {
            return has_more;
        };
        let is_better = offer.score >= from.score + LEAST_GAIN;
        let is_same = offer.flow == from.flow;
        let holds = !self.is_doubted && offer.at.since(from.at) < HOLDS_FOR;
        is_better || (has_more && (is_same || !holds))
    }

    /// Has the flow of that number learned it, or started from it?
    fn is_of(&self, flow: u32, started_from: Option<Version>) -> bool {
        self.from.is_some_and(|from| from.flow == flow) || started_from == Some(self.version)
    }
}

/// A number that a flow's state gets, and keeps while the flow renews it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

/// The longest wait for the disk at the end: a disk may never answer.
const END_WITHIN: Duration = Duration::from_secs(5);
/// A first state has to have this many gradient steps, and a state with more experience has this
/// many more.
const LEAST_EXPERIENCE: u64 = 100;
/// A better score is higher by at least this, in 1/65536: 4% of the throughput at the same RTT. So
/// states are not replaced, and written, for what means over a minute vary by.
const LEAST_GAIN: i64 = 65_536 / 16;
/// A score says how good a state is for this time.
const HOLDS_FOR: headway_cc::Duration = headway_cc::Duration::from_secs(3600);

impl Store {
    /// A store in an existing folder, or without one.
    pub fn new(folder: Option<PathBuf>) -> Store {
        Store {
            folder,
            ..Store::default()
        }
    }

    /// Only flows of these users change the saved state, or of all users if there are none.
    #[must_use]
    pub fn learning_from(mut self, users: Vec<u32>) -> Store {
        self.teachers = users;
        self
    }

    /// May a user's flows change the saved state?
    pub fn learns_from(&self, user: u32) -> bool {
        self.teachers.is_empty() || self.teachers.contains(&user)
    }

    /// Locks the folder for this agent, and tries to write a file into it with the present rights
    /// of the process.
    ///
    /// # Errors
    /// One line, if another agent has the folder, or this one may not write there.
    pub fn claim(&mut self) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let refused = |why: String| Error::Usage(format!("--state {}: {why}", folder.display()));
        let may_not = |error: io::Error| {
            refused(format!(
                "cannot write there: {error}; give a folder that headwayd may write"
            ))
        };
        // The lock is on the folder itself, because a lock file would stay, or could be removed.
        let lock = File::open(folder).map_err(may_not)?;
        match lock.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => {
                let why = "another headwayd keeps what it learns there; give another folder";
                return Err(refused(why.to_owned()));
            }
            // Some network file systems have no locks.
            Err(TryLockError::Error(error)) => tracing::warn!(
                folder = %folder.display(), %error,
                "the folder cannot be locked; let no other agent write there"
            ),
        }
        // This name is not that of a policy's file.
        let file = folder.join(".headwayd-probe");
        match write(&file, &[]).and_then(|()| fs::remove_file(&file)) {
            Ok(()) => (),
            // There may be room later. Flows are served meanwhile.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded
                ) =>
            {
                tracing::warn!(folder = %folder.display(), %error, "the disk is full, so what flows learn is not saved for now");
            }
            Err(error) => return Err(may_not(error)),
        }
        self.lock = Some(lock);
        Ok(())
    }

    /// Takes the saved states of the policies from now on, which a thread has
    /// [read](SavedStates::read). What the store has already stays.
    pub fn take(&mut self, saved: SavedStates) {
        self.present = saved.0.iter().map(|(name, _)| name.clone()).collect();
        for (name, saved) in saved.0 {
            if !self.learned.contains_key(&name) {
                self.insert(name, saved);
            }
        }
    }

    /// Drops the states of policies that were replaced, once they are written and none of these
    /// flows has such a policy. After a reload without learners they stay.
    pub fn drop_replaced<'a>(&mut self, flows: impl Iterator<Item = (&'a PolicySpec, Class)>) {
        if self.present.is_empty() {
            return;
        }
        let used: HashSet<String> = flows
            .map(|(served, class)| file_name(served, class))
            .collect();
        let (present, changed, writing) = (&self.present, &self.changed, &self.writing);
        self.learned.retain(|name, _| {
            let is_unwritten = changed.contains(name) || writing.contains(name);
            present.contains(name) || used.contains(name) || is_unwritten
        });
    }

    fn insert(&mut self, name: String, saved: Saved) {
        let learned = match saved {
            Saved::State(bytes, read) => {
                tracing::info!(
                    file = name,
                    bytes = bytes.len(),
                    "flows start from saved state"
                );
                self.versions += 1;
                Some(Learned {
                    bytes,
                    experience: read.updates(),
                    read: Some(read),
                    from: None,
                    is_doubted: false,
                    version: Version(self.versions),
                })
            }
            Saved::Nothing => None,
            Saved::Refused => {
                self.read_only.insert(name.clone());
                self.learned.insert(name, None);
                return;
            }
            Saved::Unreadable(error) => {
                if self.read_only.insert(name.clone()) {
                    tracing::warn!(
                        file = name, %error,
                        "the saved state cannot be read now: flows begin with the model, and what they learn is not saved"
                    );
                }
                self.unreadable.insert(name);
                return;
            }
        };
        self.read_only.remove(&name);
        self.learned.insert(name, learned);
    }

    /// Does it have a folder?
    pub fn is_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// The state from which a new flow starts.
    pub fn learned(&mut self, served: &PolicySpec, class: Class) -> Option<&Experience> {
        if !served.is_learning() {
            return None;
        }
        let folder = self.folder.as_ref()?;
        let name = file_name(served, class);
        if !self.learned.contains_key(&name) && !self.unreadable.contains(&name) {
            let saved = Saved::read(&folder.join(&name), served);
            self.insert(name.clone(), saved);
        }
        let learned = self.learned.get_mut(&name)?.as_mut()?;
        if learned.read.is_none() {
            // A flow of this policy has just learned it.
            learned.read = served.experience(&learned.bytes).ok();
        }
        learned.read.as_ref()
    }

    /// Would it keep what a flow offers?
    pub fn wants(&self, served: &PolicySpec, class: Class, offer: &Offer) -> bool {
        let name = file_name(served, class);
        let is_better = match self.learned.get(&name).and_then(Option::as_ref) {
            Some(known) => known.gives_way_to(offer),
            None => offer.experience >= LEAST_EXPERIENCE,
        };
        self.is_kept() && !self.read_only.contains(&name) && is_better
    }

    /// Keeps what a flow has learned, if it is [wanted](Self::wants). Flows that started from
    /// earlier state of the same flow count as those that started from this one.
    pub fn keep(&mut self, served: &PolicySpec, class: Class, bytes: Vec<u8>, offer: &Offer) {
        if !self.wants(served, class, offer) {
            return;
        }
        let name = file_name(served, class);
        let before = self.learned.remove(&name).flatten();
        let same = before.filter(|known| known.from.is_some_and(|from| from.flow == offer.flow));
        let (version, is_doubted) = same.map_or_else(
            || {
                self.versions += 1;
                (Version(self.versions), false)
            },
            |known| (known.version, known.is_doubted),
        );
        let learned = Learned {
            bytes,
            read: None,
            experience: offer.experience,
            from: Some(*offer),
            is_doubted,
            version,
        };
        self.learned.insert(name.clone(), Some(learned));
        if !self.changed.contains(&name) {
            self.changed.push(name);
        }
    }

    /// The guard has taken the flow of that number. If the flow has learned the state of its policy
    /// and class, or has started from it, the state's score says nothing any more.
    pub fn doubt(
        &mut self,
        served: &PolicySpec,
        class: Class,
        flow: u32,
        started_from: Option<Version>,
    ) {
        if let Some(Some(known)) = self.learned.get_mut(&file_name(served, class)) {
            known.is_doubted |= known.is_of(flow, started_from);
        }
    }

    /// The version of the state from which a new flow starts.
    pub fn version(&mut self, served: &PolicySpec, class: Class) -> Option<Version> {
        self.learned(served, class)?;
        let known = self.learned.get(&file_name(served, class))?.as_ref()?;
        Some(known.version)
    }

    /// Deletes the state of a policy and class, and its file, because the flow of that number has
    /// diverged. It does so if the flow started from this state or has learned it: another flow
    /// that starts from it may diverge too.
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
        if !known.is_of(flow, started_from) {
            return;
        }
        self.learned.insert(name.clone(), None);
        if !self.changed.contains(&name) {
            self.changed.push(name);
        }
        self.save();
    }

    /// Lets new flows try again to read what could not be read.
    pub fn read_again(&mut self) {
        self.unreadable.clear();
    }

    /// Begins to write what has changed. A failure is logged once, and tried again with the next
    /// save.
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
            // The agent may have ended.
            let _ = says.send(write_all(&files, failed));
        };
        match priority::spawn("store", write) {
            Ok(()) => self.writes = Some(writes),
            Err(error) => {
                if !failed {
                    tracing::error!(%error, "cannot save what was learned");
                }
                self.fail();
            }
        }
    }

    /// Writes what has changed, and waits until all is written, for a few seconds at most.
    pub fn end(&mut self) {
        self.end_within(END_WITHIN);
    }

    fn end_within(&mut self, most: Duration) {
        // A write that is under way has to end before the changed files are written.
        let mut is_done = self.is_written_within(most / 2);
        if is_done {
            self.save();
            is_done = self.is_written_within(most / 2);
        }
        if !is_done {
            tracing::error!("the disk is too slow, so not all that was learned is saved");
        }
    }

    /// Waits for the write that is under way, at most for `most`. Returns whether it has ended.
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
            Ok(true) => {
                self.failed = false;
                self.writing.clear();
            }
            _ => self.fail(),
        }
        true
    }

    /// Waits until all is written.
    #[cfg(test)]
    pub fn finish(&mut self) {
        let is_written = self.is_written_within(Duration::from_secs(600));
        assert!(is_written, "the disk does not answer");
    }

    /// Notes that writing failed: the files are still to be written.
    fn fail(&mut self) {
        self.failed = true;
        for name in self.writing.drain(..) {
            if !self.changed.contains(&name) {
                self.changed.push(name);
            }
        }
    }
}

/// Writes files, and deletes a file if nothing is kept. Returns whether all went well.
fn write_all(files: &[(PathBuf, Option<Vec<u8>>)], failed_before: bool) -> bool {
    let mut is_well = true;
    for (file, bytes) in files {
        let done = match bytes {
            Some(bytes) => write(file, bytes).map(|()| "the learned state was saved"),
            None => {
                remove(file).map(|()| "the learned state was removed, because a learner diverged")
            }
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

/// Writes a whole file or nothing, even if the power fails.
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

/// Has the folder's new content survive a power failure.
fn sync_folder(file: &Path) -> io::Result<()> {
    file.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// The file's name for a model, a spec and a class. The model's id and the class are for people. A
/// hash of the id and the spec stands for the spec, which may be too long for a file's name.
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
