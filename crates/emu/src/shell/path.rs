//! The links of a shell, from the words of the command line. They are made into a scenario, so that
//! there is one schema, and its errors also explain wrong words here.

use std::path::Path;

use headway_scenario::{Network, RateSpec, TraceStore};

use super::ShellError;
use super::draft::{Draft, quoted, value, value_of, wrong};

/// The links' options, as given on the command line. An option that is `None` is left out.
#[derive(Clone, Debug, Default)]
pub struct PathOptions {
    /// From the shell outwards: a rate, a trace or `unlimited`.
    pub up: Option<String>,
    /// Towards the shell.
    pub down: Option<String>,
    /// The one-way delay of both directions.
    pub delay: Option<String>,
    /// The jitter of both directions.
    pub jitter: Option<String>,
    /// The reordering of both directions.
    pub reorder: Option<String>,
    /// The random loss of both directions.
    pub loss: Option<String>,
    /// The random loss from the shell outwards, instead of `loss`.
    pub up_loss: Option<String>,
    /// The random loss towards the shell, instead of `loss`.
    pub down_loss: Option<String>,
    /// The queue of every direction with a rate.
    pub queue: Option<String>,
    /// The queue from the shell outwards, instead of `queue`.
    pub up_queue: Option<String>,
    /// The queue towards the shell, instead of `queue`.
    pub down_queue: Option<String>,
}

/// The index of the link from the shell outwards.
pub const UP: usize = 0;
/// The index of the link towards the shell.
pub const DOWN: usize = 1;

const UNLIMITED: &str = "unlimited";
const UNITS_OF_RATE: [&str; 4] = ["kbps", "Mbps", "Gbps", "bps"];

impl PathOptions {
    /// A network of two links, [`UP`] and [`DOWN`]. `seed` draws ranges. The traces are in `store`
    /// from then on.
    ///
    /// # Errors
    /// An option that the schema does not allow, or a trace that is not available.
    pub fn network(&self, seed: u64, store: &TraceStore) -> Result<Network, ShellError> {
        let mut draft = Draft::default();
        draft.line("schema = 1\nname = \"shell\"\nseconds = 1000000");
        let sides = [
            Side {
                name: "up",
                ends: ("inside", "outside"),
                rate: ("--up", &self.up),
                loss: ("--up-loss", &self.up_loss),
                queue: ("--up-queue", &self.up_queue),
            },
            Side {
                name: "down",
                ends: ("outside", "inside"),
                rate: ("--down", &self.down),
                loss: ("--down-loss", &self.down_loss),
                queue: ("--down-queue", &self.down_queue),
            },
        ];
        let mut traces = Vec::new();
        for side in &sides {
            traces.push(self.write(side, store, &mut draft)?);
        }
        if let (Some(queue), false) = (&self.queue, sides.iter().any(Side::has_rate)) {
            let what = "nothing waits for a link without a rate; give --up or --down";
            return Err(wrong("--queue", queue, what));
        }
        // A scenario needs a flow, and a link that limits it. Queues in BDP are relative to the
        // flow's round trip.
        draft
            .line("[[link]]\nfrom = \"outside\"\nto = \"beyond\"\nduplex = true\nrate = \"1Gbps\"");
        draft.line("[[flow]]\nfrom = \"inside\"\nto = \"beyond\"");
        let mut network = draft.read()?.draw(seed);
        network.links.truncate(sides.len());
        for flow in &mut network.flows {
            flow.to = network.links[UP].to;
        }
        for ((link, side), file) in network.links.iter_mut().zip(&sides).zip(traces) {
            if let (RateSpec::Trace { trace, .. }, Some(file)) = (&mut link.rate, file) {
                trace.name = file;
                let option = side.rate.0;
                store
                    .load_spec(trace)
                    .map_err(|error| ShellError::Trace { option, error })?;
            }
        }
        Ok(network)
    }

    /// Writes one link. Returns the file of its trace, if it has one. The text has the link's name
    /// instead, because the schema does not take every path.
    fn write(
        &self,
        side: &Side<'_>,
        store: &TraceStore,
        draft: &mut Draft,
    ) -> Result<Option<String>, ShellError> {
        let (from, to) = side.ends;
        draft.line(&format!(
            "[[link]]\nname = \"{}\"\nfrom = \"{from}\"\nto = \"{to}\"",
            side.name
        ));
        let mut trace = None;
        if let (option, Some(given)) = side.rate {
            match Rate::of(given, store) {
                Rate::Unlimited => {}
                Rate::Fixed => draft.option(option, given, "rate", &quoted(given))?,
                Rate::Trace { file, settings } => {
                    draft.option(option, given, "trace", &quoted(side.name))?;
                    for (key, value) in settings {
                        draft.option(option, given, key, &value_of(value))?;
                    }
                    trace = Some(file);
                }
            }
        }
        let shared = [
            ("--delay", "delay", &self.delay),
            ("--jitter", "jitter", &self.jitter),
            ("--reorder", "reorder", &self.reorder),
        ];
        for (option, key, given) in shared {
            if let Some(given) = given {
                draft.option(option, given, key, &value(given, None))?;
            }
        }
        if let Some((option, given)) = side.loss.or(("--loss", &self.loss)) {
            draft.option(option, given, "loss", &value(given, Some("kind")))?;
        }
        let queue = match side.has_rate() {
            true => side.queue.or(("--queue", &self.queue)),
            false => side.queue.or(("", &None)),
        };
        if let Some((option, given)) = queue {
            draft.option(option, given, "queue", &value(given, Some("kind")))?;
        }
        Ok(trace)
    }
}

