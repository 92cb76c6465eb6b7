//! The features of links, and the links that a route takes.

use headway_cc::{Bytes, Duration};
use headway_net::{Jitter, Loss, Reorder};

use crate::{ONE, parse};

#[test]
fn loss_bursts_jitter_and_reordering_are_read() {
    let ms = Duration::from_millis;
    let text = ONE.replace(
        "loss = 0.01",
        "loss = {kind='gilbert-elliott',to_bad='1%',to_good=0.3}\njitter = '5ms'\nreorder = {probability=0.01,delay='7ms'}",
    );
    let scenario = parse(&text);
    assert_eq!(scenario.varies(), ["loss", "jitter", "reordering"]);
    let link = &scenario.draw(1).links[0];
    let bursts = Loss::GilbertElliott {
        to_bad: 0.01,
        to_good: 0.3,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    assert_eq!(link.loss, Some(bursts));
    assert_eq!(link.jitter, Some(Jitter::Uniform { most: ms(5) }));
    let reorder = Reorder {
        probability: 0.01,
        delay: ms(7),
    };
    assert_eq!(link.reorder, Some(reorder));
    let back = &scenario.draw(1).links[1];
    assert_eq!((back.loss, back.jitter, back.reorder), (None, None, None));
    let exponential = parse(&text.replace("'5ms'", "{mean='1ms..3ms'}"));
    assert_eq!(exponential.varies()[3..], ["link.bottleneck.jitter"]);
    assert!(matches!(
        exponential.draw(1).links[0].jitter,
        Some(Jitter::Exponential { mean }) if mean >= ms(1) && mean <= ms(3)
    ));
}

/// The route takes the long way round a triangle, and back the same way.
#[test]
fn a_flow_takes_the_nodes_that_it_names() {
    let edge = |from, to, delay| {
        format!("[[link]]\nfrom='{from}'\nto='{to}'\nduplex=true\nrate='8Mbps'\ndelay='{delay}'\n")
    };
    let links = [
        edge("a", "b", "10ms"),
        edge("b", "c", "10ms"),
        edge("a", "c", "1ms"),
    ]
    .concat();
    let text = format!(
        "schema=1\nname='x'\nseconds=9\n{links}[[flow]]\nroute=['a','b','c']\n[[cross]]\nroute=['c','b','a']\nrate='1kbps'"
    );
    let network = parse(&text).draw(1);
    let (flow, routes) = (&network.flows[0], network.routes());
    let (from, to, nodes) = (flow.from, flow.to, flow.route.as_deref());
    assert_eq!((from, to), (0, 2));
    assert_eq!(routes.there(from, to, nodes), Some(vec![0, 2]));
    assert_eq!(routes.back(from, to, nodes), Some(vec![3, 1]));
    assert_eq!(network.cross[0].route, Some(vec![2, 1, 0]));
    // Sizes in BDP follow it: 8 Mbit/s x 40 ms.
    let text = text.replacen("delay='10ms'", "delay='10ms'\nqueue='1bdp'", 1);
    let queue = &parse(&text).draw(1).links[0].queue;
    assert_eq!(queue.bytes, Some(Bytes::new(40_000)));
}
