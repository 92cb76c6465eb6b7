//! Sprout and Verus, made for cellular links: published runs, and the behaviour that their rules
//! predict.

use headway_cc::{Duration, Time};
use headway_net::queue::{CoDelParams, Discipline};
use headway_scenario::{Change, Part, Transport};

use crate::cellular::{ATT, CS244, HOTNETS, VERIZON, capacity, graph, hotnets, mahimahi};
use crate::check::{Check, Outside};
use crate::networks::{fixed, has_traces, traces};
use crate::sawtooth;

/// The tolerance for a published utilisation, and for published delays in percent.
const UTILISATION: f64 = 0.05;
const PERCENT: f64 = 15.0;

/// The check of one figure of a run.
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

/// algorithms.md §14.3 A. In those runs one end of `sproutbt2` sends data, and the other reports
/// every 20 ms.
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
    sprout(
        "Verizon-LTE-short, utilisation",
        utilisation(3.55 / 5.04),
        used,
    )
    .holds();
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
    sprout(
        "ATT-LTE-driving, utilisation",
        utilisation(3.50 / 5.19),
        used,
    )
    .holds();
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
    .holds();
}

/// algorithms.md §14.3 B.
#[test]
fn sprout_over_a_long_round_trip_is_compared_with_a_published_value() {
    if !has_traces(
        "sprout_over_a_long_round_trip_is_compared_with_a_published_value",
        &VERIZON[..1],
    ) {
        return;
    }
    let ours = graph(&hotnets(), VERIZON[0], "sprout");
    let used = ours.mbps / capacity(VERIZON[0]);
    println!("sprout, ABC: utilisation {used:.3}, {ours:?}");
    let reason = "not known: an emulation of sproutbt2 uses less still, .15 with data both ways and .22 with a \
                  report after every tick; at 100 ms of round trip its own small window becomes the rate \
                  that the receiver infers";
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

/// NSDI 2013 §3.5: on a link that it fills, packets leave the queue within 100 ms.
#[test]
fn sprout_leaves_the_queue_short() {
    let ours = sawtooth::run(&fixed(12.0, 20, 240, 1500), "sprout", 20, 100);
    assert!(ours.utilisation > 0.99, "{ours:?}");
    let what = "12 Mbit/s, 40 ms, 6 BDP, p95 queueing delay";
    let most = Outside::Between(f64::NEG_INFINITY, 100.0);
    check("sprout", what, "NSDI 2013 §3.5", most, ours.p95_queue_ms).holds();
}

/// On a link that carries less than a full packet every 50 ms (240 kbit/s), full-size heartbeats
/// would never let the queue empty, and p95 would be tens of seconds. The code's heartbeats have 90
/// bytes.
#[test]
fn sprout_leaves_the_queue_of_a_slow_link_short() {
    for kbps in [60.0, 120.0, 200.0] {
        let network = fixed(kbps / 1000.0, 20, 10_000, 1500);
        let ours = sawtooth::run(&network, "sprout", 20, 100);
        println!("sprout, {kbps} kbit/s: {ours:?}");
        // The queue stays below the ten packets of the initial window, however long one takes.
        assert!(ours.p95_queue_ms < 10.0 * 12_000.0 / kbps, "{ours:?}");
        assert!(ours.utilisation > 0.5, "{ours:?}");
    }
}

/// Utilisation falls with the round trip and in short buffers: to the receiver, windows that are
/// too small look like a slow link (docs/validation.md).
#[test]
fn sprout_takes_its_own_window_for_the_links_rate() {
    let used = |one_way_ms, buffer| {
        let network = fixed(12.0, one_way_ms, buffer, 1500);
        sawtooth::run(&network, "sprout", 20, 60).utilisation
    };
    let by_round_trip = [20, 30, 40, 50, 60, 80].map(|one_way_ms| used(one_way_ms, 240));
    println!("sprout, 40 to 160 ms of round trip: {by_round_trip:.3?}");
    assert!(by_round_trip.is_sorted_by(|nearer, farther| nearer > farther));
    assert!(by_round_trip[0] > 0.99 && by_round_trip[5] < 0.2);
    let short = used(20, 20);
    println!("sprout, 20 packets of buffer: {short:.3}");
    assert!(short < 0.5 * by_round_trip[0]);
}

/// After an outage of any length the link is full again. With only the outage rule of the paper,
/// without that of the code, a flow would send heartbeats for ever.
#[test]
fn sprout_recovers_from_an_outage() {
    let at = |seconds: f64, loss| Change {
        at: Time::ZERO + Duration::from_secs_f64(seconds),
        link: 0,
        rate: None,
        delay: None,
        loss: Some(loss),
    };
    for (mbps, seconds) in [
        (12.0, 0.05),
        (12.0, 0.2),
        (5.0, 0.2),
        (12.0, 1.0),
        (12.0, 90.0),
    ] {
        let mut network = fixed(mbps, 20, 100, 1500);
        network.changes = vec![at(10.0, 1.0), at(10.0 + seconds, 0.0)];
        let ours = sawtooth::run(&network, "sprout", 105, 125);
        assert!(ours.utilisation > 0.99, "{seconds} s: {ours:?}");
    }
}

/// algorithms.md §14.3 B.
#[test]
fn verus_as_in_hotnets() {
    if !has_traces("verus_as_in_abc", &VERIZON[..1]) {
        return;
    }
    let ours = graph(&hotnets(), VERIZON[0], "verus");
    let used = ours.mbps / capacity(VERIZON[0]);
    println!("verus, ABC: utilisation {used:.3}, {ours:?}");
    let reason = "not known; with 15 packets of window to a node of the curve for ever, where yzaki/verus keeps \
                  the fewer ones of its first curve, .861 and 473 ms met both";
    check(
        "verus",
        "ABC's link, utilisation",
        HOTNETS,
        utilisation(0.822),
        used,
    )
    .misses_because(reason);
    let what = "ABC's link, p95 delay";
    let published = Outside::Percent(420.0, PERCENT);
    check("verus", what, HOTNETS, published, 100.0 + ours.p95_queue_ms).misses_because(reason);
}

/// The paper's abstract: a tenth of Cubic's delay or less at comparable throughput, up to 30% more
/// throughput than Sprout. Cubic's p95 queueing delay is the published one (algorithms.md §14.3 A).
#[test]
fn verus_as_its_abstract_says() {
    if !has_traces("verus_as_its_abstract_says", &[VERIZON, ATT].concat()) {
        return;
    }
    const ABSTRACT: &str = "SIGCOMM 2015, abstract";
    for (pair, cubic_mbps, cubic_ms) in [(VERIZON, 5.03, 6735.0), (ATT, 5.18, 7187.0)] {
        let ours = graph(&mahimahi(pair), pair[0], "verus");
        let sprout = graph(&mahimahi(pair), pair[0], "sprout");
        println!("verus, {}: {ours:?}", pair[0]);
        let name = pair[0].trim_end_matches(".down");
        let shares = [
            ("delay over Cubic's", ours.p95_queue_ms / cubic_ms, 0.0, 0.1),
            (
                "throughput over Cubic's",
                ours.mbps / cubic_mbps,
                0.9,
                f64::INFINITY,
            ),
            (
                "throughput over Sprout's",
                ours.mbps / sprout.mbps,
                1.0,
                1.3,
            ),
        ];
        for (what, share, least, most) in shares {
            let what = format!("{name}, {what}");
            let check = check(
                "verus",
                &what,
                ABSTRACT,
                Outside::Between(least, most),
                share,
            );
            let check = Check { unit: "", ..check };
            match what.ends_with("over Sprout's") {
                true => check.misses_because("by 2%: \"up to 30%\" is of the paper's own traces"),
                false => check.holds(),
            }
        }
    }
}

/// algorithms.md §14.4: in a deep buffer the delay rises to R times the minimum, 120 ms.
#[test]
fn verus_fills_the_queue_up_to_its_ratio() {
    for (scheme, r) in [("verus", 6.0), ("verus:r=4", 4.0), ("verus:r=2", 2.0)] {
        let ours = sawtooth::run(&fixed(12.0, 60, 1000, 1500), scheme, 100, 400);
        println!("{scheme}: {ours:?}");
        let what = "12 Mbit/s, 120 ms, 1000 packets, mean queueing delay";
        let expected = Outside::Between(0.5 * (r - 1.0) * 120.0, (r - 1.0) * 120.0);
        check(scheme, what, "its rule R", expected, ours.mean_queue_ms).holds();
        assert!(ours.utilisation > 0.99 && ours.loss == 0.0, "{ours:?}");
    }
}

/// A run of Sprout's paper: Mbit/s, and the self-inflicted delay (NSDI 2013 §5.1), which is the
/// 95th percentile of signal delay less that of a sender that knows when the link will send.
fn self_inflicted(pair: [&str; 2], scheme: &str) -> (f64, f64) {
    let mut network = mahimahi(pair);
    if scheme != "sprout" {
        network.transport = Transport::Linux;
    }
    let scheme = match scheme.strip_suffix("-codel") {
        Some(scheme) => {
            let codel = CoDelParams::default();
            network.links[0].queue.discipline = Discipline::CoDel(codel);
            scheme
        }
        None => scheme,
    };
    let ours = graph(&network, pair[0], scheme);
    (ours.mbps, ours.p95_signal_ms - omniscient(pair[0]))
}

/// NSDI 2013, the table of its introduction (algorithms.md §14.3 D): Sprout's bit rate divided by
/// the other's, and the other's self-inflicted delay divided by Sprout's. They are means over eight
/// links, none of which we have for certain.
const PUBLISHED: [(&str, f64, f64); 5] = [
    ("compound", 1.3, 4.8),
    ("vegas", 1.1, 2.1),
    ("ledbat", 1.0, 2.8),
    ("cubic", 0.91, 79.0),
    ("cubic-codel", 0.70, 1.6),
];

const OTHER_LINKS: &str = "other links: the published means are of eight of 2012, some of them 3G, where Sprout has \
                           .32 s of delay; on these two of LTE it has .08 s";

/// The mean over links of the ratios of bit rates, and the ratio of the mean delays.
fn ratios_to_sprout(pairs: &[[&str; 2]]) -> Vec<(f64, f64)> {
    let sprout: Vec<_> = pairs.iter().map(|p| self_inflicted(*p, "sprout")).collect();
    let sprouts_delay: f64 = sprout.iter().map(|s| s.1).sum();
    let others = PUBLISHED.iter().map(|(scheme, ..)| {
        let mut sums = (0.0, 0.0);
        for (pair, sprout) in pairs.iter().zip(&sprout) {
            let (mbps, delay) = self_inflicted(*pair, scheme);
            println!(
                "{scheme}, {}: {mbps:.2} Mbit/s, {delay} ms; sprout: {sprout:?}",
                pair[0]
            );
            sums = (sums.0 + sprout.0 / mbps, sums.1 + delay);
        }
        (sums.0 / pairs.len() as f64, sums.1 / sprouts_delay)
    });
    others.collect()
}

/// The table on Verizon's two links: bit rates within 5%, delays within 15%.
#[test]
fn the_table_of_sprouts_paper() {
    if !has_traces("the_table_of_sprouts_paper", &VERIZON) {
        return;
    }
    let ours = ratios_to_sprout(&[VERIZON, [VERIZON[1], VERIZON[0]]]);
    for ((scheme, bit_rate, delay), ours) in PUBLISHED.iter().zip(ours) {
        println!("{scheme}: {ours:.2?}, published {bit_rate}, {delay}");
        let name = scheme.trim_end_matches("-codel");
        let behind = if *scheme == name { "" } else { " behind CoDel" };
        let what = |figure| format!("Verizon-LTE-short up and down{behind}, {figure}");
        let row = |what, published, percent, ours| Check {
            scheme: name,
            what,
            unit: "",
            source: "Sprout, NSDI 2013, eight links",
            outside: Outside::Percent(published, percent),
            ours,
        };
        let reason = match *scheme {
            "compound" => format!(
                "{OTHER_LINKS}; in an infinite queue it fills its window of 3 MB like Cubic, and what bounded \
                 the published runs is not known"
            ),
            _ => OTHER_LINKS.to_owned(),
        };
        let rates = what("Sprout's bit rate over its");
        row(&rates, *bit_rate, 5.0, ours.0).misses_because(&reason);
        let delays = what("self-inflicted delay over Sprout's");
        row(&delays, *delay, PERCENT, ours.1).misses_because(&reason);
    }
}

/// Same as [`the_table_of_sprouts_paper`] on four links, AT&T's with their hour of driving, for
/// docs/validation.md.
#[test]
#[ignore = "half a minute; prints a table"]
fn the_table_of_sprouts_paper_on_four_links() {
    let links = [VERIZON, [VERIZON[1], VERIZON[0]], ATT, [ATT[1], ATT[0]]];
    for ((scheme, bit_rate, delay), ours) in PUBLISHED.iter().zip(ratios_to_sprout(&links)) {
        println!("{scheme}: {ours:.2?}, published {bit_rate}, {delay}");
    }
    println!("without AT&T's way up, which is silent for half a minute:");
    for ((scheme, ..), ours) in PUBLISHED.iter().zip(ratios_to_sprout(&links[..3])) {
        println!("{scheme}: {ours:.2?}");
    }
}

/// The 95th percentile of the signal delay of a sender that knows when the link will send: each
/// millisecond waits for the next opportunity.
fn omniscient(trace: &str) -> f64 {
    let trace = traces().load(trace, Part::Whole).expect("a trace");
    let mut waits: Vec<u32> = trace
        .opportunities()
        .windows(2)
        .flat_map(|pair| 0..pair[1] - pair[0])
        .collect();
    waits.sort_unstable();
    f64::from(waits[waits.len() * 95 / 100])
}
