//! How episodes end, and the measurements of their last steps.

use std::sync::Arc;

use headway_cc::schemes::SCHEMES;
use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Family, Feedback, Registry, Rto, Scheme, Time,
};
use headway_env::{
    Autoreset, End, EnvSpec, Environments, Episode, Outputs, Pause, Start, Task, measurements,
    width,
};
use headway_policy::AgentSpec;
use headway_scenario::{Scenario, TraceStore};

const BOTTLENECK: &str = "schema = 1\nname = \"ends\"\nseconds = 100\n[bottleneck]\nrate = \"8Mbps\"\n\
    delay = \"20ms\"\nqueue = \"50pkt\"\n";

const RTT: &str = r#"{"kind": "rtt", "n": 0.5, "estimator": "mean"}"#;
const EVERY_ACK: &str = r#"{"kind": "every-ack"}"#;

/// An agent that sends at the bottleneck's rate if it answers 0.
fn spec(clock: &str, scenarios: &[&str], steps: Option<u32>, latency: Duration) -> EnvSpec {
    let agent: AgentSpec = serde_json::from_str(&format!(
        r#"{{"clock": {clock},
            "observation": {{"history": 1, "features": [{{"name": "rtt_ratio"}}]}},
            "action": {{"kind": "continuous", "limit": 5.0, "effect": {{"does": "scale-rate", "delta": 0.05}}}},
            "base": {{"kind": "rate", "initial_mbps": 8.0, "min_mbps": 0.1, "max_mbps": 100.0}}}}"#
    ))
    .unwrap();
    let mut registry = Registry::new(SCHEMES);
    registry.add(&STUCK);
    let task = |flows: &&str| Task {
        scenario: Scenario::parse(&format!("{BOTTLENECK}{flows}"), "ends").unwrap(),
        weight: 1.0,
    };
    EnvSpec {
        agent: Arc::new(agent),
        tasks: scenarios.iter().map(task).collect(),
        steps,
        length: None,
        patience: Duration::from_secs(60),
        latency,
        start: Start::Spec,
        registry,
        traces: TraceStore::of([]),
    }
}

/// From one second on, its timer is always due.
#[derive(Debug)]
struct Stuck;

