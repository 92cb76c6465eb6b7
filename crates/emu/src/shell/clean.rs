//! Removes what a shell that was killed leaves.

use std::path::Path;

use serde::Serialize;

use super::ShellError;
use super::processes::{Process, end};
use super::registry::{Entry, HOST, Registry, VARIABLE};

/// A shell whose process has ended, and what was left of it.
#[derive(Clone, Debug, Serialize)]
pub struct Removed {
    /// The shell's process.
    pub pid: i32,
    /// The shell's addresses.
    pub slice: String,
    /// The shell's command.
    pub command: String,
    /// Processes that were still in its namespaces, and have been ended.
    pub ended: Vec<Ended>,
    /// Processes that could not be ended; if there are any, nothing was removed.
    pub left: Vec<Ended>,
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct Ended {
    /// The process number.
    pub pid: i32,
    /// The program's name.
    pub name: String,
}

/// Removes what ended shells have left; running shells are not touched. `only` chooses which ones.
///
/// # Errors
/// If an entry cannot be removed.
pub fn clean(
    registry: &Registry,
    only: impl Fn(&Entry) -> bool,
) -> Result<Vec<Removed>, ShellError> {
    // A draft occupies no addresses.
    let _ = registry.remove_drafts();
    let mut removed = Vec::new();
    let dead = registry.entries().into_iter();
    for (path, entry) in dead.filter(|(_, entry)| !entry.is_alive() && only(entry)) {
        let (ended, left) = end(|| remains(registry, &path, &entry));
        if left.is_empty() {
            registry.remove(&path)?;
        }
        let named = |processes: Vec<Process>| {
            let named = processes.into_iter().map(|p| Ended {
                pid: p.pid.as_raw(),
                name: p.name,
            });
            named.collect()
        };
        removed.push(Removed {
            pid: entry.pid,
            slice: entry.slice,
            command: entry.command,
            ended: named(ended),
            left: named(left),
        });
    }
    Ok(removed)
}

/// Processes that an ended shell has started, in its namespaces or on its far side. A namespace's
/// inode alone proves nothing: another namespace may have it since.
fn remains(registry: &Registry, path: &Path, entry: &Entry) -> Vec<Process> {
    let live: Vec<u64> = registry
        .entries()
        .iter()
        .filter(|(_, entry)| entry.is_alive())
        .flat_map(|(_, entry)| entry.namespaces().collect::<Vec<_>>())
        .collect();
    let own: Vec<u64> = entry.namespaces().filter(|n| !live.contains(n)).collect();
    let mut found = Process::all();
    found.retain(|process| {
        let is_inside = process.namespace().is_some_and(|n| own.contains(&n));
        process.has_environment(VARIABLE, &path.to_string_lossy())
            && (is_inside || process.has_environment(HOST, "0"))
    });
    found
}

impl Removed {
    /// A line of text for people.
    pub fn text(&self) -> String {
        let named = |processes: &[Ended]| {
            let named = processes.iter().map(|p| format!("{} {}", p.pid, p.name));
            named.collect::<Vec<_>>().join(", ")
        };
        let what = match (self.ended.len(), self.left.len()) {
            (_, 1..) => format!(
                "not removed, because these processes do not end: {}",
                named(&self.left)
            ),
            (0, _) => "nothing ran in it".to_owned(),
            (1, _) => format!("ended 1 process: {}", named(&self.ended)),
            (n, _) => format!("ended {n} processes: {}", named(&self.ended)),
        };
        format!(
            "shell {} ({}, {}): {what}",
            self.pid, self.slice, self.command
        )
    }
}
