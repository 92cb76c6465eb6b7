//! What the guard allows (`limits.h`).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct headway_limits`: what the guard allows. docs/guard.md has the defaults that a user may want to know.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Limits {
    /// The largest rate, in bytes a second.
    pub max_rate: u64,
    /// A rate is at most this many times the recent delivery rate; 0 to 15, 0 for no such bound.
    pub rate_gain: u32,
    /// The smallest window, in packets.
    pub min_cwnd: u32,
    /// The largest window, in packets.
    pub max_cwnd: u32,
    /// The policy loses the flow after this many answers in a row beyond the largest window or rate.
    pub wild_answers: u32,
    /// An answer may always take this long.
    pub answer_us: u32,
    /// An answer may also take this many smoothed RTTs.
    pub answer_rtts: u32,
    /// An answer may never take longer than this.
    pub answer_most_us: u32,
    /// An answer that is older is not carried out.
    pub answer_keeps_ms: u32,
    /// The policy loses the flow after this many late answers in a row.
    pub stale_answers: u32,
    /// The policy returns only if its newest answer is at most this many times `answer_most_us` old.
    pub return_patiences: u32,
    /// The least length of an epoch.
    pub epoch_us: u32,
    /// The least length of an epoch in minimum RTTs.
    pub epoch_min_rtts: u32,
    /// The least length of an epoch in smoothed RTTs.
    pub epoch_srtts: u32,
    /// An RTT shows a queue if it is above the minimum RTT by this share, in 1/256, and `queue_us`.
    pub queue_share: u32,
    /// See `queue_share`.
    pub queue_us: u32,
    /// This many packets in flight make no queue.
    pub few_packets: u32,
    /// The largest rate of an epoch is remembered for one to two times this long.
    pub peak_ms: u32,
    /// Means over epochs have the gain 1 / 2^`mean_shift`; 0 to 63.
    pub mean_shift: u32,
    /// A path carries this many packets per round trip until a queue or a loss shows otherwise.
    pub initial_window: u32,
    /// The shadow Cubic's window is at most this many times what the path was seen to hold, and `shadow_packets`
    /// more; 0 to 15.
    pub shadow_gain: u32,
    /// See `shadow_gain`; packets, at most 65535.
    pub shadow_packets: u32,
    /// More in flight than the shadow Cubic's window by this share, in 1/256, is more than a Cubic would have.
    pub beyond: u32,
    /// A window that is this many times the shadow Cubic's is too large.
    pub ahead: u32,
    /// An epoch is bad that loses this share of its packets, in 1/65536.
    pub loss: u32,
    /// An epoch with fewer packets cannot be bad for its losses.
    pub loss_packets: u32,
    /// The policy loses the flow after this many epochs in a row that are bad for losses or for their utility.
    pub epochs: u32,
    /// An epoch may be bad for its delay if the smoothed RTT is this many times the minimum RTT, in 1/256.
    pub inflation: u32,
    /// The smoothed RTT then also has to be above the minimum RTT by this.
    pub inflation_us: u32,
    /// The smoothed RTT then also has to be this many times the one at which packets were lost or marked last.
    pub full_rtts: u32,
    /// The policy loses the flow after this many epochs in a row that are bad for their delay.
    pub slow_epochs: u32,
    /// Utility is log2(rate) - `weight` * log2(RTT / minimum RTT), in 1/65536.
    pub weight: u32,
    /// An epoch is bad if its utility is below the shadow Cubic's by this, in 1/65536.
    pub margin: u32,
    /// An epoch may be bad for the means if the mean rate is below this share of what the path carries, in 1/65536;
    /// below 2.
    pub share: u32,
    /// The utility of the means then also has to be below the shadow Cubic's by this, in 1/65536.
    pub long_margin: u32,
    /// The policy loses the flow after this many epochs in a row that are bad for the means.
    pub long_epochs: u32,
    /// The length of the first probation.
    pub probation_ms: u32,
    /// This many probations after the first have its length. Each later one is twice as long as the one before it.
    pub undoubled: u32,
    /// Probations are doubled at most this many times; 0 to 15.
    pub doublings: u32,
    /// One trip is forgotten after each such time without another.
    pub pardon_ms: u32,
    /// Losses in this many smoothed RTTs after a trip do not lower Cubic's window.
    pub spared_rtts: u32,
    /// Cubic takes over with at least this ssthresh, in packets.
    pub least_ssthresh: u32,
    /// Zero.
    pub unused: u32,
}

impl Limits {
    /// The same where a policy learns in use. It tries wrong actions at first, and learns from them only while it controls
    /// the flow. So it may lose too much, or starve, five times as long, and its first three probations are equally long.
    #[must_use]
    pub fn of_learners(self) -> Limits {
        Limits {
            epochs: self.epochs * 5,
            slow_epochs: self.slow_epochs * 5,
            long_epochs: self.long_epochs * 5,
            undoubled: 2,
            ..self
        }
    }

    /// The same, and no bad epoch takes the flow from its policy.
    #[must_use]
    pub fn without_epochs(self) -> Limits {
        Limits {
            epochs: u32::MAX,
            slow_epochs: u32::MAX,
            long_epochs: u32::MAX,
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_rate: 12_500_000_000,
            rate_gain: 3,
            min_cwnd: 2,
            max_cwnd: 100_000,
            wild_answers: 32,
            answer_us: 100_000,
            answer_rtts: 2,
            answer_most_us: 500_000,
            answer_keeps_ms: 1000,
            stale_answers: 2,
            return_patiences: 2,
            epoch_us: 200_000,
            epoch_min_rtts: 2,
            epoch_srtts: 1,
            queue_share: 256 / 8,
            queue_us: 2000,
            few_packets: 2,
            peak_ms: 10_000,
            mean_shift: 5,
            initial_window: 10,
            shadow_gain: 2,
            shadow_packets: 10,
            beyond: 256 / 4,
            ahead: 2,
            loss: 65536 / 5,
            loss_packets: 50,
            epochs: 5,
            inflation: 4 * 256,
            inflation_us: 50_000,
            full_rtts: 2,
            slow_epochs: 10,
            weight: 65536 / 2,
            margin: 2 * 65536,
            share: 65536 / 5 * 4,
            long_margin: 65536 / 8,
            long_epochs: 20,
            probation_ms: 10_000,
            undoubled: 0,
            doublings: 5,
            pardon_ms: 600_000,
            spared_rtts: 2,
            least_ssthresh: 4,
            unused: 0,
        }
    }
}
