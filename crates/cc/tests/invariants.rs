//! Every scheme, with every choice of its parameters, survives any consistent sequence of a flow's
//! events.

use headway_cc::testing::{MSS, drive, setup};
use headway_cc::{Kind, Registry, Selection, schemes};
use proptest::prelude::*;

#[path = "../examples/toy.rs"]
#[allow(dead_code)]
mod toy;

/// The defaults, then each value of each parameter that offers words or a range.
fn specs(registry: &Registry) -> Vec<Selection> {
    let mut specs = Vec::new();
    for scheme in registry.iter() {
        specs.push(scheme.name.to_owned());
        let batched = format!("batched-{}:interval=0.25rtt", scheme.name);
        if registry.select(&batched).is_ok() {
            specs.push(batched);
        }
        for param in scheme.params {
            let mut with =
                |value: String| specs.push(format!("{}:{}={value}", scheme.name, param.name));
            match param.kind {
                Kind::Choice(words) => words.iter().for_each(|w| with((*w).to_owned())),
                Kind::Switch => ["off", "on"]
                    .map(|w| with(w.to_owned()))
                    .into_iter()
                    .collect(),
                Kind::Number { min, max, .. } => {
                    [min, max].iter().for_each(|n| with(n.to_string()))
                }
                Kind::Count { min, max, .. } => [min, max].iter().for_each(|n| with(n.to_string())),
                Kind::Time { min, max, .. } => [min, max]
                    .iter()
                    .for_each(|d| with(format!("{}ns", d.as_nanos()))),
                Kind::Rate { min, max, .. } => [min, max]
                    .iter()
                    .for_each(|r| with(format!("{}bps", r.as_bps()))),
                Kind::Loaded { .. } => {}
            }
        }
    }
    specs
        .iter()
        .map(|s| registry.select(s).unwrap_or_else(|e| panic!("{s}: {e}")))
        .collect()
}

fn registry() -> Registry {
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(&toy::SCHEMES);
    registry
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_scheme_keeps_its_invariants(script in prop::collection::vec(any::<u8>(), 0..1200)) {
        for selection in specs(&registry()) {
            let (sender, half) = (selection.build(&setup()), selection.build_receiver(&setup()));
            let lead = std::panic::AssertUnwindSafe(|| drive(sender, half, &script));
            let run = std::panic::catch_unwind(lead);
            prop_assert!(run.is_ok(), "{}", selection.spec);
        }
    }
}

/// Controllers that break invariants, to show that the model finds them.
mod broken {
    use super::*;
    use headway_cc::{
        Arrival, Bytes, CongestionControl, Control, Feedback, Rate, Receiver, Rto, Time,
    };

    #[derive(Debug)]
    struct Broken {
        control: Control,
        timer: Time,
    }

    impl CongestionControl for Broken {
        fn on_feedback(&mut self, _: &Feedback<'_>) {}
        fn on_rto(&mut self, _: &Rto<'_>) {
            self.control.cwnd = self.control.cwnd.saturating_sub(MSS);
        }
        fn next_timer(&self) -> Time {
            self.timer
        }
        fn control(&self) -> Control {
            self.control
        }
    }

    fn caught(control: Control, timer: Time, script: &[u8]) -> bool {
        std::panic::catch_unwind(|| drive(Box::new(Broken { control, timer }), None, script))
            .is_err()
    }

    #[test]
    fn broken_controllers_are_caught() {
        let (window, never) = (Control::window(MSS * 2), Time::NEVER);
        let time_out = [9, 0];
        assert!(!caught(window, never, &time_out));
        assert!(
            caught(window, never, &[9, 0, 9, 0]),
            "window below a packet"
        );
        assert!(
            caught(Control::paced(Bytes::MAX, Rate::ZERO), never, &[]),
            "no rate"
        );
        assert!(
            caught(Control::paced(Bytes::MAX, Rate::MAX), never, &[]),
            "no end of rate"
        );
        assert!(caught(window, Time::ZERO, &[12, 0]), "timer that stays due");
    }

    #[derive(Debug)]
    struct BrokenHalf {
        says: usize,
        timer: Time,
    }

    impl Receiver for BrokenHalf {
        fn on_data(&mut self, _: &Arrival) {}
        fn next_timer(&self) -> Time {
            self.timer
        }
        fn take_message(&mut self, out: &mut Vec<u8>) {
            out.resize(out.len() + self.says, 0);
        }
    }

    #[test]
    fn broken_receivers_are_caught() {
        let is_caught = |says, timer| {
            let broken = Broken {
                control: Control::window(MSS * 2),
                timer: Time::NEVER,
            };
            let half = Box::new(BrokenHalf { says, timer });
            let lead = || drive(Box::new(broken), Some(half), &[0, 1, 3, 10, 3, 0]);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(lead)).is_err()
        };
        assert!(!is_caught(100, Time::NEVER));
        assert!(is_caught(2000, Time::NEVER), "no packet holds its message");
        assert!(is_caught(0, Time::ZERO), "timer that stays due");
    }
}
