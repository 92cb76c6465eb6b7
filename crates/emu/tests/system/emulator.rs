//! The emulator with sockets of the kernel.

use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration as Wait;

use headway_cc::{Bytes, Duration, Rate, Stream, Time};
use headway_emu::emulator::{Links, Watch};
use headway_emu::sys::{Clock, Namespace};
use headway_net::queue::{Discipline, Limits, StepParams};
use headway_net::trace::Trace;
use headway_net::{Body, Link, LinkEventKind, Loss, LossProcess, Packet, Server};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};

use crate::bed::{Bed, FAR, FAR6, NEAR, NEAR6};

const MS: Duration = Duration::from_millis(1);

fn wire() -> Link {
    Link::wire(Duration::ZERO)
}

fn socket(namespace: &Namespace, address: impl Into<IpAddr>) -> UdpSocket {
    let address = SocketAddr::new(address.into(), 9);
    let socket = namespace
        .within(|| UdpSocket::bind(address))
        .unwrap()
        .unwrap();
    // The buffer has room for what comes while the test's thread waits for a processor.
    if setsockopt(&socket, sockopt::RcvBufForce, &(8 << 20)).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &(8 << 20)).unwrap();
    }
    socket.set_read_timeout(Some(HANG)).unwrap();
    socket
}

/// How long a test waits for packets that have to come.
const HANG: Wait = Wait::from_secs(60);
/// The number of the packet that ends a series.
const LAST: u32 = u32::MAX;

/// Receives the first `count` packets: when each came, and its first four bytes. It returns fewer
/// if a packet that should come does not.
fn receive(socket: &UdpSocket, count: usize, mut now: impl FnMut() -> Time) -> Vec<(Time, u32)> {
    let mut found = Vec::new();
    let mut bytes = [0; 2000];
    while found.len() < count
        && let Ok(4..) = socket.recv(&mut bytes)
    {
        found.push((
            now(),
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        ));
    }
    found
}

/// Sends `count` packets of `size` bytes on the wire, numbered, `gap` apart.
fn send(socket: &UdpSocket, to: impl Into<IpAddr>, count: u32, size: usize, gap: Wait) {
    let to = to.into();
    let headers = if to.is_ipv4() { 28 } else { 48 };
    let mut bytes = vec![0; size - headers];
    for number in 0..count {
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        socket.send_to(&bytes, (to, 9)).unwrap();
        if !gap.is_zero() {
            std::thread::sleep(gap);
        }
    }
}

fn numbers(received: &[(Time, u32)]) -> Vec<u32> {
    received.iter().map(|r| r.1).collect()
}

/// Packets take 20 ms of propagation and 1 ms for 1500 bytes at 12 Mbit/s, over both versions of
/// IP.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn packets_take_propagation_and_transmission_time() {
    for six in [false, true] {
        let link = Link::fifo(Rate::from_mbps(12.0), Limits::NONE, MS * 20);
        let (mut delays, notes, report) = Bed::new(link, wire()).run(|near, far, clock| {
            let (from, to): (IpAddr, IpAddr) = match six {
                false => (NEAR.into(), FAR.into()),
                true => (NEAR6.into(), FAR6.into()),
            };
            let (near, far) = (socket(near, from), socket(far, to));
            let sink = std::thread::spawn(move || receive(&far, 100, || clock.now()));
            let mut sent = Vec::new();
            for number in 0..100_u32 {
                sent.push(clock.now());
                let mut bytes = vec![0; 1500 - if six { 48 } else { 28 }];
                bytes[..4].copy_from_slice(&number.to_le_bytes());
                near.send_to(&bytes, (to, 9)).unwrap();
                // The gaps differ, so that some packets wake the emulator just before others are
                // due.
                std::thread::sleep(Wait::from_micros(2000 + u64::from(number) * 370 % 2000));
            }
            let received = sink.join().unwrap();
            assert_eq!(numbers(&received), (0..100).collect::<Vec<_>>());
            received
                .iter()
                .map(|&(at, n)| at.since(sent[n as usize]))
                .collect::<Vec<_>>()
        });
        delays.sort();
        assert!(delays[0] >= MS * 21, "{delays:?}");
        // IPv6 router solicitations may be among the packets read.
        assert_eq!(report.written, 100, "{report:?}");
        assert!(notes.deliveries.iter().all(|&(at, due, _)| at >= due));
    }
}

/// Notes deliveries, and holds the emulator up once, during its work.
#[derive(Default)]
struct StandsStill {
    is_done: bool,
    taken: Vec<Duration>,
}

impl StandsStill {
    const FOR_MS: u64 = 30;
}

impl Watch for StandsStill {
    fn on_delivery(&mut self, at: Time, _: Time, way: usize, packet: &Packet, _: &[u8]) {
        if let (0, Body::Data(segment)) = (way, &packet.body) {
            self.taken.push(at.since(segment.sent));
        }
    }

    /// The stall comes after the first packet, however late a busy machine begins to send.
    fn next_call(&self) -> Time {
        if self.is_done || self.taken.is_empty() {
            Time::NEVER
        } else {
            Time::ZERO
        }
    }

