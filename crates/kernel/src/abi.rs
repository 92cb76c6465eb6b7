//! `bpf/abi.h` in Rust. `tests/abi.rs` compares both, byte by byte.

use headway_policy::{Action, Record};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `HEADWAY_MAGIC`
pub const MAGIC: u32 = 0x5957_4448;
/// `HEADWAY_VERSION`
pub const VERSION: u16 = 1;

/// `HEADWAY_OPEN`
pub const OPEN: u16 = 1;
/// `HEADWAY_REPORT`
pub const REPORT: u16 = 2;
/// `HEADWAY_CLOSE`
pub const CLOSE: u16 = 3;

/// `HEADWAY_NOTHING`
pub const NOTHING: u32 = 0;
/// `HEADWAY_ADD_CWND`
pub const ADD_CWND: u32 = 1;
/// `HEADWAY_SCALE_CWND`
pub const SCALE_CWND: u32 = 2;
/// `HEADWAY_SCALE_RATE`
pub const SCALE_RATE: u32 = 3;
/// `HEADWAY_SET`
pub const SET: u32 = 4;

/// `struct headway_header`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Header {
    /// [`MAGIC`]
    pub magic: u32,
    /// [`VERSION`]
    pub version: u16,
    /// [`OPEN`], [`REPORT`], [`CLOSE`]
    pub kind: u16,
    /// The flow's number.
    pub flow: u32,
    /// Of the whole message in bytes.
    pub size: u32,
}

/// `struct headway_open`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Open {
    /// What every message begins with.
    pub header: Header,
    /// When it begins, on the host's monotonic clock.
    pub start_ns: u64,
    /// IPv6, or IPv4 mapped into it.
    pub local_address: [u8; 16],
    /// IPv6, or IPv4 mapped into it.
    pub remote_address: [u8; 16],
    /// In host byte order.
    pub local_port: u16,
    /// In host byte order.
    pub remote_port: u16,
    /// The size of a full packet on the wire in bytes.
    pub mss: u32,
    /// The window that it begins with, in packets.
    pub initial_cwnd: u32,
    /// 0
    pub reserved: u32,
}

/// `struct headway_report`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Report {
    /// What every message begins with.
    pub header: Header,
    /// The flow's state.
    pub record: Record,
}

/// `struct headway_action`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ActionSlot {
    /// The time of the record that it answers.
    pub decided_ns: u64,
    /// From then on it is not applied.
    pub expires_ns: u64,
    /// What its kind says.
    pub value: i64,
    /// [`ADD_CWND`] and so on.
    pub kind: u32,
    /// Of [`SET`]: the parameter's index.
    pub parameter: u32,
    /// Even; larger than the last.
    pub sequence: u32,
    /// 0
    pub reserved: u32,
}

/// A message that the agent does not understand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbiError {
    /// Not a message of Headway's.
    #[error("the message does not begin with Headway's magic number, but with {0:#010x}")]
    Magic(u32),
    /// Of another version.
    #[error(
        "the BPF programs speak version {0} of the ABI and this agent version {VERSION}; load the programs that came with it"
    )]
    Version(u16),
    /// Too short, too long, or not what its kind is.
    #[error("a message of kind {kind} has {bytes} bytes, which is not its size")]
    Size {
        /// What it says it is.
        kind: u16,
        /// How many there are.
        bytes: usize,
    },
    /// A kind that there is not.
    #[error("there is no message of kind {0}")]
    Kind(u16),
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// A flow begins.
    Open(Open),
    /// A flow's state.
    Report(Report),
    /// A flow ends, with its last state.
    Close(Report),
}

impl Message {
    /// Reads one.
    ///
    /// # Errors
    /// [`AbiError`]
    pub fn read(bytes: &[u8]) -> Result<Message, AbiError> {
        let too_short = |kind| AbiError::Size {
            kind,
            bytes: bytes.len(),
        };
        let (header, _) = Header::read_from_prefix(bytes).map_err(|_| too_short(0))?;
        if header.magic != MAGIC {
            return Err(AbiError::Magic(header.magic));
        }
        if header.version != VERSION {
            return Err(AbiError::Version(header.version));
        }
        let wrong_size = || too_short(header.kind);
        if header.size as usize != bytes.len() {
            return Err(wrong_size());
        }
        let report = || Report::read_from_bytes(bytes).map_err(|_| wrong_size());
        match header.kind {
            OPEN => Ok(Message::Open(
                Open::read_from_bytes(bytes).map_err(|_| wrong_size())?,
            )),
            REPORT => report().map(Message::Report),
            CLOSE => report().map(Message::Close),
            kind => Err(AbiError::Kind(kind)),
        }
    }
}

impl Header {
    /// Of a message of `T`.
    pub fn of<T>(kind: u16, flow: u32) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            kind,
            flow,
            size: size_of::<T>() as u32,
        }
    }
}

impl ActionSlot {
    /// Factors are in units of this.
    const ONE: f64 = 65536.0;

    /// What the kernel is told of an action that sets at most one parameter; `index` is that parameter's.
    pub fn of(action: Action<'_>, index: u32) -> ActionSlot {
        let (kind, value) = match action {
            Action::AddCwnd(packets) => (ADD_CWND, packets),
            Action::ScaleCwnd(factor) => (SCALE_CWND, factor * ActionSlot::ONE),
            Action::ScaleRate(factor) => (SCALE_RATE, factor * ActionSlot::ONE),
            Action::Set(_, value) => (SET, value * 1e9),
            _ => (NOTHING, 0.0),
        };
        ActionSlot {
            kind,
            value: value.round_ties_even() as i64,
            parameter: if kind == SET { index } else { 0 },
            ..ActionSlot::default()
        }
    }

    /// What the program does for it, where `name` is the parameter's; `None` for nothing.
    pub fn action<'a>(&self, name: &'a str) -> Option<Action<'a>> {
        let value = self.value as f64;
        Some(match self.kind {
            ADD_CWND => Action::AddCwnd(value),
            SCALE_CWND => Action::ScaleCwnd(value / ActionSlot::ONE),
            SCALE_RATE => Action::ScaleRate(value / ActionSlot::ONE),
            SET => Action::Set(name, value * 1e-9),
            _ => return None,
        })
    }
}
