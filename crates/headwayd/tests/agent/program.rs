//! A program of the fake kernel, as the agent sees it. The agent's unit tests use it too.

use headway_cc::Time;
use headway_fixed::Int8;
use headway_kernel::FakeKernel;
use headway_kernel::abi::{ActionSlot, CounterValues, Known, Message, SettingValues};
use headwayd::agent::Kernel;
use headwayd::{Controller, Result};

pub struct Program {
    pub controller: Controller,
    pub kernel: FakeKernel,
}

impl Kernel for Program {
    fn controller(&self) -> Controller {
        self.controller
    }

    fn name(&self) -> &str {
        self.controller.name()
    }

    fn version(&self) -> &str {
        "fake"
    }

    fn now(&self) -> Time {
        self.kernel.now()
    }

    fn write_slot(&self, slot: u16, action: &ActionSlot) {
        self.kernel.write_slot(slot, action);
    }

    fn counters(&self) -> CounterValues {
        self.kernel.counters()
    }

    fn remember(&self, message: &Message) {
        self.kernel.remember(message);
    }

    fn known(&self) -> Vec<Known> {
        self.kernel.known()
    }

    fn configure(&mut self, settings: SettingValues, own_policy: Option<&Int8>) -> Result<()> {
        Ok(self.kernel.configure(settings, own_policy)?)
    }

    fn set_served_until(&self, until: Time) {
        self.kernel.set_served_until(until);
    }

    fn set_awake(&self, is_awake: bool) {
        self.kernel.set_awake(is_awake);
    }
}
