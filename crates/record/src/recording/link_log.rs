//! Writes mahimahi's log of a link (`link_queue.cc`), for mm-throughput-graph and other readers.

use std::io::{self, Write};

use headway_cc::{Duration, Time};

/// A log in mahimahi's format. Times are whole ms, as mahimahi's clock has them, and a wait is the
/// difference of two such times.
#[derive(Debug)]
pub struct LinkLog<W: Write> {
    to: W,
    rated_from: Time,
    /// The line under construction.
    line: Vec<u8>,
}

/// The head of a log, and the rule by which it counts bytes.
#[derive(Clone, Debug)]
pub struct LinkLogHead<'a> {
    /// The link.
    pub link: &'a str,
    /// The source of its opportunities: a trace's name, or a rate.
    pub source: &'a str,
    /// The link's queue, with limits.
    pub queue: &'a str,
    /// The description of the run.
    pub command: &'a str,
    /// Until this time the link follows a trace, and packets are counted as mahimahi does;
    /// afterwards it has a rate. [`Time::NEVER`] for a trace throughout.
    pub rated_from: Time,
}

/// A packet of the usual size, bytes.
const PACKET: u64 = 1500;
/// What mahimahi adds to each packet, bytes: the header of its TUN device.
const OVERHEAD: u64 = 4;

impl<W: Write> LinkLog<W> {
    /// Begins a log. Each part of `head` stays on its line.
    ///
    /// # Errors
    /// If `to` cannot be written to. The same holds for the other methods.
    pub fn new(mut to: W, head: &LinkLogHead<'_>) -> io::Result<LinkLog<W>> {
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        let (link, source) = (line(head.link), line(head.source));
        writeln!(to, "# mahimahi mm-link ({link}) [{source}] > headway")?;
        writeln!(to, "# command line: {}", line(head.command))?;
        writeln!(to, "# queue: {}", line(head.queue))?;
        writeln!(to, "# init timestamp: 0")?;
        writeln!(to, "# base timestamp: 0")?;
        Ok(LinkLog {
            to,
            rated_from: head.rated_from,
            line: Vec::with_capacity(64),
        })
    }

    /// A packet of that size on the wire, bytes, reaches the queue.
    pub fn arrival(&mut self, at: Time, size: u16) -> io::Result<()> {
        let bytes = self.counted(at, size);
        self.write(at, b'+', &[bytes])
    }

    /// The queue drops a packet.
    pub fn dropped(&mut self, at: Time, size: u16) -> io::Result<()> {
        let bytes = self.counted(at, size);
        self.write(at, b'd', &[1, bytes])
    }

    /// The last bit of a packet leaves, `wait` after the packet came.
    pub fn departure(&mut self, at: Time, size: u16, wait: Duration) -> io::Result<()> {
        let bytes = self.counted(at, size);
        let waited = ms(at) - ms(at.saturating_sub(wait));
        self.write(at, b'-', &[bytes, waited])
    }

    /// A packet of 1500 bytes could leave, whether or not one does.
    pub fn opportunity(&mut self, at: Time) -> io::Result<()> {
        let bytes = self.overhead(at) + PACKET;
        self.write(at, b'#', &[bytes])
    }

    /// Passes everything so far to the system, so that it remains if the program dies.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Ends the log.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn counted(&self, at: Time, size: u16) -> u64 {
        u64::from(size) + self.overhead(at)
    }

    fn overhead(&self, at: Time) -> u64 {
        if at < self.rated_from { OVERHEAD } else { 0 }
    }

    fn write(&mut self, at: Time, event: u8, numbers: &[u64]) -> io::Result<()> {
        let mut digits = itoa::Buffer::new();
        self.line.clear();
        self.line.extend(digits.format(ms(at)).as_bytes());
        self.line.extend([b' ', event]);
        for &number in numbers {
            self.line.push(b' ');
            self.line.extend(digits.format(number).as_bytes());
        }
        self.line.push(b'\n');
        self.to.write_all(&self.line)
    }
}

fn ms(at: Time) -> u64 {
    at.as_nanos() / 1_000_000
}
