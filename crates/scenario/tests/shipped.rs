//! The scenarios that come with Headway: their documented properties, and their hashes, so that
//! their meaning does not change unnoticed.

use std::collections::BTreeSet;

use headway_cc::{Bytes, Duration, Rate, Time};
use headway_net::Loss;
use headway_scenario::{Network, QueueSpec, RateSpec, Scenario, shipped};

fn load(name: &str) -> Scenario {
    Scenario::load(name).unwrap_or_else(|e| panic!("{e}"))
}

/// Every shipped scenario, with all members of families.
fn all() -> impl Iterator<Item = Scenario> {
    let load_all = |name: &&str| Scenario::load_all(name).unwrap_or_else(|e| panic!("{e}"));
    shipped().iter().flat_map(load_all)
}

/// Results carry these hashes. If one changes, old and new results cannot be compared.
#[test]
fn hashes_match_the_table() {
    let table: String = all()
        .map(|s| format!("{} {}\n", s.hash(), s.name()))
        .collect();
    assert_eq!(table, include_str!("hashes.txt"));
}

#[test]
fn every_file_is_shipped_under_its_own_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut names: Vec<String> = shipped()
        .iter()
        .map(|name| format!("{name}.toml"))
        .collect();
    names.sort();
    assert_eq!(files, names);
    let loaded: BTreeSet<String> = all()
        .map(|s| match s.sweep() {
            Some(sweep) => sweep.family.clone(),
            None => s.name().to_owned(),
        })
        .collect();
    assert_eq!(loaded, shipped().iter().map(|n| (*n).to_owned()).collect());
    assert!(all().all(|s| !s.description().is_empty()));
}

#[test]
fn the_seed_decides_everything_that_varies() {
    for scenario in all() {
        let name = scenario.name();
        assert!(!scenario.varies().is_empty(), "{name}");
        assert_eq!(scenario.draw(1), scenario.draw(1), "{name}");
        assert_ne!(scenario.draw(1), scenario.draw(2), "{name}");
        // There are more flows if they come and go, one after another.
        let comes_and_goes = [
            "bbr-training",
            "bbr-validation",
            "bbr-team-training",
            "bbr-team-validation",
            "owl-training-rivals",
        ];
        if !comes_and_goes.contains(&name.split(':').next().unwrap_or(name)) {
            assert_eq!(scenario.draw(1).flows.len(), scenario.flows(), "{name}");
        }
    }
    assert_eq!(load("lte-att").varies(), ["start time", "trace offset"]);
    assert_eq!(load("rax-1").varies(), ["start time", "host jitter"]);
    assert_eq!(
        load("rax-1-loss").varies(),
        ["start time", "loss", "host jitter"]
    );
    assert_eq!(
        load("parking-lot").varies(),
        ["start time", "host jitter", "background traffic"]
    );
}

/// The figures of a network: rate, delay there and back, queue in packets, loss, flows.
fn figures(network: &Network) -> (RateSpec, Duration, Duration, QueueSpec, Option<Loss>, usize) {
    let [there, back] = &network.links[..] else {
        panic!("two links")
    };
    (
        there.rate.clone(),
        there.delay,
        back.delay,
        there.queue.clone(),
        there.loss,
        network.flows.len(),
    )
}

fn packets(n: u64) -> QueueSpec {
    QueueSpec::drop_tail(Some(n), None)
}

/// Rax, section 5: 20 Mbit/s, 50 ms round trip, a tenth of the BDP, packets of 1250 bytes, 1% loss.
#[test]
fn rax_matches_the_paper() {
    let one_percent = Some(Loss::Random { probability: 0.01 });
    for (name, flows, loss) in [
        ("rax-1", 1, None),
        ("rax-2", 2, None),
        ("rax-4", 4, None),
        ("rax-1-loss", 1, one_percent),
        ("rax-2-loss", 2, one_percent),
    ] {
        let network = load(name).draw(1);
        let (rate, ms) = (Rate::from_mbps(20.0), Duration::from_millis(25));
        assert_eq!(
            figures(&network),
            (RateSpec::Fixed(rate), ms, ms, packets(10), loss, flows),
            "{name}"
        );
        assert_eq!(network.packet_size, Bytes::new(1250));
        assert_eq!(rate.bytes_in(ms + ms), Bytes::new(10 * 10 * 1250)); // ten packets are a tenth
        assert_eq!(network.host_jitter, rate.time_to_send(network.packet_size));
        assert!(network.flows.iter().all(|f| f.start.as_secs_f64() < 0.05));
    }
}

