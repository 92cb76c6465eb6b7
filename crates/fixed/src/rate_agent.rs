//! A complete learned controller of a sending rate, in whole numbers (`rate_agent.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{INPUTS, Mlp, MlpValues, native};

/// The number of features of an interval: RTT slope, RTT ratio, send ratio, loss, delivered
/// packets.
pub const FEATURES: usize = 5;
/// The number of intervals that the network sees, the oldest first.
pub const HISTORY: usize = INPUTS / FEATURES;

/// A record with the layout of `struct headway_record` in `abi.h`.
pub type RecordBytes = [u64; 12];

/// `struct headway_int8`: a policy, as the kernel's map holds it.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Int8 {
    /// The policy's generation. It is odd while the policy is being written, and 0 if there is
    /// none.
    pub generation: u32,
    /// The time between its decisions in mean RTTs, in 1/65536; the lowest 20 bits count.
    pub interval: u32,
    /// The rate at the start, in bytes a second like the next two; at most 2^40.
    pub initial_rate: u64,
    /// The lowest rate.
    pub min_rate: u64,
    /// The highest rate.
    pub max_rate: u64,
    /// The bound of an output in both directions, in 1/65536; the lowest 20 bits count.
    pub limit: u32,
    /// The step, in 1/65536: the rate is multiplied or divided by 1 + delta * output. The lowest 16
    /// bits count.
    pub delta: u32,
    /// The offset of each feature: a feature x becomes `(x - offset) * steps / 2^32`, rounded,
    /// clipped to 0 to 255.
    pub offsets: [i32; FEATURES],
    /// The factor of each feature, as above; the lowest 30 bits count.
    pub steps: [u32; FEATURES],
    /// The input of each feature for intervals before the first.
    pub blank: [u8; FEATURES],
    /// Unused; always zero.
    pub unused: [u8; 3],
    /// The network.
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
    /// The agent of a flow that begins.
    pub fn new(policy: &Int8, now_ns: u64) -> RateAgent {
        let mut agent = RateAgent::new_zeroed();
        native::headway_native_rate_agent_open(&mut agent, policy, now_ns);
        agent
    }

    /// Takes the flow's state at an acknowledgement or a timeout. Records come in the order of
    /// their times. Returns the pacing rate in bytes a second, or 0 if there has been no policy
    /// yet.
    pub fn record(&mut self, policy: &Int8, record: &RecordBytes) -> u64 {
        native::headway_native_rate_agent_record(self, policy, record)
    }

    /// The time of the next decision. The first record from then on makes it.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// The number of decisions, which wraps.
    pub fn decisions(&self) -> u32 {
        self.decisions
    }

    /// Another controller has set the rate. The next decision goes on from there.
    pub fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// The pacing rate in bytes a second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The last inputs of the network: [`HISTORY`] times [`FEATURES`], the oldest interval first.
    pub fn inputs(&self) -> &[u8; INPUTS] {
        &self.values.inputs
    }
}
