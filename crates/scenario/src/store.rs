//! Finds traces by name, reads each once, and never gives more of them than their purpose allows.

use std::collections::HashMap;
use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use headway_net::trace::{Trace, TraceError};
use thiserror::Error;

use crate::TraceSpec;
use crate::collections::collection_of;
use crate::error::quoted;
use crate::split::{Part, Shares};

/// The largest file; a larger one is not a trace that fits in memory.
const MAX_FILE: u64 = 1 << 30;

/// Finds traces by name in a list of folders and keeps what it has read.
#[derive(Debug)]
pub struct TraceStore {
    folders: Vec<PathBuf>,
    loaded: Mutex<HashMap<TraceSpec, Arc<Trace>>>,
    for_training: bool,
}

/// Why a trace is not available. It displays as one line.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StoreError {
    /// The trace is in none of the folders.
    #[error("trace {name} not found (looked in {folders}); {cure}")]
    NotFound {
        /// The trace's name, in quotes.
        name: String,
        /// The folders, separated by commas.
        folders: String,
        /// How to get the trace.
        cure: String,
    },
    /// The trace cannot be read.
    #[error("cannot read the trace {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's reason.
        why: String,
    },
    /// The file is not a trace.
    #[error("{path}: {error}")]
    Damaged {
        /// The file.
        path: String,
        /// The error, and its place.
        error: TraceError,
    },
    /// The split does not allow what was asked for, or the trace has none of it.
    #[error("{path}: {why}")]
    Withheld {
        /// The file, or the trace's name.
        path: String,
        /// The reason, and what would be right.
        why: &'static str,
    },
}

const NOT_FOR_TRAINING: &str =
    "split.toml keeps this trace for evaluation only; train on others (see `headway traces`)";
const NOT_HELD_OUT: &str = "split.toml keeps no seconds of this trace for evaluation; write part = \"whole\" or another trace (see `headway traces`)";
const EVALUATION_ASKED_FOR: &str =
    "training may not read its seconds for evaluation; write part = \"training\"";
const READ_OFTEN: &str = "it is a pipe or a device, and a scenario's trace is read more than once; \
     write it into a file, and name that";

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

    /// Looks only in `folders`, in this order.
    pub fn of(folders: impl IntoIterator<Item = PathBuf>) -> TraceStore {
        TraceStore {
            folders: folders.into_iter().collect(),
            loaded: Mutex::default(),
            for_training: false,
        }
    }

    /// The folders in which it looks, in this order.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The same folders, but seconds for evaluation are never loaded: a caller that asks for a
    /// whole trace gets its seconds for training.
    pub fn for_training(self) -> TraceStore {
        TraceStore {
            for_training: true,
            loaded: Mutex::default(),
            ..self
        }
    }

    /// The file of the trace `name`; a name with a slash is a path.
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

    /// A part of the trace `name`, read at the first call. It never substitutes another trace.
    ///
    /// # Errors
    /// [`StoreError`] if the trace is missing, unreadable or damaged, or the split does not allow
    /// this purpose.
    pub fn load(&self, name: &str, part: Part) -> Result<Arc<Trace>, StoreError> {
        self.load_spec(&TraceSpec {
            name: name.to_owned(),
            part,
            mean: None,
        })
    }

    /// The trace as a link uses it, read and scaled at the first call.
    ///
    /// # Errors
    /// The same as [`load`](Self::load), and if it cannot have that mean rate.
    pub fn load_spec(&self, spec: &TraceSpec) -> Result<Arc<Trace>, StoreError> {
        let name = &spec.name;
        let part = match (self.for_training, spec.part) {
            (true, Part::Evaluation) => {
                return Err(StoreError::Withheld {
                    path: format!("trace {}", quoted(name)),
                    why: EVALUATION_ASKED_FOR,
                });
            }
            (true, Part::Whole) => Part::Training,
            (_, part) => part,
        };
        let key = TraceSpec {
            part,
            ..spec.clone()
        };
        // After a panic elsewhere, at worst an entry is missing.
        let loaded = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trace) = loaded().get(&key) {
            return Ok(Arc::clone(trace));
        }
        let trace = Arc::new(match spec.mean {
            None => self.read(name, part)?,
            Some(mean) => {
                let recorded = self.load(name, part)?;
                recorded
                    .scaled_to_mean(mean)
                    .map_err(|error| StoreError::Damaged {
                        path: format!("trace {}", quoted(name)),
                        error,
                    })?
            }
        });
        loaded().insert(key, Arc::clone(&trace));
        Ok(trace)
    }

    fn read(&self, name: &str, part: Part) -> Result<Trace, StoreError> {
        let given = Path::new(name);
        if name.contains('/') && given.exists() && !given.is_file() && !given.is_dir() {
            return Err(StoreError::Unreadable {
                path: quoted(name),
                why: READ_OFTEN.to_owned(),
            });
        }
        let path = self.find(name).ok_or_else(|| StoreError::NotFound {
            name: quoted(name),
            cure: match collection_of(name) {
                Some(collection) => format!("get it with `headway traces fetch {collection}`"),
                None => "no collection of `headway traces fetch` has it".to_owned(),
            },
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
        load_trace(&path, part)
    }
}

/// A part of the trace in one file. Every trace is read by this function, so the split always
/// holds.
///
/// # Errors
/// [`StoreError`] if the trace is unreadable or damaged, or the split does not allow this purpose.
pub fn load_trace(path: &Path, part: Part) -> Result<Trace, StoreError> {
    let trace = read(path)?;
    let (seconds, why) = match part {
        Part::Whole => return Ok(trace),
        Part::Training => (Shares::of(&trace, path).training, NOT_FOR_TRAINING),
        Part::Evaluation => (Shares::of(&trace, path).evaluation, NOT_HELD_OUT),
    };
    let path = || path.display().to_string();
    if seconds.is_empty() {
        return Err(StoreError::Withheld { path: path(), why });
    }
    trace.cut(&seconds).map_err(|error| StoreError::Damaged {
        path: path(),
        error,
    })
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
