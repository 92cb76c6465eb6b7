//! Compares the monitor's intervals with numbers worked by hand and by numpy.

use headway_cc::{Bytes, Control, Duration, NetworkView, Rate, RateSample, Recovery, Time};
use headway_cc::{Counters, Feedback, Sent, testing};
use headway_policy::{Feature, Interval, Monitor, NeededStats, Record, RecordBuilder};

const ALL: NeededStats = NeededStats { averages: true };

fn at(ms: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(ms * 1e-3)
}

/// An acknowledgement at this many milliseconds in a flow with 1500-byte packets.
fn ack(ms: f64) -> Record {
    Record {
        now_ns: at(ms).as_nanos(),
        mss: 1500,
        acks: 1,
        ..Record::default()
    }
}

fn value(name: &str, interval: &Interval) -> f64 {
    (Feature::find(name).expect(name).value)(interval)
}

#[track_caller]
fn is(name: &str, interval: &Interval, right: f64) {
    let value = value(name, interval);
    assert!(
        (value - right).abs() <= 1e-9 * right.abs().max(1.0),
        "{name} is {value}, should be {right}"
    );
}

/// There are two intervals of 100 ms. 8 and 4 packets arrive, and 2 are lost in the second.
#[test]
fn two_intervals_match_hand_computed_values() {
    let mut monitor = Monitor::new(Time::ZERO, ALL);
    monitor.on_record(&Record {
        sent: 10,
        delivered: 4,
        in_flight: 6,
        cwnd: 10,
        rtt_us: 40_000,
        srtt_us: 40_000,
        rttvar_us: 20_000,
        min_rtt_us: 40_000,
        rate_delivered: 4,
        rate_interval_us: 40_000,
        pacing_rate: 250_000,
        ..ack(50.0)
    });
    monitor.on_record(&Record {
        sent: 16,
        delivered: 8,
        delivered_ce: 2,
        in_flight: 8,
        cwnd: 12,
        rtt_us: 60_000,
        srtt_us: 42_500,
        rttvar_us: 20_000,
        min_rtt_us: 40_000,
        rate_delivered: 8,
        rate_interval_us: 64_000,
        pacing_rate: 250_000,
        flags: Record::CWND_LIMITED,
        ..ack(90.0)
    });
    let first = monitor.close(at(100.0));
    for (name, right) in [
        ("interval_ms", 100.0),
        ("time_ms", 100.0),
        ("acks", 2.0),
        ("cwnd_packets", 12.0),
        ("in_flight_packets", 8.0),
        ("writable_packets", 4.0),
        ("mss_bytes", 1500.0),
        ("pacing_rate_mbps", 2.0),
        ("rtt_ms", 50.0),
        ("rtt_latest_ms", 60.0),
        ("rtt_change_ms", 20.0),
        ("rtt_growth", 1.0),
        ("rtt_slope", 0.5), // 20 ms in 40 ms
        ("rtt_ratio", 1.25),
        ("srtt_ms", 42.5),
        ("rttvar_ms", 20.0),
        ("min_rtt_ms", 40.0),
        ("min_rtt_10s_ms", 40.0),
        ("rtt_ratio_10s", 1.25),
        ("min_rtt_share", 40.0 / 42.5),
        ("queue_delay_ms", 10.0),
        ("sent_packets", 16.0),
        ("delivered_packets", 8.0),
        ("send_ratio", 2.0),
        ("delivered_share", 8.0 / 12.0),
        ("loss", 0.0),
        ("ce_share", 0.25),
        ("throughput_mbps", 0.96), // 8 * 12 kbit in 0.1 s
        ("send_rate_mbps", 1.92),
        ("delivery_rate_mbps", 1.5), // 8 * 12 kbit in 64 ms
        ("max_delivery_rate_mbps", 1.5),
        ("throughput_share", 1.0),
        ("pacing_share", 2.0 / 0.96),
        ("cwnd_limited", 1.0),
        ("app_limited", 0.0),
        ("rtt_min_ms", 40.0),
        ("rtt_max_ms", 60.0),
        ("ack_gap_ewma8_ms", 40.0),
        ("rtt_ewma8_ms", 42.5), // 40 + 20 / 8
        ("rtt_ewma256_ms", 40.078125),
        ("cwnd_ewma8_packets", 10.25),
        ("loss_ewma8", 0.0),
    ] {
        is(name, &first, right);
    }

    monitor.on_record(&Record {
        sent: 21,
        retransmitted: 1,
        delivered: 12,
        lost: 2,
        in_flight: 7,
        cwnd: 6,
        rtt_us: 50_000,
        min_rtt_us: 40_000,
        flags: Record::RECOVERING,
        ..ack(150.0)
    });
    let second = monitor.close(at(200.0));
    for (name, right) in [
        ("time_ms", 200.0),
        ("rtt_ms", 50.0),
        ("rtt_change_ms", -10.0),
        ("rtt_slope", 0.0), // one sample has none
        ("sent_packets", 5.0),
        ("sent_total_packets", 21.0),
        ("delivered_packets", 4.0),
        ("delivered_total_packets", 12.0),
        ("lost_packets", 2.0),
        ("lost_total_packets", 2.0),
        ("retransmitted_packets", 1.0),
        ("loss", 2.0 / 6.0),
        ("throughput_share", 0.5),
        ("loss_rate_share", 0.25), // 20 a second over 80 a second
        ("recovering", 1.0),
        // Two losses give 1 - (7/8)^2; then four arrivals multiply by (7/8)^4.
        ("loss_ewma8", 15.0 / 64.0 * 2401.0 / 4096.0),
        ("ack_gap_ewma8_ms", 42.5),
    ] {
        is(name, &second, right);
    }
}

