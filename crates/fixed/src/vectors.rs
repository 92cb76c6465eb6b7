//! Random inputs for comparing BPF programs with this crate, bit for bit. The same seed gives the
//! same inputs.

use zerocopy::FromZeros;

use crate::{FEATURES, Int8, Mlp, MlpValues, RecordBytes};

/// Draws whole numbers: splitmix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A network of random bytes or of sensible numbers, so that some networks saturate and others
    /// do not.
    pub fn net(&mut self) -> Mlp {
        let mut net = Mlp::new_zeroed();
        let is_random = self.below(4) == 0;
        let mut weights = |row: &mut [i8]| row.iter_mut().for_each(|w| *w = self.bits() as i8);
        net.weights1.iter_mut().for_each(|row| weights(row));
        net.weights2.iter_mut().for_each(|row| weights(row));
        weights(&mut net.weights3);
        let biases = (net.biases1.iter_mut()).chain(&mut net.biases2);
        for bias in biases.chain([&mut net.bias3]) {
            *bias = match is_random {
                true => self.bits() as i32,
                false => self.below(65536) as i32 - 32768,
            };
        }
        for (multiplier, shift) in net.multipliers.iter_mut().zip(&mut net.shifts) {
            (*multiplier, *shift) = match is_random {
                true => (self.bits() as u32, self.bits() as u32),
                false => (
                    1 << 23 | self.below(1 << 23) as u32,
                    29 + self.below(6) as u32,
                ),
            };
        }
        net
    }

    /// Random inputs.
    pub fn values(&mut self) -> MlpValues {
        let mut values = MlpValues::new_zeroed();
        (values.inputs.iter_mut()).for_each(|input| *input = self.bits() as u8);
        values
    }

    /// A policy with Aurora's clock, rates and features, and such a network.
    pub fn policy(&mut self) -> Int8 {
        let mut policy = Int8::new_zeroed();
        policy.generation = 2;
        policy.interval = 1 << 15;
        policy.initial_rate = 250_000;
        policy.min_rate = 12_500;
        policy.max_rate = 125_000_000;
        policy.limit = 4 << 16;
        policy.delta = 6554;
        for feature in 0..FEATURES {
            policy.offsets[feature] = self.below(1 << 17) as i32 - (1 << 16);
            policy.steps[feature] = self.below(1 << 25) as u32;
            policy.blank[feature] = self.bits() as u8;
        }
        policy.net = self.net();
        policy
    }

    /// The record after `last`: sometimes one with random numbers, else one that continues the
    /// flow.
    pub fn record(&mut self, last: &RecordBytes) -> RecordBytes {
        let mut record = *last;
        if self.below(64) == 0 {
            record.iter_mut().for_each(|word| *word = self.bits());
            record[0] = last[0].wrapping_add(self.bits() >> self.below(64));
            return record;
        }
        let low = |word: u64, more: u64| u64::from((word as u32).wrapping_add(more as u32));
        let high = |word: u64, more: u64| low(word >> 32, more) << 32;
        let acks = self.below(20);
        // The fields of abi.h: now_ns; pacing_rate; sent, retransmitted; delivered, delivered_ce;
        // lost, in_flight; cwnd, mss; rtt_us, srtt_us; rttvar_us, min_rtt_us; rate_delivered,
        // rate_interval_us; acks, flags; btlbw; rtprop_us and gains.
        record[0] = last[0].wrapping_add(self.below(5_000_000));
        record[2] = low(last[2], acks + self.below(3)) | high(last[2], 0);
        record[3] = low(last[3], acks) | high(last[3], 0);
        record[4] = low(last[4], self.below(16) / 15) | high(last[4], 0);
        let rtt = 20_000 + self.below(30_000);
        record[6] = if acks == 0 { 0 } else { rtt };
        record[7] = 20_000 << 32;
        record[9] = acks;
        record
    }
}
