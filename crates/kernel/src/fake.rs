//! What an agent sees of a kernel: messages, and slots for its actions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headway_cc::{Bytes, Setup, Time};
use headway_fixed::{Int8, LimitError};
use headway_policy::Record;
use zerocopy::{FromBytes, IntoBytes};

use crate::abi::{
    ActionSlot, CLOSE, CounterValues, Header, Known, Message, OPEN, Open, REPORT, Report,
    SettingValues, VERDICT, VerdictMessage,
};
use crate::{AbiError, Ring, TcpSock};

/// A stand-in for the kernel's side. Its flows and the agent share it.
#[derive(Clone, Debug)]
pub struct FakeKernel(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Time,
    ring: Ring,
    flows: u32,
    /// The free slots, the next one to use first.
    free_slots: VecDeque<u16>,
    slots: Vec<ActionSlot>,
    /// What an agent leaves to its successor.
    known: Vec<Known>,
    settings: SettingValues,
    own_policy: Int8,
    counters: CounterValues,
    is_woken: bool,
    /// The remote address of flows that open from now on.
    remote: [u8; 16],
    /// The user of flows that take a slot from now on.
    user: u32,
    /// The user of each slot.
    users: Vec<Option<u32>>,
}

/// The number and the slot of a flow, which its messages contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSlot {
    /// The flow's number.
    pub number: u32,
    /// The slot for its actions.
    pub slot: u16,
}

impl FakeKernel {
    /// The default number of slots of headwayd.
    pub const SLOTS: u16 = 4096;

    /// A kernel with a ring of this size.
    pub fn new(ring_bytes: usize) -> FakeKernel {
        FakeKernel::with_slots(ring_bytes, FakeKernel::SLOTS)
    }

