use std::ffi::OsString;
use std::path::PathBuf;

use headway_cc::suggest;
use headway_emu::shell as emu;
use headway_emu::shell::{Live, Options, PathOptions, Registry, ShellError};
use pyo3::prelude::*;

use crate::{RunError, own_traces, usage};

#[pyfunction]
#[pyo3(signature = (command, *, up=None, down=None, delay=None, jitter=None, reorder=None, loss=None, up_loss=None, down_loss=None, queue=None, up_queue=None, down_queue=None, hosts=1, peer=None, log=None, live=None, seed=1))]
#[allow(clippy::too_many_arguments)] // the options of `headway shell`, each given by name
pub(crate) fn shell(
    py: Python<'_>,
    command: Vec<OsString>,
    up: Option<String>,
    down: Option<String>,
    delay: Option<String>,
    jitter: Option<String>,
    reorder: Option<String>,
    loss: Option<String>,
    up_loss: Option<String>,
    down_loss: Option<String>,
    queue: Option<String>,
    up_queue: Option<String>,
    down_queue: Option<String>,
    hosts: usize,
    peer: Option<OsString>,
    log: Option<PathBuf>,
    live: Option<String>,
    seed: u64,
) -> PyResult<(i32, String, String)> {
    let live = live.map(|word| live_of(&word)).transpose()?;
    let options = Options {
        path: PathOptions {
            up,
            down,
            delay,
            jitter,
            reorder,
            loss,
            up_loss,
            down_loss,
            queue,
            up_queue,
            down_queue,
        },
        trace_dirs: vec![own_traces(py)?],
        seed,
        hosts,
        command,
        peer,
        log,
        live,
    };
    // The GIL is kept: a shell needs a process of its own.
    let end = emu::run(&options).map_err(raised)?;
    let json = serde_json::to_string(&end.summary).map_err(|e| RunError::new_err(e.to_string()))?;
    Ok((end.code, json, end.summary.text()))
}

fn live_of(word: &str) -> PyResult<Live> {
    let words = Live::WORDS.iter();
    let found = words.clone().find(|(name, _)| *name == word);
    found.map(|(_, live)| *live).ok_or_else(|| {
        let hint = suggest(word, words.map(|(name, _)| *name));
        usage(format!("--live '{word}' is unknown; {hint}"))
    })
}

#[pyfunction]
pub(crate) fn shells() -> PyResult<Vec<String>> {
    let entries = Registry::open().map_err(raised)?.entries();
    let live = entries.iter().filter(|(_, entry)| entry.is_alive());
    live.map(|(_, entry)| {
        serde_json::to_string(entry).map_err(|e| RunError::new_err(e.to_string()))
    })
    .collect()
}

#[pyfunction]
pub(crate) fn clean_shells() -> PyResult<Vec<(String, String)>> {
    let registry = Registry::open().map_err(raised)?;
    let removed = emu::clean(&registry, |_| true).map_err(raised)?;
    removed
        .iter()
        .map(|r| {
            let json = serde_json::to_string(r).map_err(|e| RunError::new_err(e.to_string()))?;
            Ok((json, r.text()))
        })
        .collect()
}

fn raised(error: ShellError) -> PyErr {
    match error.is_usage() {
        true => usage(error),
        false => RunError::new_err(error.to_string()),
    }
}
