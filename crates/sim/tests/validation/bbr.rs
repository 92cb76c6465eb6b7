//! BBR v1 and v3: published runs, the behaviour that their rules predict alone on a link, under
//! loss, and with other flows.

use headway_cc::{Duration, Time};
use headway_net::Loss;
use headway_scenario::{Network, Transport};
use headway_sim::Options;

use crate::cellular::{HOTNETS, VERIZON, capacity, graph, hotnets};
use crate::check::{Check, Outside};
use crate::networks::{self, bulk, fixed, has_traces, options};
use crate::sawtooth;

/// ABC (HotNets 2017) fig. 2: Verizon-LTE-short.down, 100 ms, 48 Mbit/s back, 100 packets.
#[test]
fn bbr_in_a_short_queue() {
    if !has_traces("bbr_in_a_short_queue", &VERIZON[..1]) {
        return;
    }
    for (transport, name) in [(Transport::Simple, "simple"), (Transport::Linux, "linux")] {
        let mut network = hotnets();
        network.transport = transport;
        let ours = graph(&network, VERIZON[0], "bbr");
        let check = |what: &str, unit, outside, ours| {
            Check {
                scheme: "bbr",
                what: &format!("Verizon-LTE-short, 100 packets, {name}: {what}"),
                unit,
                source: HOTNETS,
                outside,
                ours,
            }
            .holds();
        };
        let used = ours.mbps / capacity(VERIZON[0]);
        check("utilisation", "", Outside::Difference(0.932, 0.05), used);
        let p95 = 100.0 + ours.p95_queue_ms;
        check("p95 delay", "ms", Outside::Percent(580.0, 15.0), p95);
    }
}

/// A path of 12 Mbit/s and 120 ms, a packet a millisecond, with `buffer` packets and this jitter at
/// hosts.
fn path(buffer: u64, jitter_us: u64) -> Network {
    let mut network = fixed(12.0, 60, buffer, 1500);
    network.host_jitter = Duration::from_micros(jitter_us);
    network
}

const RULES: &str = "its rules (algorithms.md §14.4)";
const USED: Outside = Outside::Between(0.97, 0.99);

/// Alone on a link with a buffer of one or two BDP. 0.1 ms of jitter is little for a host and
/// matters much: without any, RTTs repeat to the nanosecond.
#[test]
fn bbr_alone_on_a_link() {
    for scheme in ["bbr", "bbr3"] {
        for buffer in [120, 240] {
            let run = format!("12 Mbit/s, 120 ms, {buffer} packets");
            let what = ["utilisation", "mean queue", "utilisation, no jitter"]
                .map(|w| format!("{run}: {w}"));
            let check = |i: usize, unit, outside, ours| Check {
                scheme,
                what: &what[i],
                unit,
                source: RULES,
                outside,
                ours,
            };
            let ours = sawtooth::run(&path(buffer, 100), scheme, 100, 400);
            check(0, "", USED, ours.utilisation).holds();
            let queue = Outside::Between(0.0, 30.0);
            check(1, "ms", queue, ours.mean_queue_ms).holds();
            assert_eq!(ours.loss, 0.0);

            let bare = sawtooth::run(&path(buffer, 0), scheme, 100, 400);
            check(2, "", USED, bare.utilisation).misses_because(
                if scheme == "bbr" {
                    "an RTT equal to the least one refreshes it, so that ProbeRTT never comes"
                } else {
                    "no RTT is below the least one, so that ProbeRTT comes every 5 s whatever the queue; \
                     at 120 ms it also takes half a round trip in which nothing leaves"
                },
            );
        }
    }
}

/// §5.3.4.2 of the draft: ProbeRTT leaves .98 of bw, which is paced at .99. This counts the 200 ms
/// alone, so the RTT must be short.
#[test]
fn probe_rtt_of_bbr3_costs_two_percent() {
    let ours = sawtooth::run(&fixed(12.0, 10, 240, 1500), "bbr3", 100, 400);
    Check {
        scheme: "bbr3",
        what: "12 Mbit/s, 20 ms, 240 packets, no jitter: utilisation",
        unit: "",
        source: "draft-ietf-ccwg-bbr §5.3.4.2 and §5.6.2: .98 x .99",
        outside: Outside::Difference(0.98 * 0.99, 0.01),
        ours: ours.utilisation,
    }
    .holds();
}

/// The mean time between rises of the queue above 50 packets, over seconds 50 to 350.
fn between_probes(scheme: &str) -> f64 {
    let options = Options {
        grid: Some(Duration::from_millis(20)),
        ..options(350.0, 0.0)
    };
    let outcome = networks::run(&path(240, 0), scheme, options);
    let late = &outcome.series[0].queue_packets[2500..];
    let rises = late.windows(2).filter(|w| w[0] < 50.0 && w[1] >= 50.0);
    300.0 / rises.count() as f64
}

/// There are 2 to 3 s from the end of a probe to REFILL (§5.3.3.8.2), then one round of REFILL and
/// three of UP, each longer by the queue that it builds: 0.12 + 0.45 s.
#[test]
fn bbr3_probes_every_two_or_three_seconds() {
    let check = |scheme, outside| Check {
        scheme,
        what: "12 Mbit/s, 120 ms, 240 packets: time between probes for bandwidth",
        unit: "s",
        source: RULES,
        outside,
        ours: between_probes(scheme),
    };
    let alone = "bbr3:probe_rtt_interval=600s";
    check(alone, Outside::Between(2.0 + 0.57, 3.0 + 0.57)).holds();
    check("bbr3", Outside::Between(2.0, 3.0)).misses_because(
        "ProbeRTT begins the wait again every 5 s (draft §5.3.4.4), which is seldom time for two probes",
    );
}

