//! The logs of a run.

use std::io;
use std::path::PathBuf;

use headway_record::recording::{File, safe_name};
use headway_scenario::LinkSpec;
use headway_world::LinkLogs;

use super::job::LogTask;
use super::plan::Plan;
use crate::log::{EventLog, LoggedLink};

/// Begins the log of a run. Returns it, and the files that it writes.
pub(super) fn start_log(plan: &Plan, task: &LogTask) -> io::Result<(EventLog, Vec<PathBuf>)> {
    let path = |what: &str| PathBuf::from(format!("{}.{what}", task.stem.display()));
    let mut files = vec![path("events.parquet")];
    let file = |spec: &LinkSpec| {
        let name = safe_name(&spec.name);
        let log = path(&format!("{name}.log"));
        let file = File::create(&log)?;
        files.push(log);
        Ok(file)
    };
    let logs = LinkLogs::new(&plan.network, plan.router, &task.title, file)?.into_logs();
    let names = plan.network.links.iter().map(|l| l.name.clone());
    let links = names.zip(logs);
    let links = links.map(|(name, log)| LoggedLink { name, log });
    // Each way leads to a host: the way of data to the receiver's, the way back to the sender's.
    let ends = plan.network.flows.iter().flat_map(|f| [f.to, f.from]);
    let hosts: Vec<String> = ends.map(|node| plan.network.nodes[node].clone()).collect();
    let log = EventLog::start(&files[0], links.collect(), &hosts)?;
    Ok((log, files))
}
