//! Notes the version of the code, which every result carries.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

/// The hash of uncommitted changes in the crates, after a full stop. Empty if there are none.
/// Without it, different code would have one version.
fn changes() -> String {
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).output();
        done.map(|o| o.stdout).unwrap_or_default()
    };
    let mut changed = git(&["diff", "HEAD", "--", ".."]);
    let new = git(&[
        "ls-files",
        "-z",
        "--others",
        "--exclude-standard",
        "--",
        "..",
    ]);
    for name in String::from_utf8_lossy(&new).split_terminator('\0') {
        changed.extend(std::fs::read(name).unwrap_or_default());
    }
    if changed.is_empty() {
        return String::new();
    }
    let mut hasher = DefaultHasher::new();
    changed.hash(&mut hasher);
    format!(".{:08x}", hasher.finish() as u32)
}

fn main() {
    println!("cargo:rerun-if-changed=..");
    if std::path::Path::new("../../.git/logs/HEAD").exists() {
        println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    }
    let described = Command::new("git")
        .args([
            "describe",
            "--always",
            "--dirty",
            "--abbrev=10",
            "--exclude=*",
        ])
        .output()
        .ok()
        .filter(|o| o.status.success())
        .map(|o| {
            format!(
                "+{}{}",
                String::from_utf8_lossy(&o.stdout).trim(),
                changes()
            )
        });
    let version = env!("CARGO_PKG_VERSION");
    println!(
        "cargo:rustc-env=HEADWAY_CODE_VERSION={version}{}",
        described.unwrap_or_default()
    );
}
