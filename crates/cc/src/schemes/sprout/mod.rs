//! Sprout (Winstein, Sivaraman and Balakrishnan, NSDI 2013): the receiver infers the link's rate
//! from the arrivals, and forecasts what the link will deliver with 95% probability. The sender
//! sends what is expected to leave the queue within 100 ms.

mod forecast;
mod model;
mod receiver;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use forecast::{Forecast, Forecaster, TICKS};
use model::TICK;
use receiver::{Inference, Report};

use crate::{
    Bytes, CongestionControl, Control, Duration, Family, Feedback, Header, Kind, Need, Param,
    Probe, Rto, Scheme, Sent, Setup, Stamp, Tag, Time,
};

const CONFIDENCE: Param = Param {
    name: "confidence",
    help: "the probability that the link delivers at least the forecast",
    kind: Kind::Number {
        default: 0.95,
        min: 0.05,
        max: 0.999,
    },
};
const MAX_RATE: Param = Param {
    name: "max_rate",
    help: "the highest rate of the model, in packets a second",
    kind: Kind::Number {
        default: 1000.0,
        min: 50.0,
        max: 5000.0,
    },
};
const SIGMA: Param = Param {
    name: "sigma",
    help: "standard deviation of the change of the link's rate in a second, in packets a second",
    kind: Kind::Number {
        default: 200.0,
        min: 20.0,
        max: 2000.0,
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "sprout",
    family: Family::Model,
    summary: "the receiver forecasts a lower limit of what the link delivers; sends what will leave within 100 ms",
    source: "Winstein, Sivaraman and Balakrishnan, NSDI 2013; details as in keithw/sprout",
    deviations: &[
        "an outage ends as in keithw/sprout, with which the published figures were measured: the probability \
         to stay in it, exp(-lambda_z tau), comes on top of Brownian motion. With the paper's alone a flow \
         does not recover from 200 ms without arrivals",
        "a tick that passes takes its own forecast from the queue: keithw/sprout takes the sum of all ticks \
         so far every time, which tells only while no new forecast arrives",
        "the receiver reports after every tick, whether or not something arrived and whether or not there is \
         data to send back: there is no other half of a call here",
        "it begins with the host's initial window, not with a forecast without any information about the rate",
        "a heartbeat has 90 bytes, like the code's, and is not counted as queue (a full packet of a source that ends, or \
         has a rate); where nothing is in flight and \
         there is no room, the next one does not wait for 50 ms of silence",
        "the sender does not announce the application's pauses, so the receiver takes them for outages",
    ],
    needs: &[Need::Receiver, Need::Header],
    params: &[CONFIDENCE, MAX_RATE, SIGMA],
    build: |setup, _| Box::new(Sprout::new(setup)),
    receiver: Some(|setup, values| {
        let forecaster = Forecaster::shared(values.number(&MAX_RATE), values.number(&SIGMA));
        Box::new(Inference::new(
            setup,
            forecaster,
            values.number(&CONFIDENCE),
        ))
    }),
    router: None,
};

/// The sender's half of a flow. Counts are packets.
#[derive(Debug)]
pub struct Sprout {
    mss: Bytes,
    forecast: Forecast,
    /// When the forecast came; never before the first.
    forecast_time: Time,
    /// The current tick of the forecast, and the tick up to whose end the window looks.
    tick: usize,
    /// The packets that are assumed to be on the way to the receiver, without heartbeats.
    queue: u64,
    sent: u64,
    in_flight: Bytes,
    /// The numbers of packets that were sent without room, as heartbeats.
    heartbeats: VecDeque<u64>,
    next_heartbeat: Time,
    is_heartbeat_due: bool,
}

impl Sprout {
    /// §3.5: what is sent should leave the queue within five ticks, 100 ms.
    const TARGET_TICKS: usize = 5;
    /// `sproutbt2.cc`: the longest silence.
    const HEARTBEAT: Duration = Duration::from_millis(50);
    /// The approximate size on the wire of the published code's heartbeats.
    const HEARTBEAT_SIZE: Bytes = Bytes::new(90);
    /// The most heartbeats that are remembered, more than a minute of silence. Older ones count as
    /// packets.
    const MAX_HEARTBEATS: usize = 1500;

    /// A flow with the initial window to send.
    pub fn new(setup: &Setup) -> Sprout {
        let initial = (setup.initial_cwnd.get() / setup.mss.get()).max(1) as u32;
        let mut forecast = [initial; TICKS];
        forecast[0] = 0;
        Sprout {
            mss: setup.mss,
            forecast,
            forecast_time: Time::NEVER,
            tick: 0,
            queue: 0,
            sent: 0,
            in_flight: Bytes::ZERO,
            heartbeats: VecDeque::new(),
            next_heartbeat: Time::NEVER,
            is_heartbeat_due: false,
        }
    }

    fn on_report(&mut self, now: Time, report: &Report) {
        self.forecast = report.forecast;
        self.forecast_time = now;
        self.tick = 0;
        let there = report.received_or_lost;
        while self.heartbeats.front().is_some_and(|&n| n < there) {
            self.heartbeats.pop_front();
        }
        let under_way = self.sent.saturating_sub(there);
        self.queue = under_way.saturating_sub(self.heartbeats.len() as u64);
    }

    /// §3.5: as ticks pass, the forecast for them has left the queue.
    fn advance(&mut self, now: Time) {
        while self.next_tick() <= now {
            let before = self.forecast[..self.tick].last().unwrap_or(&0);
            let left = self.forecast[self.tick].saturating_sub(*before);
            self.queue = self.queue.saturating_sub(u64::from(left));
            self.tick += 1;
        }
    }

    /// The start of the forecast's next tick. The last tick has no end.
    fn next_tick(&self) -> Time {
        if self.tick + 1 == TICKS || self.forecast_time == Time::NEVER {
            return Time::NEVER;
        }
        self.forecast_time + TICK * (self.tick as u64 + 1)
    }

    /// §3.5: the number of packets that may be sent: the link's deliveries until the target, minus
    /// what is on the way.
    fn room(&self) -> u64 {
        let target = (self.tick + Self::TARGET_TICKS).min(TICKS - 1);
        let deliverable = self.forecast[target].saturating_sub(self.forecast[self.tick]);
        u64::from(deliverable).saturating_sub(self.queue)
    }
}

impl CongestionControl for Sprout {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        if self.room() > 0 {
            self.queue += 1;
        } else {
            if self.heartbeats.len() == Self::MAX_HEARTBEATS {
                self.heartbeats.pop_front();
            }
            self.heartbeats.push_back(sent.number);
        }
        self.sent = sent.number + 1;
        self.in_flight = sent.in_flight;
        self.next_heartbeat = sent.now + Self::HEARTBEAT;
        self.is_heartbeat_due = false;
        Tag::NONE
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.in_flight = f.in_flight;
        if let Some(report) = Report::read(f.message) {
            self.on_report(f.now, &report);
        }
        self.advance(f.now);
    }

    /// The forecast has long been zero, so only heartbeats are sent.
    fn on_rto(&mut self, _: &Rto<'_>) {
        self.in_flight = Bytes::ZERO;
    }

    fn next_timer(&self) -> Time {
        self.next_tick().min(self.next_heartbeat)
    }

    fn on_timer(&mut self, now: Time) {
        self.advance(now);
        if self.next_heartbeat <= now {
            self.is_heartbeat_due = true;
            self.next_heartbeat = now + Self::HEARTBEAT;
        }
    }

    fn control(&self) -> Control {
        let room = self.room().max(u64::from(self.is_heartbeat_due));
        let cwnd = self.in_flight + self.mss * room;
        Control {
            // Without room, every packet is a heartbeat.
            segment: (self.room() == 0).then_some(Self::HEARTBEAT_SIZE),
            ..Control::window(cwnd.max(self.mss))
        }
    }

    /// §3.2: the last packet of a flight says how long the sender may be silent, in milliseconds.
    fn stamp(&self) -> Stamp {
        let silence_ms = match self.room() {
            0 => Self::HEARTBEAT.as_millis_f64() as f32,
            _ => 0.0,
        };
        Stamp {
            header: Header([silence_ms, 0.0, 0.0]),
            ..Stamp::default()
        }
    }

    /// Loss is not a signal, and does not change the queue.
    fn owns_recovery(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let packets = f64::from(self.forecast[TICKS - 1]);
        let seconds = TICK.as_secs_f64() * TICKS as f64;
        probe.value("forecast_packets_per_s", packets / seconds);
        probe.value("queue_packets", self.queue as f64);
        probe.value("forecast_age_ticks", self.tick as f64);
    }
}
