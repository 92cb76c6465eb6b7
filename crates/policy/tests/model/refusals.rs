//! Everything that can be wrong with a model. Each error is one line that names the file and what
//! would be right.

use headway_policy::AgentSpec;
use headway_policy::model::{Model, WEIGHTS};

use crate::folder::{Folder, npy, npz, tiny};

/// Loads the folder, and returns the error.
fn refused(folder: Folder) -> String {
    let error = folder.load().expect_err("refused").to_string();
    assert!(!error.contains('\n') && error.len() < 500, "{error}");
    error
}

fn says(folder: Folder, parts: &[&str]) {
    let error = refused(folder);
    for part in parts {
        assert!(error.contains(part), "'{part}' is not in: {error}");
    }
}

/// The same agent with another history, with a matching hash.
fn with_history(history: usize) -> Folder {
    let folder = Folder::tiny();
    let mut agent: AgentSpec = folder.load().expect("a model").card().agent.clone();
    let old = agent.hash();
    agent.observation.history = history;
    let history = format!("history = {history}");
    folder
        .card(&old, &agent.hash())
        .card("history = 2", &history)
}

#[test]
fn a_card_of_another_version_is_refused() {
    let folder = Folder::tiny();
    says(
        folder.clone().card("spec_version = 1", "spec_version = 99"),
        &["m/card.toml: spec_version is 99, this headway reads features and actions of version 1"],
    );
    says(
        folder.clone().card("format = 1", "format = 2"),
        &["m/card.toml: format is 2, this headway reads format 1"],
    );
    says(
        folder.card("format = 1", ""),
        &["m/card.toml: format is missing, must be 1"],
    );
}

#[test]
fn a_wrong_card_is_refused() {
    let folder = Folder::tiny();
    let cases: [(&str, &str, &[&str]); 9] = [
        ("format = 1", "format = ", &["line 1:"]),
        (
            "n = 1.0",
            "m = 1.0",
            &["card.toml: line", "unknown field `m`", "`n`"],
        ),
        (
            "\"rtt_ratio\"",
            "\"rtt_ration\"",
            &["agent:", "did you mean 'rtt_ratio'?"],
        ),
        (
            "history = 2",
            "history = 3",
            &["agent_hash is", "changed after training"],
        ),
        (
            "name = \"tiny\"",
            "name = \"../tiny\"",
            &["name is \"../tiny\"", "small letters"],
        ),
        (
            "version = 1\ndesc",
            "version = 0\ndesc",
            &["version is 0, must be 1 or more"],
        ),
        (
            "    3,\n",
            "    4,\n",
            &[
                "weights.safetensors: tensor layers.0.weight",
                "[3, 4]",
                "[4, 4]",
            ],
        ),
        ("    \"tanh\",\n", "", &["net:", "activations"]),
        ("    1,\n", "    2,\n", &["needs 1 outputs", "[net] has 2"]),
    ];
    for (old, new, parts) in cases {
        says(folder.clone().card(old, new), parts);
    }
}

#[test]
fn a_malformed_training_range_is_refused() {
    let with_range = |line: &str| {
        let right = "rate_mbps = [1.0, 9.0]\nrtt_ms = [10.0, 90.0]\nloss = [0.0, 0.01]\n";
        let key = line.split('=').next().expect("a key");
        let others: String = (right.lines())
            .filter(|other| !other.starts_with(key))
            .map(|other| format!("{other}\n"))
            .collect();
        let mut folder = Folder::tiny();
        folder
            .card
            .push_str(&format!("\n[training.range]\n{others}{line}\n"));
        folder
    };
    for right in ["buffer_ms = [5.0, 5.0]", "loss = [0.0, 1.0]"] {
        let model = with_range(right).load().expect(right);
        assert!(model.card().training.range.is_some());
    }
    for (line, parts) in [
        (
            "rate_mbps = [9.0, 1.0]",
            [
                "rate_mbps is [9, 1]",
                "the least and the most, finite and 0 or more",
            ],
        ),
        (
            "rtt_ms = [-1.0, 90.0]",
            ["rtt_ms is [-1, 90]", "finite and 0 or more"],
        ),
        (
            "rate_mbps = [1.0, inf]",
            ["rate_mbps is [1, inf]", "finite and 0 or more"],
        ),
        (
            "buffer_ms = [nan, 9.0]",
            ["buffer_ms is [NaN, 9]", "finite and 0 or more"],
        ),
        ("loss = [0.0, 2.0]", ["loss is [0, 2]", "from 0 to 1"]),
        ("rtt_ms = [1.0]", ["card.toml: line", "length"]),
        ("rtt_ms = \"fast\"", ["card.toml: line", "invalid type"]),
        ("rate = [1.0, 2.0]", ["card.toml: line", "rate"]),
    ] {
        says(with_range(line), &parts);
    }
}

#[test]
fn an_observation_of_the_wrong_size_is_refused() {
    says(
        with_history(3),
        &[
            "m/card.toml: an observation has 6 numbers",
            "but [net] takes 4",
            "must be the same",
        ],
    );
}

