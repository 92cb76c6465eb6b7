//! The agent for the kernel's flows. Its code is in the library.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    headwayd::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("headwayd: BPF programs need Linux");
    std::process::ExitCode::from(2)
}
