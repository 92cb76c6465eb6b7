//! The transport alone, over a path that loses packets both ways.

use std::collections::VecDeque;

use headway_cc::{Bytes, Duration, Ecn, Registry, Setup, Stream, Time, schemes};
use headway_net::transport::{Profile, Receiver, ReceiverConfig, Sender, SenderConfig, Source};
use headway_net::{Ack, Body, Segment};

/// Loses each item with a probability; the rest comes out, in order, after a delay.
struct Lossy<T> {
    line: VecDeque<(Time, T)>,
    loss: f64,
    stream: Stream,
}

impl<T> Lossy<T> {
    const DELAY: Duration = Duration::from_millis(20);

    fn new(loss: f64, seed: u64, name: &str) -> Lossy<T> {
        Lossy {
            line: VecDeque::new(),
            loss,
            stream: Stream::new(seed, name),
        }
    }

    fn put(&mut self, now: Time, item: T) {
        if !self.stream.chance(self.loss) {
            self.line.push_back((now + Self::DELAY, item));
        }
    }

    fn next(&self) -> Time {
        self.line.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn take(&mut self, now: Time) -> Option<T> {
        if self.next() > now {
            return None;
        }
        self.line.pop_front().map(|(_, item)| item)
    }
}

/// Sends `packets` with a loss of 5% in each direction. Returns when the sender knew that all had
/// arrived, and how many the receiver had in order by then.
fn transfer(scheme: &str, profile: Profile, packets: u64, seed: u64) -> (Option<Time>, u64) {
    let mss = Bytes::new(1500);
    let registry = Registry::new(schemes::SCHEMES);
    let scheme = registry.select(scheme).expect("a scheme");
    let cc = scheme.build(&Setup::new(mss, seed));
    let config = SenderConfig {
        flow: 0,
        mss,
        profile,
        needs: scheme.scheme.needs,
    };
    // The last packet is shorter.
    let left = mss * packets - Bytes::new(700);
    let mut sender = Sender::new(config, cc, Source::Finite { left });
    let mut receiver = Receiver::new(ReceiverConfig::new(profile), None);
    let mut there: Lossy<(Segment, Bytes)> = Lossy::new(0.05, seed, "there");
    let mut back: Lossy<Ack> = Lossy::new(0.05, seed, "back");
    let mut now = Time::ZERO;
    while now < Time::ZERO + Duration::from_secs(600) {
        while let Some(packet) = sender.poll(now) {
            let Body::Data(segment) = packet.body else {
                panic!("a sender sends data");
            };
            there.put(now, (segment, packet.size()));
        }
        if sender.is_done() {
            return (Some(now), receiver.contiguous());
        }
        now = there.next().min(back.next());
        now = now.min(sender.next_wake()).min(receiver.next_timer());
        while let Some((segment, size)) = there.take(now) {
            if let Some(ack) = receiver.on_data(now, &segment, size, Ecn::NotEct) {
                back.put(now, ack);
            }
        }
        if receiver.next_timer() <= now
            && let Some(ack) = receiver.on_timer(now)
        {
            back.put(now, ack);
        }
        while let Some(ack) = back.take(now) {
            sender.on_ack(now, &ack, &[]);
        }
        if sender.next_wake() <= now {
            sender.on_wake(now);
        }
    }
    (None, receiver.contiguous())
}

/// A finite flow ends with everything delivered, and the sender knows it: with either profile, with
/// a window or a rate, with many windows of packets and with a single packet.
#[test]
fn finite_flows_end_despite_losses() {
    for profile in [Profile::Simple, Profile::Linux] {
        for scheme in ["newreno", "cubic", "bbr", "fixed-window", "fixed-rate"] {
            for packets in [1, 2, 17, 2000] {
                for seed in 0..4 {
                    let (done, arrived) = transfer(scheme, profile, packets, seed);
                    let what = format!("{profile:?} {scheme} {packets} packets, seed {seed}");
                    assert!(
                        done.is_some(),
                        "{what}: unfinished after 600 s, {arrived} arrived"
                    );
                    assert_eq!(arrived, packets, "{what}");
                }
            }
        }
    }
}
