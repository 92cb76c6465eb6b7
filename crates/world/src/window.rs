//! Reads the links of a run over a time window.

use headway_cc::Time;
use headway_net::Link;
use headway_record::Bottleneck;

/// A link's bytes since the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Bytes that it could have carried.
    pub offered: f64,
    /// Bytes that it carried.
    served: f64,
}

/// Reads one link; `None` while it has no rate.
fn read(link: &mut Link, now: Time) -> Option<Reading> {
    let offered = link.offered_until(now)?;
    let served = link.counters(now).served_bytes as f64;
    Some(Reading { offered, served })
}

/// Reads every link.
pub(crate) fn read_all(links: &mut [Link], now: Time) -> Vec<Option<Reading>> {
    links.iter_mut().map(|link| read(link, now)).collect()
}

/// Readings of some links at both ends of the time for which one flow, or all under test together,
/// is measured.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// For each link, the reading at the window's opening, and at its close.
    before: Option<Vec<Option<Reading>>>,
    after: Option<Vec<Option<Reading>>>,
}

impl Window {
    fn read_on(links: &mut [Link], on: &[u32], now: Time) -> Vec<Option<Reading>> {
        on.iter()
            .map(|&l| read(&mut links[l as usize], now))
            .collect()
    }

    /// Is the window open?
    pub fn is_open(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }

    /// Opens the window now, unless it was opened before.
    pub fn open(&mut self, links: &mut [Link], on: &[u32], now: Time) {
        self.before
            .get_or_insert_with(|| Window::read_on(links, on, now));
    }

    /// Closes the window now, if it is open.
    pub fn close(&mut self, links: &mut [Link], on: &[u32], now: Time) {
        if self.before.is_some() {
            self.after
                .get_or_insert_with(|| Window::read_on(links, on, now));
        }
    }

    /// The link with the largest used share of its capacity, among those that had a rate
    /// throughout.
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        let ends = self.before.as_ref()?.iter().zip(self.after.as_ref()?);
        let used = ends.filter_map(|(before, after)| {
            let (before, after) = (before.as_ref()?, after.as_ref()?);
            let offered_bytes = after.offered - before.offered;
            (offered_bytes > 0.0).then_some(Bottleneck {
                offered_bytes,
                used_bytes: after.served - before.served,
            })
        });
        let share = |b: &Bottleneck| b.used_bytes / b.offered_bytes;
        used.reduce(|a, b| if share(&b) > share(&a) { b } else { a })
    }
}
