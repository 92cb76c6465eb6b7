//! An untrained model in Owl's form: what its agent sees and learns.

use std::sync::Arc;

use headway_cc::testing::setup;
use headway_cc::{Duration, Need, Registry, Scheme, schemes};
use headway_net::trace::Trace;
use headway_policy::AgentSpec;
use headway_policy::model::{Model, sha256};
use headway_policy::nn::NetSpec;
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Options, Outcome, Simulation};
use serde::Deserialize;

use crate::folder::{Folder, npy, npz, tiny};
use crate::numbers::{network, numbers};

static SCHEME: Scheme = Scheme::unlisted("owl-to-be", &[Need::RateSample]);

const NET: &str = r#"
kind = "mlp"
layers = [24, 32, 7]
activations = ["relu", "identity"]
mask = { features = 12, known = 11, masked = [9, 10] }
"#;

/// Table I, in its order.
const AGENT: &str = r#"
clock = { kind = "jiffies", hz = 250.0 }
base = { kind = "scheme", name = "cubic", grows = false }
action = { kind = "discrete", choices = [-10, -3, -1, 0, 1, 3, 10], effect = { does = "add-cwnd" } }

[observation]
history = 2
features = [
  { name = "time_ms", log = true, scale = 0.1 },
  { name = "cwnd_packets", log = true, scale = 0.2 },
  { name = "rtt_ms", scale = 0.01 },
  { name = "rtt_change_ms", scale = 0.01 },
  { name = "mss_bytes", scale = 0.001 },
  { name = "delivered_packets", log = true },
  { name = "lost_total_packets", log = true },
  { name = "in_flight_packets", log = true, scale = 0.2 },
  { name = "retransmitted_packets", log = true },
  { name = "pnc_packets", log = true, scale = 0.1 },
  { name = "pna" },
  { name = "network_known" },
]
"#;

/// The folder, with `training` in its card.
fn owl(training: &str) -> Folder {
    let table = |text: &str| text.parse::<toml::Table>().expect("TOML");
    let net = NetSpec::deserialize(table(NET)).expect("a network");
    let agent = AgentSpec::read(table(AGENT)).expect("an agent");
    let network = network(&net, 5);

    // The safetensors format: the header's length, the header, the numbers.
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, values) in network.tensors(network.parameters()) {
        let begin = data.len();
        data.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        let about = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert(name, about);
    }
    let header = serde_json::to_string(&header).expect("JSON");
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.bytes().chain(data));

    let observations = numbers(6, 8 * net.inputs(), 1.0);
    let mut outputs = vec![0.0; 8 * net.outputs()];
    for (x, y) in observations
        .chunks(net.inputs())
        .zip(outputs.chunks_mut(net.outputs()))
    {
        network.forward(&mut network.state(), x, y);
    }
    let golden = npz(&[
        ("observations", npy("(8, 24)", &observations)),
        ("outputs", npy("(8, 7)", &outputs)),
    ]);

    let card = toml::toml! {
        format = 1
        spec_version = 1
        name = "owl"
        version = 99
    };
    let mut card = card;
    let hashes = [
        ("agent_hash", agent.hash()),
        ("weights_sha256", sha256(&weights)),
        ("golden_sha256", sha256(&golden)),
    ];
    card.extend(hashes.map(|(key, hash)| (key.to_owned(), hash.into())));
    card.insert("net".to_owned(), table(NET).into());
    card.insert("agent".to_owned(), table(AGENT).into());
    card.insert("training".to_owned(), table(training).into());
    Folder {
        card: toml::to_string(&card).expect("TOML"),
        weights,
        golden,
    }
}

fn model(training: &str) -> Model {
    owl(training).load().expect("a model")
}