    fn on_call(&mut self, _: Time, _: &mut Links) {
        self.is_done = true;
        std::thread::sleep(Wait::from_millis(Self::FOR_MS));
    }
}

/// The clock leaves out a stall, and no packet takes less time than the link's. A clock that does
/// not leave stalls out leaves nothing out.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn the_clock_leaves_out_a_stall() {
    for leaves_out in [true, false] {
        let link = Link::wire(MS * 20);
        let bed = Bed::watched(link, wire(), StandsStill::default());
        let bed = if leaves_out {
            bed.without_stalls()
        } else {
            bed
        };
        let (missing_ns, watch, report) = bed.run(|near, far, clock| {
            let (near, far) = (socket(near, NEAR), socket(far, FAR));
            let (real, began_by_clock) = (Clock::start(), clock.now());
            send(&near, FAR, 100, 100, Wait::from_millis(2));
            assert_eq!(receive(&far, 100, || clock.now()).len(), 100);
            let by_clock = clock.now().since(began_by_clock);
            real.now().as_nanos() - by_clock.as_nanos()
        });
        let least = watch.taken.iter().min().copied();
        assert!(least >= Some(MS * 20), "{least:?}");
        let stall = MS * StandsStill::FOR_MS;
        assert!(report.longest_stall >= stall);
        // A machine that stands still for longer than that has slept.
        let has_slept = report.longest_stall >= MS * 200;
        if leaves_out && !has_slept {
            assert!(report.left_out >= stall, "{:?}", report.left_out);
            assert!(missing_ns >= stall.as_nanos(), "{missing_ns}");
        } else if !leaves_out {
            assert_eq!(report.left_out, Duration::ZERO);
        }
    }
}

/// Every packet offered is delivered, dropped or lost, every one is reported, and sockets agree.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn every_packet_is_accounted_for() {
    let mut link = Link::fifo(Rate::from_mbps(12.0), Limits::new(Some(10), None), MS);
    let loss = Loss::Random { probability: 0.1 };
    link.set_loss(Some(LossProcess::new(loss, Stream::new(1, "loss"))));
    let (received, notes, report) = Bed::new(link, wire()).run(|near, far, clock| {
        let (near, far) = (socket(near, NEAR), socket(far, FAR));
        let sink = std::thread::spawn(move || {
            let mut found = Vec::new();
            while let [(_, number)] = receive(&far, 1, || clock.now())[..]
                && number != LAST
            {
                found.push(number);
            }
            found
        });
        send(&near, FAR, 2000, 1500, Wait::from_micros(300));
        // The queue is first in, first out: once one of these has arrived, none of the others is
        // under way.
        while !sink.is_finished() {
            let mut last = [0; 200];
            last[..4].copy_from_slice(&LAST.to_le_bytes());
            near.send_to(&last, (FAR, 9)).unwrap();
            std::thread::sleep(Wait::from_millis(100));
        }
        sink.join().unwrap()
    });
    let count = |is_one: fn(&LinkEventKind) -> bool| {
        notes
            .events
            .iter()
            .filter(|(link, e)| *link == 0 && is_one(&e.what))
            .count()
    };
    let dropped = count(|what| matches!(what, LinkEventKind::Drop(p) if p.size == 1500));
    let lost = count(|what| matches!(what, LinkEventKind::Loss(p) if p.size == 1500));
    let left = count(
        |what| matches!(what, LinkEventKind::Departure { packet, .. } if packet.size == 1500),
    );
    assert_eq!(received.len(), left);
    assert!(report.written > received.len() as u64, "{report:?}");
    assert_eq!(received.len() + dropped + lost, 2000);
    // Each of 2000 packets is lost with a probability of 0.1; which ones does not depend on time.
    assert!(
        dropped > 0 && (150..250).contains(&lost),
        "{dropped} {lost}"
    );
    assert!(received.is_sorted(), "first in, first out");
}

/// The same seed loses the same packets as in simulated time.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn losses_match_the_simulator() {
    let with_loss = || {
        let mut link = wire();
        let loss = Loss::Random { probability: 0.3 };
        link.set_loss(Some(LossProcess::new(loss, Stream::new(7, "loss"))));
        link
    };
    let mut alone = with_loss();
    let packet = |number: u32| Packet {
        flow: 0,
        size: 100,
        hops_left: 0,
        ecn: Default::default(),
        arrived: Time::ZERO,
        body: Body::Data(headway_net::Segment {
            number: number.into(),
            seq: 0,
            sent: Time::ZERO,
            queued: Duration::ZERO,
            header: Default::default(),
        }),
    };
    (0..500).for_each(|number| {
        alone.arrive(Time::ZERO, &packet(number));
    });
    let number = |p: Packet| match p.body {
        Body::Data(segment) => segment.number as u32,
        _ => unreachable!(),
    };
    let expected: Vec<u32> = std::iter::from_fn(|| alone.deliver(Time::ZERO))
        .map(number)
        .collect();
    let (received, ..) = Bed::new(with_loss(), wire()).run(|near, far, clock| {
        let (near, far) = (socket(near, NEAR), socket(far, FAR));
        let count = expected.len();
        let sink = std::thread::spawn(move || receive(&far, count, || clock.now()));
        send(&near, FAR, 500, 100, Wait::from_micros(100));
        numbers(&sink.join().unwrap())
    });
    assert_eq!(received, expected);
}

