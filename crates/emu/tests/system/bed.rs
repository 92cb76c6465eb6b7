//! Two namespaces and an emulator between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};

use headway_cc::{Duration, Time};
use headway_emu::emulator::{Emulator, Links, PRIORITY, Report, Watch, Way};
use headway_emu::sys::{Clock, Namespace, Tun, become_able, real_time};
use headway_net::{Link, LinkEvent, Packet};

/// The addresses of the near and of the far side.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const NEAR6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
pub const FAR6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

pub struct Bed<W = Notes> {
    pub near: Namespace,
    pub far: Namespace,
    pub clock: Clock,
    emulator: Emulator<W>,
}

/// Everything that an emulator reports to its watcher.
#[derive(Debug, Default)]
pub struct Notes {
    pub events: Vec<(usize, LinkEvent)>,
    /// Deliveries: when each packet was delivered, when it was due, and the packet.
    pub deliveries: Vec<(Time, Time, Packet)>,
}

impl Watch for Notes {
    fn on_delivery(&mut self, at: Time, due: Time, _way: usize, packet: &Packet, _bytes: &[u8]) {
        self.deliveries.push((at, due, *packet));
    }

    fn on_link_event(&mut self, link: usize, event: &LinkEvent) {
        self.events.push((link, *event));
    }
}

impl Bed {
    /// Packets from the near side cross the first link, those from the far side the second.
    pub fn new(there: Link, back: Link) -> Bed {
        Bed::watched(there, back, Notes::default())
    }
}

impl<W: Watch + Send> Bed<W> {
    /// Same as [`new`](Self::new), watched by `watch`. Way 0 leads IPv4 to the far side, way 2 to
    /// the near one.
    pub fn watched(there: Link, back: Link, watch: W) -> Bed<W> {
        become_able().expect("namespaces are permitted: make test-system looked");
        let side = |name: &str, four: Ipv4Addr, six: Ipv6Addr| {
            let namespace = Namespace::create().unwrap();
            let tun = namespace.within(|| Tun::create(name)).unwrap().unwrap();
            let routes =
                format!("route add 10.0.0.0/24 dev {name}\nroute add fd00::/64 dev {name}\n");
            let addresses = [format!("{four}/24"), format!("{six}/64")];
            namespace.ip(&(tun.up(addresses) + &routes)).unwrap();
            (namespace, tun)
        };
        let (near, near_tun) = side("near", NEAR, NEAR6);
        let (far, far_tun) = side("far", FAR, FAR6);
        let way = |from: usize, to: IpAddr| Way {
            from,
            to: (to, if to.is_ipv4() { 32 } else { 128 }),
            links: [from as u32].into(),
            port: 1 - from,
            flow: None,
            host_jitter: None,
        };
        let to_far = [FAR.into(), FAR6.into()].map(|to| way(0, to));
        let to_near = [NEAR.into(), NEAR6.into()].map(|to| way(1, to));
        let clock = Clock::of_run(Duration::ZERO);
        let links = Links::new(vec![there.observed(), back.observed()], vec![]);
        let ways = [to_far, to_near].concat();
        let ports = vec![near_tun, far_tun];
        let emulator = Emulator::new(clock, ports, ways, links, watch).unwrap();
        Bed {
            near,
            far,
            clock,
            emulator,
        }
    }

    /// Lets its clock leave stalls out.
    pub fn without_stalls(self) -> Bed<W> {
        Bed {
            emulator: self.emulator.without_stalls(),
            ..self
        }
    }

    /// Emulates while `work` runs, for two minutes at most.
    pub fn run<T>(self, work: impl FnOnce(&Namespace, &Namespace, Clock) -> T) -> (T, W, Report) {
        let Bed {
            near,
            far,
            clock,
            mut emulator,
        } = self;
        let stop = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            let (stop, emulator) = (&stop, &mut emulator);
            let running = scope.spawn(move || {
                real_time(PRIORITY);
                emulator.run(Time::from_millis(120_000), stop)
            });
            let done =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&near, &far, clock)));
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap();
            done
        });
        let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (_, _, watch, report) = emulator.into_parts();
        (done, watch, report)
    }
}
