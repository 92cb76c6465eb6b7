//! The scenarios with Owl's switches: the paper's figures, and the graph of its network.

use std::collections::BTreeSet;

use headway_cc::{Bytes, Duration, Rate};
use headway_scenario::{Network, Part, Pattern, QueueSpec, RateSpec, Scenario};

/// The path of seven switches.
const PATH: [&str; 7] = ["s0", "s3", "s4", "s5", "s13", "s10", "s11"];

fn draw(name: &str, seed: u64) -> Network {
    let scenario = Scenario::load(name).unwrap_or_else(|e| panic!("{e}"));
    scenario.draw(seed)
}

/// The links that the only flow's data crosses, and those of its acknowledgements.
fn ways(network: &Network) -> [Vec<usize>; 2] {
    let [flow] = &network.flows[..] else {
        panic!("one flow")
    };
    let nodes = flow.route.as_deref();
    let routes = network.routes();
    [
        routes.there(flow.from, flow.to, nodes).unwrap(),
        routes.back(flow.from, flow.to, nodes).unwrap(),
    ]
}

fn base_rtt(network: &Network) -> Duration {
    let both = ways(network).concat();
    both.iter().map(|&l| network.links[l].delay).sum()
}

fn switches(network: &Network) -> Vec<&str> {
    let flow = &network.flows[0];
    let switches = network
        .routes()
        .switches(flow.from, flow.to, flow.route.as_deref());
    switches
        .into_iter()
        .map(|n| network.nodes[n].as_str())
        .collect()
}

/// The links between switches, each pair once.
fn edges(network: &Network) -> BTreeSet<(usize, usize)> {
    let between = network.links.iter().filter(|l| l.from < 14 && l.to < 14);
    between
        .map(|l| (l.from.min(l.to), l.from.max(l.to)))
        .collect()
}

/// The graph of the literature: 14 nodes, 21 links, two nodes of degree 4, two of degree 2, the
/// others 3; the longest shortest path has three links.
#[test]
fn nsfnet_matches_the_literature() {
    let network = draw("owl-nsfnet:known=7", 1);
    let edges = edges(&network);
    assert_eq!(edges.len(), 21);
    let mut degrees = [0; 14];
    for &(a, b) in &edges {
        degrees[a] += 1;
        degrees[b] += 1;
    }
    let with = |degree: i32| degrees.iter().filter(|&&d| d == degree).count();
    assert_eq!([with(2), with(3), with(4)], [2, 10, 2]);
    let routes = network.routes();
    let pairs = (0..14).flat_map(|a| (0..14).map(move |b| (a, b)));
    let longest = pairs
        .map(|(a, b)| routes.between(a, b).unwrap().len())
        .max();
    assert_eq!(longest, Some(3));
    // Another numbering of its nodes is common, too: this is the same graph, renamed.
    const OTHER: [(usize, usize); 21] = [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 7),
        (2, 5),
        (3, 4),
        (3, 10),
        (4, 5),
        (4, 6),
        (5, 9),
        (5, 13),
        (6, 7),
        (7, 8),
        (8, 9),
        (8, 11),
        (8, 12),
        (10, 11),
        (10, 12),
        (11, 13),
        (12, 13),
    ];
    let renamed = |n: usize| [0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 8, 9, 11, 12][n];
    let other = OTHER.map(|(a, b)| (renamed(a).min(renamed(b)), renamed(a).max(renamed(b))));
    assert_eq!(edges, other.into());
}

/// Section VII.B: 7 switches, 100 Mbit/s, 30 ms, a buffer of one BDP, 40% load, k of 7 known.
#[test]
fn owl_nsfnet_matches_the_paper() {
    let rate = Rate::from_mbps(100.0);
    for k in 0..=7 {
        let network = draw(&format!("owl-nsfnet:known={k}"), 5);
        assert_eq!(switches(&network), PATH);
        assert_eq!(network.switches.as_ref().unwrap().known.len(), k);
        assert_eq!(base_rtt(&network), Duration::from_millis(30));
        let buffer = QueueSpec::drop_tail(None, Some(rate.bytes_in(Duration::from_millis(30))));
        let [there, _] = ways(&network);
        let between: Vec<usize> = there[1..7].to_vec();
        for link in network.links.iter().filter(|l| l.from < 14 && l.to < 14) {
            assert_eq!((&link.rate, &link.queue), (&RateSpec::Fixed(rate), &buffer));
        }
        // There is one source for each link of the path between switches, and no other.
        let routes = network.routes();
        let crossed: Vec<usize> = network
            .cross
            .iter()
            .flat_map(|c| {
                assert_eq!(
                    (c.rate, &c.pattern),
                    (Rate::from_mbps(40.0), &Pattern::Poisson)
                );
                let way = routes.between(c.from, c.to).unwrap();
                way.into_iter()
                    .filter(|l| network.links[*l].rate == RateSpec::Fixed(rate))
            })
            .collect();
        assert_eq!(
            crossed.iter().collect::<BTreeSet<_>>(),
            between.iter().collect()
        );
        assert_eq!(crossed.len(), 6);
    }
    // Switches of the path that are not neighbours have no direct link.
    let network = draw("owl-nsfnet:known=7", 1);
    let at = |name: &str| network.nodes.iter().position(|n| n == name).unwrap();
    let edges = edges(&network);
    for (i, a) in PATH.iter().enumerate() {
        for b in &PATH[(i + 2).min(7)..] {
            let (a, b) = (at(a), at(b));
            assert!(!edges.contains(&(a.min(b), a.max(b))));
        }
    }
}

