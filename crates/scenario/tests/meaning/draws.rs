//! The draws of a seed.

use headway_cc::Time;

use crate::{ONE, parse};

#[test]
fn ranges_are_drawn_by_name_and_listed() {
    let base = parse(
        "schema=1\nname='r'\nseconds=10\n[bottleneck]\nrate='1Mbps..100Mbps'\ndelay='1ms..100ms'\nqueue='5pkt..500pkt'\n\
         [[flow]]\ncount=3\nstart='0s..1s'",
    );
    assert_eq!(
        base.varies(),
        [
            "flow.0.start",
            "link.bottleneck.delay",
            "link.bottleneck.queue",
            "link.bottleneck.rate"
        ]
    );
    let network = base.draw(5);
    assert_eq!(network.links[0].delay, network.links[1].delay); // symmetric by default
    let starts: Vec<Time> = network.flows.iter().map(|f| f.start).collect();
    assert!(starts[0] != starts[1] && starts[1] != starts[2] && starts[0] != starts[2]);
    // The draws of another component do not shift these.
    let more = parse(&format!(
        "{}\n[[cross]]\nrate='1kbps..1Mbps'\npattern='poisson'",
        base.text()
    ));
    assert_eq!(more.draw(5).links, network.links);
    assert_eq!(more.draw(5).flows, network.flows);
}

#[test]
fn a_scenario_in_which_nothing_varies_is_one_run() {
    let still = parse(&ONE.replace("loss = 0.01", ""));
    assert!(still.varies().is_empty());
    assert_eq!(still.draw(1), still.draw(2));
}
