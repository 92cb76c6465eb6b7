//! Checks when a policy decides, against the interval study's equations and Linux's jiffies.

use headway_cc::{Duration, Time};
use headway_policy::{Clock, ClockSpec, Record, RttEstimator};

fn at(ms: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(ms * 1e-3)
}

fn period(ms: f64, shared: bool) -> ClockSpec {
    ClockSpec::Period { ms, shared }
}

fn ack(ms: f64, rtt_us: u32) -> Record {
    Record {
        now_ns: at(ms).as_nanos(),
        rtt_us,
        acks: 1,
        ..Record::default()
    }
}

/// The lengths of intervals, in milliseconds, after RTTs of 100, 200 and 150 ms, one RTT for each.
fn lengths(n: f64, estimator: RttEstimator) -> Vec<f64> {
    let mut clock = Clock::new(&ClockSpec::Rtt { n, estimator }, Time::ZERO);
    let mut now = 1000.0;
    let mut lengths = Vec::new();
    for rtt_us in [100_000, 200_000, 150_000] {
        clock.on_record(&ack(now, rtt_us));
        now += 1000.0;
        assert!(clock.is_due(at(now), true));
        clock.restart(at(now));
        lengths.push(clock.next_timer(true).since(at(now)).as_millis_f64());
    }
    lengths
}

#[track_caller]
fn are(lengths: &[f64], right: &[f64]) {
    for (length, right) in lengths.iter().zip(right) {
        assert!((length - right).abs() < 1e-5, "{lengths:?}");
    }
}

/// interval.txt, Eq. 2 to 4, with alpha 1/8 and beta 3/4, from RFC 6298's first values.
#[test]
fn rtt_clocks_use_the_interval_studys_estimators() {
    are(&lengths(1.0, RttEstimator::Latest), &[100.0, 200.0, 150.0]);
    are(&lengths(0.5, RttEstimator::Mean), &[50.0, 100.0, 75.0]);
    // The values are 7/8 * 100 + 200/8, then 7/8 of that + 150/8.
    let ewma = [100.0, 112.5, 117.1875];
    are(&lengths(1.0, RttEstimator::Ewma), &ewma);
    are(&lengths(3.0, RttEstimator::Ewma), &ewma.map(|ms| 3.0 * ms));
    // The variation is 50, 3/4 * 50 + |100 - 200|/4 = 62.5, 3/4 * 62.5 + |112.5 - 150|/4 = 56.25.
    let jk = [300.0, 112.5 + 250.0, 117.1875 + 225.0];
    are(&lengths(1.0, RttEstimator::JacobsonKarels), &jk);
    are(
        &lengths(0.75, RttEstimator::JacobsonKarels),
        &jk.map(|ms| 0.75 * ms),
    );
    // Eq. 3 as printed: 4 x 112.5 + |112.5 - 200|, 4 x 117.1875 + |117.1875 - 150|.
    let printed = [400.0, 450.0 + 87.5, 468.75 + 32.8125];
    are(
        &lengths(0.5, RttEstimator::JacobsonKarelsPrinted),
        &printed.map(|ms| 0.5 * ms),
    );
    are(
        &lengths(2.0, RttEstimator::MinFiltered),
        &[200.0, 200.0, 200.0],
    );
}

/// The scale from a quarter to four times is logarithmic: -1 is 1/4, 0 is 1, 1 is 4.
#[test]
fn a_policy_chooses_its_interval() {
    let spec = ClockSpec::Chosen {
        estimator: RttEstimator::Ewma,
        least: 0.25,
        most: 4.0,
    };
    let mut clock = Clock::new(&spec, Time::ZERO);
    clock.on_record(&ack(1000.0, 80_000));
    assert_eq!(clock.due(), at(1080.0), "no interval has been chosen yet");
    let mut now = 2000.0;
    for (answer, ms) in [
        (-1.0, 20.0),
        (-0.5, 40.0),
        (0.0, 80.0),
        (0.5, 160.0),
        (1.0, 320.0),
        (7.0, 320.0),
        (-7.0, 20.0),
        (f32::NAN, 20.0),
        (f32::NEG_INFINITY, 20.0),
        (0.0, 80.0),
    ] {
        assert!(clock.is_due(at(now), true));
        clock.restart(at(now));
        clock.choose(Some(answer));
        let length = clock.next_timer(true).since(at(now)).as_millis_f64();
        assert!((length - ms).abs() < 1e-5, "{answer}: {length}");
        now += 1000.0;
    }
    // Other clocks have intervals that no policy chooses.
    let mut clock = Clock::new(&period(20.0, false), Time::ZERO);
    clock.choose(Some(1.0));
    assert_eq!(clock.due(), at(20.0));
}

