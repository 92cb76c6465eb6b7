//! C programs with the same headers, which sanitizers end at overflows and at shifts that are too
//! far.
//!
//! A machine without the compiler or its sanitizers skips them with a line.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the program of that name and returns the number that it prints; `None` if this C compiler
/// has no sanitizers.
pub fn run(name: &str) -> Option<u64> {
    let sanitizers = [
        "-fsanitize=undefined,signed-integer-overflow,shift,bounds,address",
        "-fno-sanitize-recover=all",
    ];
    built_by("cc", &sanitizers, name)
}

/// Runs the program by clang, with a sanitizer that also ends it where unsigned numbers wrap.
pub fn run_without_wraps(name: &str) -> Option<u64> {
    let sanitizers = [
        "-fsanitize=undefined,unsigned-integer-overflow",
        "-fsanitize-trap=all",
    ];
    built_by("clang", &sanitizers, name)
}

fn built_by(compiler: &str, sanitizers: &[&str], name: &str) -> Option<u64> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("sanitized-{name}"));
    let built = Command::new(compiler)
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(sanitizers)
        .arg("-I")
        .arg(here.join("../kernel/bpf"))
        .arg("-I")
        .arg(folder)
        .arg(here.join(format!("tests/sanitized/{name}.c")))
        .arg("-o")
        .arg(&program)
        .output();
    let built = match built {
        Ok(built) => built,
        Err(error) if compiler == "cc" => panic!("the C compiler that built this crate: {error}"),
        Err(_) => {
            eprintln!("skipped: there is no C compiler '{compiler}'");
            return None;
        }
    };
    if !built.status.success() {
        let complaints = String::from_utf8_lossy(&built.stderr);
        let without = ["cannot find", "unrecognized", "unsupported"];
        assert!(
            without.iter().any(|words| complaints.contains(words)),
            "{complaints}"
        );
        eprintln!("skipped: this C compiler has no sanitizers");
        return None;
    }
    let run = Command::new(&program).output().expect("it runs");
    let complaints = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{complaints}");
    let said = String::from_utf8_lossy(&run.stdout);
    Some(said.trim().parse().expect("a number"))
}