/// The clock decides at every acknowledgement: one packet comes each millisecond, and ten at once
/// after 30 ms.
#[test]
fn a_burst_does_not_set_the_largest_throughput() {
    let mut monitor = Monitor::new(Time::ZERO, NeededStats::default());
    let mut delivered = 0;
    let mut decide = |ms: f64| {
        delivered += 1;
        monitor.on_record(&Record {
            delivered,
            lost: delivered,
            pacing_rate: 1_500_000,
            ..ack(ms)
        });
        monitor.close(at(ms))
    };
    let steady: Vec<Interval> = (1..=30).map(|ms| decide(f64::from(ms))).collect();
    is("max_throughput_mbps", &steady[18], 0.0); // 19 ms
    is("max_throughput_mbps", &steady[19], 12.0); // 20 packets of 12 kbit in 20 ms
    is("throughput_share", &steady[29], 1.0);
    is("pacing_share", &steady[29], 1.0);
    let burst: Vec<Interval> = (1..=10)
        .map(|i| decide(30.0 + 0.001 * f64::from(i)))
        .collect();
    is("throughput_mbps", &burst[9], 12_000.0);
    is("throughput_share", &burst[9], 1000.0);
    is("max_throughput_mbps", &burst[9], 12.0);
    let after: Vec<Interval> = (31..=41).map(|ms| decide(f64::from(ms))).collect();
    // 10 + 10 + 10 packets came in the 20 ms that contain the burst.
    is("max_throughput_mbps", &after[9], 18.0);
    is("throughput_share", &after[10], 2.0 / 3.0);
    is("loss_rate_share", &after[10], 2.0 / 3.0);
}

/// The numbers are those of `np.polyfit(t, rtt, 1)[0]` and `np.mean` (numpy 2).
#[test]
fn the_rtt_slope_matches_numpy() {
    let times = [3.1, 7.4, 8.0, 12.9, 17.35, 21.0, 29.6];
    let rtts = [40_123, 40_871, 40_755, 41_990, 42_666, 43_217, 45_001];
    let mut monitor = Monitor::new(Time::ZERO, ALL);
    for (ms, rtt_us) in times.into_iter().zip(rtts) {
        monitor.on_record(&Record { rtt_us, ..ack(ms) });
    }
    let interval = monitor.close(at(30.0));
    let close = |name: &str, right: f64| {
        let value = value(name, &interval);
        assert!(
            (value / right - 1.0).abs() < 1e-9,
            "{name}: {value}, numpy {right}"
        );
    };
    close("rtt_slope", SLOPE);
    close("rtt_ms", MEAN_US * 1e-3);
}
const SLOPE: f64 = 0.18460301137824417;
const MEAN_US: f64 = 42089.0;

