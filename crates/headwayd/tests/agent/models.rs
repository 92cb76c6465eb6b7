//! Bad models, and models that hold the window still, by which a test replaces a policy's model.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use headway_cc::Stream;
use headway_policy::model::{CARD, GOLDEN, WEIGHTS, sha256};

pub use crate::folder::Folder;

/// The behaviour of a model's only layer.
#[derive(Clone, Copy, Debug)]
pub enum Layer {
    /// It always chooses this action.
    Always(usize),
    /// It chooses at random, because its inputs change all the time and its weights are large.
    Noise,
}

/// Folders with a model.
impl Folder {
    /// A folder with a copy of a shipped model.
    pub fn copied(shipped: &str) -> Folder {
        let folder = Folder::new("copied");
        for name in [CARD, WEIGHTS, GOLDEN] {
            fs::copy(models().join(shipped).join(name), folder.path().join(name))
                .expect("there is room");
        }
        folder
    }

    /// Gives its model another name, which makes it another model.
    pub fn rename(&self, from: &str, to: &str) {
        let card = fs::read_to_string(self.path().join(CARD)).expect("a card");
        let [from, to] = [from, to].map(|name| format!("name = \"{name}\""));
        let renamed = card.replacen(&from, &to, 1);
        assert_ne!(renamed, card);
        fs::write(self.path().join(CARD), renamed).expect("there is room");
    }

    /// A folder with a model that has the features and actions of a shipped one, and one layer with
    /// this many inputs and outputs.
    pub fn of_model(shipped: &str, layer: Layer, inputs: usize, outputs: usize) -> Folder {
        let folder = Folder::new("model");
        folder.write_model(shipped, layer, inputs, outputs);
        folder
    }

    /// Overwrites the folder with such a model.
    pub fn write_model(&self, shipped: &str, layer: Layer, inputs: usize, outputs: usize) {
        let mut chance = Stream::new(1, "model");
        let mut numbers = |count: usize, scale: f64| -> Vec<f32> {
            (0..count)
                .map(|_| ((2.0 * chance.uniform() - 1.0) * scale) as f32)
                .collect()
        };
        let (weight, bias) = match layer {
            Layer::Noise => (numbers(outputs * inputs, 100.0), numbers(outputs, 1.0)),
            Layer::Always(chosen) => {
                let bias = (0..outputs).map(|output| f32::from(u8::from(output == chosen)));
                (vec![0.0; outputs * inputs], bias.collect())
            }
        };
        let seen = numbers(4 * inputs, 1.0);
        let unit = |(weights, bias): (&[f32], &f32), row: &[f32]| -> f32 {
            weights.iter().zip(row).map(|(w, x)| w * x).sum::<f32>() + bias
        };
        let units = || weight.chunks(inputs).zip(&bias);
        let rows = seen.chunks(inputs);
        let said: Vec<f32> = rows
            .flat_map(|row| units().map(move |u| unit(u, row)))
            .collect();
        let golden = npz(&[
            ("observations", npy(4, inputs, &seen)),
            ("outputs", npy(4, outputs, &said)),
        ]);
        let weights = safetensors(&weight, &bias, inputs);
        let net =
            format!("kind = \"mlp\"\nlayers = [{inputs}, {outputs}]\nactivations = [\"identity\"]");
        let card = card(shipped, Some(&net), &weights, &golden);
        self.write(&card, &weights, &golden);
    }

    /// Changes the training range of the model.
    pub fn trained_on(self, key: &str, range: [f64; 2]) -> Folder {
        let path = self.path().join(CARD);
        let text = fs::read_to_string(&path).expect("a card");
        let mut card: toml::Table = text.parse().expect("TOML");
        card["training"]["range"][key] = range.to_vec().into();
        fs::write(path, card.to_string()).expect("there is room");
        self
    }

