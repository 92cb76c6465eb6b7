//! A queue with any discipline and any server.

use headway_cc::{Bytes, Rate, Time};

use crate::Packet;
use crate::queue::Queue;
use crate::server::{Server, TraceCursor};

#[derive(Debug)]
pub(super) struct Queued {
    pub(super) queue: Box<dyn Queue>,
    pub(super) server: Server,
    serving: Option<Serving>,
}

/// The packet that is being transmitted.
#[derive(Debug)]
struct Serving {
    packet: Packet,
    /// With a rate: when the packet's last bit leaves.
    done: Time,
    /// With a trace: the bytes that later opportunities have to carry.
    bytes_left: u32,
}

impl Queued {
    pub(super) fn new(mut queue: Box<dyn Queue>, server: Server) -> Queued {
        queue.serve_by(&server);
        Queued {
            queue,
            server,
            serving: None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.serving.is_none() && self.queue.is_empty()
    }

    /// Packets that have not left, including the one in transmission.
    pub(super) fn backlog(&self) -> usize {
        self.queue.len() + usize::from(self.serving.is_some())
    }

    /// When the next packet, or a part of one, leaves.
    pub(super) fn next_departure(&self) -> Time {
        match (&self.server, &self.serving) {
            (Server::Fixed(_), Some(serving)) => serving.done,
            (Server::Fixed(_), None) => Time::NEVER,
            (Server::Trace(_), None) if self.queue.is_empty() => Time::NEVER,
            (Server::Trace(cursor), _) => cursor.next(),
        }
    }

    /// A packet arrives; the caller has carried out every departure due by `now`.
    pub(super) fn arrive(&mut self, now: Time, mut packet: Packet, dropped: &mut Vec<Packet>) {
        packet.arrived = now;
        self.queue.enqueue(now, packet, dropped);
        self.serve_if_free(now, dropped);
    }

    /// Carries out every departure due by `now`. It calls `depart` with the time at which a
    /// packet's last bit leaves.
    #[inline]
    pub(super) fn catch_up(
        &mut self,
        now: Time,
        dropped: &mut Vec<Packet>,
        mut depart: impl FnMut(Time, &Packet),
    ) {
        match &mut self.server {
            Server::Fixed(_) => {
                while let Some(serving) = self.serving.take_if(|s| s.done <= now) {
                    depart(serving.done, &serving.packet);
                    self.serve_if_free(serving.done, dropped);
                }
            }
            Server::Trace(_) => self.use_opportunities(now, dropped, depart),
        }
    }

    fn serve_if_free(&mut self, now: Time, dropped: &mut Vec<Packet>) {
        if self.serving.is_none()
            && let Server::Fixed(rate) = &mut self.server
            && let Some(packet) = self.queue.dequeue(now, dropped)
        {
            let done = now + rate.time_to_send(u32::from(packet.size));
            self.serving = Some(Serving {
                packet,
                done,
                bytes_left: 0,
            });
        }
    }

    fn use_opportunities(
        &mut self,
        now: Time,
        dropped: &mut Vec<Packet>,
        mut depart: impl FnMut(Time, &Packet),
    ) {
        let Server::Trace(cursor) = &mut self.server else {
            return;
        };
        loop {
            if self.serving.is_none() && self.queue.is_empty() {
                cursor.skip_until(now);
                return;
            }
            let at = cursor.next();
            if at > now || at == Time::NEVER {
                return;
            }
            cursor.advance();
            let mut budget = TraceCursor::OPPORTUNITY;
            while budget > 0 {
                let next = self.serving.take().or_else(|| {
                    let packet = self.queue.dequeue(at, dropped)?;
                    let bytes_left = u32::from(packet.size) + TraceCursor::OVERHEAD;
                    Some(Serving {
                        packet,
                        done: at,
                        bytes_left,
                    })
                });
                let Some(mut serving) = next else { break };
                if serving.bytes_left <= budget {
                    budget -= serving.bytes_left;
                    depart(at, &serving.packet);
                } else {
                    serving.bytes_left -= budget;
                    budget = 0;
                    self.serving = Some(serving);
                }
            }
        }
    }

    /// Sets a new rate from `now` on; the remaining bits of a packet in transmission are sent at
    /// it.
    pub(super) fn set_rate(&mut self, now: Time, rate: Rate, dropped: &mut Vec<Packet>) {
        let left = self.serving.as_ref().map(|s| match &self.server {
            Server::Fixed(fixed) => fixed.rate().bytes_in(s.done.since(now)),
            Server::Trace(_) => Bytes::new(u64::from(s.bytes_left)),
        });
        self.server.set_rate(now, rate);
        self.queue.serve_by(&self.server);
        match (&mut self.serving, left) {
            (Some(serving), Some(left)) => serving.done = now + rate.time_to_send(left),
            _ => self.serve_if_free(now, dropped),
        }
    }
}
