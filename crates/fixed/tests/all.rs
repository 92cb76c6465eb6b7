//! The integration tests of this crate, in one program: each links once.

mod guard;
mod layout;
mod mlp;
mod rate_agent;
mod sanitized;
