//! Empty: its `Cargo.toml` gives each shared dependency the same features in every build.
