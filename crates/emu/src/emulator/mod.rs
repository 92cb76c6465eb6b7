//! The emulator: leads packets from one TUN device to another through links, in real time.
//!
//! It is a simulation that keeps pace with the clock. Each event within it happens at the time at
//! which it is due, in order. Only the reading and writing of packets happens when the machine gets
//! to it. The emulator measures how late that is. The clock of a run may stand still while the
//! machine does ([`Looks`]).

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

/// The priority of the emulator's thread, for [`real_time`](crate::sys::real_time): above ordinary
/// threads, below those of the system.
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
    /// For each way, the packets that its host has yet to take, by time.
    held: Vec<VecDeque<(Time, Packet)>>,
    watch: W,
    events: Vec<LinkEvent>,
    /// The time up to which all events have been processed and reported.
    reported_until: Time,
    end: Time,
    report: Report,
}

/// What an emulator counts.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How late packets were written, compared with when they were due.
    pub lateness: LogHistogram,
    /// Packets read.
    pub read: u64,
    /// Packets written.
    pub written: u64,
    /// Bytes of the packets written.
    pub written_bytes: u64,
    /// Packets without a destination: they were not IP packets, or no way fits.
    pub strays: u64,
    /// Packets lost because too many were under way.
    pub no_room: u64,
    /// Packets that a device refused.
    pub refused: u64,
    /// The longest time without a read or write although one was possible: between the planned and
    /// the actual wake-up, or between two waits.
    pub longest_stall: Duration,
    /// All of these times, without those that the clock has left out.
    pub stalls: LogHistogram,
    /// The sum of the stalls that the clock has left out.
    pub left_out: Duration,
    /// Packets that hosts sent during a stall that was left out, and that came at once. Two of each
    /// stall are not counted, because an acknowledgement releases as many.
    pub waited: u64,
    /// Processor time of the emulator's thread.
    pub cpu: Duration,
    /// The time from the first look at the clock to the last.
    pub elapsed: Duration,
}

impl<W: Watch> Emulator<W> {
    /// How many packets are read from a port before the others have their turn.
    const BURST: usize = 32;
    /// The shortest time for which it sleeps.
    const GRAIN: Duration = Duration::from_micros(25);
    /// How late timers usually are.
    const TIMER_LATENESS: Duration = Duration::from_micros(20);
    /// The longest step of the links before their events are reported. After a machine has slept,
    /// one step would have too many events.
    const STEP: Duration = Duration::from_millis(100);

    /// `links` have to be [`observed`](headway_net::Link::observed): the emulator finds the bytes
    /// of packets that they drop by their events.
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
            reported_until: Time::ZERO,
            end: Time::NEVER,
            report: Report::default(),
        })
    }

    /// Lets its clock, which has to be that of a [run](Clock::of_run), leave out stalls of the
    /// machine. Use this where hosts' programs only answer what they get, and send nothing by
    /// timers of their own.
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
            // A timer is about this late anyway; the rest of the time is spent spinning.
            let early = due.saturating_sub(Self::TIMER_LATENESS);
            let before = self.now();
            // Packets that are due in quick succession leave together: to set a timer costs as much
            // as to write a packet.
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
            // The machine stood still since the last read, during a wait or during work.
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

    /// The counters so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Packets under way.
    pub fn under_way(&self) -> usize {
        self.slab.in_use()
    }

    /// The devices of the emulator.
    pub fn ports(&self) -> &[Tun] {
        &self.ports
    }

    /// Takes it apart after a run.
    pub fn into_parts(self) -> (Vec<Tun>, Links, W, Report) {
        (self.ports, self.links, self.watch, self.report)
    }

    /// The time of the clock. If this look shows a stall, the clock leaves it out.
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

    /// When the next event is due.
    fn next(&self) -> Time {
        let held = self.held.iter().filter_map(|h| h.front());
        let held = held.map(|h| h.0).min().unwrap_or(Time::NEVER);
        self.links.next().0.min(held).min(self.watch.next_call())
    }

    /// Carries out everything due by `now`, in order.
    fn catch_up(&mut self, now: Time) {
        while self.reported_until + Self::STEP < now {
            let step = self.reported_until + Self::STEP;
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

    /// Reads one burst at most from a port. Returns whether it may have more.
    fn read(&mut self, port: usize) -> io::Result<bool> {
        for _ in 0..Self::BURST {
            let Some(handle) = self.slab.take() else {
                // The packet is read and thrown away: an unread port would stay ready.
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
                // The packet came after the end of the run.
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
        // Only packets of our own transport have a field that routers may rewrite.
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
        // Earlier events come first.
        self.catch_up(now);
        self.links.enter(now, first, &packet);
        true
    }

    /// Writes a packet that leaves, as routers have changed it.
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

    /// Reports what has happened on the links, and frees the packets that they dropped.
    fn tell_events(&mut self, now: Time) {
        self.reported_until = self.reported_until.max(now);
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
