//! Notes which code this is, for every result to carry.

use std::process::Command;

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
        .map(|o| format!("+{}", String::from_utf8_lossy(&o.stdout).trim()));
    let version = env!("CARGO_PKG_VERSION");
    println!(
        "cargo:rustc-env=HEADWAY_CODE_VERSION={version}{}",
        described.unwrap_or_default()
    );
}
