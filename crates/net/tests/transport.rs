//! The transport over a hostile path: every byte arrives, whatever is lost, delayed or reordered,
//! and the sender's counters are consistent.

use headway_cc::testing::select;
use headway_cc::{Bytes, Duration, Need, Setup, Stream, Time};
use headway_net::transport::{Profile, Receiver, ReceiverConfig, Sender, SenderConfig, Source};
use headway_net::{Ack, Body, Segment};
use proptest::prelude::*;

const MSS: Bytes = Bytes::new(1000);
const EVERYTHING: &[Need] = &[Need::PerPacket, Need::RateSample];

/// A path that loses and delays each packet and each acknowledgement independently.
struct Path {
    stream: Stream,
    loss: f64,
    delay: Duration,
    jitter: Duration,
}

impl Path {
    fn fate(&mut self, now: Time) -> Option<Time> {
        let late = self.jitter.mul_f64(self.stream.uniform());
        (!self.stream.chance(self.loss)).then(|| now + self.delay + late)
    }
}

struct Outcome {
    sender: Sender,
    finished: Option<Time>,
    sent_packets: u64,
    /// Segments that the receiver has without a gap.
    received_segments: u64,
}

/// Runs a finite flow until it is done or the time is up.
fn run(
    profile: Profile,
    scheme: &str,
    bytes: u64,
    needs: &'static [Need],
    mut path: Path,
    limit: Time,
) -> Outcome {
    let selection = select(scheme);
    let config = SenderConfig {
        flow: 0,
        mss: MSS,
        profile,
        needs,
    };
    let source = Source::Finite {
        left: Bytes::new(bytes),
    };
    let mut sender = Sender::new(config, selection.build(&Setup::new(MSS, 1)), source);
    let mut receiver = Receiver::new(ReceiverConfig::new(profile), None);
    let mut data: Vec<(Time, Segment, Bytes)> = Vec::new();
    let mut acks: Vec<(Time, Ack)> = Vec::new();
    let mut now = Time::ZERO;
    let mut sent_packets = 0;
    while now <= limit {
        while let Some(packet) = sender.poll(now) {
            sent_packets += 1;
            let Body::Data(segment) = packet.body else {
                panic!("a sender sends data")
            };
            data.extend(path.fate(now).map(|at| (at, segment, packet.size())));
        }
        assert!(sender.in_flight() <= Bytes::new(MSS.get() * sent_packets));
        if sender.is_done() {
            return Outcome {
                sender,
                finished: Some(now),
                sent_packets,
                received_segments: receiver.contiguous(),
            };
        }
        let next_data = data.iter().map(|d| d.0).min().unwrap_or(Time::NEVER);
        let next_ack = acks.iter().map(|a| a.0).min().unwrap_or(Time::NEVER);
        let wake = sender.next_wake();
        let next = next_data.min(next_ack).min(wake).min(receiver.next_timer());
        assert!(next >= now || wake <= now, "time goes forward");
        assert!(
            next < Time::NEVER,
            "nothing is to happen, but the flow is not done"
        );
        now = now.max(next);
        for (_, segment, size) in take_due(&mut data, now, |d| d.0) {
            let ack = receiver.on_data(now, &segment, size, Default::default());
            acks.extend(ack.and_then(|ack| Some((path.fate(now)?, ack))));
        }
        if receiver.next_timer() <= now
            && let Some(ack) = receiver.on_timer(now)
        {
            acks.extend(path.fate(now).map(|at| (at, ack)));
        }
        for (_, ack) in take_due(&mut acks, now, |a| a.0) {
            sender.on_ack(now, &ack, &[]);
        }
        if sender.next_wake() <= now {
            sender.on_wake(now);
        }
    }
    Outcome {
        sender,
        finished: None,
        sent_packets,
        received_segments: receiver.contiguous(),
    }
}

fn take_due<T>(queue: &mut Vec<T>, now: Time, at: impl Fn(&T) -> Time) -> Vec<T> {
    let mut due: Vec<T> = queue.extract_if(.., |x| at(x) <= now).collect();
    due.sort_by_key(&at);
    due
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn everything_arrives_and_the_books_balance(
        seed in any::<u64>(),
        loss in 0.0..0.3,
        jitter_ms in 0..80u64,
        bytes in 1..300_000u64,
        linux in any::<bool>(),
        scheme in prop::sample::select(vec!["newreno", "cubic", "bbr", "fixed-window:window=40", "fixed-rate:rate=8Mbps"]),
    ) {
        let profile = if linux { Profile::Linux } else { Profile::Simple };
        let path = Path {
            stream: Stream::new(seed, "path"),
            loss,
            delay: Duration::from_millis(20),
            jitter: Duration::from_millis(jitter_ms),
        };
        let limit = Time::ZERO + Duration::from_secs(100_000);
        let end = run(profile, scheme, bytes, EVERYTHING, path, limit);
        prop_assert!(end.finished.is_some());
        let c = end.sender.counters();
        prop_assert_eq!(end.received_segments, bytes.div_ceil(MSS.get()));
        prop_assert!(c.sent.get() >= c.delivered.get());
        prop_assert_eq!(c.sent, c.delivered + c.lost + end.sender.in_flight());
        prop_assert!(end.sent_packets >= bytes.div_ceil(MSS.get()));
    }

    /// Detail that a scheme does not need makes no difference to it.
    #[test]
    fn unneeded_detail_changes_nothing(seed in any::<u64>(), loss in 0.0..0.1, linux in any::<bool>()) {
        let profile = if linux { Profile::Linux } else { Profile::Simple };
        for scheme in ["newreno", "cubic", "bbr", "fixed-window", "fixed-rate"] {
            let path = || Path {
                stream: Stream::new(seed, "path"),
                loss,
                delay: Duration::from_millis(20),
                jitter: Duration::ZERO,
            };
            let limit = Time::ZERO + Duration::from_secs(1000);
            let full = run(profile, scheme, 200_000, EVERYTHING, path(), limit);
            let bare = run(profile, scheme, 200_000, select(scheme).scheme.needs, path(), limit);
            prop_assert_eq!(full.finished, bare.finished);
            prop_assert_eq!(full.sender.counters(), bare.sender.counters());
        }
    }
}

