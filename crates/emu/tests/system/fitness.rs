//! Packets that vanish at no link are found in the kernel's counters.

use std::net::UdpSocket;

use headway_emu::fitness::Vanished;
use headway_emu::sys::{Namespace, Tun, become_able};
use nix::sys::socket::{setsockopt, sockopt};

#[test]
#[ignore = "needs root or user namespaces; make test-system runs it"]
fn full_rings_and_full_sockets_are_found() {
    become_able().unwrap();
    let host = Namespace::create().unwrap();
    let port = host.within(|| Tun::create("port")).unwrap().unwrap();
    let set_up = port.up(["10.0.0.1/24"]) + "route add 10.0.0.0/24 dev port\nlink set lo up\n";
    host.ip(&set_up).unwrap();
    let count = || {
        let mut vanished = Vanished::default();
        vanished.add_host(&host, &port).unwrap();
        vanished
    };
    assert_eq!(count(), Vanished::default());

    // Nothing reads the device: packets that its ring cannot hold are lost.
    let socket = host
        .within(|| UdpSocket::bind("10.0.0.1:0"))
        .unwrap()
        .unwrap();
    setsockopt(&socket, sockopt::SndBuf, &(8 << 20)).unwrap();
    let sent = Tun::RING + 500;
    let send = |_: &usize| socket.send_to(&[0; 100], "10.0.0.2:9").is_ok();
    assert_eq!((0..sent).filter(send).count(), sent);
    let found = count();
    let mut bytes = [0; Tun::MTU];
    let held = std::iter::from_fn(|| port.read(&mut bytes).unwrap().map(|_| bytes[0] >> 4));
    let lost = (sent - held.filter(|version| *version == 4).count()) as u64;
    assert!(lost >= 500);
    // One of them may be a packet of the kernel (IPv6 looks for routers).
    assert!((lost..lost + 3).contains(&found.at_devices), "{found:?}");
    assert_eq!((found.in_emulator, found.at_sockets), (0, 0));

    // Nothing reads the socket: packets that its buffer cannot hold are lost.
    let deaf = host
        .within(|| UdpSocket::bind("127.0.0.1:0"))
        .unwrap()
        .unwrap();
    setsockopt(&deaf, sockopt::RcvBuf, &4096).unwrap();
    let to = deaf.local_addr().unwrap();
    let speaker = host
        .within(|| UdpSocket::bind("127.0.0.1:0"))
        .unwrap()
        .unwrap();
    (0..200).for_each(|_| drop(speaker.send_to(&[0; 1000], to)));
    deaf.set_nonblocking(true).unwrap();
    let read = (0..200)
        .filter(|_| deaf.recv(&mut [0; 1000]).is_ok())
        .count() as u64;
    assert!(read < 200);
    assert_eq!(count().at_sockets, 200 - read);
}
