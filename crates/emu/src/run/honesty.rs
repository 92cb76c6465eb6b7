//! The path that a run's machine is compared with.

use headway_cc::{Duration, Rate, Time};
use headway_net::Link;

use super::plan::Plan;
use crate::fitness::Path;

/// The path of the flows under test: their smallest minimum RTT, and their bottleneck as it was up
/// to `end`.
pub(super) fn path_of(plan: &Plan, links: &mut [Link], end: Time) -> Path {
    let flows = plan.flows.iter().zip(&plan.network.flows);
    let tested = flows.filter(|(_, spec)| spec.scheme.is_none());
    let ways: Vec<_> = tested.map(|(flow, _)| &flow.way).collect();
    let delay = |&link: &u32| plan.network.links[link as usize].delay;
    let round_trips = ways.iter().map(|way| {
        let links = way.data.iter().chain(&way.acks);
        links.map(delay).fold(Duration::ZERO, |a, b| a + b)
    });
    let base_rtt = round_trips.min().unwrap_or_default();
    let crossed = ways.iter().flat_map(|way| way.data.iter());
    let rates = crossed.filter_map(|&link| {
        let offered = links[link as usize].offered_until(end)?;
        let room = plan.network.links[link as usize].queue.packets;
        Some((offered * 8.0 / end.as_secs_f64(), room))
    });
    let slowest = rates.reduce(|a, b| if b.0 < a.0 { b } else { a });
    let slowest = slowest.filter(|(rate, _)| *rate > 0.0);
    let packet = plan.network.packet_size;
    let packet_time = slowest.map_or(Duration::ZERO, |(rate, _)| {
        Rate::from_bps_f64(rate).time_to_send(packet)
    });
    let counters = links.iter_mut().map(|link| link.counters(end));
    Path {
        base_rtt,
        packet_time,
        queue_time: slowest.and_then(|(_, room)| Some(packet_time.mul_f64(room? as f64))),
        lost_packets: counters.map(|c| c.lost_packets + c.dropped_packets).sum(),
    }
}
