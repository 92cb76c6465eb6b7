//! What the agent needs of a kernel's program.

use headway_cc::Time;
use headway_fixed::Int8;
use headway_kernel::abi::{ActionSlot, CounterValues, Known, Message, SettingValues};

use crate::error::Result;
use crate::programs::{Controller, KnownFlows, Program};
use crate::system::clock;

/// A program whose flows the agent serves. Its messages come by
/// [`Agent::on_message`](super::Agent::on_message).
pub trait Kernel {
    /// The controller of the program.
    fn controller(&self) -> Controller;

    /// The controller's name in the kernel.
    fn name(&self) -> &str;

    /// The first letters of the digest of the program's object.
    fn version(&self) -> &str;

    /// The time by the clock that the program uses.
    fn now(&self) -> Time;

    /// Publishes an action and sets its `sequence`. A slot beyond the map is ignored.
    fn write_slot(&self, slot: u16, action: &ActionSlot);

    /// The program's counters.
    fn counters(&self) -> CounterValues;

    /// Keeps what a message says about its flow for the next agent.
    fn remember(&self, message: &Message);

    /// The flows of the previous agent. They may have ended.
    fn known(&self) -> Vec<Known>;

    /// Writes the settings of all its flows, the present ones included.
    ///
    /// # Errors
    /// One line: one of the guard's limits is beyond its range, and nothing is set.
    fn configure(&mut self, settings: SettingValues, own_policy: Option<&Int8>) -> Result<()>;

    /// Tells the program that flows may take slots until this time of its clock.
    fn set_served_until(&self, until: Time);

    /// Tells the program whether its messages are being read. If not, a request wakes the agent.
    fn set_awake(&self, is_awake: bool);
}

impl Kernel for Program {
    fn controller(&self) -> Controller {
        self.controller
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn now(&self) -> Time {
        clock::now()
    }

    fn write_slot(&self, slot: u16, action: &ActionSlot) {
        self.slots.write(slot, action);
    }

    fn counters(&self) -> CounterValues {
        self.counters.read()
    }

    fn remember(&self, message: &Message) {
        if let Some(known) = &self.known {
            known.take(message);
        }
    }

    fn known(&self) -> Vec<Known> {
        self.known.as_ref().map_or_else(Vec::new, KnownFlows::read)
    }

    fn configure(&mut self, settings: SettingValues, own_policy: Option<&Int8>) -> Result<()> {
        self.configure(settings, own_policy)
    }

    fn set_served_until(&self, until: Time) {
        self.set_served_until(until);
    }

    fn set_awake(&self, is_awake: bool) {
        self.set_awake(is_awake);
    }
}
