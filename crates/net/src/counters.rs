//! A switch's counters, and the two numbers that Owl computes from them.

use headway_cc::{Rate, Time};

use crate::LinkCounters;

/// The counters of a switch's port since the switch's start, as it keeps them (OpenFlow 1.3
/// `ofp_port_stats`, Linux's interface statistics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets whose last bit has left. Packets that wait do not count, nor do packets that the
    /// queue dropped or that were lost before it.
    pub tx_packets: u64,
    /// Bytes of these packets.
    pub tx_bytes: u64,
    /// Packets that the port's queue dropped.
    pub tx_dropped: u64,
    /// When the counters were read, by the switch's clock.
    pub at: Time,
}

impl PortCounters {
    /// The port of an incoming and an outgoing link, both read `at` the same time. For a one-way
    /// port, the other link has carried nothing: [`LinkCounters::default`].
    pub fn new(at: Time, incoming: &LinkCounters, outgoing: &LinkCounters) -> PortCounters {
        PortCounters {
            rx_packets: incoming.delivered_packets,
            rx_bytes: incoming.delivered_bytes,
            tx_packets: outgoing.served_packets,
            tx_bytes: outgoing.served_bytes,
            tx_dropped: outgoing.dropped_packets,
            at,
        }
    }
}

/// A port over an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Port {
    /// The port's counters at the interval's beginning.
    pub before: PortCounters,
    /// The port's counters at the interval's end.
    pub after: PortCounters,
    /// The rate of the outgoing link; `None` if it has none or it is unknown. Zero in an outage.
    pub capacity: Option<Rate>,
}

/// What a port did in its interval, per second.
struct PortRates {
    packets_in: f64,
    packets_out: f64,
    bits_out: f64,
}

impl Port {
    /// `None` if the interval is empty, or if a counter has decreased: the switch has restarted, or
    /// its counter has wrapped, and the traffic in between is unknown.
    fn rates(&self) -> Option<PortRates> {
        let seconds = self.after.at.since(self.before.at).as_secs_f64();
        let (before, after) = (&self.before, &self.after);
        let rate = |before: u64, after: u64| Some(after.checked_sub(before)? as f64 / seconds);
        let rates = PortRates {
            packets_in: rate(before.rx_packets, after.rx_packets)?,
            packets_out: rate(before.tx_packets, after.tx_packets)?,
            bits_out: 8.0 * rate(before.tx_bytes, after.tx_bytes)?,
        };
        (seconds > 0.0).then_some(rates)
    }
}

/// Partial network congestion and availability of a path, from the ports of those of its switches
/// that are known (Sacco et al., "Owl", INFOCOM 2021, Eq. 4 and 5):
///
/// - PNC is the largest difference between the packets that entered a switch and those that left
///   it, per second, whichever is more;
///
/// - PNA is the smallest share of a link's capacity that was free, from 0 to 1.
///
/// Each port is normalised by the time between its own two readings. A switch with an unusable port
/// (no time between the readings, or a counter that decreased) is left out of PNC, and the port is
/// left out of PNA. `None` if that leaves no switch, or no link whose capacity is known.
pub fn network_view<S>(known: impl IntoIterator<Item = S>) -> Option<(f64, f64)>
where
    S: IntoIterator<Item = Port>,
{
    let mut pnc: Option<f64> = None;
    let mut pna: Option<f64> = None;
    for switch in known {
        // The surplus is zero for a switch without ports.
        let mut surplus = Some(0.0);
        for port in switch {
            let Some(rates) = port.rates() else {
                surplus = None;
                continue;
            };
            surplus = surplus.map(|s| s + rates.packets_in - rates.packets_out);
            if let Some(capacity) = port.capacity {
                let capacity = capacity.as_bps() as f64;
                // A packet counted a moment late may seem to exceed the capacity. With no capacity
                // nothing is free.
                let free = if rates.bits_out < capacity {
                    1.0 - rates.bits_out / capacity
                } else {
                    0.0
                };
                pna = Some(pna.map_or(free, |least| least.min(free)));
            }
        }
        if let Some(surplus) = surplus {
            pnc = Some(pnc.map_or(surplus.abs(), |most| most.max(surplus.abs())));
        }
    }
    Some((pnc?, pna?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port that was read at 10 and at 12 s, with this many packets of 1250 bytes in and out in
    /// between.
    fn port(packets_in: u64, packets_out: u64, mbps: Option<f64>) -> Port {
        let counters = |packets_in, packets_out, at| PortCounters {
            rx_packets: packets_in,
            rx_bytes: 1250 * packets_in,
            tx_packets: packets_out,
            tx_bytes: 1250 * packets_out,
            tx_dropped: 0,
            at: Time::from_millis(at),
        };
        Port {
            before: counters(500, 700, 10_000),
            after: counters(500 + packets_in, 700 + packets_out, 12_000),
            capacity: mbps.map(Rate::from_mbps),
        }
    }

    #[test]
    fn network_view_computes_pnc_and_pna() {
        // 1000 packets of 10 kbit in 2 s are 5 Mbit/s.
        let forwards = [port(1000, 0, Some(10.0)), port(0, 1000, Some(20.0))];
        assert_eq!(network_view([forwards]), Some((0.0, 0.75)));
        // One switch keeps 200 packets; another sends 300 more than it receives.
        let keeps = [port(1000, 0, None), port(0, 800, Some(5.0))];
        let gives = [port(0, 300, Some(100.0)), port(0, 0, None)];
        let view = network_view([forwards, keeps, gives]);
        let (pnc, pna) = view.unwrap();
        assert_eq!(pnc, 150.0);
        assert!((pna - 0.2).abs() < 1e-12, "{pna}");
        // It sends more than its capacity, so nothing is free.
        assert_eq!(
            network_view([[port(0, 1000, Some(1.0))]]),
            Some((500.0, 0.0))
        );
    }

    #[test]
    fn no_capacity_is_free_in_an_outage() {
        for packets_out in [0, 5] {
            let stands_still = [port(5, 0, Some(10.0)), port(0, packets_out, Some(0.0))];
            assert_eq!(network_view([stands_still]).map(|v| v.1), Some(0.0));
        }
    }

    #[test]
    fn unusable_ports_are_left_out() {
        let good = [port(1000, 0, Some(10.0)), port(0, 990, Some(20.0))];
        let view = network_view([good]);
        assert!(view.is_some());
        let mut reset = good;
        reset[1].after.tx_bytes = 0;
        let mut instant = good;
        instant[0].after.at = instant[0].before.at;
        for bad in [reset, instant] {
            assert_eq!(network_view([good, bad]).map(|v| v.0), view.map(|v| v.0));
            assert_eq!(network_view([bad]), None);
        }
        assert_eq!(network_view([[port(5, 5, None)]]), None);
        assert_eq!(network_view(Vec::<[Port; 0]>::new()), None);
    }
}
