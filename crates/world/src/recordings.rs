//! Which files are written of a run.

use std::path::PathBuf;

use headway_record::recording::safe_name;

/// What to write down, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recordings {
    /// The folder; each scenario has one in it, and each scheme one in that.
    pub folder: PathBuf,
    /// A capture at each host at which a flow begins or ends.
    pub pcap: bool,
    /// A qlog of each flow's sender.
    pub qlog: bool,
    /// A log of each link that has a rate, in mahimahi's format.
    pub logs: bool,
}

impl Recordings {
    /// What the names of the files of one run begin with.
    pub fn stem(&self, scenario: &str, scheme: &str, run: u32) -> PathBuf {
        let folder = self.folder.join(safe_name(scenario));
        folder.join(safe_name(scheme)).join(format!("run-{run}"))
    }
}

/// What there is of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Why they are incomplete, if they are.
    pub failure: Option<String>,
}
