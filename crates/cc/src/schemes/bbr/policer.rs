//! Detects a token bucket that polices the flow (Linux's "long-term bandwidth",
//! `net/ipv4/tcp_bbr.c`).
//!
//! The draft does not have this. A policer lets bursts through while it has tokens, so the largest
//! delivery rate exceeds what it allows in the long term, and it drops the rest. Two intervals in a
//! row with heavy loss and the same delivery rate are taken for one. BBR then uses their mean as
//! the bandwidth, and does not probe above it, for 48 rounds. (Flach et al., An Internet-Wide
//! Analysis of Traffic Policing, SIGCOMM 2016.)

use crate::{Bytes, Duration, Rate, Time};

/// The smallest number of rounds of an interval; the largest is four times that.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// The ratio of lost to delivered bytes, in 256ths, from which an interval has heavy loss.
const LOSS_THRESHOLD: u64 = 50;
/// Two rates are equal if they differ by at most this share of the earlier one, or by `SAME_RATE`.
const SAME_SHARE: f64 = 1.0 / 8.0;
const SAME_RATE: Rate = Rate::from_bps(4000);
/// The number of rounds of ProbeBW for which the policer's rate is used.
const POLICED_ROUNDS: u32 = 48;
/// The shortest interval that gives a rate.
const MIN_DURATION: Duration = Duration::from_millis(1);

/// The input of the detector at a feedback or a timeout.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub now: Time,
    pub acked: Bytes,
    pub lost: Bytes,
    pub round_start: bool,
    pub app_limited: bool,
    pub probing_bw: bool,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    start: Time,
    delivered: Bytes,
    lost: Bytes,
    rounds: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// There was no loss so far: a policer, if any, still has tokens.
    #[default]
    Waiting,
    /// An interval is in progress; the rate of the one before, if there was one.
    Sampling(Interval, Option<Rate>),
    /// The policer's rate, and the rounds for which it was used.
    Policed(Rate, u32),
}

/// The detector of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policer {
    state: State,
}

impl Policer {
    /// The policer's rate, if one was detected.
    pub const fn rate(&self) -> Option<Rate> {
        match self.state {
            State::Policed(rate, _) => Some(rate),
            _ => None,
        }
    }

    /// Resets the detector, such as when losses turn out to be spurious.
    pub const fn reset(&mut self) {
        self.state = State::Waiting;
    }

    /// Takes a feedback or a timeout.
    pub fn update(&mut self, seen: &Seen) {
        self.state = match self.state {
            State::Waiting if seen.lost > Bytes::ZERO => {
                sample(Interval::new(seen.now), None, seen)
            }
            State::Waiting => State::Waiting,
            State::Sampling(mut interval, before) => {
                interval.delivered += seen.acked;
                interval.lost += seen.lost;
                sample(interval, before, seen)
            }
            State::Policed(rate, rounds) => {
                let rounds = rounds + u32::from(seen.round_start && seen.probing_bw);
                if rounds < POLICED_ROUNDS {
                    State::Policed(rate, rounds)
                } else {
                    State::Waiting
                }
            }
        };
    }
}

impl Interval {
    const fn new(start: Time) -> Interval {
        Interval {
            start,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            rounds: 0,
        }
    }

    fn is_lossy(&self) -> bool {
        self.delivered > Bytes::ZERO
            && self.lost.get() * 256 >= LOSS_THRESHOLD * self.delivered.get()
    }
}

/// Ends an interval at a loss, since a policer then has no tokens. An interval is dropped when
/// there is nothing to send, since idle time would make its rate too small.
fn sample(mut interval: Interval, before: Option<Rate>, seen: &Seen) -> State {
    interval.rounds += u32::from(seen.round_start);
    if seen.app_limited || interval.rounds > MAX_ROUNDS {
        return State::Waiting;
    }
    let lasted = seen.now.since(interval.start);
    if interval.rounds < MIN_ROUNDS
        || seen.lost == Bytes::ZERO
        || !interval.is_lossy()
        || lasted < MIN_DURATION
    {
        return State::Sampling(interval, before);
    }
    let rate = Rate::from_bytes_per(interval.delivered, lasted);
    match before {
        Some(before) if are_same(before, rate) => State::Policed(mean(before, rate), 0),
        _ => State::Sampling(Interval::new(seen.now), Some(rate)),
    }
}

fn are_same(before: Rate, rate: Rate) -> bool {
    let apart = before.as_mbps().max(rate.as_mbps()) - before.as_mbps().min(rate.as_mbps());
    apart <= SAME_SHARE * before.as_mbps() || apart <= SAME_RATE.as_mbps()
}