#[test]
fn an_interval_without_records_keeps_the_last_values() {
    let mut monitor = Monitor::new(Time::ZERO, ALL);
    assert!(!monitor.has_news());
    monitor.on_record(&Record {
        delivered: 5,
        rtt_us: 70_000,
        min_rtt_us: 70_000,
        cwnd: 9,
        ..ack(10.0)
    });
    monitor.close(at(10.0));
    assert!(!monitor.has_news());
    let silent = monitor.close(at(20.0));
    for (name, right) in [
        ("acks", 0.0),
        ("rtt_ms", 70.0),
        ("rtt_change_ms", 0.0),
        ("rtt_growth", 1.0),
        ("delivered_packets", 0.0),
        ("send_ratio", 1.0),
        ("loss", 0.0),
        ("cwnd_packets", 9.0),
        ("rtt_min_ms", 0.0), // without samples
        ("rtt_max_ms", 0.0),
    ] {
        is(name, &silent, right);
    }
    // An interval of no length has rates of zero, not infinite ones.
    is("throughput_mbps", &monitor.close(at(20.0)), 0.0);
}

/// Owl §IV-A: RTTmin is the minimum of the last 10 s, and the flow's minimum RTT that of its whole
/// life.
#[test]
fn the_ten_second_minimum_rtt_expires() {
    let mut monitor = Monitor::new(Time::ZERO, NeededStats::default());
    let mut seconds = |s: f64, rtt_ms: u32| {
        monitor.on_record(&Record {
            rtt_us: rtt_ms * 1000,
            min_rtt_us: 20_000,
            ..ack(s * 1e3)
        });
        monitor.close(at(s * 1e3))
    };
    for (s, rtt_ms, least, ratio, age_s) in [
        (1.0, 20, 20.0, 1.0, 0.0),
        (5.0, 50, 20.0, 2.5, 4.0),
        (10.9, 80, 20.0, 4.0, 9.9),
        (11.1, 80, 50.0, 1.6, 6.1), // the one of 1 s has expired
        (14.0, 60, 50.0, 1.2, 9.0),
        (30.0, 90, 90.0, 1.0, 0.0), // the only sample
    ] {
        let interval = seconds(s, rtt_ms);
        is("min_rtt_10s_ms", &interval, least);
        is("rtt_ratio_10s", &interval, ratio);
        is("min_rtt_10s_age_s", &interval, age_s);
    }
    is("min_rtt_ms", &seconds(31.0, 90), 20.0);
    // Without records the last value stays.
    is("min_rtt_10s_ms", &monitor.close(at(60e3)), 90.0);
}

/// The text of the interval study defines latency inflation as an interval's mean RTT over that of
/// the interval before (section 3.1).
#[test]
fn rtt_inflation_is_a_ratio_of_means() {
    let mut monitor = Monitor::new(Time::ZERO, ALL);
    for (ms, rtts, growth) in [
        (100.0, [40, 60], 1.0),  // the first grows from nothing
        (200.0, [90, 60], 1.5),  // 75 over 50 ms
        (300.0, [30, 30], 0.4),  // 30 over 75
        (400.0, [0, 0], 1.0),    // no samples: as before
        (500.0, [60, 120], 3.0), // 90 over 30
    ] {
        for (sample, rtt_ms) in rtts
            .into_iter()
            .enumerate()
            .filter(|(_, rtt_ms)| *rtt_ms > 0)
        {
            monitor.on_record(&Record {
                rtt_us: rtt_ms * 1000,
                min_rtt_us: 30_000,
                ..ack(ms - 20.0 + 10.0 * sample as f64)
            });
        }
        is("rtt_growth", &monitor.close(at(ms)), growth);
    }
}

