//! Sprout and Verus, made for cellular links: published runs, and what their rules say.

use headway_cc::{Duration, Rate};
use headway_scenario::{Network, Part, RateSpec};

use crate::cellular::{ATT, Graph, VERIZON, graph, mahimahi, once};
use crate::check::{Check, Outside};
use crate::networks::{bulk, fixed, has_traces, one_flow, packets, traces};
use crate::sawtooth;

/// Who published the two sets of runs (algorithms.md §14.3 A and B).
const CS244: &str = "cs244pa3, mahimahi, 2016";
const HOTNETS: &str = "ABC, HotNets 2017, fig. 2";

/// Utilisation within so much of a published one, delays within so many percent.
const UTILISATION: f64 = 0.05;
const PERCENT: f64 = 15.0;

fn capacity(trace: &str) -> f64 {
    let trace = traces().load(trace, Part::Whole).expect("a trace");
    trace.mean_mbps() * 1504.0 / 1500.0
}

/// ABC (HotNets 2017) fig. 2: 100 ms, 100 packets, 48 Mbit/s back.
fn abc() -> Network {
    let one_way = Duration::from_millis(50);
    let mut network = one_flow(once(VERIZON[0]), one_way, packets(100), 1500);
    network.links[1].rate = RateSpec::Fixed(Rate::from_mbps(48.0));
    network
}

/// The figure of a run that a [`Check`] holds.
fn check<'a>(
    scheme: &'a str,
    what: &'a str,
    source: &'a str,
    outside: Outside,
    ours: f64,
) -> Check<'a> {
    let unit = if what.ends_with("utilisation") {
        ""
    } else {
        "ms"
    };
    Check {
        scheme,
        what,
        unit,
        source,
        outside,
        ours,
    }
}

fn utilisation(published: f64) -> Outside {
    Outside::Difference((published * 1e4).round() / 1e4, UTILISATION)
}

/// What a second flow the other way, as in `sproutbt2`, makes of a run. Not held to anything.
fn both_ways(network: &Network, trace: &str, scheme: &str) -> Graph {
    let mut network = network.clone();
    network.flows.push(bulk(1, 0));
    let ours = graph(&network, trace, scheme);
    let used = ours.mbps / capacity(trace);
    println!("{scheme}, both ways, {trace}: utilisation {used:.3}, {ours:?}");
    ours
}

/// algorithms.md §14.3 A. Those runs had `sproutbt2`, which sends both ways: what the receiver has to say
/// leaves with data and waits in the queue on the way back. Ours are one way.
#[test]
fn sprout_in_an_infinite_queue() {
    if !has_traces("sprout_in_an_infinite_queue", &[VERIZON, ATT].concat()) {
        return;
    }
    let run = |pair: [&str; 2]| {
        let ours = graph(&mahimahi(pair), pair[0], "sprout");
        (ours.mbps / capacity(pair[0]), ours)
    };
    let sprout = |what, outside, ours| check("sprout", what, CS244, outside, ours);
    let (used, ours) = run(VERIZON);
    println!("sprout, {}: utilisation {used:.3}, {ours:?}", VERIZON[0]);
    sprout("Verizon-LTE-short, utilisation", utilisation(3.55 / 5.04), used).misses_because(
        "the published runs send both ways, so that reports wait behind data: with a second flow the \
         other way ours use .58",
    );
    sprout(
        "Verizon-LTE-short, p95 queueing delay",
        Outside::Percent(66.0, PERCENT),
        ours.p95_queue_ms,
    )
    .holds();
    sprout(
        "Verizon-LTE-short, p95 signal delay",
        Outside::Percent(88.0, PERCENT),
        ours.p95_signal_ms,
    )
    .holds();
    let (used, ours) = run(ATT);
    println!("sprout, {}: utilisation {used:.3}, {ours:?}", ATT[0]);
    sprout("ATT-LTE-driving, utilisation", utilisation(3.50 / 5.19), used).misses_because(
        "the published runs send both ways, so that reports wait behind data: with a second flow the \
         other way ours use .47",
    );
    sprout(
        "ATT-LTE-driving, p95 queueing delay",
        Outside::Percent(62.0, PERCENT),
        ours.p95_queue_ms,
    )
    .holds();
    sprout(
        "ATT-LTE-driving, p95 signal delay",
        Outside::Percent(151.0, PERCENT),
        ours.p95_signal_ms,
    )
    .misses_because(
        "likely that heartbeats are full packets here: in an outage they fill the queue some sixteen times \
         as fast as the code's of 90 bytes",
    );
    both_ways(&mahimahi(VERIZON), VERIZON[0], "sprout");
}

/// algorithms.md §14.3 B.
#[test]
fn sprout_over_a_long_round_trip() {
    if !has_traces("sprout_over_a_long_round_trip", &VERIZON[..1]) {
        return;
    }
    let ours = graph(&abc(), VERIZON[0], "sprout");
    let used = ours.mbps / capacity(VERIZON[0]);
    println!("sprout, ABC: utilisation {used:.3}, {ours:?}");
    let reason = "with 100 ms of round trip what is under way is all that a forecast of 100 ms allows; in \
                  sproutbt2 reports come with flights the other way, likely so late that its sums of \
                  forecasts, taken from the queue in between, let it send more";
    check(
        "sprout",
        "ABC's link, utilisation",
        HOTNETS,
        utilisation(0.382),
        used,
    )
    .misses_because(reason);
    check(
        "sprout",
        "ABC's link, p95 delay",
        HOTNETS,
        Outside::Percent(179.0, PERCENT),
        100.0 + ours.p95_queue_ms,
    )
    .misses_because(reason);
}

/// algorithms.md §14.4: no more than 11 Mbit/s of a 12 Mbit/s link with 120 ms, and a delay of 100 ms.
#[test]
fn sprout_leaves_the_queue_short() {
    let ours = sawtooth::run(&fixed(12.0, 60, 240, 1500), "sprout", 100, 400);
    println!("sprout: {ours:?}");
    let what = "12 Mbit/s, 120 ms, 2 BDP, utilisation";
    let most = Outside::Between(f64::NEG_INFINITY, 0.917);
    check(
        "sprout",
        what,
        "its rules (at most 11 Mbit/s)",
        most,
        ours.utilisation,
    )
    .holds();
    let what = "12 Mbit/s, 120 ms, 2 BDP, p95 queueing delay";
    let most = Outside::Between(f64::NEG_INFINITY, 100.0);
    check("sprout", what, "NSDI 2013 §3.5", most, ours.p95_queue_ms).holds();
}
