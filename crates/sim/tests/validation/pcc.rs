//! The PCC family: the behaviour that their papers and utilities predict for queues, random loss,
//! fairness and competition.

use headway_cc::{Duration, Time};
use headway_net::{Loss, Reorder};
use headway_record::jain_index;
use headway_scenario::Network;

use crate::check::{Check, Outside};
use crate::networks::{bulk, fixed, metrics, options, run};
use crate::sawtooth;

const MEMBERS: [&str; 5] = [
    "pcc-allegro",
    "vivace",
    "vivace-loss",
    "proteus-p",
    "proteus-s",
];

const ALGEBRA: &str = "algorithms.md §14.4, from the rules";

/// algorithms.md §14.4: on 12 Mbit/s and 120 ms with one BDP of buffer, the latency term keeps the
/// queue to a few ms. Half of the trials are 5% above the rate, so their mean stays 5% below the
/// rate that they find too high.
#[test]
fn pcc_with_a_latency_term_keeps_the_queue_short() {
    for scheme in ["vivace", "proteus-p", "proteus-s"] {
        let seen = sawtooth::run(&fixed(12.0, 60, 120, 1500), scheme, 100, 400);
        let check = |what, unit, outside, ours| Check {
            scheme,
            what,
            unit,
            source: ALGEBRA,
            outside,
            ours,
        };
        let used = Outside::Between(0.9, 1.0);
        check(
            "12 Mbit/s, 120 ms, 1 BDP: utilisation",
            "",
            used,
            seen.utilisation,
        )
        .holds();
        let few = Outside::Between(0.0, 10.0);
        check(
            "12 Mbit/s, 120 ms, 1 BDP: mean queue",
            "ms",
            few,
            seen.mean_queue_ms,
        )
        .holds();
    }
}

/// algorithms.md §14.4: without it they fill the buffer. §12: at 12 Mbit/s Vivace's utility falls
/// with the rate from 6.2% of loss on, so there is no equilibrium beyond.
#[test]
fn pcc_without_a_latency_term_fills_the_buffer() {
    for scheme in ["pcc-allegro", "vivace-loss"] {
        let seen = sawtooth::run(&fixed(12.0, 60, 120, 1500), scheme, 100, 400);
        let check = |what, unit, source, outside, ours| Check {
            scheme,
            what,
            unit,
            source,
            outside,
            ours,
        };
        check(
            "12 Mbit/s, 120 ms, 1 BDP: utilisation",
            "",
            ALGEBRA,
            Outside::Between(0.97, 1.0),
            seen.utilisation,
        )
        .holds();
        check(
            "12 Mbit/s, 120 ms, 1 BDP: mean queue",
            "ms",
            ALGEBRA,
            Outside::Between(60.0, 120.0),
            seen.mean_queue_ms,
        )
        .holds();
        let what = "12 Mbit/s, 120 ms, 1 BDP: loss";
        if scheme == "pcc-allegro" {
            let source = "NSDI 2015 §2.2: loss is borne to 5%";
            check(what, "", source, Outside::Between(0.0, 0.05), seen.loss).holds();
        } else {
            let source = "its utility's maximum at 12 Mbit/s: 6.2%";
            check(what, "", source, Outside::Between(0.0, 0.062), seen.loss).misses_because(
                "its rules: a fluid model of them loses 17.7%. A buffer hides the overload while confidence and \
                 change boundary grow; the way back begins with both at their least",
            );
        }
    }
}

/// The share of `network` that a flow uses, if its link loses packets at random.
fn used_under_loss(scheme: &str, mut network: Network, mbps: f64, probability: f64) -> f64 {
    network.links[0].loss = Some(Loss::Random { probability });
    let metrics = metrics(&network, scheme, options(250.0, 50.0));
    metrics.throughput_mbps.expect("packets") / mbps
}

/// NSDI 2015 §2.2: in the utility, the sigmoid cancels the throughput from 5% of loss on.
#[test]
fn allegro_bears_random_loss_up_to_a_point() {
    for (what, probability, least, most) in [
        (
            "12 Mbit/s, 40 ms, 1% random loss: utilisation",
            0.01,
            0.95,
            1.0,
        ),
        (
            "12 Mbit/s, 40 ms, 3% random loss: utilisation",
            0.03,
            0.75,
            1.0,
        ),
        (
            "12 Mbit/s, 40 ms, 8% random loss: utilisation",
            0.08,
            0.0,
            0.5,
        ),
    ] {
        let network = fixed(12.0, 20, 80, 1500);
        Check {
            scheme: "pcc-allegro",
            what,
            unit: "",
            source: "NSDI 2015 §2.2: a cut-off at 5%",
            outside: Outside::Between(least, most),
            ours: used_under_loss("pcc-allegro", network, 12.0, probability),
        }
        .holds();
    }
}

