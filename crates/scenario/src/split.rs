//! The split of traces into seconds for training and seconds for evaluation: `split.toml`.

use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use headway_cc::Duration;
use headway_net::trace::Trace;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The part of a trace that a caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// All of it, to compare schemes none of which has learned from it.
    #[default]
    Whole,
    /// The seconds for training.
    Training,
    /// The seconds that training never sees.
    Evaluation,
}

impl Part {
    /// Every part, with the name that users write.
    pub const NAMES: [(&'static str, Part); 3] = [
        ("whole", Part::Whole),
        ("training", Part::Training),
        ("evaluation", Part::Evaluation),
    ];

    /// The name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Part::Whole => "whole",
            Part::Training => "training",
            Part::Evaluation => "evaluation",
        }
    }
}

/// Seconds of one trace, in order and without overlap.
pub type Seconds = Vec<Range<Duration>>;

/// The split of one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The seconds for training.
    pub training: Seconds,
    /// The seconds for evaluation only.
    pub evaluation: Seconds,
    /// Whether the split lists the trace. If not, it is the user's own.
    pub listed: bool,
}

impl Shares {
    /// The split of `trace`, from the file `path`: by the trace's contents, or else by its name.
    pub fn of(trace: &Trace, path: &Path) -> Shares {
        let sha256: String = Sha256::digest(trace.to_mahimahi())
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let name = path.file_name().and_then(|name| name.to_str());
        let entry = SPLIT
            .iter()
            .find(|e| e.sha256.as_ref() == Some(&sha256))
            .or_else(|| {
                SPLIT
                    .iter()
                    .find(|e| name.is_some_and(|n| matches(&e.name, n)))
            });
        let end = trace.period();
        let held = entry.map_or(end..end, |e| e.held.start.min(end)..e.held.end.min(end));
        let seconds = |parts: &[Range<Duration>]| -> Seconds {
            parts.iter().filter(|p| p.start < p.end).cloned().collect()
        };
        Shares {
            training: seconds(&[Duration::ZERO..held.start, held.end..end]),
            evaluation: seconds(&[held]),
            listed: entry.is_some(),
        }
    }
}

/// One trace of the split.
#[derive(Debug)]
struct Entry {
    /// The name, or a pattern of names.
    name: String,
    sha256: Option<String>,
    /// The seconds for evaluation only.
    held: Range<Duration>,
    /// The same seconds, as they are written.
    evaluation: String,
}

/// The traces that `split.toml` lists by their full names: each one's name, and its seconds for
/// evaluation as written there (`all`, `none`, `325s..465s`, `480s..`).
pub fn split() -> impl Iterator<Item = (&'static str, &'static str)> {
    SPLIT
        .iter()
        .filter(|e| !e.name.contains('*'))
        .map(|e| (e.name.as_str(), e.evaluation.as_str()))
}

/// The split of this version. A test checks that it is sound.
static SPLIT: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    parse(include_str!("../../../split.toml")).expect("split.toml is checked by a test")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u64,
    trace: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    sha256: Option<String>,
    evaluation: String,
    #[serde(rename = "why")]
    _why: Option<String>,
}

fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    if file.schema != 1 {
        return Err(format!("schema {} is unknown", file.schema));
    }
    let mut entries: Vec<Entry> = Vec::new();
    for Written {
        name,
        sha256,
        evaluation,
        ..
    } in file.trace
    {
        let held = seconds(&evaluation).ok_or_else(|| {
            format!("{name}: {evaluation:?} is not all, none or a range of seconds")
        })?;
        let is_hash =
            |s: &String| s.len() == 64 && s.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !sha256.iter().all(is_hash) {
            return Err(format!("{name}: its sha256 is not 64 hexadecimal digits"));
        }
        let twice = |e: &Entry| e.name == name || (e.sha256.is_some() && e.sha256 == sha256);
        if entries.iter().any(twice) {
            return Err(format!("{name} is there twice"));
        }
        entries.push(Entry {
            name,
            sha256,
            held,
            evaluation,
        });
    }
    Ok(entries)
}

/// Does `name` match `written`, in which a `*` stands for any characters?
fn matches(written: &str, name: &str) -> bool {
    let Some((start, rest)) = written.split_once('*') else {
        return written == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    starts.into_iter().any(|at| matches(rest, &name[at..]))
}

/// Reads `all`, `none`, `325s..465s` or `480s..`.
fn seconds(text: &str) -> Option<Range<Duration>> {
    let at = |text: &str| {
        let seconds: u64 = text.strip_suffix('s')?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    };
    match (text, text.split_once("..")) {
        ("all", _) => Some(Duration::ZERO..Duration::MAX),
        ("none", _) => Some(Duration::MAX..Duration::MAX),
        (_, Some((from, ""))) => Some(at(from)?..Duration::MAX),
        (_, Some((from, to))) => Some(at(from)?..at(to)?).filter(|r| r.start < r.end),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_sound_and_a_damaged_one_is_refused() {
        assert!(parse(include_str!("../../../split.toml")).is_ok());
        let refused = |line: &str| {
            let text = format!("schema = 1\n[[trace]]\nname = \"a\"\n{line}");
            parse(&text).unwrap_err()
        };
        for evaluation in ["some", "9s..5s", "5s..5s", "5..9", "1ms..2ms", ".."] {
            let error = refused(&format!("evaluation = \"{evaluation}\""));
            assert!(error.contains("is not all, none"), "{error}");
        }
        assert!(refused("evaluation = \"all\"\nsha256 = \"12\"").contains("64 hexadecimal"));
        assert!(refused("evaluation = \"all\"\nhash = \"12\"").contains("hash"));
        let twice = "evaluation = \"all\"\n[[trace]]\nname = \"a\"\nevaluation = \"none\"";
        assert!(refused(twice).contains("twice"));
    }

    #[test]
    fn the_two_parts_make_the_whole() {
        // A trace of 500 s with the name of a listed one.
        let trace = Trace::parse("1\n500000\n").unwrap();
        let s = Duration::from_secs;
        let shares = |name: &str| Shares::of(&trace, Path::new(name));
        let driving = shares("any/TMobile-LTE-driving.down");
        assert_eq!(driving.training, [s(0)..s(325), s(465)..s(500)]);
        assert_eq!(driving.evaluation, vec![s(325)..s(465)]);
        assert_eq!(
            shares("ATT-LTE-driving.up").evaluation,
            vec![s(480)..s(500)]
        );
        assert_eq!(shares("Verizon-LTE-short.up").training, vec![]);
        // Listed or not, a trace that is called short is kept.
        for short in [
            "ATT-LTE-short.down",
            "mine/Verizon-LTE-short.edited.csv",
            "\u{e9}-LTE-short.up",
        ] {
            assert_eq!(
                (shares(short).training, shares(short).listed),
                (vec![], true)
            );
        }
        for other in ["ATT-LTE-shorter.down", "home-wifi-short.down", "a-short"] {
            assert!(!shares(other).listed, "{other}");
        }
        assert_eq!(shares("nyc-bus.down").evaluation, vec![]);
        let own = shares("my-own");
        assert_eq!((own.training, own.listed), (vec![s(0)..s(500)], false));
    }
}
