//! A complete controller: additive increase, multiplicative decrease by a factor of choice.

use headway_cc::{
    Bytes, CongestionControl, Control, Family, Feedback, Kind, Param, Probe, Recovery, Registry,
    Rto, Scheme, Setup, Values,
};

const DECREASE: Param = Param {
    name: "decrease",
    help: "the window is multiplied by this on congestion",
    kind: Kind::Number {
        default: 0.5,
        min: 0.1,
        max: 0.9,
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "toy",
    family: Family::Loss,
    summary: "one packet more a round trip, a fraction of the window on congestion",
    source: "Chiu and Jain 1989",
    deviations: &[],
    needs: &[],
    params: &[DECREASE],
    build: |setup, values| Box::new(Toy::new(setup, values)),
    receiver: None,
    router: None,
};

/// The state of one flow.
#[derive(Debug)]
pub struct Toy {
    mss: Bytes,
    cwnd: Bytes,
    decrease: f64,
}

impl Toy {
    /// A flow at its initial window.
    pub fn new(setup: &Setup, values: &Values) -> Toy {
        Toy {
            mss: setup.mss,
            cwnd: setup.initial_cwnd,
            decrease: values.number(&DECREASE),
        }
    }

    fn reduce(&mut self, factor: f64) {
        self.cwnd = self.cwnd.mul_f64(factor).max(self.mss);
    }
}

impl CongestionControl for Toy {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if f.congestion.is_some() {
            self.reduce(self.decrease);
        } else if f.cwnd_limited && f.recovery == Recovery::Open {
            self.cwnd += self
                .mss
                .mul_f64(f.acked_bytes.as_f64() / self.cwnd.as_f64());
        }
    }

    fn on_rto(&mut self, _: &Rto<'_>) {
        self.reduce(0.0);
    }

    fn control(&self) -> Control {
        Control::window(self.cwnd)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("cwnd_packets", self.cwnd.as_f64() / self.mss.as_f64());
    }
}

/// In the crate itself this is one line of `schemes/mod.rs`.
pub static SCHEMES: [Scheme; 1] = [SCHEME];

fn main() {
    let setup = Setup::new(Bytes::new(1500), 1);
    match Registry::new(&SCHEMES).select("toy:decrease=0.8") {
        Ok(toy) => println!("{}: {:?}", toy.spec, toy.build(&setup).control()),
        Err(error) => eprintln!("{error}"),
    }
}
