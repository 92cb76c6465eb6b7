//! The rate agent: by hand, with random records, and under a compiler's sanitizers.

use headway_fixed::vectors::Draw;
use headway_fixed::{FEATURES, HISTORY, INPUTS, Int8, RateAgent, RecordBytes};
use proptest::prelude::*;
use zerocopy::IntoBytes;

const MS: u64 = 1_000_000;

/// A policy whose output is always `bias` in 1/65536. Its inputs are the features in 1/16 above
/// `-8`.
fn constant(bias: i32) -> Int8 {
    let mut policy = Draw::new(1).policy();
    policy.net = Default::default();
    policy.net.multipliers[2] = 1;
    policy.net.bias3 = bias;
    policy.offsets = [-8 << 16; FEATURES];
    policy.steps = [16 << 16; FEATURES];
    policy.blank = [0; FEATURES];
    policy
}

/// `abi.h`: times in ns, counts, RTTs in us.
fn record(
    now_ns: u64,
    [sent, delivered, lost]: [u64; 3],
    rtt_us: u64,
    min_rtt_us: u64,
) -> RecordBytes {
    [
        now_ns,
        0,
        sent,
        delivered,
        lost,
        0,
        rtt_us,
        min_rtt_us << 32,
        0,
        1,
        0,
        0,
    ]
}

#[test]
fn the_agent_decides_every_half_mean_rtt_and_scales_the_rate_as_aurora() {
    for (action, factor) in [
        (2.0, 1.2),
        (-2.0, 1.0 / 1.2),
        (9.0, 1.4),
        (-9.0, 1.0 / 1.4),
        (0.0, 1.0),
    ] {
        let policy = constant((action * 65536.0) as i32);
        let mut agent = RateAgent::new(&policy, 0);
        assert_eq!(agent.rate(), 250_000);
        // The first sample is 40 ms, so an interval ends 20 ms later; the next ends 25 ms later,
        // since the mean of 40 and 60 is 50.
        let mut rate = 250_000.0;
        for (at, rtt, decisions) in [
            (40, 40, 0),
            (59, 60, 0),
            (60, 0, 1),
            (84, 70, 1),
            (85, 30, 2),
        ] {
            let paced = agent.record(&policy, &record(at * MS, [at, at, 0], rtt * 1000, 40_000));
            assert_eq!(agent.decisions(), decisions, "at {at} ms");
            if decisions > 0 && [60, 85].contains(&at) {
                rate *= factor;
            }
            assert!(
                (paced as f64 - rate).abs() < 1e-4 * rate,
                "{paced}, must be {rate}"
            );
        }
    }
}

/// A policy is replaced after a second. The new one sees what it would see in a flow that had just
/// begun with that rate.
#[test]
fn a_new_policy_starts_with_an_empty_history() {
    let old = constant(6554);
    let new = Int8 {
        generation: old.generation + 2,
        blank: [7; FEATURES],
        ..old.clone()
    };
    let at = |ms: u64| record(ms * MS, [ms, ms, ms / 100], 40_000 + ms, 40_000);
    let mut agent = RateAgent::new(&old, 0);
    for ms in (10..1000).step_by(10) {
        agent.record(&old, &at(ms));
    }
    let decided = agent.decisions();
    assert!(decided > 40);
    assert!(agent.inputs().iter().all(|input| *input != 7));
    let rate = agent.rate();
    // A half-written policy counts as none: the old one's history stays, and no decision is made.
    let half = Int8 {
        generation: old.generation + 1,
        ..new.clone()
    };
    assert_eq!(agent.record(&half, &at(1000)), rate);
    assert_eq!(agent.decisions(), decided);
    // The next record starts the new policy; the 1010 packets so far do not count.
    assert_eq!(agent.record(&new, &at(1010)), rate);
    assert_eq!(agent.inputs(), &[7; INPUTS]);
    let mut fresh = RateAgent::new(&new, 1010 * MS);
    fresh.set_rate(rate);
    let own = |ms: u64| {
        record(
            ms * MS,
            [ms - 1010, ms - 1010, ms / 100 - 10],
            40_000 + ms,
            40_000,
        )
    };
    fresh.record(&new, &own(1010));
    for ms in (1020..2000).step_by(10) {
        assert_eq!(
            agent.record(&new, &at(ms)),
            fresh.record(&new, &own(ms)),
            "at {ms} ms"
        );
        assert_eq!(agent.inputs(), fresh.inputs(), "at {ms} ms");
    }
    assert_eq!(agent.decisions() - decided, fresh.decisions());
    assert!(fresh.decisions() > 40);
}

/// The agent takes a flow over at a timeout, which has no RTT sample. Nothing is known of the path
/// yet.
#[test]
fn a_new_policy_waits_for_its_first_sample() {
    let old = constant(6554);
    let new = Int8 {
        generation: old.generation + 2,
        ..old.clone()
    };
    let mut agent = RateAgent::new(&old, 0);
    for ms in (10..1000).step_by(10) {
        agent.record(&old, &record(ms * MS, [ms, ms, 0], 40_000, 40_000));
    }
    let (decided, rate) = (agent.decisions(), agent.rate());
    for ms in [2000, 2400, 2500] {
        agent.record(&new, &record(ms * MS, [ms, 1000, 0], 0, 40_000));
    }
    assert_eq!((agent.decisions(), agent.rate()), (decided, rate));
    // From here, half a mean RTT is over after 20 ms.
    agent.record(&new, &record(2510 * MS, [2510, 1000, 0], 40_000, 40_000));
    assert_eq!(agent.decisions(), decided);
    agent.record(&new, &record(2530 * MS, [2530, 1010, 0], 40_000, 40_000));
    assert_eq!(agent.decisions(), decided + 1);
}

