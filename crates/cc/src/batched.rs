//! Digests of several acknowledgements, for hosts that call their controller only at intervals.

use std::any::Any;
use std::fmt;

use crate::registry::{seconds, split_unit};
use crate::{
    CongestionControl, Control, Duration, Feedback, Need, NetworkView, Probe, Rto, Sent, Stamp,
    Tag, Time,
};

/// The interval between digests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DigestInterval {
    /// A fixed time.
    Period(Duration),
    /// A number of smoothed RTTs.
    Rtts(f64),
}

impl DigestInterval {
    /// The key of the parameter in a `batched-` scheme.
    pub(crate) const KEY: &str = "interval";

    /// What the parameter may be.
    pub(crate) const WHAT: &str = "a time from 100us to 10s, such as 10ms, or round trips from 0.01rtt to 100rtt, such as 0.25rtt";

    /// Reads `0.25rtt` or `10ms`.
    pub(crate) fn read(text: &str) -> Option<DigestInterval> {
        let (number, unit) = split_unit(text)?;
        if unit == "rtt" {
            return (0.01..=100.0)
                .contains(&number)
                .then_some(DigestInterval::Rtts(number));
        }
        let period = Duration::from_secs_f64(number * seconds(unit)?);
        (Duration::from_micros(100)..=Duration::from_secs(10))
            .contains(&period)
            .then_some(DigestInterval::Period(period))
    }

    /// Do digests lack what this need asks for?
    pub(crate) fn lacks(need: Need) -> bool {
        matches!(
            need,
            Need::PerPacket | Need::ReceiverTime | Need::Receiver | Need::Header
        )
    }
}

impl fmt::Display for DigestInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DigestInterval::Period(period) => write!(f, "{}s", period.as_secs_f64()),
            DigestInterval::Rtts(rtts) => write!(f, "{rtts}rtt"),
        }
    }
}

/// Gives the inner controller digests of acknowledgements and losses, as a kernel that is read at
/// intervals would: sums of bytes, the newest of everything else, and no packets. A digest comes as
/// soon as there is something to report, but at least an interval after the last. Sends, timeouts
/// and idleness are reported at once.
#[derive(Debug)]
pub struct Batched {
    within: Box<dyn CongestionControl>,
    interval: DigestInterval,
    digest: Option<Feedback<'static>>,
    /// The earliest time of the next digest.
    next: Time,
}

impl Batched {
    /// Wraps the controller `within`.
    pub fn new(within: Box<dyn CongestionControl>, interval: DigestInterval) -> Batched {
        Batched {
            within,
            interval,
            digest: None,
            next: Time::ZERO,
        }
    }

    fn deliver(&mut self, now: Time) {
        let Some(digest) = self.digest.take() else {
            return;
        };
        let interval = match self.interval {
            DigestInterval::Period(period) => period,
            DigestInterval::Rtts(rtts) => digest.rtt_stats.smoothed.mul_f64(rtts),
        };
        self.next = now + interval;
        self.within.on_feedback(&Feedback { now, ..digest });
    }
}

impl CongestionControl for Batched {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.within.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.digest = Some(joined(self.digest.take(), feedback));
        if feedback.now >= self.next {
            self.deliver(feedback.now);
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.deliver(rto.now);
        self.within.on_rto(rto);
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.deliver(now);
        self.within.on_idle(now, idle);
    }

    fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.within.on_network(now, view);
    }

    fn next_timer(&self) -> Time {
        let digest = match self.digest {
            Some(_) => self.next,
            None => Time::NEVER,
        };
        digest.min(self.within.next_timer())
    }

    fn on_timer(&mut self, now: Time) {
        if self.next <= now {
            self.deliver(now);
        }
        if self.within.next_timer() <= now {
            self.within.on_timer(now);
        }
    }

    fn control(&self) -> Control {
        self.within.control()
    }

    fn stamp(&self) -> Stamp {
        self.within.stamp()
    }

    /// The transport would otherwise spread a reduction that has not been made yet.
    fn owns_recovery(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.within.probe(probe);
    }

    fn steered(&mut self) -> Option<&mut dyn Any> {
        self.within.steered()
    }
}

