//! The guard of a flow that a policy steers (`guard.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{Cubic, RecordBytes, native};

/// `struct headway_limits`: what the guard allows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Limits {
    /// Bytes a second.
    pub max_rate: u64,
    /// Packets.
    pub min_cwnd: u32,
    /// Packets.
    pub max_cwnd: u32,
    /// So many answers in a row that want larger windows or rates are too many.
    pub wild_answers: u32,
    /// An answer may take so long, ...
    pub answer_us: u32,
    /// ... or so many smoothed RTTs if that is longer, ...
    pub answer_rtts: u32,
    /// ... but never longer than this.
    pub answer_most_us: u32,
    /// What follows is judged over so long, two minimum RTTs and a smoothed one at least.
    pub epoch_us: u32,
    /// So many epochs in a row have to be bad; of delay twice as many.
    pub epochs: u32,
    /// Share of packets lost, in 1/65536.
    pub loss: u32,
    /// Smoothed over minimum RTT, in 1/256, ...
    pub inflation: u32,
    /// ... and so much above it.
    pub inflation_us: u32,
    /// Of utility, log2(rate) - weight * log2(RTT / minimum RTT), in 1/65536.
    pub margin: u32,
    /// In 1/65536.
    pub weight: u32,
    /// Of what the path carries, in 1/65536: a mean rate below that is too low, ...
    pub share: u32,
    /// ... so many epochs in a row.
    pub long_epochs: u32,
    /// The first probation; each further one is twice as long, ...
    pub probation_ms: u32,
    /// ... so many times at most; ...
    pub doublings: u32,
    /// ... but so many after the first are as long as that.
    pub undoubled: u32,
    /// For each such time that it behaves one trip is forgotten.
    pub pardon_ms: u32,
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
            long_epochs: self.long_epochs * 5,
            undoubled: 2,
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_rate: 12_500_000_000,
            min_cwnd: 2,
            max_cwnd: 100_000,
            wild_answers: 32,
            answer_us: 100_000,
            answer_rtts: 2,
            answer_most_us: 500_000,
            epoch_us: 200_000,
            epochs: 5,
            loss: 65536 / 5,
            inflation: 4 * 256,
            inflation_us: 50_000,
            margin: 2 * 65536,
            weight: 65536 / 2,
            share: 65536 / 5 * 4,
            long_epochs: 20,
            probation_ms: 10_000,
            doublings: 5,
            undoubled: 0,
            pardon_ms: 600_000,
            unused: 0,
        }
    }
}

/// `enum headway_reason`: why a flow was taken from its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was not.
    Fine,
    /// No answer, or one that came too late.
    Stale,
    /// It loses too much.
    Lossy,
    /// Its queue is too long.
    Slow,
    /// Cubic would do much better.
    Poor,
    /// It keeps wanting windows or rates that may not be.
    Wild,
}

impl Reason {
    /// Every reason, at the index that the header gives it.
    pub const ALL: [Reason; 6] = [
        Reason::Fine,
        Reason::Stale,
        Reason::Lossy,
        Reason::Slow,
        Reason::Poor,
        Reason::Wild,
    ];

    /// The reason of that number; `None` if there is none.
    pub fn of(number: u32) -> Option<Reason> {
        Reason::ALL.get(number as usize).copied()
    }

    /// In one word; nothing for [`Reason::Fine`].
    pub fn name(self) -> &'static str {
        match self {
            Reason::Fine => "",
            Reason::Stale => "stale",
            Reason::Lossy => "loss",
            Reason::Slow => "delay",
            Reason::Poor => "utility",
            Reason::Wild => "bounds",
        }
    }
}

/// `enum headway_judgement`: whose a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The policy's.
    Policys,
    /// Cubic's, just now.
    Trips,
    /// Cubic's.
    Cubics,
    /// The policy's again, just now.
    Returns,
}

