//! Reads results and series back as rows, so that a batch can continue from them.

use std::collections::HashMap;
use std::path::Path;

use parquet::errors::ParquetError;

use crate::{Fitness, Metrics, ReadError, Row, SCHEMA_VERSION, Series, SeriesRow, Table, Values};

/// The contents of a file of [`write_results`](crate::write_results).
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The rows, in the order of the file.
    pub rows: Vec<Row>,
    /// The text under the footer's key `bench`.
    pub bench: String,
}

/// Reads a file of [`write_results`](crate::write_results), bit for bit.
///
/// # Errors
/// If the file cannot be read, or has another schema than [`SCHEMA_VERSION`].
pub fn read_results(path: &Path) -> Result<Results, ReadError> {
    let mut columns = Columns::of(path)?;
    let bench = columns.footer.remove("bench").unwrap_or_default();
    let rows = columns
        .rows()
        .map_err(|source| ReadError::parquet(path, source))?;
    Ok(Results { rows, bench })
}

/// Reads a file of [`write_series`](crate::write_series), bit for bit.
///
/// # Errors
/// If the file cannot be read, or has another schema than [`SCHEMA_VERSION`].
pub fn read_series(path: &Path) -> Result<Vec<SeriesRow>, ReadError> {
    Columns::of(path)?
        .series()
        .map_err(|source| ReadError::parquet(path, source))
}

/// A file whose columns are read on request.
struct Columns {
    footer: HashMap<String, String>,
    numbers: HashMap<String, usize>,
    table: Table,
}

impl Columns {
    fn of(path: &Path) -> Result<Columns, ReadError> {
        let table = Table::open(path)?;
        let footer = table.footer();
        let found = footer.get("schema").map_or("none", String::as_str);
        if found != SCHEMA_VERSION.to_string() {
            return Err(ReadError::Schema {
                path: path.display().to_string(),
                found: found.to_owned(),
            });
        }
        Ok(Columns {
            numbers: table.names().into_iter().zip(0..).collect(),
            footer,
            table,
        })
    }

    fn values(&self, name: &str) -> Result<Values, ParquetError> {
        let number = self.numbers.get(name).ok_or_else(|| wrong(name))?;
        self.table.read(*number)
    }

    fn maybe_text(&self, name: &str) -> Result<Vec<Option<String>>, ParquetError> {
        match self.values(name)? {
            Values::Text(values) => Ok(values),
            _ => Err(wrong(name)),
        }
    }

    fn text(&self, name: &str) -> Result<Vec<String>, ParquetError> {
        all(name, self.maybe_text(name)?)
    }

    fn whole<T: TryFrom<i64>>(&self, name: &str) -> Result<Vec<T>, ParquetError> {
        let Values::Whole(values) = self.values(name)? else {
            return Err(wrong(name));
        };
        all(name, values.into_iter().map(|v| v.try_into().ok()))
    }

    /// Counts and seeds, which are written as the same 64 bits with a sign.
    fn count(&self, name: &str) -> Result<Vec<u64>, ParquetError> {
        Ok(self
            .whole(name)?
            .into_iter()
            .map(i64::cast_unsigned)
            .collect())
    }

    fn maybe(&self, name: &str) -> Result<Vec<Option<f64>>, ParquetError> {
        match self.values(name)? {
            Values::Real(values) => Ok(values),
            _ => Err(wrong(name)),
        }
    }

    fn real(&self, name: &str) -> Result<Vec<f64>, ParquetError> {
        all(name, self.maybe(name)?)
    }

    fn rows(&self) -> Result<Vec<Row>, ParquetError> {
        let code_version = self.text("code_version")?;
        let scenario = self.text("scenario")?;
        let scenario_hash = self.text("scenario_hash")?;
        let scheme = self.text("scheme")?;
        let world = self.text("world")?;
        let run = self.whole("run")?;
        let seed = self.count("seed")?;
        let flow = self.whole("flow")?;
        let flow_scheme = self.text("flow_scheme")?;
        let model = self.maybe_text("model")?;
        let seconds = self.real("seconds")?;
        let warmup = self.real("warmup")?;
        let metrics = self.metrics(run.len())?;
        let fitness = self.fitness(&world)?;
        Ok((0..run.len())
            .map(|i| Row {
                scenario: scenario[i].clone(),
                scenario_hash: scenario_hash[i].clone(),
                scheme: scheme[i].clone(),
                code_version: code_version[i].clone(),
                world: world[i].clone(),
                run: run[i],
                seed: seed[i],
                flow: flow[i],
                flow_scheme: flow_scheme[i].clone(),
                model: model[i].clone(),
                seconds: seconds[i],
                warmup: warmup[i],
                metrics: metrics[i],
                fitness: fitness[i].clone(),
            })
            .collect())
    }