/// algorithms.md §12: dU/dx = 0 at L = .0793 x^-0.1, which is 5.0% at 100 Mbit/s. (At 12 Mbit/s a
/// trial of a round trip has some 40 packets, whose share of losses says little: use falls slowly,
/// from .90 at 2% to .53 at 10%.)
#[test]
fn vivace_bears_random_loss_up_to_a_point() {
    for (what, probability, least, most) in [
        (
            "100 Mbit/s, 30 ms, 2% random loss: utilisation",
            0.02,
            0.9,
            1.0,
        ),
        (
            "100 Mbit/s, 30 ms, 8% random loss: utilisation",
            0.08,
            0.0,
            0.4,
        ),
    ] {
        let network = fixed(100.0, 15, 250, 1500);
        Check {
            scheme: "vivace-loss",
            what,
            unit: "",
            source: "its utility rises with the rate up to 5.0% of loss",
            outside: Outside::Between(least, most),
            ours: used_under_loss("vivace-loss", network, 100.0, probability),
        }
        .holds();
    }
}

/// An overtaken packet arrives later: 5% of them, 10 ms late, are taken for lost and arrive.
#[test]
fn pcc_bears_reordering() {
    for scheme in MEMBERS {
        let network = fixed(12.0, 20, 100, 1500);
        let mut reordered = network.clone();
        reordered.links[0].reorder = Some(Reorder {
            probability: 0.05,
            delay: Duration::from_millis(10),
        });
        let mbps = |network: &Network| {
            let metrics = metrics(network, scheme, options(120.0, 20.0));
            metrics.throughput_mbps.expect("packets")
        };
        Check {
            scheme,
            what: "12 Mbit/s, 40 ms, 5% of the packets 10 ms late: throughput over that without",
            unit: "",
            source: "what arrives was not lost",
            outside: Outside::Between(0.9, 1.1),
            ours: mbps(&reordered) / mbps(&network),
        }
        .holds();
    }
}

/// A link of 50 Mbit/s, 30 ms and 375 kB of buffer (SIGCOMM 2020), shared by `first` and by
/// `second`, which joins 10 s later.
fn shared(first: &str, second: &str) -> Network {
    let mut network = fixed(50.0, 15, 250, 1500);
    network.flows = vec![bulk(0, 1), bulk(0, 1)];
    network.flows[0].scheme = Some(first.to_owned());
    network.flows[1].scheme = Some(second.to_owned());
    network.flows[1].start = Time::from_millis(10_000);
    network
}

/// The flows' rates in Mbit/s on that link, from 40 s on.
fn rates(first: &str, second: &str, seconds: f64) -> (f64, f64) {
    let rows = run(&shared(first, second), first, options(seconds, 40.0)).rows;
    let mbps = |flow| {
        let row = rows.iter().find(|r| r.flow == flow).expect("a flow");
        row.metrics.throughput_mbps.expect("packets")
    };
    let rates = (mbps(0), mbps(1));
    println!("{first} against {second}: {rates:?} Mbit/s");
    rates
}

/// All three papers: every member converges to fair shares with flows of its kind.
#[test]
fn pcc_flows_share_fairly() {
    for (scheme, source) in [
        ("pcc-allegro", "NSDI 2015: a fair equilibrium (recalled)"),
        ("vivace", "NSDI 2018: a fair equilibrium (recalled)"),
        ("vivace-loss", "NSDI 2018: a fair equilibrium (recalled)"),
        ("proteus-p", "SIGCOMM 2020: a fair equilibrium (recalled)"),
        ("proteus-s", "SIGCOMM 2020: a fair equilibrium (recalled)"),
    ] {
        let (a, b) = rates(scheme, scheme, 340.0);
        Check {
            scheme,
            what: "two flows, 50 Mbit/s, 30 ms, 375 kB: Jain's index",
            unit: "",
            source,
            outside: Outside::Between(0.9, 1.0),
            ours: (a + b) * (a + b) / (2.0 * (a * a + b * b)),
        }
        .holds();
    }
}

