//! Most numbers are those of WebRTC's own unit tests, which comments name.

use super::arrival::Deltas;
use super::feedback::Reported;
use super::probe::Train;
use super::trendline::Threshold;
use super::*;
use crate::testing::{MSS, feedback, select, setup};
use crate::{Arrival, Ecn, Header, Receiver};

const fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn near(ours: f64, theirs: f64, within: f64) {
    assert!((ours - theirs).abs() <= within, "{ours}, {theirs}");
}

/// algorithms.md §14.5: from 12.5 in 50 ms, 20 makes 15.7625, 5 makes 6. Trends more than 15 ms
/// beyond the threshold are ignored, and no step is longer than 100 ms.
#[test]
fn the_threshold_follows_the_trend() {
    let moved = |trend: f64, ms: f64| {
        let mut threshold = Threshold::new();
        threshold.update(12.5, 1000.0);
        threshold.update(trend, 1000.0 + ms);
        threshold.value
    };
    near(moved(20.0, 50.0), 15.7625, 1e-9);
    near(moved(-20.0, 50.0), 15.7625, 1e-9);
    near(moved(5.0, 50.0), 6.0, 1e-9);
    near(moved(27.5, 100.0), 12.5 + 0.0087 * 15.0 * 100.0, 1e-9);
    near(moved(27.6, 100.0), 12.5, 1e-9);
    near(moved(27.5, 5000.0), moved(27.5, 100.0), 1e-9);
}

/// `trendline_estimator_unittest.cc`: 25 packets 20 ms apart that arrive 20, 22 or 17 ms apart.
#[test]
fn a_trend_is_found_in_25_packets() {
    for (arrival, usage) in [
        (20.0, Usage::Normal),
        (22.0, Usage::Over),
        (17.0, Usage::Under),
    ] {
        let mut line = Trendline::new();
        let mut seen = Usage::Normal;
        for i in 1..25 {
            line.update(
                Deltas {
                    send: 20.0,
                    arrival,
                },
                arrival * f64::from(i),
            );
            if line.usage != Usage::Normal {
                seen = line.usage;
            }
        }
        assert_eq!(seen, usage);
    }
}

/// The slope is (send rate - capacity) / capacity: groups of 5 ms that take 5.25 ms give 0.25 /
/// 5.25 of the time that passes.
#[test]
fn the_slope_equals_the_excess_over_capacity() {
    let mut line = Trendline::new();
    for i in 1..200 {
        let deltas = Deltas {
            send: 5.0,
            arrival: 5.25,
        };
        line.update(deltas, 5.25 * f64::from(i));
    }
    near(line.trend, 60.0 * 4.0 * 0.25 / 5.25, 1e-6);
}

/// Draft §5.2: packets sent within 5 ms are a group, and packets that arrive in a burst join it.
#[test]
fn packets_are_grouped() {
    let mut groups = InterArrival::default();
    let mut seen = Vec::new();
    // A group has two packets, 10 ms apart. The third group arrives 4 ms late.
    for (sent, arrival) in [
        (0, 50),
        (5, 55),
        (10, 60),
        (15, 65),
        (20, 74),
        (25, 79),
        (30, 84),
    ] {
        seen.extend(groups.on_packet(f64::from(sent), f64::from(arrival), 100.0));
    }
    let (ten, late) = (
        Deltas {
            send: 10.0,
            arrival: 10.0,
        },
        Deltas {
            send: 10.0,
            arrival: 14.0,
        },
    );
    assert_eq!(seen, [ten, late]);
    // The first packet is sent 7 ms later but arrives at once, in a burst. The second was sent
    // before the group and is ignored.
    assert_eq!(groups.on_packet(37.0, 84.5, 100.0), None);
    assert_eq!(groups.on_packet(20.0, 85.0, 100.0), None);
    let deltas = groups.on_packet(50.0, 100.0, 100.0);
    assert_eq!(
        deltas,
        Some(Deltas {
            send: 12.0,
            arrival: 5.5
        })
    );
}

/// `aimd_rate_control_unittest.cc`: near capacity the rate grows by 4 kbit/s a second at 30 kbit/s,
/// by 5 at 90, and at 60 with 100 ms, and by 14 after an overuse at 300.
#[test]
fn the_rate_grows_by_a_packet_near_capacity() {
    let slope = |bps: f64, rtt_ms| {
        let mut aimd = Aimd::new(bps, 5000.0);
        aimd.set_rtt(Duration::from_millis(rtt_ms));
        aimd.near_capacity_slope()
    };
    near(slope(30_000.0, 200), 4000.0, 1e-6);
    near(slope(90_000.0, 200), 5000.0, 1e-6);
    near(slope(60_000.0, 100), 5000.0, 1e-6);
    let mut aimd = Aimd::new(300_000.0, 5000.0);
    aimd.update(at(0), Usage::Over, Some(300_000.0));
    near(aimd.rate, 255_000.0, 1e-6);
    near(aimd.near_capacity_slope(), 14_000.0, 1000.0);
    // From then on growth is additive, after the first normal report.
    aimd.update(at(100), Usage::Normal, Some(300_000.0));
    aimd.update(at(1100), Usage::Normal, Some(300_000.0));
    near(aimd.rate, 255_000.0 + 14_167.0, 20.0);
}

