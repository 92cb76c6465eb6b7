//! How many flows may learn at once: each has a network, its gradients and its experience in memory, some megabytes.

use std::sync::Arc;

use headway_policy::schemes::Served;

use super::flows::Flows;

/// Lets flows learn while there are few enough that do.
#[derive(Debug)]
pub struct Learners {
    most: usize,
    refused: u64,
}

/// How many flows learn.
pub fn count(flows: &[Flows]) -> usize {
    flows.iter().map(Flows::learning).sum()
}

impl Learners {
    pub fn at_most(most: usize) -> Learners {
        Learners { most, refused: 0 }
    }

    /// What serves a flow while so many others learn: a policy that learns, or the same without that, or nothing where there
    /// is none: then nobody decides, and the flow is Cubic's.
    pub fn admit(&self, served: Arc<Served>, learning: usize) -> Option<Arc<Served>> {
        if !served.is_learning() || learning < self.most {
            return Some(served);
        }
        served.frozen().map(Arc::new)
    }

    /// Counts a flow that was to learn, once, and says so of the first.
    pub fn count_refused(&mut self, wanted: &Served, has: Option<&Served>) {
        self.refused += 1;
        if self.refused == 1 {
            tracing::warn!(
                most = self.most,
                policy = wanted.spec(),
                instead = has.map_or("Cubic", Served::spec),
                "no more flows learn at once; --learners says how many"
            );
        }
    }

    /// How many flows were to learn and do not.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_too_late_has_the_frozen_model_or_nothing() {
        let served = |spec: &str| Arc::new(Served::read(spec).expect("a model of ours"));
        let learners = Learners::at_most(2);
        let spec = |spec: &str, learning| {
            let may = learners.admit(served(spec), learning);
            may.map(|served| (served.spec().to_owned(), served.is_learning()))
        };
        let as_is = |spec: &str, learns| Some((spec.to_owned(), learns));
        assert_eq!(spec("owl:online=true", 1), as_is("owl:online=true", true));
        assert_eq!(spec("owl:online=true", 2), as_is("owl:online=false", false));
        assert_eq!(spec("owl", 99), as_is("owl", false));
        assert_eq!(spec("rax", 1), as_is("rax", true));
        assert_eq!(spec("rax", 2), None);
    }
}
