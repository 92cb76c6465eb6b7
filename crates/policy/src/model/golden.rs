//! `golden.npz`: observations with the trained network's outputs, which the loader computes again.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::policy::NetworkPolicy;
use super::weights::floats;

/// Observations and the trained network's outputs. The rows are successive decisions of one flow. A
/// recurrent network therefore starts with an empty state, and carries it from row to row.
#[derive(Clone, Debug)]
pub struct Golden {
    observations: Array,
    outputs: Option<Array>,
    actions: Option<Array>,
}

/// Numbers in rows.
#[derive(Clone, Debug)]
struct Array {
    width: usize,
    values: Vec<f32>,
    /// The largest magnitude, at least 1.
    scale: f32,
}

impl Array {
    fn new(width: usize, values: Vec<f32>) -> Array {
        let scale = values
            .iter()
            .fold(1.0_f32, |most, value| most.max(value.abs()));
        Array {
            width,
            values,
            scale,
        }
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.width)
    }

    fn len(&self) -> usize {
        self.values.len() / self.width
    }
}

impl Golden {
    /// The largest difference of an output, divided by the file's largest magnitude (at least one).
    /// A small output can come from sums of large numbers in single precision, so the bound is not
    /// relative to the output itself.
    pub const TOLERANCE: f32 = 1e-5;

    /// Reads a file of `numpy.savez(file, observations=..., outputs=...)`. It may hold `actions`
    /// besides `outputs` or instead of them.
    ///
    /// # Errors
    /// One line.
    pub fn read(bytes: &[u8], inputs: usize, outputs: usize) -> Result<Golden, String> {
        let mut archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|e| format!("not a whole .npz file ({e}); write it with numpy.savez"))?;
        let observations = array(&mut archive, "observations", bytes.len(), inputs)?
            .ok_or("observations are missing; write them with numpy.savez(file, observations=..., outputs=...)")?;
        let golden = Golden {
            outputs: array(&mut archive, "outputs", bytes.len(), outputs)?,
            actions: array(&mut archive, "actions", bytes.len(), 1)?,
            observations,
        };
        let given = [("outputs", &golden.outputs), ("actions", &golden.actions)];
        let rows = golden.observations.len();
        if given.iter().all(|(_, array)| array.is_none()) || rows == 0 {
            return Err(
                "no row to compare; it needs observations with outputs, actions or both".to_owned(),
            );
        }
        for (name, array) in given {
            match array.as_ref().map(Array::len) {
                Some(found) if found != rows => {
                    return Err(format!(
                        "{found} {name} for {rows} observations; each needs one"
                    ));
                }
                _ => {}
            }
        }
        Ok(golden)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.observations.len()
    }

    /// Gives every observation to `policy`, and returns the largest difference, as
    /// [`Golden::TOLERANCE`] counts it. Whole numbers have to be equal.
    ///
    /// # Errors
    /// One line: which row is wrong, and by how much.
    pub fn replay(&self, policy: &mut NetworkPolicy) -> Result<f32, String> {
        let tolerance = match policy.is_whole() {
            true => 0.0,
            false => Golden::TOLERANCE,
        };
        let mut largest = 0.0_f32;
        for (row, observation) in self.observations.rows().enumerate() {
            let Some(answer) = policy.answer(observation) else {
                return Err(format!(
                    "row {row}: the observation, or an output of the network, is not finite"
                ));
            };
            let pairs = [
                ("outputs", &self.outputs, policy.outputs()),
                ("actions", &self.actions, &[answer.action]),
            ];
            for (name, golden, ours) in pairs {
                let Some(array) = golden.as_ref() else {
                    continue;
                };
                let golden = array.rows().nth(row).unwrap_or_default();
                for (theirs, ours) in golden.iter().zip(ours) {
                    let off = (theirs - ours).abs() / array.scale;
                    // NaN is a difference too.
                    if off.is_nan() || off > tolerance {
                        return Err(format!(
                            "row {row}: {name} {theirs} in the file, {ours} by the weights; they must agree to {tolerance:e}"
                        ));
                    }
                    largest = largest.max(off);
                }
            }
        }
        Ok(largest)
    }
}

/// The array of that name, or `None`. It has `width` numbers a row, and no more bytes than the
/// file.
fn array(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    name: &str,
    most: usize,
    width: usize,
) -> Result<Option<Array>, String> {
    let Some(index) = archive.index_for_name(&format!("{name}.npy")) else {
        return Ok(None);
    };
    let broken = |e: &dyn std::fmt::Display| format!("{name}: {e}; write it with numpy.savez");
    let file = archive.by_index(index).map_err(|e| broken(&e))?;
    let mut bytes = Vec::new();
    // An uncompressed array is no longer than the file.
    file.take(most as u64)
        .read_to_end(&mut bytes)
        .map_err(|e| broken(&e))?;
    let (shape, data) = npy(&bytes).map_err(|e| broken(&e))?;
    let (rows, found) = match shape[..] {
        [rows] if width == 1 => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => {
            return Err(format!(
                "{name}: of shape {shape:?}, must have rows of {width} numbers"
            ));
        }
    };
    if found != width {
        return Err(format!(
            "{name}: rows of {found} numbers, must be of {width}, as in card.toml"
        ));
    }
    let values = floats(data);
    if rows.checked_mul(width) != Some(values.len()) || data.len() % 4 != 0 {
        return Err(format!(
            "{name}: {} bytes for shape {shape:?}; write it with numpy.savez",
            data.len()
        ));
    }
    Ok(Some(Array::new(width, values)))
}

/// Shape and data of a `.npy` file of float32 in C order. `numpy.lib.format` defines it:
/// `\x93NUMPY`, the version in two bytes, the header's length in two bytes (in four from version 2
/// on), and the header, which is a Python literal.
fn npy(bytes: &[u8]) -> Result<(Vec<usize>, &[u8]), String> {
    let truncated = || "not a whole .npy array".to_owned();
    let (magic, rest) = bytes.split_at_checked(8).ok_or_else(truncated)?;
    let (length, rest) = match magic {
        b"\x93NUMPY\x01\x00" => {
            let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(truncated)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        b"\x93NUMPY\x02\x00" | b"\x93NUMPY\x03\x00" => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        _ => return Err("not a .npy array".to_owned()),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(truncated)?;
    let header = str::from_utf8(header).map_err(|_| "a header that is no text".to_owned())?;
    let value = |key: &str| {
        header
            .split_once(&format!("'{key}': "))
            .map(|(_, value)| value)
    };
    if !value("descr").is_some_and(|v| v.starts_with("'<f4'")) {
        return Err("the type must be float32".to_owned());
    }
    if !value("fortran_order").is_some_and(|v| v.starts_with("False")) {
        return Err("the array must be in C order".to_owned());
    }
    let shape = value("shape")
        .and_then(|v| v.strip_prefix('(')?.split_once(')'))
        .and_then(|(numbers, _)| {
            let numbers = numbers.split(',').map(str::trim).filter(|n| !n.is_empty());
            numbers
                .map(|n| n.parse().ok())
                .collect::<Option<Vec<usize>>>()
        });
    Ok((shape.ok_or("a header without a shape")?, data))
}
