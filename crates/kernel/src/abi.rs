//! `bpf/abi.h` and `bpf/settings.h` in Rust. `tests/abi.rs` compares sizes, offsets and constants.

use headway_cc::{Duration, Kind, Param};
use headway_fixed::{LimitError, Limits};
use headway_policy::{Action, AgentSpec, BaseSpec, Record};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `HEADWAY_MAGIC`
pub const MAGIC: u32 = 0x5957_4448;
/// `HEADWAY_VERSION`. It covers the meaning of all maps that programs and agents share, including
/// [`SettingValues`] and [`Known`]. An agent uses pinned programs of this version.
pub const VERSION: u16 = 12;

/// `HEADWAY_FLOWS`
pub const FLOWS: u32 = 16384;
/// `HEADWAY_LATEST_DUE_NS`
pub const LATEST_DUE: Duration = Duration::from_secs(1);
/// `HEADWAY_ASK_AGAIN_NS`
pub const ASK_AGAIN: Duration = Duration::from_millis(100);
/// `HEADWAY_LOOK_AGAIN_NS`
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// `HEADWAY_OPEN`
pub const OPEN: u16 = 1;
/// `HEADWAY_REPORT`
pub const REPORT: u16 = 2;
/// `HEADWAY_CLOSE`
pub const CLOSE: u16 = 3;
/// `HEADWAY_VERDICT`
pub const VERDICT: u16 = 4;

/// `HEADWAY_NOTHING`
pub const NOTHING: u16 = 0;
/// `HEADWAY_ADD_CWND`
pub const ADD_CWND: u16 = 1;
/// `HEADWAY_SCALE_CWND`
pub const SCALE_CWND: u16 = 2;
/// `HEADWAY_SCALE_RATE`
pub const SCALE_RATE: u16 = 3;
/// `HEADWAY_SET`
pub const SET: u16 = 4;
/// `HEADWAY_SET_CWND`
pub const SET_CWND: u16 = 5;
/// `HEADWAY_LEAVE`
pub const LEAVE: u16 = 6;

/// `HEADWAY_LEARNER`
pub const LEARNER: u16 = 1;

/// `HEADWAY_PARAMETERS`
pub const PARAMETERS: usize = 4;

/// `struct headway_header`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Header {
    /// [`MAGIC`]
    pub magic: u32,
    /// [`VERSION`]
    pub version: u16,
    /// One of [`OPEN`], [`REPORT`], [`CLOSE`], [`VERDICT`].
    pub kind: u16,
    /// The flow's number.
    pub flow: u32,
    /// The slot for the flow's actions. No other flow has it at the same time.
    pub slot: u16,
    /// The size of the whole message in bytes.
    pub size: u16,
}

/// `struct headway_open`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Open {
    /// The header.
    pub header: Header,
    /// When the flow began, on the host's monotonic clock.
    pub start_ns: u64,
    /// The local address: IPv6, or IPv4 mapped into it.
    pub local_address: [u8; 16],
    /// The remote address: IPv6, or IPv4 mapped into it.
    pub remote_address: [u8; 16],
    /// The local port, in host byte order.
    pub local_port: u16,
    /// The remote port, in host byte order.
    pub remote_port: u16,
    /// The size of a full packet on the wire in bytes.
    pub mss: u32,
    /// The flow's initial window in packets.
    pub initial_cwnd: u32,
    /// The id of the user who owns the socket.
    pub user: u32,
}

/// `struct headway_report`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Report {
    /// The header.
    pub header: Header,
    /// The flow's state.
    pub record: Record,
}

/// `struct headway_verdict`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct VerdictMessage {
    /// The header.
    pub header: Header,
    /// The time of the verdict.
    pub now_ns: u64,
    /// Why the guard took the flow; 0 if it gives the flow back.
    pub reason: u32,
    /// The number of trips of this flow so far.
    pub trips: u32,
}

/// What an agent leaves to its successor about the flow of a slot. No program reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Known {
    /// The flow's first message; its flow is 0 if there is none.
    pub open: Open,
    /// The guard's last verdict, if it is of the same flow.
    pub verdict: VerdictMessage,
}

impl Known {
    /// The entry of a flow that has just begun.
    pub fn of(open: Open) -> Known {
        Known {
            open,
            ..Known::default()
        }
    }

    /// The guard's last verdict on the flow, if there was one.
    pub fn judged(&self) -> Option<&VerdictMessage> {
        (self.verdict.header.flow == self.open.header.flow).then_some(&self.verdict)
    }

    /// Takes a message of the slot's flow.
    pub fn take(&mut self, message: &Message) {
        match message {
            Message::Open(open) => *self = Known::of(*open),
            Message::Verdict(verdict) if verdict.header.flow == self.open.header.flow => {
                self.verdict = *verdict;
            }
            Message::Close(report) if report.header.flow == self.open.header.flow => {
                *self = Known::default();
            }
            Message::Verdict(_) | Message::Close(_) | Message::Report(_) => {}
        }
    }
}

