//! The receiving end: drives [`headway_net::transport::Receiver`] by the clock and a socket.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use headway_cc::{Bytes, Ecn, Selection, Time};
use headway_net::Ack;
use headway_net::transport;
use headway_world::FlowPlan;

use super::socket::FlowSocket;
use super::{BATCH, FlowWaiter};
use crate::host::report::Cpu;
use crate::host::wire::{self, AckHeader, Datagram};
use crate::host::{Completion, HostError, ReceiverReport};
use crate::sys::Clock;

/// The end of a flow that receives data, with the receiver half of the scheme if it has one.
#[derive(Debug)]
pub struct Receiver {
    plan: FlowPlan,
    transport: transport::Receiver,
    socket: FlowSocket,
    message: Vec<u8>,
    datagram: Vec<u8>,
    report: ReceiverReport,
    completion: Completion,
}

impl Receiver {
    /// See [`receiver`](crate::host::receiver).
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn new(
        plan: &FlowPlan,
        scheme: &Selection,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Receiver, HostError> {
        Ok(Receiver {
            transport: plan.receiver(scheme),
            socket: FlowSocket::open(plan.flow, local, remote)?,
            plan: plan.clone(),
            message: Vec::new(),
            datagram: Vec::new(),
            report: ReceiverReport::default(),
            completion: Completion::default(),
        })
    }

    pub(in crate::host) fn completion(&self) -> (&FlowPlan, &Completion) {
        (&self.plan, &self.completion)
    }

    /// See [`ReceiverEnd::run`](crate::host::ReceiverEnd::run).
    ///
    /// # Errors
    /// If the kernel has no room for a timer.
    pub fn run(mut self, clock: Clock, over: &AtomicBool) -> Result<ReceiverReport, HostError> {
        let cpu = Cpu::start();
        let mut waiter = FlowWaiter::new(self.plan.flow, &self.socket, clock)?;
        let mut buffer = vec![0; wire::LONGEST_DATAGRAM];
        let mut readable = true;
        while !over.load(Ordering::Relaxed) {
            let may_be_more = readable && self.read(clock, &mut buffer);
            let now = clock.now();
            if self.transport.next_timer() <= now {
                self.wake(now);
            }
            let until = self.transport.next_timer();
            let is_busy = may_be_more || until <= now;
            readable = is_busy || waiter.wait(now, until)?;
        }
        self.report.failures = self.socket.failures;
        self.report.cpu = cpu.used();
        Ok(self.report)
    }

    /// Reads the data that has arrived. Returns whether there may be more.
    fn read(&mut self, clock: Clock, buffer: &mut [u8]) -> bool {
        for _ in 0..BATCH {
            let Some(arrived) = self.socket.receive(buffer) else {
                return false;
            };
            match wire::parse(&buffer[..arrived.length]) {
                Some(Datagram::Data(data)) if data.flow == self.plan.flow => {
                    let now = clock.now();
                    let size = Bytes::new(arrived.length as u64) + self.socket.headers();
                    self.report.received += size;
                    let segment = data.segment();
                    let ack = self.transport.on_data(now, &segment, size, arrived.ecn);
                    let is_complete = self.transport.contiguous() >= self.plan.packets();
                    if is_complete && self.report.complete.is_none() {
                        self.report.complete = Some(now);
                        self.completion.reach();
                    }
                    if let Some(ack) = ack {
                        self.take_message();
                        self.acknowledge(&ack);
                    }
                }
                _ => self.socket.failures.strange += 1,
            }
        }
        true
    }

    /// Runs the timers that are due.
    fn wake(&mut self, now: Time) {
        let ack = self.transport.on_timer(now);
        self.take_message();
        match ack {
            Some(ack) => self.acknowledge(&ack),
            None if !self.message.is_empty() => {
                let ack = self.transport.message_ack(now);
                self.acknowledge(&ack);
            }
            None => {}
        }
    }

    fn take_message(&mut self) {
        self.message.clear();
        if let Some(half) = self.transport.half_mut() {
            half.take_message(&mut self.message);
        }
        if self.message.len() > wire::LONGEST_MESSAGE {
            self.message.clear();
            self.socket.failures.not_sent += 1;
        }
    }

    /// Sends an acknowledgement, with the message of the receiver half.
    fn acknowledge(&mut self, ack: &Ack) {
        let least = wire::ACK_HEADER + self.message.len();
        let padded = self
            .plan
            .ack_size
            .saturating_sub(self.socket.headers())
            .get() as usize;
        self.datagram.clear();
        self.datagram
            .resize(least.max(padded.min(wire::LONGEST_DATAGRAM)), 0);
        AckHeader::of(self.plan.flow, ack).write(&self.message, &mut self.datagram);
        self.socket.send(&self.datagram, Ecn::NotEct);
    }
}
