//! Replays the first inputs of fuzzing, and those that found faults, on stable Rust: if a fault
//! comes back, `make test` finds it.

use std::path::{Path, PathBuf};

use headway_cc::Kind;

#[path = "../../../fuzz/src/lib.rs"]
#[allow(dead_code, missing_docs)]
mod fuzz;

/// The bytes that choose parameters can choose every word.
#[test]
fn every_word_of_a_choice_is_reached() {
    for (position, scheme) in fuzz::registry().iter().enumerate() {
        let specs: Vec<String> = (0..=u8::MAX)
            .map(|byte| {
                let mut input = vec![byte; 100];
                input[0] = position as u8;
                fuzz::spec(&mut fuzz::Bytes(&input))
            })
            .collect();
        for param in scheme.params {
            let Kind::Choice(words) = param.kind else {
                continue;
            };
            for word in words {
                let choice = format!(":{}={word}", param.name);
                let reached =
                    |spec: &String| spec.starts_with(scheme.name) && spec.contains(&choice);
                assert!(specs.iter().any(reached), "{}{choice}", scheme.name);
            }
        }
    }
}

/// Every file of a folder, by name; none if the folder is not there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn stored_fuzz_inputs_pass() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for (name, target) in fuzz::TARGETS {
        let mut inputs = files(&root.join("fuzz/seeds").join(name));
        inputs.extend(files(&root.join("fuzz/regressions").join(name)));
        if name == "scenario" {
            inputs.extend(files(&root.join("scenarios")));
        }
        assert!(!inputs.is_empty(), "no input for {name}");
        for input in inputs {
            let bytes = std::fs::read(&input).expect("a file");
            let run = std::panic::catch_unwind(|| target(&bytes));
            assert!(run.is_ok(), "{name}: {}", input.display());
        }
    }
}
