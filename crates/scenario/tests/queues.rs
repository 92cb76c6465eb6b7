//! Which queues a seed varies, compared with the behaviour of the disciplines.

use headway_cc::{Duration, Ecn, Header, Stream, Time};
use headway_net::queue::Queue;
use headway_net::{Body, Packet, Segment};
use headway_scenario::Scenario;

/// Every kind of the schema; small, so that all of them drop.
const QUEUES: &[&str] = &[
    "{kind='droptail',packets='40pkt'}",
    "{kind='drophead',packets='40pkt'}",
    "{kind='codel'}",
    "{kind='pie',max_burst='0ms'}",
    "{kind='pie',variant='mahimahi',max_burst='0ms'}",
    "{kind='red',weight=0.1}",
    "{kind='step',packets='40pkt'}",
    "{kind='fq_codel',flows=4}",
    "{kind='abc',packets='40pkt'}",
    "{kind='xcp',packets='40pkt'}",
    "{kind='xcp-w',packets='40pkt'}",
];

fn scenario(queue: &str) -> Scenario {
    let text = format!(
        "schema=1\nname='n'\nseconds=10\n[bottleneck]\nrate='12Mbps'\ndelay='20ms'\nqueue={queue}\n[[flow]]\n"
    );
    Scenario::parse(&text, queue).unwrap_or_else(|e| panic!("{e}"))
}

/// The numbers of the packets that leave, while five arrive for every four that leave, from eight
/// flows in turn.
fn departures(queue: &mut dyn Queue) -> Vec<u64> {
    let (mut departed, mut dropped) = (Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    for number in 0..2000 {
        now += Duration::from_micros(800);
        let packet = Packet {
            flow: (number % 8) as u32,
            size: 1500,
            hops_left: 0,
            ecn: Ecn::NotEct,
            arrived: now,
            body: Body::Data(Segment {
                number,
                seq: number,
                sent: now,
                queued: Duration::ZERO,
                header: Header::default(),
            }),
        };
        queue.enqueue(now, packet, &mut dropped);
        if number % 5 > 0
            && let Some(packet) = queue.dequeue(now, &mut dropped)
            && let Body::Data(segment) = packet.body
        {
            departed.push(segment.number);
        }
    }
    departed
}

#[test]
fn a_queue_varies_if_its_discipline_uses_the_seed() {
    for kind in QUEUES {
        let scenario = scenario(kind);
        let spec = &scenario.draw(1).links[0].queue;
        let run = |seed| {
            let stream = Stream::new(seed, "queue");
            departures(&mut *spec.discipline.build(spec.limits(), 0, stream))
        };
        let differs = (2..6).any(|seed| run(seed) != run(1));
        let varies = scenario.varies().contains(&"queue".to_owned());
        assert_eq!(varies, differs, "{kind}");
    }
}