/// `BweLimitedByAckedBitrate`, `BweNotLimitedByDecreasingAckedBitrate`: the rate grows up to 1.5
/// times what arrives plus 10 kbit/s, but does not fall back to it. Draft §5.5: it grows by 8% a
/// second before the capacity is known.
#[test]
fn growth_stops_near_the_acknowledged_rate() {
    for acked in [10_000.0, 100_000.0] {
        let mut aimd = Aimd::new(acked, 5000.0);
        for i in 0..200 {
            aimd.update(at(100 * i), Usage::Normal, Some(acked));
        }
        near(aimd.rate, 1.5 * acked + 10_000.0, 1e-6);
        aimd.update(at(20_000), Usage::Normal, Some(acked / 2.0));
        near(aimd.rate, 1.5 * acked + 10_000.0, 1e-6);
    }
    let mut aimd = Aimd::new(1e6, 5000.0);
    for i in 0..=20 {
        aimd.update(at(50 * i), Usage::Normal, Some(1e6));
    }
    near(aimd.rate, 1.08e6, 1500.0);
}

/// Draft §6 with the code's 8%: with less than 2% loss the rate grows, and with more than a tenth
/// half of the loss is subtracted.
#[test]
fn losses_limit_the_rate() {
    let after = |lost| {
        let mut loss = LossBased::new(1e6, 5000.0, 1e9);
        loss.on_report(at(10_000), 0, 0);
        loss.on_report(at(20_000), lost, 100);
        loss.target
    };
    near(after(2), 1.081e6, 1.0);
    near(after(3), 1e6, 1.0);
    near(after(10), 1e6, 1.0);
    near(after(50), 0.75e6, 1.0);
    // `DoesntReapplyBitrateDecreaseWithoutFollowingRemb`.
    let mut loss = LossBased::new(1e6, 5000.0, 1e9);
    loss.on_report(at(10_000), 50, 100);
    for ms in [10_500, 11_000, 12_000] {
        loss.update(at(ms));
        near(loss.target, 0.75e6, 1.0);
    }
    // The rate grows by 8% a second however often it is updated, and never beyond the delay-based
    // limit.
    let mut loss = LossBased::new(1e6, 5000.0, 1e9);
    loss.on_report(at(10_000), 0, 100);
    for i in 1..=40 {
        loss.update(at(10_000 + 25 * i));
    }
    assert!((1.08e6..1.18e6).contains(&loss.target), "{}", loss.target);
    loss.set_delay_limit(9e5);
    near(loss.target, 9e5, 1e-6);
}

/// `RttBasedBackoff`: after more than 3 s without a report the rate falls by a fifth each second,
/// to 5 kbit/s.
#[test]
fn silence_lowers_the_rate() {
    let mut loss = LossBased::new(1e6, 1000.0, 1e9);
    for i in 0..=240 {
        loss.on_sent(at(25 * i));
        loss.update(at(25 * i));
    }
    // Three of six seconds are beyond the limit: after 3.025, 4.025 and 5.025 s.
    near(loss.target, 1e6 * 0.8 * 0.8 * 0.8, 1.0);
    for i in 241..4000 {
        loss.on_sent(at(25 * i));
        loss.update(at(25 * i));
    }
    near(loss.target, 5000.0, 1.0);
}

/// The window is 500 ms at first, then 150 ms. A sample of twice the estimate has a variance of
/// 100, against 55 of the estimate by then.
#[test]
fn the_acknowledged_rate_is_estimated() {
    let mut acked = AckedBitrate::new();
    for i in 0..=50 {
        acked.on_arrival(f64::from(10 * i), 1250.0);
    }
    // 50 packets of 10,000 bits in half a second.
    near(acked.bps().unwrap_or(0.0), 1e6, 1e-6);
    for i in 1..=15 {
        // The first packet belongs to the window, and so does the packet at 500 ms.
        acked.on_arrival(f64::from(500 + 10 * i), 2500.0);
    }
    let sample = (1250.0 + 14.0 * 2500.0) * 8.0 / 150.0;
    let deviation: f64 = 10.0 * (sample - 1000.0) / 1000.0;
    let weight = 55.0 / (55.0 + deviation * deviation);
    near(
        acked.bps().unwrap_or(0.0),
        1e3 * (1000.0 + weight * (sample - 1000.0)),
        1e-3,
    );
}

