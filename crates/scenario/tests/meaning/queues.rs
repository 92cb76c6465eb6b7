//! Queues: sizes in BDP, disciplines and their defaults.

use headway_cc::{Bytes, Duration};
use headway_net::queue::{
    AbcParams, CoDelParams, Discipline, FqCodelParams, PieParams, RedParams, StepParams, XcpParams,
};
use headway_scenario::{Network, QueueSpec, RateSpec, Scenario};

use crate::{ONE, parse};

/// 12 Mbit/s x 40 ms = 60 kB; half of it is 30 kB.
#[test]
fn a_queue_in_bdp_uses_the_rate_and_base_rtt() {
    let bytes = |network: &Network, link: usize| {
        let queue = &network.links[link].queue;
        assert_eq!(queue.packets, None);
        queue.bytes.unwrap().get()
    };
    assert_eq!(bytes(&parse(ONE).draw(1), 0), 30_000);
    // With several flows the longest round trip counts: 60 ms on each link, since one flow crosses
    // all three.
    let lot = Scenario::load("parking-lot").unwrap().draw(1);
    assert_eq!(
        (0..6).map(|i| bytes(&lot, i)).collect::<Vec<_>>(),
        [150_000; 6]
    );
    // A queue has at least a packet.
    let small = parse(&ONE.replace("0.5bdp", "0.001bdp"));
    assert_eq!(bytes(&small.draw(1), 0), 1500);
    // The drawn rate counts.
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
fn disciplines_have_defaults_unless_the_file_sets_them() {
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
    // Parameters may be ranges, and a default is the same as its value written out.
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