/// One direction's options, each with its name.
struct Side<'a> {
    name: &'static str,
    ends: (&'static str, &'static str),
    rate: Given<'a>,
    loss: Given<'a>,
    queue: Given<'a>,
}

type Given<'a> = (&'static str, &'a Option<String>);

trait Or<'a> {
    /// The first of the two that is given, with its name.
    fn or(self, other: Given<'a>) -> Option<(&'static str, &'a str)>;
}

impl<'a> Or<'a> for Given<'a> {
    fn or(self, other: Given<'a>) -> Option<(&'static str, &'a str)> {
        let given = |(name, text): Given<'a>| Some((name, text.as_deref()?));
        given(self).or_else(|| given(other))
    }
}

impl Side<'_> {
    fn has_rate(&self) -> bool {
        self.rate.1.as_deref().is_some_and(|rate| rate != UNLIMITED)
    }
}

/// The meaning of a word of `--up` or `--down`.
enum Rate<'a> {
    Unlimited,
    Fixed,
    Trace {
        /// The trace's name or path.
        file: String,
        settings: Vec<(&'a str, &'a str)>,
    },
}

impl<'a> Rate<'a> {
    fn of(given: &'a str, store: &TraceStore) -> Rate<'a> {
        if given == UNLIMITED {
            return Rate::Unlimited;
        }
        let exists = |name: &str| store.find(name).is_some() || Path::new(name).is_file();
        let is_file = exists(given);
        // A file's own name may contain colons.
        let mut words = given.split(|c| c == ':' && !is_file);
        let name = words.next().unwrap_or(given);
        let is_rate = UNITS_OF_RATE.iter().any(|unit| name.ends_with(unit))
            || name.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
        if is_rate && !exists(name) && !name.contains('/') {
            return Rate::Fixed;
        }
        // A name is looked for among the traces first, then in the current folder.
        let file = match store.find(name).is_none() && Path::new(name).is_file() {
            true => format!("./{name}"),
            false => name.to_owned(),
        };
        let settings = words.map(|word| word.split_once('=').unwrap_or((word, "")));
        Rate::Trace {
            file,
            settings: settings.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_cc::{Bytes, Duration, Rate as Bitrate};
    use headway_net::queue::Discipline;
    use headway_net::{Jitter, Loss};
    use headway_scenario::LinkSpec;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn links(options: &PathOptions) -> Result<[LinkSpec; 2], String> {
        let network = options.network(1, &TraceStore::of([]));
        network
            .map(|n| n.links.try_into().unwrap())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn options_mean_what_they_mean_in_a_scenario() {
        let [up, down] = links(&PathOptions {
            up: some("12Mbps"),
            delay: some("20ms"),
            jitter: some("mean=2ms"),
            loss: some("1%"),
            down_loss: some("gilbert-elliott:to_bad=0.01:to_good=0.3"),
            reorder: some("probability=1%:delay=5ms"),
            queue: some("codel:packets=100pkt:target=10ms:ecn=true"),
            ..PathOptions::default()
        })
        .unwrap();
        assert_eq!(up.rate, RateSpec::Fixed(Bitrate::from_bps(12_000_000)));
        assert_eq!(up.delay, Duration::from_millis(20));
        assert_eq!(
            up.jitter,
            Some(Jitter::Exponential {
                mean: Duration::from_millis(2)
            })
        );
        assert_eq!(up.loss, Some(Loss::Random { probability: 0.01 }));
        assert_eq!(up.reorder.unwrap().delay, Duration::from_millis(5));
        assert_eq!(up.queue.packets, Some(100));
        match up.queue.discipline {
            Discipline::CoDel(codel) => {
                assert_eq!((codel.target, codel.ecn), (Duration::from_millis(10), true));
            }
            other => panic!("{other:?}"),
        }
        // The other direction has no rate, and so no queue.
        assert_eq!(
            (down.rate, down.delay),
            (RateSpec::Unlimited, Duration::from_millis(20))
        );
        assert!(matches!(
            down.loss,
            Some(Loss::GilbertElliott { to_bad: 0.01, .. })
        ));
    }

    #[test]
    fn queues_in_every_spelling() {
        let queue = |text: &str| {
            let options = PathOptions {
                up: some("12Mbps"),
                delay: some("50ms"),
                up_queue: some(text),
                ..PathOptions::default()
            };
            links(&options).unwrap()[UP].queue.clone()
        };
        assert_eq!(queue("100pkt").packets, Some(100));
        // 12 Mbit/s times 100 ms.
        assert_eq!(queue("1bdp").bytes, Some(Bytes::new(150_000)));
        assert_eq!(queue("infinite").packets, None);
        assert!(matches!(queue("codel").discipline, Discipline::CoDel(_)));
        assert_eq!(
            queue("{ kind = \"drophead\", bytes = \"30kB\" }").bytes,
            Some(Bytes::new(30_000))
        );
    }

    #[test]
    fn a_trace_is_a_name_or_a_file_with_settings() {
        let folder = std::env::temp_dir().join(format!("headway shell {}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // A scenario does not take this path.
        let file = folder.join("a long trace's name, ".repeat(6) + ".down");
        std::fs::write(&file, "0\n1\n2\n10\n").unwrap();
        let options = PathOptions {
            down: Some(format!("{}:once=true:mean=2.4Mbps", file.display())),
            ..PathOptions::default()
        };
        let store = TraceStore::of([]);
        let network = options.network(1, &store);
        std::fs::remove_dir_all(&folder).unwrap();
        let links = network.unwrap().links;
        let RateSpec::Trace { trace, once, .. } = &links[DOWN].rate else {
            panic!("{:?}", links[DOWN].rate)
        };
        assert!(once);
        // The trace is still in the store, although the file is deleted.
        assert_eq!(store.load_spec(trace).unwrap().mean_mbps(), 2.4);
    }

    #[test]
    fn a_file_of_a_trace_may_have_colons_in_its_name() {
        let folder = std::env::temp_dir().join(format!("headway-colons-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("2026-11-26T10:00:00.down");
        std::fs::write(&file, "0\n1\n2\n10\n").unwrap();
        let options = PathOptions {
            down: Some(file.display().to_string()),
            ..PathOptions::default()
        };
        let links = links(&options);
        std::fs::remove_dir_all(&folder).unwrap();
        let rate = &links.unwrap()[DOWN].rate;
        assert!(matches!(rate, RateSpec::Trace { .. }), "{rate:?}");
    }

    #[test]
    fn wrong_options_are_refused_in_one_line() {
        let table: [(PathOptions, &[&str]); 12] = [
            (
                PathOptions {
                    up: some("12Mbs"),
                    ..Default::default()
                },
                &["--up 12Mbs:", "Mbps"],
            ),
            (
                PathOptions {
                    up: some("0Mbps"),
                    ..Default::default()
                },
                &["--up 0Mbps:", "from 1bps"],
            ),
            (
                PathOptions {
                    down: some("Verizon-LTE-short.dwn"),
                    ..Default::default()
                },
                &["--down:", "not found"],
            ),
            (
                PathOptions {
                    down: some("no/where"),
                    ..Default::default()
                },
                &["--down:", "no/where", "not found"],
            ),
            (
                PathOptions {
                    delay: some("20"),
                    ..Default::default()
                },
                &["--delay 20:", "unit"],
            ),
            (
                PathOptions {
                    loss: some("2"),
                    ..Default::default()
                },
                &["--loss 2:", "from 0 to 1"],
            ),
            (
                PathOptions {
                    up: some("1Mbps"),
                    queue: some("codell:packets=1pkt"),
                    ..Default::default()
                },
                &["--queue codell:packets=1pkt: kind:", "codel"],
            ),
            (
                PathOptions {
                    up: some("1Mbps"),
                    up_queue: some("codel:taget=5ms"), // codespell:ignore taget
                    ..Default::default()
                },
                &["--up-queue codel:taget=5ms: taget: unknown key", "target"], // codespell:ignore taget
            ),
            (
                PathOptions {
                    up: some("1Mbps"),
                    queue: some("droptail"),
                    ..Default::default()
                },
                &["--queue droptail:", "packets=100pkt"],
            ),
            (
                PathOptions {
                    queue: some("1pkt"),
                    ..Default::default()
                },
                &["--queue 1pkt:", "--up"],
            ),
            (
                PathOptions {
                    down_queue: some("1pkt"),
                    ..Default::default()
                },
                &["--down-queue 1pkt:", "rate"],
            ),
            (
                PathOptions {
                    jitter: some("1ms\n[x]"),
                    ..Default::default()
                },
                &["--jitter", "one line"],
            ),
        ];
        for (options, says) in table {
            let error = links(&options).expect_err("wrong");
            assert!(!error.contains('\n'), "{error}");
            for word in says {
                assert!(error.contains(word), "{error}\nlacks {word}");
            }
        }
    }
}