#[test]
fn without_loss_there_are_no_retransmissions() {
    for profile in [Profile::Simple, Profile::Linux] {
        let path = Path {
            stream: Stream::new(1, "path"),
            loss: 0.0,
            delay: Duration::from_millis(20),
            jitter: Duration::ZERO,
        };
        let end = run(
            profile,
            "cubic",
            1_000_000,
            &[],
            path,
            Time::ZERO + Duration::from_secs(60),
        );
        assert!(end.finished.is_some());
        assert_eq!(end.sent_packets, 1000);
        assert_eq!(end.sender.counters().lost, Bytes::ZERO);
    }
}

#[test]
fn a_lost_tail_costs_a_timeout_or_a_probe() {
    // The last packets are lost, which only a timer can detect. RFC 6298 waits a second at least;
    // Linux probes after two round trips (RFC 8985 §7).
    let finish = |profile| {
        let selection = select("newreno");
        let config = SenderConfig {
            flow: 0,
            mss: MSS,
            profile,
            needs: &[],
        };
        let source = Source::Finite {
            left: Bytes::new(10_000),
        };
        let mut sender = Sender::new(config, selection.build(&Setup::new(MSS, 1)), source);
        let mut receiver = Receiver::new(ReceiverConfig::new(profile), None);
        let rtt = Duration::from_millis(40);
        let mut now = Time::ZERO;
        let mut first_flight = true;
        for _ in 0..20 {
            let mut acks = Vec::new();
            while let Some(packet) = sender.poll(now) {
                let Body::Data(segment) = packet.body else {
                    panic!("a sender sends data")
                };
                let lost = first_flight && segment.number >= 8;
                if !lost {
                    acks.extend(receiver.on_data(
                        now + rtt / 2,
                        &segment,
                        packet.size(),
                        Default::default(),
                    ));
                }
            }
            first_flight = false;
            if acks.is_empty() {
                now = sender.next_wake();
                sender.on_wake(now);
            } else {
                now += rtt;
                acks.iter().for_each(|ack| {
                    sender.on_ack(now, ack, &[]);
                });
            }
            if sender.is_done() {
                return now.since(Time::ZERO);
            }
        }
        panic!("not done by {now:?}");
    };
    let (simple, linux) = (finish(Profile::Simple), finish(Profile::Linux));
    assert!(
        simple > Duration::from_secs(1) && simple < Duration::from_millis(1300),
        "{simple:?}"
    );
    assert!(
        linux > Duration::from_millis(120) && linux < Duration::from_millis(400),
        "{linux:?}"
    );
}

#[test]
fn a_spurious_timeout_is_undone() {
    // Ten packets leave; the path stalls for three seconds, and then everything arrives.
    let selection = select("newreno");
    let config = SenderConfig {
        flow: 0,
        mss: MSS,
        profile: Profile::Simple,
        needs: &[],
    };
    let mut sender = Sender::new(config, selection.build(&Setup::new(MSS, 1)), Source::Bulk);
    let mut receiver = Receiver::new(ReceiverConfig::new(Profile::Simple), None);
    let mut flight = Vec::new();
    while let Some(packet) = sender.poll(Time::ZERO) {
        let Body::Data(segment) = packet.body else {
            panic!("a sender sends data")
        };
        flight.push(segment);
    }
    assert_eq!(flight.len(), 10);
    let timeout = sender.next_wake();
    assert_eq!(timeout, Time::ZERO + Duration::from_secs(1));
    sender.on_wake(timeout);
    assert_eq!(sender.control().cwnd, MSS);
    assert!(
        sender.poll(timeout).is_some(),
        "the first packet is repeated"
    );
    let late = Time::ZERO + Duration::from_secs(3);
    for segment in &flight {
        let ack = receiver
            .on_data(late, segment, MSS, Default::default())
            .unwrap();
        sender.on_ack(late, &ack, &[]);
    }
    // The window is as before; it has not grown, because it did not limit the sender meanwhile.
    assert_eq!(sender.control().cwnd, MSS * 10);
    assert_eq!(sender.counters().lost, Bytes::ZERO);
}
