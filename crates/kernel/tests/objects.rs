//! The committed BPF objects are those of the committed sources.

use std::path::{Path, PathBuf};
use std::process::Command;

fn bpf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf")
}

/// Of the folder's files that end so.
fn files(folder: &Path, end: &str) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("a folder");
    let names = names.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.filter(|name| name.ends_with(end)).collect();
    names.sort();
    names
}

#[test]
fn the_objects_are_as_new_as_their_sources() {
    let done = Command::new("sha256sum")
        .args(["--check", "--quiet", "objects/SOURCES.sha256"])
        .current_dir(bpf())
        .output();
    let Ok(done) = done else {
        eprintln!("skipped: there is no sha256sum");
        return;
    };
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{said}run: make -C crates/kernel/bpf"
    );
    let kept = std::fs::read_to_string(bpf().join("objects/SOURCES.sha256")).expect("the list");
    let mut sources = files(&bpf(), ".h");
    sources.extend(files(&bpf(), ".bpf.c"));
    for source in &sources {
        assert!(
            kept.contains(&format!("  {source}\n")),
            "{source}: run: make -C crates/kernel/bpf"
        );
    }
    assert_eq!(kept.lines().count(), sources.len());
}

/// With the compiler that made them they come out the same, byte for byte.
#[test]
fn the_objects_come_out_the_same() {
    let compiler = Command::new("clang-19").arg("--version").output();
    let is_there = compiler.is_ok_and(|done| done.status.success());
    if !is_there
        || Command::new("llvm-strip-19")
            .arg("--version")
            .output()
            .is_err()
    {
        eprintln!("skipped: there is no clang-19 and llvm-strip-19, which made the BPF objects");
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bpf");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("objects")).expect("a folder");
    for end in [".h", ".c", "Makefile"] {
        for name in files(&bpf(), end) {
            std::fs::copy(bpf().join(&name), folder.join(&name)).expect("a copy");
        }
    }
    let made = Command::new("make")
        .args(["-s", "programs"])
        .current_dir(&folder)
        .output()
        .expect("make");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let objects = files(&folder.join("objects"), ".o");
    assert_eq!(objects, files(&bpf().join("objects"), ".o"));
    for name in objects {
        let read =
            |folder: &Path| std::fs::read(folder.join("objects").join(&name)).expect("an object");
        assert!(
            read(&folder) == read(&bpf()),
            "{name} is another; run: make -C crates/kernel/bpf"
        );
    }
}
