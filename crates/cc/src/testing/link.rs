//! One flow over one drop-tail bottleneck, which is enough network to see how a controller behaves.

use std::collections::VecDeque;

use super::{Host, MSS};
use crate::{Duration, Ecn, Rate, Selection, Setup, Time};

/// A [`Host`] at a link. A loss is found when a later packet is acknowledged, since nothing is
/// reordered.
#[derive(Debug)]
pub struct Link {
    /// The sender.
    pub host: Host,
    /// The rate at which the queue is served.
    pub rate: Rate,
    /// The propagation delay there and back.
    pub rtt: Duration,
    /// The number of packets that the queue holds.
    pub buffer: u64,
    /// When the queue will be empty.
    free: Time,
    /// The next departure by pacing.
    departure: Time,
    /// The arrival of each acknowledgement, and its number.
    acks: VecDeque<(Time, u64)>,
}

impl Link {
    /// A flow of `selection` over a link.
    pub fn new(selection: &Selection, rate: Rate, rtt: Duration, buffer: u64) -> Link {
        Link {
            host: Host::new(selection.build(&Setup::new(MSS, 1)), MSS),
            rate,
            rtt,
            buffer,
            free: Time::ZERO,
            departure: Time::ZERO,
            acks: VecDeque::new(),
        }
    }

    /// The packets in the queue, including the one in service.
    pub fn queue(&self) -> f64 {
        self.free.since(self.host.now()).as_secs_f64() / self.rate.time_to_send(MSS).as_secs_f64()
    }

    /// The share of the link's capacity that is used over the next `span`.
    pub fn utilisation(&mut self, span: Duration) -> f64 {
        let before = self.host.counters().delivered;
        self.run(span);
        let delivered = self.host.counters().delivered - before;
        delivered.as_f64() / (self.rate.as_bytes_per_sec() * span.as_secs_f64())
    }

    /// Runs for `span`.
    pub fn run(&mut self, span: Duration) {
        let end = self.host.now() + span;
        loop {
            self.transmit();
            let ack = self.acks.front().map_or(Time::NEVER, |a| a.0);
            let send = if self.may_send() {
                self.departure
            } else {
                Time::NEVER
            };
            let next = match ack.min(send) {
                Time::NEVER => self.host.now() + Duration::from_secs(1), // everything in flight was dropped
                next => next,
            };
            if next > end {
                return self.host.wait_until(end);
            }
            self.host.wait_until(next);
            if ack.min(send) == Time::NEVER {
                self.host.time_out();
            } else if ack == next {
                let (_, number) = self.acks.pop_front().expect("an acknowledgement is due");
                let lost: Vec<u64> = self.host.flight().take_while(|&n| n < number).collect();
                self.host.feedback(&[number], &lost, Ecn::NotEct, |_| {});
            }
        }
    }

    fn may_send(&self) -> bool {
        !self.host.app_limited && self.host.may_send()
    }

    fn transmit(&mut self) {
        while self.may_send() && self.departure <= self.host.now() {
            let now = self.host.now();
            let number = self.host.send();
            if let Some(rate) = self.host.cc.control().pacing_rate {
                self.departure = self.departure.max(now) + rate.time_to_send(MSS);
            }
            if self.queue() < self.buffer as f64 {
                self.free = self.free.max(now) + self.rate.time_to_send(MSS);
                self.acks.push_back((self.free + self.rtt, number));
            }
        }
    }
}