fn mean(a: Rate, b: Rate) -> Rate {
    Rate::from_mbps((a.as_mbps() + b.as_mbps()) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MSS;

    /// A flow in rounds of 100 ms.
    #[derive(Default)]
    struct Flow {
        policer: Policer,
        rounds: u64,
    }

    impl Flow {
        /// A round at whose end `acked` packets are acknowledged and `lost` packets found lost.
        fn round(&mut self, acked: u64, lost: u64) -> Option<f64> {
            self.round_with(acked, lost, |_| {})
        }

        fn round_with(
            &mut self,
            acked: u64,
            lost: u64,
            edit: impl FnOnce(&mut Seen),
        ) -> Option<f64> {
            self.rounds += 1;
            let mut seen = Seen {
                now: Time::from_millis(100 * self.rounds),
                acked: MSS * acked,
                lost: MSS * lost,
                round_start: true,
                app_limited: false,
                probing_bw: true,
            };
            edit(&mut seen);
            self.policer.update(&seen);
            self.policer.rate().map(Rate::as_mbps)
        }

        fn rounds(&mut self, count: u32, acked: u64, lost: u64) -> Option<f64> {
            (0..count).fold(None, |_, _| self.round(acked, lost))
        }

        /// A flow that is policed to 100 packets in 100 ms.
        fn policed() -> Flow {
            let mut flow = Flow::default();
            assert_eq!(flow.rounds(8, 100, 20), Some(12.0));
            flow
        }
    }

    /// The round of the first loss is the first of four, and its packets do not count: three more
    /// rounds of 100 packets in 100 ms are 12 Mbit/s. The four rounds after them are as fast.
    #[test]
    fn two_similar_lossy_intervals_reveal_a_policer() {
        let mut flow = Flow::default();
        assert_eq!(
            flow.rounds(50, 200, 0),
            None,
            "tokens as long as nothing is lost"
        );
        assert_eq!(flow.round(100, 20), None);
        assert_eq!(flow.rounds(3, 100, 20), None, "one interval");
        assert_eq!(flow.rounds(3, 100, 20), None, "three rounds of the second");
        assert_eq!(flow.round(100, 20), Some(12.0));
    }

    /// The first interval has 12 Mbit/s. 13.5 is an eighth more, and 13.56 is not equal. The mean
    /// is used.
    #[test]
    fn rates_may_differ_by_an_eighth() {
        let second = |last: u64| {
            let mut flow = Flow::default();
            flow.rounds(4, 100, 50);
            flow.rounds(3, 100, 50);
            flow.round(last, 50)
        };
        assert_eq!(second(150), Some(12.75));
        assert_eq!(second(152), None);
        assert_eq!(second(50), Some(11.25));
        assert_eq!(second(48), None);
    }

    /// For slow flows, 12 and 15 kbit/s are a quarter apart, but by less than 4 kbit/s.
    #[test]
    fn rates_may_differ_by_4_kbps() {
        let policed = |rates: [u64; 2]| {
            let bits = |kbps: u64| move |s: &mut Seen| s.acked = Bytes::new(kbps * 1000 / 8 / 10);
            let mut flow = Flow::default();
            let first = (0..4).fold(None, |_, _| flow.round_with(0, 1, bits(rates[0])));
            assert_eq!(first, None);
            (0..4).fold(None, |_, _| flow.round_with(0, 1, bits(rates[1])))
        };
        let kbps = policed([12, 15]).expect("policed") * 1000.0;
        assert!((13.4..13.6).contains(&kbps), "{kbps}");
        assert_eq!(policed([12, 17]), None);
    }

    /// After an interval that differs, the next one is compared with that one.
    #[test]
    fn each_interval_is_compared_with_the_one_before() {
        let mut flow = Flow::default();
        flow.rounds(4, 200, 80);
        assert_eq!(flow.rounds(4, 100, 40), None);
        assert_eq!(flow.rounds(4, 100, 40), Some(12.0));
    }

    /// The threshold is 50 of 256: 20 packets lost to 100 delivered are enough, 19 are not.
    #[test]
    fn light_loss_is_not_taken_for_a_policer() {
        assert_eq!(Flow::default().rounds(8, 100, 20), Some(12.0));
        assert_eq!(Flow::default().rounds(200, 100, 19), None);
    }

    /// An interval waits for a loss until its sixteenth round. At the seventeenth it is dropped.
    #[test]
    fn an_interval_without_a_loss_in_sixteen_rounds_is_dropped() {
        let after = |quiet: u32| {
            let mut flow = Flow::default();
            flow.rounds(4, 100, 400);
            flow.rounds(quiet, 100, 0);
            flow.round(100, 400)
        };
        assert_eq!(after(14), Some(12.0), "the fifteenth");
        assert_eq!(after(15), Some(12.0), "the sixteenth");
        assert_eq!(after(16), None, "the seventeenth");
    }

    /// If there is nothing to send, the rate means nothing. Detection starts again at the next
    /// loss.
    #[test]
    fn app_limited_samples_reset_the_detection() {
        let mut flow = Flow::default();
        flow.rounds(7, 100, 20);
        flow.round_with(100, 20, |seen| seen.app_limited = true);
        assert_eq!(flow.rounds(7, 100, 20), None);
        assert_eq!(flow.round(100, 20), Some(12.0));
    }

    /// The rate is used for 48 rounds of ProbeBW, whatever is lost and however little there is to
    /// send. Then detection starts again.
    #[test]
    fn a_policers_rate_is_used_for_48_rounds_of_probe_bw() {
        let mut flow = Flow::policed();
        let rest = flow.round_with(0, 0, |seen| seen.round_start = false);
        assert_eq!(rest, Some(12.0), "within a round");
        let elsewhere = flow.round_with(4, 0, |seen| seen.probing_bw = false);
        assert_eq!(elsewhere, Some(12.0), "in another state");
        let idle = flow.round_with(4, 0, |seen| seen.app_limited = true);
        assert_eq!(idle, Some(12.0), "the first");
        assert_eq!(flow.rounds(46, 100, 0), Some(12.0));
        assert_eq!(flow.round(100, 0), None);
        assert_eq!(flow.rounds(7, 50, 20), None);
        assert_eq!(flow.round(50, 20), Some(6.0));
    }

    #[test]
    fn reset_clears_the_detection() {
        let mut flow = Flow::policed();
        flow.policer.reset();
        assert_eq!(flow.policer.rate(), None);
        assert_eq!(flow.rounds(7, 100, 20), None);
    }
}
