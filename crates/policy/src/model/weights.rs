//! `weights.safetensors`: every tensor of the network, and nothing else.

use headway_cc::suggest;
use safetensors::{Dtype, SafeTensors};

use crate::nn::{NetError, NetSpec, Network};

/// Builds the network of `spec` from the file's `bytes`.
///
/// # Errors
/// One line: not a whole safetensors file; a tensor that is missing, is not the network's, has another shape or
/// type, or holds a number that is not finite.
pub fn network(spec: &NetSpec, bytes: &[u8]) -> Result<Network, String> {
    let file = SafeTensors::deserialize(bytes)
        .map_err(|e| format!("not a whole safetensors file ({e:?}); copy it again"))?;
    let wanted = spec.tensors();
    let names = || wanted.iter().map(|(name, _)| name.as_str());
    if let Some(extra) = file
        .names()
        .into_iter()
        .find(|name| !names().any(|n| n == *name))
    {
        return Err(format!(
            "tensor {extra:?} is none of the network's in card.toml; {}",
            suggest(extra, names())
        ));
    }
    let mut source = |name: &str, shape: &[usize]| {
        let tensor = file.tensor(name).map_err(|_| {
            NetError(format!(
                "tensor {name} is missing; the network in card.toml has one of shape {shape:?}"
            ))
        })?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
            return Err(NetError(format!(
                "tensor {name} is {:?} {:?}, must be F32 {shape:?}",
                tensor.dtype(),
                tensor.shape()
            )));
        }
        Ok(floats(tensor.data()))
    };
    Network::new(spec, &mut source).map_err(|e| e.to_string())
}

/// Little-endian numbers of four bytes each.
pub(super) fn floats(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|b| f32::from_le_bytes(*b)).collect()
}
