//! Both ends of a flow over loopback, directly or through a relay that changes or drops packets.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::Duration as Wait;

use headway_cc::{Bytes, Duration, Rate, Registry, Time, schemes};
use headway_emu::host::{self, Driver, HostError, ReceiverReport, SenderReport, receiver, sender};
use headway_emu::sys::Clock;
use headway_net::transport::Profile;
use headway_scenario::Source;
use headway_world::FlowPlan;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};

/// When a flow that does not end is stopped. This ends a hang, and judges nothing.
const HANG: Time = Time::from_millis(60_000);

/// An address of this process and test alone: all of 127.0.0.0/8 is loopback.
fn address() -> SocketAddr {
    static LAST: AtomicU16 = AtomicU16::new(1);
    let [_, a, b, _] = std::process::id().to_be_bytes();
    let [_, c] = LAST.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    (Ipv4Addr::new(127, 100 + a % 100, b, c), 5300).into()
}

fn driver(scheme: &str) -> Driver {
    Driver::parse(scheme, &Registry::new(schemes::SCHEMES)).expect(scheme)
}

fn plan(data: Source) -> FlowPlan {
    FlowPlan {
        flow: 3,
        packet_size: Bytes::new(1500),
        ack_size: Bytes::new(40),
        profile: Profile::Linux,
        start: Time::ZERO,
        stop: HANG,
        measured_from: Time::ZERO,
        bin: Some(Duration::from_millis(10)),
        data,
        receive_window: None,
        seed: 1,
    }
}

fn finite(packets: u64) -> FlowPlan {
    plan(Source::Finite(Bytes::new(1500 * packets)))
}

fn until(ms: u64, data: Source) -> FlowPlan {
    FlowPlan {
        stop: Time::from_millis(ms),
        ..plan(data)
    }
}

/// Runs a flow between two addresses; the ends may know each other by other addresses.
fn run_between(
    plan: &FlowPlan,
    scheme: &str,
    (from, its_peer): (SocketAddr, SocketAddr),
    (to, other_peer): (SocketAddr, SocketAddr),
) -> (Result<SenderReport, HostError>, ReceiverReport) {
    let driver = driver(scheme);
    let receiver = receiver(plan, &driver, to, other_peer).expect("a receiver");
    let sender = sender(plan, &driver, from, its_peer).expect("a sender");
    let (clock, over) = (Clock::start(), AtomicBool::new(false));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receiver.run(clock, &over));
        let sent = scope.spawn(|| sender.run(clock, &over)).join();
        over.store(true, Ordering::Relaxed);
        let received = receiver.join().expect("no panic").expect("a report");
        (sent.expect("no panic"), received)
    })
}

fn run(plan: &FlowPlan, scheme: &str) -> (SenderReport, ReceiverReport) {
    let (from, to) = (address(), address());
    let (sent, received) = run_between(plan, scheme, (from, to), (to, from));
    (sent.expect("a report"), received)
}

#[test]
fn every_scheme_delivers_all_its_data() {
    // Schemes run one after the other: fifty threads at once would wait for a processor as long as
    // for a timeout.
    for scheme in Registry::new(schemes::SCHEMES).iter() {
        let name = scheme.name;
        let (sent, received) = run(&finite(200), &format!("udp-{name}"));
        assert!(sent.finished.is_some(), "{name}: {sent:?}");
        assert!(received.complete.is_some(), "{name}: {received:?}");
        assert!(
            received.received >= Bytes::new(200 * 1500),
            "{name}: {received:?}"
        );
        // A thread that waits for a processor retransmits packets that are under way.
        assert!(sent.sent >= received.received, "{name}: {sent:?}");
        // A receiver that waits for a processor may find its socket's buffer full.
        let host::Failures {
            not_sent, strange, ..
        } = sent.failures;
        assert_eq!((not_sent, strange), (0, 0), "{name}");
    }
}

#[test]
fn schemes_work_over_ipv6_and_with_the_simple_profile() {
    let port = || {
        let socket = UdpSocket::bind("[::1]:0").ok()?;
        socket.local_addr().ok()
    };
    let (Some(from), Some(to)) = (port(), port()) else {
        println!("skipped: no IPv6");
        return;
    };
    let plan = FlowPlan {
        profile: Profile::Simple,
        ..finite(300)
    };
    for scheme in ["udp-cubic", "kernel-reno"] {
        let (sent, received) = run_between(&plan, scheme, (from, to), (to, from));
        assert!(sent.expect("a report").finished.is_some(), "{scheme}");
        assert!(received.complete.is_some(), "{scheme}");
    }
}

