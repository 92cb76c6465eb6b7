//! Traffic without congestion control.

use headway_cc::{Duration, Ecn, Stream, Time};
use headway_net::{Body, Packet};
use headway_scenario::{CrossSpec, Pattern};

use crate::Hops;

/// A source of UDP packets.
#[derive(Debug)]
pub struct CrossTraffic {
    /// The links that its packets cross.
    pub route: Box<[u32]>,
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
    /// The source of `spec`, whose packets have the index `id`.
    pub fn new(id: u32, spec: &CrossSpec, route: Box<[u32]>, stream: Stream) -> CrossTraffic {
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

    /// When the next packet leaves; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        if self.next < self.stop {
            self.next
        } else {
            Time::NEVER
        }
    }

    /// The packet that leaves now.
    pub fn emit(&mut self, now: Time) -> Packet {
        self.next = match self.pattern {
            Pattern::Constant => now + self.gap,
            Pattern::Poisson => now + self.draw(self.gap),
            Pattern::OnOff { on, off } => {
                // The rest of the gap at the end of a period counts in the next period.
                let (mut from, mut gap) = (now, self.gap);
                while from + gap >= self.on_until {
                    gap = gap.saturating_sub(self.on_until.since(from));
                    from = self.on_until + self.draw(off);
                    self.on_until = from + self.draw(on);
                }
                from + gap
            }
        };
        Packet {
            flow: self.id,
            size: self.size,
            hops_left: (self.route.len() - 1) as Hops,
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

#[cfg(test)]
mod tests {
    use super::*;
    use headway_cc::{Bytes, Rate};

    #[test]
    fn on_off_traffic_has_its_mean_rate() {
        // Periods have about 3 packets: a packet at the start of each would add a sixth.
        let ms = Duration::from_millis;
        let (on, off) = (ms(3), ms(6));
        let spec = CrossSpec {
            from: 0,
            to: 1,
            route: None,
            start: Time::ZERO,
            stop: None,
            rate: Rate::from_mbps(8.0),
            packet_size: Bytes::new(1000),
            pattern: Pattern::OnOff { on, off },
        };
        let mut source = CrossTraffic::new(0, &spec, [0].into(), Stream::new(1, "cross"));
        let packets = 300_000;
        for _ in 0..packets {
            source.emit(source.next());
        }
        // A packet takes 1 ms while on, and it is on a third of the time.
        let expected_s = f64::from(packets) * 1e-3 * 3.0;
        let ratio = source.next().since(Time::ZERO).as_secs_f64() / expected_s;
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }
}
