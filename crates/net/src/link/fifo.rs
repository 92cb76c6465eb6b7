//! A FIFO queue served at a rate, computed instead of simulated: as a packet arrives, the time
//! at which its last bit will leave is already known.

use headway_cc::{Rate, Time};

use crate::Packet;
use crate::queue::Limits;
use crate::ring::Ring;
use crate::server::FixedRate;

#[derive(Debug)]
pub(super) struct Fifo {
    rate: FixedRate,
    limits: Limits,
    /// When the last accepted packet will have left.
    free_at: Time,
    /// For each packet whose transmission has not begun, when it will begin, and its size.
    waiting: Ring<(Time, u32)>,
    waiting_bytes: u64,
    /// The size of the packet in transmission, if `free_at` is in the future.
    serving: u32,
    accepted_bytes: u64,
}

impl Fifo {
    pub(super) fn new(rate: FixedRate, limits: Limits) -> Fifo {
        Fifo {
            rate,
            limits,
            free_at: Time::ZERO,
            waiting: Ring::new(),
            waiting_bytes: 0,
            serving: 0,
            accepted_bytes: 0,
        }
    }

    /// Takes apart a queue that has had no arrivals yet.
    pub(super) fn into_parts(self) -> (FixedRate, Limits) {
        (self.rate, self.limits)
    }

    /// A packet arrives. Returns when its last bit will leave; `None` if it is dropped.
    #[inline(always)]
    pub(super) fn accept(&mut self, now: Time, size: u32) -> Option<Time> {
        self.begin_due(now);
        if !self
            .limits
            .allow(self.waiting.len() + 1, self.waiting_bytes + u64::from(size))
        {
            return None;
        }
        if self.free_at <= now {
            self.serving = size;
            self.free_at = now;
        } else {
            self.waiting.push((self.free_at, size));
            self.waiting_bytes += u64::from(size);
        }
        self.accepted_bytes += u64::from(size);
        self.free_at += self.rate.time_to_send(size);
        Some(self.free_at)
    }

    /// Moves the packets whose transmission has begun out of the queue.
    #[inline]
    fn begin_due(&mut self, now: Time) {
        while let Some(&(start, size)) = self.waiting.front()
            && start <= now
        {
            self.waiting.skip();
            self.waiting_bytes -= u64::from(size);
            self.serving = size;
        }
    }

    /// Packets that have not left, including the one in transmission.
    pub(super) fn backlog(&mut self, now: Time) -> usize {
        self.begin_due(now);
        self.waiting.len() + usize::from(self.free_at > now)
    }

    /// Bytes whose last bit has left.
    pub(super) fn served_bytes(&mut self, now: Time) -> u64 {
        self.begin_due(now);
        let serving = if self.free_at > now { self.serving } else { 0 };
        self.accepted_bytes - self.waiting_bytes - u64::from(serving)
    }

    /// When each packet that has not left will leave.
    pub(super) fn departures(&self, now: Time) -> impl Iterator<Item = Time> {
        let busy = (self.free_at > now).then_some(self.free_at);
        self.waiting.iter().map(|w| w.0).chain(busy)
    }

    pub(super) fn offered_until(&self, now: Time) -> f64 {
        self.rate.offered_until(now)
    }

    /// Sets a new rate from `now` on. `unserved` are the packets that have not left, the one in
    /// transmission first; their delivery moves with their departure.
    pub(super) fn set_rate<'a>(
        &mut self,
        now: Time,
        rate: Rate,
        mut unserved: impl Iterator<Item = &'a mut Packet>,
    ) {
        self.begin_due(now);
        if self.free_at > now {
            let done = self.waiting.front().map_or(self.free_at, |w| w.0);
            let left = self.rate.rate().bytes_in(done.since(now));
            self.rate.set_rate(now, rate);
            let mut at = now + rate.time_to_send(left);
            unserved
                .next()
                .into_iter()
                .for_each(|p| p.move_departure(done, at));
            for number in self.waiting.head()..self.waiting.tail() {
                let end = self.waiting.get(number + 1).map_or(self.free_at, |w| w.0);
                if let Some((start, size)) = self.waiting.get_mut(number) {
                    *start = at;
                    at += self.rate.time_to_send(*size);
                }
                unserved
                    .next()
                    .into_iter()
                    .for_each(|p| p.move_departure(end, at));
            }
            self.free_at = at;
        } else {
            self.rate.set_rate(now, rate);
        }
    }
}
