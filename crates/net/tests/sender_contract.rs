//! The reports that the real sender owes a controller. A spy instead of a controller records them.

use std::sync::{Arc, Mutex, PoisonError};

use headway_cc::testing::select;
use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Ecn, Feedback, Need, Rate, Rto, Sent, Setup, Tag,
    Time,
};
use headway_net::transport::{Profile, Receiver, ReceiverConfig, Sender, SenderConfig, Source};
use headway_net::{Ack, Body, Segment};

const MSS: Bytes = Bytes::new(1000);

/// A report to the controller, in short.
#[derive(Clone, Debug, PartialEq)]
enum Report {
    Feedback {
        congestion: bool,
        undo: bool,
    },
    Rto {
        consecutive: u32,
        prior_in_flight: u64,
    },
    Idle,
    Timer,
}

type Log = Arc<Mutex<Vec<Report>>>;

fn reports(log: &Log) -> Vec<Report> {
    log.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A controller that records its reports and does as the test says.
#[derive(Debug)]
struct Spy {
    log: Log,
    control: Control,
    timer: Time,
    /// From the first sent packet on: this pacing rate, and a timer after five milliseconds.
    on_sent: Option<Rate>,
    /// From the first feedback on: this pacing rate.
    on_feedback: Option<Rate>,
    /// The controller that decides the window instead of the spy.
    inner: Option<Box<dyn CongestionControl>>,
}

impl Spy {
    fn new(control: Control) -> (Spy, Log) {
        let log = Log::default();
        let spy = Spy {
            log: Arc::clone(&log),
            control,
            timer: Time::NEVER,
            on_sent: None,
            on_feedback: None,
            inner: None,
        };
        (spy, log)
    }

    fn newreno(setup: Setup) -> (Spy, Log) {
        let (spy, log) = Spy::new(Control::window(MSS));
        (
            Spy {
                inner: Some(select("newreno").build(&setup)),
                ..spy
            },
            log,
        )
    }

    fn note(&self, what: Report) {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what);
    }
}

impl CongestionControl for Spy {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        if let Some(rate) = self.on_sent.take() {
            self.control.pacing_rate = Some(rate);
            self.timer = sent.now + Duration::from_millis(5);
        }
        Tag::NONE
    }
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.note(Report::Feedback {
            congestion: f.congestion.is_some(),
            undo: f.undo,
        });
        if let Some(rate) = self.on_feedback {
            self.control.pacing_rate = Some(rate);
        }
        self.inner.iter_mut().for_each(|i| i.on_feedback(f));
    }
    fn on_rto(&mut self, r: &Rto<'_>) {
        let prior_in_flight = r.prior_in_flight.get();
        self.note(Report::Rto {
            consecutive: r.consecutive,
            prior_in_flight,
        });
        self.inner.iter_mut().for_each(|i| i.on_rto(r));
    }
    fn on_idle(&mut self, _: Time, _: Duration) {
        self.note(Report::Idle);
    }
    fn next_timer(&self) -> Time {
        self.timer
    }
    fn on_timer(&mut self, _: Time) {
        self.note(Report::Timer);
        self.timer = Time::NEVER;
    }
    fn control(&self) -> Control {
        self.inner.as_ref().map_or(self.control, |i| i.control())
    }
}

fn sender(spy: Spy, profile: Profile, source: Source) -> Sender {
    let needs = &[Need::PerPacket, Need::RateSample, Need::PerSend];
    Sender::new(
        SenderConfig {
            flow: 0,
            mss: MSS,
            profile,
            needs,
        },
        Box::new(spy),
        source,
    )
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverConfig::new(Profile::Simple), None)
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// All packets that the sender sends now.
fn drain(sender: &mut Sender, now: Time) -> Vec<Segment> {
    let segment = |body| match body {
        Body::Data(segment) => segment,
        _ => panic!("a sender sends data"),
    };
    std::iter::from_fn(|| sender.poll(now))
        .map(|p| segment(p.body))
        .collect()
}

fn ack(receiver: &mut Receiver, now: Time, segment: &Segment) -> Ack {
    receiver
        .on_data(now, segment, MSS, Ecn::NotEct)
        .expect("profile simple acknowledges at once")
}

#[test]
fn receiver_messages_do_not_stop_timeouts() {
    let (spy, log) = Spy::new(Control::window(MSS * 10));
    let (mut s, mut r) = (sender(spy, Profile::Simple, Source::Bulk), receiver());
    let flight = drain(&mut s, ms(0));
    let first = ack(&mut r, ms(20), &flight[0]);
    s.on_ack(ms(40), &first, &[]);
    drain(&mut s, ms(40));
    // From here on data is lost, and the receiver's half reports every 100 ms.
    for t in (140..10_000).step_by(100) {
        while s.next_wake() <= ms(t) {
            s.on_wake(s.next_wake());
        }
        let report = r.message_ack(ms(t));
        s.on_ack(ms(t), &report, b"report");
        drain(&mut s, ms(t));
    }
    // Timeouts come 1, 2 and 4 seconds after the last data was acknowledged.
    let timeouts = reports(&log)
        .iter()
        .filter(|t| matches!(t, Report::Rto { .. }))
        .count();
    assert_eq!(timeouts, 3);
}

