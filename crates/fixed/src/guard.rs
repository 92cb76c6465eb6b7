//! The guard of a flow that a policy steers (`guard.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{Cubic, Limits, RecordBytes, native};

/// `enum headway_reason`: why the guard took a flow from its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The guard did not take the flow.
    Fine,
    /// An answer did not come, or came too late.
    Stale,
    /// The policy loses too many packets.
    Lossy,
    /// The policy's queue is too long.
    Slow,
    /// Cubic's utility would be much higher.
    Poor,
    /// The policy keeps asking for windows or rates that are not allowed.
    Wild,
}

impl Reason {
    /// All reasons, in the order of their numbers in the header.
    pub const ALL: [Reason; 6] = [
        Reason::Fine,
        Reason::Stale,
        Reason::Lossy,
        Reason::Slow,
        Reason::Poor,
        Reason::Wild,
    ];

    /// The reason with that number, or `None`.
    pub fn of(number: u32) -> Option<Reason> {
        Reason::ALL.get(number as usize).copied()
    }

    /// The reason in one word; empty for [`Reason::Fine`].
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

/// What was measured of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The peak delivery rate, in packets per second, times 256.
    pub peak: u64,
    /// The minimum RTT, in microseconds.
    pub least_us: u32,
    /// The longest smoothed RTT, in microseconds.
    pub longest_us: u32,
    /// Whether packets were lost or marked.
    pub has_lost: bool,
}

/// `enum headway_guard_verdict`: who controls a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The policy controls the flow.
    Policy,
    /// The guard has just tripped: the flow falls back to Cubic.
    Trip,
    /// Cubic controls the flow since an earlier trip.
    Fallback,
    /// The policy controls the flow again, from now on.
    Resume,
}

/// The size of `struct headway_guard`, which tests/layout.rs checks.
const WORDS: usize = 29;

/// `struct headway_guard`: a flow's state. Only the C code reads its contents.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Guard {
    words: [u64; WORDS],
}

impl Guard {
    /// The result of [`Self::restart`] if the path's capacity is not known.
    pub const NO_SSTHRESH: u32 = 0x7fff_ffff;

    /// The guard of a flow that begins, or that has sent before. Window and ssthresh are in
    /// packets; an ssthresh of 0 means that none is set.
    pub fn new(now_ns: u64, cwnd: u32, ssthresh: u32) -> Guard {
        let mut guard = Guard::new_zeroed();
        native::headway_native_guard_open(&mut guard, now_ns, cwnd, ssthresh);
        guard
    }

    /// Another policy takes over the flow, with this window and ssthresh in packets. A probation in
    /// progress continues.
    pub fn replace_policy(&mut self, now_ns: u64, cwnd: u32, ssthresh: u32) {
        native::headway_native_guard_forget(self);
        native::headway_native_guard_open(self, now_ns, cwnd, ssthresh);
    }

    /// The policy is gone, and no other decides. The flow is not judged until
    /// [`Self::replace_policy`].
    pub fn forget(&mut self) {
        native::headway_native_guard_forget(self);
    }

    /// Clears what was counted against the policy, because a policy of another kind takes over.
    pub fn acquit(&mut self) {
        native::headway_native_guard_acquit(self);
    }

    /// A request was sent. The time until its answer counts from the oldest open request.
    pub fn ask(&mut self, now_ns: u64) {
        native::headway_native_guard_ask(self, now_ns);
    }

    /// An answer to the state of time `decided_ns` was given at `answered_ns`, and is found now.
    /// May it be carried out?
    pub fn answer(
        &mut self,
        limits: &Limits,
        decided_ns: u64,
        answered_ns: u64,
        now_ns: u64,
    ) -> bool {
        native::headway_native_guard_answer(self, limits, decided_ns, answered_ns, now_ns) != 0
    }

    /// Judges the flow's state at an acknowledgement or a timeout, after the base controller has
    /// taken it. Records come in the order of their times.
    pub fn judge(&mut self, limits: &Limits, record: &RecordBytes) -> Verdict {
        match native::headway_native_guard_judge(self, limits, record) {
            0 => Verdict::Policy,
            1 => Verdict::Trip,
            2 => Verdict::Fallback,
            _ => Verdict::Resume,
        }
    }

    /// The window in packets for a policy that wants `wanted`.
    pub fn cwnd(&mut self, limits: &Limits, wanted: i64) -> u32 {
        native::headway_native_guard_cwnd(self, limits, wanted)
    }

    /// The rate in bytes a second for a policy that wants `wanted`.
    pub fn rate(&mut self, limits: &Limits, wanted: u64) -> u64 {
        native::headway_native_guard_rate(self, limits, wanted)
    }

    /// The ssthresh in packets with which Cubic takes over: near what the path carries.
    pub fn restart(&self, limits: &Limits, record: &RecordBytes) -> u32 {
        native::headway_native_guard_restart(self, limits, record)
    }

    /// Has the policy sent too much, and so recently that losses are of what it sent?
    pub fn ignores_loss(&self, limits: &Limits, now_ns: u64, srtt_us: u32) -> bool {
        native::headway_native_guard_ignores_loss(self, limits, now_ns, srtt_us) != 0
    }

    /// Why the flow is in fallback; [`Reason::Fine`] while the policy controls it.
    pub fn reason(&self) -> Reason {
        Reason::of(native::headway_native_guard_reason(self)).unwrap_or(Reason::Fine)
    }

    /// Does the policy control the flow?
    pub fn is_fine(&self) -> bool {
        self.reason() == Reason::Fine
    }

    /// The number of trips.
    pub fn trips(&self) -> u32 {
        native::headway_native_guard_trips(self)
    }

    /// The end of the newest probation, in nanoseconds; 0 before the first.
    pub fn until_ns(&self) -> u64 {
        native::headway_native_guard_until_ns(self)
    }

    /// The utility of the shadow Cubic, in 1/65536, on such a path. Its rate is what its window
    /// brings, at most the peak.
    pub fn cubic_utility(&self, limits: &Limits, path: &Carried) -> i64 {
        native::headway_native_guard_cubic_utility(
            self,
            limits,
            path.peak,
            path.least_us,
            path.longest_us,
            path.has_lost.into(),
        )
    }

    /// The shadow Cubic.
    pub fn cubic(&self) -> Cubic {
        let mut cubic = Cubic::new_zeroed();
        native::headway_native_guard_cubic(self, &mut cubic);
        cubic
    }
}
