//! The guard's limits (`limits.h`).

use std::ops::RangeInclusive;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::native;

/// A limit on a count of epochs or answers in a row that is never reached: such a count is at most
/// 65535 in C.
const NEVER: u32 = u32::MAX;

/// A limit that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the guard's limit {name} is {value}, must be {} to {}", .range.start(), .range.end())]
pub struct LimitError {
    /// The limit's name.
    pub name: &'static str,
    /// The value that was given.
    pub value: u64,
    /// The allowed values.
    pub range: RangeInclusive<u64>,
}

/// Lists each limit once: its description, its default, and its smallest and largest value.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr, $least:expr => $most:expr;)+) => {
        /// `struct headway_limits`: the guard's limits. docs/guard.md explains the defaults that
        /// matter to users.
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        pub struct Limits {
            $($(#[$doc])* pub $name: $type,)+
        }

        impl Limits {
            /// The name and the range of each limit. Within these ranges the guard's arithmetic
            /// does not wrap.
            pub const RANGES: &[(&str, RangeInclusive<u64>)] =
                &[$((stringify!($name), $least as u64..=$most as u64),)+];

            /// The limits in the order of [`Self::RANGES`].
            pub fn values(&self) -> Vec<u64> {
                vec![$(u64::from(self.$name),)+]
            }

            /// The same limits, with another value of the limit of that name. `None` if there is no
            /// such limit, or the value does not fit its type.
            #[must_use]
            pub fn with(mut self, name: &str, value: u64) -> Option<Limits> {
                match name {
                    $(stringify!($name) => self.$name = value.try_into().ok()?,)+
                    _ => return None,
                }
                Some(self)
            }
        }

        impl Default for Limits {
            fn default() -> Limits {
                Limits { $($name: $default,)+ }
            }
        }
    };
}

limits! {
    /// The largest rate, in bytes a second.
    max_rate: u64 = 12_500_000_000, 1 => (1u64 << 40);
    /// A rate is at most this many times the recent delivery rate; 0 for no such bound.
    rate_gain: u32 = 3, 0 => 15;
    /// The smallest window, in packets; at most `max_cwnd`.
    min_cwnd: u32 = 2, 1 => 1_000_000;
    /// The largest window, in packets.
    max_cwnd: u32 = 100_000, 1 => 1_000_000;
    /// The policy loses the flow after this many answers in a row beyond the largest window or
    /// rate.
    wild_answers: u32 = 32, 1 => NEVER;
    /// An answer may always take this long.
    answer_us: u32 = 100_000, 1 => u32::MAX;
    /// An answer may also take this many smoothed RTTs.
    answer_rtts: u32 = 2, 0 => 1000;
    /// An answer may never take longer than this.
    answer_most_us: u32 = 500_000, 1 => u32::MAX;
    /// An answer that is older is not carried out.
    answer_keeps_ms: u32 = 1000, 1 => u32::MAX;
    /// The policy loses the flow after this many late answers in a row.
    stale_answers: u32 = 2, 1 => NEVER;
    /// The policy returns only if its newest answer is at most this many times `answer_most_us`
    /// old.
    return_patiences: u32 = 2, 1 => 1000;
    /// The shortest epoch.
    epoch_us: u32 = 200_000, 1 => u32::MAX;
    /// The shortest epoch, in minimum RTTs.
    epoch_min_rtts: u32 = 2, 0 => 1000;
    /// The shortest epoch, in smoothed RTTs.
    epoch_srtts: u32 = 1, 0 => 1000;
    /// An RTT shows a queue if it is above the minimum RTT by this share, in 1/256, and `queue_us`.
    queue_share: u32 = 256 / 8, 0 => u32::MAX;
    /// See `queue_share`.
    queue_us: u32 = 2000, 0 => u32::MAX;
    /// This many packets in flight make no queue.
    few_packets: u32 = 2, 0 => 65_535;
    /// The largest rate of an epoch is remembered for one to two times this long.
    peak_ms: u32 = 10_000, 1 => u32::MAX;
    /// Means over epochs have the gain 1 / 2^`mean_shift`.
    mean_shift: u32 = 5, 0 => 31;
    /// A path carries this many packets per round trip until a queue or a loss shows otherwise.
    initial_window: u32 = 10, 0 => u32::MAX;
    /// The shadow Cubic's window is at most this many times what the path was seen to hold, and
    /// `shadow_packets` more.
    shadow_gain: u32 = 2, 0 => 15;
    /// See `shadow_gain`.
    shadow_packets: u32 = 10, 0 => 65_535;
    /// More in flight than the shadow Cubic's window by this share, in 1/256, is more than a Cubic
    /// would have.
    beyond: u32 = 256 / 4, 0 => u32::MAX;
    /// A window that is this many times the shadow Cubic's is too large.
    ahead: u32 = 2, 0 => u32::MAX;
    /// An epoch is bad that loses more than this share of its packets, in 1/65536.
    loss: u32 = 65536 / 5, 0 => 65_536;
    /// An epoch with fewer packets cannot be bad for its losses.
    loss_packets: u32 = 50, 0 => u32::MAX;
    /// The policy loses the flow after this many epochs in a row that are bad for losses or for
    /// their utility.
    epochs: u32 = 5, 1 => NEVER;
    /// An epoch may be bad for its delay if the smoothed RTT is this many times the minimum RTT, in
    /// 1/256.
    inflation: u32 = 4 * 256, 0 => u32::MAX;
    /// The smoothed RTT then also has to be above the minimum RTT by this.
    inflation_us: u32 = 50_000, 0 => u32::MAX;
    /// The smoothed RTT then also has to be this many times the one at which packets were lost or
    /// marked last.
    full_rtts: u32 = 2, 0 => u32::MAX;
    /// The policy loses the flow after this many epochs in a row that are bad for their delay.
    slow_epochs: u32 = 10, 1 => NEVER;
    /// Utility is log2(rate) - `weight` * log2(RTT / minimum RTT), in 1/65536.
    weight: u32 = 65536 / 2, 0 => u32::MAX;
    /// An epoch is bad if its utility is below the shadow Cubic's by this, in 1/65536.
    margin: u32 = 2 * 65536, 0 => u32::MAX;
    /// An epoch may be bad for the means if the mean rate is below this share of what the path
    /// carries, in 1/65536.
    share: u32 = 65536 / 5 * 4, 0 => 131_071;
    /// The utility of the means then also has to be below the shadow Cubic's by this, in 1/65536.
    long_margin: u32 = 65536 / 8, 0 => u32::MAX;
    /// The policy loses the flow after this many epochs in a row that are bad for the means.
    long_epochs: u32 = 20, 1 => NEVER;
    /// The length of the first probation.
    probation_ms: u32 = 10_000, 1 => 86_400_000;
    /// This many probations after the first have its length. Each later one is twice as long as the
    /// one before it.
    undoubled: u32 = 0, 0 => 255;
    /// Probations are doubled at most this many times.
    doublings: u32 = 5, 0 => 15;
    /// One trip is forgotten after each such time without another.
    pardon_ms: u32 = 600_000, 1 => u32::MAX;
    /// Losses in this many smoothed RTTs after a trip do not lower Cubic's window.
    spared_rtts: u32 = 2, 0 => 1000;
    /// Cubic takes over with at least this ssthresh, in packets.
    least_ssthresh: u32 = 4, 2 => 1_000_000;
    /// Unused; always zero.
    unused: u32 = 0, 0 => 0;
}

