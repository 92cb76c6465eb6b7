//! Fuzzes model folders. A folder has a card, weights and golden outputs, one of which is the
//! input.

use std::path::{Path, PathBuf};

use headway_policy::model::{CARD, Files, GOLDEN, Model, WEIGHTS, sha256};
use headway_policy::{Interval, Policy};

use super::one_line;

/// The folder of the model that tests use.
pub fn fixture() -> PathBuf {
    folder("crates/policy/tests/fixtures/tiny-v1")
}

/// A folder of the repository, wherever this is compiled.
fn folder(path: &str) -> PathBuf {
    let up = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = up.map(|folder| folder.join(path));
    let found = folders.find(|folder| folder.is_dir());
    found.expect("the fixture")
}

/// The first byte chooses a model and a file, which the rest replaces. The card's hashes are made
/// to match, because otherwise they would hide all later checks. A model that loads gives decisions
/// for every observation.
pub fn model(input: &[u8]) {
    let Some((which, rest)) = input.split_first() else {
        return;
    };
    let folder = match which / 3 % 2 {
        0 => fixture(),
        _ => folder("models/aurora-int8-v1"),
    };
    let read = |name: &str| std::fs::read(folder.join(name)).expect("the fixture");
    let [mut card, mut weights, mut golden] = [CARD, WEIGHTS, GOLDEN].map(read);
    let file = match which % 3 {
        0 => &mut card,
        1 => &mut weights,
        _ => &mut golden,
    };
    let before = sha256(file);
    *file = rest.to_vec();
    let after = sha256(file);
    if which % 3 != 0 {
        let text = String::from_utf8(card).expect("the fixture's card");
        card = text.replace(&before, &after).into_bytes();
    }
    let files = Files {
        card: &card,
        weights: &weights,
        golden: &golden,
    };
    let model = match Model::read("model", files) {
        Ok(model) => model,
        Err(error) => return one_line(&error),
    };
    let (seen_before, mut policy) = (Interval::default(), model.policy());
    let seen = model.card().agent.observation.len();
    for number in [0.0, 1.0, -1e30, f32::MAX, f32::NAN] {
        for length in [seen, seen + 1, 0] {
            let answer = policy
                .decide(&vec![number; length], &seen_before)
                .expect("an answer");
            let is_sound = number.is_finite() && length == seen;
            for said in [Some(answer.action), answer.interval].into_iter().flatten() {
                assert!(said.is_nan() || (said.is_finite() && is_sound));
            }
        }
    }
}
