//! Writes results as Parquet files; the same rows give the same bytes.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::whole::Whole;
use crate::{Row, SCHEMA_VERSION, SeriesRow};

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct WriteError {
    path: String,
    source: ParquetError,
}

/// A column's values, one for each row.
enum Column {
    Text(Vec<ByteArray>),
    /// Texts, some of which do not apply.
    MaybeText(Vec<Option<ByteArray>>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Real(Vec<f64>),
    /// Real numbers, some of which do not apply.
    Maybe(Vec<Option<f64>>),
}

impl Column {
    fn text<'a>(values: impl Iterator<Item = &'a str>) -> Column {
        Column::Text(values.map(ByteArray::from).collect())
    }

    fn maybe_text<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Column {
        Column::MaybeText(values.map(|v| v.map(ByteArray::from)).collect())
    }

    fn schema(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical, repetition) = match self {
            Column::Text(_) => (
                Physical::BYTE_ARRAY,
                Some(LogicalType::String),
                Repetition::REQUIRED,
            ),
            Column::MaybeText(_) => (
                Physical::BYTE_ARRAY,
                Some(LogicalType::String),
                Repetition::OPTIONAL,
            ),
            Column::Int(_) => (Physical::INT32, None, Repetition::REQUIRED),
            Column::Long(_) => (Physical::INT64, None, Repetition::REQUIRED),
            Column::Real(_) => (Physical::DOUBLE, None, Repetition::REQUIRED),
            Column::Maybe(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }
}

/// The number of rows written at a time: some 50 MB with their columns.
pub(crate) const GROUP: usize = 1 << 15;

/// Writes one row for each flow and run. The columns are those of [`Row`],
/// [`Metrics`](crate::Metrics) and [`Fitness`](crate::Fitness).
///
/// Rows are taken one by one as they are written, so that memory does not grow with their number.
/// `bench` goes into the footer under that key: data for reports besides the rows (command,
/// scenarios, traces), as JSON.
///
/// # Errors
/// If the file cannot be written.
pub fn write_results(
    path: &Path,
    rows: impl IntoIterator<Item = Row>,
    bench: &str,
) -> Result<(), WriteError> {
    let mut rows = rows.into_iter().fuse();
    let mut next = move || -> Vec<Row> { rows.by_ref().take(GROUP).collect() };
    // Without rows there is one group too, which is empty.
    let first = next();
    let others = std::iter::from_fn(move || Some(next()).filter(|group| !group.is_empty()));
    let groups = others.map(|group| of_results(&group));
    write(path, of_results(&first), groups, &[("bench", bench)])
}

/// The columns of these rows, with their names.
fn of_results(rows: &[Row]) -> Vec<(&'static str, Column)> {
    let mut columns = vec![
        ("schema", Column::Int(vec![SCHEMA_VERSION; rows.len()])),
        (
            "code_version",
            Column::text(rows.iter().map(|r| r.code_version.as_str())),
        ),
        (
            "scenario",
            Column::text(rows.iter().map(|r| r.scenario.as_str())),
        ),
        (
            "scenario_hash",
            Column::text(rows.iter().map(|r| r.scenario_hash.as_str())),
        ),
        (
            "scheme",
            Column::text(rows.iter().map(|r| r.scheme.as_str())),
        ),
        ("world", Column::text(rows.iter().map(|r| r.world.as_str()))),
        ("run", Column::Int(rows.iter().map(|r| r.run).collect())),
        (
            "seed",
            Column::Long(rows.iter().map(|r| r.seed as i64).collect()),
        ),
        ("flow", Column::Int(rows.iter().map(|r| r.flow).collect())),
        (
            "flow_scheme",
            Column::text(rows.iter().map(|r| r.flow_scheme.as_str())),
        ),
        (
            "model",
            Column::maybe_text(rows.iter().map(|r| r.model.as_deref())),
        ),
        (
            "seconds",
            Column::Real(rows.iter().map(|r| r.seconds).collect()),
        ),
        (
            "warmup",
            Column::Real(rows.iter().map(|r| r.warmup).collect()),
        ),
    ];
    // Every row has the same metrics in the same order.
    let names = crate::Metrics::default().named().map(|(name, _)| name);
    for (i, name) in names.into_iter().enumerate() {
        columns.push((
            name,
            Column::Maybe(rows.iter().map(|r| r.metrics.named()[i].1).collect()),
        ));
    }
    let count = |get: fn(&crate::Metrics) -> u64| {
        Column::Long(rows.iter().map(|r| get(&r.metrics) as i64).collect())
    };
    columns.push(("sent_packets", count(|m| m.sent_packets)));
    columns.push(("delivered_packets", count(|m| m.delivered_packets)));
    columns.push(("refused_decisions", count(|m| m.refused_decisions)));
    columns.push(("guard_trips", count(|m| m.guard_trips)));
    let fitness = |r: &Row| r.fitness.as_ref().map(crate::Fitness::named);
    let names = crate::Fitness::default().named().map(|(name, _)| name);
    for (i, name) in names.into_iter().enumerate() {
        let values = rows.iter().map(|r| fitness(r).and_then(|f| f[i].1));
        columns.push((name, Column::Maybe(values.collect())));
    }
    let unfit = rows.iter().map(|r| r.fitness.as_ref()?.unfit.as_deref());
    columns.push(("unfit", Column::maybe_text(unfit)));
    columns
}

/// Writes one row for each flow and bin.
///
/// # Errors
/// If the file cannot be written.
pub fn write_series(path: &Path, rows: &[SeriesRow]) -> Result<(), WriteError> {
    fn repeat<'a, T>(
        rows: &'a [SeriesRow],
        get: impl Fn(&'a SeriesRow) -> T + 'a,
    ) -> impl Iterator<Item = T> + 'a
    where
        T: Clone + 'a,
    {
        rows.iter()
            .flat_map(move |r| std::iter::repeat_n(get(r), r.bins()))
    }
    let maybe = |get: fn(&SeriesRow) -> &Vec<Option<f64>>| {
        Column::Maybe(rows.iter().flat_map(|r| get(r).clone()).collect())
    };
    let real = |get: fn(&SeriesRow) -> &Vec<f64>| {
        Column::Real(rows.iter().flat_map(|r| get(r).clone()).collect())
    };
    // Only the pooled rows have these.
    let pooled = |get: fn(&SeriesRow) -> &Vec<f64>| {
        let of_row = |r| (0..SeriesRow::bins(r)).map(move |i| get(r).get(i).copied());
        Column::Maybe(rows.iter().flat_map(of_row).collect())
    };
    let columns = vec![
        (
            "scenario",
            Column::text(repeat(rows, |r| r.scenario.as_str())),
        ),
        ("scheme", Column::text(repeat(rows, |r| r.scheme.as_str()))),
        ("run", Column::Int(repeat(rows, |r| r.run).collect())),
        ("flow", Column::Int(repeat(rows, |r| r.flow).collect())),
        ("time_s", real(|r| &r.series.time_s)),
        ("sent_mbps", real(|r| &r.series.sent_mbps)),
        ("lost_mbps", real(|r| &r.series.lost_mbps)),
        ("throughput_mbps", real(|r| &r.series.throughput_mbps)),
        ("delay_mean_ms", maybe(|r| &r.series.delay_mean_ms)),
        ("queue_mean_ms", maybe(|r| &r.series.queue_mean_ms)),
        ("loss", maybe(|r| &r.series.loss)),
        ("cwnd_packets", maybe(|r| &r.series.cwnd_packets)),
        ("in_flight_packets", maybe(|r| &r.series.in_flight_packets)),
        ("pacing_mbps", maybe(|r| &r.series.pacing_mbps)),
        ("rtt_ms", maybe(|r| &r.series.rtt_ms)),
        ("btlbw_mbps", maybe(|r| &r.series.btlbw_mbps)),
        ("rtprop_ms", maybe(|r| &r.series.rtprop_ms)),
        ("capacity_mbps", pooled(|r| &r.capacity_mbps)),
        ("queue_packets", pooled(|r| &r.queue_packets)),
    ];
    write(path, columns, std::iter::empty(), &[])
}

/// Writes groups of rows, beginning with `first`.
fn write(
    path: &Path,
    first: Vec<(&'static str, Column)>,
    others: impl Iterator<Item = Vec<(&'static str, Column)>>,
    notes: &[(&str, &str)],
) -> Result<(), WriteError> {
    let wrong = |source| WriteError {
        path: path.display().to_string(),
        source,
    };
    let (whole, to) = Whole::create(path).map_err(|e| wrong(e.into()))?;
    let attempt = || -> Result<(), ParquetError> {
        let fields = first
            .iter()
            .map(|(name, c)| c.schema(name).map(Arc::new))
            .collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("headway")
            .with_fields(fields)
            .build()?;
        let mut metadata = vec![KeyValue::new(
            "schema".to_owned(),
            SCHEMA_VERSION.to_string(),
        )];
        metadata.extend(
            notes
                .iter()
                .map(|(key, text)| KeyValue::new((*key).to_owned(), (*text).to_owned())),
        );
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("headway {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(metadata))
            .build();
        let mut file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
        for columns in std::iter::once(first).chain(others) {
            write_group(&mut file, &columns)?;
        }
        file.close()?;
        Ok(whole.keep()?)
    };
    attempt().map_err(|source| {
        whole.drop_part();
        wrong(source)
    })
}

fn write_group(
    file: &mut SerializedFileWriter<File>,
    columns: &[(&str, Column)],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for (_, column) in columns {
        let Some(mut writer) = group.next_column()? else {
            break;
        };
        match column {
            Column::Text(v) => writer.typed::<ByteArrayType>().write_batch(v, None, None)?,
            Column::MaybeText(v) => {
                let present: Vec<ByteArray> = v.iter().flatten().cloned().collect();
                writer
                    .typed::<ByteArrayType>()
                    .write_batch(&present, Some(&levels(v)), None)?
            }
            Column::Int(v) => writer.typed::<Int32Type>().write_batch(v, None, None)?,
            Column::Long(v) => writer.typed::<Int64Type>().write_batch(v, None, None)?,
            Column::Real(v) => writer.typed::<DoubleType>().write_batch(v, None, None)?,
            Column::Maybe(v) => {
                let present: Vec<f64> = v.iter().flatten().copied().collect();
                writer
                    .typed::<DoubleType>()
                    .write_batch(&present, Some(&levels(v)), None)?
            }
        };
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// Parquet's definition levels: which values are present.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|v| i16::from(v.is_some())).collect()
}
