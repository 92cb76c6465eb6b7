//! Successive values of one quantity.

use headway_cc::Stream;

use super::Quantity;

/// Successive values of one quantity in a run, each drawn.
#[derive(Debug)]
pub(crate) struct Series {
    low: f64,
    high: f64,
    log: bool,
    /// `None` if the quantity is fixed.
    stream: Option<Stream>,
}

impl Series {
    pub(super) fn new(quantity: &Quantity, stream: Option<Stream>) -> Series {
        Series {
            low: quantity.low,
            high: quantity.high,
            log: quantity.log,
            stream,
        }
    }

    pub fn draw(&mut self) -> f64 {
        match &mut self.stream {
            Some(stream) if self.log => {
                let exponent = stream.range(libm::log(self.low), libm::log(self.high));
                libm::exp(exponent).clamp(self.low, self.high)
            }
            Some(stream) => stream.range(self.low, self.high),
            None => self.low,
        }
    }

    /// Draws a whole number; both ends of the range are possible.
    pub fn draw_whole(&mut self) -> u64 {
        match &mut self.stream {
            Some(_) if self.log => self.draw().round() as u64,
            Some(stream) => self.low as u64 + stream.below((self.high - self.low) as u64 + 1),
            None => self.low as u64,
        }
    }
}
