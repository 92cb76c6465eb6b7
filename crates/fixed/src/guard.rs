//! The guard of a flow that a policy steers (`guard.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{Cubic, Limits, RecordBytes, native};

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

/// What a path has carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The peak delivery rate, in packets per second, times 256.
    pub peak: u64,
    /// The minimum RTT, in microseconds.
    pub least_us: u32,
    /// The longest smoothed RTT, in microseconds.
    pub longest_us: u32,
    /// Packets were lost or marked.
    pub has_lost: bool,
}

/// `enum headway_judgement`: who controls a flow.
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

/// The size of `struct headway_guard`: tests/layout.rs.
const WORDS: usize = 29;

/// `struct headway_guard`: a flow's state. Only C knows what is in it.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Guard {
    words: [u64; WORDS],
}

impl Guard {
    /// Of [`Self::restart`]: nobody knows what the path carries.
    pub const NO_SSTHRESH: u32 = 0x7fff_ffff;

    /// A flow begins, or has sent before, with a window and an ssthresh in packets, which 0 stands
    /// for none.
    pub fn new(now_ns: u64, cwnd: u32, ssthresh: u32) -> Guard {
        let mut guard = Guard::new_zeroed();
        native::headway_native_guard_open(&mut guard, now_ns, cwnd, ssthresh);
        guard
    }

    /// The policy that had the flow is gone, and another begins with it at such a window and
    /// ssthresh in packets. What the flow is Cubic's for stays.
    pub fn replace_policy(&mut self, now_ns: u64, cwnd: u32, ssthresh: u32) {
        native::headway_native_guard_forget(self);
        native::headway_native_guard_open(self, now_ns, cwnd, ssthresh);
    }

    /// The policy that had the flow is gone, and nobody decides: it is judged no more until
    /// [`Self::replace_policy`].
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

    /// An answer is found that was given at `answered_ns` to what was seen at `decided_ns`: may it
    /// be carried out?
    pub fn answer(
        &mut self,
        limits: &Limits,
        decided_ns: u64,
        answered_ns: u64,
        now_ns: u64,
    ) -> bool {
        native::headway_native_guard_answer(self, limits, decided_ns, answered_ns, now_ns) != 0
    }

    /// The flow's state at an acknowledgement or a timeout, after the base controller, in the order
    /// of their times.
    pub fn judge(&mut self, limits: &Limits, record: &RecordBytes) -> Verdict {
        match native::headway_native_guard_judge(self, limits, record) {
            0 => Verdict::Policy,
            1 => Verdict::Trip,
            2 => Verdict::Fallback,
            _ => Verdict::Resume,
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
    pub fn restart(&self, limits: &Limits, record: &RecordBytes) -> u32 {
        native::headway_native_guard_restart(self, limits, record)
    }

    /// Has Cubic the flow so newly that losses are of what the policy sent?
    pub fn spares(&self, limits: &Limits, now_ns: u64, srtt_us: u32) -> bool {
        native::headway_native_guard_spares(self, limits, now_ns, srtt_us) != 0
    }

    /// Why it is Cubic's; [`Reason::Fine`] while it is the policy's.
    pub fn reason(&self) -> Reason {
        Reason::of(native::headway_native_guard_reason(self)).unwrap_or(Reason::Fine)
    }

    /// Has it nothing against the flow's policy?
    pub fn is_fine(&self) -> bool {
        self.reason() == Reason::Fine
    }

    /// How often it was taken from the policy.
    pub fn trips(&self) -> u32 {
        native::headway_native_guard_trips(self)
    }

    /// When the newest probation ends, in nanoseconds; 0 before the first.
    pub fn until_ns(&self) -> u64 {
        native::headway_native_guard_until_ns(self)
    }

    /// The utility of the Cubic that it compares with, in 1/65536, on a path that carries this:
    /// what that Cubic's window brings, at most the peak.
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

    /// The Cubic that it compares with.
    pub fn cubic(&self) -> Cubic {
        let mut cubic = Cubic::new_zeroed();
        native::headway_native_guard_cubic(self, &mut cubic);
        cubic
    }
}
