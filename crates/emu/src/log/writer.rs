//! The thread that writes.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender};

use headway_cc::Duration;
use headway_record::recording::{Event, EventFile, EventKind, File, LinkLog};

use crate::sys::cpu_time;

/// The files of a log.
#[derive(Debug)]
pub(super) struct Writer {
    events: EventFile,
    /// By the index of the link.
    logs: Vec<Option<LinkLog<File>>>,
}

impl Writer {
    pub(super) fn new(events: EventFile, logs: Vec<Option<LinkLog<File>>>) -> Writer {
        Writer { events, logs }
    }

    /// Writes batches until no more can come, and gives each back empty. Returns the processor time
    /// that it took.
    pub(super) fn run(
        mut self,
        batches: &Receiver<Vec<Event>>,
        used: &SyncSender<Vec<Event>>,
    ) -> io::Result<Duration> {
        for mut batch in batches {
            for event in &batch {
                self.write(event)?;
            }
            // What a reader sees if this process dies.
            self.logs
                .iter_mut()
                .flatten()
                .try_for_each(LinkLog::flush)?;
            batch.clear();
            // Where nobody takes it, it is freed.
            let _ = used.try_send(batch);
        }
        self.events.finish()?;
        let mut logs = self.logs.into_iter().flatten();
        logs.try_for_each(LinkLog::finish)?;
        Ok(cpu_time())
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        self.events.add(*event)?;
        let Some(Some(log)) = self.logs.get_mut(usize::from(event.place)) else {
            return Ok(());
        };
        match event.what {
            EventKind::Arrival => log.arrival(event.at, event.size),
            EventKind::Drop => log.dropped(event.at, event.size),
            EventKind::Departure => log.departure(event.at, event.size, event.wait),
            EventKind::Opportunity => log.opportunity(event.at),
            // mahimahi loses packets outside the link, and knows no hosts.
            EventKind::Loss | EventKind::Delivery => Ok(()),
        }
    }
}