#[test]
fn tcp_carries_exactly_the_data_it_is_given() {
    let (sent, received) = run(&finite(1000), "kernel-cubic");
    assert!(sent.finished.is_some());
    assert!(received.complete.is_some());
    // 20 bytes of IP, 20 of TCP and 12 of its timestamps are not data.
    assert_eq!(received.received, Bytes::new(1000 * (1500 - 52)));
    let series = sent.grid.expect("a series").finish(Time::from_millis(10));
    assert!(series.cwnd_packets[0].is_none_or(|cwnd| cwnd >= 10.0));
}

#[test]
fn no_transport_exceeds_a_rate() {
    let rate = Source::Rate(Rate::from_mbps(20.0));
    for (scheme, data) in [
        ("udp-fixed-rate:rate=20Mbps", Source::Bulk),
        ("udp-cubic", rate.clone()),
        ("kernel-cubic", rate),
    ] {
        let (_, received) = run(&until(1000, data), scheme);
        // 2.5 MB and a packet or two; less on a machine with other work.
        let megabytes = received.received.as_f64() / 1e6;
        assert!(
            megabytes > 0.0 && megabytes <= 2.52,
            "{scheme}: {megabytes} MB"
        );
    }
}

#[test]
fn an_endless_flow_stops_at_its_stop_time() {
    let pulses = Source::OnOff {
        on: Duration::from_millis(20),
        off: Duration::from_millis(20),
    };
    for (scheme, data) in [
        ("udp-cubic", Source::Bulk),
        ("kernel-reno", Source::Bulk),
        ("udp-fixed-rate:rate=1Mbps", Source::Bulk),
        ("udp-cubic", pulses.clone()),
        ("kernel-reno", pulses),
    ] {
        let began = Clock::start();
        let (sent, received) = run(&until(1000, data), scheme);
        let took = began.now().as_secs_f64();
        assert!((1.0..60.0).contains(&took), "{scheme}: {took} s");
        assert!(sent.finished.is_none(), "{scheme}");
        assert!(received.received > Bytes::ZERO, "{scheme}");
    }
}

#[test]
fn a_missing_receiver_does_not_hang_the_sender() {
    let (from, to) = (address(), address());
    let plan = until(1000, Source::Bulk);
    let (clock, over) = (Clock::start(), AtomicBool::new(false));
    let udp = sender(&plan, &driver("udp-cubic"), from, to).expect("a sender");
    let report = udp.run(clock, &over).expect("a report");
    assert!(report.sent > Bytes::ZERO);
    assert_eq!(report.meter.arrived_bytes(), 0);
    assert!(clock.now() < HANG);

    let tcp = sender(&plan, &driver("kernel-reno"), from, to).expect("a sender");
    let error = tcp
        .run(Clock::start(), &over)
        .expect_err("there is no receiver");
    let text = error.to_string();
    assert!(
        text.contains("flow 3: cannot connect over TCP: Connection refused"),
        "{text}"
    );

    over.store(true, Ordering::Relaxed);
    let late = FlowPlan {
        start: Time::from_millis(60_000),
        ..plan
    };
    for scheme in ["udp-cubic", "kernel-reno"] {
        let end = sender(&late, &driver(scheme), address(), to).expect("a sender");
        let report = end.run(clock, &over).expect("a report");
        assert_eq!(report.sent, Bytes::ZERO, "told before it began");
    }
}

#[test]
fn missing_controller_error_lists_the_available_ones() {
    let error = sender(
        &plan(Source::Bulk),
        &Driver::Kernel("renno".to_owned()),
        address(),
        address(),
    );
    let error = error.expect_err("no such controller").to_string();
    assert!(error.contains("'renno'; did you mean 'reno'?"), "{error}");
}

/// A relay between the ends: it sees every datagram with its traffic class, and decides whether to
/// forward it and with which class.
struct Relay<D, A> {
    data: D,
    acks: A,
}

