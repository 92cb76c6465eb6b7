//! The emulator: leads packets from one TUN device to another through links, in real time.
//!
//! It is a simulation that keeps pace with the clock. Within it everything happens at the time at
//! which it is due, one event after another; only what crosses its border, the reading and the
//! writing of packets, takes place when the machine comes to it. How late that is, is measured.
//! The clock of a run may stand still while the machine does ([`Looks`]).

mod links;
mod looks;
mod slab;
mod watch;
mod way;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use headway_cc::{Duration, Time};
use headway_net::{Body, LinkEvent, LinkEventKind, Packet, Segment};
use headway_record::LogHistogram;

use crate::host::wire;
use crate::ip::{self, Headers};
use crate::sys::{Clock, Tun, Waiter, cpu_time, stay_awake};
use slab::{Handle, Slab};
use way::Ways;

pub use links::Links;
use looks::Looks;
pub use watch::Watch;
pub use way::Way;

/// Of the thread that runs an emulator, for [`real_time`](crate::sys::real_time): before ordinary
/// threads, behind those of the system.
pub const PRIORITY: i32 = 10;
const UDP_HEADER: usize = 8;

/// An emulator before it runs, or after.
#[derive(Debug)]
pub struct Emulator<W> {
    clock: Clock,
    looks: Looks,
    waiter: Waiter,
    ports: Vec<Tun>,
    ways: Ways,
    links: Links,
    slab: Slab,
    /// For each way the packets that its host has yet to take, by time.
    held: Vec<VecDeque<(Time, Packet)>>,
    watch: W,
    events: Vec<LinkEvent>,
    /// Up to here everything is done and told.
    told: Time,
    end: Time,
    report: Report,
}

/// What an emulator says of itself.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How much later than due packets were written.
    pub lateness: LogHistogram,
    /// Packets read.
    pub read: u64,
    /// Packets written.
    pub written: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Packets for nowhere: no IP packets, or no way fits.
    pub strays: u64,
    /// Packets lost because too many were under way.
    pub no_room: u64,
    /// Packets that a device refused.
    pub refused: u64,
    /// The longest time for which nothing was read or written though it might have been: from when
    /// it wanted to wake up to when it did, or between two waits.
    pub longest_stall: Duration,
    /// All of these times that the clock has not left out.
    pub stalls: LogHistogram,
    /// The sum of the stalls that it has left out.
    pub left_out: Duration,
    /// Packets that hosts sent during a stall that was left out, and that came at once. Two of each
    /// stall are not counted: an acknowledgement releases as many.
    pub waited: u64,
    /// Processor time that it took.
    pub cpu: Duration,
    /// From the first look at the clock to the last.
    pub elapsed: Duration,
}

impl<W: Watch> Emulator<W> {
    /// The number of packets that are read from a port before others have their turn.
    const BURST: usize = 32;
    /// It does not sleep for less.
    const GRAIN: Duration = Duration::from_micros(25);
    /// How late timers usually are.
    const TIMER_LATENESS: Duration = Duration::from_micros(20);
    /// Links get no further without their events being told, of which there would be too many after
    /// a machine has slept.
    const STEP: Duration = Duration::from_millis(100);

    /// `links` have to be [`observed`](headway_net::Link::observed): the bytes of packets that they
    /// drop are found in their events.
    ///
    /// # Errors
    /// If the kernel has no room.
    pub fn new(
        clock: Clock,
        ports: Vec<Tun>,
        ways: Vec<Way>,
        links: Links,
        watch: W,
    ) -> io::Result<Emulator<W>> {
        let waiter = Waiter::new(clock)?;
        for (index, port) in ports.iter().enumerate() {
            waiter.add(port, index)?;
        }
        Ok(Emulator {
            clock,
            looks: Looks::default(),
            waiter,
            held: vec![VecDeque::new(); ways.len()],
            ports,
            ways: Ways::new(ways),
            links,
            slab: Slab::default(),
            watch,
            events: Vec::new(),
            told: Time::ZERO,
            end: Time::NEVER,
            report: Report::default(),
        })
    }

    /// Its clock, which has to be that of a [run](Clock::of_run), leaves stalls of the machine out.
    /// To be used where hosts' programs answer what they get, and send nothing by timers of their
    /// own.
    pub fn without_stalls(mut self) -> Emulator<W> {
        self.looks.leave_out_stalls = true;
        self
    }