#[test]
fn the_minimum_rtt_is_forgotten_after_ten_seconds() {
    let spec = ClockSpec::Rtt {
        n: 1.0,
        estimator: RttEstimator::MinFiltered,
    };
    let mut clock = Clock::new(&spec, Time::ZERO);
    let mut length = |ms: f64, rtt_us| {
        clock.on_record(&ack(ms, rtt_us));
        clock.restart(at(ms));
        clock.next_timer(true).since(at(ms)).as_millis_f64()
    };
    assert_eq!(length(0.0, 50_000), 50.0);
    assert_eq!(length(4_000.0, 80_000), 50.0);
    assert_eq!(length(9_999.0, 90_000), 50.0);
    assert_eq!(length(10_001.0, 90_000), 80.0);
    assert_eq!(length(14_001.0, 95_000), 90.0);
    assert_eq!(length(15_000.0, 10_000), 10.0);
}

#[test]
fn an_rtt_clock_waits_for_a_sample_and_for_acknowledgements() {
    let spec = ClockSpec::Rtt {
        n: 2.0,
        estimator: RttEstimator::Latest,
    };
    let mut clock = Clock::new(&spec, Time::ZERO);
    assert_eq!(clock.next_timer(false), Time::NEVER);
    assert!(!clock.is_due(at(5000.0), false), "no acknowledgement came");
    clock.on_record(&ack(40.0, 40_000));
    assert!(!clock.is_due(at(119.9), true));
    assert_eq!(clock.next_timer(true), at(120.0));
    assert!(clock.is_due(at(120.0), true));
    clock.restart(at(120.0));
    assert_eq!(
        clock.next_timer(false),
        Time::NEVER,
        "silence ends no interval"
    );
    assert!(
        clock.is_due(at(700.0), true),
        "the first news after it does"
    );
    // With an RTT of a microsecond it would decide without end.
    clock.on_record(&ack(700.0, 1));
    clock.restart(at(700.0));
    assert_eq!(clock.next_timer(true), at(700.1));
}

/// At HZ = 250 a tick comes every 4 ms, the same for all flows. Each flow decides at the first
/// acknowledgement after it.
#[test]
fn jiffies_end_at_the_hosts_ticks() {
    let decisions = |start: f64| -> Vec<f64> {
        let mut clock = Clock::new(&ClockSpec::Jiffies { hz: 250.0 }, at(start));
        let acks = [5.0, 7.9, 8.0, 8.5, 11.99, 12.5, 30.0, 31.0, 32.0];
        let mut decisions = Vec::new();
        for ms in acks {
            assert_eq!(clock.next_timer(true), Time::NEVER);
            if clock.is_due(at(ms), true) {
                clock.restart(at(ms));
                decisions.push(ms);
            }
        }
        decisions
    };
    assert_eq!(decisions(1.0), [5.0, 8.0, 12.5, 30.0, 32.0]);
    assert_eq!(decisions(1.0), decisions(3.3));
}

#[test]
fn every_ack_clock_decides_at_each_acknowledgement() {
    let mut clock = Clock::new(&ClockSpec::EveryAck, Time::ZERO);
    for ms in [1.0, 1.0, 2.0] {
        assert!(clock.is_due(at(ms), true));
        clock.restart(at(ms));
        assert!(!clock.is_due(at(ms), false));
    }
    assert_eq!(clock.next_timer(true), Time::NEVER);
}

/// Periods of 20 ms for a flow that begins at 5 ms end at the clock's next tick, or 20 ms later.
#[test]
fn a_shared_period_ends_at_the_same_ticks_for_all_flows() {
    assert_eq!(Clock::new(&period(20.0, true), at(5.0)).due(), at(20.0));
    assert_eq!(Clock::new(&period(20.0, false), at(5.0)).due(), at(25.0));
    // A flow that begins at a tick has a whole period.
    let mut clock = Clock::new(&period(20.0, true), at(40.0));
    assert_eq!(clock.due(), at(60.0));
    clock.restart(at(95.0));
    assert_eq!(clock.due(), at(100.0));
}

#[test]
fn a_period_keeps_its_grid_however_late_a_decision_was() {
    let mut clock = Clock::new(&period(20.0, false), at(5.0));
    assert!(clock.next_timer(false) == at(25.0) && !clock.is_due(at(24.9), true));
    assert!(
        clock.is_due(at(25.0), false),
        "with or without an acknowledgement"
    );
    clock.restart(at(25.0));
    assert_eq!(clock.next_timer(false), at(45.0));
    clock.restart(at(51.0));
    assert_eq!(clock.next_timer(false), at(65.0));
    // Slow start lasts until 1 s. Then one decision follows, and not one for each that was missed.
    clock.restart(at(1000.0));
    assert_eq!(clock.next_timer(false), at(1005.0));
}