#[test]
fn a_decision_on_sending_takes_effect_at_once() {
    let (spy, log) = Spy::new(Control::paced(MSS * 100, Rate::from_bps(8_000)));
    let spy = Spy {
        on_sent: Some(Rate::from_mbps(8.0)),
        ..spy
    };
    let mut s = sender(spy, Profile::Simple, Source::Bulk);
    assert_eq!(drain(&mut s, ms(0)).len(), 1);
    assert_eq!(s.control().pacing_rate, Some(Rate::from_mbps(8.0)));
    assert_eq!(s.next_wake(), ms(1), "a packet a millisecond");
    (1..=5).for_each(|t| {
        s.on_wake(ms(t));
        assert_eq!(drain(&mut s, ms(t)).len(), 1);
    });
    assert_eq!(reports(&log), [Report::Timer]);
}

#[test]
fn timeouts_do_not_count_as_idle_and_back_off_only_data_in_flight() {
    let (spy, log) = Spy::new(Control::paced(MSS * 4, Rate::from_bps(400)));
    let mut s = sender(spy, Profile::Simple, Source::Bulk);
    // There is one packet in 20 s, and all are lost.
    let mut now = ms(0);
    while now < ms(60_000) {
        drain(&mut s, now);
        now = s.next_wake();
        s.on_wake(now);
    }
    let rto = |consecutive| Report::Rto {
        consecutive,
        prior_in_flight: 1000,
    };
    let timeouts: Vec<Report> = reports(&log);
    assert_eq!(timeouts, [rto(1), rto(2), rto(3)]);
}

#[test]
fn a_silent_application_counts_as_idle() {
    let (spy, log) = Spy::new(Control::window(MSS * 10));
    // There is a packet every three seconds, the first at 3 s.
    let source = Source::rate(Rate::from_bps(8 * 1000 / 3), Time::ZERO);
    let (mut s, mut r) = (sender(spy, Profile::Simple, source), receiver());
    let mut now = ms(0);
    let mut sent = 0;
    while now < ms(10_000) {
        for segment in drain(&mut s, now) {
            sent += 1;
            let a = ack(&mut r, now, &segment);
            s.on_ack(now + Duration::from_millis(40), &a, &[]);
        }
        now = s.next_wake();
        s.on_wake(now);
    }
    assert_eq!(sent, 3);
    assert_eq!(
        reports(&log).iter().filter(|t| **t == Report::Idle).count(),
        2
    );
}

#[test]
fn a_raised_rate_takes_effect_at_once() {
    let (spy, _) = Spy::new(Control::paced(MSS * 40, Rate::from_bps(100)));
    let spy = Spy {
        on_feedback: Some(Rate::from_mbps(10.0)),
        ..spy
    };
    let (mut s, mut r) = (sender(spy, Profile::Simple, Source::Bulk), receiver());
    let flight = drain(&mut s, ms(0));
    let a = ack(&mut r, ms(20), &flight[0]);
    s.on_ack(ms(40), &a, &[]);
    assert!(s.poll(ms(40)).is_none());
    assert!(s.next_wake() < ms(42), "{:?}", s.next_wake());
}

#[test]
fn acknowledgements_of_unsent_data_are_ignored() {
    let (spy, log) = Spy::new(Control::window(MSS * 10));
    let (mut s, mut r) = (sender(spy, Profile::Simple, Source::Bulk), receiver());
    let flight = drain(&mut s, ms(0));
    let good = ack(&mut r, ms(20), &flight[0]);
    for (number, cumulative, earlier) in [
        (10, 1, 0),
        (1 << 33, 0, u64::MAX),
        (u64::MAX, 0, u64::MAX),
        (0, 11, 0),
        (0, u64::MAX, 0),
    ] {
        let forged = Ack {
            number,
            cumulative,
            earlier,
            ..good
        };
        assert_eq!(s.on_ack(ms(30), &forged, &[]), None);
    }
    assert_eq!(s.in_flight(), MSS * 10);
    assert_eq!(reports(&log), []);
    assert!(s.on_ack(ms(40), &good, &[]).is_some());
    assert_eq!(s.in_flight(), MSS * 9);
}

#[test]
fn a_segment_that_no_sender_sent_is_ignored() {
    let mut r = receiver();
    let far = |number, seq| Segment {
        number,
        seq,
        sent: Time::ZERO,
        queued: Duration::ZERO,
        header: Default::default(),
    };
    for (number, seq) in [(0, u64::MAX), (0, 1 << 34), (u64::MAX, 0), (1 << 63, 1)] {
        assert!(
            r.on_data(ms(1), &far(number, seq), MSS, Ecn::NotEct)
                .is_none(),
            "{number}, {seq}"
        );
    }
    assert_eq!(ack(&mut r, ms(2), &far(0, 0)).cumulative, 1);
}