#[test]
fn the_agent_sees_the_last_intervals() {
    let policy = constant(0);
    let mut agent = RateAgent::new(&policy, 0);
    // RTTs rise by 10 ms in 20 ms; 30 packets are sent, 15 delivered and 5 lost; the minimum RTT is
    // 20 ms.
    agent.record(&policy, &record(100 * MS, [10, 5, 0], 40_000, 20_000));
    agent.record(&policy, &record(110 * MS, [20, 10, 0], 45_000, 20_000));
    agent.record(&policy, &record(120 * MS, [30, 15, 5], 50_000, 20_000));
    let log2 = libm::log2;
    let features = [0.5, log2(1.0 + 45.0 / 20.0), log2(3.0), 0.25, log2(16.0)];
    let inputs = features.map(|x: f64| ((x + 8.0) * 16.0 + 0.5) as u8);
    let (before, newest) = agent.inputs().split_at((HISTORY - 1) * FEATURES);
    assert_eq!((agent.decisions(), newest), (1, &inputs[..]));
    assert!(before.iter().all(|input| *input == 0));
    // An interval without a sample has no slope and keeps the last mean. With nothing delivered the
    // send ratio is 1.
    agent.record(&policy, &record(200 * MS, [31, 15, 5], 0, 20_000));
    let features = [0.0, features[1], 1.0, 0.0, 0.0];
    let (before, newest) = agent.inputs().split_at((HISTORY - 1) * FEATURES);
    assert_eq!(
        newest,
        &features.map(|x: f64| ((x + 8.0) * 16.0 + 0.5) as u8)[..]
    );
    assert_eq!(&before[(HISTORY - 2) * FEATURES..], &inputs[..]);
}

/// A timer would have fired 20 ms after the first sample, and again 20 ms later. Nothing was
/// acknowledged in that second interval.
#[test]
fn overdue_decisions_use_only_the_records_before_them() {
    let policy = constant(65536);
    let mut agent = RateAgent::new(&policy, 0);
    agent.record(&policy, &record(100 * MS, [8, 4, 0], 40_000, 40_000));
    agent.record(&policy, &record(110 * MS, [12, 8, 0], 40_000, 40_000));
    assert_eq!((agent.decisions(), agent.due_ns()), (0, 120 * MS));
    let rate = agent.record(&policy, &record(150 * MS, [28, 9, 0], 80_000, 40_000));
    assert_eq!((agent.decisions(), agent.due_ns()), (2, 190 * MS));
    assert_eq!(rate, 302_504); // 250,000 times 1 + 6554 / 65536, twice
    let seen = |ratio: f64, sent: f64, packets: f64| {
        [
            0.0,
            libm::log2(1.0 + ratio),
            libm::log2(1.0 + sent),
            0.0,
            libm::log2(1.0 + packets),
        ]
        .map(|x| ((x + 8.0) * 16.0 + 0.5) as u8)
    };
    let last_two = [seen(1.0, 12.0 / 8.0, 8.0), seen(2.0, 16.0, 1.0)].concat();
    assert_eq!(agent.inputs()[INPUTS - 2 * FEATURES..], last_two);
}

#[test]
fn no_decision_is_made_while_a_policy_is_being_written() {
    let mut policy = constant(65536);
    let mut agent = RateAgent::new(&policy, 0);
    let mut ms = 0;
    for (generation, decides) in [(2, true), (3, false), (0, false), (4, true)] {
        policy.generation = generation;
        let before = agent.decisions();
        for _ in 0..10 {
            ms += 1;
            agent.record(&policy, &record(ms * MS, [1, 1, 0], 1000, 1000));
        }
        let has_decided = agent.decisions() != before;
        assert_eq!(has_decided, decides, "generation {generation}");
    }
    // Without a policy there is no rate.
    let none = Int8::default();
    assert_eq!(
        RateAgent::new(&none, 0).record(&none, &record(MS, [1, 1, 0], 1000, 1000)),
        0
    );
}

/// Policies of random bytes, or sensible ones with some bytes changed.
fn policies() -> impl Strategy<Value = Int8> {
    let changes = prop::collection::vec((0..size_of::<Int8>(), any::<u8>()), 0..20);
    (any::<u64>(), any::<bool>(), changes).prop_map(|(seed, wild, changes)| {
        let mut draw = Draw::new(seed);
        let mut policy = draw.policy();
        let bytes = policy.as_mut_bytes();
        if wild {
            bytes.iter_mut().for_each(|byte| *byte = draw.bits() as u8);
        }
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        policy
    })
}

proptest! {
    #[test]
    fn rates_are_bounded_and_deterministic_for_any_records(policy in policies(), seed in any::<u64>()) {
        let run = || {
            let mut draw = Draw::new(seed);
            let mut last = [0; 12];
            let mut agent = RateAgent::new(&policy, draw.bits());
            let rates: Vec<u64> = (0..200).map(|_| {
                last = draw.record(&last);
                agent.record(&policy, &last)
            }).collect();
            (rates, agent)
        };
        let (rates, agent) = run();
        let most = policy.max_rate.min(1 << 40);
        prop_assert!(rates.iter().all(|rate| (policy.min_rate.min(most)..=most).contains(rate)));
        prop_assert_eq!((rates, agent), run());
    }
}

#[test]
fn no_undefined_behaviour_for_any_policy_and_records() {
    if let Some(decisions) = crate::sanitized::run("rate_agent") {
        assert!(decisions > 10_000, "{decisions} decisions");
    }
}
