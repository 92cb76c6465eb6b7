//! Schemes of the tests' own. Their receiver's half sees every data packet that arrives.

use std::cell::RefCell;

use headway_cc::schemes::{copa, cubic, fixed_window, newreno, vegas};
use headway_cc::{
    Arrival, Bytes, CongestionControl, Control, Duration, Family, Feedback, Kind, Param, Receiver,
    Rto, Scheme, Sent, Setup, Tag, Time, Values,
};
use headway_scenario::Network;
use headway_sim::Options;

use crate::networks;

/// A data packet that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub number: u64,
    pub sent: Time,
    pub received: Time,
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

/// What the schemes below share.
const BLANK: Scheme = Scheme {
    name: "",
    family: Family::Fixed,
    summary: "of the tests",
    source: "of the tests",
    needs: &[],
    params: &[WINDOW],
    build: |setup, values| Box::new(Sourdough::new(setup, values)),
    receiver: Some(watch),
};

/// Schemes to watch: five of the registry, and two that hosts of published figures ran.
pub static SCHEMES: &[Scheme] = &[
    Scheme {
        name: "watched-fixed-window",
        receiver: Some(watch),
        ..fixed_window::SCHEME
    },
    Scheme {
        name: "watched-newreno",
        receiver: Some(watch),
        ..newreno::SCHEME
    },
    Scheme {
        name: "watched-cubic",
        receiver: Some(watch),
        ..cubic::SCHEME
    },
    Scheme {
        name: "watched-vegas",
        receiver: Some(watch),
        ..vegas::SCHEME
    },
    Scheme {
        name: "watched-copa",
        receiver: Some(watch),
        ..copa::SCHEME
    },
    Scheme {
        name: "watched-sourdough",
        ..BLANK
    },
    Scheme {
        name: "watched-capped-cubic",
        build: |setup, values| {
            Box::new(Capped {
                inner: Box::new(cubic::Cubic::new(
                    setup,
                    &Values::defaults(cubic::SCHEME.params),
                )),
                cap: setup.mss.mul_f64(values.number(&WINDOW)),
            })
        },
        ..BLANK
    },
];

thread_local! {
    /// A simulation runs on one thread, and so does a test.
    static SEEN: RefCell<Vec<Delivery>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
struct Watch;

fn watch(_: &Setup, _: &Values) -> Box<dyn Receiver> {
    Box::new(Watch)
}

impl Receiver for Watch {
    fn on_data(&mut self, arrival: &Arrival) {
        let delivery = Delivery {
            number: arrival.number,
            sent: arrival.sent,
            received: arrival.now,
        };
        SEEN.with_borrow_mut(|seen| seen.push(delivery));
    }

    fn take_message(&mut self, _: &mut Vec<u8>) {}
}

/// Every data packet that arrives while the single flow of `network` runs the scheme, which must
/// be among [`SCHEMES`], for `seconds`.
pub fn deliveries(network: &Network, scheme: &str, seconds: f64) -> Vec<Delivery> {
    deliveries_of_seed(network, scheme, seconds, 1)
}

/// The same of another run.
pub fn deliveries_of_seed(
    network: &Network,
    scheme: &str,
    seconds: f64,
    seed: u64,
) -> Vec<Delivery> {
    SEEN.take();
    let options = Options {
        seed,
        ..networks::options(seconds, 0.0)
    };
    networks::run(network, &format!("watched-{scheme}"), options);
    SEEN.take()
}

/// The sender of Stanford's CS 344G contest (`sourdough`), under which the fixed windows were
/// measured: a fixed window, and one packet more whenever nothing was sent or acknowledged for a
/// second. Unlike RFC 6298's, its timer never backs off.
#[derive(Debug)]
struct Sourdough {
    window: Bytes,
    mss: Bytes,
    /// What may be in flight during a silence.
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

/// A controller whose window is cut at what a socket's buffer allows.
#[derive(Debug)]
struct Capped {
    inner: Box<dyn CongestionControl>,
    cap: Bytes,
}

impl CongestionControl for Capped {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.inner.on_feedback(f);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.inner.on_rto(rto);
    }

    fn control(&self) -> Control {
        Control::window(self.inner.control().cwnd.min(self.cap))
    }
}