/// `probe_bitrate_estimator_unittest.cc` and `delay_based_bwe_unittest.cc`: the times of sending
/// and arrival, in milliseconds, of each packet of 1000 bytes, and the rate in kbit/s.
#[test]
fn probe_trains_measure_the_rate() {
    let measured = |times: &[(u64, u64)]| {
        let train = Train {
            id: 7,
            min_bytes: 3000.0,
        };
        let mut estimator = ProbeEstimator::default();
        let packets = times.iter().map(|&(sent, received)| Reported {
            sent: at(sent),
            received: at(received),
            size: Bytes::new(1000),
            probe: Some(train),
        });
        packets.fold(None, |last, p| estimator.on_packet(train, &p).or(last))
    };
    let paced = |n: u64, sent: u64, received: u64| -> Vec<(u64, u64)> {
        (1..=n).map(|i| (sent * i, received * i)).collect()
    };
    let kbps = |rate: Option<f64>| rate.map(|r| r / 1e3);
    let unsaturated = kbps(measured(&[(0, 10), (10, 20), (20, 30), (30, 40)]));
    near(unsaturated.expect("a rate"), 800.0, 0.01);
    let fast = kbps(measured(&[(0, 15), (10, 30), (20, 35), (30, 40)]));
    near(fast.expect("a rate"), 800.0, 0.01);
    let slow = kbps(measured(&[(0, 10), (10, 40), (20, 70), (30, 85)]));
    near(slow.expect("a rate"), 0.95 * 320.0, 0.01);
    let slower = kbps(measured(&paced(8, 5, 7)));
    near(slower.expect("a rate"), 0.95 * 1140.0, 10.0);
    let high = kbps(measured(&paced(8, 1, 2)));
    near(high.expect("a rate"), 0.95 * 4000.0, 10.0);
    for none in [
        &[(0, 10), (10, 20), (20, 30)][..],
        &[(0, 19), (10, 22), (20, 25), (40, 27)],
        &[(0, 50), (10, 50), (20, 50), (40, 50)],
    ] {
        assert_eq!(measured(none), None, "{none:?}");
    }
}

/// `probe_controller.cc`: probes at 3 and 6 times the start rate have at least five packets and 15
/// ms. They go on at twice the result while that exceeds 0.7 of the last, for a second, up to the
/// maximum.
#[test]
fn probes_go_on_while_they_succeed() {
    let send_train = |prober: &mut Prober| {
        let rate = prober.rate();
        let mut packets = 0;
        while prober.rate() == rate && packets < 1000 {
            prober.on_sent(MSS);
            packets += 1;
        }
        packets
    };
    let mut prober = Prober::new(at(0), 300_000.0, 5e6);
    assert_eq!(prober.rate(), Some(900_000.0));
    assert_eq!(send_train(&mut prober), 5);
    assert_eq!(prober.rate(), Some(1_800_000.0));
    assert_eq!(send_train(&mut prober), 5);
    assert_eq!(prober.rate(), None);
    prober.on_target(at(100), 1_260_000.0);
    assert_eq!(prober.rate(), None, "exactly 0.7");
    prober.on_target(at(100), 1_800_000.0);
    assert_eq!(prober.rate(), Some(3_600_000.0));
    // 15 ms of 3.6 Mbit/s are 6750 bytes, and five packets are more.
    assert_eq!(send_train(&mut prober), 5);
    prober.on_target(at(200), 3_600_000.0);
    assert_eq!(prober.rate(), Some(5e6), "the maximum");
    // 15 ms of this rate are 9375 bytes.
    assert_eq!(send_train(&mut prober), 7);
    prober.on_target(at(300), 5e6);
    assert_eq!(prober.rate(), None, "the last");

    let mut prober = Prober::new(at(0), 300_000.0, 5e6);
    send_train(&mut prober);
    send_train(&mut prober);
    prober.process(at(1001));
    prober.on_target(at(1002), 1_800_000.0);
    assert_eq!(prober.rate(), None, "too late");
}

fn arrival(number: u64, now: Time) -> Arrival {
    Arrival {
        now,
        number,
        size: MSS,
        sent: Time::ZERO,
        ecn: Ecn::NotEct,
        header: Header::default(),
    }
}

fn sent(number: u64, now: Time) -> Sent {
    Sent {
        now,
        number,
        size: MSS,
        in_flight: MSS,
        retransmission: false,
        app_limited: false,
    }
}

