//! Writes every event of every packet in an emulator to one Parquet file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_cc::{Duration, Ecn, Time};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::File;
use super::file::{make_folders, naming};
use crate::whole::Whole;

/// One row. It is small, since 1 Gbit/s makes 330,000 of them a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time of the event; for a delivery, when the packet was written.
    pub at: Time,
    /// The event itself.
    pub what: EventKind,
    /// The link, or the host that a packet is delivered to: an index into the file's places.
    pub place: u16,
    /// The packet's number, from 1 in the order in which packets came; 0 if it has none, as cross
    /// traffic.
    pub packet: u64,
    /// The packet's flow.
    pub flow: u32,
    /// The packet's size on the wire, bytes.
    pub size: u16,
    /// The packet's ECN field at that time.
    pub ecn: Ecn,
    /// For a departure, how long the packet was in the queue and in transmission; for a delivery,
    /// how late it was written.
    pub wait: Duration,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A packet reaches a link's queue.
    Arrival,
    /// A packet is lost before the queue, at random.
    Loss,
    /// The queue drops a packet.
    Drop,
    /// The last bit of a packet leaves the queue.
    Departure,
    /// A link could send 1500 bytes, whether or not it did. Only the first four columns have a
    /// meaning.
    Opportunity,
    /// A packet has been handed to a host.
    Delivery,
}

impl EventKind {
    const NAMES: [&'static str; 6] = [
        "arrival",
        "loss",
        "drop",
        "departure",
        "opportunity",
        "delivery",
    ];
}

/// A file of events, written as they happen, in bounded memory. Its name ends with `.part` until it
/// is complete.
pub struct EventFile {
    path: PathBuf,
    whole: Whole,
    to: SerializedFileWriter<File>,
    places: Vec<ByteArray>,
    names: [ByteArray; EventKind::NAMES.len()],
    rows: Vec<Event>,
}

impl EventFile {
    /// Rows that wait in memory, 5 MB at most.
    const GROUP: usize = 1 << 17;
    /// The version of the columns; a reader refuses a version that it does not know.
    pub const SCHEMA_VERSION: i32 = 1;

    /// Creates the file and its folders.
    ///
    /// # Errors
    /// If the file cannot be written; the text names it. The same holds for the other methods.
    pub fn create(path: &Path, places: &[String]) -> io::Result<EventFile> {
        let made = make_folders(path).and_then(|()| Whole::create(path));
        let (whole, to) = made.map_err(|e| naming(&path.display().to_string(), &e))?;
        let to = File::over(path, to);
        let version = KeyValue::new("schema".to_owned(), Self::SCHEMA_VERSION.to_string());
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("headway {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![version]))
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true);
        for name in ["place", "event"] {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), true);
        }
        // The values of both grow slowly: the differences take a byte or two.
        for name in ["time_ns", "packet"] {
            let name = ColumnPath::from(name);
            properties = properties.set_column_encoding(name, Encoding::DELTA_BINARY_PACKED);
        }
        let time = ColumnPath::from("time_ns");
        properties = properties.set_column_statistics_enabled(time, EnabledStatistics::Chunk);
        let made =
            schema().and_then(|s| SerializedFileWriter::new(to, s, Arc::new(properties.build())));
        Ok(EventFile {
            path: path.to_owned(),
            whole,
            to: made.map_err(io_error)?,
            places: places.iter().map(|p| ByteArray::from(p.as_str())).collect(),
            names: EventKind::NAMES.map(ByteArray::from),
            rows: Vec::with_capacity(Self::GROUP),
        })
    }

    /// Adds a row.
    pub fn add(&mut self, event: Event) -> io::Result<()> {
        self.rows.push(event);
        if self.rows.len() == Self::GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    /// Completes the file, and gives it its final name.
    pub fn finish(mut self) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.to.close().map_err(io_error)?;
        self.whole
            .keep()
            .map_err(|e| naming(&self.path.display().to_string(), &e))
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.columns().map_err(io_error)?;
        self.rows.clear();
        Ok(())
    }

    /// Writes the columns, in the order of the schema.
    fn columns(&mut self) -> Result<(), ParquetError> {
        let rows = &self.rows;
        let mut group = self.to.next_row_group()?;
        let all = |_: &Event| true;
        let of_packet = |e: &Event| e.what != EventKind::Opportunity;
        let numbered = |e: &Event| of_packet(e) && e.packet > 0;
        let waited = |e: &Event| matches!(e.what, EventKind::Departure | EventKind::Delivery);
        column::<Int64Type>(&mut group, rows, all, |e| e.at.as_nanos() as i64)?;
        let place = |e: &Event| self.places[usize::from(e.place)].clone();
        column::<ByteArrayType>(&mut group, rows, all, place)?;
        let event = |e: &Event| self.names[e.what as usize].clone();
        column::<ByteArrayType>(&mut group, rows, all, event)?;
        column::<Int64Type>(&mut group, rows, numbered, |e| e.packet as i64)?;
        column::<Int64Type>(&mut group, rows, of_packet, |e| i64::from(e.flow))?;
        column::<Int32Type>(&mut group, rows, of_packet, |e| i32::from(e.size))?;
        column::<Int32Type>(&mut group, rows, of_packet, |e| i32::from(e.ecn.bits()))?;
        column::<Int64Type>(&mut group, rows, waited, |e| e.wait.as_nanos() as i64)?;
        group.close()?;
        Ok(())
    }
}