/// "Interval", table 1, as it is printed: mean bandwidth in Mbit/s, one-way delay, loss, packets.
/// The bandwidth of "High BDP" is printed in MBps.
#[test]
fn interval_matches_table_1() {
    let one_percent = Some(Loss::Random { probability: 0.01 });
    for (name, mbps, one_way_ms, loss, queue) in [
        ("pantheon-default", 12.0, 60, None, 64),
        ("cellular-static", 21.0, 20, None, 100),
        ("cellular-walking", 16.0, 20, None, 100),
        ("cellular-taxi", 21.0, 20, one_percent, 100),
        ("cellular-bus", 19.8, 20, one_percent, 100),
        ("low-bdp", 2.64, 88, None, 40),
        ("high-bdp", 5.65 * 8.0, 200, None, 40),
        ("high-bdp-mbit", 5.65, 200, None, 40),
    ] {
        let (rate, ms) = (Rate::from_mbps(mbps), Duration::from_millis(one_way_ms));
        let of = |scenario: Scenario, trace: bool| {
            assert_eq!(scenario.seconds(), 60.0);
            let network = scenario.draw(1);
            let (served, there, back, queued, lost, flows) = figures(&network);
            assert_eq!(
                (there, back, queued, lost, flows),
                (ms, ms, packets(queue), loss, 1),
                "{name}"
            );
            assert_eq!(network.links[1].rate, RateSpec::Fixed(rate), "{name}");
            match served {
                RateSpec::Trace { trace: spec, .. } if trace => {
                    assert_eq!(spec.mean, Some(rate), "{name}");
                    assert_eq!(spec.name, name.replace("cellular", "nyc") + ".down");
                }
                RateSpec::Fixed(fixed) if !trace => {
                    assert_eq!(fixed, rate, "{name}");
                    let packet_ms = rate.time_to_send(network.packet_size).as_secs_f64() * 1e3;
                    assert!(
                        (network.host_jitter.as_secs_f64() * 1e3 / packet_ms - 1.0).abs() < 0.02
                    );
                }
                other => panic!("{name}: {other:?}"),
            }
        };
        let cellular = name.starts_with("cellular");
        of(load(name), cellular);
        if cellular {
            of(load(&format!("{name}-flat")), false);
        }
    }
}

/// "BBR tuning", sections V-A and V-C.
#[test]
fn bbr_changes_match_the_paper() {
    let at = |seconds: u64| Time::from_millis(seconds * 1000);
    let step = load("bbr-rtt-step").draw(1);
    let rtt = |network: &Network| network.links[0].delay + network.links[1].delay;
    assert_eq!(step.links[0].rate, RateSpec::Fixed(Rate::from_mbps(20.0)));
    assert_eq!(rtt(&step), Duration::from_millis(40));
    let (changes, delay) = (&step.changes, Some(Duration::from_millis(200)));
    assert_eq!(changes.iter().map(|c| c.link).collect::<Vec<_>>(), [0, 1]);
    assert!(changes.iter().all(|c| (c.at, c.delay) == (at(11), delay)));

    let step = load("bbr-rate-step").draw(1);
    assert_eq!(step.links[0].rate, RateSpec::Fixed(Rate::from_mbps(20.0)));
    assert_eq!(rtt(&step), Duration::from_millis(40));
    assert_eq!(step.changes.len(), 1);
    assert_eq!(
        (step.changes[0].at, step.changes[0].rate),
        (at(3), Some(Rate::from_mbps(5.0)))
    );

    let joins = load("bbr-join-leave");
    let flows = joins.draw(1).flows;
    let jitter = Duration::from_millis(50);
    let mut all_five = Duration::from_secs_f64(joins.seconds());
    for (i, flow) in flows.iter().enumerate() {
        let joined = at(5 * i as u64);
        assert!(flow.start >= joined && flow.start <= joined + jitter);
        all_five = all_five.min(flow.stop.unwrap_or(at(65)).since(flows[4].start));
    }
    assert!(all_five >= Duration::from_secs(20));
    let leaves: Vec<_> = flows.iter().map(|f| f.stop).collect();
    assert_eq!(
        leaves,
        [Some(at(45)), Some(at(50)), Some(at(55)), Some(at(60)), None]
    );

    for (name, least_s, most_s) in [("bbr-epochs", 3.0, 5.0), ("bbr-training", 1.0, 50.0)] {
        let network = load(name).draw_for(1, Duration::from_secs(10_000));
        let there = || network.changes.iter().filter(|c| c.link == 0);
        let rates = there().filter_map(|c| c.rate).map(|r| r.as_mbps());
        assert!(rates.clone().all(|r| (1.0..=10.0).contains(&r)), "{name}");
        let times: Vec<f64> = there()
            .filter(|c| c.rate.is_some())
            .map(|c| c.at.as_secs_f64())
            .collect();
        let mean_gap = times.last().unwrap() / times.len() as f64;
        assert!(
            (mean_gap / ((least_s + most_s) / 2.0) - 1.0).abs() < 0.15,
            "{name}: {mean_gap}"
        );
        // The round trip is both ways together.
        let rtts = there()
            .filter_map(|c| c.delay)
            .map(|d| 2e3 * d.as_secs_f64());
        assert!(rtts.clone().all(|ms| (10.0..=50.0).contains(&ms)), "{name}");
        assert_eq!(
            network.changes.iter().filter(|c| c.link == 1).count(),
            rtts.count(),
            "{name}"
        );
    }
}

