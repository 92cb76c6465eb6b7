//! What policies have learned, from flow to flow and from start to start.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use headway_cc::{Bytes, Setup};
use headway_policy::schemes::{Carried, Served};

/// The newest that a flow of each policy has learned; a new flow goes on from it. Without a folder there is none: each
/// flow begins with the model, whichever were before.
#[derive(Debug, Default)]
pub struct Store {
    folder: Option<PathBuf>,
    /// By file name; nothing where there was no file.
    learned: HashMap<String, Option<Learned>>,
    /// Has come since it was saved.
    changed: Vec<String>,
    /// Who writes it: a disk may take longer than a flow can wait. It says whether that went well.
    writes: Option<JoinHandle<bool>>,
    failed: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Learned {
    bytes: Vec<u8>,
    /// How much that took ([`Flow::experience`](super::flow::Flow::experience)); of what was saved only what it says itself.
    experience: u64,
}

/// A flow that decided less often has learned nothing of its own.
const LEAST_EXPERIENCE: u64 = 100;

impl Store {
    /// In a folder that is there, or nowhere.
    pub fn new(folder: Option<PathBuf>) -> Store {
        Store {
            folder,
            ..Store::default()
        }
    }

    /// Is anything kept?
    pub fn is_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// What a new flow goes on from, and in how many decisions that was learned.
    pub fn learned(&mut self, served: &Served) -> Option<(&[u8], u64)> {
        if !served.is_learning() {
            return None;
        }
        let folder = self.folder.as_ref()?;
        let name = file_name(served);
        if !self.learned.contains_key(&name) {
            let file = folder.join(&name);
            let read = read(&file, served).unwrap_or_else(|why| {
                tracing::warn!(file = %file.display(), why, "goes on from the model, not from what was learned");
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
        let learned = self.learned.get(&name)?.as_ref()?;
        Some((&learned.bytes, learned.experience))
    }

    /// Would it keep what was learned in so many decisions? Not what a flow knows that has seen less than another, also if
    /// it is the last to end.
    pub fn wants(&self, served: &Served, experience: u64) -> bool {
        let known = self
            .learned
            .get(&file_name(served))
            .and_then(Option::as_ref);
        let least = known.map_or(0, |known| known.experience);
        self.is_kept() && experience >= least.saturating_add(LEAST_EXPERIENCE)
    }

    /// A flow has learned this, which is [wanted](Self::wants).
    pub fn keep(&mut self, served: &Served, bytes: Vec<u8>, experience: u64) {
        if !self.wants(served, experience) {
            return;
        }
        let name = file_name(served);
        self.learned
            .insert(name.clone(), Some(Learned { bytes, experience }));
        if !self.changed.contains(&name) {
            self.changed.push(name);
        }
    }

    /// Whoever goes on from it may diverge: what was kept of this policy goes, the file too.
    pub fn forget(&mut self, served: &Served) {
        let name = file_name(served);
        if !self.is_kept() || matches!(self.learned.get(&name), Some(None)) {
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
        if self.writes.as_ref().is_some_and(|w| !w.is_finished()) {
            return;
        }
        self.finish();
        let Some(folder) = &self.folder else { return };
        let files: Vec<(PathBuf, Option<Vec<u8>>)> = (self.changed.drain(..))
            .map(|name| {
                let learned = self.learned.get(&name).and_then(Option::as_ref);
                let bytes = learned.map(|learned| learned.bytes.clone());
                (folder.join(name), bytes)
            })
            .collect();
        if !files.is_empty() {
            let failed = self.failed;
            self.writes = Some(thread::spawn(move || write_all(&files, failed)));
        }
    }

    /// Waits until all is written.
    pub fn finish(&mut self) {
        if let Some(writes) = self.writes.take() {
            self.failed = !writes.join().unwrap_or(false);
            if self.failed {
                self.changed = self.learned.keys().cloned().collect();
            }
        }
    }
}

/// Whether it went well. Of which nothing is kept, the file goes.
fn write_all(files: &[(PathBuf, Option<Vec<u8>>)], failed_before: bool) -> bool {
    let mut is_well = true;
    for (file, bytes) in files {
        let done = match bytes {
            Some(bytes) => write(file, bytes).map(|()| "keeps what was learned"),
            None => remove(file).map(|()| "forgets what was learned: a learner diverged"),
        };
        match done {
            Ok(what) => tracing::info!(file = %file.display(), "{what}"),
            Err(error) => {
                if is_well && !failed_before {
                    tracing::error!(file = %file.display(), %error, "cannot keep what was learned");
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
    fs::rename(&part, file)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Nothing if there is no file.
fn read(file: &Path, served: &Served) -> Result<Option<Learned>, String> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    // Any flow will do to see whether one can go on from it.
    let tried = served.carried(&Setup::new(Bytes::new(1500), 0), Some(&bytes));
    let experience = match tried.map_err(|e| e.to_string())? {
        Carried::Rax(rax) => rax.updates(),
        Carried::Net(_) => 0,
    };
    Ok(Some(Learned { bytes, experience }))
}

/// The same model, told to learn in the same way.
fn file_name(served: &Served) -> String {
    let name = format!("{}-{}", served.model_id(), served.spec());
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "-");
    format!("{name}.learned")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder that goes with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("headwayd-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn served() -> Served {
        Served::read("owl:online=true").expect("a model of ours")
    }

    /// What a flow has learned that has done nothing yet.
    fn learned(served: &Served) -> Vec<u8> {
        let flow = served.carried(&Setup::new(Bytes::new(1500), 0), None);
        flow.expect("a flow").learned().expect("it learns")
    }

    #[test]
    fn without_a_folder_each_flow_begins_with_the_model() {
        let (mut store, served) = (Store::new(None), served());
        store.keep(&served, learned(&served), 1000);
        assert_eq!(store.learned(&served), None);
    }

    #[test]
    fn what_is_kept_is_whole_and_its_owners() {
        let (folder, served) = (Folder::new("kept"), served());
        let learned = learned(&served);
        let mut store = Store::new(Some(folder.0.clone()));
        assert_eq!(store.learned(&served), None);
        store.keep(&served, learned.clone(), 1000);
        store.save();
        store.finish();
        let files: Vec<_> = fs::read_dir(&folder.0).expect("it is there").collect();
        assert_eq!(files.len(), 1);
        let file = folder.0.join(file_name(&served));
        let mode = file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut again = Store::new(Some(folder.0.clone()));
        assert_eq!(again.learned(&served), Some((learned.as_slice(), 0)));
        // Nothing new: nothing is written. So with a flow that ends late and has learned little.
        fs::remove_file(&file).expect("it is there");
        for experience in [1000, 1] {
            store.keep(&served, vec![1], experience);
            store.save();
            store.finish();
            assert!(!file.exists());
            assert_eq!(store.learned(&served), Some((learned.as_slice(), 1000)));
        }
    }

    #[test]
    fn what_is_forgotten_is_replaced_by_whatever_comes() {
        let (folder, served) = (Folder::new("forgotten"), served());
        let learned = learned(&served);
        let mut store = Store::new(Some(folder.0.clone()));
        store.keep(&served, learned.clone(), 100_000);
        store.save();
        store.finish();
        let file = folder.0.join(file_name(&served));
        assert!(file.exists());
        store.forget(&served);
        store.finish();
        assert!(!file.exists());
        assert_eq!(store.learned(&served), None);
        store.keep(&served, learned.clone(), 100);
        assert_eq!(store.learned(&served), Some((learned.as_slice(), 100)));
    }

    #[test]
    fn what_could_not_be_written_is_written_later() {
        let (folder, served) = (Folder::new("later"), served());
        let place = folder.0.join("state");
        let mut store = Store::new(Some(place.clone()));
        store.keep(&served, learned(&served), 1000);
        store.save();
        store.finish();
        fs::create_dir(&place).expect("a folder");
        store.save();
        store.finish();
        assert!(place.join(file_name(&served)).exists());
    }

    #[test]
    fn a_wrong_file_is_said_in_one_line() {
        let folder = Folder::new("wrong");
        let file = folder.0.join("some.learned");
        let owl = served();
        assert_eq!(read(&file, &owl), Ok(None));
        let right = learned(&owl);
        let size = right.len();
        let nan = f32::NAN.to_le_bytes().repeat(size / 4);
        let rax = Served::read("rax-pretrained").expect("a scheme of ours");
        let whole = learned(&rax);
        let short = whole[..whole.len() / 2].to_vec();
        for (served, bytes, why) in [
            (&owl, vec![0; 7], format!("it has 7 bytes, not {size}")),
            (&owl, nan, "not all of its numbers are finite".to_owned()),
            (&rax, short, String::new()),
        ] {
            fs::write(&file, bytes).expect("room");
            let said = read(&file, served).expect_err("it is wrong");
            assert!(
                said.contains(&why) && !said.is_empty() && !said.contains('\n'),
                "{said}"
            );
        }
        for (served, right) in [(&owl, right), (&rax, whole)] {
            fs::write(&file, &right).expect("room");
            let found = read(&file, served)
                .expect("it is right")
                .expect("it is there");
            assert_eq!(found.bytes, right);
            assert_eq!(
                found.experience > 200,
                served.agent().is_none(),
                "a learner says it"
            );
        }
    }
}