impl std::fmt::Debug for EventFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EventFile({})", self.path.display())
    }
}

fn schema() -> Result<Arc<Type>, ParquetError> {
    let field = |name, physical, logical, repetition| {
        let built = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build();
        built.map(Arc::new)
    };
    let text = Some(LogicalType::String);
    let (required, optional) = (Repetition::REQUIRED, Repetition::OPTIONAL);
    let fields = vec![
        field("time_ns", Physical::INT64, None, required)?,
        field("place", Physical::BYTE_ARRAY, text.clone(), required)?,
        field("event", Physical::BYTE_ARRAY, text, required)?,
        field("packet", Physical::INT64, None, optional)?,
        field("flow", Physical::INT64, None, optional)?,
        field("size", Physical::INT32, None, optional)?,
        field("ecn", Physical::INT32, None, optional)?,
        field("wait_ns", Physical::INT64, None, optional)?,
    ];
    let built = Type::group_type_builder("headway")
        .with_fields(fields)
        .build();
    built.map(Arc::new)
}

/// Writes the next column: a value where `applies` is true, else null if the column allows it.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[Event],
    applies: impl Fn(&Event) -> bool,
    value: impl Fn(&Event) -> T::T,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column too many".to_owned()));
    };
    let levels: Vec<i16> = rows.iter().map(|e| i16::from(applies(e))).collect();
    let values: Vec<T::T> = rows.iter().filter(|e| applies(e)).map(value).collect();
    column
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            // The error already names the file.
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    /// The parquet crate's own reader reads rows of several groups back.
    #[test]
    fn event_rows_are_read_back() {
        let name = format!("headway-events-{}.parquet", std::process::id());
        let path = std::env::temp_dir().join(name);
        let places = ["up".to_owned(), "b".to_owned()];
        let mut file = EventFile::create(&path, &places).unwrap();
        let arrival = Event {
            at: Time::from_millis(5),
            what: EventKind::Arrival,
            place: 0,
            packet: 7,
            flow: u32::MAX,
            size: 1500,
            ecn: Ecn::Ect0,
            wait: Duration::ZERO,
        };
        let wait = Duration::from_micros(30);
        let (departure, delivery) = (EventKind::Departure, EventKind::Delivery);
        let events = [
            arrival,
            Event {
                what: EventKind::Opportunity,
                ..arrival
            },
            Event {
                what: departure,
                packet: 0,
                ecn: Ecn::Ce,
                wait,
                ..arrival
            },
            Event {
                what: delivery,
                place: 1,
                wait,
                ..arrival
            },
        ];
        let passes = EventFile::GROUP / events.len() + 1;
        for _ in 0..passes {
            events.iter().for_each(|e| file.add(*e).unwrap());
        }
        assert!(!path.exists(), "no reader sees half a file");
        file.finish().unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let rows: Vec<String> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().to_string())
            .collect();
        let wanted = [
            r#"{time_ns: 5000000, place: "up", event: "arrival", packet: 7, flow: 4294967295, size: 1500, ecn: 2, wait_ns: null}"#,
            r#"{time_ns: 5000000, place: "up", event: "opportunity", packet: null, flow: null, size: null, ecn: null, wait_ns: null}"#,
            r#"{time_ns: 5000000, place: "up", event: "departure", packet: null, flow: 4294967295, size: 1500, ecn: 3, wait_ns: 30000}"#,
            r#"{time_ns: 5000000, place: "b", event: "delivery", packet: 7, flow: 4294967295, size: 1500, ecn: 2, wait_ns: 30000}"#,
        ];
        assert_eq!(rows, wanted.repeat(passes));
    }
}
