//! Properties that every discipline has, for any arrivals and any times of service.

use headway_cc::{Bytes, Duration, Ecn, Header, Router, Stream, Time};
use headway_net::queue::{
    CoDelParams, Discipline, FqCodelParams, Limits, PieParams, Queue, RedParams, StepParams,
};
use headway_net::{Body, Packet, Segment};
use proptest::prelude::*;

const OVERHEAD: u32 = 4;

/// Every discipline; CoDel, PIE and RED with and without marking.
fn disciplines() -> Vec<Discipline> {
    let mut all = vec![
        Router::Abc.into(),
        Router::Xcp.into(),
        Router::XcpWindowed.into(),
        Discipline::DropTail,
        Discipline::DropHead,
        Discipline::Step(StepParams {
            threshold_packets: 3,
        }),
        Discipline::Pie(PieParams::mahimahi(
            Duration::from_millis(20),
            Duration::from_millis(60),
        )),
    ];
    for ecn in [false, true] {
        let codel = CoDelParams {
            interval: Duration::from_millis(20),
            ecn,
            ..CoDelParams::default()
        };
        all.extend([
            Discipline::CoDel(codel),
            Discipline::Pie(PieParams {
                max_burst: Duration::ZERO,
                alpha: 12.5,
                ecn,
                ..PieParams::default()
            }),
            Discipline::Red(RedParams {
                min_packets: 2.0,
                max_packets: 5.0,
                weight: 0.2,
                ecn,
                ..RedParams::default()
            }),
            Discipline::FqCodel(FqCodelParams {
                flows: 3,
                codel,
                ..FqCodelParams::default()
            }),
        ]);
    }
    all
}

/// A step after `us` microseconds.
#[derive(Clone, Debug)]
enum Step {
    Arrive {
        us: u64,
        flow: u32,
        size: u16,
        ecn: Ecn,
    },
    Serve {
        us: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1)];
    let arrive =
        (0..3_000u64, 0..5u32, 40..1500u16, ecn).prop_map(|(us, flow, size, ecn)| Step::Arrive {
            us,
            flow,
            size,
            ecn,
        });
    // Now and then nothing is served for a while.
    let pause = prop_oneof![20 => 0..3_000u64, 1 => 0..2_000_000u64];
    prop::collection::vec(
        prop_oneof![5 => arrive, 4 => pause.prop_map(|us| Step::Serve { us })],
        1..400,
    )
}

/// The packets that the queue was given and has returned.
#[derive(Default)]
struct Account {
    now: Time,
    number: u64,
    packets: usize,
    bytes: u64,
    dropped: Vec<Packet>,
    /// For each flow, the last number that has left.
    last: [Option<u64>; 5],
}

impl Account {
    fn cost(packet: &Packet) -> u64 {
        u64::from(packet.size) + u64::from(OVERHEAD)
    }

    fn arrive(&mut self, queue: &mut dyn Queue, flow: u32, size: u16, ecn: Ecn) {
        let packet = Packet {
            flow,
            size,
            hops_left: 0,
            ecn,
            arrived: self.now,
            body: Body::Data(Segment {
                number: self.number,
                seq: self.number,
                sent: self.now,
                queued: Duration::ZERO,
                header: Header::default(),
            }),
        };
        self.number += 1;
        self.packets += 1;
        self.bytes += Account::cost(&packet);
        queue.enqueue(self.now, packet, &mut self.dropped);
    }

    /// Returns whether a packet left.
    fn serve(&mut self, queue: &mut dyn Queue) -> bool {
        let Some(packet) = queue.dequeue(self.now, &mut self.dropped) else {
            assert!(queue.is_empty(), "no packet, and yet some wait");
            return false;
        };
        self.packets -= 1;
        self.bytes -= Account::cost(&packet);
        let Body::Data(segment) = packet.body else {
            panic!("only data was sent")
        };
        let last = &mut self.last[packet.flow as usize];
        assert!(last.is_none_or(|n| n < segment.number), "overtaken");
        *last = Some(segment.number);
        true
    }

