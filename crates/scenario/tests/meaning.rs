//! What a scenario means: draws, sizes in bandwidth-delay products, and one hash for one meaning.

use headway_cc::{Bytes, Duration, Rate, Time};
use headway_net::queue::{
    AbcParams, CoDelParams, Discipline, FqCodelParams, PieParams, RedParams, StepParams, XcpParams,
};
use headway_net::{Jitter, Loss, Reorder};
use headway_scenario::{
    Change, Network, Part, Pattern, QueueSpec, RateSpec, Scenario, Source, TraceSpec, Transport,
};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test").unwrap_or_else(|e| panic!("{e}"))
}

const ONE: &str = r#"
schema = 1
name = "one"
seconds = 60
[bottleneck]
rate = "12Mbps"
delay = "20ms"
queue = "0.5bdp"
loss = 0.01
"#;

#[test]
fn one_meaning_has_one_hash() {
    let other_spellings = [
        // Order, comments, units.
        "name=\"one\"\nseconds=60.0\nschema=1\n# a comment\n[bottleneck]\nloss='1%'\nqueue='0.5bdp'\ndelay='0.02s'\nrate='12000kbps'",
        // Defaults and the name of no consequence.
        "schema=1\nname='two'\nseconds=60\ndescription='x'\ntransport='simple'\npacket_size='1500B'\n\
         [bottleneck]\nrate='12Mbps..12Mbps'\ndelay='20ms'\nqueue={kind='droptail',bytes='0.5bdp'}\nloss=0.01\n\
         [return]\ndelay='20ms'\n[[flow]]\nstart='0s'",
        // The long form of the same graph.
        "schema=1\nname='three'\nseconds=60\n\
         [[link]]\nname='bottleneck'\nfrom='sender'\nto='receiver'\nrate='12Mbps'\ndelay='20ms'\nqueue='0.5bdp'\nloss=0.01\n\
         [[link]]\nname='return'\nfrom='receiver'\nto='sender'\ndelay='20ms'\n[[flow]]\nfrom='sender'\nto='receiver'",
    ];
    for text in other_spellings {
        assert_eq!(parse(text).hash(), parse(ONE).hash(), "{text}");
        assert_eq!(parse(text).draw(1), parse(ONE).draw(1), "{text}");
    }
}

#[test]
fn another_meaning_has_another_hash() {
    for (from, to) in [
        ("12Mbps", "12.1Mbps"),
        ("\"12Mbps\"", "\"12Mbps..13Mbps\""),
        ("0.5bdp", "0.6bdp"),
        ("0.5bdp", "30kB"),
        ("0.5bdp\"", "0.5bdp\"\nrouter = \"scheme\""),
        ("0.01", "0.011"),
        ("seconds = 60", "seconds = 61"),
        ("seconds = 60", "seconds = 60\ntransport = \"linux\""),
        ("0.01", "0.01\n[varies]\nstart = \"0s..1s\""),
        ("0.01", "0.01\n[[flow]]\ncount = 2"),
    ] {
        let text = ONE.replacen(from, to, 1);
        assert_ne!(parse(&text).hash(), parse(ONE).hash(), "{from} -> {to}");
    }
}

/// 12 Mbit/s x 40 ms = 60 kB; half of it 30 kB.
#[test]
fn a_queue_in_bdp_is_of_the_rate_and_the_flows_base_rtt() {
    let bytes = |network: &Network, link: usize| {
        let queue = &network.links[link].queue;
        assert_eq!(queue.packets, None);
        queue.bytes.unwrap().get()
    };
    assert_eq!(bytes(&parse(ONE).draw(1), 0), 30_000);
    // Of several flows the longest round trip counts: 60 ms on each link, since one flow crosses all three.
    let lot = Scenario::load("parking-lot").unwrap().draw(1);
    assert_eq!(
        (0..6).map(|i| bytes(&lot, i)).collect::<Vec<_>>(),
        [150_000; 6]
    );
    // Never less than a packet.
    let small = parse(&ONE.replace("0.5bdp", "0.001bdp"));
    assert_eq!(bytes(&small.draw(1), 0), 1500);
    // Of the rate that is drawn.
    let drawn = parse(&ONE.replace("12Mbps", "10Mbps..100Mbps"));
    for seed in 0..20 {
        let network = drawn.draw(seed);
        let RateSpec::Fixed(rate) = network.links[0].rate else {
            panic!()
        };
        assert!(
            rate.bytes_in(Duration::from_millis(20))
                .get()
                .abs_diff(bytes(&network, 0))
                <= 1
        );
    }
}

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
    assert_eq!(network.links[0].delay, network.links[1].delay); // symmetric unless told otherwise
    let starts: Vec<Time> = network.flows.iter().map(|f| f.start).collect();
    assert!(starts[0] != starts[1] && starts[1] != starts[2] && starts[0] != starts[2]);
    // Another component's draws do not shift these.
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

