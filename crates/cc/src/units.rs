//! Time, sizes and rates as types, so that seconds are never mistaken for milliseconds.
//!
//! All are integers: sums are exact, the order is total, and every machine gets the same bits.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// An instant: nanoseconds since the start of the run (the host's origin).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A duration in nanoseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// A number of bytes on the wire, including headers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// A rate in bits a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

const NANOS_PER_SEC: u64 = 1_000_000_000;

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// A time after every event.
    pub const NEVER: Time = Time(u64::MAX);

    /// An instant `nanos` nanoseconds after the start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }
    /// An instant `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }
    /// An instant `secs` seconds after the start; negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Time {
        Time(Duration::from_secs_f64(secs).0)
    }
    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// Time since `earlier`; zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// This instant minus `d`, but not before the start.
    #[inline]
    pub const fn saturating_sub(self, d: Duration) -> Time {
        Time(self.0.saturating_sub(d.0))
    }
}

impl Duration {
    /// A duration of zero.
    pub const ZERO: Duration = Duration(0);
    /// A duration longer than any run.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `nanos` nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Duration {
        Duration(nanos)
    }
    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Duration {
        Duration(micros * 1_000)
    }
    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Duration {
        Duration(millis * 1_000_000)
    }
    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Duration {
        Duration(secs * NANOS_PER_SEC)
    }
    /// `secs` seconds, rounded to the nearest nanosecond; negative and NaN become zero.
    #[inline]
    pub fn from_secs_f64(secs: f64) -> Duration {
        Duration((secs * NANOS_PER_SEC as f64 + 0.5) as u64)
    }
    /// The duration in nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The duration in milliseconds.
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The duration in seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// Is the duration zero?
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The difference; zero if `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
    /// The difference in either direction.
    #[inline]
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }
    /// The duration times `factor` (finite, not negative), rounded.
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Duration {
        Duration((self.0 as f64 * factor + 0.5) as u64)
    }
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// No limit.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// `n` bytes.
    #[inline]
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }
    /// The number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The number of bytes as a float, for arithmetic with fractions.
    #[inline]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// `n` bytes, rounded to the nearest byte; negative and NaN become zero.
    #[inline]
    pub fn from_f64(n: f64) -> Bytes {
        Bytes((n + 0.5) as u64)
    }
    /// The difference; zero if `other` is larger.
    #[inline]
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
    /// The sum, at most [`Bytes::MAX`].
    #[inline]
    pub const fn saturating_add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
    /// The number of bytes times `factor` (finite, not negative), rounded.
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Bytes {
        Bytes::from_f64(self.0 as f64 * factor)
    }
}

impl Rate {
    /// A rate of zero.
    pub const ZERO: Rate = Rate(0);
    /// No limit.
    pub const MAX: Rate = Rate(u64::MAX);

    /// `bps` bits a second.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }
    /// `bps` bits a second, rounded; negative and NaN become zero.
    #[inline]
    pub fn from_bps_f64(bps: f64) -> Rate {
        Rate((bps + 0.5) as u64)
    }
    /// `mbps` megabits (10^6 bits) a second.
    pub fn from_mbps(mbps: f64) -> Rate {
        Rate::from_bps_f64(mbps * 1e6)
    }
    /// The rate that moves `bytes` in `interval`; [`Rate::MAX`] for no time.
    #[inline]
    pub fn from_bytes_per(bytes: Bytes, interval: Duration) -> Rate {
        if interval.is_zero() {
            return Rate::MAX;
        }
        Rate::from_bps_f64(bytes.0 as f64 * (8.0 * NANOS_PER_SEC as f64) / interval.0 as f64)
    }
    /// The rate in bits a second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// The rate in megabits (10^6 bits) a second.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The rate in bytes a second.
    #[inline]
    pub fn as_bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// The time for `bytes` at this rate, rounded up; [`Duration::MAX`] at rate zero.
    #[inline]
    pub fn time_to_send(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        match bytes.0.checked_mul(8 * NANOS_PER_SEC) {
            Some(bit_nanos) => Duration(bit_nanos.div_ceil(self.0)),
            None => {
                let d = (bytes.0 as u128 * (8 * NANOS_PER_SEC) as u128).div_ceil(self.0 as u128);
                Duration(u64::try_from(d).unwrap_or(u64::MAX))
            }
        }
    }
    /// The bytes that this rate moves in `d`, rounded down.
    #[inline]
    pub fn bytes_in(self, d: Duration) -> Bytes {
        match self.0.checked_mul(d.0) {
            Some(bit_nanos) => Bytes(bit_nanos / (8 * NANOS_PER_SEC)),
            None => {
                let b = self.0 as u128 * d.0 as u128 / (8 * NANOS_PER_SEC) as u128;
                Bytes(u64::try_from(b).unwrap_or(u64::MAX))
            }
        }
    }
    /// The rate times `gain` (finite, not negative), rounded.
    #[inline]
    pub fn mul_f64(self, gain: f64) -> Rate {
        Rate::from_bps_f64(self.0 as f64 * gain)
    }
}

/// The amount, or the nearest valid one if it is too large or below zero.
///
/// Such an amount is an error of the program, so it panics if `is_checked`. Otherwise a wrapped
/// window would be 2^64 bytes.
#[inline]
fn held(exact: Option<u64>, nearest: u64, is_checked: bool) -> u64 {
    assert!(exact.is_some() || !is_checked, "beyond the unit's range");
    exact.unwrap_or(nearest)
}
const IS_CHECKED: bool = cfg!(debug_assertions);

macro_rules! additive {
    ($($t:ident),*) => {$(
        impl Add for $t {
            type Output = $t;
            #[inline]
            fn add(self, o: $t) -> $t { $t(held(self.0.checked_add(o.0), u64::MAX, IS_CHECKED)) }
        }
        impl Sub for $t {
            type Output = $t;
            #[inline]
            fn sub(self, o: $t) -> $t { $t(held(self.0.checked_sub(o.0), 0, IS_CHECKED)) }
        }
        impl AddAssign for $t {
            #[inline]
            fn add_assign(&mut self, o: $t) { *self = *self + o; }
        }
        impl SubAssign for $t {
            #[inline]
            fn sub_assign(&mut self, o: $t) { *self = *self - o; }
        }
        impl Mul<u64> for $t {
            type Output = $t;
            #[inline]
            fn mul(self, n: u64) -> $t { $t(held(self.0.checked_mul(n), u64::MAX, IS_CHECKED)) }
        }
        impl Div<u64> for $t {
            type Output = $t;
            #[inline]
            fn div(self, n: u64) -> $t { $t(self.0 / n) }
        }
        impl Sum for $t {
            fn sum<I: Iterator<Item = $t>>(iter: I) -> $t { iter.fold($t(0), Add::add) }
        }
    )*};
}
additive!(Duration, Bytes, Rate);

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Time::NEVER => f.write_str("never"),
            t => write!(f, "{}s", t.as_secs_f64()),
        }
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.as_millis_f64())
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Mbps", self.as_mbps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_its_inverse_agree() {
        let rate = Rate::from_mbps(12.0);
        let packet = Bytes::new(1500);
        assert_eq!(rate.time_to_send(packet), Duration::from_millis(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(1)), packet);
        assert_eq!(Rate::from_bytes_per(packet, Duration::from_millis(1)), rate);
    }

    #[test]
    fn out_of_range_amounts_saturate_and_panic_in_debug_builds() {
        assert_eq!(held(2u64.checked_sub(1), 0, true), 1);
        assert_eq!(held(1u64.checked_sub(2), 0, false), 0);
        assert_eq!(held(u64::MAX.checked_add(1), u64::MAX, false), u64::MAX);
        let beyond: [fn() -> u64; 5] = [
            || (Bytes::MAX + Bytes::new(1)).get(),
            || (Bytes::MAX * 2).get(),
            || (Bytes::new(1) - Bytes::new(2)).get(),
            || (Duration::MAX + Duration::from_nanos(1)).as_nanos(),
            || (Duration::ZERO - Duration::from_nanos(1)).as_nanos(),
        ];
        let nearest = [u64::MAX, u64::MAX, 0, u64::MAX, 0];
        for (amount, nearest) in beyond.into_iter().zip(nearest) {
            let found = std::panic::catch_unwind(amount);
            assert_eq!(found.ok(), (!IS_CHECKED).then_some(nearest));
        }
    }

    #[test]
    fn extremes_do_not_wrap() {
        assert_eq!(Rate::ZERO.time_to_send(Bytes::new(1)), Duration::MAX);
        assert_eq!(
            Rate::from_bytes_per(Bytes::new(1), Duration::ZERO),
            Rate::MAX
        );
        assert_eq!(Rate::from_bps(1).time_to_send(Bytes::MAX), Duration::MAX);
        assert_eq!(Rate::MAX.bytes_in(Duration::MAX), Bytes::MAX);
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::from_millis(3)), Duration::ZERO);
        assert_eq!(Bytes::from_f64(-1.0), Bytes::ZERO);
        assert_eq!(Rate::from_bps_f64(f64::NAN), Rate::ZERO);
    }
}