    /// A kernel with a ring of this size, and slots for this many flows.
    pub fn with_slots(ring_bytes: usize, slots: u16) -> FakeKernel {
        FakeKernel(Arc::new(Mutex::new(State {
            now: Time::ZERO,
            ring: Ring::new(ring_bytes),
            flows: 0,
            free_slots: (0..slots).collect(),
            slots: vec![ActionSlot::default(); slots.into()],
            known: vec![Known::default(); slots.into()],
            settings: SettingValues::default(),
            own_policy: Int8::default(),
            counters: CounterValues::default(),
            is_woken: false,
            remote: [0; 16],
            user: 0,
            users: vec![None; slots.into()],
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time on the clock that both sides use.
    pub fn now(&self) -> Time {
        self.state().now
    }

    /// Sets the time.
    pub fn set_now(&self, now: Time) {
        self.state().now = now;
    }

    // The agent's end.

    /// Takes the oldest message as bytes.
    pub fn next_message(&self) -> Option<Box<[u8]>> {
        self.state().ring.pop()
    }

    /// How many messages the ring has dropped because it was full.
    pub fn dropped(&self) -> u64 {
        self.state().ring.dropped()
    }

    /// Writes an action into a slot, with the next sequence number. A slot that does not exist
    /// ignores it.
    pub fn write_slot(&self, slot: u16, action: &ActionSlot) {
        if let Some(place) = self.state().slots.get_mut(usize::from(slot)) {
            *place = ActionSlot {
                sequence: (place.sequence & !1).wrapping_add(2),
                ..*action
            };
        }
    }

    /// Writes a slot's bytes as they are, also an incomplete action.
    ///
    /// # Errors
    /// [`AbiError::Size`] if the size is not an action's.
    pub fn write_bytes(&self, slot: u16, bytes: &[u8]) -> Result<(), AbiError> {
        let wrong = |_| AbiError::Size {
            kind: 0,
            bytes: bytes.len(),
        };
        let action = ActionSlot::read_from_bytes(bytes).map_err(wrong)?;
        if let Some(place) = self.state().slots.get_mut(usize::from(slot)) {
            *place = action;
        }
        Ok(())
    }

    /// Keeps what a message says of its flow for the agent's successor.
    pub fn remember(&self, message: &Message) {
        let slot = usize::from(message.header().slot);
        if let Some(known) = self.state().known.get_mut(slot) {
            known.take(message);
        }
    }

    /// What the agent's predecessor has left.
    pub fn known(&self) -> Vec<Known> {
        let state = self.state();
        let all = state.known.iter().copied();
        all.filter(|known| known.open.header.flow != 0).collect()
    }

    /// The counters so far.
    pub fn counters(&self) -> CounterValues {
        let state = self.state();
        CounterValues {
            ring_dropped: state.ring.dropped(),
            ..state.counters
        }
    }

    /// Sets what holds for all flows, including existing ones. Without `own_policy` the agent
    /// decides.
    ///
    /// # Errors
    /// [`LimitError`]: one of the guard's limits is out of its range, and nothing is set.
    pub fn configure(
        &self,
        settings: SettingValues,
        own_policy: Option<&Int8>,
    ) -> Result<(), LimitError> {
        settings.check()?;
        let mut state = self.state();
        let generation = state.own_policy.generation.wrapping_add(2);
        state.settings = SettingValues {
            served_until_ns: state.settings.served_until_ns,
            ..settings
        };
        state.own_policy = Int8 {
            generation: own_policy.map_or(0, |_| generation),
            ..own_policy.cloned().unwrap_or_default()
        };
        Ok(())
    }

    /// An agent serves flows until this time, unless it sets another. At first no agent does.
    pub fn set_served_until(&self, until: Time) {
        self.state().settings.served_until_ns = TcpSock::now_ns(until);
    }

    /// The time until which an agent serves flows.
    pub fn served_until(&self) -> Time {
        Time::from_nanos(self.state().settings.served_until_ns)
    }

    /// Sets whether messages are being read. If not, a request wakes the agent.
    pub fn set_awake(&self, is_awake: bool) {
        self.state().settings.is_awake = is_awake.into();
    }

    /// Has a request woken the agent, which has not [noticed it](Self::clear_wake) yet?
    pub fn is_woken(&self) -> bool {
        self.state().is_woken
    }

    /// The agent has noticed the wake-up.
    pub fn clear_wake(&self) {
        self.state().is_woken = false;
    }

    // The flows' end.

    /// The settings for all flows.
    pub fn settings(&self) -> SettingValues {
        self.state().settings
    }

    /// The policy that decides instead of the agent, if there is one.
    pub fn own_policy(&self) -> Option<Int8> {
        let state = self.state();
        (state.own_policy.generation != 0).then(|| state.own_policy.clone())
    }

    /// Sets the remote IPv6 address of flows that take a slot from now on.
    pub fn set_remote(&self, address: [u8; 16]) {
        self.state().remote = address;
    }

    /// Sets the user of flows that take a slot from now on; 0 is root.
    pub fn set_user(&self, user: u32) {
        self.state().user = user;
    }

    /// Gives a slot to a flow; `None` if no slot is free, or if the user has too many.
    pub fn take_slot(&self) -> Option<FlowSlot> {
        let mut state = self.state();
        let user = state.user;
        let taken = state.users.iter().filter(|has| **has == Some(user)).count();
        if user != 0 && taken >= state.settings.flows_of_user as usize {
            state.counters.user_full += 1;
            return None;
        }
        let Some(slot) = state.free_slots.pop_front() else {
            state.counters.slots_full += 1;
            return None;
        };
        state.users[usize::from(slot)] = Some(user);
        state.flows += 1;
        state.counters.flows += 1;
        Some(FlowSlot {
            number: state.flows,
            slot,
        })
    }

    /// Frees the slot of a flow that has ended.
    ///
    /// # Panics
    /// If the slot is free already: two flows would get it.
    pub fn free_slot(&self, slot: u16) {
        let mut state = self.state();
        let is_free = state.free_slots.contains(&slot);
        assert!(!is_free, "slot {slot} is freed twice");
        state.users[usize::from(slot)] = None;
        state.free_slots.push_back(slot);
    }

    /// Sends a flow's first message. Was there room for it?
    pub fn open(&self, place: FlowSlot, setup: &Setup) -> bool {
        let mut state = self.state();
        let open = Open {
            header: Header::of::<Open>(OPEN, place.number, place.slot),
            remote_address: state.remote,
            user: state.users[usize::from(place.slot)].unwrap_or_default(),
            start_ns: TcpSock::now_ns(setup.start),
            mss: setup.mss.get() as u32,
            initial_cwnd: (setup.initial_cwnd.get() / setup.mss.get().max(1)) as u32,
            ..Open::default()
        };
        state.ring.push(open.as_bytes())
    }

    /// Sends a flow's state. Was there room for it?
    pub fn report(&self, place: FlowSlot, record: Record) -> bool {
        self.push(REPORT, place, record)
    }

    /// Sends a flow's last message.
    pub fn close(&self, place: FlowSlot, record: Record) {
        self.push(CLOSE, place, record);
        self.free_slot(place.slot);
    }

    fn push(&self, kind: u16, place: FlowSlot, record: Record) -> bool {
        let header = Header::of::<Report>(kind, place.number, place.slot);
        let report = Report { header, record };
        self.state().ring.push(report.as_bytes())
    }

    /// Is a report that is no request held back? It is counted then.
    pub fn holds_back(&self) -> bool {
        let mut state = self.state();
        let is_held = state.ring.is_half_full();
        state.counters.held_back += u64::from(is_held);
        is_held
    }

    /// The guard takes a flow for a reason, or gives it back for none (0), and has taken it so
    /// often. One without a slot is only counted.
    pub fn judged(&self, place: Option<FlowSlot>, now: Time, reason: u32, trips: u32) {
        let mut state = self.state();
        match reason {
            0 => state.counters.returns += 1,
            _ => state.counters.trips[reason as usize & 7] += 1,
        }
        let Some(place) = place else { return };
        let verdict = VerdictMessage {
            header: Header::of::<VerdictMessage>(VERDICT, place.number, place.slot),
            now_ns: TcpSock::now_ns(now),
            reason,
            trips,
        };
        state.ring.push(verdict.as_bytes());
    }

    /// A request was sent. It wakes a sleeping agent.
    pub fn wake(&self) {
        let mut state = self.state();
        if state.settings.is_awake == 0 {
            state.counters.wakes += 1;
            state.is_woken = true;
        }
    }

    /// The action of a slot, if it is complete, and newer than `sequence`.
    pub fn action(&self, slot: u16, sequence: u32) -> Option<ActionSlot> {
        let action = *self.state().slots.get(usize::from(slot))?;
        let is_whole = action.sequence.is_multiple_of(2);
        (is_whole && action.sequence != sequence).then_some(action)
    }

    /// Replays a script: a socket's fields at each moment, with the number of acknowledgements.
    ///
    /// # Panics
    /// If no slot is free.
    pub fn replay(&self, mss: Bytes, script: &[(u64, TcpSock, u32)]) -> u32 {
        let place = self.take_slot().expect("a slot");
        self.open(place, &Setup::new(mss, 0));
        for (now_ns, sock, acks) in script {
            self.report(place, sock.record(*now_ns, *acks));
        }
        place.number
    }
}
