//! Gradient ascent on a utility (Vivace, NSDI 2018 §4). It begins with Starting as Allegro does.
//! Then come pairs of trials a little above and below the rate, and their difference gives the
//! change of the rate.

use super::starting::Starting;
use super::{MIN_RATE, RateControl, Summary, Verdict, bounded_rate};
use crate::{Duration, Probe, Setup, Stream, Time};

/// Trials are at r (1 + epsilon) and r (1 - epsilon) (§4.1).
pub(super) const EPSILON: f64 = 0.05;
/// theta_0: Mbit/s of rate per unit of the gradient (§4.1).
const THETA: f64 = 1.0;
/// omega_0: the first bound of a change, as a share of the rate (§4.2).
const OMEGA: f64 = 0.05;
/// delta: how much wider the bound becomes each time that it limits a change.
const DELTA: f64 = 0.1;
/// The largest number of pairs of any member.
const MAX_PAIRS: usize = 3;

/// A pair of trials.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    higher_first: bool,
    first: f64,
    second: f64,
}

impl Pair {
    /// gamma: the utility's gradient between the two rates around `rate`.
    fn gradient(&self, rate: f64) -> f64 {
        let (up, down) = match self.higher_first {
            true => (self.first, self.second),
            false => (self.second, self.first),
        };
        (up - down) / (2.0 * EPSILON * rate)
    }
}

#[derive(Debug)]
enum State {
    Starting(Starting),
    Probing {
        pairs: [Pair; MAX_PAIRS],
        /// The number of trials in the decision.
        wanted: usize,
        /// The trials that have begun, and those with a result.
        begun: usize,
        known: usize,
    },
}

/// A rate that follows the gradient.
#[derive(Debug)]
pub(super) struct Ascent {
    random: Stream,
    rate: f64,
    state: State,
    /// The number of pairs while no direction is established.
    pairs: usize,
    /// The last direction of the rate: +1, -1, or 0 for neither.
    direction: f64,
    /// tau: the number of changes in a row in this direction.
    tau: f64,
    /// k: the number of changes in a row that were bounded.
    k: f64,
    utility: f64,
    gradient: f64,
}

impl Ascent {
    pub(super) fn new(setup: &Setup, pairs: usize) -> Ascent {
        Ascent {
            random: setup.stream("pcc-pairs"),
            rate: 1.0,
            state: State::Starting(Starting::new(1.0)),
            pairs: pairs.clamp(1, MAX_PAIRS),
            direction: 0.0,
            tau: 0.0,
            k: 0.0,
            utility: 0.0,
            gradient: 0.0,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self.state, State::Starting(_))
    }

    pub(super) fn start(&mut self, rate: f64) {
        self.rate = bounded_rate(rate);
        self.state = State::Starting(Starting::new(self.rate));
        self.turn(0.0);
    }

    /// Sets a new direction.
    fn turn(&mut self, direction: f64) {
        (self.direction, self.tau, self.k) = (direction, 0.0, 0.0);
    }

    /// One pair is enough after two decisions in a row in the same direction (PCC-Uspace, branch
    /// NSDI-2018: four trials, two while trending).
    fn probe_pairs(&mut self) {
        let wanted = if self.tau >= 2.0 { 1 } else { self.pairs };
        let mut pairs = [Pair::default(); MAX_PAIRS];
        for pair in &mut pairs {
            pair.higher_first = self.random.chance(0.5);
        }
        self.state = State::Probing {
            pairs,
            wanted,
            begun: 0,
            known: 0,
        };
    }

    pub(super) fn next_trial(&mut self) -> Option<f64> {
        match &mut self.state {
            State::Starting(starting) => starting.next_trial(),
            State::Probing {
                pairs,
                wanted,
                begun,
                ..
            } => {
                if *begun >= 2 * *wanted {
                    return None;
                }
                let higher = pairs[*begun / 2].higher_first == (*begun % 2 == 0);
                *begun += 1;
                let sign = if higher { 1.0 } else { -1.0 };
                Some(self.rate * (1.0 + sign * EPSILON))
            }
        }
    }

    pub(super) fn on_result(&mut self, utility: f64) -> Verdict {
        self.utility = utility;
        match &mut self.state {
            State::Starting(starting) => {
                let verdict = starting.on_result(utility);
                self.rate = bounded_rate(starting.rate);
                if verdict == Verdict::Wait {
                    self.probe_pairs();
                }
            }
            State::Probing {
                pairs,
                wanted,
                known,
                ..
            } => {
                let pair = &mut pairs[(*known / 2).min(MAX_PAIRS - 1)];
                match *known % 2 {
                    0 => pair.first = utility,
                    _ => pair.second = utility,
                }
                *known += 1;
                if *known < 2 * *wanted {
                    return Verdict::Wait;
                }
                let (pairs, wanted) = (*pairs, *wanted);
                self.conclude(&pairs[..wanted]);
            }
        }
        Verdict::Move
    }