#[test]
fn a_new_delay_of_the_bottleneck_is_that_of_the_way_back_unless_it_has_its_own() {
    let step = format!("{ONE}\n[[at]]\ntime='11s'\ndelay='200ms'\nrate='5Mbps'");
    let changes = parse(&step).draw(1).changes;
    let (at, delay) = (Time::from_millis(11_000), Some(Duration::from_millis(200)));
    let change = |link, rate| Change {
        at,
        link,
        rate,
        delay,
        loss: None,
    };
    assert_eq!(
        changes,
        [change(0, Some(Rate::from_mbps(5.0))), change(1, None)]
    );
    // Drawn alike; and not where the way back says its own delay, or nothing of delays is said.
    let both = parse(&step.replace("'200ms'", "'200ms..400ms'"))
        .draw(1)
        .changes;
    assert_eq!(both[0].delay, both[1].delay);
    let own = parse(&format!("{step}\n[return]\ndelay='20ms'")).draw(1);
    assert_eq!(own.changes.len(), 1);
    assert_eq!(
        parse(&step.replace("delay='200ms'\n", ""))
            .draw(1)
            .changes
            .len(),
        1
    );
}

/// Times between changes and what changes, each drawn anew and uniform over its range.
#[test]
fn recurring_changes_are_drawn_anew_each_time() {
    let text = "schema=1\nname='x'\nseconds=60\n[bottleneck]\nrate='5Mbps'\n\
        [[every]]\ngap='1s..50s'\nrate='1Mbps..10Mbps'\ndelay='5ms..25ms'\nstart='3s'\nstop='900000s'";
    let scenario = parse(text);
    assert_eq!(
        scenario.varies(),
        ["every.0.delay", "every.0.gap", "every.0.rate"]
    );
    let network = scenario.draw_for(7, Duration::from_secs_f64(49_000.0));
    let there: Vec<&Change> = network.changes.iter().filter(|c| c.link == 0).collect();
    let back: Vec<&Change> = network.changes.iter().filter(|c| c.link == 1).collect();
    assert_eq!(there.len(), back.len());
    assert!(
        there
            .iter()
            .zip(&back)
            .all(|(a, b)| (a.at, a.delay, None) == (b.at, b.delay, b.rate))
    );
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut times = vec![3.0];
    times.extend(there.iter().map(|c| c.at.as_secs_f64()));
    let gaps: Vec<f64> = times.windows(2).map(|t| t[1] - t[0]).collect();
    assert!(gaps.iter().all(|g| (1.0..=50.0).contains(g)));
    // 1900 gaps of a deviation of 14.1: the mean's is 0.32.
    assert!((mean(&gaps) - 25.5).abs() < 1.1, "{}", mean(&gaps));
    let rates: Vec<f64> = there.iter().map(|c| c.rate.unwrap().as_mbps()).collect();
    assert!((mean(&rates) - 5.5).abs() < 0.2, "{}", mean(&rates));
    assert!(rates.iter().all(|r| (1.0..=10.0).contains(r)));
    // A longer run begins like a shorter one.
    let short = scenario.draw(7).changes;
    assert_eq!(short, network.changes[..short.len()]);
    assert!(network.changes[short.len()].at >= Time::from_millis(60_000));
    let stopped = parse(&text.replace("900000s", "30s")).draw_for(7, Duration::from_secs_f64(4e4));
    assert!(
        stopped
            .changes
            .iter()
            .all(|c| c.at < Time::from_millis(30_000))
    );
    assert_eq!(scenario.longest(), Duration::from_secs_f64(50_000.0));
}

