//! An environment with answers from a function does the same as that function as a policy, bit for
//! bit.

use std::sync::Arc;

use headway_cc::schemes::SCHEMES;
use headway_cc::{Duration, Need, Registry, Scheme, Selection};
use headway_env::{End, EnvSpec, Episode, Pause, Start, Task};
use headway_policy::{AgentSpec, Answer, Interval, Learned, Policy};
use headway_scenario::{Scenario, TraceSpec, TraceStore};
use headway_sim::{Options, Simulation};

const AGENTS: [&str; 5] = [
    r#"{"clock": {"kind": "rtt", "n": 0.5, "estimator": "mean"},
        "observation": {"history": 3, "features": [{"name": "rtt_ratio"}, {"name": "send_ratio"}]},
        "action": {"kind": "continuous", "limit": 5.0, "effect": {"does": "scale-rate", "delta": 0.05}},
        "base": {"kind": "rate", "initial_mbps": 3.0, "min_mbps": 0.1, "max_mbps": 100.0}}"#,
    r#"{"clock": {"kind": "jiffies", "hz": 250.0},
        "observation": {"history": 2, "features": [{"name": "cwnd_packets"}, {"name": "rtt_ms"}]},
        "action": {"kind": "discrete", "choices": [-3.0, -1.0, 0.0, 1.0, 3.0], "effect": {"does": "add-cwnd"}},
        "base": {"kind": "scheme", "name": "cubic"}}"#,
    r#"{"clock": {"kind": "period", "ms": 20.0},
        "observation": {"history": 1, "features": [{"name": "in_flight_packets"}, {"name": "loss"}]},
        "action": {"kind": "continuous", "limit": 1.0, "effect": {"does": "scale-cwnd", "base": 1.2}},
        "base": {"kind": "scheme", "name": "newreno"}}"#,
    r#"{"clock": {"kind": "every-ack"},
        "observation": {"history": 2, "features": [{"name": "cwnd_packets"}, {"name": "rtt_ms"}]},
        "action": {"kind": "discrete", "choices": [-3.0, -1.0, 0.0, 1.0, 3.0], "effect": {"does": "add-cwnd"}},
        "base": {"kind": "scheme", "name": "cubic"}}"#,
    r#"{"clock": {"kind": "chosen", "estimator": "ewma", "least": 0.25, "most": 4.0},
        "observation": {"history": 3, "features": [{"name": "rtt_growth"}, {"name": "interval_ms"}]},
        "action": {"kind": "continuous", "limit": 5.0, "effect": {"does": "scale-rate", "delta": 0.05}},
        "base": {"kind": "rate", "initial_mbps": 3.0, "min_mbps": 0.1, "max_mbps": 100.0}}"#,
];

const SCENARIO: &str = "schema = 1\nname = \"native\"\nseconds = 20\n[bottleneck]\nrate = \"2Mbps..20Mbps log\"\n\
    delay = \"5ms..50ms\"\nqueue = \"0.5bdp..2bdp\"\nloss = \"0..1%\"\n";

/// The host delivers several acknowledgements at once.
const JITTER: &str = "[varies]\nhost_jitter = \"5ms\"\n";

/// An answer that depends on every bit of the observation.
fn answer(observation: &[f32]) -> Answer {
    let bits = observation.iter().fold(17_u32, |hash, x| {
        (hash ^ x.to_bits()).wrapping_mul(0x0100_0193)
    });
    Answer {
        action: (bits % 5) as f32,
        interval: Some((bits % 7) as f32 / 3.0 - 1.0),
    }
}

#[derive(Debug)]
struct Fixed;

impl Policy for Fixed {
    fn decide(&mut self, observation: &[f32], _: &Interval) -> Option<Answer> {
        Some(answer(observation))
    }
}

static NATIVE: Scheme = Scheme::unlisted("native", &[Need::RateSample, Need::Pacing]);

fn native(agent: &Arc<AgentSpec>, latency: Duration) -> Selection {
    let agent = Arc::clone(agent);
    NATIVE.built_by(move |setup| {
        Box::new(Learned::new(Arc::clone(&agent), setup, Fixed, latency).unwrap())
    })
}

#[test]
fn external_answers_match_the_policy() {
    for agent in AGENTS {
        for jitter in ["", JITTER] {
            let scenario = Scenario::parse(&format!("{SCENARIO}{jitter}"), "native").unwrap();
            compare(agent, &scenario);
        }
    }
}

fn compare(agent: &str, scenario: &Scenario) {
    let agent: Arc<AgentSpec> = Arc::new(serde_json::from_str(agent).unwrap());
    for latency in [Duration::ZERO, Duration::from_millis(3)] {
        let spec = EnvSpec {
            agent: Arc::clone(&agent),
            tasks: vec![Task {
                scenario: scenario.clone(),
                weight: 1.0,
            }],
            steps: None,
            length: None,
            patience: Duration::from_secs(60),
            latency,
            start: Start::Spec,
            registry: Registry::new(SCHEMES),
            traces: TraceStore::of([]),
        };
        for seed in 1..4 {
            let mut episode = Episode::new(&spec, seed).unwrap();
            let mut decisions = 0;
            while episode.advance() == Pause::Decision {
                let answer = answer(episode.observation(0));
                episode.answer(0, answer);
                episode.resume();
                decisions += 1;
            }
            // Chosen intervals may be four round trips long.
            let least = if agent.clock.is_chosen() { 50 } else { 100 };
            assert!(decisions > least, "{decisions}");
            assert_eq!(episode.advance(), Pause::End(End::Time));

            let options = Options {
                duration: Duration::from_secs(20),
                warmup: Duration::ZERO,
                seed,
                grid: None,
            };
            let network = scenario.draw(seed);
            let traces = |_: &TraceSpec| Err("none".to_owned());
            let mut run = Simulation::new(
                &network,
                &native(&agent, latency),
                &spec.registry,
                &traces,
                options,
            )
            .unwrap();
            run.run_until(run.end()).unwrap();
            let sender = run.sender_mut(0);
            let counters = *sender.counters();
            let learned = sender.steered::<Learned<Fixed>>().unwrap();
            learned.conclude(headway_cc::Time::ZERO + options.duration);
            assert_eq!(learned.observation(), episode.observation(0));
            assert_eq!(
                counters.sent.get() / network.packet_size.get(),
                episode.packets()
            );
        }
    }
}
