//! Draws which switches of a path its senders know.

use headway_cc::{Duration, Stream, Time};
use serde::Serialize;

use crate::quantity::Quantity;
use crate::{Network, Routes, SwitchesSpec};

/// `[switches]`, with ranges that are not drawn yet.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SwitchesPlan {
    pub known: Known,
    pub period: Quantity,
    pub latency: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Quantity>,
}

/// How many of the path's switches are known.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Known {
    /// A number of switches, but not all.
    Count(u64),
    /// A share of them, from 0 to 1.
    Share(Quantity),
}

impl SwitchesPlan {
    /// Draws which switches are known. Each switch on the way of the flows under test is as likely
    /// as any other, and with one seed a larger number only adds switches.
    pub fn draw(&self, seed: u64, network: &Network) -> SwitchesSpec {
        let under_test = network.flows.iter().filter(|f| f.scheme.is_none());
        let ways = under_test.map(|f| (f.from, f.to, f.route.as_deref()));
        let mut switches = switches_on(&network.routes(), ways);
        let mut order = Stream::new(seed, "switches.order");
        for i in 0..switches.len() {
            let left = (switches.len() - i) as u64;
            switches.swap(i, i + order.below(left) as usize);
        }
        switches.truncate(self.count(seed, switches.len()));
        switches.sort_unstable();
        SwitchesSpec {
            known: switches,
            period: Duration::from_nanos(self.period.draw_whole(seed)),
            latency: Duration::from_nanos(self.latency.draw_whole(seed)),
            until: (self.until.as_ref()).map(|at| Time::from_nanos(at.draw_whole(seed))),
        }
    }

    /// How many of `switches` are known. If their share is not a whole number, it is one of its two
    /// neighbours, so that it is right on average over seeds: 20% of 7 are 1 in 6 runs of 10,
    /// otherwise 2.
    fn count(&self, seed: u64, switches: usize) -> usize {
        /// The largest rounding error of a whole number.
        const ROUNDING: f64 = 1e-9;
        match &self.known {
            Known::Count(count) => *count as usize,
            Known::Share(share) => {
                let mean = share.draw(seed) * switches as f64 + ROUNDING;
                let rest = mean - mean.floor();
                let one_more = Stream::new(seed, "switches.count").chance(rest - ROUNDING);
                mean as usize + usize::from(one_more)
            }
        }
    }

    /// Does the seed decide which switches are known, or how many?
    pub fn varies(&self) -> bool {
        match &self.known {
            Known::Count(_) => true,
            Known::Share(share) => share.varies() || (share.low > 0.0 && share.low < 1.0),
        }
    }
}

/// The switches on these ways, each once, in order of first occurrence. A way is its two ends, and
/// the nodes on it if it names them.
pub(crate) fn switches_on<'a>(
    routes: &Routes,
    ways: impl Iterator<Item = (usize, usize, Option<&'a [usize]>)>,
) -> Vec<usize> {
    let mut switches = Vec::new();
    for (from, to, nodes) in ways {
        for switch in routes.switches(from, to, nodes) {
            if !switches.contains(&switch) {
                switches.push(switch);
            }
        }
    }
    switches
}
