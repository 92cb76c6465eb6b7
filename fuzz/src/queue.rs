//! Fuzzes every queue discipline with any traffic.

use std::collections::HashSet;

use headway_cc::{Duration, Ecn, Header, Rate, Router, Stream, Time};
use headway_net::queue::{
    AbcParams, CoDelParams, Discipline, FqCodelParams, Limits, PieParams, Queue, RedParams,
    StepParams, XcpParams,
};
use headway_net::{Body, Packet, Segment, Server};

use super::Bytes;

/// The first bytes choose discipline, limits and overhead. Each step then has two bytes: a packet
/// arrives, the link takes one, its rate changes, or time passes.
pub fn queue(input: &[u8]) {
    let mut input = Bytes(input);
    let discipline = discipline(&mut input);
    let packets = u64::from(input.byte() % 64) + 1;
    let bytes = u64::from(u16::from_le_bytes(input.array())) + 1;
    let limits = Limits::new(
        (packets % 4 > 0).then_some(packets),
        (bytes % 4 > 0).then_some(headway_cc::Bytes::new(bytes)),
    );
    let overhead = u32::from(input.byte() % 2) * 4;
    let queue = discipline.build(limits, overhead, Stream::new(1, "fuzz"));
    let mut books = Books {
        queue,
        router: discipline.router(),
        limits,
        overhead,
        now: Time::ZERO,
        next: 0,
        waiting: HashSet::new(),
        waiting_bytes: 0,
        dropped: Vec::new(),
    };
    while let &[what, much, ..] = input.0 {
        input.0 = &input.0[2..];
        books.step(what, much);
    }
    while !books.waiting.is_empty() {
        books.dequeue();
    }
}

fn discipline(input: &mut Bytes<'_>) -> Discipline {
    let (what, flags) = (input.byte(), input.byte());
    let ecn = flags & 1 > 0;
    // The time is at most 8.6 s.
    let period = |input: &mut Bytes<'_>| Duration::from_nanos(1 << (input.byte() % 34));
    let codel = |input: &mut Bytes<'_>| CoDelParams {
        target: period(input),
        interval: period(input),
        ecn,
        ..CoDelParams::default()
    };
    match what % 9 {
        0 => Discipline::DropTail,
        1 => Discipline::DropHead,
        2 => Discipline::CoDel(codel(input)),
        3 => {
            let (target, max_burst) = (period(input), period(input));
            Discipline::Pie(PieParams {
                ecn,
                target,
                max_burst,
                ..if flags & 2 > 0 {
                    PieParams::mahimahi(target, max_burst)
                } else {
                    PieParams::default()
                }
            })
        }
        4 => {
            let min_packets = f64::from(input.byte()) + 1.0;
            Discipline::Red(RedParams {
                min_packets,
                max_packets: min_packets + f64::from(input.byte()) + 1.0,
                weight: input.share(),
                max_probability: input.share(),
                ecn,
                gentle: flags & 2 > 0,
                packet_time: period(input),
            })
        }
        5 => Discipline::Step(StepParams {
            threshold_packets: u64::from(flags),
        }),
        6 => Discipline::FqCodel(FqCodelParams {
            codel: codel(input),
            flows: u16::from(flags) + 1,
            quantum: headway_cc::Bytes::new(u64::from(input.byte()) * 32 + 1),
            ..FqCodelParams::default()
        }),
        7 => Discipline::Abc(AbcParams {
            eta: 2.0 * input.share(),
            delta: period(input),
            target: period(input),
            window: period(input),
            tokens: 100.0 * input.share(),
            observed: flags & 2 > 0,
        }),
        _ => Discipline::Xcp(XcpParams {
            alpha: input.share(),
            beta: input.share(),
            gamma: input.share(),
            windowed: flags & 2 > 0,
        }),
    }
}

/// The packets that went in and have not come out.
struct Books {
    queue: Box<dyn Queue>,
    router: Option<Router>,
    limits: Limits,
    overhead: u32,
    now: Time,
    next: u64,
    waiting: HashSet<u64>,
    waiting_bytes: u64,
    dropped: Vec<Packet>,
}

impl Books {
    fn step(&mut self, what: u8, much: u8) {
        match what % 4 {
            0 | 1 => self.enqueue(what, much),
            2 => self.dequeue(),
            _ if what == 255 => {
                let rate = Rate::from_bps(1 << (much % 41));
                self.queue.serve_by(&Server::fixed(rate));
            }
            _ => self.now += Duration::from_nanos(1 << (much % 34)),
        }
    }

    fn enqueue(&mut self, what: u8, much: u8) {
        // The headers are valid ones, and values that no sender should use.
        const WRITTEN: [f32; 8] = [0.0, 0.1, 1.5, 100.0, 1e12, -1.0, f32::INFINITY, f32::NAN];
        let written = |by: u8| WRITTEN[usize::from(much.wrapping_add(by) % 8)];
        let packet = Packet {
            flow: u32::from(what >> 5),
            size: 40 + u16::from(much) * 5,
            hops_left: 0,
            ecn: [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][usize::from(what >> 2 & 3)],
            arrived: self.now,
            body: Body::Data(Segment {
                number: self.next,
                // The earlier ECN field is kept for comparison.
                seq: u64::from(what >> 2 & 3),
                sent: self.now,
                queued: Duration::ZERO,
                header: Header([written(what), written(what >> 2), written(what >> 5)]),
            }),
        };
        self.next += 1;
        self.waiting.insert(packet_number(&packet));
        self.waiting_bytes += self.cost(&packet);
        self.queue.enqueue(self.now, packet, &mut self.dropped);
        self.count_drops();
        let waiting = self.queue.waiting();
        assert!(
            self.limits.allow(waiting.packets, waiting.bytes),
            "{waiting:?} is more than {:?}",
            self.limits
        );
        self.check();
    }

    fn dequeue(&mut self) {
        let packet = self.queue.dequeue(self.now, &mut self.dropped);
        self.count_drops();
        match packet {
            Some(packet) => {
                self.leave(&packet);
                // Only packets that can be marked get marks.
                let Body::Data(segment) = packet.body else {
                    panic!("data went in")
                };
                let before = segment.seq;
                let is_braked = self.router == Some(Router::Abc) && before == 2;
                match packet.ecn {
                    Ecn::NotEct => assert_eq!(before, 0),
                    Ecn::Ect0 => assert!(before == 1 || is_braked),
                    Ecn::Ect1 => assert_eq!(before, 2),
                    Ecn::Ce => assert!(before > 0, "a mark where none can be"),
                }
            }
            None => assert!(self.waiting.is_empty(), "it stands still: {:?}", self.queue),
        }
        self.check();
    }

    fn count_drops(&mut self) {
        for packet in std::mem::take(&mut self.dropped) {
            self.leave(&packet);
        }
    }

    fn leave(&mut self, packet: &Packet) {
        assert!(
            self.waiting.remove(&packet_number(packet)),
            "it came out twice: {packet:?}"
        );
        self.waiting_bytes -= self.cost(packet);
    }

    fn cost(&self, packet: &Packet) -> u64 {
        u64::from(packet.size) + u64::from(self.overhead)
    }

    fn check(&self) {
        let waiting = self.queue.waiting();
        assert_eq!(waiting.packets, self.waiting.len());
        assert_eq!(waiting.bytes, self.waiting_bytes);
    }
}

fn packet_number(packet: &Packet) -> u64 {
    match &packet.body {
        Body::Data(segment) => segment.number,
        _ => panic!("data went in"),
    }
}
