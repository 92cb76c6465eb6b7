//! Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01). The receiver
//! reports the arrival times of several packets at once, and the sender looks up what it had sent.

use std::collections::VecDeque;

use super::probe::Train;
use crate::{Arrival, Bytes, Duration, Receiver, Sent, Time};

/// How far behind a reported packet others are remembered: 15 bits, as in the report
/// (`RemoteEstimatorProxy::kMaxNumberOfPackets`).
const MAX_BEHIND: usize = 1 << 15;
/// The most packets that are remembered without a report.
const MAX_PACKETS: usize = 1 << 20;
/// The unit of times in reports, 250 us (§3.1).
const TICK: Duration = Duration::from_micros(250);
/// The header: `begin`, and the number and time from which those of arrivals are counted, with
/// eight bytes each.
const HEADER: usize = 24;
/// The size of an arrival: two bytes for its number and two for its time.
const ARRIVAL: usize = 4;

/// The receiver's half: it sends a report every `interval` while packets arrive, or sooner if the
/// report would not fit into a packet.
#[derive(Debug)]
pub(super) struct Reporter {
    interval: Duration,
    most_arrivals: usize,
    due: Time,
    last_report: Option<Time>,
    /// The first number that no report has covered.
    begin: u64,
    /// The arrivals since the last report, in their order: number and time in ticks.
    arrived: Vec<(u64, u64)>,
    is_due: bool,
}

impl Reporter {
    /// A receiver's half whose reports fit into packets of `mss`.
    pub(super) fn new(interval: Duration, mss: Bytes) -> Reporter {
        let room = (mss.get() as usize).saturating_sub(HEADER) / ARRIVAL;
        Reporter {
            interval,
            most_arrivals: room.max(1),
            due: Time::NEVER,
            last_report: None,
            begin: 0,
            arrived: Vec::new(),
            is_due: false,
        }
    }
}

impl Receiver for Reporter {
    fn on_data(&mut self, arrival: &Arrival) {
        if self.arrived.is_empty() {
            let spaced = self.last_report.map_or(Time::ZERO, |t| t + self.interval);
            self.due = spaced.max(arrival.now);
        }
        let ticks = (arrival.now.as_nanos() + TICK.as_nanos() / 2) / TICK.as_nanos();
        self.arrived.push((arrival.number, ticks));
        if self.arrived.len() >= self.most_arrivals {
            self.on_timer(arrival.now);
        }
    }

    fn next_timer(&self) -> Time {
        self.due
    }

    fn on_timer(&mut self, now: Time) {
        (self.due, self.is_due) = (Time::NEVER, true);
        self.last_report = Some(now);
    }

    fn take_message(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        let first = self.arrived.iter().map(|a| a.0).min().unwrap_or(0);
        let base = self.arrived.iter().map(|a| a.1).min().unwrap_or(0);
        out.reserve(HEADER + ARRIVAL * self.arrived.len());
        for field in [self.begin, first, base] {
            out.extend(field.to_le_bytes());
        }
        for (number, ticks) in self.arrived.drain(..) {
            let near = (u16::try_from(number - first), u16::try_from(ticks - base));
            if let (Ok(number), Ok(ticks)) = near {
                out.extend(number.to_le_bytes());
                out.extend(ticks.to_le_bytes());
            }
            self.begin = self.begin.max(number.saturating_add(1));
        }
    }
}

/// A packet that arrived, as reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reported {
    pub(super) sent: Time,
    pub(super) received: Time,
    pub(super) size: Bytes,
    /// The train of the packet, if it was a probe.
    pub(super) probe: Option<Train>,
}

/// A report, with what the sender knows of its packets.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The packets that arrived, in the order of arrival.
    pub(super) received: Vec<Reported>,
    /// The number of packets that the report covers and that had not arrived.
    pub(super) lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sent: Time,
    size: u32,
    probe: Option<Train>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Lost,
    Received,
}

/// The packets that were sent recently (`TransportFeedbackAdapter`).
#[derive(Debug, Default)]
pub(super) struct History {
    /// The number of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
}

impl History {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn on_sent(&mut self, sent: &Sent, probe: Option<Train>) {
        if sent.number != self.first + self.entries.len() as u64 {
            self.entries.clear();
            self.first = sent.number;
        }
        if self.entries.len() >= MAX_PACKETS {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(Entry {
            sent: sent.now,
            size: u32::try_from(sent.size.get()).unwrap_or(u32::MAX),
            probe,
            state: State::Unknown,
        });
    }

    /// Reads a message into `report`. Anything malformed is ignored.
    pub(super) fn read(&mut self, message: &[u8], report: &mut Report) {
        report.received.clear();
        report.lost = 0;
        let Some((header, arrivals)) = message.split_first_chunk::<HEADER>() else {
            return;
        };
        let field = |i: usize| {
            let bytes = header[8 * i..8 * i + 8].try_into();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        let (begin, first, base) = (field(0), field(1), field(2));
        let mut end = 0;
        for arrival in arrivals.chunks_exact(ARRIVAL) {
            let number =
                first.wrapping_add(u64::from(u16::from_le_bytes([arrival[0], arrival[1]])));
            let ticks =
                base.saturating_add(u64::from(u16::from_le_bytes([arrival[2], arrival[3]])));
            let index = number.wrapping_sub(self.first) as usize;
            let Some(entry) = self.entries.get_mut(index) else {
                continue;
            };
            end = end.max(index);
            if entry.state != State::Received {
                entry.state = State::Received;
                report.received.push(Reported {
                    sent: entry.sent,
                    received: Time::from_nanos(ticks.saturating_mul(TICK.as_nanos())),
                    size: Bytes::new(u64::from(entry.size)),
                    probe: entry.probe,
                });
            }
        }
        let begin = begin.saturating_sub(self.first) as usize;
        for entry in self.entries.range_mut(begin.min(end)..end) {
            if entry.state == State::Unknown {
                entry.state = State::Lost;
                report.lost += 1;
            }
        }
        let old = end.saturating_sub(MAX_BEHIND);
        self.entries.drain(..old);
        self.first += old as u64;
    }
}