    fn metrics(&self, rows: usize) -> Result<Vec<Metrics>, ParquetError> {
        let mut metrics = vec![Metrics::default(); rows];
        for (i, (name, _)) in Metrics::default().named().into_iter().enumerate() {
            for (row, value) in metrics.iter_mut().zip(self.maybe(name)?) {
                *row.named_mut()[i].1 = value;
            }
        }
        let mut set = |name, field: fn(&mut Metrics) -> &mut u64| {
            let counts = self.count(name)?;
            let rows = metrics.iter_mut().zip(counts);
            rows.for_each(|(row, count)| *field(row) = count);
            Ok::<(), ParquetError>(())
        };
        set("sent_packets", |m| &mut m.sent_packets)?;
        set("delivered_packets", |m| &mut m.delivered_packets)?;
        set("refused_decisions", |m| &mut m.refused_decisions)?;
        set("guard_trips", |m| &mut m.guard_trips)?;
        Ok(metrics)
    }

    /// The fitness of each run; a run in simulated time has none. Its columns are as empty as those
    /// of a run in real time that could measure nothing.
    fn fitness(&self, world: &[String]) -> Result<Vec<Option<Fitness>>, ParquetError> {
        let mut found = vec![Fitness::default(); world.len()];
        for (i, (name, _)) in Fitness::default().named().into_iter().enumerate() {
            for (row, value) in found.iter_mut().zip(self.maybe(name)?) {
                *row.named_mut()[i].1 = value;
            }
        }
        for (row, why) in found.iter_mut().zip(self.maybe_text("unfit")?) {
            row.unfit = why;
        }
        let rows = found.into_iter().zip(world);
        Ok(rows
            .map(|(row, world)| (world != "sim").then_some(row))
            .collect())
    }

    /// Builds the series; the bins of a run and flow follow one another.
    fn series(&self) -> Result<Vec<SeriesRow>, ParquetError> {
        let scenario = self.text("scenario")?;
        let scheme = self.text("scheme")?;
        let run: Vec<i32> = self.whole("run")?;
        let flow: Vec<i32> = self.whole("flow")?;
        let all = Series {
            time_s: self.real("time_s")?,
            sent_mbps: self.real("sent_mbps")?,
            lost_mbps: self.real("lost_mbps")?,
            throughput_mbps: self.real("throughput_mbps")?,
            delay_mean_ms: self.maybe("delay_mean_ms")?,
            queue_mean_ms: self.maybe("queue_mean_ms")?,
            loss: self.maybe("loss")?,
            cwnd_packets: self.maybe("cwnd_packets")?,
            in_flight_packets: self.maybe("in_flight_packets")?,
            pacing_mbps: self.maybe("pacing_mbps")?,
            rtt_ms: self.maybe("rtt_ms")?,
            btlbw_mbps: self.maybe("btlbw_mbps")?,
            rtprop_ms: self.maybe("rtprop_ms")?,
        };
        let capacity = self.maybe("capacity_mbps")?;
        let queue = self.maybe("queue_packets")?;
        let key = |i: usize| (&scenario[i], &scheme[i], run[i], flow[i]);
        let bins: Vec<usize> = (0..run.len()).collect();
        let blocks = bins.chunk_by(|&a, &b| key(a) == key(b));
        Ok(blocks
            .map(|block| {
                let (first, bins) = (block[0], block[0]..block[0] + block.len());
                SeriesRow {
                    scenario: scenario[first].clone(),
                    scheme: scheme[first].clone(),
                    run: run[first],
                    flow: flow[first],
                    series: all.part(bins.clone()),
                    capacity_mbps: capacity[bins.clone()].iter().flatten().copied().collect(),
                    queue_packets: queue[bins].iter().flatten().copied().collect(),
                }
            })
            .collect())
    }
}

fn wrong(column: &str) -> ParquetError {
    ParquetError::General(format!(
        "no column {column} of the type that Headway writes"
    ))
}

