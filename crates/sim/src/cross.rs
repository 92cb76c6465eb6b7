//! Traffic without congestion control.

use headway_cc::{Duration, Ecn, Stream, Time};
use headway_net::{Body, Packet};
use headway_scenario::{CrossSpec, Pattern};

/// A UDP source.
#[derive(Debug)]
pub(crate) struct CrossTraffic {
    pub(crate) route: Box<[u32]>,
    id: u32,
    size: u16,
    gap: Duration,
    pattern: Pattern,
    stop: Time,
    next: Time,
    /// When the on period ends.
    on_until: Time,
    stream: Stream,
}

impl CrossTraffic {
    /// The packets of `spec`, which carry the index `id`.
    pub(crate) fn new(
        id: u32,
        spec: &CrossSpec,
        route: Box<[u32]>,
        stream: Stream,
    ) -> CrossTraffic {
        let mut source = CrossTraffic {
            route,
            id,
            size: spec.packet_size.get() as u16,
            gap: spec.rate.time_to_send(spec.packet_size),
            pattern: spec.pattern.clone(),
            stop: spec.stop.unwrap_or(Time::NEVER),
            next: spec.start,
            on_until: Time::NEVER,
            stream,
        };
        if let Pattern::OnOff { on, .. } = source.pattern {
            source.on_until = spec.start + source.draw(on);
        }
        source
    }

    /// When the next packet leaves; [`Time::NEVER`] for not at all.
    pub(crate) fn next(&self) -> Time {
        if self.next < self.stop {
            self.next
        } else {
            Time::NEVER
        }
    }

    /// The packet that leaves now.
    pub(crate) fn emit(&mut self, now: Time) -> Packet {
        self.next = match self.pattern {
            Pattern::Constant => now + self.gap,
            Pattern::Poisson => now + self.draw(self.gap),
            Pattern::OnOff { on, off } => {
                let mut next = now + self.gap;
                while next >= self.on_until {
                    next = self.on_until + self.draw(off);
                    self.on_until = next + self.draw(on);
                }
                next
            }
        };
        Packet {
            flow: self.id,
            size: self.size,
            hops_left: (self.route.len() - 1) as u8,
            ecn: Ecn::NotEct,
            arrived: now,
            body: Body::Cross,
        }
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(self.stream.exponential(1.0))
            .max(Duration::from_nanos(1))
    }
}
