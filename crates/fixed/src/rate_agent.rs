//! A learned controller of a sending rate, whole, in whole numbers (`rate_agent.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{INPUTS, Mlp, MlpValues, native};

/// How many features it sees of an interval: RTT slope, RTT ratio, send ratio, loss, delivered
/// packets.
pub const FEATURES: usize = 5;
/// How many intervals it sees, the oldest first.
pub const HISTORY: usize = INPUTS / FEATURES;

/// A record as `struct headway_record` of `abi.h` lays it out.
pub type RecordBytes = [u64; 12];

/// `struct headway_int8`: a policy, as it stands in a map of the kernel's.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Int8 {
    /// Odd while it is being written, 0 where there is none.
    pub generation: u32,
    /// The time between its decisions in mean RTTs, in 1/65536; the lowest 20 bits count.
    pub interval: u32,
    /// Where the rate begins, in bytes a second, as the next two; at most 2^40.
    pub initial_rate: u64,
    /// The least rate.
    pub min_rate: u64,
    /// The largest rate.
    pub max_rate: u64,
    /// Of an output on either side, in 1/65536; the lowest 20 bits count.
    pub limit: u32,
    /// The rate is multiplied by 1 + delta * output, or divided; in 1/65536; the lowest 16 bits
    /// count.
    pub delta: u32,
    /// A feature x becomes `(x - offset) * steps / 2^32`, rounded, clipped to 0 to 255.
    pub offsets: [i32; FEATURES],
    /// The lowest 30 bits count.
    pub steps: [u32; FEATURES],
    /// The input of each feature for an interval before the first.
    pub blank: [u8; FEATURES],
    /// Zero.
    pub unused: [u8; 3],
    /// What decides.
    pub net: Mlp,
}

/// `struct headway_rate_agent`: a flow's state.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RateAgent {
    rate: u64,
    due_ns: u64,
    first_ns: u64,
    sum_us: u64,
    sum_t: i64,
    sum_rise: i64,
    sum_t_t: i64,
    sum_t_rise: i64,
    mean_us: u64,
    samples: u32,
    first_us: u32,
    shift: u32,
    sent: u32,
    delivered: u32,
    lost: u32,
    min_rtt_us: u32,
    sent_before: u32,
    delivered_before: u32,
    lost_before: u32,
    has_news: u32,
    decisions: u32,
    generation: u32,
    unused: u32,
    values: MlpValues,
}

impl Default for Int8 {
    fn default() -> Int8 {
        Int8::new_zeroed()
    }
}

impl RateAgent {
    /// A flow begins.
    pub fn new(policy: &Int8, now_ns: u64) -> RateAgent {
        let mut agent = RateAgent::new_zeroed();
        native::headway_native_rate_agent_open(&mut agent, policy, now_ns);
        agent
    }

    /// The flow's state at an acknowledgement or a timeout, in the order of their times. The pacing
    /// rate in bytes a second that holds from now on; 0 where there has been no policy yet.
    pub fn record(&mut self, policy: &Int8, record: &RecordBytes) -> u64 {
        native::headway_native_rate_agent_record(self, policy, record)
    }

    /// When the next decision is to be made: it is made with the first record from then on.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// How often it has decided; wraps.
    pub fn decisions(&self) -> u32 {
        self.decisions
    }

    /// Somebody else has set the rate: the next decision goes on from there.
    pub fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// The pacing rate in bytes a second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// What the network was shown last, [`HISTORY`] times [`FEATURES`], the oldest interval first.
    pub fn inputs(&self) -> &[u8; INPUTS] {
        &self.values.inputs
    }
}