/// The digest that covers `before` and `f`.
fn joined(before: Option<Feedback<'static>>, f: &Feedback<'_>) -> Feedback<'static> {
    let mut digest = Feedback {
        now: f.now,
        acked: &[],
        lost: &[],
        acked_bytes: f.acked_bytes,
        lost_bytes: f.lost_bytes,
        rtt: f.rtt,
        rtt_stats: f.rtt_stats,
        rate: f.rate,
        counters: f.counters,
        in_flight: f.in_flight,
        prior_in_flight: f.prior_in_flight,
        largest_acked: f.largest_acked,
        next_number: f.next_number,
        cwnd_limited: f.cwnd_limited,
        app_limited: f.app_limited,
        recovery: f.recovery,
        congestion: f.congestion,
        undo: f.undo,
        message: &[],
    };
    if let Some(before) = before {
        digest.acked_bytes += before.acked_bytes;
        digest.lost_bytes += before.lost_bytes;
        digest.rtt = f.rtt.or(before.rtt);
        digest.rate = f.rate.or(before.rate);
        digest.prior_in_flight = before.prior_in_flight;
        // An undo of a reduction in the same digest cancels both.
        let is_undone = f.undo && before.congestion.is_some();
        digest.undo = before.undo || (f.undo && !is_undone);
        if !is_undone {
            digest.congestion = before.congestion.or(f.congestion);
        }
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Host, Link, MSS, feedback, rto, select, setup};
    use crate::{Bytes, Congestion, Ecn, Rate};
    use std::sync::{Arc, Mutex};

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// The time, bytes acknowledged and lost, congestion, undo.
    type Report = (Time, Bytes, Bytes, Option<Congestion>, bool);

    /// Keeps the feedback that it receives.
    #[derive(Debug)]
    struct Listener(Arc<Mutex<Vec<Report>>>);

    impl CongestionControl for Listener {
        fn on_feedback(&mut self, f: &Feedback<'_>) {
            assert!(f.acked.is_empty() && f.lost.is_empty());
            let reports = (f.now, f.acked_bytes, f.lost_bytes, f.congestion, f.undo);
            self.0.lock().unwrap().push(reports);
        }
        fn on_rto(&mut self, _: &Rto<'_>) {}
        fn control(&self) -> Control {
            Control::window(MSS * 10)
        }
    }

    fn listened(interval: DigestInterval) -> (Batched, Arc<Mutex<Vec<Report>>>) {
        let reports = Arc::default();
        let listener = Listener(Arc::clone(&reports));
        (Batched::new(Box::new(listener), interval), reports)
    }

    fn ack(ms: u64) -> Feedback<'static> {
        Feedback {
            acked_bytes: MSS,
            ..feedback(at(ms))
        }
    }

    #[test]
    fn digests_add_up_acknowledgements() {
        let (mut batched, reports) = listened(DigestInterval::Period(Duration::from_millis(10)));
        batched.on_feedback(&ack(5));
        for ms in [6, 7] {
            batched.on_feedback(&ack(ms));
        }
        batched.on_feedback(&Feedback {
            lost_bytes: MSS * 2,
            congestion: Some(Congestion::Loss),
            ..ack(9)
        });
        assert_eq!(batched.next_timer(), at(15));
        batched.on_timer(at(15));
        assert_eq!(batched.next_timer(), Time::NEVER);
        batched.on_feedback(&ack(40));
        batched.on_feedback(&ack(41));
        batched.on_rto(&rto(at(42), 3, 1));
        let right = [
            (at(5), MSS, Bytes::ZERO, None, false),
            (at(15), MSS * 3, MSS * 2, Some(Congestion::Loss), false),
            (at(40), MSS, Bytes::ZERO, None, false),
            (at(42), MSS, Bytes::ZERO, None, false),
        ];
        assert_eq!(*reports.lock().unwrap(), right);
    }

    #[test]
    fn the_digest_interval_can_follow_the_rtt() {
        let (mut batched, reports) = listened(DigestInterval::Rtts(0.25));
        batched.on_feedback(&ack(100)); // of 100 ms
        batched.on_feedback(&ack(101));
        assert_eq!(batched.next_timer(), at(125));
        batched.on_feedback(&ack(126));
        assert_eq!(reports.lock().unwrap()[1].1, MSS * 2);
    }

    #[test]
    fn a_reduction_undone_in_the_same_digest_is_not_reported() {
        let reported = |events: &[(Option<Congestion>, bool)]| {
            let (mut batched, reports) =
                listened(DigestInterval::Period(Duration::from_millis(10)));
            batched.on_feedback(&ack(0));
            for (congestion, undo) in events {
                batched.on_feedback(&Feedback {
                    congestion: *congestion,
                    undo: *undo,
                    ..ack(1)
                });
            }
            batched.on_timer(at(10));
            let reports = reports.lock().unwrap()[1];
            (reports.3, reports.4)
        };
        let loss = Some(Congestion::Loss);
        assert_eq!(reported(&[(loss, false), (None, true)]), (None, false));
        assert_eq!(reported(&[(None, true), (loss, false)]), (loss, true));
        assert_eq!(reported(&[(None, true), (None, false)]), (None, true));
        assert_eq!(reported(&[(loss, false), (None, false)]), (loss, false));
    }

    #[test]
    fn a_digest_interval_is_written_as_a_prefix() {
        let selection = select("batched-cubic:interval=10ms:beta=0.8");
        assert_eq!(selection.spec, "batched-cubic:interval=10ms:beta=0.8");
        let canonical = selection.canonical();
        assert!(canonical.starts_with("batched-cubic:"), "{canonical}");
        assert!(canonical.ends_with(":interval=0.01s"), "{canonical}");
        assert_eq!(select(&canonical).canonical(), canonical);
        assert_eq!(
            select("batched-newreno:interval=0.5rtt").canonical(),
            "batched-newreno:ecn=off:interval=0.5rtt"
        );
        let registry = crate::Registry::new(crate::schemes::SCHEMES);
        for (spec, hint) in [
            ("batched-cubic", "needs interval, a time from 100us to 10s"),
            (
                "batched-cubic:interval=1us",
                "interval='1us' must be a time",
            ),
            ("batched-cubic:interval=9", "interval='9' must be a time"),
            ("batched-cubik:interval=1ms", "did you mean 'cubic'?"),
            (
                "batched-verus:interval=1ms",
                "needs per-packet, which digests do not give",
            ),
            (
                "batched-sprout:interval=1ms",
                "needs receiver, which digests do not give",
            ),
            (
                "batched-batched-cubic:interval=1ms",
                "is given twice; write it once",
            ),
            (
                "batched-cubic:interval=1ms:interval=2ms",
                "'interval' is given twice",
            ),
        ] {
            let error = registry.select(spec).expect_err(spec).to_string();
            assert!(
                error.contains(hint) && !error.contains('\n'),
                "{spec}: {error}"
            );
        }
    }

    /// Digests over less than a packet's time lose nothing compared with acknowledgements.
    #[test]
    fn short_digests_keep_utilisation_and_long_ones_lower_it() {
        let utilisation = |spec: &str| {
            let (rate, rtt) = (Rate::from_mbps(12.0), Duration::from_millis(40));
            let mut link = Link::new(&select(spec), rate, rtt, 40);
            link.run(Duration::from_secs(5));
            link.utilisation(Duration::from_secs(20))
        };
        let each = utilisation("newreno");
        assert_eq!(utilisation("batched-newreno:interval=100us"), each);
        assert!(utilisation("batched-newreno:interval=1s") < 0.9 * each);
    }

    #[test]
    fn timers_of_the_wrapped_controller_still_fire() {
        let mut host = Host::new(select("batched-bbr:interval=0.25rtt").build(&setup()), MSS);
        let number = host.send();
        host.wait_until(at(50));
        host.feedback(&[number], &[], Ecn::NotEct, |_| {});
        host.wait_until(at(500));
        assert!(host.cc.control().pacing_rate.is_some());
    }
}
