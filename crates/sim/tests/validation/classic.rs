//! DCTCP, LEDBAT and Compound: the behaviour that their sources describe for one flow on a link,
//! and for two.

use headway_cc::Time;
use headway_net::Loss;
use headway_net::queue::{Discipline, StepParams};
use headway_scenario::{Network, Transport};

use crate::check::{Check, Outside};
use crate::networks::{self, bulk, fixed, options};
use crate::sawtooth;
use crate::watch;

/// A link of 12 Mbit/s, 120 ms, `buffer` packets, marking from `threshold_packets` on.
pub fn marking(threshold_packets: u64, buffer: u64) -> Network {
    let mut network = fixed(12.0, 60, buffer, 1500);
    network.links[0].queue.discipline = Discipline::Step(StepParams { threshold_packets });
    network
}

/// The queue's sawtooth by Alizadeh et al. 2010 §3.3, one flow: K + 1 at the top, and half of
/// sqrt(2 (C RTT + K)) deep. K above C RTT / 7, 17 packets, uses the link fully (§3.4).
#[test]
fn dctcp_keeps_the_queue_below_its_threshold() {
    for k in [17, 20, 40, 80] {
        let depth = (2.0 * (120.0 + k as f64)).sqrt() / 2.0;
        let ours = sawtooth::run(&marking(k, 1000), "dctcp", 100, 400);
        println!("dctcp, K = {k}: {ours:?}");
        assert_eq!(ours.loss, 0.0);
        Check {
            scheme: "dctcp",
            what: &format!("12 Mbit/s, 120 ms, marking above {k} packets: utilisation"),
            unit: "",
            source: "Alizadeh et al. 2010 §3.4",
            outside: Outside::Between(0.99, 1.0),
            ours: ours.utilisation,
        }
        .holds();
        Check {
            scheme: "dctcp",
            what: &format!("12 Mbit/s, 120 ms, marking above {k} packets: mean queue"),
            unit: "packets",
            source: "Alizadeh et al. 2010 §3.3",
            outside: Outside::Difference(k as f64 + 1.0 - depth / 2.0, 1.0),
            ours: ours.mean_queue_ms,
        }
        .holds();
    }
    // A threshold that is too low costs utilisation.
    let low = sawtooth::run(&marking(2, 1000), "dctcp", 100, 400);
    assert!(low.utilisation < 0.99, "{low:?}");
}

/// With an acknowledgement every two packets the sawtooth is the same: none covers both a marked
/// packet and an unmarked one (RFC 8257 §3.2).
#[test]
fn dctcp_counts_marks_with_delayed_acknowledgements() {
    let mut network = marking(20, 1000);
    let each = sawtooth::run(&network, "dctcp", 100, 400);
    network.transport = Transport::Linux;
    let every_two = sawtooth::run(&network, "dctcp", 100, 400);
    println!("dctcp, an ACK a packet: {each:?}; delayed ACKs: {every_two:?}");
    assert!((every_two.utilisation - each.utilisation).abs() < 0.005);
    assert!((every_two.mean_queue_ms - each.mean_queue_ms).abs() < 2.0);
}

/// RFC 6817 §2.2, algorithms.md §14.4: a single LEDBAT flow fills the link and keeps its target in
/// the queue.
#[test]
fn ledbat_keeps_its_target_in_the_queue() {
    for (spec, target_ms) in [
        ("ledbat", 100.0),
        ("ledbat:slow_start=on", 100.0),
        ("ledbat:target=25ms", 25.0),
    ] {
        let ours = sawtooth::run(&fixed(12.0, 60, 240, 1500), spec, 150, 400);
        println!("{spec}: {ours:?}");
        assert_eq!(ours.loss, 0.0);
        Check {
            scheme: spec,
            what: "12 Mbit/s, 120 ms, 240 packets: mean queue",
            unit: "ms",
            source: "RFC 6817 §2.2",
            outside: Outside::Percent(target_ms, 5.0),
            ours: ours.mean_queue_ms,
        }
        .holds();
        Check {
            scheme: spec,
            what: "12 Mbit/s, 120 ms, 240 packets: utilisation",
            unit: "",
            source: "algorithms.md §14.4",
            outside: Outside::Between(0.99, 1.0),
            ours: ours.utilisation,
        }
        .holds();
    }
}

/// The share of the second flow, which begins at `start`, from second 100 to 200.
fn share_of_the_second(first: &str, second: &str, start: Time) -> f64 {
    let mut network = fixed(12.0, 20, 400, 1500);
    network.flows = vec![bulk(0, 1), bulk(0, 1)];
    network.flows[1].scheme = Some(second.to_owned());
    network.flows[1].start = start;
    let rows = networks::run(&network, first, options(200.0, 100.0)).rows;
    let mbps = |flow| {
        let row = rows.iter().find(|r| r.flow == flow).expect("a flow");
        row.metrics.throughput_mbps.expect("packets")
    };
    println!(
        "{first} and {second}: {:.2} and {:.2} Mbit/s",
        mbps(0),
        mbps(1)
    );
    mbps(1) / (mbps(0) + mbps(1))
}

