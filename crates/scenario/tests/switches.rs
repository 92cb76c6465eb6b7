//! The draw of the switches that are known.

use std::collections::BTreeSet;

use headway_cc::{Duration, Time};
use headway_scenario::Scenario;

/// A path of seven switches, `s1` to `s7`, and a flow over it.
fn seven(switches: &str) -> Scenario {
    let nodes = ["a", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "b"];
    let links: String = nodes
        .windows(2)
        .map(|n| {
            let [from, to] = n else { unreachable!() };
            format!(
                "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10Mbps\"\nduplex = true\n"
            )
        })
        .collect();
    let flow = "[[flow]]\nfrom = \"a\"\nto = \"b\"\n";
    let text = format!("schema = 1\nname = \"seven\"\nseconds = 9\n{links}{flow}{switches}");
    Scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}"))
}

/// The names of the known switches.
fn known(scenario: &Scenario, seed: u64) -> BTreeSet<String> {
    let network = scenario.draw(seed);
    let nodes = network.switches.expect("switches").known.into_iter();
    nodes.map(|n| network.nodes[n].clone()).collect()
}

#[test]
fn a_count_is_exact_and_each_switch_as_likely_as_any_other() {
    const SEEDS: u64 = 700;
    let mut smaller: Vec<BTreeSet<String>> = vec![BTreeSet::new(); SEEDS as usize];
    for k in 0..=7 {
        let scenario = seven(&format!("[switches]\nknown = {k}\n"));
        let mut times = [0; 7];
        for seed in 0..SEEDS {
            let known = known(&scenario, seed);
            assert_eq!(known.len(), k);
            for name in &known {
                let number: usize = name[1..].parse().unwrap();
                times[number - 1] += 1;
            }
            // A larger number only adds switches, so that members of a sweep are compared on the
            // same ones.
            let before = &mut smaller[seed as usize];
            assert!(known.is_superset(before));
            *before = known;
        }
        // The number is binomial: four standard deviations of 700 x k/7 x (1 - k/7).
        let share = k as f64 / 7.0;
        let spread = 4.0 * (700.0 * share * (1.0 - share)).sqrt();
        for n in times {
            assert!(
                (f64::from(n) - 100.0 * k as f64).abs() <= spread,
                "{times:?}"
            );
        }
        let draws: BTreeSet<_> = (0..100).map(|seed| known(&scenario, seed)).collect();
        assert_eq!(draws.len() > 1, (1..7).contains(&k));
        assert_eq!(scenario.varies().is_empty(), !(1..7).contains(&k));
    }
}

#[test]
fn a_share_is_kept_on_average() {
    let scenario = seven("[switches]\nknown = \"20%\"\n");
    assert_eq!(scenario.varies(), ["known switches"]);
    let counts: Vec<usize> = (0..2000).map(|seed| known(&scenario, seed).len()).collect();
    assert!(counts.iter().all(|&n| n == 1 || n == 2));
    // 20% of 7 are 1.4; the standard deviation of the mean of 2000 draws is 0.011.
    let mean = counts.iter().sum::<usize>() as f64 / 2000.0;
    assert!((mean - 1.4).abs() < 0.044, "{mean}");
    for (share, count) in [("0%", 0), ("100%", 7), ("28.571428571%", 2)] {
        let scenario = seven(&format!("[switches]\nknown = \"{share}\"\n"));
        assert!(
            (0..100).all(|seed| known(&scenario, seed).len() == count),
            "{share}"
        );
    }
    let any = seven("[switches]\nknown = \"0%..100%\"\n");
    let counts: BTreeSet<usize> = (0..200).map(|seed| known(&any, seed).len()).collect();
    assert_eq!(counts, (0..=7).collect());
    assert_eq!(any.varies(), ["known switches", "switches.known"]);
}

#[test]
fn equal_meaning_has_equal_hash_and_times_have_defaults() {
    let hash = |text: &str| seven(text).hash().to_owned();
    assert_eq!(
        hash("[switches]\nknown = 7"),
        hash("[switches]\nknown = \"100%\"\nperiod = \"1s\"\nlatency = \"0s\"")
    );
    assert_ne!(hash("[switches]\nknown = 1"), hash("[switches]\nknown = 2"));
    assert_ne!(hash("[switches]\nknown = 0"), hash(""));
    assert_ne!(
        hash("[switches]\nknown = 7"),
        hash("[switches]\nknown = 7\nuntil = \"30s\"")
    );
    let switches = seven("[switches]\nknown = 3\nlatency = \"50ms\"\nuntil = \"30s\"")
        .draw(1)
        .switches
        .unwrap();
    assert_eq!(switches.period, Duration::from_secs(1));
    assert_eq!(switches.latency, Duration::from_millis(50));
    assert_eq!(switches.until, Some(Time::from_nanos(30_000_000_000)));
    assert_eq!(seven("").draw(1).switches, None);
}

#[test]
fn mistakes_are_refused_in_one_line() {
    let refused = |rest: &str| {
        let link = "rate = '1Mbps'\nduplex = true\n";
        let text = format!(
            "schema = 1\nname = 'x'\nseconds = 9\n[[link]]\nfrom = 'a'\nto = 's'\n{link}[[link]]\nfrom = 's'\nto = 'b'\n{link}\
             [[flow]]\nfrom = 'a'\nto = 'b'\n{rest}"
        );
        Scenario::parse(&text, "x.toml").unwrap_err().to_string()
    };
    for (rest, want) in [
        (
            "[switches]\n",
            "x.toml:17: switches: known is missing; write for example known = \"20%\"",
        ),
        (
            "[switches]\nknown = 2",
            "x.toml:18: switches.known: 2 is out of range; write a whole number from 0 to 1",
        ),
        (
            "[switches]\nknown = '20'",
            "x.toml:18: switches.known: '20' is not a probability from 0 to 1",
        ),
        (
            "[switches]\nknown = '1/7'",
            "x.toml:18: switches.known: '1/7' is not a probability; write for example \"0.01\"",
        ),
        (
            "[switches]\nknown = 1\nperiod = '0s'",
            "x.toml:19: switches.period: '0s' is not a time from 1ns to 1000000s",
        ),
        (
            "[switches]\nknow = 1",
            "x.toml:18: switches.know: unknown key; did you mean 'known'?",
        ),
        (
            "[[cross]]\nfrom = 's'\nto = 'b'\nrate = '1kbps'\n[switches]\nknown = 1",
            "x.toml:21: switches: 's' is a switch, and traffic begins or ends there; give that a node of its own",
        ),
    ] {
        assert_eq!(refused(rest), want);
    }
    let short =
        "schema = 1\nname = 'x'\nseconds = 9\n[bottleneck]\nrate = '1Mbps'\n[switches]\nknown = 1";
    assert_eq!(
        Scenario::parse(short, "x.toml").unwrap_err().to_string(),
        "x.toml:6: switches: no flow under test crosses a switch; write [[link]] with nodes between its ends"
    );
}