/// `struct headway_action`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ActionSlot {
    /// The time of the record that this answers, or of a clock's decision.
    pub decided_ns: u64,
    /// The time at which it was written.
    pub answered_ns: u64,
    /// The time from which on it is not applied.
    pub expires_ns: u64,
    /// The time from which on the first record sends a request, and wakes the agent if it sleeps.
    pub due_ns: u64,
    /// The values of the action: one for each parameter for [`SET`], else a single one.
    pub values: [i64; PARAMETERS],
    /// The kind, such as [`ADD_CWND`].
    pub kind: u16,
    /// The flags: [`LEARNER`] or 0.
    pub flags: u16,
    /// The parameters to set, for [`SET`]: bit i stands for parameter i.
    pub which: u32,
    /// A number that grows with each action; it is even.
    pub sequence: u32,
    /// The flow's number, because slots are used again.
    pub flow: u32,
}

/// A message that the agent does not understand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbiError {
    /// It is not a message of Headway.
    #[error("the message does not begin with Headway's magic number, but with {0:#010x}")]
    Magic(u32),
    /// It has another version.
    #[error(
        "the BPF programs speak version {0} of the ABI and this agent version {VERSION}; load the programs that came with it"
    )]
    Version(u16),
    /// It is too short or too long, or does not fit its kind.
    #[error("a message of kind {kind} has {bytes} bytes, which is not its size")]
    Size {
        /// The kind that it states.
        kind: u16,
        /// The number of its bytes.
        bytes: usize,
    },
    /// Its kind does not exist.
    #[error("there is no message of kind {0}")]
    Kind(u16),
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// A flow began.
    Open(Open),
    /// A flow's state.
    Report(Report),
    /// A flow ended, with its last state.
    Close(Report),
    /// The guard took a flow, or gave it back.
    Verdict(VerdictMessage),
}

/// `struct headway_counters`
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct CounterValues {
    /// The number of flows that have had a slot.
    pub flows: u64,
    /// How often a flow found no free slot. It looks once a second, and the base controller has the
    /// flow meanwhile.
    pub slots_full: u64,
    /// How often a flow found no slot because its user's flows had as many as one user may have.
    pub user_full: u64,
    /// The number of messages that were dropped because the ring was full.
    pub ring_dropped: u64,
    /// How often the guard gave a flow back.
    pub returns: u64,
    /// How often a request woke the sleeping agent.
    pub wakes: u64,
    /// How often the guard took a flow, by its reason.
    pub trips: [u64; 8],
    /// The number of records without a request that were held back, because less than half of the
    /// ring was free.
    pub held_back: u64,
}

/// `struct headway_settings`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SettingValues {
    /// The initial rate of a steered rate, in bytes a second on the wire.
    pub initial_rate: u64,
    /// The lowest rate.
    pub min_rate: u64,
    /// The highest rate.
    pub max_rate: u64,
    /// The time, on the programs' clock, from which on no flow takes a slot. A running agent moves
    /// it on.
    pub served_until_ns: u64,
    /// The shortest time between two records of a flow, except for requests. With 0 each
    /// acknowledgement sends a record.
    pub report_interval_us: u32,
    /// Does Cubic's window grow by itself where the policy may act?
    pub grows: u32,
    /// Shadow mode: Cubic decides, and the agent is asked what it would have done.
    pub is_shadow: u32,
    /// The agent reads messages now, or very soon, so a request need not wake it.
    pub is_awake: u32,
    /// The largest number of slots for the flows of one user. Root's flows may have all.
    pub flows_of_user: u32,
    /// Are flows from an address to itself served too?
    pub serves_loopback: u32,
    /// Records without a request are held back while more bytes than this wait in the ring. An
    /// agent sets half of the ring's size, whatever these settings say.
    pub most_waiting_bytes: u32,
    /// The limits begin at a multiple of 8 bytes.
    pub unused: u32,
    /// The guard's limits.
    pub limits: Limits,
    /// The guard's limits for flows whose policies learn in use: [`LEARNER`].
    pub learner_limits: Limits,
}

impl Default for SettingValues {
    fn default() -> SettingValues {
        SettingValues {
            initial_rate: 0,
            min_rate: 0,
            max_rate: 0,
            served_until_ns: 0,
            report_interval_us: 0,
            grows: 0,
            is_shadow: 0,
            is_awake: 0,
            flows_of_user: u32::MAX,
            serves_loopback: 0,
            most_waiting_bytes: u32::MAX,
            unused: 0,
            limits: Limits::default(),
            learner_limits: Limits::default().for_learners(),
        }
    }
}

impl SettingValues {
    /// Checks that the guard's limits are in their ranges.
    ///
    /// # Errors
    /// [`LimitError`]
    pub fn check(&self) -> Result<(), LimitError> {
        self.limits.check()?;
        self.learner_limits.check()
    }