    /// Runs until `end`, or until `stop` says so, which it notices within a tenth of a second.
    ///
    /// # Errors
    /// If a device is gone.
    pub fn run(&mut self, end: Time, stop: &AtomicBool) -> io::Result<()> {
        let _awake = stay_awake();
        let (begin, cpu_before) = (self.clock.now(), cpu_time());
        self.looks.expect(begin);
        let mut ready: Vec<usize> = Vec::with_capacity(self.ports.len());
        self.end = end;
        let (mut awake, mut left_out) = (begin, self.report.left_out);
        loop {
            let now = self.now().min(end);
            self.catch_up(now);
            self.tell_events(now);
            if now == end || stop.load(Ordering::Relaxed) {
                break;
            }
            let due = self.next().min(end);
            // A timer is about as late as this anyway; the rest is spun away.
            let early = due.saturating_sub(Self::TIMER_LATENESS);
            let before = self.now();
            // What is due in quick succession leaves together: to set a timer costs as much as to
            // write a packet.
            let wake = early.max(before + Self::GRAIN);
            let planned = wake.min(before + Waiter::LONGEST);
            self.looks.expect(planned);
            ready.clear();
            ready.extend_from_slice(self.waiter.wait(wake)?);
            let after = self.now();
            let stall = before.since(awake).max(after.since(planned));
            self.report.longest_stall = self.report.longest_stall.max(stall);
            self.report.stalls.add(stall);
            awake = after;
            let read_before = self.report.read;
            let mut has_more = false;
            for &port in &ready {
                has_more |= self.read(port)?;
            }
            // It stood still since it read the last time, while it waited or worked.
            if self.report.left_out > left_out {
                self.report.waited += (self.report.read - read_before).saturating_sub(2);
            }
            if !has_more {
                left_out = self.report.left_out;
            }
            if ready.is_empty() {
                self.spin_until(due);
            }
        }
        self.report.cpu += cpu_time().saturating_sub(cpu_before);
        self.report.elapsed += self.clock.now().since(begin);
        Ok(())
    }

    /// What it has to say of itself so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Packets under way.
    pub fn under_way(&self) -> usize {
        self.slab.in_use()
    }

    /// Its devices.
    pub fn ports(&self) -> &[Tun] {
        &self.ports
    }

    /// Its parts, once it has run.
    pub fn into_parts(self) -> (Vec<Tun>, Links, W, Report) {
        (self.ports, self.links, self.watch, self.report)
    }

    /// The time of the clock, which leaves out a stall that this look shows.
    fn now(&mut self) -> Time {
        let now = self.clock.now();
        let Some(stall) = self.looks.stall(now) else {
            return now;
        };
        self.clock.leave_out(stall);
        self.report.left_out += stall;
        self.report.longest_stall = self.report.longest_stall.max(stall);
        now.saturating_sub(stall)
    }

    /// Waits for `due` without sleeping, if it is near.
    fn spin_until(&self, due: Time) {
        let mut now = self.clock.now();
        if due.since(now) <= Self::TIMER_LATENESS {
            while now < due {
                std::hint::spin_loop();
                now = self.clock.now();
            }
        }
    }

    /// When something is due next.
    fn next(&self) -> Time {
        let held = self.held.iter().filter_map(|h| h.front());
        let held = held.map(|h| h.0).min().unwrap_or(Time::NEVER);
        self.links.next().0.min(held).min(self.watch.next_call())
    }

    /// Carries out what is due by `now`, in the order in which it is.
    fn catch_up(&mut self, now: Time) {
        while self.told + Self::STEP < now {
            let step = self.told + Self::STEP;
            self.carry_out(step);
            self.tell_events(step);
        }
        self.carry_out(now);
    }

    fn carry_out(&mut self, now: Time) {
        loop {
            let (due, link) = self.links.next();
            let call = self.watch.next_call();
            if call <= due && call <= now {
                self.watch.on_call(call, &mut self.links);
            } else if due <= now {
                if let Some(packet) = self.links.deliver(due, link) {
                    self.advance(due, packet);
                }
            } else {
                break;
            }
        }
        for way in 0..self.held.len() {
            while let Some(&(due, packet)) = self.held[way].front()
                && due <= now
            {
                self.held[way].pop_front();
                self.write(due, &packet);
            }
        }
    }

