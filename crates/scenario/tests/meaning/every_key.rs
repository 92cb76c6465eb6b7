//! Every key of the schema reaches the network.

use headway_cc::{Bytes, Duration, Rate, Time};
use headway_net::Loss;
use headway_scenario::{Change, Part, Pattern, QueueSpec, RateSpec, Source, TraceSpec, Transport};

use crate::parse;

#[test]
fn every_key_reaches_the_network() {
    let scenario = parse(
        r#"
        schema = 1
        name = "all"
        seconds = 30
        training = false
        packet_size = "1000B"
        ack_size = "40B"
        transport = "linux"
        [[link]]
        from = "a"
        to = "b"
        duplex = true
        rate = "5Mbps"
        delay = "7ms"
        loss = "2%"
        queue = { kind = "droptail", packets = "9pkt", bytes = "8kB" }
        [[link]]
        name = "cell"
        from = "b"
        to = "c"
        trace = "some.down"
        mean = "21Mbps"
        once = true
        part = "evaluation"
        queue = "infinite"
        [[link]]
        from = "c"
        to = "b"
        [[flow]]
        count = 2
        scheme = "cubic"
        from = "a"
        to = "c"
        start = "1s"
        stagger = "2s"
        stop = "20s"
        bytes = "3pkt"
        receive_window = "5pkt"
        [[flow]]
        from = "c"
        to = "a"
        on = "1s"
        off = "500ms"
        [[flow]]
        from = "a"
        to = "b"
        rate = "1Mbps"
        receive_window = "64KiB"
        [[cross]]
        from = "c"
        to = "b"
        rate = "300kbps"
        packet_size = "200B"
        pattern = "onoff"
        on = "2s"
        off = "3s"
        start = "4s"
        stop = "5s"
        [[at]]
        time = "12s"
        link = "cell"
        delay = "9ms"
        [[at]]
        time = "11s"
        link = "a-b"
        rate = "6Mbps"
        loss = 1
        "#,
    );
    assert!(!scenario.may_train());
    let network = scenario.draw(1);
    let (ms, s) = (Duration::from_millis, |s: u64| Time::from_millis(s * 1000));
    assert_eq!(network.nodes, ["a", "b", "c"]);
    let links: Vec<(&str, usize, usize)> = network
        .links
        .iter()
        .map(|l| (l.name.as_str(), l.from, l.to))
        .collect();
    assert_eq!(
        links,
        [
            ("a-b", 0, 1),
            ("a-b.back", 1, 0),
            ("cell", 1, 2),
            ("c-b", 2, 1)
        ]
    );
    for link in &network.links[..2] {
        assert_eq!(
            (&link.rate, link.delay, link.loss),
            (
                &RateSpec::Fixed(Rate::from_mbps(5.0)),
                ms(7),
                Some(Loss::Random { probability: 0.02 })
            )
        );
        assert_eq!(
            link.queue,
            QueueSpec::drop_tail(Some(9), Some(Bytes::new(8000)))
        );
    }
    assert_eq!(
        network.links[2].rate,
        RateSpec::Trace {
            trace: TraceSpec {
                name: "some.down".into(),
                part: Part::Evaluation,
                mean: Some(Rate::from_mbps(21.0)),
            },
            offset: Duration::ZERO,
            once: true,
        }
    );
    assert_eq!(
        (&network.links[3].rate, &network.links[3].queue),
        (&RateSpec::Unlimited, &QueueSpec::INFINITE)
    );
    let flows: Vec<_> = network
        .flows
        .iter()
        .map(|f| {
            (
                f.scheme.as_deref(),
                f.from,
                f.to,
                f.start,
                f.stop,
                f.source.clone(),
            )
        })
        .collect();
    let finite = Source::Finite(Bytes::new(3000));
    assert_eq!(
        flows,
        [
            (Some("cubic"), 0, 2, s(1), Some(s(20)), finite.clone()),
            (Some("cubic"), 0, 2, s(3), Some(s(20)), finite),
            (
                None,
                2,
                0,
                s(0),
                None,
                Source::OnOff {
                    on: ms(1000),
                    off: ms(500)
                }
            ),
            (None, 0, 1, s(0), None, Source::Rate(Rate::from_mbps(1.0))),
        ]
    );
    let windows: Vec<_> = network.flows.iter().map(|f| f.receive_window).collect();
    let (packets, bytes) = (Some(Bytes::new(5000)), Some(Bytes::new(65_536)));
    assert_eq!(windows, [packets, packets, None, bytes]);
    let cross = &network.cross[0];
    assert_eq!(
        (cross.from, cross.to, cross.start, cross.stop),
        (2, 1, s(4), Some(s(5)))
    );
    assert_eq!(
        (cross.rate, cross.packet_size),
        (Rate::from_bps(300_000), Bytes::new(200))
    );
    assert_eq!(
        cross.pattern,
        Pattern::OnOff {
            on: ms(2000),
            off: ms(3000)
        }
    );
    let change = |link| Change {
        at: s(11),
        link,
        rate: Some(Rate::from_mbps(6.0)),
        delay: None,
        loss: Some(1.0),
    };
    let later = Change {
        at: s(12),
        link: 2,
        rate: None,
        delay: Some(ms(9)),
        loss: None,
    };
    assert_eq!(network.changes, [change(0), change(1), later]);
    assert_eq!(
        (network.packet_size, network.ack_size),
        (Bytes::new(1000), Bytes::new(40))
    );
    assert_eq!(network.transport, Transport::Linux);
}