/// All values of the column, none of which may be missing.
fn all<T>(
    column: &str,
    values: impl IntoIterator<Item = Option<T>>,
) -> Result<Vec<T>, ParquetError> {
    let values: Option<Vec<T>> = values.into_iter().collect();
    values.ok_or_else(|| wrong(column))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet_file::GROUP;
    use crate::{ALL_FLOWS, write_results, write_series};

    /// Numbers that a careless reader or writer would change.
    const AWKWARD: [f64; 8] = [
        0.1 + 0.2,
        1.0 / 3.0,
        5e-324,
        f64::MAX,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];

    /// A file of one test, deleted at its end.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("headway-{name}-{}.parquet", std::process::id());
            Scratch(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Every column has a value of its own in some row, and none in another.
    fn row(run: i32, world: &str) -> Row {
        let mut metrics = Metrics {
            sent_packets: u64::MAX,
            delivered_packets: 1,
            refused_decisions: 2,
            guard_trips: 3,
            ..Metrics::default()
        };
        let mut fitness = Fitness {
            unfit: (run == 0).then(|| "late".to_owned()),
            ..Fitness::default()
        };
        let number = |i: usize| {
            let there = !(i + run as usize).is_multiple_of(3);
            there.then(|| AWKWARD[i % 8] + (i / 8) as f64)
        };
        let all = metrics.named_mut().into_iter();
        all.enumerate().for_each(|(i, (_, v))| *v = number(i));
        let all = fitness.named_mut().into_iter();
        all.enumerate().for_each(|(i, (_, v))| *v = number(i + 1));
        Row {
            scenario: "rax-2".to_owned(),
            scenario_hash: format!("hash {run}"),
            scheme: "cubic:beta=0.7".to_owned(),
            code_version: "0.1.0+1".to_owned(),
            world: world.to_owned(),
            run,
            seed: u64::MAX - run as u64,
            flow: ALL_FLOWS + run,
            flow_scheme: "bbr".to_owned(),
            model: (run == 1).then(|| "x-v1@0123456789ab".to_owned()),
            seconds: 0.1 + 0.2,
            warmup: 5e-324,
            metrics,
            fitness: (world != "sim").then_some(fitness),
        }
    }

    /// The text of a value, in which NaN is equal to itself and -0 differs from 0.
    fn text<T: std::fmt::Debug>(value: T) -> String {
        format!("{value:?}")
    }

    #[test]
    fn every_column_of_results_is_read_back() {
        let file = Scratch::new("results");
        let rows: Vec<Row> = ["sim", "emu", "kernel", "emu"]
            .iter()
            .zip(0..)
            .map(|(world, run)| row(run, world))
            .collect();
        write_results(&file.0, rows.clone(), "{}").unwrap();
        let found = read_results(&file.0).unwrap();
        assert_eq!(text(&found.rows), text(&rows));
        assert_eq!(found.bench, "{}");
    }

    /// Rows are taken one by one, and are never all in memory.
    #[test]
    fn rows_of_several_groups_keep_their_order() {
        let file = Scratch::new("many");
        let count = GROUP as i32 + 1;
        write_results(&file.0, (0..count).map(|run| row(run, "emu")), "{}").unwrap();
        let runs: Vec<i32> = Columns::of(&file.0).unwrap().whole("run").unwrap();
        assert!(runs.into_iter().eq(0..count));
        let rows = read_results(&file.0).unwrap().rows;
        assert_eq!(text(rows.last()), text(Some(row(count - 1, "emu"))));
    }

    /// Written again, the rows give the same file.
    #[test]
    fn every_column_of_series_is_read_back() {
        let (file, again) = (Scratch::new("series"), Scratch::new("series-again"));
        let real = |from: usize| (from..from + 4).map(|i| AWKWARD[i % 8]).collect();
        let maybe = |from: usize| {
            let values = (from..from + 4).map(|i| (i % 3 > 0).then(|| AWKWARD[i % 8]));
            values.collect()
        };
        let rows: Vec<SeriesRow> = [(0, ALL_FLOWS), (0, 0), (1, ALL_FLOWS)]
            .map(|(run, flow)| SeriesRow {
                scenario: "rax-2".to_owned(),
                scheme: "bbr".to_owned(),
                run,
                flow,
                series: Series {
                    time_s: real(0),
                    sent_mbps: real(1),
                    lost_mbps: real(2),
                    throughput_mbps: real(3),
                    delay_mean_ms: maybe(4),
                    queue_mean_ms: maybe(5),
                    loss: maybe(6),
                    cwnd_packets: maybe(7),
                    in_flight_packets: maybe(8),
                    pacing_mbps: maybe(9),
                    rtt_ms: maybe(10),
                    btlbw_mbps: maybe(11),
                    rtprop_ms: maybe(12),
                },
                // Only rows of all flows together have it; the last bin may be missing.
                capacity_mbps: if flow < 0 {
                    vec![1.0, 0.0, 2.0]
                } else {
                    vec![]
                },
                queue_packets: if flow < 0 { real(13) } else { vec![] },
            })
            .into();
        write_series(&file.0, &rows).unwrap();
        let found = read_series(&file.0).unwrap();
        assert_eq!(text(&found), text(&rows));
        write_series(&again.0, &found).unwrap();
        assert_eq!(
            std::fs::read(&file.0).unwrap(),
            std::fs::read(&again.0).unwrap()
        );
    }

    #[test]
    fn a_missing_column_is_refused_by_name() {
        let file = Scratch::new("series-only");
        write_series(&file.0, &[]).unwrap();
        let error = read_results(&file.0).unwrap_err().to_string();
        assert!(error.contains("no column code_version"), "{error}");
    }
}
