//! Limits how many flows learn at once. Each learner has some megabytes in memory: a network, its
//! gradients and its experience.

use std::collections::HashMap;
use std::sync::Arc;

use headway_policy::schemes::PolicySpec;

/// The limits on learners.
#[derive(Debug)]
pub struct Learners {
    most: usize,
    /// The most learners of one user other than root.
    most_of_user: usize,
    refused: u64,
}

/// The numbers of flows that learn, in all and of each user.
#[derive(Clone, Debug, Default)]
pub struct Learning {
    all: usize,
    by_user: HashMap<u32, usize>,
}

impl Learning {
    pub fn all(&self) -> usize {
        self.all
    }

    pub fn add(&mut self, user: u32) {
        self.all += 1;
        *self.by_user.entry(user).or_default() += 1;
    }

    pub fn remove(&mut self, user: u32) {
        let Some(own) = self.by_user.get_mut(&user) else {
            return;
        };
        self.all -= 1;
        *own -= 1;
        if *own == 0 {
            self.by_user.remove(&user);
        }
    }
}

impl Learners {
    pub fn at_most(most: usize, of_user: Option<usize>) -> Learners {
        Learners {
            most,
            most_of_user: of_user.unwrap_or(most),
            refused: 0,
        }
    }

    /// The policy for a new flow of this user: the given one if it may learn, or else the same
    /// model without learning. Without a model it is `None`: no policy decides, and Cubic controls
    /// the flow.
    pub fn admit(
        &self,
        served: Arc<PolicySpec>,
        user: u32,
        learning: &Learning,
    ) -> Option<Arc<PolicySpec>> {
        let own = learning.by_user.get(&user).copied().unwrap_or(0);
        let has_share = user == 0 || own < self.most_of_user;
        if !served.is_learning() || (learning.all < self.most && has_share) {
            return Some(served);
        }
        served.frozen().map(Arc::new)
    }

    /// Counts a flow that should learn and may not. Logs the first one.
    pub fn count_refused(&mut self, wanted: &PolicySpec, has: Option<&PolicySpec>) {
        self.refused += 1;
        if self.refused == 1 {
            tracing::warn!(
                most = self.most,
                policy = wanted.spec(),
                instead = has.map_or("Cubic", PolicySpec::spec),
                "the flow does not learn, because the limit on learners is reached (--learners, --user-share)"
            );
        }
    }

    /// The number of flows that should have learned and did not.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_beyond_the_limit_gets_the_frozen_model_or_no_policy() {
        let served = |spec: &str| Arc::new(PolicySpec::read(spec).expect("a model of ours"));
        let learners = Learners::at_most(2, None);
        let spec = |spec: &str, count: u32| {
            let mut learning = Learning::default();
            (0..count).for_each(|user| learning.add(user));
            let may = learners.admit(served(spec), 1000, &learning);
            may.map(|served| (served.spec().to_owned(), served.is_learning()))
        };
        let as_is = |spec: &str, learns| Some((spec.to_owned(), learns));
        assert_eq!(spec("owl:online=true", 1), as_is("owl:online=true", true));
        assert_eq!(spec("owl:online=true", 2), as_is("owl:online=false", false));
        assert_eq!(spec("owl", 99), as_is("owl", false));
        assert_eq!(spec("rax", 1), as_is("rax", true));
        assert_eq!(spec("rax", 2), None);
    }

    #[test]
    fn one_user_cannot_take_all_places_of_learners() {
        let rax = Arc::new(PolicySpec::read("rax").expect("a scheme of ours"));
        let learners = Learners::at_most(4, Some(2));
        let mut learning = Learning::default();
        let may =
            |user, learning: &Learning| learners.admit(Arc::clone(&rax), user, learning).is_some();
        learning.add(1000);
        assert!(may(1000, &learning));
        learning.add(1000);
        assert!(!may(1000, &learning));
        assert!(may(1001, &learning) && may(0, &learning));
        learning.add(0);
        learning.add(0);
        assert!(!may(0, &learning) && !may(1001, &learning), "all are taken");
        learning.remove(1000);
        assert!(may(1000, &learning));
        assert_eq!(learning.all(), 3);
    }
}
