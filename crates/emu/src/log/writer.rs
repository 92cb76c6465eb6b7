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
    /// The logs by the index of their link.
    logs: Vec<Option<LinkLog<File>>>,
}

impl Writer {
    pub(super) fn new(events: EventFile, logs: Vec<Option<LinkLog<File>>>) -> Writer {
        Writer { events, logs }
    }

    /// Writes batches until there are no more, and gives each back empty. Returns its processor
    /// time.
    pub(super) fn run(
        mut self,
        batches: &Receiver<Vec<Event>>,
        used: &SyncSender<Vec<Event>>,
    ) -> io::Result<Duration> {
        for mut batch in batches {
            for event in &batch {
                self.write(event)?;
            }
            // Now a reader sees everything so far, even if this process dies.
            self.logs
                .iter_mut()
                .flatten()
                .try_for_each(LinkLog::flush)?;
            batch.clear();
            // If the channel back is full, the batch is freed.
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
            // In mahimahi, losses are outside the link, and there are no hosts.
            EventKind::Loss | EventKind::Delivery => Ok(()),
        }
    }
}
