//! Counts packets of each direction, while a shell runs and for its end.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_cc::{Duration, Ecn, Time};
use headway_net::{Body, LinkEvent, LinkEventKind, Packet};
use headway_record::LogHistogram;
use serde::Serialize;

use crate::emulator::{Links, Report, Watch};
use crate::log::EventLog;
use crate::sys::TunCounters;

/// Sums since the start; the emulator adds to them, and others read them.
#[derive(Debug, Default)]
pub struct Sums {
    packets: AtomicU64,
    bytes: AtomicU64,
    queueing_ns: AtomicU64,
    drops: AtomicU64,
}

/// The values of [`Sums`] at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Packets delivered.
    pub packets: u64,
    /// Bytes delivered.
    pub bytes: u64,
    /// The total time that packets spent in the queue, including transmission.
    pub queueing: Duration,
    /// Packets dropped by the queue or lost at random.
    pub drops: u64,
}

impl Sums {
    /// The current values.
    pub fn read(&self) -> Reading {
        let of = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Reading {
            packets: of(&self.packets),
            bytes: of(&self.bytes),
            queueing: Duration::from_nanos(of(&self.queueing_ns)),
            drops: of(&self.drops),
        }
    }

    /// Only one thread writes.
    fn add(sum: &AtomicU64, more: u64) {
        sum.store(sum.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }
}

/// Watches an emulator of one link each way.
#[derive(Debug)]
pub struct Meter {
    directions: [Direction; 2],
    /// The link that packets of each way cross.
    link_of_way: Vec<usize>,
    log: Option<EventLog>,
}

#[derive(Debug, Default)]
struct Direction {
    sums: Arc<Sums>,
    delay: LogHistogram,
    queue_drops: u64,
    losses: u64,
    marks: u64,
    /// Packets on the link that had a mark when they arrived.
    marked_before: HashSet<u64>,
}

impl Meter {
    /// `link_of_way` says which link, 0 or 1, the packets of each way cross. Everything also goes
    /// to `log`.
    pub fn new(link_of_way: Vec<usize>, log: Option<EventLog>) -> Meter {
        Meter {
            directions: Default::default(),
            link_of_way,
            log,
        }
    }

    /// The sums of both links.
    pub fn sums(&self) -> [Arc<Sums>; 2] {
        [0, 1].map(|link| Arc::clone(&self.directions[link].sums))
    }

    /// The summary at the end, when the log is finished; `devices` has the counters of all hosts.
    pub fn summary(self, report: &Report, devices: &[TunCounters]) -> Summary {
        let [up, down] = self.directions.map(Direction::summary);
        let late = |p| round(report.lateness.percentile_ms(p).map(|ms| ms * 1e3), 1);
        let dropped = devices.iter().map(|d| d.sent_dropped + d.received_dropped);
        Summary {
            seconds: round(Some(report.elapsed.as_secs_f64()), 3).unwrap_or(0.0),
            up,
            down,
            lateness_p50_us: late(0.5),
            lateness_p99_us: late(0.99),
            unexplained_losses: report.no_room + report.refused + dropped.sum::<u64>(),
            cpu_s: round(Some(report.cpu.as_secs_f64()), 3).unwrap_or(0.0),
            log_failure: self.log.and_then(|log| log.finish().failure),
        }
    }
}

impl Watch for Meter {
    fn on_delivery(&mut self, at: Time, due: Time, way: usize, packet: &Packet, bytes: &[u8]) {
        if let Some(log) = &mut self.log {
            log.on_delivery(at, due, way, packet, bytes);
        }
        let direction = &mut self.directions[self.link_of_way[way]];
        let Body::Data(segment) = &packet.body else {
            return;
        };
        direction.delay.add(at.since(segment.sent));
        let sums = &direction.sums;
        Sums::add(&sums.packets, 1);
        Sums::add(&sums.bytes, u64::from(packet.size));
        Sums::add(&sums.queueing_ns, segment.queued.as_nanos());
    }

    fn next_call(&self) -> Time {
        self.log.as_ref().map_or(Time::NEVER, EventLog::next_call)
    }

