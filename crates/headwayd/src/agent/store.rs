//! What policies have learned, from flow to flow and from start to start.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use headway_cc::{Bytes, Setup};
use headway_policy::schemes::Served;

/// The newest that a flow of each policy has learned; a new flow goes on from it. Without a folder there is none: each
/// flow begins with the model, whichever were before.
#[derive(Debug, Default)]
pub struct Store {
    folder: Option<PathBuf>,
    /// By file name; nothing where there was no file.
    learned: HashMap<String, Option<Vec<f32>>>,
    /// Has come since it was saved.
    changed: Vec<String>,
    /// Who writes it: a disk may take longer than a flow can wait. It says whether that went well.
    writes: Option<JoinHandle<bool>>,
    failed: bool,
}

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

    /// What a new flow goes on from.
    pub fn learned(&mut self, served: &Served) -> Option<&[f32]> {
        if !served.is_learning() {
            return None;
        }
        let folder = self.folder.as_ref()?;
        let name = file_name(served);
        if !self.learned.contains_key(&name) {
            let file = folder.join(&name);
            let read = read(&file, size_of(served)).unwrap_or_else(|why| {
                tracing::warn!(file = %file.display(), why, "goes on from the model, not from what was learned");
                None
            });
            if let Some(read) = &read {
                tracing::info!(
                    file = name,
                    parameters = read.len(),
                    "goes on from what was learned"
                );
            }
            self.learned.insert(name.clone(), read);
        }
        self.learned.get(&name)?.as_deref()
    }

    /// A flow has learned this.
    pub fn keep(&mut self, served: &Served, learned: &[f32]) {
        if !self.is_kept() || !learned.iter().all(|x| x.is_finite()) {
            return;
        }
        let name = file_name(served);
        let before = self.learned.get(&name).and_then(Option::as_deref);
        if before != Some(learned) {
            self.learned.insert(name.clone(), Some(learned.to_vec()));
            if !self.changed.contains(&name) {
                self.changed.push(name);
            }
        }
    }

    /// Begins to write what has changed. What cannot be written is said once, and tried again.
    pub fn save(&mut self) {
        if self.writes.as_ref().is_some_and(|w| !w.is_finished()) {
            return;
        }
        self.finish();
        let Some(folder) = &self.folder else { return };
        let files: Vec<(PathBuf, Vec<u8>)> = (self.changed.drain(..))
            .filter_map(|name| {
                let learned = self.learned.get(&name)?.as_ref()?;
                let bytes = learned.iter().flat_map(|x| x.to_le_bytes()).collect();
                Some((folder.join(name), bytes))
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

/// Whether it went well.
fn write_all(files: &[(PathBuf, Vec<u8>)], failed_before: bool) -> bool {
    let mut is_well = true;
    for (file, bytes) in files {
        match write(file, bytes) {
            Ok(()) => tracing::info!(file = %file.display(), "keeps what was learned"),
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

/// How many numbers what it learns consists of: a network has some between its parameters that change nothing.
fn size_of(served: &Served) -> usize {
    let policy = served.policy(&Setup::new(Bytes::new(1500), 0), None);
    let policy = policy.as_ref().ok();
    policy.and_then(|p| p.learned()).map_or(0, <[f32]>::len)
}

/// Nothing if there is no file.
fn read(file: &Path, size: usize) -> Result<Option<Vec<f32>>, String> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if bytes.len() != size * 4 {
        let (is, right) = (bytes.len(), size * 4);
        return Err(format!("it has {is} bytes, not {right}"));
    }
    let (numbers, _) = bytes.as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().map(|b| f32::from_le_bytes(*b)).collect();
    match numbers.iter().all(|x| x.is_finite()) {
        true => Ok(Some(numbers)),
        false => Err("not all of its numbers are finite".to_owned()),
    }
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

    #[test]
    fn without_a_folder_each_flow_begins_with_the_model() {
        let (mut store, served) = (Store::new(None), served());
        store.keep(&served, &vec![1.0; size_of(&served)]);
        assert_eq!(store.learned(&served), None);
    }

    #[test]
    fn what_is_kept_is_whole_and_its_owners() {
        let (folder, served) = (Folder::new("kept"), served());
        let learned = vec![0.5; size_of(&served)];
        let mut store = Store::new(Some(folder.0.clone()));
        assert_eq!(store.learned(&served), None);
        store.keep(&served, &learned);
        store.save();
        store.finish();
        let files: Vec<_> = fs::read_dir(&folder.0).expect("it is there").collect();
        assert_eq!(files.len(), 1);
        let file = folder.0.join(file_name(&served));
        let mode = file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut again = Store::new(Some(folder.0.clone()));
        assert_eq!(again.learned(&served), Some(learned.as_slice()));
        // Nothing new: nothing is written.
        fs::remove_file(&file).expect("it is there");
        store.keep(&served, &learned);
        store.save();
        store.finish();
        assert!(!file.exists());
    }

    #[test]
    fn what_could_not_be_written_is_written_later() {
        let (folder, served) = (Folder::new("later"), served());
        let place = folder.0.join("state");
        let mut store = Store::new(Some(place.clone()));
        store.keep(&served, &vec![0.5; size_of(&served)]);
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
        let file = folder.0.join("owl.learned");
        assert_eq!(read(&file, 2), Ok(None));
        for (bytes, why) in [
            (vec![0; 7], "it has 7 bytes, not 8"),
            (
                f32::NAN.to_le_bytes().repeat(2),
                "not all of its numbers are finite",
            ),
        ] {
            fs::write(&file, bytes).expect("room");
            assert_eq!(read(&file, 2), Err(why.to_owned()));
        }
        fs::write(&file, [0; 8]).expect("room");
        assert_eq!(read(&file, 2), Ok(Some(vec![0.0; 2])));
    }
}
