//! Records every data packet that arrives in a run, and defines schemes for tests.

use headway_cc::schemes::fixed_window;
use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Feedback, Kind, Param, Rto, Scheme, Sent, Setup,
    Tag, Time, Values,
};
use headway_net::{Body, Packet};
use headway_scenario::Network;
use headway_sim::{Observer, Options};

use crate::networks;

/// A data packet that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub number: u64,
    pub sent: Time,
    pub received: Time,
    pub size: Bytes,
}

#[derive(Default)]
struct Seen(Vec<Delivery>);

impl Observer for Seen {
    fn on_data_arrived(&mut self, now: Time, packet: &Packet) {
        if let Body::Data(segment) = &packet.body
            && packet.flow == 0
        {
            self.0.push(Delivery {
                number: segment.number,
                sent: segment.sent,
                received: now,
                size: Bytes::new(u64::from(packet.size)),
            });
        }
    }
}

/// Every data packet that arrives while the single flow of `network` runs the scheme for `seconds`.
pub fn deliveries(network: &Network, scheme: &str, seconds: f64) -> Vec<Delivery> {
    deliveries_of_seed(network, scheme, seconds, 1)
}

/// Same as `deliveries`, with another seed.
pub fn deliveries_of_seed(
    network: &Network,
    scheme: &str,
    seconds: f64,
    seed: u64,
) -> Vec<Delivery> {
    let options = Options {
        seed,
        ..networks::options(seconds, 0.0)
    };
    let mut seen = Seen::default();
    networks::observed(network, scheme, options, &mut seen)
        .finish()
        .expect("a whole run");
    seen.0
}

const WINDOW: Param = Param {
    name: "window",
    help: "packets",
    kind: Kind::Number {
        default: 20.0,
        min: 1.0,
        max: 1e7,
    },
};

/// A sender that was used for published figures.
pub static SCHEMES: &[Scheme] = &[Scheme {
    name: "sourdough",
    params: &[WINDOW],
    build: |setup, values| Box::new(Sourdough::new(setup, values)),
    ..fixed_window::SCHEME
}];

/// The sender of Stanford's CS 344G contest (`sourdough`), with which the fixed windows were
/// measured: a fixed window, and one packet more whenever nothing was sent or acknowledged for a
/// second. Unlike RFC 6298's, its timer never backs off.
#[derive(Debug)]
struct Sourdough {
    window: Bytes,
    mss: Bytes,
    /// The most bytes in flight during a silence.
    stalled: Option<Bytes>,
    in_flight: Bytes,
    last_event: Time,
}

impl Sourdough {
    const TIMEOUT: Duration = Duration::from_secs(1);

    fn new(setup: &Setup, values: &Values) -> Sourdough {
        Sourdough {
            window: setup.mss.mul_f64(values.number(&WINDOW)),
            mss: setup.mss,
            stalled: None,
            in_flight: Bytes::ZERO,
            last_event: Time::ZERO,
        }
    }
}

impl CongestionControl for Sourdough {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.last_event = sent.now;
        self.in_flight = sent.in_flight;
        Tag::NONE
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.last_event = f.now;
        self.in_flight = f.in_flight;
        self.stalled = None;
    }

    fn on_rto(&mut self, _: &Rto<'_>) {
        self.in_flight = Bytes::ZERO;
        self.stalled = Some(self.mss);
    }

    fn next_timer(&self) -> Time {
        self.last_event + Self::TIMEOUT
    }

    fn on_timer(&mut self, now: Time) {
        self.last_event = now;
        self.stalled = Some(self.in_flight + self.mss);
    }

    fn control(&self) -> Control {
        Control::window(self.stalled.unwrap_or(self.window))
    }

    fn owns_recovery(&self) -> bool {
        true
    }
}
