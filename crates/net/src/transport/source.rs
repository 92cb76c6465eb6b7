//! The data that an application gives its flow to send.

use headway_cc::{Bytes, Duration, Rate, Stream, Time};

/// A source of data.
#[derive(Debug)]
pub enum Source {
    /// There is always more.
    Bulk,
    /// There is a number of bytes.
    Finite {
        /// Bytes not handed out yet.
        left: Bytes,
    },
    /// Data is produced at a rate.
    Rate {
        /// The rate.
        rate: Rate,
        /// When production began.
        since: Time,
        /// Bytes handed out.
        taken: Bytes,
    },
    /// It is like `Bulk` while on, and silent while off.
    OnOff {
        /// Mean length of an on period.
        on: Duration,
        /// Mean length of an off period.
        off: Duration,
        /// Whether it is on.
        active: bool,
        /// When the current period ends.
        until: Time,
        /// The stream from which lengths are drawn.
        stream: Stream,
    },
}

impl Source {
    /// A source that produces at a rate, from `now` on.
    pub fn rate(rate: Rate, now: Time) -> Source {
        Source::Rate {
            rate,
            since: now,
            taken: Bytes::ZERO,
        }
    }

    /// A source with exponential on and off periods, on from `now`.
    pub fn on_off(on: Duration, off: Duration, now: Time, mut stream: Stream) -> Source {
        let until = now + on.mul_f64(stream.exponential(1.0));
        Source::OnOff {
            on,
            off,
            active: true,
            until,
            stream,
        }
    }

    /// The next segment of at most `mss`: its size, or when to ask again ([`Time::NEVER`] for
    /// never).
    #[inline]
    pub fn take(&mut self, now: Time, mss: Bytes) -> Result<Bytes, Time> {
        match self {
            Source::Bulk => Ok(mss),
            Source::Finite { left } if left.get() == 0 => Err(Time::NEVER),
            Source::Finite { left } => {
                let size = mss.min(*left);
                *left -= size;
                Ok(size)
            }
            Source::Rate { rate, since, taken } => {
                let ready = *since + rate.time_to_send(*taken + mss);
                if now < ready {
                    return Err(ready);
                }
                *taken += mss;
                Ok(mss)
            }
            Source::OnOff {
                on,
                off,
                active,
                until,
                stream,
            } => {
                while *until <= now {
                    *active = !*active;
                    let mean = if *active { *on } else { *off };
                    *until += mean
                        .mul_f64(stream.exponential(1.0))
                        .max(Duration::from_nanos(1));
                }
                if *active { Ok(mss) } else { Err(*until) }
            }
        }
    }

    /// Has the source nothing more to give, now and later?
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Source::Finite { left } if left.get() == 0)
    }
}
