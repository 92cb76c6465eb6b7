//! `weights.safetensors`: every tensor of the network, and nothing else.

use std::sync::Arc;

use headway_cc::suggest;
use headway_fixed::Mlp;
use safetensors::{Dtype, SafeTensors};
use zerocopy::IntoBytes;

use super::Card;
use super::policy::Net;
use crate::int8::{Quantised, compile};
use crate::nn::{NetError, NetKind, NetSpec, Network};

/// Builds the network of `card` from the file's `bytes`.
///
/// # Errors
/// One line: the file is not complete; or a tensor is missing, unknown, of another shape or type,
/// or contains a number that is not finite or out of range.
pub fn net(card: &Card, bytes: &[u8]) -> Result<Net, String> {
    let spec = &card.net;
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
            "tensor {extra:?} is not in the network of card.toml; {}",
            suggest(extra, names())
        ));
    }
    if spec.kind == NetKind::Int8 {
        let net = mlp(spec, &file).map_err(|e| e.to_string())?;
        let policy = compile(&card.agent, net).map_err(|e| e.to_string())?;
        let quantised = Quantised::new(policy, &card.agent.observation);
        return Ok(Net::Int8(Arc::new(quantised)));
    }
    let mut source = |name: &str, shape: &[usize]| {
        let data = tensor(&file, name, shape, Dtype::F32)?;
        Ok(floats(data))
    };
    let network = Network::new(spec, &mut source).map_err(|e| e.to_string())?;
    Ok(Net::Float(Arc::new(network)))
}

/// The bytes of a tensor.
pub(super) fn tensor<'a>(
    file: &SafeTensors<'a>,
    name: &str,
    shape: &[usize],
    dtype: Dtype,
) -> Result<&'a [u8], NetError> {
    let tensor = file.tensor(name).map_err(|_| {
        NetError(format!(
            "tensor {name} is missing; the network in card.toml has one of shape {shape:?}"
        ))
    })?;
    match tensor.dtype() == dtype && tensor.shape() == shape {
        true => Ok(tensor.data()),
        false => Err(NetError(format!(
            "tensor {name} is {:?} {:?}, must be {dtype:?} {shape:?}",
            tensor.dtype(),
            tensor.shape()
        ))),
    }
}

/// A network of whole numbers: its weights are int8, all else is int32.
fn mlp(spec: &NetSpec, file: &SafeTensors<'_>) -> Result<Mlp, NetError> {
    let mut net = Mlp::default();
    for (name, shape) in spec.tensors() {
        let dtype = match name.ends_with(".weight") {
            true => Dtype::I8,
            false => Dtype::I32,
        };
        let data = tensor(file, &name, &shape, dtype)?;
        match name.as_str() {
            "layers.0.weight" => net.weights1.as_mut_bytes().copy_from_slice(data),
            "layers.1.weight" => net.weights2.as_mut_bytes().copy_from_slice(data),
            "layers.2.weight" => net.weights3.as_mut_bytes().copy_from_slice(data),
            "layers.0.bias" => whole_numbers(data, &mut net.biases1),
            "layers.1.bias" => whole_numbers(data, &mut net.biases2),
            "layers.2.bias" => whole_numbers(data, std::slice::from_mut(&mut net.bias3)),
            "multipliers" => net.multipliers = below(&name, data, 1 << 24)?,
            _ => net.shifts = below(&name, data, 64)?,
        }
    }
    Ok(net)
}

/// Little-endian numbers of four bytes each.
fn whole_numbers(bytes: &[u8], numbers: &mut [i32]) {
    let (each, _) = bytes.as_chunks::<4>();
    for (number, bytes) in numbers.iter_mut().zip(each) {
        *number = i32::from_le_bytes(*bytes);
    }
}

/// Three numbers from 0 to below `end`. The program would ignore higher bits.
fn below(name: &str, bytes: &[u8], end: u32) -> Result<[u32; 3], NetError> {
    let mut numbers = [0; 3];
    whole_numbers(bytes, &mut numbers);
    for number in numbers {
        if !(0..end as i32).contains(&number) {
            return Err(NetError(format!(
                "tensor {name}: {number} must be from 0 to {}",
                end - 1
            )));
        }
    }
    Ok(numbers.map(i32::cast_unsigned))
}

/// Little-endian numbers of four bytes each.
pub(super) fn floats(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|b| f32::from_le_bytes(*b)).collect()
}
