//! The paths of flows, and the network's newest report about each.

use std::net::IpAddr;

use headway_cc::Time;

use crate::network::{News, Path, PathTable};
use crate::system::clock;

/// The reports of a measurement agent, if there is one.
#[derive(Debug, Default)]
pub struct Paths {
    paths: PathTable,
    reported_at: Option<Time>,
    events: u64,
    refused: u64,
    silences: u64,
    why: Option<String>,
}

impl Paths {
    /// Replaces the previous report. A flow whose path is not in the new one keeps its information
    /// and knows how old it is.
    pub fn take(&mut self, news: News) {
        match news {
            News::Paths {
                reported_at,
                paths,
                refused,
            } => {
                if self.why.take().is_some() {
                    tracing::info!("netwatch sends news again");
                }
                self.paths = paths;
                self.reported_at = Some(reported_at);
                self.events += 1;
                self.refused += refused;
            }
            News::Silence(why) => {
                self.silences += 1;
                if self.why.as_ref() != Some(&why) {
                    tracing::warn!(why, "there is no news from netwatch");
                }
                self.why = Some(why);
            }
        }
    }

    /// The time of the newest report.
    pub fn reported_at(&self) -> Option<Time> {
        self.reported_at
    }

    /// The path from one address to another, if the newest report has it.
    pub fn of(&self, local: IpAddr, remote: IpAddr) -> Option<&Path> {
        self.paths.of(local, remote)
    }

    /// The status of the reports; `None` if no measurement agent was ever asked.
    pub fn describe(&self) -> Option<serde_json::Value> {
        let was_asked = self.events > 0 || self.silences > 0;
        was_asked.then(|| {
            serde_json::json!({
                "paths": self.paths.len(),
                "age_s": self.reported_at.map(|at| clock::now().since(at).as_secs_f64()),
                "events": self.events,
                "refused": self.refused,
                "silences": self.silences,
                "silent_because": self.why,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use headway_cc::NetworkView;

    use super::*;

    fn report_of(paths: Vec<Path>) -> News {
        News::Paths {
            reported_at: Time::from_nanos(5),
            paths: paths.into_iter().collect(),
            refused: 0,
        }
    }

    #[test]
    fn silence_is_counted_and_keeps_the_last_report() {
        let mut paths = Paths::default();
        assert_eq!(paths.describe(), None);
        paths.take(report_of(vec![Path {
            name: "one".to_owned(),
            from: "0.0.0.0/0".parse().unwrap(),
            to: "0.0.0.0/0".parse().unwrap(),
            view: NetworkView::default(),
        }]));
        paths.take(News::Silence("connection refused".to_owned()));
        assert!(
            paths
                .of("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap())
                .is_some()
        );
        let told = paths.describe().unwrap();
        assert_eq!(told["silences"], 1);
        assert_eq!(told["silent_because"], "connection refused");
        paths.take(report_of(Vec::new()));
        assert_eq!(
            paths.describe().unwrap()["silent_because"],
            serde_json::Value::Null
        );
    }
}