impl Limits {
    /// Checks that each limit is in its range. Call it before limits are set.
    ///
    /// # Errors
    /// [`LimitError`] of the first limit that is not.
    pub fn check(&self) -> Result<(), LimitError> {
        let wrong = |name, value, range| Err(LimitError { name, value, range });
        for ((name, range), value) in Limits::RANGES.iter().zip(self.values()) {
            if !range.contains(&value) {
                return wrong(name, value, range.clone());
            }
        }
        if self.min_cwnd > self.max_cwnd {
            return wrong("min_cwnd", self.min_cwnd.into(), 1..=self.max_cwnd.into());
        }
        Ok(())
    }

    /// The utility of a rate, in packets per second times 256, at an RTT: log2(rate) - weight *
    /// log2(RTT / minimum RTT), in 1/65536.
    pub fn utility(&self, rate: u64, rtt_us: u32, least_us: u32) -> i64 {
        native::headway_native_utility(self, rate, rtt_us.into(), least_us.into())
    }

    /// The limits for policies that learn in use. A learner tries wrong actions at first, and
    /// learns from them only while it controls the flow. So it may lose too much, or starve, five
    /// times as long, and its first three probations are equally long.
    #[must_use]
    pub fn for_learners(self) -> Limits {
        Limits {
            epochs: self.epochs.saturating_mul(5),
            slow_epochs: self.slow_epochs.saturating_mul(5),
            long_epochs: self.long_epochs.saturating_mul(5),
            undoubled: 2,
            ..self
        }
    }

    /// The limits without those on bad epochs.
    #[must_use]
    pub fn without_epochs(self) -> Limits {
        Limits {
            epochs: NEVER,
            slow_epochs: NEVER,
            long_epochs: NEVER,
            ..self
        }
    }

    /// The limits without those on the time of an answer.
    #[must_use]
    pub fn without_answer_limits(self) -> Limits {
        Limits {
            answer_us: u32::MAX,
            answer_most_us: u32::MAX,
            stale_answers: NEVER,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the minimum RTT the utility is the logarithm of the rate.
    #[test]
    fn logarithms_match_floating_point() {
        let log2 = |x| Limits::default().utility(x, 1, 1);
        assert_eq!(log2(0), 0);
        let powers = (0..64).map(|n| 1u64 << n);
        let others = (1..2000)
            .map(|i| (1.0222f64.powi(i)) as u64)
            .chain([u64::MAX, 3, 5, 7]);
        for x in powers.chain(others) {
            let exact = libm::log2(x as f64) * 65536.0;
            let error = log2(x) as f64 - exact;
            assert!((-2.0..=0.5).contains(&error), "{x}: {error}");
        }
    }
}