    /// The settings for flows of such an agent.
    pub fn of(agent: &AgentSpec) -> SettingValues {
        let bytes_a_second = |mbps: f64| (mbps * 1e6 / 8.0) as u64;
        match agent.base {
            BaseSpec::Rate {
                initial_mbps,
                min_mbps,
                max_mbps,
            } => SettingValues {
                initial_rate: bytes_a_second(initial_mbps),
                min_rate: bytes_a_second(min_mbps),
                max_rate: bytes_a_second(max_mbps),
                ..SettingValues::default()
            },
            BaseSpec::Scheme { grows, .. } => SettingValues {
                grows: grows.into(),
                ..SettingValues::default()
            },
        }
    }
}

impl Message {
    /// The message's header.
    pub fn header(&self) -> &Header {
        match self {
            Message::Open(open) => &open.header,
            Message::Report(report) | Message::Close(report) => &report.header,
            Message::Verdict(verdict) => &verdict.header,
        }
    }

    /// Reads a message.
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
        if usize::from(header.size) != bytes.len() {
            return Err(wrong_size());
        }
        let report = || Report::read_from_bytes(bytes).map_err(|_| wrong_size());
        match header.kind {
            OPEN => Ok(Message::Open(
                Open::read_from_bytes(bytes).map_err(|_| wrong_size())?,
            )),
            REPORT => report().map(Message::Report),
            CLOSE => report().map(Message::Close),
            VERDICT => Ok(Message::Verdict(
                VerdictMessage::read_from_bytes(bytes).map_err(|_| wrong_size())?,
            )),
            kind => Err(AbiError::Kind(kind)),
        }
    }
}

impl Header {
    /// The header of a message of type `T`.
    pub fn of<T>(kind: u16, flow: u32, slot: u16) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            kind,
            flow,
            slot,
            size: size_of::<T>() as u16,
        }
    }
}

impl ActionSlot {
    /// The kernel's form of an action. `tunables` are the parameters of the base controller.
    pub fn of(action: Action<'_>, tunables: &[Param]) -> ActionSlot {
        match action {
            Action::Nothing => ActionSlot::default(),
            Action::AddCwnd(packets) => ActionSlot::one(ADD_CWND, packets),
            Action::ScaleCwnd(factor) => ActionSlot::one(SCALE_CWND, factor * FIXED),
            Action::ScaleRate(factor) => ActionSlot::one(SCALE_RATE, factor * FIXED),
            Action::Set(name, value) => ActionSlot::set([(name, value)], tunables),
            Action::Settings(names, values) => {
                let names = names.iter().map(String::as_str);
                ActionSlot::set(names.zip(values.iter().copied()), tunables)
            }
        }
    }

    /// The kernel's form of a window in packets.
    pub fn of_cwnd(packets: u32) -> ActionSlot {
        ActionSlot::one(SET_CWND, packets.into())
    }

    /// The action that leaves the flow to Cubic until another action comes.
    pub fn leave() -> ActionSlot {
        ActionSlot::one(LEAVE, 0.0)
    }

    fn one(kind: u16, value: f64) -> ActionSlot {
        let mut slot = ActionSlot {
            kind,
            ..ActionSlot::default()
        };
        slot.values[0] = value.round_ties_even() as i64;
        slot
    }

    fn set<'a>(
        settings: impl IntoIterator<Item = (&'a str, f64)>,
        tunables: &[Param],
    ) -> ActionSlot {
        let mut slot = ActionSlot {
            kind: SET,
            ..ActionSlot::default()
        };
        for (name, value) in settings {
            // The name exists, because specs are checked.
            if let Some(i) = tunables.iter().position(|p| p.name == name) {
                slot.values[i] = (value * units(&tunables[i].kind)).round_ties_even() as i64;
                slot.which |= 1 << i;
            }
        }
        slot
    }

    /// The actions of the program for a controller with such parameters.
    pub fn actions(&self, tunables: &'static [Param]) -> Vec<Action<'static>> {
        let value = self.values[0] as f64;
        match self.kind {
            ADD_CWND => vec![Action::AddCwnd(value)],
            SCALE_CWND => vec![Action::ScaleCwnd(value / FIXED)],
            SCALE_RATE => vec![Action::ScaleRate(value / FIXED)],
            SET => (tunables.iter().zip(self.values).enumerate())
                .filter(|(i, _)| self.which & 1 << i != 0)
                .map(|(_, (p, value))| Action::Set(p.name, value as f64 / units(&p.kind)))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// Factors and plain numbers are in units of 1/65536.
const FIXED: f64 = 65536.0;

/// How many of the kernel's units make one unit of such a parameter. For example, a second has a
/// billion nanoseconds.
fn units(kind: &Kind) -> f64 {
    match kind {
        Kind::Number { .. } => FIXED,
        Kind::Time { .. } => 1e9,
        // The simulator has a rate in bit/s, the kernel in bytes a second.
        Kind::Rate { .. } => 1.0 / 8.0,
        Kind::Count { .. } | Kind::Choice(_) | Kind::Switch | Kind::Loaded { .. } => 1.0,
    }
}
