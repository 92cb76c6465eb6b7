//! The scenarios that come with Headway: what they promise, and that their meaning does not change unnoticed.

use std::collections::BTreeSet;

use headway_cc::{Bytes, Duration, Rate};
use headway_net::Loss;
use headway_scenario::{Network, QueueSpec, RateSpec, Scenario, shipped};

fn load(name: &str) -> Scenario {
    Scenario::load(name).unwrap_or_else(|e| panic!("{e}"))
}

/// Every shipped scenario, families as all their members.
fn all() -> impl Iterator<Item = Scenario> {
    let load_all = |name: &&str| Scenario::load_all(name).unwrap_or_else(|e| panic!("{e}"));
    shipped().iter().flat_map(load_all)
}

/// Results carry these hashes. A new one says that old and new results cannot be compared.
#[test]
fn hashes_are_those_of_the_table() {
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
        assert_eq!(scenario.draw(1).flows.len(), scenario.flows(), "{name}");
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

/// Rate, delay there and back, queue in packets, loss, flows.
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

/// Rax, section 5: 20 Mbit/s, 50 ms round trip, a tenth of the product, packets of 1250 bytes, 1% loss.
#[test]
fn rax_is_the_papers_link() {
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

/// "Interval", table 1: 12 Mbit/s, 60 ms one way, no loss, 64 packets.
#[test]
fn pantheons_default_is_table_1s() {
    let network = load("pantheon-default").draw(1);
    let (rate, ms) = (Rate::from_mbps(12.0), Duration::from_millis(60));
    assert_eq!(
        figures(&network),
        (RateSpec::Fixed(rate), ms, ms, packets(64), None, 1)
    );
    assert_eq!(network.links[1].rate, RateSpec::Fixed(rate));
    assert_eq!(network.host_jitter, rate.time_to_send(network.packet_size));
}

#[test]
fn both_traces_of_a_cellular_link_begin_together_and_anywhere() {
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
        // Uniform: the Kolmogorov-Smirnov distance of 200 draws is over 0.14 once in 1000.
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
        refused("lte-verison"),
        "unknown scenario 'lte-verison'; did you mean 'lte-verizon'?, or give the path of a .toml file"
    );
    assert_eq!(
        refused("no/such\nfile"),
        "cannot read the scenario 'no/such\\nfile': No such file or directory (os error 2)"
    );
}