#[test]
fn online_learning_uses_the_trainings_settings() {
    let training = "config = \"\"\"\n[dqn]\ngamma = 0.95\n[reward]\nname = \"owl\"\nscale = 2\nregret = 0.5\nfair = 1.0\n\"\"\"";
    let online = model(training).card().training.online();
    assert_eq!((online.gamma, online.learning_rate), (0.95, 3e-7));
    let reward = online.reward;
    assert_eq!(
        (reward.scale, reward.exponent, reward.regret),
        (2.0, 0.0, 0.5)
    );
    // The defaults are Table II's, and the card's own values come first.
    assert_eq!(model("").card().training.online().gamma, 0.93);
    let own = format!("{training}\nonline = {{ gamma = 0.5, every = 3 }}");
    let online = model(&own).card().training.online();
    assert_eq!(
        (online.gamma, online.every, online.reward.scale),
        (0.5, 3, 1.0)
    );
    for (training, says) in [
        (
            "online = { gamma = 2 }",
            "training.online: gamma is 2, must be 0 to below 1",
        ),
        ("online = { gama = 0.5 }", "unknown field `gama`"),
    ] {
        let error = owl(training).load().expect_err("refused").to_string();
        assert!(
            error.contains("card.toml: ") && error.contains(says),
            "{error}"
        );
    }
}

#[test]
fn only_discrete_actions_are_learned_online() {
    let continuous = Model::load(&tiny()).expect("a model");
    let error = continuous
        .learning_policy(&setup(), [0.5, 0.5], 0.0)
        .expect_err("refused");
    assert_eq!(
        error.to_string(),
        "online learning: the action is continuous, must be one of several choices"
    );
}

/// Five switches in a row with some background traffic. `known` says how many are known.
fn simulate(known: &str, seed: u64, online: Option<f64>) -> Outcome {
    let text = format!(
        "schema = 1\nname = \"path\"\nseconds = 8\nflow = [{{ from = \"sender\", to = \"receiver\" }}]\nswitches = {{ known = {known} }}\n\
         topology = {{ kind = \"chain\", switches = 5, rate = \"20Mbps\", delay = \"2ms\", queue = \"50kB\", load = \"20%\" }}\n"
    );
    let scenario = Scenario::parse(&text, "path").expect("a scenario");
    let model = Arc::new(model(
        "online = { warmup = 100, every = 4, learning_rate = 0.001 }",
    ));
    let latency = Duration::from_micros(26);
    let selection = SCHEME.built_by(move |setup| match online {
        None => Box::new(
            model
                .controller(setup, model.policy(), latency)
                .expect("an agent"),
        ),
        Some(epsilon) => {
            let policy = model
                .learning_policy(setup, [0.5, 0.5], epsilon)
                .expect("choices");
            Box::new(model.controller(setup, policy, latency).expect("an agent"))
        }
    });
    let registry = Registry::new(schemes::SCHEMES);
    let traces = |_: &TraceSpec| -> Result<Arc<Trace>, String> { Err("no traces".to_owned()) };
    let options = Options {
        duration: Duration::from_secs(8),
        warmup: Duration::ZERO,
        seed,
        grid: None,
    };
    let simulation = Simulation::new(
        &scenario.draw(seed),
        &selection,
        &registry,
        &traces,
        options,
    );
    simulation.expect("a run").finish().expect("a run")
}

/// With any known share, frozen or learning, it runs, and the same seed gives the same bits.
#[test]
fn owl_runs_with_any_known_share_and_learns_the_same_from_one_seed() {
    let frozen = |known| simulate(known, 1, None);
    let learning = |epsilon| simulate("\"60%\"", 1, Some(epsilon));
    assert!(learning(0.05) == learning(0.05));
    assert!(learning(0.0) == learning(0.0));
    for (other, why) in [
        (frozen("\"60%\""), "nothing was learned"),
        (learning(0.05), "no chance"),
    ] {
        assert!(
            other.rows[0].metrics != learning(0.0).rows[0].metrics,
            "{why}"
        );
    }
    for known in ["0", "2", "5"] {
        let throughput = frozen(known).rows[0].metrics.throughput_mbps;
        assert!(
            throughput.is_some_and(|mbps| mbps > 0.01),
            "{known}: {throughput:?}"
        );
    }
}
