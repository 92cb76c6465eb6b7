//! World 3: the messages between BPF programs and the agent ([`abi`], `bpf/abi.h`), and a stand-in
//! for the kernel's side, so that an agent can be tested without a kernel.
//!
//! [`FakeKernel`] is what an agent sees: messages as bytes, and slots for actions. Its flows are
//! [`Datapath`]s: controllers that any host of `cc` can run (`net`'s transport in the simulator).
//! They keep a [`TcpSock`] in the kernel's own units, write records of it, and take actions, with
//! the guard between the actions and the flow. Tests may also script a `TcpSock`.

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
