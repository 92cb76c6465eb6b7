//! The integration tests of this crate, in one program, so that linking happens once.

mod guard;
mod layout;
mod mlp;
mod rate_agent;
mod sanitized;
