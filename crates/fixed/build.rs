//! Compiles the headers that BPF programs share, with the system's C compiler.

fn main() {
    let headers = "../kernel/bpf";
    println!("cargo:rerun-if-changed={headers}");
    println!("cargo:rerun-if-changed=src/native.c");
    cc::Build::new()
        .file("src/native.c")
        .include(headers)
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .warnings_into_errors(true)
        .compile("headway_fixed");
}
