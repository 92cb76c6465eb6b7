//! The files that are recorded of a run.

use std::fs;
use std::path::{Path, PathBuf};

use headway_record::recording::safe_name;

/// The recordings to make, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recordings {
    /// The folder. Each scenario has a folder in it, and each scheme a folder in that.
    pub folder: PathBuf,
    /// A capture at each host at which a flow begins or ends.
    pub pcap: bool,
    /// A qlog of each flow's sender.
    pub qlog: bool,
    /// A log of each link that has a rate, in mahimahi's format.
    pub logs: bool,
}

/// The prefix of the files' names until their run has ended.
const PART: &str = "part-of-";

impl Recordings {
    /// The beginning of the names of one run's files during the run.
    pub fn stem(&self, scenario: &str, scheme: &str, run: u32) -> PathBuf {
        let folder = self.folder.join(safe_name(scenario));
        let name = format!("{PART}run-{run}");
        folder.join(safe_name(scheme)).join(name)
    }

    /// Does this run have whole files, of each requested kind?
    pub fn has(&self, scenario: &str, scheme: &str, run: u32) -> bool {
        let stem = self.stem(scenario, scheme, run);
        let files = stem.parent().and_then(|folder| fs::read_dir(folder).ok());
        let files = files.into_iter().flatten().flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let begin = format!("run-{run}.");
        let names: Vec<String> = names.filter(|name| name.starts_with(&begin)).collect();
        let kinds = [
            (self.pcap, ".pcap"),
            (self.qlog, ".sqlog"),
            (self.logs, ".log"),
        ];
        let has = |ending: &str| names.iter().any(|name| name.ends_with(ending));
        kinds.iter().all(|(wanted, ending)| !wanted || has(ending))
    }
}

/// The recordings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Why they are incomplete, if they are.
    pub failure: Option<String>,
}

impl Recorded {
    /// Gives the files of an ended run their final names, over those of an earlier run. Incomplete
    /// files keep the prefix that says so.
    pub(crate) fn keep(&mut self) {
        if self.failure.is_some() {
            return;
        }
        for file in &mut self.files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let place = file.with_file_name(name.strip_prefix(PART).unwrap_or(&name));
            match fs::rename(&file, &place) {
                Ok(()) => *file = place,
                Err(error) => {
                    let why = format!("{}: {error}", Path::display(file));
                    self.failure.get_or_insert(why);
                }
            }
        }
    }
}