/// `struct headway_guard`: a flow's state.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Guard {
    cubic: Cubic,
    asked_ns: u64,
    fresh_ns: u64,
    until_ns: u64,
    since_ns: u64,
    epoch_ns: u64,
    peak_ns: u64,
    peak: u64,
    last_peak: u64,
    mean: u64,
    capacity: u64,
    rate_delivered: u32,
    rate_interval_us: u32,
    delivered: u32,
    delivered_ce: u32,
    lost: u32,
    epoch_delivered: u32,
    epoch_lost: u32,
    max_rtt_us: u32,
    full_rtt_us: u32,
    epoch_rtt_us: u32,
    mean_rtt_us: u32,
    bounds_us: u32,
    lossy: u16,
    slow: u16,
    poor: u16,
    hungry: u16,
    wild: u16,
    most_in_flight: u16,
    reason: u16,
    level: u16,
    trips: u32,
    overdue: u8,
    is_recovering: u8,
    is_app_limited: u8,
    is_beyond: u8,
    mss: u32,
    late: u32,
}

impl Guard {
    /// Of [`Self::restart`]: nobody knows what the path carries.
    pub const NO_SSTHRESH: u32 = 0x7fff_ffff;

    /// A flow begins, or has sent before, with a window and an ssthresh in packets, which 0 stands for none.
    pub fn new(now_ns: u64, cwnd: u32, ssthresh: u32) -> Guard {
        let mut guard = Guard::new_zeroed();
        native::headway_native_guard_open(&mut guard, now_ns, cwnd, ssthresh);
        guard
    }

    /// The policy that had the flow is gone, and another begins with it at such a window and ssthresh in packets. What the
    /// flow is Cubic's for stays.
    pub fn begin_anew(&mut self, now_ns: u64, cwnd: u32, ssthresh: u32) {
        native::headway_native_guard_forget(self);
        native::headway_native_guard_open(self, now_ns, cwnd, ssthresh);
    }

    /// The policy that had the flow is gone, and nobody decides: it is judged no more until
    /// [`Self::begin_anew`].
    pub fn forget(&mut self) {
        native::headway_native_guard_forget(self);
    }

    /// Forgets what was counted against the policy: a policy of another kind has the flow.
    pub fn acquit(&mut self) {
        native::headway_native_guard_acquit(self);
    }

    /// An answer is waited for from now on, if none is yet.
    pub fn ask(&mut self, now_ns: u64) {
        native::headway_native_guard_ask(self, now_ns);
    }

    /// An answer is found that was given at `answered_ns` to what was seen at `decided_ns`: may it be carried out?
    pub fn answer(
        &mut self,
        limits: &Limits,
        decided_ns: u64,
        answered_ns: u64,
        now_ns: u64,
    ) -> bool {
        native::headway_native_guard_answer(self, limits, decided_ns, answered_ns, now_ns) != 0
    }

    /// The flow's state at an acknowledgement or a timeout, after the base controller, in the order of their times.
    pub fn judge(&mut self, limits: &Limits, record: &RecordBytes) -> Judgement {
        match native::headway_native_guard_judge(self, limits, record) {
            0 => Judgement::Policys,
            1 => Judgement::Trips,
            2 => Judgement::Cubics,
            _ => Judgement::Returns,
        }
    }

    /// The window in packets that a policy may have that wants this one.
    pub fn cwnd(&mut self, limits: &Limits, wanted: i64) -> u32 {
        native::headway_native_guard_cwnd(self, limits, wanted)
    }

    /// The rate in bytes a second that a policy may have that wants this one.
    pub fn rate(&mut self, limits: &Limits, wanted: u64) -> u64 {
        native::headway_native_guard_rate(self, limits, wanted)
    }

    /// Where Cubic takes over: the ssthresh in packets, near what the path carries.
    pub fn restart(&self, record: &RecordBytes) -> u32 {
        native::headway_native_guard_restart(self, record)
    }

    /// Has Cubic the flow so newly that losses are of what the policy sent?
    pub fn spares(&self, now_ns: u64, srtt_us: u32) -> bool {
        native::headway_native_guard_spares(self, now_ns, srtt_us) != 0
    }

    /// Why it is Cubic's; [`Reason::Fine`] while it is the policy's.
    pub fn reason(&self) -> Reason {
        Reason::of(self.reason.into()).unwrap_or(Reason::Fine)
    }

    /// Has it nothing against the flow's policy?
    pub fn is_fine(&self) -> bool {
        self.reason() == Reason::Fine
    }

    /// How often it was taken from the policy.
    pub fn trips(&self) -> u32 {
        self.trips
    }

    /// When the probation under way ends, in nanoseconds.
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// The Cubic that it compares with.
    pub fn cubic(&self) -> &Cubic {
        &self.cubic
    }
}