#[test]
fn a_mask_that_does_not_fit_the_observation_is_refused() {
    for (mask, parts) in [
        (
            "features = 4\nknown = 0\nmasked = [1]",
            ["net.mask: features is 4", "an interval has 2"],
        ),
        (
            "features = 2\nknown = 1\nmasked = [0]",
            ["net.mask: known is 1, which is loss", "network_known"],
        ),
        (
            "features = 3\nknown = 1\nmasked = [0]",
            ["net.mask: features is 3", "divide the 4 inputs"],
        ),
    ] {
        let net = format!("[net.mask]\n{mask}\n\n[agent.clock]");
        says(Folder::tiny().card("[agent.clock]", &net), &parts);
    }
}

#[test]
fn truncated_or_swapped_weights_are_refused() {
    let mut folder = Folder::tiny();
    folder.weights.truncate(100);
    says(
        folder,
        &[
            "m/weights.safetensors: its SHA-256 is",
            "truncated, or changed",
        ],
    );
    let truncated = Folder::tiny().weights(|bytes| bytes.truncate(100));
    says(
        truncated,
        &["m/weights.safetensors: not a whole safetensors file"],
    );
    says(
        Folder::tiny().weights(Vec::clear),
        &["m/weights.safetensors: not a whole safetensors file"],
    );
}

#[test]
fn non_finite_weights_are_refused() {
    for number in [f32::NAN, f32::INFINITY] {
        says(
            Folder::tiny().number_from_end(1, number),
            &[
                "m/weights.safetensors: tensor layers.1.weight",
                &number.to_string(),
                "must be finite",
            ],
        );
    }
}

#[test]
fn missing_extra_or_mistyped_tensors_are_refused() {
    let header = |old: &'static str, new: &'static str| {
        assert_eq!(old.len(), new.len());
        Folder::tiny().weights(|bytes| {
            let at = bytes.windows(old.len()).position(|w| w == old.as_bytes());
            let at = at.expect("the header's text");
            bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
        })
    };
    says(
        header("layers.1.bias", "layers.7.bias"),
        &[
            "tensor \"layers.7.bias\" is not in the network",
            "did you mean 'layers.0.bias'?",
        ],
    );
    // The card's network has one more layer than the file.
    let deeper = Folder::tiny().card("    1,\n", "    1,\n    1,\n");
    says(
        deeper.card(
            "    \"identity\",\n",
            "    \"identity\",\n    \"identity\",\n",
        ),
        &["tensor layers.2.weight is missing", "[1, 1]"],
    );
    says(
        header("\"F32\"", "\"I32\""),
        &["tensor layers.", "is I32", "must be F32"],
    );
}

#[test]
fn golden_outputs_of_another_network_are_refused() {
    let observations = || ("observations", npy("(1, 4)", &[0.0; 4]));
    let cases: [(Vec<u8>, &str); 9] = [
        (b"PK".to_vec(), "not a whole .npz file"),
        (npz(&[]), "observations are missing"),
        (
            npz(&[observations()]),
            "needs observations with outputs, actions or both",
        ),
        (
            npz(&[observations(), ("outputs", npy("(1, 1)", &[0.77]))]),
            "row 0: outputs 0.77 in the file, 0.76159",
        ),
        (
            npz(&[observations(), ("actions", npy("(1,)", &[f32::NAN]))]),
            "row 0: actions NaN in the file",
        ),
        (
            npz(&[observations(), ("outputs", npy("(2, 1)", &[0.0; 2]))]),
            "2 outputs for 1 observations",
        ),
        (
            npz(&[("observations", npy("(1, 3)", &[0.0; 3]))]),
            "observations: rows of 3 numbers, must be of 4",
        ),
        (
            npz(&[("observations", npy("(4294967296, 4)", &[0.0; 4]))]),
            "observations: 16 bytes for shape [4294967296, 4]",
        ),
        (
            npz(&[("observations", npy("(1, 4)", &[0.0; 4])[..20].to_vec())]),
            "observations: not a whole .npy array; write it with numpy.savez",
        ),
    ];
    for (golden, part) in cases {
        says(Folder::tiny().golden(golden), &["m/golden.npz: ", part]);
    }
}

#[test]
fn missing_folders_and_files_are_refused() {
    let load = |path: &std::path::Path| Model::load(path).expect_err("refused").to_string();
    assert!(load(&tiny().join("nowhere")).contains("no such folder"));
    assert!(load(&tiny().join("..")).contains("card.toml: cannot be read"));
    let place = std::env::temp_dir().join(format!("headway-model-{}", std::process::id()));
    std::fs::create_dir_all(place.join(WEIGHTS)).expect("a folder");
    std::fs::copy(tiny().join("card.toml"), place.join("card.toml")).expect("a copy");
    let error = load(&place);
    std::fs::remove_dir_all(&place).expect("removed");
    assert!(
        error.ends_with("weights.safetensors: not a file"),
        "{error}"
    );
}
