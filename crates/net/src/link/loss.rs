//! Losses that are not caused by a queue.

use headway_cc::Stream;

/// How a link loses packets. All numbers are probabilities, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Loses each packet with the same probability, independently.
    Random {
        /// The probability.
        probability: f64,
    },
    /// Loses packets in bursts (Gilbert 1960, Elliott 1963). The link is good or bad. Before each
    /// packet it may change its state, and then loses the packet with the probability of that
    /// state. It begins good.
    GilbertElliott {
        /// The probability that a good link turns bad.
        to_bad: f64,
        /// The probability that a bad link turns good.
        to_good: f64,
        /// The probability that a good link loses a packet.
        loss_good: f64,
        /// The probability that a bad link loses a packet.
        loss_bad: f64,
    },
}

/// The loss process of a link.
#[derive(Debug)]
pub struct LossProcess {
    loss: Loss,
    stream: Stream,
    is_bad: bool,
}

impl LossProcess {
    /// Loss whose draws come from `stream`.
    pub fn new(loss: Loss, stream: Stream) -> LossProcess {
        LossProcess {
            loss,
            stream,
            is_bad: false,
        }
    }

    /// Returns the random stream, for another process.
    pub fn into_stream(self) -> Stream {
        self.stream
    }

    /// Is the next packet lost?
    #[inline]
    pub(super) fn strikes(&mut self) -> bool {
        match self.loss {
            Loss::Random { probability } => self.stream.chance(probability),
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            } => {
                let change = if self.is_bad { to_good } else { to_bad };
                self.is_bad ^= self.stream.chance(change);
                let probability = if self.is_bad { loss_bad } else { loss_good };
                self.stream.chance(probability)
            }
        }
    }
}
