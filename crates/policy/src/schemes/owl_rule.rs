//! The rule that Owl's network imitates, as a controller of its own. A comparison with it shows
//! whether the network is better.

use std::sync::{Arc, LazyLock};

use headway_cc::{CongestionControl, Family, Kind, Need, Param, Scheme, Setup, Values};

use super::GUARD;
use super::owl::{LATENCY, guarded};
use crate::{
    ActionSpec, AgentSpec, Answer, BaseSpec, ClockSpec, Effect, FeatureUse, Interval, Learned,
    ObservationSpec, Policy,
};

/// The value of `[dqn.guide]` in `owl-v1`'s training, as are the numbers below.
const PACKETS: Param = Param {
    name: "packets",
    help: "packets in flight above the BDP",
    kind: Kind::Number {
        default: 2.5,
        min: 0.0,
        max: 1e4,
    },
};
/// The age of the minimum RTT, in seconds, at which the queue is drained. The minimum RTT covers
/// the last 10 s, and a standing queue would become part of it.
const DRAIN_AFTER_S: f64 = 9.0;
/// The window while the queue is drained, as a share of the BDP.
const DRAINED: f64 = 0.95;
/// The recent loss rate above which the window grows by one packet at a time.
const CAREFUL_ABOVE: f64 = 0.001;
/// The steps that Owl may add to its window every 4 ms (section IV-A).
const CHOICES: [f64; 7] = [-10.0, -3.0, -1.0, 0.0, 1.0, 3.0, 10.0];

/// The rule that `owl-v1` imitates.
pub const SCHEME: Scheme = Scheme {
    name: "owl-rule",
    family: Family::Model,
    summary: "the rule that Owl's network imitates: a window of the peak throughput times the minimum RTT, and some packets",
    source: "the rule of `[dqn.guide]` in owl-v1's training (docs/decisions/0031-training-owl.md)",
    deviations: &[
        "in training, the rule also added a queue when other flows shared the path, which it knew from the path's capacity. A sender does not know the capacity, so this controller does not add it",
    ],
    needs: &[Need::RateSample],
    params: &[PACKETS, LATENCY, GUARD],
    build,
    receiver: None,
    router: None,
};

/// Owl's agent. Its observation only makes the monitor average losses.
static AGENT: LazyLock<Arc<AgentSpec>> = LazyLock::new(|| {
    Arc::new(AgentSpec {
        clock: ClockSpec::Jiffies { hz: 250.0 },
        observation: ObservationSpec {
            history: 1,
            rows: 1,
            features: vec![FeatureUse::plain("loss_ewma256")],
        },
        action: ActionSpec::Discrete {
            effect: Effect::AddCwnd,
            choices: CHOICES.to_vec(),
        },
        base: BaseSpec::Scheme {
            name: "cubic:hystart=classic".to_owned(),
            grows: false,
        },
    })
});

fn build(setup: &Setup, values: &Values) -> Box<dyn CongestionControl> {
    let rule = Rule {
        packets: values.number(&PACKETS),
    };
    let made = Learned::new(Arc::clone(&AGENT), setup, rule, values.time(&LATENCY));
    guarded(made.expect("a test builds it"), values)
}

/// Decides by the rule.
#[derive(Debug)]
struct Rule {
    packets: f64,
}

impl Policy for Rule {
    fn decide(&mut self, _: &[f32], interval: &Interval) -> Option<Answer> {
        let held = interval.peak_throughput * f64::from(interval.min_rtt_10s_us) * 1e-6;
        if held <= 0.0 {
            return Some(Answer::NEUTRAL);
        }
        let cwnd = f64::from(interval.latest.cwnd);
        let is_old = interval.min_rtt_10s_age.as_secs_f64() > DRAIN_AFTER_S;
        let mut target = match is_old {
            true => DRAINED * held,
            false => held + self.packets,
        };
        if interval.averages.loss.slow > CAREFUL_ABOVE {
            target = target.min(cwnd + 1.0);
        }
        Some(Answer::from(nearest(target - cwnd)))
    }
}

/// The index of the nearest choice; the first if several are equally near.
fn nearest(packets: f64) -> f32 {
    let distance = |choice: &f64| (choice - packets).abs();
    let order = |a: &(usize, &f64), b: &(usize, &f64)| distance(a.1).total_cmp(&distance(b.1));
    let found = CHOICES.iter().enumerate().min_by(order);
    found.map_or(0.0, |(index, _)| index as f32)
}

#[cfg(test)]
mod tests {
    use headway_cc::Duration;

    use super::*;
    use crate::Record;
    use crate::model::shipped;

    /// The packets that the rule adds to a window of `cwnd` packets on a path with a BDP of 100
    /// packets.
    fn added(cwnd: u32, min_rtt_age: Duration, loss: f64) -> f64 {
        let mut interval = Interval {
            peak_throughput: 2000.0,
            min_rtt_10s_us: 50_000,
            min_rtt_10s_age: min_rtt_age,
            latest: Record {
                cwnd,
                ..Record::default()
            },
            ..Interval::default()
        };
        interval.averages.loss.slow = loss;
        let answer = Rule { packets: 2.5 }.decide(&[], &interval);
        CHOICES[answer.expect("it answers").action as usize]
    }

    #[test]
    fn the_window_is_the_bdp_plus_some_packets() {
        let fresh = Duration::ZERO;
        let cases = [
            (50, 10.0),
            (99, 3.0),
            (102, 0.0),
            (103, -1.0),
            (104, -1.0),
            (140, -10.0),
        ];
        for (cwnd, packets) in cases {
            assert_eq!(added(cwnd, fresh, 0.0), packets, "{cwnd}");
        }
        // After losses the window grows by single packets, and shrinks as before.
        assert_eq!(added(50, fresh, 0.002), 1.0);
        assert_eq!(added(140, fresh, 0.002), -10.0);
        // The queue is drained before the minimum RTT is forgotten.
        let (at, after) = (Duration::from_secs(9), Duration::from_millis(9010));
        assert_eq!([added(102, at, 0.0), added(102, after, 0.0)], [0.0, -10.0]);
    }

    #[test]
    fn agent_and_numbers_match_owls_training() {
        let one = shipped().iter().find(|one| one.title == "owl-v1");
        let model = one.expect("it ships").model().expect("a model");
        let card = model.card();
        let config: toml::Table = (card.training.more["config"].as_str())
            .and_then(|text| text.parse().ok())
            .expect("what it was trained by");
        let guide = |key: &str| config["dqn"]["guide"][key].as_float().expect(key);
        let Kind::Number { default, .. } = PACKETS.kind else {
            panic!("a number");
        };
        assert_eq!(guide("packets"), default);
        assert_eq!(guide("drain_after_s"), DRAIN_AFTER_S);
        assert_eq!(guide("drained"), DRAINED);
        assert_eq!(guide("careful_above"), CAREFUL_ABOVE);
        let agent = &card.agent;
        assert_eq!(
            (&agent.clock, &agent.action, &agent.base),
            (&AGENT.clock, &AGENT.action, &AGENT.base)
        );
    }

    #[test]
    fn owl_rule_does_nothing_before_the_first_measurement() {
        let answer = Rule { packets: 2.5 }.decide(&[], &Interval::default());
        assert!(answer.expect("it answers").action.is_nan());
    }
}
