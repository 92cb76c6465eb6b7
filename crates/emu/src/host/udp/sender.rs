//! The sending end: drives [`headway_net::transport::Sender`] by the clock and a socket.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use headway_cc::{Selection, Time};
use headway_net::{Body, Packet, transport};
use headway_world::{FlowPlan, grid_sample};

use super::socket::FlowSocket;
use super::{BATCH, FlowWaiter};
use crate::host::report::{Bins, Cpu, sleep_until};
use crate::host::wire::{self, DataHeader, Datagram};
use crate::host::{HostError, SenderReport};
use crate::sys::Clock;

/// The end of a flow that sends data under a scheme of ours.
#[derive(Debug)]
pub struct Sender {
    plan: FlowPlan,
    transport: transport::Sender,
    socket: FlowSocket,
    /// A datagram of the full size: a header at the front, then padding.
    datagram: Vec<u8>,
    report: SenderReport,
}

impl Sender {
    /// See [`sender`](crate::host::sender).
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn new(
        plan: &FlowPlan,
        scheme: &Selection,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Sender, HostError> {
        let socket = FlowSocket::open(plan.flow, local, remote)?;
        let datagram = plan.packet_size.saturating_sub(socket.headers()).get() as usize;
        Ok(Sender {
            transport: plan.sender(scheme),
            datagram: vec![0; datagram.clamp(wire::DATA_HEADER, wire::LONGEST_DATAGRAM)],
            report: SenderReport::new(plan),
            plan: plan.clone(),
            socket,
        })
    }

    /// See [`SenderEnd::run`](crate::host::SenderEnd::run).
    ///
    /// # Errors
    /// [`HostError::Unlimited`], and if the kernel has no room for a timer.
    pub fn run(mut self, clock: Clock, over: &AtomicBool) -> Result<SenderReport, HostError> {
        let flow = self.plan.flow;
        let cpu = Cpu::start();
        let mut waiter = FlowWaiter::new(flow, &self.socket, clock)?;
        let mut buffer = [0; wire::ACK_HEADER + wire::LONGEST_MESSAGE];
        let mut bins = Bins::new(&self.plan);
        sleep_until(self.plan.start, clock, over);
        let mut readable = true;
        while !over.load(Ordering::Relaxed) && clock.now() < self.plan.stop {
            let may_be_more = readable && self.read(clock, &mut buffer);
            self.wake(clock.now());
            let has_more = self.send(clock);
            let now = clock.now();
            bins.close(now, &mut self.report, || {
                grid_sample(&self.transport, self.plan.packet_size)
            });
            if self.transport.is_done() {
                self.report.finished = Some(now);
                break;
            }
            if self.transport.in_flight() > self.plan.most_in_flight() {
                let packets = FlowPlan::MOST_IN_FLIGHT;
                return Err(HostError::Unlimited { flow, packets });
            }
            let timers = self.transport.next_wake().min(bins.next);
            let until = timers.min(self.plan.stop);
            let is_busy = may_be_more || has_more || until <= now;
            readable = is_busy || waiter.wait(now, until)?;
        }
        self.report.sent = self.transport.counters().sent;
        let refused = self.transport.refused_decisions();
        self.report.meter.on_refused_decisions(refused);
        let trips = self.transport.guard_trips();
        self.report.meter.on_guard_trips(trips);
        self.report.failures = self.socket.failures;
        self.report.cpu = cpu.used();
        Ok(self.report)
    }

    /// Reads the acknowledgements that have arrived. Returns whether there may be more.
    fn read(&mut self, clock: Clock, buffer: &mut [u8]) -> bool {
        for _ in 0..BATCH {
            let Some(arrived) = self.socket.receive(buffer) else {
                return false;
            };
            match wire::parse(&buffer[..arrived.length]) {
                Some(Datagram::Ack(ack, message)) if ack.flow == self.plan.flow => {
                    let now = clock.now();
                    if let Some(rtt) = self.transport.on_ack(now, &ack.ack(), message) {
                        self.report.meter.on_rtt(now, rtt);
                    }
                    self.note_lost(now);
                }
                _ => self.socket.failures.strange += 1,
            }
        }
        true
    }

    /// Runs the timers that are due.
    fn wake(&mut self, now: Time) {
        let due = self.transport.next_wake();
        if due <= now {
            self.report.lateness.add(now.since(due));
            self.transport.on_wake(now);
            self.note_lost(now);
        }
    }

    /// Sends what may leave now. Returns whether there may be more.
    fn send(&mut self, clock: Clock) -> bool {
        for _ in 0..BATCH {
            let Some(packet) = self.transport.poll(clock.now()) else {
                return false;
            };
            self.transmit(&packet);
        }
        true
    }

    fn transmit(&mut self, packet: &Packet) {
        let Body::Data(segment) = &packet.body else {
            return;
        };
        DataHeader::of(self.plan.flow, segment).write(&mut self.datagram);
        let size = packet.size().saturating_sub(self.socket.headers()).get() as usize;
        let size = size.clamp(wire::DATA_HEADER, self.datagram.len());
        self.socket.send(&self.datagram[..size], packet.ecn);
    }

    fn note_lost(&mut self, now: Time) {
        self.report.note_lost(now, self.transport.counters().lost);
    }
}
