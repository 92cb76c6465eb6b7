//! The ends of a flow across an emulated link of 20 Mbit/s and 20 ms.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use headway_cc::{Bytes, Duration, Rate, Registry, Stream, Time, schemes};
use headway_emu::emulator::Watch;
use headway_emu::host::rtt::TcpRtt;
use headway_emu::host::{Driver, ReceiverReport, SenderReport, kernel, receiver, sender};
use headway_net::queue::{Discipline, Limits, StepParams, XcpParams};
use headway_net::transport::Profile;
use headway_net::{Link, LinkEvent, LinkEventKind, Packet, Server};
use headway_scenario::Source;
use headway_world::FlowPlan;

use crate::bed::{Bed, FAR, NEAR};

const MS: Duration = Duration::from_millis(1);
const RATE: Rate = Rate::from_bps(20_000_000);
const LENGTH: Time = Time::from_millis(3000);
const TO_FAR: usize = 0;
const TO_NEAR: usize = 2;

/// Counts bytes delivered and packets dropped, and takes RTTs of TCP.
#[derive(Debug, Default)]
pub struct Meter {
    pub delivered: u64,
    pub dropped: u64,
    pub marked: u64,
    tcp: TcpRtt,
    pub rtts: Vec<Duration>,
}

impl Watch for Meter {
    fn on_arrival(&mut self, at: Time, way: usize, _packet: &Packet, bytes: &[u8]) {
        if way == TO_FAR {
            self.tcp.on_data(at, bytes);
        }
    }

    fn on_delivery(&mut self, at: Time, _due: Time, way: usize, packet: &Packet, bytes: &[u8]) {
        match way {
            TO_FAR => {
                self.delivered += u64::from(packet.size);
                self.marked += u64::from(packet.ecn == headway_cc::Ecn::Ce);
            }
            TO_NEAR => self.rtts.extend(self.tcp.on_ack(at, bytes)),
            _ => {}
        }
    }

    fn on_link_event(&mut self, link: usize, event: &LinkEvent) {
        self.dropped += u64::from(link == 0 && matches!(event.what, LinkEventKind::Drop(_)));
    }
}

/// The result of a run with one flow.
pub struct Run {
    pub sent: SenderReport,
    pub received: ReceiverReport,
    pub meter: Meter,
    pub not_read: u64,
}

impl Run {
    /// The share of the link's capacity that was used.
    pub fn utilisation(&self) -> f64 {
        self.meter.delivered as f64 / RATE.bytes_in(LENGTH.since(Time::ZERO)).as_f64()
    }

    /// The sender's smoothed RTT at the ends of the series' bins, in ms.
    pub fn smoothed_ms(&self) -> Vec<f64> {
        let grid = self.sent.grid.clone().expect("a series");
        grid.finish(LENGTH).rtt_ms.into_iter().flatten().collect()
    }
}

/// A bulk flow over a queue of `discipline` that holds `packets`.
pub fn run(scheme: &str, discipline: &Discipline, packets: u64) -> Run {
    let limits = Limits::new(Some(packets), None);
    let queue = discipline.build(limits, 0, Stream::new(1, "queue"));
    let there = Link::queued(queue, Server::fixed(RATE), MS * 10);
    let plan = FlowPlan {
        flow: 0,
        packet_size: Bytes::new(1500),
        ack_size: Bytes::new(40),
        profile: Profile::Linux,
        start: Time::from_millis(50),
        stop: LENGTH,
        measured_from: Time::ZERO,
        bin: Some(MS * 10),
        data: Source::Bulk,
        receive_window: None,
        seed: 1,
    };
    let driver = Driver::parse(scheme, &Registry::new(schemes::SCHEMES)).unwrap();
    let (from, to) = (
        SocketAddr::from((NEAR, 5201)),
        SocketAddr::from((FAR, 5201)),
    );
    let bed = Bed::watched(there, Link::wire(MS * 10), Meter::default());
    let ((sent, received), meter, report) = bed.run(|near, far, clock| {
        for namespace in [near, far] {
            namespace
                .within(kernel::prepare_namespace)
                .unwrap()
                .unwrap();
        }
        let receiver = far.within(|| receiver(&plan, &driver, to, from));
        let sender = near.within(|| sender(&plan, &driver, from, to));
        let (receiver, sender) = (receiver.unwrap().unwrap(), sender.unwrap().unwrap());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| receiver.run(clock, &over));
            let sent = scope.spawn(|| sender.run(clock, &over)).join();
            over.store(true, Ordering::Relaxed);
            (sent.unwrap().unwrap(), receiver.join().unwrap().unwrap())
        })
    });
    let not_read = report.no_room + report.refused;
    Run {
        sent,
        received,
        meter,
        not_read,
    }
}

/// A queue that marks packets which wait behind twenty others.
pub fn marking() -> Discipline {
    Discipline::Step(StepParams {
        threshold_packets: 20,
    })
}

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn the_kernels_controllers_carry_data() {
    let available = kernel::available();
    for name in ["reno", "cubic", "bbr"] {
        if !available.iter().any(|a| a == name) {
            println!("skipped: the kernel has no {name}");
            continue;
        }
        let run = run(&format!("kernel-{name}"), &Discipline::DropTail, 60);
        assert!(run.received.received > Bytes::ZERO, "{name}");
        assert!(run.utilisation() <= 1.1, "{name}");
        // The kernel takes for lost at least what the queue dropped, except a lost tail that it
        // cannot know of.
        let (lost, dropped) = (run.sent.lost.get() / 1500, run.meter.dropped);
        assert!(dropped <= lost + 200, "{name}: {lost} of {dropped}");
        assert!(run.received.received.get() < run.meter.delivered);
        assert_eq!(
            run.sent.meter.arrived_bytes(),
            0,
            "{name}: meters of delivery are the emulator's"
        );
        let least = run.meter.rtts.iter().min().expect("a sample");
        assert!(*least >= MS * 20, "{name}: {least:?}");
    }
}

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn our_transport_carries_data() {
    for scheme in ["udp-cubic", "udp-bbr", "copa"] {
        let run = run(scheme, &Discipline::DropTail, 60);
        assert!(run.received.received > Bytes::ZERO, "{scheme}");
        assert!(run.utilisation() <= 1.1, "{scheme}");
        assert_eq!(run.sent.failures.strange, 0, "{scheme}");
        assert_eq!(run.received.failures.strange, 0, "{scheme}");
        let (lost, dropped) = (run.sent.lost.get() / 1500, run.meter.dropped);
        assert!(dropped <= lost + 200, "{scheme}: {lost} of {dropped}");
        let least = run.smoothed_ms().into_iter().fold(f64::MAX, f64::min);
        assert!(least >= 20.0, "{scheme}: {least} ms");
    }
}

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn marks_of_a_queue_reach_the_scheme() {
    let run = run("dctcp", &marking(), 200);
    assert!(run.meter.marked > 0);
}

/// XCP's sender grows only by what the router writes into its packets' header.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn xcp_sender_follows_the_router() {
    let run = run("xcp", &Discipline::Xcp(XcpParams::default()), 200);
    let grown = run.sent.grid.clone().expect("a series").finish(LENGTH);
    let most = grown.cwnd_packets.into_iter().flatten().fold(0.0, f64::max);
    assert!(most > 10.0, "{most}");
}