impl<D, A> Relay<D, A>
where
    D: FnMut(&mut [u8], u8) -> Option<u8> + Send,
    A: FnMut(&mut [u8], u8) -> Option<u8> + Send,
{
    fn run(self, plan: &FlowPlan, scheme: &str) -> (SenderReport, ReceiverReport) {
        let [from, to, near, far] = [(); 4].map(|()| address());
        let socket = |local: SocketAddr, remote: SocketAddr| {
            let socket = UdpSocket::bind(local).expect("a socket");
            socket.connect(remote).expect("a peer");
            setsockopt(&socket, sockopt::IpRecvTos, &true).expect("an option");
            let wait = Some(Wait::from_millis(50));
            socket.set_read_timeout(wait).expect("a timeout");
            socket
        };
        let (near_socket, far_socket) = (socket(near, from), socket(far, to));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| carry(&near_socket, &far_socket, &over, self.data));
            scope.spawn(|| carry(&far_socket, &near_socket, &over, self.acks));
            let (sent, received) = run_between(plan, scheme, (from, near), (to, far));
            over.store(true, Ordering::Relaxed);
            (sent.expect("a report"), received)
        })
    }
}

fn carry(
    from: &UdpSocket,
    to: &UdpSocket,
    over: &AtomicBool,
    mut meddle: impl FnMut(&mut [u8], u8) -> Option<u8>,
) {
    let mut buffer = [0; 2000];
    let mut control = nix::cmsg_space!(u8);
    while !over.load(Ordering::Relaxed) {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = MsgFlags::empty();
        let read = recvmsg::<()>(from.as_raw_fd(), &mut parts, Some(&mut control), flags);
        let Ok(message) = read else { continue };
        let class = message
            .cmsgs()
            .into_iter()
            .flatten()
            .find_map(|cmsg| match cmsg {
                ControlMessageOwned::Ipv4Tos(class) => Some(class),
                _ => None,
            });
        let length = message.bytes;
        if let Some(class) = meddle(&mut buffer[..length], class.unwrap_or(0)) {
            setsockopt(to, sockopt::Ipv4Tos, &i32::from(class)).expect("an option");
            let _ = to.send(&buffer[..length]);
        }
    }
}

#[test]
fn lost_data_is_retransmitted() {
    let (mut count, mut dropped) = (0_u64, 0_u64);
    let relay = Relay {
        data: |_: &mut [u8], class| {
            count += 1;
            let drop = count.is_multiple_of(40);
            dropped += u64::from(drop);
            (!drop).then_some(class)
        },
        acks: |_: &mut [u8], class| Some(class),
    };
    let (sent, received) = relay.run(&finite(400), "udp-newreno");
    assert!(sent.finished.is_some() && received.complete.is_some());
    assert!(dropped >= 10);
    // Retransmissions that are under way at the end are not read.
    assert!(sent.sent.get() / 1500 - dropped >= received.received.get() / 1500);
    assert!(received.received.get() / 1500 >= 400);
    // A relay that is late by a timeout causes more of them.
    let lost = sent.lost.get() / 1500;
    assert!(lost + 1 >= dropped, "{lost} of {dropped}");
}

/// The layout is that of the table in `host/wire.rs`. How DCTCP reacts to marks is tested in
/// simulated time.
#[test]
fn marks_and_the_header_field_come_back() {
    let (mut capable, mut echoed, mut wrong) = (0, 0, 0);
    let relay = Relay {
        data: |datagram: &mut [u8], class| {
            assert_eq!(datagram.len(), 1500 - 28);
            capable += u32::from(class == 0b10);
            datagram[20..24].copy_from_slice(&0.75_f32.to_be_bytes());
            Some(0b11)
        },
        acks: |datagram: &mut [u8], class| {
            let echo = f32::from_be_bytes([12, 13, 14, 15].map(|i: usize| datagram[i]));
            echoed += u32::from(datagram[5] == 0b11 && echo == 0.75 && class == 0);
            wrong += u32::from(datagram.len() != 52);
            Some(class)
        },
    };
    let (_, received) = relay.run(&finite(100), "udp-dctcp");
    let packets = received.received.get() / 1500;
    assert!(
        capable > 10 && u64::from(capable) >= packets,
        "{capable} of {packets}"
    );
    assert!(echoed > 5 && wrong == 0, "{echoed} of {packets}, {wrong}");
}
