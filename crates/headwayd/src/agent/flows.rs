//! The flows of a program, by their slots.

use headway_kernel::abi::Header;

use super::flow::Flow;

/// At most one for each slot: finding one takes no search.
#[derive(Debug, Default)]
pub struct Flows(Vec<Option<Box<Flow>>>);

impl Flows {
    /// One opens. Whoever had its slot has ended, even if that found no room in the ring.
    pub fn put(&mut self, slot: u16, flow: Flow) {
        let slot = usize::from(slot);
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some(Box::new(flow));
    }

    /// The one that a slot has.
    pub fn get(&self, slot: u16) -> Option<&Flow> {
        self.0.get(usize::from(slot))?.as_deref()
    }

    /// The same, to be changed.
    pub fn at(&mut self, slot: u16) -> Option<&mut Flow> {
        self.0.get_mut(usize::from(slot))?.as_deref_mut()
    }

    /// The one that a message is of, unless its slot has another by now.
    pub fn of(&mut self, header: &Header) -> Option<&mut Flow> {
        self.at(header.slot)
            .filter(|flow| flow.number() == header.flow)
    }

    /// The same, which ends.
    pub fn take(&mut self, header: &Header) -> Option<Box<Flow>> {
        self.of(header)?;
        self.0[usize::from(header.slot)].take()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.0.iter().flatten().map(Box::as_ref)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.0.iter_mut().flatten().map(Box::as_mut)
    }
}
