//! Programs of C with the same headers, under sanitizers: overflows and shifts too far end them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The number that the program of that name says; `None` where this C compiler has no sanitizers.
pub fn run(name: &str) -> Option<u64> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("sanitized-{name}"));
    let built = Command::new("cc")
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .arg("-fsanitize=undefined,signed-integer-overflow,shift,bounds,address")
        .args(["-fno-sanitize-recover=all", "-I"])
        .arg(here.join("../kernel/bpf"))
        .arg(here.join(format!("tests/sanitized/{name}.c")))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the C compiler that built this crate");
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
