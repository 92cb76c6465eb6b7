//! How far the kernel's whole numbers lead away from the simulator's.

use crate::Interval;

/// How far the kernel's whole numbers may lead away from the simulator's. The kernel stamps packets
/// in whole microseconds, so that an RTT sample is up to 1 us off; `crates/kernel` tests every
/// feature against this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Not at all.
    Exact,
    /// A number of microseconds, for a feature in milliseconds.
    Micros(u32),
    /// A number of microseconds in the flow's minimum RTT, as a share of the value.
    MicrosOfRtt(u32),
    /// A number of microseconds over the interval's length.
    MicrosOverInterval(u32),
    /// What comes in this number of microseconds at the peak rate, in packets.
    AtPeak(u32),
    /// Any: which of samples that round to one is the least decides.
    OfEqualSamples,
}

impl Rounding {
    /// For people.
    pub fn text(self) -> String {
        match self {
            Rounding::Exact => "none".to_owned(),
            Rounding::Micros(us) => format!("{us} us"),
            Rounding::MicrosOfRtt(us) => format!("{us} us in the minimum RTT"),
            Rounding::MicrosOverInterval(us) => format!("{us} us over the interval's length"),
            Rounding::AtPeak(us) => format!("{us} us at the peak throughput"),
            Rounding::OfEqualSamples => "any, between samples that round to one".to_owned(),
        }
    }

    /// The largest difference that it explains, of a feature that has this value in this interval.
    pub fn allows(self, value: f64, interval: &Interval) -> f64 {
        // Sums of floating-point numbers, in any case.
        let noise = 1e-9 * value.abs().max(1.0);
        noise
            + match self {
                Rounding::Exact => 0.0,
                Rounding::Micros(us) => f64::from(us) * 1e-3,
                Rounding::MicrosOfRtt(us) => {
                    value.abs() * f64::from(us) / f64::from(interval.latest.min_rtt_us.max(1))
                }
                Rounding::MicrosOverInterval(us) => {
                    f64::from(us) * 1e-6 / interval.length.as_secs_f64().max(1e-9)
                }
                Rounding::AtPeak(us) => f64::from(us) * 1e-6 * interval.peak_throughput,
                Rounding::OfEqualSamples => 10.0,
            }
    }
}
