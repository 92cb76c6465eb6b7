//! What policies would have done, without doing it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;

use headway_policy::{Action, Record};

use crate::error::{Error, Result};

/// A file with a line of JSON for each decision that is not carried out.
#[derive(Debug)]
pub struct Shadow {
    out: BufWriter<File>,
    failed: bool,
}

impl Shadow {
    /// Into a new file.
    ///
    /// # Errors
    /// One line, if it cannot be made.
    pub fn create(path: &Path) -> Result<Shadow> {
        let file = File::create(path);
        let file = file
            .map_err(|e| Error::Usage(format!("--shadow: cannot make {}: {e}", path.display())))?;
        Ok(Shadow {
            out: BufWriter::new(file),
            failed: false,
        })
    }

    /// A decision.
    pub fn write(&mut self, flow: u32, remote: SocketAddr, record: &Record, action: Action<'_>) {
        let (what, value) = in_words(action);
        let line = serde_json::json!({
            "at_ns": record.now_ns,
            "flow": flow,
            "remote": remote.to_string(),
            "cwnd_packets": record.cwnd,
            "srtt_us": record.srtt_us,
            "min_rtt_us": record.min_rtt_us,
            "delivered_packets": record.delivered,
            "lost_packets": record.lost,
            "would": what,
            "value": value,
        });
        self.check(|out| writeln!(out, "{line}"));
    }

    pub fn flush(&mut self) {
        self.check(BufWriter::flush);
    }

    /// A full disk is said once, and ends nothing.
    fn check(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) {
        if let Err(error) = write(&mut self.out)
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
