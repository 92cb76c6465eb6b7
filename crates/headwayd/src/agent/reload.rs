//! Replaces the policies of an agent that serves.

use std::sync::Arc;

use super::learners::Learning;
use super::{Agent, Kernel, Policies, SavedStates, is_refused, keep};
use crate::error::Result;

/// The number of flows that get another policy between two reads of the ring. That takes about a
/// millisecond, and an answer may take a hundred.
pub const RENEWED_AT_ONCE: usize = 8;

impl<K: Kernel> Agent<K> {
    /// Takes other policies for new flows, which start from these saved states. [`Self::renew`]
    /// gives them to the present flows. If one of the policies cannot be used, nothing changes.
    ///
    /// # Errors
    /// One line, if one cannot be used.
    pub fn take_policies(&mut self, policies: Option<Policies>, saved: SavedStates) -> Result<()> {
        if let Some(policies) = &policies {
            policies.check(self.program.controller(), self.options)?;
            // The new settings overwrite the flag.
            self.is_awake = false;
            policies.configure(&mut self.program, self.options)?;
        }
        self.policies = policies;
        self.store.take(saved);
        Ok(())
    }

    /// Gives the present policies to a few of the flows, from this slot on. Returns the slot of the
    /// next part.
    pub fn renew(&mut self, from: u16) -> Option<u16> {
        let (slots, next) = self.slots(from, RENEWED_AT_ONCE);
        let policies = self.policies.as_ref()?;
        // Flows that learn go on before other flows may begin to.
        let mut learning = Learning::default();
        let learn = self.flows.iter().filter(|flow| flow.learns().is_some());
        for flow in learn.filter(|flow| policies.of(flow.remote().ip()).is_learning()) {
            learning.add(flow.user());
        }
        for slot in slots {
            let Some(flow) = self.flows.get(slot) else {
                continue;
            };
            let wanted = policies.of(flow.remote().ip());
            let class = policies.class(flow.remote().ip());
            let stays = flow.learns().is_some() && wanted.is_learning();
            let served = match stays {
                true => Some(Arc::clone(&wanted)),
                false => {
                    let wanted = Arc::clone(&wanted);
                    let served = self.learners.admit(wanted, flow.user(), &learning);
                    if served.as_ref().is_some_and(|s| s.is_learning()) {
                        learning.add(flow.user());
                    }
                    served
                }
            };
            let is_refused = is_refused(Some(&wanted), served.as_ref());
            if is_refused && !flow.is_refused {
                self.learners.count_refused(&wanted, served.as_deref());
            }
            // Without a new policy the flow keeps what it has: its policy, or none.
            let mut driver = None;
            let mut started_from = None;
            if let Some(served) = served {
                started_from = self.store.version(&served, class);
                let learned = self.store.learned(&served, class);
                match flow.policy_of(served, learned) {
                    Ok(next) => driver = next,
                    Err(error) => {
                        tracing::error!(flow = flow.number(), %error, "the flow keeps its policy, because the new one cannot be used");
                    }
                }
            }
            // What the flow has learned so far may be the best.
            if let (Some(_), Some(offer)) = (&driver, flow.offer()) {
                keep(&mut self.store, flow, offer);
            }
            self.flows.change(slot, |flow| {
                (flow.is_refused, flow.class) = (is_refused, class);
                if let Some(driver) = driver {
                    flow.take_policy(driver);
                    flow.started_from = started_from;
                    flow.step_elsewhere(self.gradients.as_ref());
                }
            });
        }
        next
    }
}