    fn check(&mut self, queue: &dyn Queue, limits: Limits) {
        for packet in self.dropped.drain(..) {
            self.packets -= 1;
            self.bytes -= Account::cost(&packet);
        }
        assert_eq!(
            (queue.len(), queue.bytes().get()),
            (self.packets, self.bytes)
        );
        assert!(limits.allow(self.packets, self.bytes));
    }
}

proptest! {
    /// Every packet that arrived has left, was dropped or waits, in packets and bytes; the limits
    /// hold; a flow keeps its order; and a queue with packets always has one to send.
    #[test]
    fn every_packet_is_accounted_for(
        steps in steps(), packets in 1..30u64, bytes in 1504..40_000u64,
    ) {
        for limits in [
            Limits::NONE,
            Limits::new(Some(packets), None),
            Limits::new(None, Some(Bytes::new(bytes))),
        ] {
            for discipline in disciplines() {
                let mut queue = discipline.build(limits, OVERHEAD, Stream::new(1, "queue"));
                let mut account = Account::default();
                for step in &steps {
                    match *step {
                        Step::Arrive { us, flow, size, ecn } => {
                            account.now += Duration::from_micros(us);
                            account.arrive(&mut *queue, flow, size, ecn);
                        }
                        Step::Serve { us } => {
                            account.now += Duration::from_micros(us);
                            account.serve(&mut *queue);
                        }
                    }
                    account.check(&*queue, limits);
                }
                while account.serve(&mut *queue) {
                    account.check(&*queue, limits);
                }
                account.check(&*queue, limits);
                prop_assert_eq!(account.packets, 0);
            }
        }
    }

    /// While it is not full, a marking queue drops no ECN-capable packet, and marks no other.
    #[test]
    fn marks_replace_drops(steps in steps()) {
        let marking = [
            Discipline::Step(StepParams { threshold_packets: 3 }),
            Discipline::CoDel(CoDelParams { ecn: true, ..CoDelParams::default() }),
            Discipline::Pie(PieParams {
                max_burst: Duration::ZERO, alpha: 12.5, ecn: true, ecn_threshold: 1.1, ..PieParams::default()
            }),
            Discipline::Red(RedParams { weight: 0.01, max_packets: 400.0, ecn: true, ..RedParams::default() }),
            Discipline::FqCodel(FqCodelParams::default()),
        ];
        for discipline in marking {
            let mut queue = discipline.build(Limits::NONE, 0, Stream::new(1, "queue"));
            let (mut now, mut dropped, mut out) = (Time::ZERO, Vec::new(), Vec::new());
            let mut account = Account::default();
            for step in &steps {
                let (Step::Arrive { us, .. } | Step::Serve { us }) = *step;
                now += Duration::from_micros(us);
                account.now = now;
                match *step {
                    Step::Arrive { flow, size, ecn, .. } => account.arrive(&mut *queue, flow, size, ecn),
                    Step::Serve { .. } => out.extend(queue.dequeue(now, &mut dropped)),
                }
            }
            dropped.append(&mut account.dropped);
            let is_capable = |p: &Packet| p.ecn != Ecn::NotEct;
            prop_assert!(!dropped.iter().any(is_capable), "{:?}", discipline);
            let sent_capable = |p: &&Packet| steps.iter().filter_map(|s| match s {
                Step::Arrive { ecn, .. } => Some(*ecn), Step::Serve { .. } => None,
            }).nth(number(p) as usize) != Some(Ecn::NotEct);
            prop_assert!(out.iter().filter(|p| p.ecn == Ecn::Ce).all(|p| sent_capable(&p)));
        }
    }
}

fn number(packet: &Packet) -> u64 {
    match packet.body {
        Body::Data(segment) => segment.number,
        _ => panic!("only data was sent"),
    }
}
