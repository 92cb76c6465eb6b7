//! Where traces are: found by name, read once.

use std::collections::HashMap;
use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use headway_net::trace::{Trace, TraceError};
use thiserror::Error;

use crate::quantity::quoted;

/// A larger file is no trace that fits in memory.
const MAX_FILE: u64 = 1 << 30;

/// Finds traces by name in a list of folders and keeps what it has read.
#[derive(Debug)]
pub struct TraceStore {
    folders: Vec<PathBuf>,
    loaded: Mutex<HashMap<String, Arc<Trace>>>,
}

/// A trace that cannot be had. Displays as one line.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StoreError {
    /// In none of the folders.
    #[error(
        "trace {name} not found (looked in {folders}); get it with `headway traces fetch mahimahi`"
    )]
    NotFound {
        /// In quotes.
        name: String,
        /// With commas between.
        folders: String,
    },
    /// There, but unreadable.
    #[error("cannot read the trace {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's reason.
        why: String,
    },
    /// There, but not a trace.
    #[error("{path}: {error}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it, and where.
        error: TraceError,
    },
}

impl TraceStore {
    /// Looks in the folders of `HEADWAY_TRACES` (a list as in `PATH`), the cache folder
    /// (`$XDG_CACHE_HOME` or `~/.cache`, then `headway/traces`), `../shared/traces`, then `more`.
    pub fn new(more: impl IntoIterator<Item = PathBuf>) -> TraceStore {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        let named = set("HEADWAY_TRACES");
        let mut folders: Vec<PathBuf> = named.iter().flat_map(env::split_paths).collect();
        let cache = set("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
        folders.extend(cache.map(|cache| cache.join("headway").join("traces")));
        folders.push(PathBuf::from("../shared/traces"));
        folders.extend(more);
        TraceStore::of(folders)
    }

    /// Looks in `folders` only, the first first.
    pub fn of(folders: impl IntoIterator<Item = PathBuf>) -> TraceStore {
        TraceStore {
            folders: folders.into_iter().collect(),
            loaded: Mutex::default(),
        }
    }

    /// The file of the trace `name`; a name with a slash is itself the path.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let file = |path: PathBuf| path.is_file().then_some(path);
        match name.contains('/') {
            true => file(PathBuf::from(name)),
            false => self
                .folders
                .iter()
                .find_map(|folder| file(folder.join(name))),
        }
    }

    /// The trace `name`, read at the first call.
    ///
    /// # Errors
    /// [`StoreError`] if it is nowhere, unreadable or damaged. Never substitutes another.
    pub fn load(&self, name: &str) -> Result<Arc<Trace>, StoreError> {
        // A panic elsewhere leaves at worst a missing entry.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trace) = loaded.get(name) {
            return Ok(Arc::clone(trace));
        }
        let path = self.find(name).ok_or_else(|| StoreError::NotFound {
            name: quoted(name),
            folders: match name.contains('/') {
                true => "the path given".to_owned(),
                false => self
                    .folders
                    .iter()
                    .map(|f| f.display().to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
            },
        })?;
        let trace = Arc::new(read(&path)?);
        loaded.insert(name.to_owned(), Arc::clone(&trace));
        Ok(trace)
    }
}

/// Reads one file.
fn read(path: &Path) -> Result<Trace, StoreError> {
    let shown = || path.display().to_string();
    let unreadable = |why: String| StoreError::Unreadable { path: shown(), why };
    let mut file = File::open(path)
        .map_err(|e| unreadable(e.to_string()))?
        .take(MAX_FILE + 1);
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .map_err(|e| unreadable(e.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(unreadable(
            "it is over 1 GiB, more than a trace may have".to_owned(),
        ));
    }
    Trace::parse(text).map_err(|error| StoreError::Damaged {
        path: shown(),
        error,
    })
}
