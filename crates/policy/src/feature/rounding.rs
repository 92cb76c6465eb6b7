//! How much the kernel's whole numbers can change a feature, compared with the simulator.

use crate::Interval;

/// How much the kernel's whole numbers can change a feature, compared with the simulator. The
/// kernel stamps packets in whole microseconds, so an RTT sample can be off by 1 us. The crate
/// `kernel` tests every feature against this bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Not at all.
    Exact,
    /// A number of microseconds, in a feature that is in milliseconds.
    Micros(u32),
    /// A number of microseconds in the flow's minimum RTT, as a share of the value.
    MicrosOfRtt(u32),
    /// A number of microseconds divided by the interval's length.
    MicrosOverInterval(u32),
    /// The packets that arrive in this number of microseconds at the peak rate.
    AtPeak(u32),
    /// Any difference: samples that round to the same value decide which one is the minimum.
    OfEqualSamples,
}

impl Rounding {
    /// The bound in words.
    pub fn text(self) -> String {
        match self {
            Rounding::Exact => "none".to_owned(),
            Rounding::Micros(us) => format!("{us} us"),
            Rounding::MicrosOfRtt(us) => format!("relative: {us} us over the minimum RTT"),
            Rounding::MicrosOverInterval(us) => format!("{us} us over the interval's length"),
            Rounding::AtPeak(us) => format!("the packets of {us} us at the peak throughput"),
            Rounding::OfEqualSamples => {
                "any: of samples that round to the same microsecond, either may be the minimum"
                    .to_owned()
            }
        }
    }

    /// The largest difference that the rounding explains, for this value in this interval.
    pub fn allows(self, value: f64, interval: &Interval) -> f64 {
        // Sums of floating-point numbers always have some error.
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
