//! Loss that no queue causes.

use headway_cc::Stream;

/// How a link loses packets. All numbers are probabilities, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each packet with the same probability, independently.
    Random {
        /// The probability.
        probability: f64,
    },
    /// In bursts (Gilbert 1960, Elliott 1963): the link is good or bad, changes its state before a
    /// packet or does not, and then loses it with the probability of the state. It begins good.
    GilbertElliott {
        /// A good link turns bad.
        to_bad: f64,
        /// A bad link turns good.
        to_good: f64,
        /// A good link loses a packet.
        loss_good: f64,
        /// A bad link loses a packet.
        loss_bad: f64,
    },
}

/// A link's loss under way.
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

    /// Where the draws come from, to go on with.
    pub fn into_stream(self) -> Stream {
        self.stream
    }

    /// Does it strike the next packet?
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
