//! `fixtures/tiny-v1` (scripts/make_test_model.py wrote it with NumPy and safetensors' Python), and
//! changed copies of it.

use std::io::{Cursor, Write};
use std::path::PathBuf;

use headway_policy::model::{CARD, Files, GOLDEN, Model, ModelError, WEIGHTS, sha256};
use headway_policy::{ActionSpec, Interval, Policy};
use proptest::prelude::*;

/// The fixture's folder.
pub fn tiny() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/tiny-v1"
    ))
}

/// The files of a model, which tests change.
#[derive(Clone)]
pub struct Folder {
    pub card: String,
    pub weights: Vec<u8>,
    pub golden: Vec<u8>,
}

impl Folder {
    pub fn tiny() -> Folder {
        let read = |name: &str| std::fs::read(tiny().join(name)).expect("the fixture");
        Folder {
            card: String::from_utf8(read(CARD)).expect("a text"),
            weights: read(WEIGHTS),
            golden: read(GOLDEN),
        }
    }

    /// Replaces `old` by `new` in the card.
    pub fn card(mut self, old: &str, new: &str) -> Folder {
        assert!(self.card.contains(old), "{old}");
        self.card = self.card.replacen(old, new, 1);
        self
    }

    /// Changes the weights, and their hash with them.
    pub fn weights(mut self, change: impl FnOnce(&mut Vec<u8>)) -> Folder {
        let before = sha256(&self.weights);
        change(&mut self.weights);
        let after = sha256(&self.weights);
        self.card(&before, &after)
    }

    /// Replaces the golden outputs, and their hash with them.
    pub fn golden(mut self, golden: Vec<u8>) -> Folder {
        let before = sha256(&self.golden);
        self.golden = golden;
        let after = sha256(&self.golden);
        self.card(&before, &after)
    }

    /// Sets the `nth` number of `layers.N.weight`, counted from the end of the weights' file.
    pub fn number_from_end(self, nth: usize, number: f32) -> Folder {
        self.weights(|bytes| {
            let at = bytes.len() - 4 * nth;
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        })
    }

    pub fn load(&self) -> Result<Model, ModelError> {
        let Folder {
            card,
            weights,
            golden,
        } = self;
        let files = Files {
            card: card.as_bytes(),
            weights,
            golden,
        };
        Model::read("m", files)
    }
}

/// A NumPy array: float32 in C order.
pub fn npy(shape: &str, numbers: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
    bytes
}

/// A `.npz` file of these arrays.
pub fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        archive
            .start_file(format!("{name}.npy"), options)
            .expect("a name");
        archive.write_all(bytes).expect("there is room");
    }
    archive.finish().expect("an archive").into_inner()
}

#[test]
fn a_models_answers_match_hand_computed_ones() {
    let model = Model::load(&tiny()).expect("a model");
    assert_eq!(model.card().title(), "tiny-v1");
    assert_eq!(model.parameters(), 4 * 3 + 3 + 3 + 1);
    let (rows, error) = model.golden();
    assert!(rows == 32 && error < 1e-6, "{rows} rows, {error}");
    let mut policy = model.policy();
    // Without queue or loss the answer is -tanh(-1). With a queue of a quarter of an RTT it is 0,
    // and with a loss of a tenth as well -tanh(2).
    for (observation, answer) in [
        ([0.0, 0.0, 0.0, 0.0], 0.761_594_2),
        ([0.0, 0.0, 0.25, 0.0], 0.0),
        ([0.0, 0.0, 0.25, 0.1], -0.964_027_6),
    ] {
        let ours = policy
            .decide(&observation, &Interval::default())
            .expect("an answer")
            .action;
        assert!((ours - answer).abs() < 1e-6, "{observation:?}: {ours}");
    }
}

#[test]
fn the_id_covers_what_decides_and_nothing_else() {
    let id = |folder: Folder| folder.load().expect("a model").id();
    let own = id(Folder::tiny());
    assert!(own.starts_with("tiny-v1@") && own.len() == "tiny-v1@".len() + 12);
    let about = "weights chosen by hand, for tests";
    assert_eq!(own, id(Folder::tiny().card(about, "another text")));
    // With one more decimal of a weight the golden outputs still hold, but the model is another.
    assert_ne!(own, id(Folder::tiny().number_from_end(1, -0.200_001)));
}

#[test]
fn non_finite_outputs_do_nothing_and_are_counted() {
    // Outputs overflow if all three units are near one.
    let rows = [
        ("observations", npy("(1, 4)", &[0.0; 4])),
        ("actions", npy("(1,)", &[0.0])),
    ];
    let mut huge = Folder::tiny().golden(npz(&rows));
    for nth in 1..=3 {
        huge = huge.number_from_end(nth, 3e38);
    }
    // The bias of the first unit is the only number that is not zero if the observation is.
    huge = huge.weights(|bytes| {
        let bias = (-1.0_f32).to_le_bytes();
        let at = bytes.windows(4).position(|w| w == bias).expect("the bias");
        bytes[at..at + 4].fill(0);
    });
    let mut policy = huge.load().expect("a model").policy();
    let wrong: [&[f32]; 5] = [
        &[1.0, 1.0, 1.0, 1.0],
        &[0.0, f32::NAN, 0.0, 0.0],
        &[0.0, 0.0, 0.0, f32::INFINITY],
        &[0.0; 3],
        &[],
    ];
    for (count, observation) in wrong.iter().enumerate() {
        let answer = policy
            .decide(observation, &Interval::default())
            .expect("an answer")
            .action;
        assert!(answer.is_nan(), "{observation:?}: {answer}");
        assert_eq!(policy.refused(), count as u64 + 1);
    }
    assert_eq!(
        policy.decide(&[0.0; 4], &Interval::default()),
        Some(0.0.into()),
        "and then goes on"
    );
    assert!(ActionSpec::NEUTRAL.is_nan());
}

proptest! {
    #[test]
    fn every_observation_gets_a_finite_or_neutral_answer(
        observation in prop::collection::vec(any::<f32>(), 0..6),
    ) {
        let mut policy = Model::load(&tiny()).expect("a model").policy();
        let answer = policy.decide(&observation, &Interval::default()).expect("an answer").action;
        let sound = observation.len() == 4 && observation.iter().all(|x| x.is_finite());
        prop_assert_eq!(answer.is_finite(), sound);
        prop_assert_eq!(policy.refused(), u64::from(!sound));
    }

    #[test]
    fn every_changed_byte_of_weights_or_golden_is_found(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        for name in [WEIGHTS, GOLDEN] {
            let mut folder = Folder::tiny();
            let bytes = if name == WEIGHTS { &mut folder.weights } else { &mut folder.golden };
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            let error = folder.load().expect_err("refused").to_string();
            prop_assert!(error.starts_with(&format!("m/{name}: its SHA-256 is")), "{}", error);
        }
    }

    #[test]
    fn a_changed_card_loads_or_is_refused_in_one_line(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut folder = Folder::tiny();
        let mut bytes = folder.card.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        folder.card = String::from_utf8_lossy(&bytes).into_owned();
        if let Err(error) = folder.load() {
            let text = error.to_string();
            prop_assert!(!text.contains('\n') && text.starts_with("m/"), "{}", text);
        }
    }
}