    /// Halves the rate at once, and probes again (Vivace's emergency stop).
    pub(super) fn halve(&mut self) -> Verdict {
        self.rate = bounded_rate(self.rate / 2.0);
        self.turn(0.0);
        self.go_on();
        Verdict::Move
    }

    /// More than half of the pairs decide; of two pairs both must agree. Their mean is the
    /// gradient.
    fn conclude(&mut self, pairs: &[Pair]) {
        let gradients = || pairs.iter().map(|p| p.gradient(self.rate));
        let count = |sign: f64| gradients().filter(|g| g * sign > 0.0).count();
        let (up, down) = (count(1.0), count(-1.0));
        let direction = if 2 * up > pairs.len() {
            1.0
        } else if 2 * down > pairs.len() {
            -1.0
        } else {
            self.turn(0.0);
            return self.probe_pairs();
        };
        let agreeing = gradients().filter(|g| g * direction > 0.0);
        let gradient = agreeing.sum::<f64>() / up.max(down) as f64;
        self.climb(gradient);
    }

    /// §4.2: changes the rate by theta_0 m(tau) gamma, within the change boundary.
    fn climb(&mut self, gradient: f64) {
        self.gradient = gradient;
        if gradient * self.direction <= 0.0 {
            self.turn(gradient.signum());
        }
        self.tau += 1.0;
        let change = self.bounded(amplifier(self.tau) * THETA * gradient.abs());
        self.rate = bounded_rate(self.rate + self.direction * change);
        self.go_on();
    }

    fn go_on(&mut self) {
        if self.rate <= MIN_RATE {
            // There is nothing to lose here, so the rate rises by Starting, as in PCC-Uspace.
            return self.start(self.rate);
        }
        self.probe_pairs();
    }

    /// The dynamic change boundary omega = omega_0 + k delta, a share of the rate. It widens each
    /// time that it limits a change, and narrows to what is needed otherwise.
    fn bounded(&mut self, change: f64) -> f64 {
        let bound = self.rate * (OMEGA + self.k * DELTA);
        if change > bound {
            self.k += 1.0;
            return bound;
        }
        self.k = ((change / self.rate - OMEGA) / DELTA).ceil().max(0.0);
        change
    }

    pub(super) fn abandon(&mut self) {
        match &mut self.state {
            State::Starting(starting) => starting.abandon(),
            State::Probing { .. } => self.probe_pairs(),
        }
    }

    pub(super) fn probe(&self, probe: &mut dyn Probe) {
        probe.value("starting", f64::from(self.is_starting()));
        probe.value("rate_mbps", self.rate);
        probe.value("utility", self.utility);
        probe.value("gradient", self.gradient);
        probe.value("amplifier", amplifier(self.tau));
        probe.value("omega", OMEGA + self.k * DELTA);
    }
}

/// How a member computes a trial's utility.
pub(super) trait TrialUtility: std::fmt::Debug + Send {
    /// The trial's utility. `None` if it is so bad that the rate is halved at once.
    fn utility(&mut self, trial: &Summary, starting: bool) -> Option<f64>;
    /// Is this RTT reliable?
    fn is_reliable(&mut self, _now: Time, _rtt: Duration, _smoothed: Duration) -> bool {
        true
    }
    /// Reports named values.
    fn probe(&self, probe: &mut dyn Probe);
}

/// An ascent on a utility.
#[derive(Debug)]
pub(super) struct Climb<W> {
    pub(super) ascent: Ascent,
    pub(super) worth: W,
}

impl<W: TrialUtility> RateControl for Climb<W> {
    fn rate(&self) -> f64 {
        self.ascent.rate()
    }

    fn start(&mut self, rate: f64) {
        self.ascent.start(rate);
    }

    fn next_trial(&mut self) -> Option<f64> {
        self.ascent.next_trial()
    }

    fn on_result(&mut self, trial: &Summary) -> Verdict {
        match self.worth.utility(trial, self.ascent.is_starting()) {
            Some(utility) => self.ascent.on_result(utility),
            None => self.ascent.halve(),
        }
    }

    fn abandon(&mut self) {
        self.ascent.abandon();
    }

    fn is_reliable(&mut self, now: Time, rtt: Duration, smoothed: Duration) -> bool {
        self.worth.is_reliable(now, rtt, smoothed)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.ascent.probe(probe);
        self.worth.probe(probe);
    }
}