    /// A packet has crossed a link.
    fn advance(&mut self, now: Time, mut packet: Packet) {
        let Body::Data(segment) = &packet.body else {
            return self.links.advance_cross(now, packet);
        };
        let way = self.slab.get_mut(segment.number).way as usize;
        if packet.hops_left > 0 {
            let links = &self.ways.all[way].links;
            let next = links[links.len() - usize::from(packet.hops_left)];
            packet.hops_left -= 1;
            self.links.enter(now, next, &packet);
            return;
        }
        match &mut self.ways.all[way].host_jitter {
            None => self.write(now, &packet),
            Some((most, stream)) => {
                let held = &mut self.held[way];
                let last = held.back().map_or(now, |h| h.0);
                let due = now + most.mul_f64(stream.uniform());
                held.push_back((due.max(last), packet));
            }
        }
    }

    /// Reads what a port has, a burst at most. May it have more?
    fn read(&mut self, port: usize) -> io::Result<bool> {
        for _ in 0..Self::BURST {
            let Some(handle) = self.slab.take() else {
                // Reads it all the same: a port that is not read would be ready for ever.
                let mut nowhere = [0; Tun::MTU];
                if self.ports[port].read(&mut nowhere)?.is_none() {
                    return Ok(false);
                }
                self.report.no_room += 1;
                continue;
            };
            let slot = self.slab.get_mut(handle);
            let Some(len) = self.ports[port].read(&mut slot.bytes)? else {
                self.slab.free(handle);
                return Ok(false);
            };
            slot.len = len as u16;
            let now = self.now();
            if now > self.end {
                // It entered after the run.
                self.slab.free(handle);
                return Ok(false);
            }
            self.report.read += 1;
            if !self.arrive(now, port, handle) {
                self.report.strays += 1;
                self.slab.free(handle);
            }
        }
        Ok(true)
    }

    /// A packet has been read. Returns whether it has a way.
    fn arrive(&mut self, now: Time, port: usize, handle: Handle) -> bool {
        let slot = self.slab.get_mut(handle);
        let Some(headers) = Headers::of(slot.packet()) else {
            return false;
        };
        let Some(index) = self.ways.find(port, headers.to) else {
            return false;
        };
        let way = &self.ways.all[index as usize];
        slot.way = index;
        // What routers may rewrite, where the packet is of our own transport.
        let datagram = headers.payload + UDP_HEADER;
        let field = match headers.protocol {
            Headers::UDP => slot.packet().get(datagram..).and_then(wire::header_field),
            _ => None,
        };
        slot.udp = field.map_or(0, |_| headers.payload as u16);
        let packet = Packet {
            flow: way.flow.unwrap_or_else(|| headers.flow_hash()),
            size: slot.len,
            hops_left: (way.links.len() - 1) as u8,
            ecn: headers.ecn,
            arrived: now,
            body: Body::Data(Segment {
                number: handle,
                seq: self.report.read,
                sent: now,
                queued: Duration::ZERO,
                header: field.unwrap_or_default(),
            }),
        };
        let first = way.links[0];
        self.watch
            .on_arrival(now, index as usize, &packet, slot.packet());
        // What was due before comes first.
        self.catch_up(now);
        self.links.enter(now, first, &packet);
        true
    }

    /// A packet leaves, as routers have changed it.
    fn write(&mut self, due: Time, packet: &Packet) {
        let Body::Data(segment) = &packet.body else {
            return;
        };
        let now = self.now();
        let slot = self.slab.get_mut(segment.number);
        let way = slot.way as usize;
        ip::set_ecn(slot.packet_mut(), packet.ecn);
        if slot.udp > 0 {
            let udp = usize::from(slot.udp);
            wire::set_header_field(&mut slot.packet_mut()[udp..], segment.header);
        }
        self.report.lateness.add(now.since(due));
        match self.ports[self.ways.all[way].port].write(slot.packet()) {
            Ok(()) => {
                self.report.written += 1;
                self.report.written_bytes += u64::from(slot.len);
                self.watch.on_delivery(now, due, way, packet, slot.packet());
            }
            Err(_) => self.report.refused += 1,
        }
        self.slab.free(segment.number);
    }

    /// Tells what has happened on the links, and frees what they have dropped.
    fn tell_events(&mut self, now: Time) {
        self.told = self.told.max(now);
        self.links
            .tell_events(now, &mut self.events, |link, event| {
                self.watch.on_link_event(link, event);
                if let LinkEventKind::Drop(packet) | LinkEventKind::Loss(packet) = &event.what
                    && let Body::Data(segment) = &packet.body
                {
                    self.slab.free(segment.number);
                }
            });
    }
}