/// Utilisation of a link with 12 Mbit/s, 40 ms, a buffer of a BDP, and random loss with the
/// probability `loss`.
fn under_loss(scheme: &str, loss: f64) -> f64 {
    let mut network = fixed(12.0, 20, 40, 1500);
    network.links[0].loss = Some(Loss::Random { probability: loss });
    networks::metrics(&network, scheme, options(100.0, 20.0))
        .utilisation
        .expect("packets")
}

/// CACM 2016 fig. 8, and N. Cardwell about it on bbr-dev: while 1.25 (1 - p) is 1 or more, a probe
/// refreshes the estimate, and (1 - p) of the link arrives; from 20% on it collapses. This is true
/// of the cycle alone: with rounds of 40 packets, two intervals of 15% easily look like a
/// policer's.
#[test]
fn bbr_under_random_loss() {
    for (loss, outside) in [
        (0.01, Outside::Difference(0.99, 0.03)),
        (0.05, Outside::Difference(0.95, 0.03)),
        (0.15, Outside::Difference(0.85, 0.03)),
        (0.25, Outside::Between(0.0, 0.4)),
    ] {
        Check {
            scheme: "bbr:policer=off",
            what: &format!("12 Mbit/s, 40 ms, {}% lost: utilisation", 100.0 * loss),
            unit: "",
            source: "CACM 2016 fig. 8: 1 - p below 20%",
            outside,
            ours: under_loss("bbr:policer=off", loss),
        }
        .holds();
    }
}

/// The draft's simplified model (§5.3.3.8.3): a round of CRUISE gives up the share that it lost,
/// and a probe or ProbeRTT takes it back. These are about 2.6 s apart, 58 rounds of CRUISE and five
/// at full rate; ProbeRTT leaves .98. Above LossThresh a probe ends at once.
#[test]
fn bbr3_under_random_loss() {
    let model = |p: f64| {
        let share = 0.98 * (5.0 + (1.0 - (1.0 - p).powi(58)) / p) / 63.0;
        (1000.0 * share).round() / 1000.0
    };
    for (loss, outside) in [
        (0.005, Outside::Difference(model(0.005), 0.05)),
        (0.01, Outside::Difference(model(0.01), 0.05)),
        (0.05, Outside::Between(0.0, 0.3)),
    ] {
        Check {
            scheme: "bbr3",
            what: &format!("12 Mbit/s, 40 ms, {}% lost: utilisation", 100.0 * loss),
            unit: "",
            source: "draft-ietf-ccwg-bbr §5.3.3.8.3, its model of loss in CRUISE; LossThresh 2%",
            outside,
            ours: under_loss("bbr3", loss),
        }
        .holds();
    }
}

/// The share of `scheme` against a flow of `other` that began before it.
fn share(network: &Network, scheme: &str, other: &str, from: u64, to: u64) -> f64 {
    let mut network = network.clone();
    network.flows = vec![bulk(0, 1), bulk(0, 1)];
    network.flows[0].start = Time::from_millis(1000 * from);
    network.flows[1].scheme = Some(other.to_owned());
    let rows = networks::run(&network, scheme, options(to as f64, from as f64)).rows;
    let mbps = |flow| {
        let row = rows.iter().find(|r| r.flow == flow).expect("a flow");
        row.metrics.throughput_mbps.expect("packets")
    };
    mbps(0) / (mbps(0) + mbps(1))
}

/// The draft's goal for the last mile, 25 Mbit/s (§5.3.3.8.1): Reno and CUBIC reach the same rate
/// as BBR. The test also runs v1 against them, to show the difference.
#[test]
fn bbr3_shares_with_reno_and_cubic() {
    for bdp in [1, 2] {
        let network = fixed(24.0, 20, 80 * bdp, 1500);
        for other in ["cubic", "newreno"] {
            let v1 = share(&network, "bbr", other, 10, 170);
            println!("bbr against {other}, {bdp} BDP: {v1:.3} of the link");
            Check {
                scheme: "bbr3",
                what: &format!("against {other}, 24 Mbit/s, 40 ms, {bdp} BDP: its share"),
                unit: "",
                source: "draft-ietf-ccwg-bbr §5.3.3.8.2: Reno and CUBIC reach what BBR has",
                outside: Outside::Difference(0.5, 0.1),
                ours: share(&network, "bbr3", other, 10, 170),
            }
            .holds();
        }
    }
}

/// gomezgaona/bbr3, `experiments/fairness_time`, run 1: Linux's BBR v3 joins one Cubic on 1 Gbit/s,
/// 10 ms and a buffer of a BDP (1.31 MB). With iperf3, the means of the second half minute are 538
/// and 418 Mbit/s.
#[test]
fn bbr3_against_cubic_at_a_gigabit() {
    let network = fixed(1000.0, 5, 865, 1514);
    Check {
        scheme: "bbr3",
        what: "against cubic, 1 Gbit/s, 10 ms, 1 BDP: its share",
        unit: "",
        source: "gomezgaona/bbr3, fairness_time, run 1 (Linux 6.4, Mininet)",
        outside: Outside::Difference(0.56, 0.1),
        ours: share(&network, "bbr3", "cubic", 10, 40),
    }
    .misses_because(
        "Linux's tbf drops whole bursts of 44 packets (retransmissions come in 44s), so that a probe's overflow \
         hits one flow; here it hits both, and Cubic is cut at most probes, one every 63 round trips",
    );
}