/// The confidence amplifier m(tau), of steps in one direction (§4.2).
fn amplifier(tau: f64) -> f64 {
    if tau <= 3.0 {
        tau.max(1.0)
    } else {
        2.0 * tau - 3.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::setup;

    /// Vivace's ascent, past Starting, at `rate`.
    fn probing(rate: f64) -> Ascent {
        let mut ascent = Ascent::new(&setup(), 2);
        ascent.start(2.0 * rate);
        assert_eq!(ascent.next_trial(), Some(2.0 * rate));
        assert_eq!(ascent.on_result(-1.0), Verdict::Move);
        assert_eq!(ascent.rate(), rate);
        ascent
    }

    /// Runs one decision, in which each trial has the utility `worth` of its rate.
    fn decide(ascent: &mut Ascent, worth: impl Fn(usize, f64) -> f64) -> usize {
        let rates: Vec<f64> = std::iter::from_fn(|| ascent.next_trial()).collect();
        for (i, &rate) in rates.iter().enumerate() {
            let verdict = ascent.on_result(worth(i, rate));
            assert_eq!(verdict == Verdict::Move, i + 1 == rates.len());
        }
        rates.len()
    }

    /// NSDI 2018 §4.2, by hand: m is 1, 2, 3, 5, 7 for tau of 1 to 5.
    #[test]
    fn confidence_grows_with_every_step_in_one_direction() {
        let m: Vec<f64> = (1..=5).map(|tau| amplifier(f64::from(tau))).collect();
        assert_eq!(m, [1.0, 2.0, 3.0, 5.0, 7.0]);
    }

    #[test]
    fn starting_doubles_until_utility_falls_then_steps_back() {
        let mut ascent = Ascent::new(&setup(), 2);
        ascent.start(3.0);
        for rate in [3.0, 6.0, 12.0] {
            assert_eq!(ascent.next_trial(), Some(rate));
            assert_eq!(ascent.next_trial(), None, "its result is waited for");
            assert_eq!(ascent.on_result(rate), Verdict::Move);
        }
        assert_eq!(ascent.next_trial(), Some(24.0));
        assert_eq!(ascent.rate(), 12.0, "meanwhile");
        ascent.on_result(11.0);
        assert_eq!((ascent.rate(), ascent.is_starting()), (12.0, false));
    }

    /// Two pairs of 5% up and down are tried, each in random order, and one pair while trending. A
    /// gradient of 1 per Mbit/s moves 100 Mbit/s by 1, then by 2, then by 3.
    #[test]
    fn follows_the_gradient_with_growing_confidence() {
        let mut ascent = probing(100.0);
        let slope = |_: usize, rate: f64| rate;
        for (trials, rate) in [(4, 101.0), (4, 103.0), (2, 106.0)] {
            assert_eq!(decide(&mut ascent, slope), trials);
            assert!((ascent.rate() - rate).abs() < 1e-9, "{ascent:?}");
        }
        // In the other direction confidence starts again.
        assert_eq!(decide(&mut ascent, |_, rate| -rate), 2);
        assert!((ascent.rate() - 105.0).abs() < 1e-9, "{ascent:?}");
    }

    /// omega is 5%, 15%, 25% of the rate, and what is needed once that is less.
    #[test]
    fn the_change_boundary_widens_while_it_binds() {
        let mut ascent = probing(10.0);
        let steep = |_: usize, rate: f64| 1000.0 * rate;
        let mut rate = 10.0;
        for omega in [0.05, 0.15, 0.25] {
            decide(&mut ascent, steep);
            rate *= 1.0 + omega;
            assert!((ascent.rate() - rate).abs() < 1e-9, "{ascent:?}");
        }
        assert_eq!(ascent.k, 3.0);
        // With m = 5, half a Mbit/s is within omega_0, and k is 0 again.
        decide(&mut ascent, |_, rate| 0.1 * rate);
        assert!((ascent.rate() - rate - 0.5).abs() < 1e-9 && ascent.k == 0.0);
        // After a change of direction the bound is omega_0.
        let rate = ascent.rate();
        decide(&mut ascent, |_, rate| -1000.0 * rate);
        assert!((ascent.rate() - 0.95 * rate).abs() < 1e-9, "{ascent:?}");
    }

    #[test]
    fn two_pairs_must_agree_and_of_three_the_majority_decides() {
        let worth = |bad: usize| {
            move |i: usize, rate: f64| {
                if i / 2 == bad { -rate } else { rate }
            }
        };
        let mut ascent = probing(10.0);
        assert_eq!(decide(&mut ascent, worth(1)), 4);
        assert_eq!(ascent.rate(), 10.0);
        let mut ascent = Ascent::new(&setup(), 3);
        ascent.start(20.0);
        ascent.next_trial();
        ascent.on_result(-1.0);
        assert_eq!(decide(&mut ascent, worth(2)), 6);
        assert!(ascent.rate() > 10.0, "{ascent:?}");
    }

    #[test]
    fn pairs_come_in_random_order() {
        let mut ascent = probing(10.0);
        let higher_first = (0..100).filter(|_| {
            ascent.abandon();
            ascent.next_trial() > Some(10.0)
        });
        let n = higher_first.count();
        assert!((30..=70).contains(&n), "{n}");
    }

    #[test]
    fn starting_repeats_at_the_minimum_rate() {
        let mut ascent = probing(1.0);
        for _ in 0..20 {
            if ascent.is_starting() {
                break;
            }
            decide(&mut ascent, |_, rate| -1000.0 * rate);
        }
        assert!(ascent.is_starting() && ascent.rate() == MIN_RATE);
    }
}
