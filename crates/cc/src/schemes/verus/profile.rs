//! Verus's delay profile (SIGCOMM 2015 §4.2, §5.2): the delay that belongs to each window.

use super::spline::Spline;

/// The measured delay of each window, and the curve through the delays. Delays are in milliseconds,
/// windows in packets.
#[derive(Debug)]
pub struct Profile {
    /// The EWMA of the delays of each window's packets; NaN for a window without packets.
    seen: Vec<f64>,
    curve: Option<Curve>,
    /// The number of packets of window for each node of the curve. It only ever falls
    /// (`delayProfile_thread`, N).
    packets_a_node: usize,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            seen: Vec::new(),
            curve: None,
            packets_a_node: Profile::PACKETS_A_NODE,
        }
    }
}

#[derive(Debug)]
struct Curve {
    spline: Spline,
    /// For each window, the maximum of the curve from [`Profile::MIN_WINDOW`] up to it.
    highest: Vec<f64>,
}

impl Profile {
    /// `verus.hpp`: the bound of windows.
    pub const WINDOWS: usize = 40_000;
    /// The smallest window, at which the search begins.
    const MIN_WINDOW: usize = 2;
    /// The weight of the old average.
    const KEEP: f64 = 0.875;
    /// `verus_server.cpp`: one node for at most 15 packets of window, but at least five nodes; and
    /// the penalty.
    const PACKETS_A_NODE: usize = 15;
    const MIN_NODES: usize = 5;
    const RHO: f64 = 2.0;

    /// Adds a packet that was sent under `window` and took `delay_ms`.
    pub fn note(&mut self, window: usize, delay_ms: f64) {
        if window >= Self::WINDOWS {
            return;
        }
        if self.seen.len() <= window {
            self.seen.resize(window + 1, f64::NAN);
        }
        let seen = &mut self.seen[window];
        *seen = match seen.is_nan() {
            true => delay_ms,
            false => *seen * Self::KEEP + (1.0 - Self::KEEP) * delay_ms,
        };
    }

    /// Forgets the windows from `window` on, because slow start went too far.
    pub fn forget_from(&mut self, window: usize) {
        self.seen.truncate(window);
    }

    /// The number of nodes of a curve up to the window `largest`, at least
    /// [`Profile::MIN_NODES`].
    pub fn nodes(&mut self, largest: usize) -> usize {
        self.packets_a_node = self.packets_a_node.min(largest / Self::MIN_NODES);
        largest / self.packets_a_node
    }

    /// Computes the curve again. Returns false if there are too few points.
    pub fn fit(&mut self) -> bool {
        let points: Vec<(f64, f64)> = (1u32..)
            .zip(self.seen.iter().skip(1))
            .filter(|(_, delay)| !delay.is_nan())
            .map(|(window, delay)| (f64::from(window), *delay))
            .collect();
        let largest = points.last().map_or(0, |p| p.0 as usize);
        if largest < Self::MIN_NODES {
            return false;
        }
        let nodes = self.nodes(largest);
        let Some(spline) = Spline::fit(&points, nodes, Self::RHO) else {
            return false;
        };
        let mut most = f64::NEG_INFINITY;
        let highest = (Self::MIN_WINDOW..=largest)
            .map(|window| {
                most = most.max(spline.at(window as f64));
                most
            })
            .collect();
        self.curve = Some(Curve { spline, highest });
        true
    }

    /// The delay of `window`: the curve's, or the measured one.
    pub fn delay_ms(&self, window: f64) -> Option<f64> {
        match &self.curve {
            Some(curve) => Some(curve.spline.at(window)),
            None => self
                .seen
                .get(window as usize)
                .copied()
                .filter(|d| !d.is_nan()),
        }
    }

    /// §4.2: the last window before the first whose delay is above `delay_ms`. `None` if every
    /// window is below it.
    pub fn window(&self, delay_ms: f64) -> Option<usize> {
        let curve = self.curve.as_ref()?;
        let below = curve.highest.partition_point(|most| *most <= delay_ms);
        if below < curve.highest.len() {
            return Some(Self::MIN_WINDOW + below - 1);
        }
        // Beyond the measured windows the curve is straight.
        let last = (Self::MIN_WINDOW + below - 1) as f64;
        let (end, next) = (curve.spline.at(last), curve.spline.at(last + 1.0));
        let further = (delay_ms - end) / (next - end);
        let window = last + further;
        (next > end && window < Self::WINDOWS as f64).then_some(window.max(last) as usize)
    }
}
