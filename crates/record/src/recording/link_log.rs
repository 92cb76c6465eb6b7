//! mahimahi's log of a link (`link_queue.cc`), for mm-throughput-graph and whatever else reads it.

use std::io::{self, Write};

use headway_cc::{Duration, Time};

/// A log in mahimahi's format. Times are whole ms, as mahimahi's clock has them, and a wait is the
/// difference of two such.
#[derive(Debug)]
pub struct LinkLog<W: Write> {
    to: W,
}

/// What the head of a log tells.
#[derive(Clone, Debug)]
pub struct LinkLogHead<'a> {
    /// The link.
    pub link: &'a str,
    /// Where its opportunities come from: a trace's name, or a rate.
    pub source: &'a str,
    /// Its queue, with limits.
    pub queue: &'a str,
    /// What was run.
    pub command: &'a str,
}

impl<W: Write> LinkLog<W> {
    /// Begins a log. Each part of `head` stays on its line.
    ///
    /// # Errors
    /// As for all that follow, if `to` cannot be written to.
    pub fn new(mut to: W, head: &LinkLogHead<'_>) -> io::Result<LinkLog<W>> {
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        let (link, source) = (line(head.link), line(head.source));
        writeln!(to, "# mahimahi mm-link ({link}) [{source}] > headway")?;
        writeln!(to, "# command line: {}", line(head.command))?;
        writeln!(to, "# queue: {}", line(head.queue))?;
        writeln!(to, "# init timestamp: 0")?;
        writeln!(to, "# base timestamp: 0")?;
        Ok(LinkLog { to })
    }

    /// A packet reaches the queue.
    pub fn arrival(&mut self, at: Time, bytes: u64) -> io::Result<()> {
        writeln!(self.to, "{} + {bytes}", ms(at))
    }

    /// The queue drops a packet.
    pub fn dropped(&mut self, at: Time, bytes: u64) -> io::Result<()> {
        writeln!(self.to, "{} d 1 {bytes}", ms(at))
    }

    /// The last bit of a packet leaves, `wait` after the packet came.
    pub fn departure(&mut self, at: Time, bytes: u64, wait: Duration) -> io::Result<()> {
        let waited = ms(at) - ms(at.saturating_sub(wait));
        writeln!(self.to, "{} - {bytes} {waited}", ms(at))
    }

    /// So many bytes may leave, whether or not any do.
    pub fn opportunity(&mut self, at: Time, bytes: u64) -> io::Result<()> {
        writeln!(self.to, "{} # {bytes}", ms(at))
    }

    /// Ends the log.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn ms(at: Time) -> u64 {
    at.as_nanos() / 1_000_000
}