/// Fig. 6c: rates are uniform from 50 to 100 Mbit/s, drawn for each link; load and buffer follow
/// them.
#[test]
fn owl_random_draws_each_link() {
    let mut drawn = Vec::new();
    for seed in 0..50 {
        let network = draw("owl-random:switches=5", seed);
        assert_eq!(switches(&network), ["s1", "s2", "s3", "s4", "s5"]);
        assert_eq!(network.switches.as_ref().unwrap().known.len(), 5);
        assert_eq!(base_rtt(&network), Duration::from_millis(20));
        let [there, back] = ways(&network);
        assert_eq!((network.cross.len(), there.len()), (4, 6));
        for (l, cross) in there[1..5].iter().zip(&network.cross) {
            let RateSpec::Fixed(rate) = network.links[*l].rate else {
                panic!("{network:?}")
            };
            let mbps = rate.as_mbps();
            assert!((50.0..=100.0).contains(&mbps));
            assert!((cross.rate.as_mbps() / mbps - 0.4).abs() < 1e-6);
            let Some(bytes) = network.links[*l].queue.bytes else {
                panic!("{network:?}")
            };
            let product = rate.bytes_in(Duration::from_millis(20));
            assert!((bytes.as_f64() - product.as_f64()).abs() < 2.0);
            drawn.push(mbps);
        }
        let rates = |way: &[usize]| -> Vec<RateSpec> {
            way.iter().map(|&l| network.links[l].rate.clone()).collect()
        };
        let mut reversed = rates(&back);
        reversed.reverse();
        assert_eq!(rates(&there), reversed);
    }
    // For uniform draws, the standard deviation of the mean of 200 is 1.02 Mbit/s.
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    assert!((mean - 75.0).abs() < 4.1, "{mean}");
    let different: BTreeSet<u64> = drawn.iter().map(|m| m.to_bits()).collect();
    assert_eq!(different.len(), drawn.len());
}

/// Section VII.A: the cellular link is the last of seven switches', with queues of 1000 packets and
/// 20% known; it uses only seconds that are kept for evaluation.
#[test]
fn owl_lte_is_held_out() {
    for (name, trace) in [
        ("owl-lte-verizon", "Verizon-LTE-short"),
        ("owl-lte-tmobile", "TMobile-LTE-short"),
        ("owl-lte-att", "ATT-LTE-driving"),
        ("owl-lte-att-2016", "ATT-LTE-driving-2016"),
    ] {
        let scenario = Scenario::load(name).unwrap();
        let parts: Vec<(String, Part)> = scenario.trace_specs().map(|t| (t.name, t.part)).collect();
        let [down, up] = ["down", "up"].map(|way| format!("{trace}.{way}"));
        let held = |name: &String| (name.clone(), Part::Evaluation);
        assert_eq!(parts, [held(&down), held(&up)]);
        let network = scenario.draw(1);
        assert_eq!(switches(&network), PATH);
        assert_eq!(base_rtt(&network), Duration::from_millis(40));
        for way in ways(&network) {
            for &l in &way {
                let link = &network.links[l];
                if matches!(link.rate, RateSpec::Fixed(r) if r > Rate::from_mbps(100.0)) {
                    continue;
                }
                let queue = QueueSpec::drop_tail(Some(1000), None);
                assert_eq!(link.queue, queue, "{}", link.name);
            }
        }
        let [there, back] = ways(&network);
        for (l, file) in [(there[7], down), (back[0], up)] {
            assert!(
                matches!(&network.links[l].rate, RateSpec::Trace { trace, .. } if trace.name == file)
            );
        }
        assert_eq!(network.packet_size, Bytes::new(1500));
    }
}
