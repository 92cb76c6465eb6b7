//! The traits that a controller, its receiver half and a base controller implement.

use std::any::Any;
use std::fmt::Debug;

use crate::{
    Arrival, Bytes, Duration, Feedback, NetworkView, Param, Rate, Rto, Sent, Stamp, Tag, Time,
};

/// A congestion controller.
///
/// The host calls the `on_*` methods in the order in which things happen and reads
/// [`control`](Self::control) and [`next_timer`](Self::next_timer) after each (after `on_sent` if
/// the scheme declares [`Need::PerSend`](crate::Need::PerSend)); it sends while a whole packet fits
/// into `cwnd` beside what is in flight, no faster than `pacing_rate`. Calls never go back in time.
pub trait CongestionControl: Debug + Send {
    /// A packet leaves. The tag comes back with its acknowledgement or loss.
    fn on_sent(&mut self, _sent: &Sent) -> Tag {
        Tag::NONE
    }

    /// Packets were acknowledged, declared lost, or both.
    fn on_feedback(&mut self, feedback: &Feedback<'_>);

    /// The retransmission timer ran out: everything in flight is taken for lost.
    fn on_rto(&mut self, rto: &Rto<'_>);

    /// Nothing is in flight, nothing has left for `idle`, longer than the retransmission timeout,
    /// and new data is about to leave (RFC 5681 §4.1).
    fn on_idle(&mut self, _now: Time, _idle: Duration) {}

    /// News from inside the network (Owl's PNC and PNA), where there is any.
    fn on_network(&mut self, _now: Time, _view: &NetworkView) {}

    /// When to call [`on_timer`](Self::on_timer) next; [`Time::NEVER`] for not at all.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// The time given by [`next_timer`](Self::next_timer) has come.
    fn on_timer(&mut self, _now: Time) {}

    /// What the sender may do now.
    fn control(&self) -> Control;

    /// What the next packet carries for the routers on its way. If the scheme declares neither
    /// [`Need::EcnEcho`](crate::Need::EcnEcho) nor [`Need::Header`](crate::Need::Header) and this
    /// is the default as the flow begins, it stays that.
    fn stamp(&self) -> Stamp {
        Stamp::default()
    }

    /// Does this controller decide alone how much is sent during loss recovery? If not, a
    /// transport with proportional rate reduction (RFC 6937) spreads the window's reduction.
    fn owns_recovery(&self) -> bool {
        false
    }

    /// Reports named internal values for recordings and plots.
    fn probe(&self, _probe: &mut dyn Probe) {}

    /// Itself, if something outside may steer it (training does); the host reads
    /// [`control`](Self::control) again after that.
    fn steered(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

/// What a sender may do until the next event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// How many bytes may be in flight. Never below one packet.
    pub cwnd: Bytes,
    /// Packets leave no faster than this; `None` leaves the clocking to the acknowledgements.
    pub pacing_rate: Option<Rate>,
    /// How many bytes may leave in one go when paced; zero means one packet.
    pub send_quantum: Bytes,
    /// What a source that can adapt (a video encoder) should produce.
    pub target_bitrate: Option<Rate>,
    /// How many bytes the next packet of new data has; `None` for a full one. Less is for what only
    /// keeps a path awake. A source that produces this many bytes, or this many a second, sends
    /// full packets all the same.
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

/// Takes a controller's named values; units belong in the name (`rtt_ms`).
pub trait Probe {
    /// One value as it is now.
    fn value(&mut self, name: &'static str, value: f64);
}

/// The half of a scheme that runs where the data arrives. Most schemes have none:
/// the transport acknowledges. Sprout infers here; GCC and SCReAM report from here.
pub trait Receiver: Debug + Send {
    /// A data packet has arrived.
    fn on_data(&mut self, arrival: &Arrival);

    /// When to call [`on_timer`](Self::on_timer) next; [`Time::NEVER`] for not at all.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// The time given by [`next_timer`](Self::next_timer) has come.
    fn on_timer(&mut self, _now: Time) {}

    /// Appends a message for the sender to `out` if there is one to send now. Asked after every
    /// call; a message leaves with the acknowledgement, or by itself after a timer.
    fn take_message(&mut self, out: &mut Vec<u8>);
}

/// Where a base controller is in its own life; a learner above acts in
/// [`Phase::CongestionAvoidance`] only (Owl §IV, Orca §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Below ssthresh.
    SlowStart,
    /// At or above ssthresh.
    CongestionAvoidance,
    /// Repairing losses.
    Recovery,
}

/// A controller that another may steer from above: Cubic under Owl and Orca.
pub trait Base: CongestionControl {
    /// Where it is now.
    fn phase(&self) -> Phase;
    /// Where slow start ends; `Bytes::MAX` if nothing has set it yet.
    fn ssthresh(&self) -> Bytes;
    /// Takes over a window chosen above and goes on from there.
    fn set_cwnd(&mut self, now: Time, rtt: Duration, cwnd: Bytes);
    /// From now on the window does not grow by itself at or above ssthresh: its caller does that.
    /// Slow start, losses and timeouts stay this controller's (Owl §VI).
    fn hold(&mut self);
    /// Goes on alone from `cwnd` towards `ssthresh` (`Bytes::MAX`: none is known) as if it had just
    /// begun there: held no more, what it knew of the path forgotten. In recovery what the loss
    /// left stays.
    fn go_alone(&mut self, cwnd: Bytes, ssthresh: Bytes);
}

/// What a controller takes its path for, and how far it goes beyond that: BBR's own variables.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathModel {
    /// The bottleneck's bandwidth as it is estimated; zero before the first sample.
    pub btlbw: Rate,
    /// The round trip's propagation time as it is estimated; zero before the first sample.
    pub rtprop: Duration,
    /// By which `btlbw` is multiplied for the pacing rate.
    pub pacing_gain: f64,
    /// By which the BDP, `btlbw` times `rtprop`, is multiplied for the window.
    pub cwnd_gain: f64,
}

/// A controller whose parameters may be changed while it runs: BBR under a tuner.
pub trait Tunable: CongestionControl {
    /// The parameters that may be changed, with their ranges.
    fn tunables(&self) -> &'static [Param];
    /// Sets one of them to a plain number (a time in seconds, a rate in bit/s), kept within its
    /// range.
    fn tune(&mut self, param: &Param, value: f64);
    /// What it takes its path for: what a tuner tunes by.
    fn model(&self) -> PathModel;
}
