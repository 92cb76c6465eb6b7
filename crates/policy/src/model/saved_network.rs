//! What a network has learned in use, as a safetensors file: its tensors, named as in
//! `weights.safetensors`, and where they come from.

use safetensors::{Dtype, SafeTensors, serialize, tensor::TensorView};
use serde::{Deserialize, Serialize};

use super::weights::{floats, tensor};
use crate::nn::{NetError, NetSpec, Network};

/// The only entry of the file's metadata: [`Origin`] as JSON.
const ENTRY: &str = "headway";

/// A network that has learned in use, and its number of gradient steps.
#[derive(Clone, Debug)]
pub(crate) struct SavedNetwork {
    pub network: Network,
    pub steps: u64,
}

/// The file's metadata: which model and policy it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Origin {
    /// The version of the file: [`SavedNetwork::FORMAT`].
    format: u32,
    /// The id of the model with which it began.
    model: String,
    /// The policy, as `--policy` writes it.
    policy: String,
    /// The number of gradient steps.
    steps: u64,
}

/// The largest accepted number of gradient steps: more than any flow takes, and small enough to add
/// to.
const MAX_STEPS: u64 = 1 << 53;

impl SavedNetwork {
    /// The version of the file that this code reads and writes.
    const FORMAT: u32 = 1;

    /// The file of a network that has learned as this `policy` of this `model`.
    pub fn write(network: &Network, steps: u64, model: &str, policy: &str) -> Vec<u8> {
        let origin = Origin {
            format: SavedNetwork::FORMAT,
            model: model.to_owned(),
            policy: policy.to_owned(),
            steps,
        };
        let origin = serde_json::to_string(&origin).expect("plain data");
        let tensors = network.tensors(network.parameters()).into_iter();
        let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
            .map(|(name, shape, values)| {
                let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                (name, shape, bytes)
            })
            .collect();
        let views = tensors.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (name, view.expect("as many numbers as its shape says"))
        });
        let metadata = [(ENTRY.to_owned(), origin)].into_iter().collect();
        serialize(views, Some(metadata)).expect("each tensor has a name of its own")
    }

    /// Reads the file that [`write`](Self::write) made for this `model` and `policy`, whose network
    /// has this `spec`.
    ///
    /// # Errors
    /// One line: the file is incomplete or malformed, of another version, model or policy, or
    /// contains a number that is not finite.
    pub fn read(
        bytes: &[u8],
        spec: &NetSpec,
        model: &str,
        policy: &str,
    ) -> Result<SavedNetwork, NetError> {
        let refuse = |what: String| NetError(format!("saved network: {what}"));
        let broken = |e| refuse(format!("not a whole safetensors file ({e:?})"));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let file = SafeTensors::deserialize(bytes).map_err(broken)?;
        let entry = metadata.metadata().as_ref().and_then(|all| all.get(ENTRY));
        let entry = entry.ok_or_else(|| refuse(format!("its metadata has no entry {ENTRY:?}")))?;
        let version = serde_json::from_str::<serde_json::Value>(entry);
        let version = version.map_err(|e| refuse(e.to_string()))?["format"].clone();
        if version != SavedNetwork::FORMAT {
            let right = SavedNetwork::FORMAT;
            return Err(refuse(format!("its format is {version}, must be {right}")));
        }
        let origin: Origin = serde_json::from_str(entry).map_err(|e| refuse(e.to_string()))?;
        if origin.steps > MAX_STEPS {
            let steps = origin.steps;
            return Err(refuse(format!(
                "its gradient steps are {steps}, must be at most {MAX_STEPS}"
            )));
        }
        for (what, found, right) in [
            ("model", &origin.model, model),
            ("policy", &origin.policy, policy),
        ] {
            if found != right {
                return Err(refuse(format!(
                    "its {what} is {found:?}, must be {right:?}"
                )));
            }
        }
        let mut source = |name: &str, shape: &[usize]| {
            let data = tensor(&file, name, shape, Dtype::F32)?;
            Ok(floats(data))
        };
        let network = Network::new(spec, &mut source)?;
        Ok(SavedNetwork {
            network,
            steps: origin.steps,
        })
    }
}
