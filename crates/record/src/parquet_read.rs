//! Reads files that `parquet_file` wrote, for reports of earlier runs.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::Type;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::SCHEMA_VERSION;

/// A file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is missing, or is not one of Headway's.
    #[error("{path}: {source}")]
    Parquet {
        /// The file.
        path: String,
        /// The error.
        source: ParquetError,
    },
    /// The file's columns are those of another version of Headway.
    #[error("{path}: schema {found}; this headway continues only from schema {SCHEMA_VERSION}")]
    Schema {
        /// The file.
        path: String,
        /// The schema in its footer.
        found: String,
    },
}

impl ReadError {
    pub(crate) fn parquet(path: &Path, source: ParquetError) -> ReadError {
        ReadError::Parquet {
            path: path.display().to_string(),
            source,
        }
    }
}

/// A column, one value for each row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Names and remarks; `None` if there is none.
    Text(Vec<Option<String>>),
    /// Counts, numbers and seeds.
    Whole(Vec<i64>),
    /// Quantities; `None` if one does not apply.
    Real(Vec<Option<f64>>),
}

/// A file of flat columns, all of one length. They are read one by one, because together they may
/// be large.
pub struct Table {
    path: PathBuf,
    file: SerializedFileReader<File>,
}

impl Table {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not Parquet.
    pub fn open(path: &Path) -> Result<Table, ReadError> {
        let file = File::open(path).map_err(ParquetError::from);
        let file = file.and_then(SerializedFileReader::new);
        Ok(Table {
            path: path.to_owned(),
            file: file.map_err(|source| ReadError::parquet(path, source))?,
        })
    }

    /// The footer's keys and values: `schema`, and in results `bench`.
    pub fn footer(&self) -> HashMap<String, String> {
        let entries = self.file.metadata().file_metadata().key_value_metadata();
        let entries = entries.into_iter().flatten();
        entries
            .filter_map(|entry| Some((entry.key.clone(), entry.value.clone()?)))
            .collect()
    }

    /// The columns' names, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let columns = schema.columns().iter();
        columns.map(|column| column.name().to_owned()).collect()
    }

    /// The values of the column with this index.
    ///
    /// # Errors
    /// If the file cannot be read, or the column is of a kind that Headway does not write.
    pub fn column(&self, index: usize) -> Result<Values, ReadError> {
        self.read(index)
            .map_err(|source| ReadError::parquet(&self.path, source))
    }

    pub(crate) fn read(&self, index: usize) -> Result<Values, ParquetError> {
        let file = &self.file;
        let column = file.metadata().file_metadata().schema_descr().column(index);
        Ok(match column.physical_type() {
            Type::BYTE_ARRAY => Values::Text(
                cells::<ByteArrayType>(file, index)?
                    .iter()
                    .map(|text| text.as_ref().map(utf8).transpose())
                    .collect::<Result<_, _>>()?,
            ),
            Type::INT32 => Values::Whole(
                required::<Int32Type>(file, index)?
                    .into_iter()
                    .map(i64::from)
                    .collect(),
            ),
            Type::INT64 => Values::Whole(required::<Int64Type>(file, index)?),
            Type::DOUBLE => Values::Real(cells::<DoubleType>(file, index)?),
            _ => return Err(foreign(column.name())),
        })
    }
}

fn utf8(text: &ByteArray) -> Result<String, ParquetError> {
    Ok(text.as_utf8()?.to_owned())
}

fn foreign(column: &str) -> ParquetError {
    ParquetError::General(format!(
        "column {column} is of a kind that Headway does not write"
    ))
}

fn required<T: DataType>(
    file: &SerializedFileReader<File>,
    index: usize,
) -> Result<Vec<T::T>, ParquetError> {
    let cells = cells::<T>(file, index)?;
    let rows = cells.len();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    if values.len() < rows {
        let descr = file.metadata().file_metadata().schema_descr();
        return Err(foreign(descr.column(index).name()));
    }
    Ok(values)
}

/// All cells of the column with this index, whose physical type is `T`.
fn cells<T: DataType>(
    file: &SerializedFileReader<File>,
    index: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let mut cells = Vec::new();
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number)?;
        let rows = group.metadata().num_rows() as usize;
        let column = group.metadata().column(index).column_descr_ptr();
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(foreign(column.name()));
        }
        let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let mut read = 0;
        while read < rows {
            let (records, _, _) =
                reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
            if records == 0 {
                return Err(ParquetError::EOF(format!(
                    "column {} ends after {read} of {rows} rows",
                    column.name()
                )));
            }
            read += records;
        }
        let mut values = values.into_iter();
        if column.max_def_level() == 0 {
            cells.extend(values.map(Some));
        } else {
            cells.extend(levels.iter().map(|&there| match there {
                0 => None,
                _ => values.next(),
            }));
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fitness, Metrics, Row, write_results};

    fn row(run: i32, jain: Option<f64>, fitness: Option<Fitness>) -> Row {
        Row {
            scenario: "rax-2".to_owned(),
            scenario_hash: "0".to_owned(),
            scheme: "cubic".to_owned(),
            code_version: "1".to_owned(),
            world: "sim".to_owned(),
            run,
            seed: u64::MAX >> 1,
            flow: -1,
            flow_scheme: "cubic".to_owned(),
            model: jain.map(|_| "x-v1@0123456789ab".to_owned()),
            seconds: 60.0,
            warmup: 0.0,
            metrics: Metrics {
                throughput_mbps: Some(0.1 + 0.2),
                jain,
                ..Metrics::default()
            },
            fitness,
        }
    }

    #[test]
    fn values_are_read_back_bit_for_bit() {
        let path =
            std::env::temp_dir().join(format!("headway-read-{}.parquet", std::process::id()));
        let late = Fitness {
            lateness_p99_ms: Some(7.0),
            unfit: Some("late".to_owned()),
            ..Fitness::default()
        };
        let fit = Fitness::default();
        let rows = [
            row(0, None, None),
            row(1, Some(0.987), Some(late)),
            row(2, None, Some(fit)),
        ];
        write_results(&path, rows, "{}").unwrap();
        let table = Table::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(table.footer()["bench"], "{}");
        let column = |name: &str| {
            let index = table.names().iter().position(|n| n == name);
            table.column(index.unwrap()).unwrap()
        };
        assert_eq!(column("run"), Values::Whole(vec![0, 1, 2]));
        assert_eq!(column("seed"), Values::Whole(vec![i64::MAX; 3]));
        assert_eq!(
            column("scheme"),
            Values::Text(vec![Some("cubic".to_owned()); 3])
        );
        let late = Some("late".to_owned());
        assert_eq!(column("unfit"), Values::Text(vec![None, late, None]));
        let lateness = Values::Real(vec![None, Some(7.0), None]);
        assert_eq!(column("lateness_p99_ms"), lateness);
        assert_eq!(column("jain"), Values::Real(vec![None, Some(0.987), None]));
        assert_eq!(
            column("throughput_mbps"),
            Values::Real(vec![Some(0.1 + 0.2); 3])
        );
    }

    #[test]
    fn files_that_are_not_parquet_are_refused() {
        let path =
            std::env::temp_dir().join(format!("headway-none-{}.parquet", std::process::id()));
        std::fs::write(&path, "PAR1 but no more").unwrap();
        let error = Table::open(&path).err().unwrap().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
    }
}
