//! What the agent asks of a kernel's program.

use headway_cc::Time;
use headway_fixed::Int8;
use headway_kernel::abi::{ActionSlot, CounterValues, Known, Message, SettingValues};

use crate::error::Result;
use crate::programs::{Controller, KnownFlows, Program};
use crate::system::clock;

/// A program whose flows the agent serves. Its messages come by
/// [`Agent::on_message`](super::Agent::on_message).
pub trait Kernel {
    /// The controller that it is.
    fn controller(&self) -> Controller;

    /// That controller's name in the kernel.
    fn name(&self) -> &str;

    /// Which build of the program it is, in a few letters.
    fn version(&self) -> &str;

    /// The time by the clock that the program has too.
    fn now(&self) -> Time;

    /// Publishes an action; its `sequence` is given there. A slot that there is not takes nothing.
    fn write_slot(&self, slot: u16, action: &ActionSlot);

    /// What the program counts.
    fn counters(&self) -> CounterValues;

    /// Keeps what a message says of its flow for the agent after this one.
    fn remember(&self, message: &Message);

    /// The flows that the agent before this one knew of. They may have ended.
    fn known(&self) -> Vec<Known>;

    /// Sets what holds for all its flows, also for those that there are.
    ///
    /// # Errors
    /// One line: one of the guard's limits is beyond its range, and nothing is set.
    fn configure(&mut self, settings: SettingValues, own_policy: Option<&Int8>) -> Result<()>;

    /// Tells it that flows may take slots until then, by its own clock.
    fn set_served_until(&self, until: Time);

    /// Says to it whether its messages are being read: if not, a question wakes the agent.
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
