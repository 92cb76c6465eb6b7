//! Monitor intervals: they measure what happened to packets that were sent at a rate (NSDI 2015
//! §3.1).
//!
//! Every packet carries the number of its trial. Acknowledgements and losses come a round trip
//! later, or after the next trials have begun, and still count for the right trial.

use std::collections::VecDeque;

use crate::{Acked, Bytes, Duration, Lost, Sent, Tag, Time};

/// A monitor interval in which a rate is tested.
#[derive(Clone, Debug)]
struct Interval {
    /// The rate of the trial, in Mbit/s.
    target_mbps: f64,
    first_sent: Time,
    last_sent: Time,
    last_size: Bytes,
    sent_bytes: Bytes,
    sent: u64,
    acked: u64,
    /// The numbers of packets that are taken for lost and have not arrived later, in order.
    lost: Vec<u64>,
    /// Is the trial over, so that no packet is added?
    closed: bool,
    /// Was there nothing to send for a time? Then the rate did not decide what was sent.
    app_limited: bool,
    rtts: Regression,
}

/// The smallest number of RTTs for statistics (PCC-Uspace, `kMinReliableRtt`).
const MIN_RTT_SAMPLES: u64 = 4;

/// Sums for a straight line through RTTs over the times of sending. Both are in seconds and
/// relative to the first packet, so that rounding loses nothing.
#[derive(Clone, Debug, Default)]
struct Regression {
    origin: Option<(Time, Duration)>,
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Regression {
    fn add(&mut self, sent: Time, rtt: Duration) {
        let &mut (at, first) = self.origin.get_or_insert((sent, rtt));
        // Either may be earlier or shorter than the first.
        let seconds = |nanos: u64, origin: u64| (nanos.wrapping_sub(origin) as i64) as f64 / 1e9;
        let x = seconds(sent.as_nanos(), at.as_nanos());
        let y = seconds(rtt.as_nanos(), first.as_nanos());
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// The mean, the standard deviation, the slope, and the line's residual (root mean square).
    /// `None` for too few RTTs.
    fn line(&self) -> Option<(f64, f64, f64, f64)> {
        if self.n < MIN_RTT_SAMPLES as f64 {
            return None;
        }
        let (_, first) = self.origin?;
        let (x, y) = (self.x / self.n, self.y / self.n);
        let var_x = self.xx / self.n - x * x;
        let var_y = (self.yy / self.n - y * y).max(0.0);
        let covariance = self.xy / self.n - x * y;
        // Packets that were all sent within a nanosecond have no slope.
        let slope = if var_x > 1e-18 {
            covariance / var_x
        } else {
            0.0
        };
        let left = (var_y - slope * covariance).max(0.0);
        Some((
            first.as_secs_f64() + y,
            libm::sqrt(var_y),
            slope,
            libm::sqrt(left),
        ))
    }
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// The rate of the trial, in Mbit/s.
    pub(super) target_mbps: f64,
    /// x: the rate at which its packets were sent, in Mbit/s.
    pub(super) rate_mbps: f64,
    /// The time in which they were sent, in seconds.
    pub(super) duration_s: f64,
    /// L: the share of its packets that were lost.
    pub(super) loss: f64,
    /// d(RTT)/dT: the growth of the RTT, in seconds a second. Like the rest it is zero without a
    /// mean.
    pub(super) rtt_gradient: f64,
    /// The residual of that line (root mean square), per second of the interval.
    pub(super) gradient_error: f64,
    /// The mean of the RTTs, in seconds. `None` if there were too few.
    pub(super) rtt_mean_s: Option<f64>,
    /// sigma(RTT): the standard deviation of the RTTs, in seconds.
    pub(super) rtt_deviation_s: f64,
}

/// The trials with packets whose fate is not known yet.
#[derive(Debug)]
pub(super) struct Monitor {
    trials: VecDeque<Interval>,
    /// The number of the first of them. Numbers start at 1.
    first: u64,
    /// Is the newest trial still open?
    open: bool,
}

impl Monitor {
    pub(super) fn new() -> Monitor {
        Monitor {
            trials: VecDeque::with_capacity(8),
            first: 1,
            open: false,
        }
    }

    /// Begins a trial of `target_mbps` with the next packet.
    pub(super) fn begin(&mut self, target_mbps: f64, now: Time) {
        self.close();
        self.open = true;
        self.trials.push_back(Interval {
            target_mbps,
            first_sent: now,
            last_sent: now,
            last_size: Bytes::ZERO,
            sent_bytes: Bytes::ZERO,
            sent: 0,
            acked: 0,
            lost: Vec::new(),
            closed: false,
            app_limited: false,
            rtts: Regression::default(),
        });
    }

    /// Ends the newest trial.
    pub(super) fn close(&mut self) {
        if let Some(trial) = self.trials.back_mut() {
            trial.closed = true;
        }
        self.open = false;
    }

    /// How long the open trial has lasted, and its packets; `None` between trials.
    pub(super) fn open(&self, now: Time) -> Option<(Duration, u64)> {
        let trial = self.trials.back().filter(|_| self.open)?;
        Some((now.since(trial.first_sent), trial.sent))
    }

    /// Drops all trials so far.
    pub(super) fn forget(&mut self) {
        self.first += self.trials.len() as u64;
        self.trials.clear();
        self.open = false;
    }

    /// Counts a packet for the open trial.
    pub(super) fn on_sent(&mut self, s: &Sent) -> Tag {
        if !self.open {
            return Tag::NONE;
        }
        let number = self.first + self.trials.len() as u64 - 1;
        let Some(trial) = self.trials.back_mut() else {
            return Tag::NONE;
        };
        trial.last_sent = s.now;
        trial.last_size = s.size;
        trial.sent_bytes += s.size;
        trial.sent += 1;
        trial.app_limited |= s.app_limited;
        Tag(number)
    }

    fn trial(&mut self, tag: Tag) -> Option<&mut Interval> {
        let place = tag.0.checked_sub(self.first)?;
        self.trials.get_mut(usize::try_from(place).ok()?)
    }

    /// `rtt` is `None` if it is not reliable. A packet that arrives late was not lost. It was
    /// overtaken, so its RTT does not show the queue.
    pub(super) fn on_acked(&mut self, packet: &Acked, rtt: Option<Duration>) {
        if let Some(trial) = self.trial(packet.tag) {
            trial.acked += 1;
            if let Ok(place) = trial.lost.binary_search(&packet.number) {
                trial.lost.remove(place);
            } else if let Some(rtt) = rtt {
                trial.rtts.add(packet.sent, rtt);
            }
        }
    }

    pub(super) fn on_lost(&mut self, packet: &Lost) {
        if let Some(trial) = self.trial(packet.tag)
            && let Err(place) = trial.lost.binary_search(&packet.number)
        {
            trial.lost.insert(place, packet.number);
        }
    }

    /// The result of the oldest trial, if it is over and the fate of all its packets is known.
    /// There is no result (`Some(None)`) if the application, not the rate, decided what was sent,
    /// or if packets came but their RTTs were not reliable. If hardly any came, the loss is enough.
    pub(super) fn next_result(&mut self) -> Option<Option<Summary>> {
        let trial = self.trials.front()?;
        if !trial.closed || trial.acked + (trial.lost.len() as u64) < trial.sent {
            return None;
        }
        let trial = self.trials.pop_front()?;
        self.first += 1;
        let summary = trial.summary();
        let starved = trial.app_limited && summary.rate_mbps < Self::KEPT * trial.target_mbps;
        let doubtful = trial.acked >= MIN_RTT_SAMPLES && summary.rtt_mean_s.is_none();
        Some((trial.sent > 0 && !starved && !doubtful).then_some(summary))
    }

    /// The share of its rate that an application-limited trial has to reach to count.
    const KEPT: f64 = 0.95;
}

impl Interval {
    fn summary(&self) -> Summary {
        let span = self.last_sent.since(self.first_sent).as_secs_f64();
        let bits = 8.0 * (self.sent_bytes - self.last_size).as_f64();
        let rate_mbps = if span > 0.0 && bits > 0.0 {
            bits / span / 1e6
        } else {
            self.target_mbps
        };
        let sent = self.sent.max(1) as f64;
        let line = self.rtts.line();
        let (_, deviation, slope, left) = line.unwrap_or_default();
        Summary {
            target_mbps: self.target_mbps,
            rate_mbps,
            duration_s: span,
            loss: self.lost.len() as f64 / sent,
            rtt_gradient: slope,
            gradient_error: if span > 0.0 { left / span } else { 0.0 },
            rtt_mean_s: line.map(|(mean, ..)| mean),
            rtt_deviation_s: deviation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MSS;

    const MS: Duration = Duration::from_millis(1);

    fn send(monitor: &mut Monitor, now: Time) -> Tag {
        send_of(monitor, now, false)
    }

    fn send_of(monitor: &mut Monitor, now: Time, app_limited: bool) -> Tag {
        monitor.on_sent(&Sent {
            now,
            number: 0,
            size: MSS,
            in_flight: MSS,
            retransmission: false,
            app_limited,
        })
    }

    fn acked(number: u64, sent: Time, tag: Tag) -> Acked {
        Acked {
            number,
            size: MSS,
            sent,
            received: None,
            tag,
            ecn: crate::Ecn::NotEct,
            echo: 0.0,
        }
    }

    fn lost(number: u64, tag: Tag) -> Lost {
        Lost {
            number,
            size: MSS,
            sent: Time::ZERO,
            tag,
            tx_in_flight: MSS,
            lost_before: Bytes::ZERO,
        }
    }

    /// A trial with a packet a millisecond, 12 Mbit/s. Each RTT is 40 ms plus `extra` of the
    /// packet's place.
    fn trial(packets: u64, extra: impl Fn(u64) -> Duration) -> Summary {
        let mut monitor = Monitor::new();
        monitor.begin(12.0, Time::ZERO);
        for i in 0..packets {
            let now = Time::ZERO + MS * i;
            let tag = send(&mut monitor, now);
            monitor.on_acked(&acked(i, now, tag), Some(MS * 40 + extra(i)));
        }
        assert_eq!(monitor.next_result(), None, "not over");
        monitor.close();
        monitor
            .next_result()
            .expect("the interval is over")
            .expect("a result")
    }

    /// By hand: 5% above a link of 12 Mbit/s adds 0.05 ms of queue a millisecond.
    #[test]
    fn the_gradient_is_the_slope_of_the_rtts() {
        let s = trial(40, |i| Duration::from_micros(50 * i));
        assert!((s.rate_mbps - 12.0).abs() < 1e-9, "{s:?}");
        assert!((s.rtt_gradient - 0.05).abs() < 1e-9, "{s:?}");
        assert!(s.gradient_error < 1e-6, "{s:?}");
        assert!(
            (s.rtt_mean_s.expect("RTTs") - 0.040_975).abs() < 1e-9,
            "{s:?}"
        );
        // The standard deviation of 0, 1, .. n-1 is sqrt((n^2-1)/12).
        let deviation = 50e-6 * libm::sqrt((1600.0 - 1.0) / 12.0);
        assert!((s.rtt_deviation_s - deviation).abs() < 1e-9, "{s:?}");
    }

    /// RTTs that alternate by 2 ms are 1 ms from a line without a slope.
    #[test]
    fn noise_combines_regression_error_and_standard_deviation() {
        let s = trial(41, |i| MS * (i % 2 * 2));
        assert!(s.rtt_gradient.abs() < 1e-3, "{s:?}");
        assert!((s.rtt_deviation_s - 1e-3).abs() < 1e-5, "{s:?}");
        assert!((s.gradient_error - 1e-3 / 0.040).abs() < 1e-3, "{s:?}");
    }

    /// Each packet counts for its own trial, whatever the order in which fates become known.
    #[test]
    fn losses_and_arrivals_count_for_the_trial_that_sent_the_packet() {
        let mut monitor = Monitor::new();
        assert_eq!(send(&mut monitor, Time::ZERO), Tag::NONE, "between trials");
        let mut tags = Vec::new();
        for trial in 0..2 {
            monitor.begin(12.0, Time::ZERO);
            for i in 0..10 {
                let now = Time::ZERO + MS * (10 * trial + i);
                tags.push((now, send(&mut monitor, now)));
            }
        }
        monitor.close();
        // The second trial is complete first, and waits for the first.
        for (i, &(sent, tag)) in tags.iter().enumerate().rev() {
            assert_eq!(monitor.next_result(), None);
            let number = i as u64;
            match i {
                3 | 12 | 15 => monitor.on_lost(&lost(number, tag)),
                _ => monitor.on_acked(&acked(number, sent, tag), Some(MS * 40)),
            }
        }
        let mut loss = || monitor.next_result().map(|r| r.map(|s| s.loss));
        assert_eq!(loss(), Some(Some(0.1)));
        assert_eq!(loss(), Some(Some(0.2)));
        assert_eq!(loss(), None);
    }

    /// A trial of ten packets, with a function that gives each packet's acknowledgement and loss.
    fn ten() -> (Monitor, impl Fn(u64) -> (Acked, Lost)) {
        let mut monitor = Monitor::new();
        monitor.begin(12.0, Time::ZERO);
        let tags: Vec<Tag> = (0..10)
            .map(|i| send(&mut monitor, Time::ZERO + MS * i))
            .collect();
        monitor.close();
        let fates = move |i: u64| {
            let tag = tags[i as usize];
            (acked(i, Time::ZERO + MS * i, tag), lost(i, tag))
        };
        (monitor, fates)
    }

    /// A packet that was taken for lost arrives. The result waits for the others, and nothing
    /// counts as lost.
    #[test]
    fn a_late_packet_is_not_counted_as_lost() {
        let (mut monitor, fates) = ten();
        monitor.on_lost(&fates(2).1);
        for i in (0..9).filter(|&i| i != 2) {
            monitor.on_acked(&fates(i).0, Some(MS * 40));
        }
        monitor.on_acked(&fates(2).0, Some(MS * 50));
        assert_eq!(monitor.next_result(), None, "one is out");
        monitor.on_acked(&fates(9).0, Some(MS * 40));
        let summary = monitor.next_result().flatten().expect("a result");
        assert_eq!(summary.loss, 0.0);
        // The late packet did not wait in the queue, so its RTT does not count.
        assert_eq!(summary.rtt_mean_s, Some(0.04));
        assert_eq!(summary.rtt_gradient, 0.0);
    }

    #[test]
    fn a_timeout_ends_every_wait_and_late_arrivals_are_not_losses() {
        let (mut monitor, fates) = ten();
        for i in 0..4 {
            monitor.on_acked(&fates(i).0, Some(MS * 40));
        }
        for i in 4..10 {
            monitor.on_lost(&fates(i).1);
        }
        monitor.on_acked(&fates(4).0, Some(MS * 40));
        let summary = monitor.next_result().flatten().expect("a result");
        assert_eq!(summary.loss, 0.5);
        // Later events belong to no trial.
        monitor.on_acked(&fates(5).0, None);
        monitor.on_lost(&fates(6).1);
        assert_eq!(monitor.next_result(), None);
    }

    /// PCC-Uspace has no utility of a trial with fewer than four reliable RTTs. If most packets
    /// were lost there are none, and only the loss is known.
    #[test]
    fn a_trial_with_unreliable_rtts_is_repeated_unless_all_was_lost() {
        for (arrive, trusted, mean) in [
            (10, 4, Some(Some(0.04))),
            (10, 3, None),
            (10, 0, None),
            (4, 3, None),
            (3, 3, Some(None)),
            (0, 0, Some(None)),
        ] {
            let (mut monitor, fates) = ten();
            for i in 0..10 {
                match i < arrive {
                    true => monitor.on_acked(&fates(i).0, (i < trusted).then_some(MS * 40)),
                    false => monitor.on_lost(&fates(i).1),
                }
            }
            let result = monitor.next_result().expect("the interval is over");
            assert_eq!(result.map(|s| s.rtt_mean_s), mean, "{arrive}, {trusted}");
            assert!(result.is_none_or(|s| s.loss == 1.0 - arrive as f64 / 10.0));
        }
    }

    #[test]
    fn an_application_limited_trial_gives_no_result() {
        for (gap, counts) in [(1, true), (2, false)] {
            let mut monitor = Monitor::new();
            monitor.begin(12.0, Time::ZERO);
            for i in 0..10 {
                let now = Time::ZERO + MS * (gap * i);
                let tag = send_of(&mut monitor, now, true);
                monitor.on_acked(&acked(i, now, tag), Some(MS * 40));
            }
            monitor.close();
            let result = monitor.next_result().expect("the interval is over");
            assert_eq!(result.is_some(), counts, "a packet in {gap} ms");
        }
    }
}
