//! The paths of flows, and the network's newest report about each.

use std::net::IpAddr;

use headway_cc::Time;

use crate::network::{News, Path};
use crate::system::clock;

/// The reports of a measurement agent, if there is one.
#[derive(Debug, Default)]
pub struct Paths {
    paths: Vec<Path>,
    heard: Option<Time>,
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
                heard,
                paths,
                refused,
            } => {
                if self.why.take().is_some() {
                    tracing::info!("netwatch sends news again");
                }
                self.paths = paths;
                self.heard = Some(heard);
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

    /// The path from one address to another, and when it was reported. If several match, the
    /// longest receiver's prefix decides, and then the longest sender's prefix.
    pub fn of(&self, local: IpAddr, remote: IpAddr) -> Option<(&Path, Time)> {
        let takes = |path: &&Path| path.from.contains(&local) && path.to.contains(&remote);
        let lengths = |path: &&Path| (path.to.prefix_len(), path.from.prefix_len());
        let found = self.paths.iter().filter(takes).max_by_key(lengths)?;
        Some((found, self.heard?))
    }

    /// The status of the reports; `None` if no measurement agent was ever asked.
    pub fn describe(&self) -> Option<serde_json::Value> {
        let was_asked = self.events > 0 || self.silences > 0;
        was_asked.then(|| {
            serde_json::json!({
                "paths": self.paths.len(),
                "age_s": self.heard.map(|heard| clock::now().since(heard).as_secs_f64()),
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

    fn path(name: &str, from: &str, to: &str) -> Path {
        Path {
            name: name.to_owned(),
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            view: NetworkView::default(),
        }
    }

    fn heard(paths: Vec<Path>) -> News {
        News::Paths {
            heard: Time::from_nanos(5),
            paths,
            refused: 0,
        }
    }

    #[test]
    fn a_flow_takes_the_path_with_the_longest_prefixes() {
        let mut paths = Paths::default();
        assert_eq!(paths.describe(), None);
        paths.take(heard(vec![
            path("all", "0.0.0.0/0", "0.0.0.0/0"),
            path("to", "10.0.0.0/8", "10.1.0.0/16"),
            path("both", "10.0.0.0/24", "10.1.0.0/16"),
            path("other", "10.0.1.0/24", "10.1.0.1/32"),
        ]));
        let of = |from: &str, to: &str| {
            let found = paths.of(from.parse().unwrap(), to.parse().unwrap());
            found.map(|(path, at)| (path.name.as_str(), at.as_nanos()))
        };
        assert_eq!(of("10.0.0.1", "10.1.0.1"), Some(("both", 5)));
        assert_eq!(of("10.0.2.1", "10.1.0.1"), Some(("to", 5)));
        assert_eq!(of("10.0.1.1", "10.1.0.1"), Some(("other", 5)));
        assert_eq!(of("192.0.2.1", "10.1.0.1"), Some(("all", 5)));
        assert_eq!(of("::1", "::1"), None);
    }

    #[test]
    fn silence_is_counted_and_keeps_the_last_report() {
        let mut paths = Paths::default();
        paths.take(heard(vec![path("one", "0.0.0.0/0", "0.0.0.0/0")]));
        paths.take(News::Silence("connection refused".to_owned()));
        assert!(
            paths
                .of("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap())
                .is_some()
        );
        let told = paths.describe().unwrap();
        assert_eq!(told["silences"], 1);
        assert_eq!(told["silent_because"], "connection refused");
        paths.take(heard(Vec::new()));
        assert_eq!(
            paths.describe().unwrap()["silent_because"],
            serde_json::Value::Null
        );
    }
}
