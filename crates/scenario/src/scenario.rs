//! A scenario: reads it, checks it, computes its hash, and draws its networks.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_cc::Duration;
use headway_net::trace::{Trace, looks_like};
use sha2::{Digest, Sha256};

use crate::collections::collection_of;
use crate::error::{quoted, quoted_path};
use crate::parse::{MAX_SECONDS, MAX_TEXT, Parsed, parse};
use crate::plan::RatePlan;
use crate::sweep::{Sweep, expand};
use crate::{Network, ScenarioError, StoreError, TraceSpec, TraceStore};
use headway_cc::suggest;

/// The names of the scenarios that come with Headway, and their texts.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        const NAMES: &[&str] = &[$($name),*];
        const TEXTS: &[&str] = &[$(include_str!(concat!("../../../scenarios/", $name, ".toml"))),*];
    };
}
shipped!(
    "pantheon-default",
    "cellular-static",
    "cellular-static-flat",
    "cellular-walking",
    "cellular-walking-flat",
    "cellular-taxi",
    "cellular-taxi-flat",
    "cellular-bus",
    "cellular-bus-flat",
    "low-bdp",
    "high-bdp",
    "high-bdp-mbit",
    "bbr-rtt-step",
    "bbr-rate-step",
    "bbr-epochs",
    "bbr-join-leave",
    "bbr-training",
    "bbr-training-alone",
    "bbr-validation",
    "bbr-validation-alone",
    "bbr-team-training",
    "bbr-team-validation",
    "rax-1",
    "rax-2",
    "rax-4",
    "rax-1-loss",
    "rax-2-loss",
    "lte-verizon",
    "lte-tmobile",
    "lte-att",
    "owl-buffer",
    "owl-fairness",
    "owl-nash",
    "owl-duration",
    "owl-geni",
    "owl-nsfnet",
    "owl-random",
    "owl-lte-verizon",
    "owl-lte-tmobile",
    "owl-lte-att",
    "owl-lte-att-2016",
    "owl-lte-nyc",
    "synthetic-verizon",
    "synthetic-tmobile",
    "synthetic-att",
    "parking-lot",
    "unseen",
    "unseen-changing",
    "aurora-training",
    "aurora-training-wide",
    "lte-training",
    "evdo-training",
    "owl-training",
    "owl-training-path",
    "owl-training-lte",
    "owl-training-rivals",
    "owl-validation",
    "owl-validation-lte",
    "owl-validation-rivals",
    "owl-nash-training",
    "owl-nash-validation",
    "interval-training",
    "interval-training-lte",
    "interval-training-cellular",
    "interval-validation",
    "interval-validation-long",
    "interval-validation-lte",
    "interval-validation-cellular",
);

/// The names of the scenarios and families that come with Headway, in the order of the
/// documentation.
pub fn shipped() -> &'static [&'static str] {
    NAMES
}

/// A checked scenario. Immutable.
#[derive(Clone, Debug)]
pub struct Scenario {
    text: String,
    parsed: Parsed,
    hash: String,
    sweep: Option<Sweep>,
    /// The folders in which its traces are looked for, in this order.
    folders: Vec<PathBuf>,
    found: Vec<Found>,
}

/// A trace's name in the scenario, and the file found in the scenario's folders.
#[derive(Clone, Debug)]
struct Found {
    written: String,
    file: Option<PathBuf>,
    /// The trace's name from then on.
    name: String,
}