#[test]
fn acknowledging_a_retransmission_does_not_undo_a_timeout() {
    let (spy, log) = Spy::newreno(Setup::new(MSS, 1));
    let (mut s, mut r) = (sender(spy, Profile::Simple, Source::Bulk), receiver());
    drain(&mut s, ms(0)); // ten packets, all lost
    let first = s.next_wake();
    s.on_wake(first);
    let repeated = drain(&mut s, first);
    let second = s.next_wake();
    s.on_wake(second);
    drain(&mut s, second);
    // The packet that the first timeout repeated was only late.
    let now = second + Duration::from_millis(10);
    let a = ack(&mut r, now, &repeated[0]);
    s.on_ack(now, &a, &[]);
    assert!(
        reports(&log)
            .iter()
            .all(|t| !matches!(t, Report::Feedback { undo: true, .. }))
    );
    assert!(!drain(&mut s, now).is_empty(), "repairs go on");
}

#[test]
fn losses_after_the_reduction_are_answered_again() {
    for (profile, events) in [(Profile::Simple, 2), (Profile::Linux, 2)] {
        let (spy, log) = Spy::new(Control::window(MSS * 40));
        let (mut s, mut r) = (sender(spy, profile, Source::Bulk), receiver());
        // Packet 0 is lost; so is the first packet of new data that leaves in recovery.
        let mut lost_in_recovery = None;
        let mut now = ms(0);
        let mut under_way: Vec<Segment> = drain(&mut s, now).into_iter().skip(1).collect();
        for _ in 0..4 {
            now += Duration::from_millis(100);
            let mut next = Vec::new();
            for segment in std::mem::take(&mut under_way) {
                let a = ack(&mut r, now, &segment);
                s.on_ack(now, &a, &[]);
                for segment in drain(&mut s, now) {
                    if segment.seq >= 45 && lost_in_recovery.is_none() {
                        lost_in_recovery = Some(segment.seq);
                    } else {
                        next.push(segment);
                    }
                }
            }
            under_way = next;
        }
        assert!(lost_in_recovery.is_some());
        let congestions = reports(&log);
        let count = congestions.iter().filter(|t| {
            matches!(
                t,
                Report::Feedback {
                    congestion: true,
                    ..
                }
            )
        });
        assert_eq!(count.count(), events, "{profile:?}");
    }
}

/// RFC 3168 §6.1.2: a mark reaches the controller as the reason to reduce, once a round trip,
/// however many packets were marked. A scheme that needs no echo of its own still declares every
/// packet ECN-capable.
#[test]
fn marks_are_reported_once_a_round_trip() {
    for profile in [Profile::Simple, Profile::Linux] {
        let reno = select("newreno:ecn=on").build(&Setup::new(MSS, 1));
        let config = SenderConfig {
            flow: 0,
            mss: MSS,
            profile,
            needs: &[],
        };
        let mut s = Sender::new(config, reno, Source::Bulk);
        let mut r = Receiver::new(ReceiverConfig::new(profile), None);
        let mut windows = Vec::new();
        for round in 0..4 {
            let now = ms(100 * round);
            let flight: Vec<_> = std::iter::from_fn(|| s.poll(now)).collect();
            assert!(flight.iter().all(|p| p.ecn == Ecn::Ect0));
            for packet in flight {
                let Body::Data(segment) = packet.body else {
                    panic!("a sender sends data")
                };
                // From the second round on every packet is marked.
                let ecn = if round == 0 { packet.ecn } else { Ecn::Ce };
                if let Some(a) = r.on_data(now, &segment, MSS, ecn) {
                    s.on_ack(now + Duration::from_millis(99), &a, &[]);
                }
            }
            windows.push(s.control().cwnd.get() / MSS.get());
        }
        assert_eq!(windows, [20, 10, 5, 2], "{profile:?}");
    }
}

#[test]
fn a_stopped_flow_stays_stopped() {
    let (spy, log) = Spy::new(Control::window(MSS * 10));
    let (mut s, mut r) = (sender(spy, Profile::Linux, Source::Bulk), receiver());
    let flight = drain(&mut s, ms(0));
    s.stop();
    let a = ack(&mut r, ms(20), &flight[0]);
    assert_eq!(s.on_ack(ms(40), &a, &[]), None);
    assert_eq!(s.next_wake(), Time::NEVER);
    assert!(s.poll(ms(50)).is_none());
    assert_eq!(reports(&log), []);
}

#[test]
fn a_finished_flow_has_no_timer() {
    let (spy, _) = Spy::new(Control::window(MSS * 10));
    let spy = Spy {
        on_sent: Some(Rate::from_mbps(100.0)),
        ..spy
    };
    let source = Source::Finite { left: MSS };
    let (mut s, mut r) = (sender(spy, Profile::Linux, source), receiver());
    let flight = drain(&mut s, ms(0));
    let a = ack(&mut r, ms(20), &flight[0]);
    s.on_ack(ms(40), &a, &[]);
    assert!(s.is_done());
    assert_eq!(s.next_wake(), Time::NEVER);
}