/// Owl, section VII: rate in Mbit/s, round trip, length of a run.
#[test]
fn owl_families_match_the_paper() {
    for (name, mbps, rtt_ms, seconds) in [
        ("owl-buffer", 50.0, 30, Some(100.0)),
        ("owl-fairness", 50.0, 30, Some(100.0)),
        ("owl-nash", 100.0, 30, Some(100.0)),
        ("owl-duration", 50.0, 30, None),
        ("owl-geni", 100.0, 3, Some(60.0)),
    ] {
        for member in Scenario::load_all(name).unwrap() {
            let network = member.draw(1);
            assert_eq!(
                network.links[0].rate,
                RateSpec::Fixed(Rate::from_mbps(mbps))
            );
            let rtt = network.links[0].delay + network.links[1].delay;
            assert_eq!(rtt, Duration::from_millis(rtt_ms), "{name}");
            assert_eq!(
                member.seconds(),
                seconds.unwrap_or(member.seconds()),
                "{name}"
            );
        }
    }
    let all = |name| Scenario::load_all(name).unwrap();
    // Table II: 3 to 2000 packets.
    let buffers: Vec<u64> = all("owl-buffer")
        .iter()
        .map(|s| s.draw(1).links[0].queue.bytes.unwrap().get())
        .collect();
    assert_eq!(
        (buffers[0], buffers[buffers.len() - 1]),
        (3 * 1500, 2000 * 1500)
    );
    assert!(buffers.is_sorted() && buffers.contains(&150_000));
    let flows = |name| all(name).iter().map(Scenario::flows).collect::<Vec<_>>();
    assert_eq!(flows("owl-nash"), [2, 3]);
    assert_eq!(flows("owl-fairness")[0], 2);
    assert_eq!(flows("owl-geni")[0], 1);
}

#[test]
fn both_traces_of_a_cellular_link_share_a_random_offset() {
    for (name, length_s) in [
        ("lte-verizon", 140.0),
        ("lte-tmobile", 474.0),
        ("lte-att", 786.0),
        ("synthetic-att", 60.0),
    ] {
        let scenario = load(name);
        let mut offsets: Vec<f64> = (0..200)
            .map(|seed| {
                let network = scenario.draw(seed);
                assert_eq!(network.links[0].queue, packets(1000));
                let [down, up] = [0, 1].map(|i| match &network.links[i] {
                    link if link.delay != Duration::from_millis(20) => {
                        panic!("{name}: {:?}", link.delay)
                    }
                    link => match &link.rate {
                        RateSpec::Trace {
                            trace,
                            offset,
                            once: false,
                        } => (trace.name.clone(), *offset),
                        other => panic!("{name}: {other:?}"),
                    },
                });
                assert_eq!([down.0.as_str(), up.0.as_str()], scenario.traces()[..]);
                assert_eq!(down.1, up.1);
                assert_eq!(scenario.trace_offset(seed), Some(down.1));
                down.1.as_secs_f64() / length_s
            })
            .collect();
        offsets.sort_by(f64::total_cmp);
        // If offsets are uniform, the Kolmogorov-Smirnov distance of 200 draws exceeds 0.14 once in
        // 1000.
        let distance = offsets
            .iter()
            .enumerate()
            .map(|(i, x)| (x - (i as f64 + 0.5) / 200.0).abs())
            .fold(0.0, f64::max);
        assert!(distance < 0.14, "{name}: {distance}");
    }
}

#[test]
fn unknown_names_and_files_are_refused_in_one_line() {
    let refused = |name: &str| Scenario::load(name).unwrap_err().to_string();
    assert_eq!(
        refused("lte-verison"), // codespell:ignore verison
        "unknown scenario 'lte-verison'; did you mean 'lte-verizon'?, or give the path of a .toml file"
    );
    assert_eq!(
        refused("no/such\nfile"),
        "cannot read the scenario 'no/such\\nfile': No such file or directory (os error 2)"
    );
}