/// The smallest of Jain's indices of two flows on 12 Mbit/s, 40 ms and 40 packets, the second 4 s
/// later, from 40 to 120 s, in six runs that differ by their seeds.
fn min_fairness(scheme: &str) -> f64 {
    let mut network = fixed(12.0, 20, 40, 1500);
    network.flows = vec![bulk(0, 1), bulk(0, 1)];
    network.flows[1].start = Time::from_millis(4_000);
    let jain = |seed| {
        let options = headway_sim::Options {
            seed,
            ..options(120.0, 40.0)
        };
        let outcome = run(&network, scheme, options);
        let mbps: Vec<f64> = (0..2)
            .filter_map(|flow| outcome.rows.iter().find(|r| r.flow == flow))
            .map(|row| row.metrics.throughput_mbps.unwrap_or(0.0))
            .collect();
        println!("two of {scheme}: {mbps:?} Mbit/s");
        jain_index(&mbps).expect("traffic")
    };
    (1..=6).map(jain).fold(f64::INFINITY, f64::min)
}

/// A link on which a step of 1 Mbit/s is large and a packet takes a millisecond.
#[test]
fn pcc_shares_a_slow_link() {
    for (scheme, source, missed) in [
        (
            "pcc-allegro",
            "NSDI 2015: a fair equilibrium (recalled)",
            "",
        ),
        ("vivace", "NSDI 2018: a fair equilibrium (recalled)", ""),
        (
            "vivace-loss",
            "NSDI 2018: a fair equilibrium (recalled)",
            "where theta_0 = 1 Mbit/s is a large step, the rules swing about the link's rate and lose 15 to 30% (a fluid \
             model of them does so too); a flow that has 0.1 Mbit/s bears 10%, and stays small",
        ),
        (
            "proteus-p",
            "SIGCOMM 2020: a fair equilibrium (recalled)",
            "",
        ),
        (
            "proteus-s",
            "SIGCOMM 2020: a fair equilibrium (recalled)",
            "the standard deviation term: the least of six is .99 with d = 0, .73 with d = 300; with d = 1500 all are met on 24 \
             and 50 Mbit/s. Why a slow link is worse was not traced",
        ),
    ] {
        let check = Check {
            scheme,
            what: "two flows, 12 Mbit/s, 40 ms, 40 packets: least of six of Jain's indices",
            unit: "",
            source,
            outside: Outside::Between(0.9, 1.0),
            ours: min_fairness(scheme),
        };
        match missed {
            "" => check.holds(),
            reason => check.misses_because(reason),
        }
    }
    let without = min_fairness("proteus-s:deviation=0");
    assert!(without > 0.95, "{without}");
}

/// SIGCOMM 2020: a primary keeps nearly all of its rate against the scavenger, which fills a link
/// when it is alone.
#[test]
fn the_scavenger_yields() {
    let source = "SIGCOMM 2020 (recalled): 90% or more";
    let alone = |scheme: &str| {
        let network = fixed(50.0, 15, 250, 1500);
        let metrics = metrics(&network, scheme, options(120.0, 40.0));
        metrics.throughput_mbps.expect("packets")
    };
    Check {
        scheme: "proteus-s",
        what: "alone, 50 Mbit/s, 30 ms, 375 kB: utilisation",
        unit: "",
        source,
        outside: Outside::Between(0.9, 1.0),
        ours: alone("proteus-s") / 50.0,
    }
    .holds();
    for (primary, what) in [
        ("cubic", "what Cubic keeps against it"),
        ("bbr", "what BBR keeps against it"),
        ("copa", "what Copa keeps against it"),
        ("proteus-p", "what Proteus-P keeps against it"),
    ] {
        let check = Check {
            scheme: "proteus-s",
            what,
            unit: "",
            source,
            outside: Outside::Between(0.9, 1.05),
            ours: rates(primary, "proteus-s", 120.0).0 / alone(primary),
        };
        if primary == "proteus-p" {
            check.misses_because(
                "the RTTs of a simulated link fluctuate by what the flows do alone: over 30 ms the standard deviation \
                 adds d T / (b sqrt 12), 1.4%, to the latency term that both have",
            );
        } else {
            check.holds();
        }
    }
}

/// NSDI 2018: Vivace leaves a TCP flow more than Allegro does, and with its latency term it yields.
#[test]
fn vivace_is_kinder_to_reno_than_allegro() {
    let reno = |second| rates("newreno", second, 160.0).0;
    let beside_allegro = reno("pcc-allegro");
    for (scheme, least) in [("vivace-loss", 1.0), ("vivace", 10.0)] {
        Check {
            scheme,
            what: "what NewReno has against it, over what it has against Allegro",
            unit: "",
            source: "NSDI 2018 (recalled)",
            outside: Outside::Between(least, f64::INFINITY),
            ours: reno(scheme) / beside_allegro,
        }
        .holds();
    }
}
