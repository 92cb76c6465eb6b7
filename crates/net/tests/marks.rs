//! The sender's count of marked bytes is right, whichever packets the receiver acknowledges
//! together.

use headway_cc::testing::select;
use headway_cc::{Bytes, Duration, Ecn, Setup, Stream, Time};
use headway_net::transport::{Profile, Receiver, ReceiverConfig, Sender, SenderConfig, Source};
use headway_net::{Ack, Body, Segment};
use proptest::prelude::*;

const MSS: Bytes = Bytes::new(1000);
const ONE_WAY: Duration = Duration::from_millis(20);

/// Sends 300 packets, a millisecond apart, of which some are lost and some are marked; no
/// acknowledgement is lost. Returns the marked bytes that arrived, and those that the sender
/// counted.
fn run(profile: Profile, seed: u64, loss: f64, marks: f64) -> (u64, u64) {
    let selection = select("newreno:ecn=on");
    let needs = selection.scheme.needs;
    let config = SenderConfig {
        flow: 0,
        mss: MSS,
        profile,
        needs,
    };
    let left = MSS * 300;
    let cc = selection.build(&Setup::new(MSS, 1));
    let mut sender = Sender::new(config, cc, Source::Finite { left });
    let mut receiver = Receiver::new(ReceiverConfig::new(profile).serving(needs), None);
    let mut stream = Stream::new(seed, "path");
    let mut there: Vec<(Time, Segment, Ecn)> = Vec::new();
    let mut back: Vec<(Time, Ack)> = Vec::new();
    let (mut now, mut free, mut arrived) = (Time::ZERO, Time::ZERO, 0);
    while !(sender.is_done() && there.is_empty() && back.is_empty()) {
        while let Some(packet) = sender.poll(now) {
            let Body::Data(segment) = packet.body else {
                panic!("a sender sends data")
            };
            free = free.max(now) + Duration::from_millis(1);
            let ecn = if stream.chance(marks) {
                Ecn::Ce
            } else {
                packet.ecn
            };
            if !stream.chance(loss) {
                there.push((free + ONE_WAY, segment, ecn));
            }
        }
        let first = |at: Option<&Time>| at.copied().unwrap_or(Time::NEVER);
        now = first(there.first().map(|d| &d.0))
            .min(first(back.first().map(|a| &a.0)))
            .min(sender.next_wake())
            .min(receiver.next_timer())
            .max(now);
        while there.first().is_some_and(|d| d.0 <= now) {
            let (_, segment, ecn) = there.remove(0);
            arrived += if ecn == Ecn::Ce { MSS.get() } else { 0 };
            let ack = receiver.on_data(now, &segment, MSS, ecn);
            back.extend(ack.map(|a| (now + ONE_WAY, a)));
        }
        if receiver.next_timer() <= now {
            let ack = receiver.on_timer(now);
            back.extend(ack.map(|a| (now + ONE_WAY, a)));
        }
        while back.first().is_some_and(|a| a.0 <= now) {
            sender.on_ack(now, &back.remove(0).1, &[]);
        }
        if sender.next_wake() <= now {
            sender.on_wake(now);
        }
    }
    (arrived, sender.counters().ce.get())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// RFC 8257 §3.2 guarantees this: with delayed acknowledgements, too, the fraction of marked
    /// bytes is exact.
    #[test]
    fn marked_bytes_are_counted_exactly(
        seed in any::<u64>(),
        loss in prop::sample::select(vec![0.0, 0.05]),
        marks in prop::sample::select(vec![0.05, 0.5, 0.95, 1.0]),
    ) {
        for profile in [Profile::Simple, Profile::Linux] {
            let (arrived, counted) = run(profile, seed, loss, marks);
            prop_assert!(arrived > 0);
            prop_assert_eq!(counted, arrived);
        }
    }
}