impl Scenario {
    /// Reads a scenario's TOML; `origin` (a file or a name) appears in errors.
    ///
    /// # Errors
    /// [`ScenarioError`], for text that is not TOML, unknown keys, impossible values and a sweep.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, ScenarioError> {
        let origin: String = origin.escape_debug().collect();
        let parsed = parse(text, &origin)?;
        Ok(Scenario {
            text: text.to_owned(),
            hash: parsed.plan.hash(),
            parsed,
            sweep: None,
            folders: Vec::new(),
            found: Vec::new(),
        })
    }

    /// A scenario that comes with Headway, by name; or a file, if the name ends in `.toml` or
    /// contains a slash. The name of a member of a family (`[sweep]`) ends with its value:
    /// `owl-buffer:queue=150kB`.
    ///
    /// # Errors
    /// [`ScenarioError`], as from [`Scenario::parse`], for names and files that do not exist, and
    /// for a family without a member.
    pub fn load(spec: &str) -> Result<Scenario, ScenarioError> {
        let mut all = Scenario::load_all(spec)?;
        match (all.len(), all.pop()) {
            (1, Some(scenario)) => Ok(scenario),
            (number, last) => Err(ScenarioError::Family {
                name: quoted_path(spec),
                number,
                example: last.map_or(String::new(), |s| quoted_path(s.name())),
            }),
        }
    }

    /// Same as [`load`](Self::load), but a family without a member means all members, in the order
    /// of its file. `-` is standard input. A piped scenario has no folder: it names traces by
    /// absolute paths, or by name.
    ///
    /// # Errors
    /// [`ScenarioError`]
    pub fn load_all(spec: &str) -> Result<Vec<Scenario>, ScenarioError> {
        let (base, value) = match spec.rsplit_once(':') {
            // A folder may have the name of a member, such as seed=2:rate=3.
            Some((base, value)) if value.contains('=') && !Path::new(spec).is_file() => {
                (base, Some(value))
            }
            _ => (spec, None),
        };
        let all = if base == "-" || base.contains('/') || base.ends_with(".toml") {
            let unreadable = |why: String| ScenarioError::Unreadable {
                path: quoted_path(base),
                why,
            };
            let text = read(base).map_err(|why| unreadable(why.to_string()))?;
            let all = Scenario::parse_all(&text, base)?;
            match is_piped(base) {
                true => all
                    .iter()
                    .try_for_each(Scenario::needs_no_folder)
                    .map_err(unreadable)
                    .map(|()| all)?,
                false => {
                    let folders = folders_of(Path::new(base));
                    all.into_iter().map(|s| s.beside(&folders)).collect()
                }
            }
        } else {
            match NAMES.iter().position(|n| *n == base) {
                Some(i) => Scenario::parse_all(TEXTS[i], base)?,
                None => {
                    return Err(ScenarioError::Unknown {
                        name: quoted(spec),
                        hint: suggest(base, NAMES.iter().copied()),
                    });
                }
            }
        };
        let Some(value) = value else { return Ok(all) };
        let of_name = |s: &Scenario| s.name().rsplit_once(':').map(|(_, v)| v.to_owned());
        let values: Vec<String> = all.iter().filter_map(of_name).collect();
        match all
            .into_iter()
            .find(|s| of_name(s).as_deref() == Some(value))
        {
            Some(member) => Ok(vec![member]),
            None => Err(ScenarioError::NoMember {
                name: quoted_path(base),
                value: quoted(value),
                hint: match values.is_empty() {
                    true => "it has no sweep".to_owned(),
                    false => suggest(value, values.iter().map(String::as_str)),
                },
            }),
        }
    }

    /// Checks that no trace has a path relative to a folder.
    fn needs_no_folder(&self) -> Result<(), String> {
        let is_relative = |name: &String| name.contains('/') && !name.starts_with('/');
        match self.traces().into_iter().find(is_relative) {
            None => Ok(()),
            Some(trace) => Err(format!(
                "a piped scenario has no folder to look for its trace {} in; write an absolute path there",
                quoted_path(&trace)
            )),
        }
    }

    /// Looks for traces in the scenario's `folders`, in this order: those named by a path, and a
    /// bare name that a file there has and no collection. The hash is computed from the names as
    /// they are written.
    pub fn beside(mut self, folders: &[PathBuf]) -> Scenario {
        for link in &mut self.parsed.plan.links {
            let (RatePlan::Trace(trace), Some(first)) = (&mut link.rate, folders.first()) else {
                continue;
            };
            let written = trace.name.clone();
            let is_path = written.contains('/');
            let file = (folders.iter().map(|folder| folder.join(&written))).find(|path| {
                if is_path {
                    path.exists()
                } else {
                    path.is_file()
                }
            });
            let meant = match is_path {
                true => Some(file.clone().unwrap_or_else(|| first.join(&written))),
                false => file.clone().filter(|_| !is_known(&written)),
            };
            if let Some(path) = meant {
                let path = path.to_string_lossy();
                // The store takes a name with a slash as a path.
                trace.name = match path.contains('/') {
                    true => path.into_owned(),
                    false => format!("./{path}"),
                };
            }
            let name = trace.name.clone();
            self.found.push(Found {
                written,
                file,
                name,
            });
        }
        self.folders = folders.to_vec();
        self
    }

    /// The folders in which its traces are looked for: the folder of its file and, if that is a
    /// link, the folder of the link's target. Empty for a text without a file.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// A trace of its links, from `store`.
    ///
    /// # Errors
    /// The same as [`TraceStore::load_spec`]; for a missing trace, with all folders in which it was
    /// looked for.
    pub fn load_trace(
        &self,
        spec: &TraceSpec,
        store: &TraceStore,
    ) -> Result<Arc<Trace>, StoreError> {
        let mut loaded = store.load_spec(spec);
        if let Err(StoreError::NotFound { name, folders, .. }) = &mut loaded
            && let Some(found) = self.found.iter().find(|found| found.name == spec.name)
            && !found.written.starts_with('/')
            && !is_known(&found.written)
        {
            let shown = |folder: &PathBuf| match folder.as_os_str().is_empty() {
                true => ".".to_owned(),
                false => folder.display().to_string(),
            };
            let mut all: Vec<String> = self.folders.iter().map(shown).collect();
            if !found.written.contains('/') {
                all.push(std::mem::take(folders));
            }
            *name = quoted_path(&found.written);
            *folders = all.join(", ");
        }
        loaded
    }

    /// A line about each bare name for which there is a file next to the scenario, and another one
    /// that `store` finds: it says which of the two is used.
    pub fn ambiguous_traces(&self, store: &TraceStore) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for Found { written, file, .. } in &self.found {
            let (Some(beside), Some(named)) = (file, store.find(written)) else {
                continue;
            };
            let is_same = beside.canonicalize().ok() == named.canonicalize().ok();
            if written.contains('/') || is_same {
                continue;
            }
            let (used, other) = match is_known(written) {
                true => (&named, beside),
                false => (beside, &named),
            };
            let line = format!(
                "trace {written}: {} is used, and not {}; write a path in the scenario to choose one",
                used.display(),
                other.display()
            );
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// Same as [`parse`](Self::parse), for a text that may be a family's: returns all its members.
    ///
    /// # Errors
    /// [`ScenarioError`]
    pub fn parse_all(text: &str, origin: &str) -> Result<Vec<Scenario>, ScenarioError> {
        let origin: String = origin.escape_debug().collect();
        let Some((sweep, texts)) = expand(text, &origin)? else {
            return Ok(vec![Scenario::parse(text, &origin)?]);
        };
        let member = |text: &String| {
            let scenario = Scenario::parse(text, &origin)?;
            let sweep = Some(sweep.clone());
            Ok(Scenario { sweep, ..scenario })
        };
        texts.iter().map(member).collect()
    }

    /// The scenario's family, and how the family's members differ; `None` if it is not a member.
    pub fn sweep(&self) -> Option<&Sweep> {
        self.sweep.as_ref()
    }

    /// The scenario's name, for tables and files.
    pub fn name(&self) -> &str {
        &self.parsed.name
    }

    /// The paper from which it is; may be empty.
    pub fn paper(&self) -> &str {
        &self.parsed.paper
    }

    /// Whether it may be used for training.
    pub fn may_train(&self) -> bool {
        self.parsed.training
    }

    /// One line for people; may be empty.
    pub fn description(&self) -> &str {
        &self.parsed.description
    }

    /// The default length of a run.
    pub fn seconds(&self) -> f64 {
        self.parsed.seconds
    }

    /// The TOML as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The canonical hash, 16 hexadecimal digits. It is the same for the same meaning, whatever the
    /// order of keys, the comments, the spelling of units, the name and the description.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The number of flows under congestion control; for flows that come and go, the most at one
    /// time.
    pub fn flows(&self) -> usize {
        self.parsed
            .plan
            .flows
            .iter()
            .map(|f| f.count as usize)
            .sum()
    }

    /// The names of the traces that its links follow, each once.
    pub fn traces(&self) -> Vec<String> {
        let mut names = Vec::new();
        for TraceSpec { name, .. } in self.trace_specs() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The traces that its links follow, in the order of links.
    pub fn trace_specs(&self) -> impl Iterator<Item = TraceSpec> {
        let links = self.parsed.plan.links.iter();
        links.filter_map(|link| match &link.rate {
            RatePlan::Trace(trace) => Some(trace.spec()),
            _ => None,
        })
    }

    /// What the seed varies: `start time`, `trace offset`, `loss`, `host jitter`,
    /// `on and off times`, `background traffic`, then ranges by name such as
    /// `link.bottleneck.rate`. Empty if every run is the same.
    pub fn varies(&self) -> Vec<String> {
        self.parsed.plan.varies()
    }

    /// The offset in its traces at which the run `seed` begins; `None` if the seed does not vary
    /// it.
    pub fn trace_offset(&self, seed: u64) -> Option<Duration> {
        self.parsed.plan.trace_offset(seed)
    }

    /// The network of the run `seed`, with every range drawn. The same seed gives the same network.
    pub fn draw(&self, seed: u64) -> Network {
        self.draw_for(seed, Duration::from_secs_f64(self.seconds()))
    }

    /// Same as [`draw`](Self::draw), with the random events of a run of `length`, which is at most
    /// [`longest`](Self::longest). A longer run begins like a shorter one.
    pub fn draw_for(&self, seed: u64, length: Duration) -> Network {
        self.parsed.plan.draw(seed, length)
    }

    /// The longest run whose random events fit in memory.
    pub fn longest(&self) -> Duration {
        Duration::from_secs_f64((self.parsed.plan.longest() / 1e9).min(MAX_SECONDS))
    }
}

impl crate::plan::Plan {
    /// SHA-256 of the canonical form, shortened.
    fn hash(&self) -> String {
        // Plain structs of numbers and strings always serialise.
        let canonical = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(canonical)
            .iter()
            .take(8)
            .map(|b| format!("{b:02x}"))
            .collect()
    }
}

/// The folders in which the traces of a scenario's file are looked for.
fn folders_of(file: &Path) -> Vec<PathBuf> {
    let folder = |file: &Path| file.parent().unwrap_or(Path::new("")).to_owned();
    let target = file.is_symlink().then(|| file.canonicalize().ok());
    let target = target.flatten().map(|target| folder(&target));
    [folder(file)].into_iter().chain(target).collect()
}

/// Does a trace of that name come with Headway, or in a collection? Then a file next to a scenario
/// is not used.
fn is_known(name: &str) -> bool {
    collection_of(name).is_some() || name.starts_with("synthetic-")
}

/// Is it standard input, or a file without a folder, such as a pipe?
fn is_piped(path: &str) -> bool {
    let is_open = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/"].map(|name| path.starts_with(name));
    path == "-" || is_open.contains(&true) || !Path::new(path).is_file()
}

/// Reads a text file of a size that a scenario may have; [`parse`] refuses a longer one.
fn read(path: &str) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let path = if path == "-" { "/dev/stdin" } else { path };
    File::open(path)?
        .take(MAX_TEXT as u64 + 1)
        .read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let what = looks_like(error.as_bytes()).filter(|what| what.starts_with("UTF-16"));
        let why = what.map_or("its text is not UTF-8".to_owned(), |what| {
            format!("this looks like {what}")
        });
        std::io::Error::new(std::io::ErrorKind::InvalidData, why)
    })
}
