//! The flows of a program, by their slots.

use std::collections::HashMap;

use headway_cc::Time;
use headway_kernel::abi::{Header, Known};

use super::flow::Flow;
use super::learners::Learning;

/// At most one flow for each slot, so that finding a flow takes no search.
#[derive(Debug, Default)]
pub struct Flows {
    by_slot: Vec<Option<Box<Flow>>>,
    /// Flows that have sent no record yet.
    opened: HashMap<u16, Known>,
    count: usize,
    learning: Learning,
}

impl Flows {
    /// A flow opens. Returns the flow that had its slot before.
    pub fn put(&mut self, known: Known) -> Option<Box<Flow>> {
        let slot = known.open.header.slot;
        self.opened.insert(slot, known);
        self.empty(slot)
    }

    /// Learners without a record for long give their places to others. Each begins again with its
    /// next record.
    pub fn let_go_of_silent_learners(&mut self, now: Time) {
        let silent = |flow: &&Flow| flow.learns().is_some() && flow.is_silent(now);
        let silent: Vec<Known> = self.iter().filter(silent).map(Flow::known).collect();
        for known in silent {
            tracing::debug!(
                flow = known.open.header.flow,
                "the flow gives up its place among the learners, because it is silent"
            );
            self.put(known);
        }
    }

    fn empty(&mut self, slot: u16) -> Option<Box<Flow>> {
        let before = self.by_slot.get_mut(usize::from(slot))?.take()?;
        self.count -= 1;
        if before.learns().is_some() {
            self.learning.remove(before.user());
        }
        Some(before)
    }

    /// The OPEN of the flow that sent a message, if this is its first one.
    pub fn opened(&mut self, header: &Header) -> Option<Known> {
        if self.opened.is_empty() || self.opened.get(&header.slot)?.open.header.flow != header.flow
        {
            return None;
        }
        self.opened.remove(&header.slot)
    }

    /// Serves a flow from now on.
    pub fn begin(&mut self, slot: u16, flow: Flow) {
        let slot = usize::from(slot);
        if self.by_slot.len() <= slot {
            self.by_slot.resize_with(slot + 1, || None);
        }
        self.count += 1;
        if flow.learns().is_some() {
            self.learning.add(flow.user());
        }
        self.by_slot[slot] = Some(Box::new(flow));
    }

    /// The flow in a slot.
    pub fn get(&self, slot: u16) -> Option<&Flow> {
        self.by_slot.get(usize::from(slot))?.as_deref()
    }

    /// The flow in a slot, to be changed.
    pub fn at(&mut self, slot: u16) -> Option<&mut Flow> {
        self.by_slot.get_mut(usize::from(slot))?.as_deref_mut()
    }

    /// The flow that sent a message, unless its slot has another flow by now.
    pub fn of(&mut self, header: &Header) -> Option<&mut Flow> {
        self.at(header.slot)
            .filter(|flow| flow.number() == header.flow)
    }

    /// The user whose flow sent a message; `None` if the flow is not known.
    pub fn user(&self, header: &Header) -> Option<u32> {
        let there = self
            .get(header.slot)
            .map(|flow| (flow.number(), flow.user()));
        let opened = || {
            let open = &self.opened.get(&header.slot)?.open;
            Some((open.header.flow, open.user))
        };
        let (number, user) = there.or_else(opened)?;
        (number == header.flow).then_some(user)
    }

    /// Removes the flow that sent a message, because it ends.
    pub fn take(&mut self, header: &Header) -> Option<Box<Flow>> {
        if self.opened(header).is_some() {
            return None;
        }
        self.of(header)?;
        self.empty(header.slot)
    }

    /// The number of flows that are served.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The numbers of flows that learn.
    pub fn learning(&self) -> &Learning {
        &self.learning
    }

    /// Changes the flow in a slot. `change` may replace its policy.
    pub fn change(&mut self, slot: u16, change: impl FnOnce(&mut Flow)) {
        let Some(flow) = self
            .by_slot
            .get_mut(usize::from(slot))
            .and_then(Option::as_deref_mut)
        else {
            return;
        };
        if flow.learns().is_some() {
            self.learning.remove(flow.user());
        }
        change(flow);
        if flow.learns().is_some() {
            self.learning.add(flow.user());
        }
    }

    /// The slots that have a flow.
    pub fn slots(&self) -> impl Iterator<Item = u16> {
        let slots = (0..).zip(&self.by_slot);
        slots.filter_map(|(slot, flow)| flow.as_ref().map(|_| slot))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.by_slot.iter().flatten().map(Box::as_ref)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.by_slot.iter_mut().flatten().map(Box::as_mut)
    }
}

#[cfg(test)]
mod tests {
    use headway_kernel::abi::Open;

    use super::*;

    fn open(flow: u32, slot: u16) -> Open {
        Open {
            header: Header {
                flow,
                slot,
                ..Header::default()
            },
            mss: 1500,
            initial_cwnd: 10,
            ..Open::default()
        }
    }

    #[test]
    fn a_flow_is_served_from_its_first_record_on() {
        let mut flows = Flows::default();
        assert!(flows.put(Known::of(open(1, 3))).is_none());
        assert!(flows.put(Known::of(open(2, 4))).is_none());
        assert_eq!(flows.count(), 0);
        // A message of the slot's previous flow is ignored.
        assert!(flows.opened(&open(9, 3).header).is_none());
        let first = flows.opened(&open(1, 3).header).expect("it opened");
        assert!(flows.opened(&open(1, 3).header).is_none());
        flows.begin(3, Flow::new(&first.open, None, None).expect("a tuner's"));
        assert_eq!((flows.count(), flows.iter().count()), (1, 1));
        // The other flow ends without a record.
        assert!(flows.take(&open(2, 4).header).is_none());
        assert!(flows.opened(&open(2, 4).header).is_none());
        // The CLOSE of the first flow was lost.
        let before = flows.put(Known::of(open(5, 3))).map(|flow| flow.number());
        assert_eq!((before, flows.count()), (Some(1), 0));
        assert!(flows.of(&open(1, 3).header).is_none());
    }
}
