//! The integration tests of this crate, in one program: each links once.

mod links;
mod marks;
mod queues;
mod sender_contract;
mod transport;
