//! Logs what happens to every packet, while it happens.
//!
//! An emulator must not wait for a disk. It fills batches of small records and hands them to a
//! thread that writes. If that thread cannot keep up, the log ends and says so; the emulator goes
//! on.

mod writer;

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;

use headway_cc::{Duration, Ecn, Time};
use headway_net::{Body, LinkEvent, LinkEventKind, Packet};
use headway_record::recording::{Event, EventFile, EventKind, File, LinkLog};

use crate::emulator::{Links, Watch};
use writer::Writer;

/// A link that is to be logged.
#[derive(Debug)]
pub struct LoggedLink {
    /// The link's name.
    pub name: String,
    /// The link's log in mahimahi's format, already begun; `None` for a link without a rate.
    pub log: Option<LinkLog<File>>,
}

/// The emulator's end of a log of every event: `events.parquet`, and a mahimahi log for each link.
///
/// Only [`finish`](Self::finish) waits. If the log is dropped without it, the files are finished as
/// well, provided that the process lives long enough.
#[derive(Debug)]
pub struct EventLog {
    batch: Vec<Event>,
    /// When the batch was begun.
    begun: Time,
    links: usize,
    /// `None` once the log has ended.
    full: Option<SyncSender<Vec<Event>>>,
    empty: Receiver<Vec<Event>>,
    writer: Option<JoinHandle<io::Result<Duration>>>,
    events: u64,
    overrun_at: Option<Time>,
}

/// The result of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Events that were handed to the writer.
    pub events: u64,
    /// Processor time of the writer.
    pub cpu: Duration,
    /// Why the log is incomplete, if it is; one line.
    pub failure: Option<String>,
}

impl EventLog {
    /// The most records in a batch, 160 kB.
    const BATCH: usize = 4096;
    /// The longest time for which a batch is held: if the process dies, the mahimahi logs lack
    /// little more than that.
    const HOLD: Duration = Duration::from_millis(20);
    /// How many batches the writer may be behind: six seconds at 1 Gbit/s, ten when little happens;
    /// 84 MB at most.
    const BEHIND: usize = 512;

    /// Begins `events.parquet` at that path, and the thread that writes. `hosts` are those to which
    /// each way leads. Call it before the caller's thread takes real-time priority, which threads
    /// inherit.
    ///
    /// # Errors
    /// If the file or the thread cannot be made.
    pub fn start(path: &Path, links: Vec<LoggedLink>, hosts: &[String]) -> io::Result<EventLog> {
        EventLog::start_with(path, links, hosts, Self::BEHIND)
    }

    fn start_with(
        path: &Path,
        links: Vec<LoggedLink>,
        hosts: &[String],
        behind: usize,
    ) -> io::Result<EventLog> {
        let names = links.iter().map(|l| &l.name).chain(hosts);
        let places: Vec<String> = names.cloned().collect();
        let (full, batches) = sync_channel(behind);
        let (used, empty) = sync_channel(behind);
        let count = links.len();
        let logs = links.into_iter().map(|l| l.log).collect();
        let writer = Writer::new(EventFile::create(path, &places)?, logs);
        let thread = std::thread::Builder::new().name("log".to_owned());
        let writer = thread.spawn(move || writer.run(&batches, &used))?;
        Ok(EventLog {
            batch: Vec::with_capacity(Self::BATCH),
            begun: Time::ZERO,
            links: count,
            full: Some(full),
            empty,
            writer: Some(writer),
            events: 0,
            overrun_at: None,
        })
    }

    /// Ends the log: waits until everything is written.
    pub fn finish(mut self) -> Logged {
        // Stops the timer of the batch: no packet follows.
        if let Some(full) = self.full.take() {
            let batch = std::mem::take(&mut self.batch);
            self.events += batch.len() as u64;
            // If the writer has given up, it says why.
            let _ = full.send(batch);
        }
        let written = match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(_)) | None => Err(io::Error::other("the log's writer has died")),
        };
        let overrun = self.overrun_at.map(|at| {
            format!(
                "the disk could not keep up with the log, which ends after {:.3} s; log to a faster one, or leave the log out",
                at.as_secs_f64()
            )
        });
        let (cpu, failure) = match written {
            Ok(cpu) => (cpu, overrun),
            Err(error) => (Duration::ZERO, Some(error.to_string())),
        };
        Logged {
            events: self.events,
            cpu,
            failure,
        }
    }

    /// Hands over the current batch.
    fn hand_over(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let spare = match self.empty.try_recv() {
            Ok(spare) => spare,
            Err(TryRecvError::Empty) => Vec::with_capacity(Self::BATCH),
            Err(TryRecvError::Disconnected) => Vec::new(),
        };
        let batch = std::mem::replace(&mut self.batch, spare);
        let events = batch.len() as u64;
        match self.full.as_ref().map(|full| full.try_send(batch)) {
            Some(Ok(())) => self.events += events,
            Some(Err(TrySendError::Full(_))) => {
                self.overrun_at = Some(self.begun);
                self.full = None;
            }
            // The writer has given up, and says why at the end.
            Some(Err(TrySendError::Disconnected(_))) => self.full = None,
            None => {}
        }
    }

    #[inline]
    fn add_packet(
        &mut self,
        at: Time,
        what: EventKind,
        place: usize,
        packet: &Packet,
        wait: Duration,
    ) {
        let number = match &packet.body {
            Body::Data(segment) => segment.seq,
            Body::Ack(_) | Body::Cross => 0,
        };
        self.add(Event {
            at,
            what,
            place: place as u16,
            packet: number,
            flow: packet.flow,
            size: packet.size,
            ecn: packet.ecn,
            wait,
        });
    }

    #[inline]
    fn add(&mut self, event: Event) {
        if self.full.is_none() {
            return;
        }
        if self.batch.is_empty() {
            self.begun = event.at;
        }
        self.batch.push(event);
        if self.batch.len() >= Self::BATCH || event.at.since(self.begun) >= Self::HOLD {
            self.hand_over();
        }
    }
}

impl Watch for EventLog {
    fn on_delivery(&mut self, at: Time, due: Time, way: usize, packet: &Packet, _: &[u8]) {
        let place = self.links + way;
        self.add_packet(at, EventKind::Delivery, place, packet, at.since(due));
    }

    fn on_link_event(&mut self, link: usize, event: &LinkEvent) {
        let (what, packet, wait) = match &event.what {
            LinkEventKind::Arrival(packet) => (EventKind::Arrival, packet, Duration::ZERO),
            LinkEventKind::Loss(packet) => (EventKind::Loss, packet, Duration::ZERO),
            LinkEventKind::Drop(packet) => (EventKind::Drop, packet, Duration::ZERO),
            LinkEventKind::Departure { packet, wait } => (EventKind::Departure, packet, *wait),
            LinkEventKind::Opportunity => {
                return self.add(Event {
                    at: event.at,
                    what: EventKind::Opportunity,
                    place: link as u16,
                    packet: 0,
                    flow: 0,
                    size: 0,
                    ecn: Ecn::NotEct,
                    wait: Duration::ZERO,
                });
            }
        };
        self.add_packet(event.at, what, link, packet, wait);
    }

    fn next_call(&self) -> Time {
        match self.batch.is_empty() {
            true => Time::NEVER,
            false => self.begun + Self::HOLD,
        }
    }

    fn on_call(&mut self, _: Time, _: &mut Links) {
        self.hand_over();
    }
}

#[cfg(test)]
mod tests;
