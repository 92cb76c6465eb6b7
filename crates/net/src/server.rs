//! The server of a link's queue: a rate, or the opportunities of a trace.

use std::sync::Arc;

use headway_cc::{Bytes, Duration, Rate, Time};

use crate::trace::Trace;

/// The server of a link's queue.
#[derive(Clone, Debug)]
pub enum Server {
    /// Serves one packet after another at a rate, which may change.
    Fixed(FixedRate),
    /// Serves at the delivery opportunities of a trace (mahimahi's `mm-link`).
    Trace(TraceCursor),
}

/// A constant rate between changes.
#[derive(Clone, Debug)]
pub struct FixedRate {
    rate: Rate,
    /// Bytes that could have been served before `since`.
    offered: f64,
    since: Time,
    /// The last packet size and its transmission time: nearly all packets have one size.
    cached: (u32, Duration),
}

impl FixedRate {
    pub(crate) fn new(rate: Rate) -> FixedRate {
        FixedRate::starting(Time::ZERO, rate)
    }

    /// A rate that starts at `since`; nothing is offered before.
    pub(crate) fn starting(since: Time, rate: Rate) -> FixedRate {
        FixedRate {
            rate,
            offered: 0.0,
            since,
            cached: (0, Duration::ZERO),
        }
    }

    /// How long `size` bytes take.
    #[inline]
    pub fn time_to_send(&mut self, size: u32) -> Duration {
        if self.cached.0 != size {
            self.cached = (size, self.rate.time_to_send(Bytes::new(u64::from(size))));
        }
        self.cached.1
    }

    /// The rate now.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    pub(crate) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.offered = self.offered_until(now);
        self.since = now;
        self.rate = rate;
        self.cached = (0, Duration::ZERO);
    }

    pub(crate) fn offered_until(&self, now: Time) -> f64 {
        self.offered + self.rate.as_bytes_per_sec() * now.since(self.since).as_secs_f64()
    }
}

/// A position in a repeating trace. An opportunity carries [`TraceCursor::OPPORTUNITY`] bytes,
/// several packets or parts of packets; unused bytes are lost.
#[derive(Clone, Debug)]
pub struct TraceCursor {
    trace: Arc<Trace>,
    index: usize,
    /// When this pass through the trace began, less the offset; this may be before the start.
    base_ns: i64,
    offset: Duration,
    once: bool,
}

impl TraceCursor {
    /// Bytes that an opportunity carries: 1500 and mahimahi's 4 of TUN header.
    pub const OPPORTUNITY: u32 = 1500 + Self::OVERHEAD;
    /// The overhead of a packet beyond its size.
    pub const OVERHEAD: u32 = 4;

    /// A cursor at time zero, `offset` into the trace. With `once` it ends with the trace.
    pub fn new(trace: Arc<Trace>, offset: Duration, once: bool) -> TraceCursor {
        let offset = Duration::from_nanos(offset.as_nanos() % trace.period().as_nanos());
        let base_ns = -(offset.as_nanos() as i64);
        let index = trace
            .opportunities()
            .partition_point(|&ms| Self::at(base_ns, ms) < 0);
        TraceCursor {
            trace,
            index,
            base_ns,
            offset,
            once,
        }
    }

    #[inline]
    fn at(base_ns: i64, ms: u32) -> i64 {
        base_ns + i64::from(ms) * 1_000_000
    }

    /// When the next opportunity comes; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        match self.trace.opportunities().get(self.index) {
            Some(&ms) => Time::from_nanos(Self::at(self.base_ns, ms) as u64),
            None => Time::NEVER,
        }
    }

    /// Uses the next opportunity.
    #[inline]
    pub fn advance(&mut self) {
        self.index += 1;
        if self.index == self.trace.opportunities().len() && !self.once {
            self.index = 0;
            self.base_ns += self.trace.period().as_nanos() as i64;
        }
    }

    /// Skips every opportunity up to `now`.
    pub fn skip_until(&mut self, now: Time) {
        while self.next() <= now {
            self.advance();
        }
    }

    fn offered_until(&self, now: Time) -> f64 {
        let end = match self.once {
            true => now.min(Time::ZERO + self.trace.period().saturating_sub(self.offset)),
            false => now,
        };
        self.trace
            .opportunities_between(self.offset, Time::ZERO, end) as f64
            * 1500.0
    }
}

impl Server {
    /// A constant rate.
    pub fn fixed(rate: Rate) -> Server {
        Server::Fixed(FixedRate::new(rate))
    }

    /// A constant rate that begins at `since`.
    pub(crate) fn fixed_from(since: Time, rate: Rate) -> Server {
        Server::Fixed(FixedRate::starting(since, rate))
    }

    /// A trace, `offset` in.
    pub fn trace(trace: Arc<Trace>, offset: Duration, once: bool) -> Server {
        Server::Trace(TraceCursor::new(trace, offset, once))
    }

    /// Sets a new rate from `now` on, also instead of a trace.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        match self {
            Server::Fixed(fixed) => fixed.set_rate(now, rate),
            Server::Trace(cursor) => {
                let offered = cursor.offered_until(now);
                *self = Server::Fixed(FixedRate {
                    offered,
                    ..FixedRate::starting(now, rate)
                });
            }
        }
    }

    /// The capacity in bytes a second, including overheads, over the last `window` up to and at
    /// `now`: the rate, or a trace's opportunities, used or not.
    pub fn capacity(&self, now: Time, window: Duration) -> f64 {
        match self {
            Server::Fixed(fixed) => fixed.rate.as_bytes_per_sec(),
            Server::Trace(cursor) => {
                let after = |at: Time| at + Duration::from_nanos(1);
                let from = match now.saturating_sub(window) {
                    Time::ZERO => Time::ZERO,
                    from => after(from),
                };
                let seen = cursor
                    .trace
                    .opportunities_between(cursor.offset, from, after(now));
                seen as f64 * f64::from(TraceCursor::OPPORTUNITY) / window.as_secs_f64()
            }
        }
    }

    /// The long-term capacity in bytes a second, including overheads.
    pub fn mean_capacity(&self) -> f64 {
        match self {
            Server::Fixed(fixed) => fixed.rate.as_bytes_per_sec(),
            Server::Trace(TraceCursor { trace, .. }) => {
                let bytes = trace.count() as f64 * f64::from(TraceCursor::OPPORTUNITY);
                bytes / trace.period().as_secs_f64()
            }
        }
    }

    /// Bytes of 1500-byte packets that could have been served since the start.
    pub fn offered_until(&self, now: Time) -> f64 {
        match self {
            Server::Fixed(fixed) => fixed.offered_until(now),
            Server::Trace(cursor) => cursor.offered_until(now),
        }
    }
}
