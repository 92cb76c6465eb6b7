//! Checks that the committed BPF objects belong to the committed sources.

use std::path::{Path, PathBuf};
use std::process::Command;

fn bpf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf")
}

/// The files of `part` of the folder with this ending, as paths within the folder.
fn files(folder: &Path, part: &str, end: &str) -> Vec<String> {
    let names = std::fs::read_dir(folder.join(part)).expect("a folder");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let names = names.filter(|name| name.ends_with(end));
    let mut paths: Vec<String> = names.map(|name| format!("{part}{name}")).collect();
    paths.sort();
    paths
}

/// All objects: the programs, and the BPF programs of a test of headwayd.
fn objects(folder: &Path) -> Vec<String> {
    let parts = ["objects/", "tests/"];
    parts.map(|part| files(folder, part, ".bpf.o")).concat()
}

#[test]
fn the_objects_match_their_sources_digests() {
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
    let sources = [("", ".h"), ("", ".bpf.c"), ("tests/", ".bpf.c")];
    let sources = sources.map(|(part, end)| files(&bpf(), part, end)).concat();
    for source in &sources {
        assert!(
            kept.contains(&format!("  {source}\n")),
            "{source}: run: make -C crates/kernel/bpf"
        );
    }
    assert_eq!(kept.lines().count(), sources.len());
}

/// The compiler that made the objects makes the same bytes again.
#[test]
fn rebuilding_gives_the_same_objects() {
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
    // Two runs of the tests may share the build.
    let own = format!("bpf-{}", std::process::id());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(own);
    let _ = std::fs::remove_dir_all(&folder);
    for part in ["objects", "tests"] {
        std::fs::create_dir_all(folder.join(part)).expect("a folder");
    }
    for (part, end) in [("", ".h"), ("", ".c"), ("", "Makefile"), ("tests/", ".c")] {
        for path in files(&bpf(), part, end) {
            std::fs::copy(bpf().join(&path), folder.join(&path)).expect("a copy");
        }
    }
    let made = Command::new("make")
        .arg("-s")
        .current_dir(&folder)
        .output()
        .expect("make");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    assert_eq!(objects(&folder), objects(&bpf()));
    for path in objects(&folder) {
        let read = |folder: &Path| std::fs::read(folder.join(&path)).expect("an object");
        assert!(
            read(&folder) == read(&bpf()),
            "{path} is another; run: make -C crates/kernel/bpf"
        );
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}
