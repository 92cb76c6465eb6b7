//! The traits that a controller, its receiver half and a base controller implement.

use std::any::Any;
use std::fmt::Debug;

use crate::{
    Arrival, Bytes, Duration, Feedback, NetworkView, Param, Rate, Rto, Sent, Stamp, Tag, Time,
};

/// A congestion controller.
///
/// The host calls the `on_*` methods in the order of events, and reads [`control`](Self::control)
/// and [`next_timer`](Self::next_timer) after each (after `on_sent` only if the scheme declares
/// [`Need::PerSend`](crate::Need::PerSend)). It sends while `cwnd` has room for a whole packet
/// besides what is in flight, no faster than `pacing_rate`. Time never goes back between calls.
pub trait CongestionControl: Debug + Send {
    /// A packet was sent. The tag comes back with its acknowledgement or loss.
    fn on_sent(&mut self, _sent: &Sent) -> Tag {
        Tag::NONE
    }

    /// Packets were acknowledged, declared lost, or both.
    fn on_feedback(&mut self, feedback: &Feedback<'_>);

    /// The retransmission timer ran out. Everything in flight is taken for lost.
    fn on_rto(&mut self, rto: &Rto<'_>);

    /// New data is about to be sent after `idle`, a time without packets in flight that is longer
    /// than the retransmission timeout (RFC 5681 §4.1).
    fn on_idle(&mut self, _now: Time, _idle: Duration) {}

    /// A report of the network's switches has come (Owl's PNC and PNA).
    fn on_network(&mut self, _now: Time, _view: &NetworkView) {}

    /// The time of the next call of [`on_timer`](Self::on_timer); [`Time::NEVER`] for none.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// The time of [`next_timer`](Self::next_timer) has come.
    fn on_timer(&mut self, _now: Time) {}

    /// What the sender may do now.
    fn control(&self) -> Control;

    /// What the next packet carries for routers. If the scheme declares neither
    /// [`Need::EcnEcho`](crate::Need::EcnEcho) nor [`Need::Header`](crate::Need::Header), and this
    /// is the default when the flow begins, it must not change.
    fn stamp(&self) -> Stamp {
        Stamp::default()
    }

    /// Does this controller alone decide how much is sent during loss recovery? If not, a transport
    /// with proportional rate reduction (RFC 6937) spreads the window's reduction.
    fn owns_recovery(&self) -> bool {
        false
    }

    /// Reports named internal values for recordings and plots.
    fn probe(&self, _probe: &mut dyn Probe) {}

    /// The controller itself, if something outside may steer it, as training does. The host then
    /// reads [`control`](Self::control) again.
    fn steered(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

/// What a sender may do until the next event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// The bytes that may be in flight; at least one packet.
    pub cwnd: Bytes,
    /// The rate of sending; `None` leaves the timing to acknowledgements.
    pub pacing_rate: Option<Rate>,
    /// The bytes that may leave at once when paced; zero means one packet.
    pub send_quantum: Bytes,
    /// The bitrate for a source that can adapt, such as a video encoder.
    pub target_bitrate: Option<Rate>,
    /// The size of the next packet of new data; `None` for a full one. A smaller size is for
    /// packets that only keep a path active. A source with a fixed number of bytes, or with a
    /// bitrate, sends full packets all the same.
    pub segment: Option<Bytes>,
}

impl Control {
    /// A window alone, clocked by acknowledgements.
    #[inline]
    pub const fn window(cwnd: Bytes) -> Control {
        Control {
            cwnd,
            pacing_rate: None,
            send_quantum: Bytes::ZERO,
            target_bitrate: None,
            segment: None,
        }
    }

    /// A window and a pacing rate, one packet at a time.
    #[inline]
    pub const fn paced(cwnd: Bytes, rate: Rate) -> Control {
        Control {
            cwnd,
            pacing_rate: Some(rate),
            send_quantum: Bytes::ZERO,
            target_bitrate: None,
            segment: None,
        }
    }
}

/// Takes a controller's named values. A name ends with its unit (`rtt_ms`).
pub trait Probe {
    /// Takes one current value.
    fn value(&mut self, name: &'static str, value: f64);
}

/// The half of a scheme at the receiver. Most schemes have none, since the transport acknowledges.
/// Sprout estimates the link here; GCC and SCReAM send reports from here.
pub trait Receiver: Debug + Send {
    /// A data packet has arrived.
    fn on_data(&mut self, arrival: &Arrival);

    /// The time of the next call of [`on_timer`](Self::on_timer); [`Time::NEVER`] for none.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// The time of [`next_timer`](Self::next_timer) has come.
    fn on_timer(&mut self, _now: Time) {}

    /// Appends a message for the sender to `out` if one is due. The host calls this after every
    /// other call. A message leaves with the acknowledgement, or by itself after a timer.
    fn take_message(&mut self, out: &mut Vec<u8>);
}

/// The phase of a base controller. A policy acts in [`Phase::CongestionAvoidance`] only (Owl §IV,
/// Orca §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The window is below ssthresh.
    SlowStart,
    /// The window is at or above ssthresh.
    CongestionAvoidance,
    /// Losses are being repaired.
    Recovery,
}

/// A controller whose window a policy may steer, such as Cubic under Owl and Orca.
pub trait Base: CongestionControl {
    /// The current phase.
    fn phase(&self) -> Phase;
    /// The slow-start threshold; `Bytes::MAX` if none is set.
    fn ssthresh(&self) -> Bytes;
    /// Sets the window to a policy's choice, and goes on from there.
    fn set_cwnd(&mut self, now: Time, rtt: Duration, cwnd: Bytes);
    /// From now on the window does not grow by itself at or above ssthresh, because a policy steers
    /// it there. Slow start, losses and timeouts stay this controller's (Owl §VI).
    fn hold(&mut self);
    /// Goes on without a policy from `cwnd` towards `ssthresh` (`Bytes::MAX` if none is known) as
    /// if the flow had just begun. This ends `hold` and clears what was known of the path. In
    /// recovery the window that the loss left stays.
    fn go_alone(&mut self, cwnd: Bytes, ssthresh: Bytes);
}

/// A controller's model of its path, and its gains: BBR's own variables.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathModel {
    /// The estimate of the bottleneck's bandwidth; zero before the first sample.
    pub btlbw: Rate,
    /// The estimate of the base RTT; zero before the first sample.
    pub rtprop: Duration,
    /// The factor of `btlbw` for the pacing rate.
    pub pacing_gain: f64,
    /// The factor of the BDP, `btlbw` times `rtprop`, for the window.
    pub cwnd_gain: f64,
}

/// A controller whose parameters may be changed while it runs, such as BBR under a tuner.
pub trait Tunable: CongestionControl {
    /// The parameters that may be changed, with their ranges.
    fn tunables(&self) -> &'static [Param];
    /// Sets one of them to a plain number (a time in seconds, a rate in bit/s), bounded to its
    /// range.
    fn tune(&mut self, param: &Param, value: f64);
    /// The controller's model of its path, which a tuner observes.
    fn model(&self) -> PathModel;
}