/// A trace's opportunities come at the times of its lines, and each carries a packet of 1500 bytes.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn a_trace_gives_its_opportunities() {
    let lines = "3\n3\n7\n20\n21\n50\n";
    let trace = Arc::new(Trace::parse(lines).unwrap());
    let queue = Discipline::DropTail.build(Limits::NONE, 4, Stream::new(1, "queue"));
    let link = Link::queued(
        queue,
        Server::trace(trace, Duration::ZERO, false),
        Duration::ZERO,
    );
    let (received, notes, _) = Bed::new(link, wire()).run(|near, far, clock| {
        let (near, far) = (socket(near, NEAR), socket(far, FAR));
        let sink = std::thread::spawn(move || receive(&far, 60, || clock.now()));
        send(&near, FAR, 60, 1500, Wait::ZERO);
        sink.join().unwrap()
    });
    let opportunities = notes
        .events
        .iter()
        .filter(|(_, e)| matches!(e.what, LinkEventKind::Opportunity));
    let logged: Vec<u64> = opportunities
        .map(|(_, e)| e.at.as_nanos() / 1_000_000)
        .collect();
    let each = [3, 3, 7, 20, 21, 50];
    let expected = (0..).flat_map(|round| each.map(|ms| round * 50 + ms));
    assert!(logged.len() >= 30, "{logged:?}");
    assert_eq!(logged, expected.take(logged.len()).collect::<Vec<_>>());
    assert_eq!(received.len(), 60);
    // Sixty packets are there at once: ten rounds of six, whose deliveries are due on the trace's
    // lines.
    for pair in notes.deliveries.windows(2) {
        assert!(pair[0].1 <= pair[1].1);
    }
    for (_, due, _) in &notes.deliveries {
        let ms = due.as_nanos() / 1_000_000;
        assert!(
            due.as_nanos() % 1_000_000 == 0 && each.contains(&((ms - 1) % 50 + 1)),
            "{due:?}"
        );
    }
}

/// A queue marks packets: the kernel's socket sees CE, and accepts the packet, so its checksum is
/// right.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn marks_reach_the_socket() {
    let step = Discipline::Step(StepParams {
        threshold_packets: 3,
    });
    let queue = step.build(Limits::new(Some(100), None), 0, Stream::new(1, "queue"));
    let link = Link::queued(queue, Server::fixed(Rate::from_mbps(12.0)), Duration::ZERO);
    let (classes, notes, _) = Bed::new(link, wire()).run(|near, far, _| {
        let (near, far) = (socket(near, NEAR), socket(far, FAR));
        setsockopt(&near, sockopt::Ipv4Tos, &0b10).unwrap();
        setsockopt(&far, sockopt::IpRecvTos, &true).unwrap();
        send(&near, FAR, 20, 1500, Wait::ZERO);
        let mut classes = Vec::new();
        for _ in 0..20 {
            let mut bytes = [0; 2000];
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let mut space = nix::cmsg_space!(u8);
            let message = recvmsg::<SockaddrIn>(
                far.as_raw_fd(),
                &mut parts,
                Some(&mut space),
                MsgFlags::empty(),
            );
            let message = message.unwrap();
            classes.extend(message.cmsgs().unwrap().filter_map(|c| match c {
                ControlMessageOwned::Ipv4Tos(class) => Some(class),
                _ => None,
            }));
        }
        classes
    });
    assert_eq!(classes.len(), 20);
    let marked = classes
        .iter()
        .filter(|&&class| class & 0b11 == 0b11)
        .count();
    // How many packets wait behind three others depends on the sender's pace; each marked packet
    // arrives with its mark.
    let reported = notes.events.iter().filter(|(link, event)| {
        *link == 0
            && matches!(event.what, LinkEventKind::Departure { packet, .. }
                if packet.ecn == headway_cc::Ecn::Ce)
    });
    assert_eq!(marked, reported.count(), "{classes:?}");
    assert!((1..20).contains(&marked), "{classes:?}");
    assert!(
        classes
            .iter()
            .all(|class| matches!(class & 0b11, 0b10 | 0b11))
    );
    let delivered = notes
        .deliveries
        .iter()
        .filter(|(.., p)| p.size() == Bytes::new(1500));
    assert_eq!(delivered.count(), 20);
}

/// A packet for an address without a way vanishes without harm.
#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn packets_without_a_way_are_counted() {
    let ((), _, report) = Bed::new(wire(), wire()).run(|near, far, clock| {
        let (near, far) = (socket(near, NEAR), socket(far, FAR));
        send(&near, Ipv4Addr::new(10, 0, 0, 77), 5, 100, Wait::ZERO);
        // Packets arrive in order: once this packet is there, the others have been read.
        send(&near, FAR, 1, 100, Wait::ZERO);
        assert_eq!(receive(&far, 1, || clock.now()).len(), 1);
    });
    assert!(report.strays >= 5 && report.written == 1, "{report:?}");
}