/// The mean moves by 1 - exp(-dt / (0.7 RTTmin)) towards an interval's throughput. The peak is the
/// maximum of ten intervals.
#[test]
fn the_recent_rate_adapts_within_a_round_trip_and_its_peak_stays() {
    let mut monitor = Monitor::new(Time::ZERO, NeededStats::default());
    let mut delivered = 0;
    let mut step = |ms: f64, packets: u32| {
        delivered += packets;
        monitor.on_record(&Record {
            rtt_us: 20_000,
            min_rtt_us: 20_000,
            mss: 1500,
            delivered,
            ..ack(ms)
        });
        monitor.close(at(ms))
    };
    // 1000 packets a second of 1500 bytes are 12 Mbit/s; 10 ms of 14 ms leave exp(-5/7) of the old
    // mean.
    let kept = libm::exp(-5.0 / 7.0);
    let first = 12.0 * (1.0 - kept);
    let second = 12.0 + kept * (first - 12.0);
    let interval = step(10.0, 10);
    is("recent_throughput_mbps", &interval, first);
    is("peak_throughput_mbps", &interval, first);
    let within_rtt = first / 12.0 * 1000.0 * 0.02;
    is(
        "excess_packets",
        &interval,
        f64::from(interval.latest.cwnd) - within_rtt,
    );
    let interval = step(20.0, 10);
    is("recent_throughput_mbps", &interval, second);
    // Nothing arrives any more: nine intervals of 10 ms keep the maximum, and a long one counts as
    // another.
    for tenth in 3..=10 {
        is(
            "peak_throughput_mbps",
            &step(f64::from(tenth) * 10.0, 0),
            second,
        );
    }
    is("peak_throughput_mbps", &step(1000.0, 0), second);
    is("peak_throughput_mbps", &step(1010.0, 0), second * kept);
}

#[test]
fn wrapping_counters_are_handled() {
    let mut monitor = Monitor::new(Time::ZERO, ALL);
    let near = u32::MAX - 2;
    monitor.on_record(&Record {
        sent: near,
        delivered: near,
        lost: near,
        ..ack(1.0)
    });
    monitor.close(at(1.0));
    monitor.on_record(&Record {
        sent: 7,
        delivered: 4,
        lost: 0,
        ..ack(2.0)
    });
    let interval = monitor.close(at(2.0));
    is("sent_packets", &interval, 10.0);
    is("delivered_packets", &interval, 7.0);
    is("lost_packets", &interval, 3.0);
    is("loss", &interval, 0.3);
}

#[test]
fn network_reports_age() {
    let mut monitor = Monitor::new(Time::ZERO, NeededStats::default());
    is("network_age_ms", &monitor.close(at(500.0)), 0.0);
    let view = NetworkView {
        pnc: 12.0,
        pna: 0.4,
        known: 0.5,
        age: Duration::from_millis(30),
    };
    monitor.on_network(at(600.0), &view);
    let interval = monitor.close(at(700.0));
    is("network_age_ms", &interval, 130.0);
    is("pnc_packets", &interval, 12.0);
    is("pna", &interval, 0.4);
    is("network_known", &interval, 0.5);
    // A controller that has failed counts as none.
    is("network_known", &monitor.close(at(10570.0)), 0.5);
    let interval = monitor.close(at(10571.0));
    is("network_known", &interval, 0.0);
    is("pnc_packets", &interval, 0.0);
    is("network_age_ms", &interval, 0.0);
}

const MSS: Bytes = testing::MSS;

fn sent(now: Time, retransmission: bool) -> Sent {
    Sent {
        now,
        number: 0,
        size: MSS,
        in_flight: MSS,
        retransmission,
        app_limited: false,
    }
}

