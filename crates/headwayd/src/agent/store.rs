//! What policies have learned, from flow to flow and from start to start.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use headway_policy::schemes::Served;

/// The newest that a flow of each policy has learned; a new flow goes on from it.
#[derive(Debug, Default)]
pub struct Store {
    folder: Option<PathBuf>,
    learned: HashMap<String, Vec<f32>>,
}

impl Store {
    /// In a folder that is there, or nowhere.
    pub fn new(folder: Option<PathBuf>) -> Store {
        Store {
            folder,
            learned: HashMap::new(),
        }
    }

    /// What a new flow goes on from.
    pub fn learned(&mut self, served: &Served) -> Option<&[f32]> {
        if !served.is_learning() {
            return None;
        }
        let name = file_name(served);
        if !self.learned.contains_key(&name) {
            let read = self.read(&name)?;
            tracing::info!(
                file = name,
                parameters = read.len(),
                "goes on from what was learned"
            );
            self.learned.insert(name.clone(), read);
        }
        self.learned.get(&name).map(Vec::as_slice)
    }

    /// A flow has learned this.
    pub fn keep(&mut self, served: &Served, learned: &[f32]) {
        if learned.iter().all(|x| x.is_finite()) {
            self.learned.insert(file_name(served), learned.to_vec());
        }
    }

    /// Writes all of it. What cannot be written is said, and lost.
    pub fn save(&self) {
        let Some(folder) = &self.folder else { return };
        for (name, learned) in &self.learned {
            let bytes: Vec<u8> = learned.iter().flat_map(|x| x.to_le_bytes()).collect();
            let (part, whole) = (folder.join(format!("{name}.part")), folder.join(name));
            let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, &whole));
            match written {
                Ok(()) => tracing::info!(file = %whole.display(), "keeps what was learned"),
                Err(error) => {
                    tracing::error!(file = %whole.display(), %error, "cannot keep what was learned")
                }
            }
        }
    }

    fn read(&self, name: &str) -> Option<Vec<f32>> {
        let bytes = fs::read(self.folder.as_ref()?.join(name)).ok()?;
        let (numbers, rest) = bytes.as_chunks::<4>();
        let numbers: Vec<f32> = numbers.iter().map(|b| f32::from_le_bytes(*b)).collect();
        (rest.is_empty() && numbers.iter().all(|x| x.is_finite())).then_some(numbers)
    }
}

/// The same model, told to learn in the same way.
fn file_name(served: &Served) -> String {
    let model = served
        .model_id()
        .replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "-");
    format!("{model}.learned")
}
