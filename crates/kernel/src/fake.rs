//! What an agent sees of a kernel: messages, and slots for its actions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headway_cc::{Bytes, Setup, Time};
use headway_policy::Record;
use zerocopy::{FromBytes, IntoBytes};

use crate::abi::{ActionSlot, CLOSE, Header, OPEN, Open, REPORT, Report};
use crate::{AbiError, Ring, TcpSock};

/// A stand-in for the kernel's side, shared by its flows and the agent.
#[derive(Clone, Debug)]
pub struct FakeKernel(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    ring: Ring,
    flows: u32,
    slots: BTreeMap<u32, ActionSlot>,
}

impl FakeKernel {
    /// With a ring of so many bytes.
    pub fn new(ring_bytes: usize) -> FakeKernel {
        FakeKernel(Arc::new(Mutex::new(State {
            ring: Ring::new(ring_bytes),
            flows: 0,
            slots: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Writes a flow's action slot.
    ///
    /// # Errors
    /// [`AbiError::Size`] if that is not an action.
    pub fn write_action(&self, flow: u32, bytes: &[u8]) -> Result<(), AbiError> {
        let wrong = |_| AbiError::Size {
            kind: 0,
            bytes: bytes.len(),
        };
        let slot = ActionSlot::read_from_bytes(bytes).map_err(wrong)?;
        self.state().slots.insert(flow, slot);
        Ok(())
    }

    // The flows' end.

    /// A flow begins; returns its number.
    pub fn open(&self, setup: &Setup) -> u32 {
        let mut state = self.state();
        state.flows += 1;
        let flow = state.flows;
        let open = Open {
            header: Header::of::<Open>(OPEN, flow, slot(flow)),
            start_ns: TcpSock::now_ns(setup.start),
            mss: setup.mss.get() as u32,
            initial_cwnd: (setup.initial_cwnd.get() / setup.mss.get().max(1)) as u32,
            ..Open::default()
        };
        state.ring.push(open.as_bytes());
        flow
    }

    /// A flow's state.
    pub fn report(&self, flow: u32, record: Record) {
        self.push(REPORT, flow, record);
    }

    /// A flow ends.
    pub fn close(&self, flow: u32, record: Record) {
        self.push(CLOSE, flow, record);
        self.state().slots.remove(&flow);
    }

    fn push(&self, kind: u16, flow: u32, record: Record) {
        let header = Header::of::<Report>(kind, flow, slot(flow));
        let report = Report { header, record };
        self.state().ring.push(report.as_bytes());
    }

    /// A flow's action, if it was whole, is new since `sequence`, and has not expired.
    pub fn action(&self, flow: u32, sequence: u32, now: Time) -> Option<ActionSlot> {
        let slot = *self.state().slots.get(&flow)?;
        let is_whole = slot.sequence.is_multiple_of(2);
        let is_new = slot.sequence != sequence;
        (is_whole && is_new && TcpSock::now_ns(now) < slot.expires_ns).then_some(slot)
    }

    /// Replays a script: the fields of a socket at each moment, with the acknowledgements it stands for.
    pub fn replay(&self, mss: Bytes, script: &[(u64, TcpSock, u32)]) -> u32 {
        let flow = self.open(&Setup::new(mss, 0));
        for (now_ns, sock, acks) in script {
            self.report(flow, sock.record(*now_ns, *acks));
        }
        flow
    }
}

/// There is one for each flow: none is used again.
fn slot(flow: u32) -> u16 {
    flow as u16
}