/// Nothing of the flow ever arrives. At each timeout what was in flight is lost.
#[test]
fn an_interval_of_losses_only() {
    let mut reporter = RecordBuilder::new(MSS);
    let mut monitor = Monitor::new(Time::ZERO, ALL);
    let control = Control::paced(MSS * 10, Rate::from_mbps(12.0));
    (0..10).for_each(|_| reporter.on_sent(&sent(Time::ZERO, false)));
    monitor.on_record(&reporter.on_rto(&testing::rto(at(1000.0), 10, 1), &control));
    assert!(monitor.has_news());
    let interval = monitor.close(at(1000.0));
    for (name, right) in [
        ("acks", 0.0),
        ("sent_packets", 10.0),
        ("lost_packets", 10.0),
        ("loss", 1.0),
        ("in_flight_packets", 0.0),
        ("rtt_ms", 0.0),
        ("rtt_ratio", 1.0),
        ("rtt_ratio_10s", 1.0),
        ("min_rtt_10s_ms", 0.0),
        ("recovering", 1.0),
        ("mss_bytes", 1500.0),
        ("cwnd_packets", 10.0),
        ("pacing_rate_mbps", 12.0),
        ("throughput_mbps", 0.0),
        ("loss_rate_share", 0.0),
        ("rtt_ewma8_ms", 0.0),
    ] {
        is(name, &interval, right);
    }
    reporter.on_sent(&sent(at(1000.0), true));
    monitor.on_record(&reporter.on_rto(&testing::rto(at(3000.0), 1, 2), &control));
    let interval = monitor.close(at(3000.0));
    is("lost_packets", &interval, 1.0);
    is("retransmitted_packets", &interval, 1.0);
}

/// In the kernel `tp->lost` never falls. It does not here either, though the transport takes late
/// arrivals back.
#[test]
fn a_loss_stays_counted_if_the_packet_arrives_late() {
    let mut reporter = RecordBuilder::new(MSS);
    let control = Control::window(MSS * 10);
    let lost = |lost: u64, in_all: u64| Feedback {
        lost_bytes: MSS * lost,
        counters: Counters {
            lost: MSS * in_all,
            ..Counters::default()
        },
        ..testing::feedback(at(1.0))
    };
    assert_eq!(reporter.on_feedback(&lost(3, 3), &control).lost, 3);
    assert_eq!(reporter.on_feedback(&lost(0, 0), &control).lost, 3);
    assert_eq!(reporter.on_feedback(&lost(1, 1), &control).lost, 4);
}

/// `tcp_rate_gen()`: a sample that the application limited replaces another only if it is larger.
#[test]
fn a_rate_that_the_application_limited_counts_if_it_is_larger() {
    let mut reporter = RecordBuilder::new(MSS);
    let control = Control::window(MSS * 10);
    let mut newest = |packets: u64, app_limited: bool| {
        let rate = RateSample {
            delivered: MSS * packets,
            interval: Duration::from_millis(10),
            prior_delivered: Bytes::ZERO,
            app_limited,
            tx_in_flight: Bytes::ZERO,
            lost: Bytes::ZERO,
        };
        let feedback = Feedback {
            rate: Some(rate),
            ..testing::feedback(at(1.0))
        };
        let record = reporter.on_feedback(&feedback, &control);
        assert_eq!(record.rate_interval_us, 10_000);
        record.rate_delivered
    };
    assert_eq!(newest(10, false), 10);
    assert_eq!(newest(5, true), 10, "the application's doing");
    assert_eq!(newest(12, true), 12, "more than was known");
    assert_eq!(newest(4, false), 4, "the network's doing");
}

#[test]
fn flags_and_states_come_from_the_host() {
    let mut reporter = RecordBuilder::new(MSS);
    let control = Control::window(Bytes::MAX);
    let mut flags = |recovery, app_limited| {
        let feedback = Feedback {
            recovery,
            app_limited,
            ..testing::feedback(at(1.0))
        };
        let record = reporter.on_feedback(&feedback, &control);
        assert!(record.has(Record::CWND_LIMITED));
        assert_eq!(record.cwnd, u32::MAX, "no window, rather than some of it");
        (
            record.has(Record::RECOVERING),
            record.has(Record::APP_LIMITED),
        )
    };
    assert_eq!(flags(Recovery::Open, true), (false, true));
    assert_eq!(flags(Recovery::Disorder, false), (false, false));
    assert_eq!(flags(Recovery::Cwr, false), (false, false));
    assert_eq!(flags(Recovery::Recovery, false), (true, false));
    assert_eq!(flags(Recovery::Loss, false), (true, false));
}