impl CongestionControl for Stuck {
    fn on_feedback(&mut self, _: &Feedback<'_>) {}

    fn on_rto(&mut self, _: &Rto<'_>) {}

    fn control(&self) -> Control {
        Control::window(Bytes::new(1500))
    }

    fn next_timer(&self) -> Time {
        Time::ZERO + Duration::from_secs(1)
    }
}

static STUCK: [Scheme; 1] = [Scheme {
    name: "stuck",
    family: Family::Learned,
    summary: "",
    source: "",
    deviations: &[],
    needs: &[],
    params: &[],
    build: |_, _| Box::new(Stuck),
    receiver: None,
    router: None,
}];

#[test]
fn an_episode_is_done_when_its_data_is() {
    for (clock, latency) in [(RTT, 0), (RTT, 5), (EVERY_ACK, 0), (EVERY_ACK, 5)] {
        let latency = Duration::from_millis(latency);
        let spec = spec(clock, &["[[flow]]\nbytes = \"2MB\"\n"], None, latency);
        let mut episode = Episode::new(&spec, 1).unwrap();
        while episode.advance() == Pause::Decision {
            episode.answer(0, 0.0.into());
            episode.resume();
        }
        assert_eq!(episode.advance(), Pause::End(End::Done));
        let mut row = vec![0.0; width()];
        episode.measure(0, &mut row);
        let (dt, time) = (row[0], row[1]);
        // 2 MB at 8 Mbit/s take 2 s and a round trip; no interval lasts longer than a few of these.
        assert!((2.0..2.4).contains(&time), "{clock} {latency:?}: {time}");
        assert!(dt < 0.2, "{clock} {latency:?}: {dt}");
    }
}

#[test]
fn steps_cover_each_moment_once() {
    let flows = "[[flow]]\n[[flow]]\nstart = \"0.333s\"\n[[flow]]\nbytes = \"200kB\"\n";
    for steps in [Some(50), None] {
        let spec = spec(RTT, &[flows], steps, Duration::ZERO);
        let mut episode = Episode::new(&spec, 3).unwrap();
        let (mut row, mut lengths) = (vec![0.0; width()], [0.0; 3]);
        loop {
            let pause = episode.advance();
            let read: Vec<usize> = match pause {
                Pause::Decision => episode.waiting().to_vec(),
                Pause::End(_) => (0..3).collect(),
            };
            for learner in read {
                episode.measure(learner, &mut row);
                lengths[learner] += row[0];
                let time = row[1];
                assert!(
                    (lengths[learner] - time).abs() < 1e-6,
                    "{learner}: {} of {time} s",
                    lengths[learner]
                );
            }
            let Pause::End(end) = pause else {
                for learner in episode.waiting().to_vec() {
                    episode.answer(learner, 0.0.into());
                }
                episode.resume();
                continue;
            };
            assert_eq!(end, steps.map_or(End::Time, |_| End::Steps));
            break;
        }
    }
}

#[test]
fn an_episode_that_fails_ends_and_the_others_go_on() {
    let flows = [
        "[[flow]]\nbytes = \"1MB\"\n",
        "[[flow]]\n[[flow]]\nscheme = \"stuck\"\n",
    ];
    let spec = Arc::new(spec(RTT, &flows, None, Duration::ZERO));
    let mut environments = Environments::new(Arc::clone(&spec), 4, 1, Some(1)).unwrap();
    let (mut seen, mut last) = ([0.0; 4], [0.0; 4]);
    let (mut rows, mut ends) = (vec![0.0; 4 * width()], [0; 4]);
    environments.reset(&[true; 4], &mut seen).unwrap();
    let mut count = [0; 6];
    for _ in 0..400 {
        let outputs = Outputs {
            observations: &mut seen,
            final_observations: &mut last,
            measurements: &mut rows,
            ends: &mut ends,
        };
        environments
            .step(&[0.0; 4], outputs, Autoreset::SameStep)
            .unwrap();
        for (environment, &end) in ends.iter().enumerate() {
            count[usize::from(end)] += 1;
            if end == End::Failed as u8 {
                let why = environments.failure(environment).unwrap().to_string();
                assert!(why.contains("'stuck'") && why.contains("seed"), "{why}");
            }
        }
    }
    assert!(count[End::Done as usize] > 2, "{count:?}");
    assert!(count[End::Failed as usize] > 2, "{count:?}");
    assert_eq!(count.iter().sum::<i32>(), 4 * 400);
}

/// There are 5 Mbit/s behind 8 that two others share for a while, one of them a second longer; a
/// third flow uses the other direction.
#[test]
fn fair_share_counts_the_running_flows() {
    let text = "schema = 1\nname = \"shared\"\nseconds = 5\n\
        [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbps\"\ndelay = \"5ms\"\nqueue = \"50pkt\"\nduplex = true\n\
        [[link]]\nfrom = \"b\"\nto = \"c\"\nrate = \"5Mbps\"\ndelay = \"5ms\"\nqueue = \"50pkt\"\nduplex = true\n\
        [[flow]]\nfrom = \"a\"\nto = \"c\"\n\
        [[flow]]\nfrom = \"a\"\nto = \"b\"\nscheme = \"cubic\"\nstart = \"1s\"\nstop = \"4s\"\n\
        [[flow]]\nfrom = \"a\"\nto = \"b\"\nscheme = \"vegas\"\nstart = \"2s\"\nstop = \"3s\"\n\
        [[flow]]\nfrom = \"c\"\nto = \"a\"\nscheme = \"cubic\"\n";
    let mut spec = spec(RTT, &[], None, Duration::ZERO);
    spec.tasks = vec![Task {
        scenario: Scenario::parse(text, "shared").unwrap(),
        weight: 1.0,
    }];
    let column = |name| measurements().position(|m| m.name == name).unwrap();
    let (fair, path) = (column("fair_mbps"), column("path_mbps"));
    let mut episode = Episode::new(&spec, 1).unwrap();
    let (mut row, mut steps) = (vec![0.0; width()], [0; 5]);
    while episode.advance() == Pause::Decision {
        episode.measure(0, &mut row);
        let second = row[1] as usize;
        steps[second] += 1;
        // The fair share is that of the tighter link, or a half or a third of the wider one.
        let right = [5.0, 4.0, 8.0 / 3.0, 4.0, 5.0][second];
        assert_eq!((row[fair], row[path]), (right, 5.0), "at {} s", row[1]);
        episode.answer(0, 0.0.into());
        episode.resume();
    }
    assert!(steps.iter().all(|&n| n > 5), "{steps:?}");
}
