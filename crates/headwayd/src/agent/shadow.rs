//! What policies would have done, without doing it.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use headway_policy::schemes::Served;
use headway_policy::{Action, Record};
use serde::Serialize;

use crate::error::{Error, Result};

/// What becomes of decisions that are not carried out: a line of JSON for each in a file, or nothing.
#[derive(Debug)]
pub struct Shadow {
    out: Option<BufWriter<File>>,
    failed: bool,
}

/// What a line holds, whose meaning changes with the number: docs/kernel.md.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    policy: &'a str,
    model: &'a str,
    at_ns: u64,
    flow: u32,
    remote: SocketAddr,
    cwnd_packets: u32,
    srtt_us: u32,
    min_rtt_us: u32,
    delivered_packets: u32,
    lost_packets: u32,
    would: &'static str,
    value: serde_json::Value,
}

impl Shadow {
    /// Into a file, a new one for its owner alone, or nowhere.
    ///
    /// # Errors
    /// One line, if it cannot be made.
    pub fn create(path: Option<&Path>) -> Result<Shadow> {
        let create = |path: &Path| {
            let mut options = OpenOptions::new();
            let file = (options.write(true).create(true).truncate(true).mode(0o600)).open(path);
            file.map_err(|e| Error::Usage(format!("--shadow: cannot make {}: {e}", path.display())))
        };
        let file = path.map(create).transpose()?;
        Ok(Shadow {
            out: file.map(BufWriter::new),
            failed: false,
        })
    }

    /// A decision that a policy would have taken.
    pub fn write(
        &mut self,
        served: &Served,
        flow: u32,
        remote: SocketAddr,
        record: &Record,
        action: Action<'_>,
    ) {
        self.check(|out| {
            let (would, value) = in_words(action);
            let line = Line {
                schema: SCHEMA,
                policy: served.spec(),
                model: served.model_id(),
                at_ns: record.now_ns,
                flow,
                remote,
                cwnd_packets: record.cwnd,
                srtt_us: record.srtt_us,
                min_rtt_us: record.min_rtt_us,
                delivered_packets: record.delivered,
                lost_packets: record.lost,
                would,
                value,
            };
            serde_json::to_writer(&mut *out, &line)?;
            out.write_all(b"\n")
        });
    }

    pub fn flush(&mut self) {
        self.check(BufWriter::flush);
    }

    /// A full disk is said once, and ends nothing.
    fn check(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) {
        if let Some(out) = &mut self.out
            && let Err(error) = write(out)
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::error!(%error, "cannot write what the policy would have done");
        }
    }
}

fn in_words(action: Action<'_>) -> (&'static str, serde_json::Value) {
    match action {
        Action::Nothing => ("nothing", serde_json::Value::Null),
        Action::AddCwnd(packets) => ("add-cwnd", packets.into()),
        Action::ScaleCwnd(factor) => ("scale-cwnd", factor.into()),
        Action::ScaleRate(factor) => ("scale-rate", factor.into()),
        Action::Set(name, value) => ("set", serde_json::json!({ name: value })),
        Action::Settings(names, values) => {
            let pairs = names
                .iter()
                .cloned()
                .zip(values.iter().map(|v| (*v).into()));
            ("set", serde_json::Value::Object(pairs.collect()))
        }
    }
}
