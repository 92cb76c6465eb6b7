//! World 3: what BPF programs and the agent say to each other ([`abi`], `bpf/abi.h`), and a
//! stand-in for the kernel's side of it, so that an agent can be tested without a kernel.
//!
//! [`FakeKernel`] is what an agent sees: messages as bytes, slots for actions. Its flows are
//! [`Datapath`]s: controllers that any host of `cc` runs (`net`'s transport in the simulator),
//! which keep a [`TcpSock`] in the kernel's own units, write records of it, and take actions, with
//! the guard between the actions and the flow. Scripted `TcpSock`s may be written too.

pub mod abi;
mod datapath;
mod fake;
mod ring;
mod tcp_sock;
mod window;

pub use abi::AbiError;
pub use datapath::Datapath;
pub use fake::{FakeKernel, FlowSlot};
pub use ring::Ring;
pub use tcp_sock::TcpSock;