#[test]
fn flows_that_come_and_go_are_a_new_flow_each_time() {
    let scenario = parse(
        "schema=1\nname='x'\nseconds=600\n[bottleneck]\nrate='5Mbps'\n\
         [[flow]]\ncount=2\nstart='1s'\npresent='1s..50s'\nabsent='2s..4s'\nbytes='1kB..9MB'\n[[flow]]",
    );
    assert_eq!(scenario.flows(), 3);
    assert!(scenario.varies().contains(&"flow.0.present".to_owned()));
    let flows = scenario.draw(3).flows;
    let second = flows[1..]
        .iter()
        .position(|f| f.start == flows[0].start)
        .unwrap()
        + 1;
    let (first, rest) = flows.split_at(second);
    let (second, last) = rest.split_at(rest.len() - 1);
    assert_eq!((last[0].start, last[0].stop), (Time::ZERO, None));
    assert_ne!(first[0].stop, second[0].stop); // each of a count draws for itself
    for visits in [first, second] {
        // 30 s a visit on average, over 599 s.
        assert!((12..40).contains(&visits.len()), "{}", visits.len());
        assert_eq!(visits[0].start, Time::from_millis(1000));
        assert!(visits.last().unwrap().start < Time::from_millis(600_000));
        assert_ne!(visits[0].source, visits[1].source);
        for (a, b) in visits.iter().zip(&visits[1..]) {
            let present = a.stop.unwrap().since(a.start).as_secs_f64();
            let absent = b.start.since(a.stop.unwrap()).as_secs_f64();
            assert!((1.0..=50.0).contains(&present) && (2.0..=4.0).contains(&absent));
        }
    }
    // No visit begins after the entry's own stop.
    let stops = parse(
        &scenario
            .text()
            .replace("start='1s'", "start='1s'\nstop='100s'"),
    );
    let stop = Time::from_millis(100_000);
    let flows = stops.draw(3).flows;
    assert!(
        flows
            .iter()
            .all(|f| f.start < stop && f.stop.is_none_or(|s| s <= stop))
    );
}