/// A report comes every 50 ms while packets arrive. What it skips is lost, unless it arrives later.
/// The content of a report that was not delivered is missing.
#[test]
fn feedback_reports_carry_arrivals_and_gaps() {
    let mut reporter = Reporter::new(Duration::from_millis(50), MSS);
    let mut history = History::default();
    (0..20).for_each(|i| history.on_sent(&sent(i, at(i)), None));
    let mut report = Report::default();
    let mut message = Vec::new();
    let next = |reporter: &mut Reporter, numbers: &[u64], ms: u64, out: &mut Vec<u8>| {
        numbers
            .iter()
            .for_each(|&n| reporter.on_data(&arrival(n, at(ms))));
        let due = reporter.next_timer();
        reporter.on_timer(due);
        out.clear();
        reporter.take_message(out);
        due
    };
    assert_eq!(next(&mut reporter, &[0, 1, 3], 100, &mut message), at(100));
    history.read(&message, &mut report);
    assert_eq!((report.received.len(), report.lost), (3, 1));
    assert_eq!(report.received[2].sent, at(3));
    assert_eq!(report.received[2].received, at(100));
    assert_eq!(next(&mut reporter, &[2, 4], 120, &mut message), at(150));
    history.read(&message, &mut report);
    assert_eq!((report.received.len(), report.lost), (2, 0));
    history.read(&message, &mut report);
    assert_eq!(
        (report.received.len(), report.lost),
        (0, 0),
        "twice the same"
    );
    next(&mut reporter, &[5, 6, 7], 300, &mut message); // never delivered
    next(&mut reporter, &[10], 400, &mut message);
    history.read(&message, &mut report);
    assert_eq!((report.received.len(), report.lost), (1, 2));
    // A report contains as many as fit.
    (0..5000).for_each(|n| {
        reporter.on_data(&arrival(n, at(500)));
        message.clear();
        reporter.take_message(&mut message);
        assert!(message.len() <= 1500);
    });
    history.read(&[1; 23], &mut report);
    assert_eq!((report.received.len(), report.lost), (0, 0));
}

/// 83,000 packets a second and an RTT of half a second are 1 Gbit/s, the encoder's default maximum.
/// All packets in flight are remembered, and packets that were reported long ago are not.
#[test]
fn sent_packets_are_remembered_until_reported() {
    let mut history = History::default();
    let mut reporter = Reporter::new(Duration::from_millis(50), MSS);
    let mut report = Report::default();
    let mut message = Vec::new();
    let mut known = 0;
    for i in 0..200_000 {
        history.on_sent(&sent(i, at(i / 83)), None);
        if let Some(number) = i.checked_sub(41_500) {
            reporter.on_data(&arrival(number, at(i / 83)));
            message.clear();
            reporter.take_message(&mut message);
            history.read(&message, &mut report);
            known += report.received.len();
            assert_eq!(report.lost, 0);
        }
    }
    assert!(known > 158_000, "{known}");
    assert!(
        history.len() <= 41_500 + (1 << 15) + 400,
        "{}",
        history.len()
    );
}

/// `TestInitialOveruse`: a link of 200 kbit/s below a start at 300 halves the rate before the
/// arrival rate can be measured.
#[test]
fn an_overuse_at_the_start_halves_the_rate() {
    let mut gcc = Gcc::new(&setup(), &select("gcc").values);
    while gcc.prober.rate().is_some() {
        gcc.prober.on_sent(MSS); // there are no probes in that test
    }
    let mut reporter = Reporter::new(Duration::from_millis(5), MSS);
    let mut message = Vec::new();
    for i in 0..30 {
        // A packet is sent every 11 ms and takes 16.5 ms to arrive.
        gcc.on_sent(&sent(i, Time::from_nanos(11_000_000 * i)));
        let now = Time::from_nanos(16_500_000 * i + 50_000_000);
        reporter.on_data(&arrival(i, now));
        reporter.on_timer(now);
        message.clear();
        reporter.take_message(&mut message);
        gcc.on_feedback(&Feedback {
            message: &message,
            ..feedback(now)
        });
        assert_eq!(gcc.acked.bps(), None);
        if gcc.loss.target < 200_000.0 {
            break;
        }
    }
    near(gcc.loss.target, 150_000.0, 15_000.0);
}

/// A late timer does not delay the later ones.
#[test]
fn processing_times_do_not_drift() {
    let mut gcc = select("gcc").build(&setup());
    for (late, next) in [(25, 50), (60, 75), (140, 150)] {
        gcc.on_timer(at(late));
        assert_eq!(gcc.next_timer(), at(next));
    }
}