    fn on_call(&mut self, now: Time, links: &mut Links) {
        if let Some(log) = &mut self.log {
            log.on_call(now, links);
        }
    }

    fn on_link_event(&mut self, link: usize, event: &LinkEvent) {
        if let Some(log) = &mut self.log {
            log.on_link_event(link, event);
        }
        let direction = &mut self.directions[link];
        match &event.what {
            LinkEventKind::Arrival(packet) if packet.ecn == Ecn::Ce => {
                direction.marked_before.insert(number(packet));
            }
            LinkEventKind::Departure { packet, .. } if packet.ecn == Ecn::Ce => {
                let is_new = !direction.marked_before.remove(&number(packet));
                direction.marks += u64::from(is_new);
            }
            LinkEventKind::Drop(packet) => {
                direction.marked_before.remove(&number(packet));
                direction.queue_drops += 1;
                Sums::add(&direction.sums.drops, 1);
            }
            LinkEventKind::Loss(_) => {
                direction.losses += 1;
                Sums::add(&direction.sums.drops, 1);
            }
            _ => {}
        }
    }
}

/// The number that tells a packet under way from all others.
fn number(packet: &Packet) -> u64 {
    match &packet.body {
        Body::Data(segment) => segment.number,
        _ => u64::MAX,
    }
}

impl Direction {
    fn summary(self) -> DirectionSummary {
        let Reading { packets, bytes, .. } = self.sums.read();
        let delay = |p| round(self.delay.percentile_ms(p), 3);
        DirectionSummary {
            packets,
            bytes,
            drops: self.queue_drops,
            marks: self.marks,
            losses: self.losses,
            delay_p50_ms: delay(0.5),
            delay_p95_ms: delay(0.95),
        }
    }
}

/// The summary of a shell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How long it ran.
    pub seconds: f64,
    /// The direction from the shell outwards.
    pub up: DirectionSummary,
    /// The direction towards the shell.
    pub down: DirectionSummary,
    /// How late packets left the emulator, compared with when they were due; `None` without
    /// packets.
    pub lateness_p50_us: Option<f64>,
    /// The 99th percentile of the same lateness.
    pub lateness_p99_us: Option<f64>,
    /// Packets that vanished at no link: the emulator or a device was overrun.
    pub unexplained_losses: u64,
    /// Processor time of the emulator.
    pub cpu_s: f64,
    /// Why the log is incomplete, if it is.
    pub log_failure: Option<String>,
}

/// What has happened in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// Packets delivered.
    pub packets: u64,
    /// Bytes delivered.
    pub bytes: u64,
    /// Packets that the queue dropped.
    pub drops: u64,
    /// Packets that the queue marked (ECN).
    pub marks: u64,
    /// Packets lost at random, before the queue.
    pub losses: u64,
    /// The time from entering the emulator to leaving it; `None` without packets.
    pub delay_p50_ms: Option<f64>,
    /// The 95th percentile of the same delay.
    pub delay_p95_ms: Option<f64>,
}

impl Summary {
    /// Lines of text for people.
    pub fn text(&self) -> String {
        let line = |name: &str, d: &DirectionSummary| {
            let mbps = d.bytes as f64 * 8e-6 / self.seconds.max(1e-3);
            // Counters that are zero are left out, so that the line fits a terminal.
            let also = [(d.marks, "marked"), (d.losses, "lost")];
            let also = also.into_iter().filter(|(count, _)| *count > 0);
            let also: String = also
                .map(|(count, what)| format!(", {count} {what}"))
                .collect();
            format!(
                "{name:<4} {:>9.3} MB {mbps:>8.3} Mbit/s  delay p50 {} p95 {} ms  {} dropped{also}\n",
                d.bytes as f64 * 1e-6,
                shown(d.delay_p50_ms),
                shown(d.delay_p95_ms),
                d.drops
            )
        };
        let late = [self.lateness_p50_us, self.lateness_p99_us].map(shown);
        let vanished = match self.unexplained_losses {
            0 => String::new(),
            lost => format!(", {lost} packets lost at no link"),
        };
        format!(
            "{}{}{:.1} s, packets late by p50 {} p99 {} us, {:.2} s of CPU{vanished}\n",
            line("up", &self.up),
            line("down", &self.down),
            self.seconds,
            late[0],
            late[1],
            self.cpu_s
        )
    }
}