    /// A folder with the shipped int8 model, changed so that it always lowers the rate to half or
    /// less.
    pub fn of_less_in_whole_numbers() -> Folder {
        const SHIPPED: &str = "aurora-int8-v1";
        const INPUTS: usize = 30;
        let mut weights = fs::read(models().join(SHIPPED).join(WEIGHTS)).expect(SHIPPED);
        let size = u64::from_le_bytes(weights[..8].try_into().expect("eight bytes")) as usize;
        let header: serde_json::Value =
            serde_json::from_slice(&weights[8..8 + size]).expect("JSON");
        let mut tensor = |name: &str, change: &mut dyn FnMut(&mut [u8])| {
            let [from, until] = [0, 1].map(|end| header[name]["data_offsets"][end].as_u64());
            let [from, until] = [from, until].map(|at| 8 + size + at.expect(name) as usize);
            change(&mut weights[from..until]);
        };
        let third = |bytes: &[u8]| i32::from_le_bytes(bytes[8..12].try_into().expect("four"));
        let (mut multiplier, mut shift) = (0, 0);
        tensor("multipliers", &mut |bytes| multiplier = third(bytes));
        tensor("shifts", &mut |bytes| shift = third(bytes));
        // This is 1 in the units of the last layer's sums.
        let unit = ((1_i64 << 16) << shift) / i64::from(multiplier);
        let bias = (-20 * unit) as i32;
        tensor("layers.2.weight", &mut |bytes| bytes.fill(0));
        tensor("layers.2.bias", &mut |bytes| {
            bytes.copy_from_slice(&bias.to_le_bytes())
        });
        // The sum is rounded, a half up.
        let sum = i64::from(bias) * i64::from(multiplier);
        let said = (((sum >> (shift - 1)) + 1) >> 1) as f32 / 65536.0;
        let golden = npz(&[
            ("observations", npy(4, INPUTS, &[0.0; 4 * INPUTS])),
            ("outputs", npy(4, 1, &[said; 4])),
        ]);
        let folder = Folder::new("less");
        folder.write(&card(SHIPPED, None, &weights, &golden), &weights, &golden);
        folder
    }

    fn write(&self, card: &str, weights: &[u8], golden: &[u8]) {
        for (name, bytes) in [
            (CARD, card.as_bytes()),
            (WEIGHTS, weights),
            (GOLDEN, golden),
        ] {
            fs::write(self.path().join(name), bytes).expect("there is room");
        }
    }

    /// The policy with this model.
    pub fn policy(&self) -> String {
        format!("learned:model={}", self.path().display())
    }
}

/// The folder of the shipped models.
fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

/// The card of a shipped model for other weights, and for another network if one is given.
fn card(shipped: &str, net: Option<&str>, weights: &[u8], golden: &[u8]) -> String {
    let text = fs::read_to_string(models().join(shipped).join(CARD)).expect(shipped);
    let mut card: toml::Table = text.parse().expect("TOML");
    if let Some(net) = net {
        card["net"] = toml::Value::Table(net.parse().expect("TOML"));
    }
    card["weights_sha256"] = sha256(weights).into();
    card["golden_sha256"] = sha256(golden).into();
    card.to_string()
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn safetensors(weight: &[f32], bias: &[f32], inputs: usize) -> Vec<u8> {
    let (weight, outputs) = (bytes(weight), bias.len());
    let bias = bytes(bias);
    let (split, end) = (weight.len(), weight.len() + bias.len());
    let weights = serde_json::json!({
        "dtype": "F32", "shape": [outputs, inputs], "data_offsets": [0, split],
    });
    let biases = serde_json::json!({
        "dtype": "F32", "shape": [outputs], "data_offsets": [split, end],
    });
    let header = serde_json::json!({"layers.0.weight": weights, "layers.0.bias": biases});
    let mut header = header.to_string();
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let size = (header.len() as u64).to_le_bytes();
    [&size, header.as_bytes(), &weight, &bias].concat()
}

/// An array in NumPy's format.
fn npy(rows: usize, columns: usize, numbers: &[f32]) -> Vec<u8> {
    let header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}\n");
    let size = (header.len() as u16).to_le_bytes();
    [
        b"\x93NUMPY\x01\x00",
        &size[..],
        header.as_bytes(),
        &bytes(numbers),
    ]
    .concat()
}

fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in arrays {
        archive
            .start_file(format!("{name}.npy"), options)
            .expect("a name");
        archive.write_all(bytes).expect("there is room");
    }
    archive.finish().expect("an archive").into_inner()
}