/// RFC 6817 §2.2 and §4.2: it yields to TCP. A latecomer takes the existing queue for a part of the
/// path, so the earlier flow yields to it.
#[test]
fn ledbat_yields_to_newreno_and_to_a_latecomer() {
    Check {
        scheme: "ledbat",
        what: "12 Mbit/s, 40 ms, 400 packets, against newreno: share",
        unit: "",
        source: "RFC 6817 §2.2 (yields)",
        outside: Outside::Between(0.0, 0.1),
        ours: share_of_the_second("newreno", "ledbat", Time::ZERO),
    }
    .holds();
    Check {
        scheme: "ledbat",
        what: "12 Mbit/s, 40 ms, 400 packets, 60 s after another ledbat: share",
        unit: "",
        source: "RFC 6817 §4.4 (latecomer's advantage)",
        outside: Outside::Between(0.8, 1.0),
        ours: share_of_the_second("ledbat", "ledbat", Time::from_millis(60_000)),
    }
    .holds();
}

/// algorithms.md §3: on a path of 25 packets and a buffer of 10, Compound is NewReno, packet for
/// packet.
#[test]
fn compound_on_a_short_path_is_newreno() {
    let run = |scheme, mbps, buffer| {
        let seen = watch::deliveries_of_seed(&fixed(mbps, 50, buffer, 1500), scheme, 60.0, 1);
        let times = seen.iter().map(|d| (d.number, d.sent, d.received));
        times.collect::<Vec<_>>()
    };
    let reno = run("newreno", 3.0, 10);
    assert_eq!(run("compound", 3.0, 10), reno);
    assert!(reno.len() > 10_000 && reno.windows(2).any(|p| p[1].0 > p[0].0 + 1));
    assert_ne!(run("compound", 30.0, 10), run("newreno", 30.0, 10));
}

/// Random losses on a link that is never full, means of three seeds: the response function, which
/// is three times NewReno's window at one loss in 10,000 packets.
///
/// Tan et al. 2006 §4: between two losses, with 1/p packets in between and no queue, win goes from
/// W/2 to W by alpha win^k a round trip. By hand: W^(2-k) = alpha (2-k) / (p (1 - 0.5^(2-k))), in
/// W^(1-k) (1 - 0.5^(1-k)) / (alpha (1-k)) round trips; for p = 1e-4, W = 555.4 and there are 24.72
/// of them.
#[test]
fn compound_answers_random_loss_as_its_response_function() {
    let mean_window = |scheme: &str, probability: f64| {
        let runs = (1..=3).map(|seed| {
            let mut network = fixed(1000.0, 50, 100_000, 1500);
            network.links[0].loss = Some(Loss::Random { probability });
            let mut options = options(200.0, 40.0);
            options.seed = seed;
            let seen = networks::metrics(&network, scheme, options);
            seen.throughput_mbps.expect("packets") * 0.1 * 1e6 / 12_000.0
        });
        runs.sum::<f64>() / 3.0
    };
    for (probability, window) in [(1e-3, 64.1), (1e-4, 404.6)] {
        Check {
            scheme: "compound",
            what: &format!("1 Gbit/s, 100 ms, random loss of {probability:e}: mean window"),
            unit: "packets",
            source: "Tan et al. 2006 §4, response function",
            outside: Outside::Percent(window, 15.0),
            ours: mean_window("compound", probability),
        }
        .holds();
    }
    let reno = mean_window("newreno", 1e-4);
    println!("newreno, 1e-4: {reno:.1} packets");
    assert!(2.5 * reno < 404.6, "{reno}");
}

/// On a long path with 200 Mbit/s, 100 ms and a buffer of a tenth of a BDP, Compound fills the link
/// again within seconds after the first loss, and NewReno takes a minute.
#[test]
fn compound_fills_a_long_fat_pipe() {
    let used = |scheme| sawtooth::run(&fixed(200.0, 50, 166, 1500), scheme, 5, 60).utilisation;
    let (compound, reno) = (used("compound"), used("newreno"));
    println!("200 Mbit/s, 100 ms: compound {compound:.3}, newreno {reno:.3}");
    Check {
        scheme: "compound",
        what: "200 Mbit/s, 100 ms, 166 packets, seconds 5 to 60: utilisation beyond newreno's",
        unit: "",
        source: "Tan et al. 2006 §1",
        outside: Outside::Between(0.05, 1.0),
        ours: compound - reno,
    }
    .holds();
}