fn shown(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.1}"))
}

fn round(number: Option<f64>, digits: i32) -> Option<f64> {
    let scale = 10f64.powi(digits);
    number.map(|number| (number * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_cc::Header;
    use headway_net::Segment;

    fn packet(number: u64, ecn: Ecn, queued_ms: u64) -> Packet {
        Packet {
            flow: 0,
            size: 1500,
            hops_left: 0,
            ecn,
            arrived: Time::ZERO,
            body: Body::Data(Segment {
                number,
                seq: 0,
                sent: Time::from_millis(100),
                queued: Duration::from_millis(queued_ms),
                header: Header::default(),
            }),
        }
    }

    #[test]
    fn packets_are_counted_by_direction() {
        let mut meter = Meter::new(vec![0, 1, 1], None);
        let [up, down] = meter.sums();
        let at = Time::from_millis(120);
        meter.on_delivery(at, at, 2, &packet(1, Ecn::NotEct, 3), &[]);
        meter.on_delivery(at, at, 1, &packet(2, Ecn::NotEct, 5), &[]);
        assert_eq!(up.read(), Reading::default());
        let read = down.read();
        assert_eq!((read.packets, read.bytes), (2, 3000));
        assert_eq!(read.queueing, Duration::from_millis(8));
        let summary = meter.summary(&Report::default(), &[]);
        assert_eq!(summary.up.delay_p50_ms, None);
        assert!((summary.down.delay_p50_ms.unwrap() - 20.0).abs() < 0.03);
        assert!(
            summary.text().contains("down     0.003 MB"),
            "{}",
            summary.text()
        );
    }

    #[test]
    fn packets_that_vanish_at_no_link_are_counted() {
        let report = Report {
            no_room: 1,
            refused: 20,
            ..Report::default()
        };
        let device = TunCounters {
            sent_dropped: 300,
            received_dropped: 4000,
            ..TunCounters::default()
        };
        let summary = Meter::new(vec![0, 1], None).summary(&report, &[device]);
        assert_eq!(summary.unexplained_losses, 4321);
    }

    #[test]
    fn only_marks_made_by_the_link_count() {
        let mut meter = Meter::new(vec![0, 1], None);
        let mut tell = |what| {
            meter.on_link_event(
                0,
                &LinkEvent {
                    at: Time::ZERO,
                    what,
                },
            )
        };
        let departure = |packet| LinkEventKind::Departure {
            packet,
            wait: Duration::ZERO,
        };
        // The first came with its mark, the second got one here, the third has none.
        tell(LinkEventKind::Arrival(packet(1, Ecn::Ce, 0)));
        tell(LinkEventKind::Arrival(packet(2, Ecn::Ect0, 0)));
        tell(LinkEventKind::Arrival(packet(3, Ecn::Ect0, 0)));
        tell(departure(packet(1, Ecn::Ce, 0)));
        tell(departure(packet(2, Ecn::Ce, 0)));
        tell(departure(packet(3, Ecn::Ect0, 0)));
        // Numbers are used again.
        tell(LinkEventKind::Arrival(packet(1, Ecn::Ce, 0)));
        tell(LinkEventKind::Drop(packet(1, Ecn::Ce, 0)));
        tell(LinkEventKind::Arrival(packet(1, Ecn::Ect0, 0)));
        tell(departure(packet(1, Ecn::Ce, 0)));
        tell(LinkEventKind::Loss(packet(4, Ecn::NotEct, 0)));
        let [up, _] = meter.sums();
        assert_eq!(up.read().drops, 2);
        let DirectionSummary {
            drops,
            marks,
            losses,
            ..
        } = meter.summary(&Report::default(), &[]).up;
        assert_eq!((drops, marks, losses), (1, 2, 1));
    }
}