#[test]
fn a_queue_is_a_discipline_with_its_defaults_or_what_the_file_says() {
    let queue = |text: &str| {
        parse(&ONE.replace("\"0.5bdp\"", text)).draw(1).links[0]
            .queue
            .clone()
    };
    let (ms, packet) = (Duration::from_millis, Bytes::new(1500));
    let codel = CoDelParams {
        mtu: packet,
        ..CoDelParams::default()
    };
    let pie = PieParams::default();
    let red = RedParams {
        packet_time: ms(1), // 1500 bytes at 12 Mbit/s
        ..RedParams::default()
    };
    for (text, packets, bytes, discipline) in [
        (
            "{kind='drophead',packets='9pkt'}",
            Some(9),
            None,
            Discipline::DropHead,
        ),
        ("{kind='codel'}", None, None, Discipline::CoDel(codel)),
        (
            "{kind='codel',bytes='0.5bdp',target='7ms',interval='50ms',ecn=true}",
            None,
            Some(30_000),
            Discipline::CoDel(CoDelParams {
                target: ms(7),
                interval: ms(50),
                ecn: true,
                ..codel
            }),
        ),
        (
            "{kind='pie',packets='9pkt'}",
            Some(9),
            None,
            Discipline::Pie(pie),
        ),
        (
            "{kind='pie',target='20ms',max_burst='0ms',ecn=true}",
            None,
            None,
            Discipline::Pie(PieParams {
                target: ms(20),
                max_burst: ms(0),
                ecn: true,
                ..pie
            }),
        ),
        (
            "{kind='pie',variant='mahimahi'}",
            None,
            None,
            Discipline::Pie(PieParams::mahimahi(ms(15), ms(150))),
        ),
        ("{kind='red'}", None, None, Discipline::Red(red)),
        (
            "{kind='red',min='10pkt',max='30pkt',weight=0.1,max_probability='10%',gentle=false,ecn=true}",
            None,
            None,
            Discipline::Red(RedParams {
                min_packets: 10.0,
                max_packets: 30.0,
                weight: 0.1,
                max_probability: 0.1,
                gentle: false,
                ecn: true,
                ..red
            }),
        ),
        (
            "{kind='step',threshold='7pkt',bytes='3MB'}",
            None,
            Some(3_000_000),
            Discipline::Step(StepParams {
                threshold_packets: 7,
            }),
        ),
        (
            "{kind='fq_codel'}",
            Some(10_240),
            None,
            Discipline::FqCodel(FqCodelParams {
                codel: CoDelParams {
                    mtu: packet,
                    ..FqCodelParams::default().codel
                },
                ..FqCodelParams::default()
            }),
        ),
        (
            "{kind='fq_codel',packets='9pkt',flows=16,quantum='300B',ecn=false,target='7ms'}",
            Some(9),
            None,
            Discipline::FqCodel(FqCodelParams {
                flows: 16,
                quantum: Bytes::new(300),
                codel: CoDelParams {
                    target: ms(7),
                    ..codel
                },
                ..FqCodelParams::default()
            }),
        ),
        (
            "{kind='abc'}",
            None,
            None,
            Discipline::Abc(AbcParams::default()),
        ),
        (
            "{kind='abc',packets='250pkt',eta='50%',delta='100ms',target='0ms',window='40ms',tokens=7,observed=true}",
            Some(250),
            None,
            Discipline::Abc(AbcParams {
                eta: 0.5,
                delta: ms(100),
                target: ms(0),
                window: ms(40),
                tokens: 7.0,
                observed: true,
            }),
        ),
        (
            "{kind='xcp'}",
            None,
            None,
            Discipline::Xcp(XcpParams::default()),
        ),
        (
            "{kind='xcp-w',alpha=0.55,beta=0.4,gamma=0}",
            None,
            None,
            Discipline::Xcp(XcpParams {
                alpha: 0.55,
                beta: 0.4,
                gamma: 0.0,
                windowed: true,
            }),
        ),
    ] {
        let want = QueueSpec {
            discipline,
            packets,
            bytes: bytes.map(Bytes::new),
        };
        assert_eq!(queue(text), want, "{text}");
    }
    // Parameters may be ranges, and what a default means is what it says.
    let range = parse(&ONE.replace(
        "\"0.5bdp\"",
        "{kind='red',min='5pkt..9pkt',weight='0.1..0.2'}",
    ));
    assert_eq!(
        range.varies(),
        [
            "loss",
            "queue",
            "link.bottleneck.queue.min",
            "link.bottleneck.queue.weight"
        ]
    );
    assert_ne!(range.draw(1).links[0].queue, range.draw(2).links[0].queue);
    let [short, long] = [
        "{kind='codel'}",
        "{ecn=false,target='5ms',interval='0.1s',kind='codel'}",
    ]
    .map(|q| parse(&ONE.replace("\"0.5bdp\"", q)));
    assert_eq!(short.hash(), long.hash());
}

#[test]
fn loss_in_bursts_jitter_and_reordering_arrive() {
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

/// The long way round a triangle, and back the same way.
#[test]
fn a_route_through_named_nodes_is_not_the_shortest() {
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
    // Sizes in bandwidth-delay products follow it: 8 Mbit/s x 40 ms.
    let text = text.replacen("delay='10ms'", "delay='10ms'\nqueue='1bdp'", 1);
    let queue = &parse(&text).draw(1).links[0].queue;
    assert_eq!(queue.bytes, Some(Bytes::new(40_000)));
}

#[test]
fn every_key_arrives() {
    let network = parse(
        r#"
        schema = 1
        name = "all"
        seconds = 30
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
        [[flow]]
        from = "c"
        to = "a"
        on = "1s"
        off = "500ms"
        [[flow]]
        from = "a"
        to = "b"
        rate = "1Mbps"
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
    )
    .draw(1);
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
