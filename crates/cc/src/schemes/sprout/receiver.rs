//! Sprout's receiver (NSDI 2013 §3.2, §3.4): it counts arrivals tick by tick, infers the link's
//! rate from them, and sends the forecast to the sender.

use std::collections::VecDeque;
use std::sync::Arc;

use super::forecast::{Forecast, Forecaster, TICKS};
use super::model::{Belief, TICK, uniform_belief};
use crate::{Arrival, Duration, Receiver, Setup, Time};

/// The receiver's report after every tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets that have arrived or are lost.
    pub received_or_lost: u64,
    /// Cumulative packets by the end of each of the next ticks.
    pub forecast: Forecast,
}

impl Report {
    const LENGTH: usize = 8 + 4 * TICKS;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.received_or_lost.to_le_bytes());
        out.extend(self.forecast.iter().flat_map(|count| count.to_le_bytes()));
    }

    /// Reads the newest report in a message.
    pub fn read(message: &[u8]) -> Option<Report> {
        let newest = message.rchunks_exact(Self::LENGTH).next()?;
        let (number, counts) = newest.split_first_chunk()?;
        let (counts, _) = counts.as_chunks();
        Some(Report {
            received_or_lost: u64::from_le_bytes(*number),
            forecast: std::array::from_fn(|tick| u32::from_le_bytes(counts[tick])),
        })
    }
}

/// The receiver's half of a flow.
#[derive(Debug)]
pub struct Inference {
    forecaster: Arc<Forecaster>,
    /// The probability with which a forecast may be too high.
    risk: f32,
    mss: f64,
    belief: Belief,
    /// When the tick began; never before the first packet.
    tick: Time,
    /// The packets of this tick, in full ones.
    arrived: f64,
    /// The number of ticks in a row without arrivals.
    empty_ticks: u64,
    /// The time until which the sender has announced silence.
    silent_until: Time,
    numbers: Numbers,
    report: Report,
    has_news: bool,
}

impl Inference {
    /// The number of ticks, a second, after which the belief has settled at an outage. There is
    /// nothing to report until a packet arrives.
    const SETTLED: u64 = 50;

    /// A receiver's half that has received nothing.
    pub fn new(setup: &Setup, forecaster: Arc<Forecaster>, confidence: f64) -> Inference {
        Inference {
            forecaster,
            risk: (1.0 - confidence) as f32,
            mss: setup.mss.as_f64(),
            belief: uniform_belief(),
            tick: Time::NEVER,
            arrived: 0.0,
            empty_ticks: 0,
            silent_until: Time::ZERO,
            numbers: Numbers::default(),
            report: Report::default(),
            has_news: false,
        }
    }

    /// §3.2: ends a tick. A tick without arrivals does not change the belief if the sender had
    /// announced silence.
    fn end_tick(&mut self) {
        self.empty_ticks = match self.arrived {
            0.0 => self.empty_ticks + 1,
            _ => 0,
        };
        let model = &self.forecaster.model;
        self.belief = model.evolve(&self.belief);
        if self.arrived > 0.0 || self.tick >= self.silent_until {
            // `receiver.cc`: the count is rounded, but a tick with an arrival counts at least one.
            let count = ((self.arrived + 0.5) as u64).max(u64::from(self.arrived > 0.0));
            self.belief = model.observe(&self.belief, count);
            self.arrived = 0.0;
        }
        self.tick += TICK;
    }

    fn advance(&mut self, now: Time) {
        let before = self.tick;
        while self.next_timer() <= now {
            self.end_tick();
        }
        let rest = now.since(self.tick).as_nanos() / TICK.as_nanos();
        self.tick += TICK * rest;
        if self.tick == before {
            return;
        }
        self.report = Report {
            received_or_lost: self.numbers.received_or_lost(),
            forecast: self
                .forecaster
                .forecast(&self.belief, self.risk, &self.report.forecast),
        };
        self.has_news = true;
    }
}

impl Receiver for Inference {
    fn on_data(&mut self, arrival: &Arrival) {
        if self.tick == Time::NEVER {
            self.tick = arrival.now;
        }
        self.advance(arrival.now);
        self.arrived += arrival.size.as_f64() / self.mss;
        self.numbers.on_data(arrival);
        let silence_ms = f64::from(arrival.header.0[0]).clamp(0.0, 1000.0);
        let silence = Duration::from_secs_f64(silence_ms / 1e3);
        self.silent_until = self.silent_until.max(self.tick + silence);
    }

    fn next_timer(&self) -> Time {
        if self.empty_ticks >= Self::SETTLED && self.arrived == 0.0 {
            return Time::NEVER;
        }
        self.tick + TICK
    }

    fn on_timer(&mut self, now: Time) {
        self.advance(now);
    }

    fn take_message(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.has_news) {
            self.report.write(out);
        }
    }
}

/// The packets that have arrived, or will not arrive any more because they left 10 ms before one
/// that has arrived (§3.4; the code's `throwaway_window`).
#[derive(Debug, Default)]
struct Numbers {
    /// All packets below this number are accounted for.
    before: u64,
    /// The packets from there on that have arrived, by number, with the time of sending.
    arrived: VecDeque<(u64, Time)>,
    newest_sent: Time,
}

impl Numbers {
    const REORDERING: Duration = Duration::from_millis(10);

    fn on_data(&mut self, arrival: &Arrival) {
        let (number, sent) = (arrival.number, arrival.sent);
        let place = self.arrived.partition_point(|(n, _)| *n < number);
        let is_known = self.arrived.get(place).is_some_and(|(n, _)| *n == number);
        if number >= self.before && !is_known {
            self.arrived.insert(place, (number, sent));
        }
        self.newest_sent = self.newest_sent.max(sent);
        let too_late = self.newest_sent.saturating_sub(Self::REORDERING);
        while let Some(&(number, sent)) = self.arrived.front()
            && sent < too_late
        {
            self.before = number + 1;
            self.arrived.pop_front();
        }
    }

    fn received_or_lost(&self) -> u64 {
        self.before + self.arrived.len() as u64
    }
}
