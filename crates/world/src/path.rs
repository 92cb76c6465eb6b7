//! The path of a flow over time, as a seed has drawn it. Estimates of the path are compared with
//! it.

use headway_cc::{Bytes, Duration, Rate, Time};
use headway_scenario::{FlowSpec, Network, RateSpec};

use crate::{SetupError, Ways};

/// A flow's path from one moment to the next state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathState {
    /// The time at which the state begins.
    pub at: Time,
    /// The slowest link's rate on the way of the data; `None` if none has a fixed one.
    pub rate: Option<Rate>,
    /// That link, an index into the network's; `None` without a rate.
    pub slowest: Option<u32>,
    /// The time of a packet and its acknowledgement without queues: propagation, and transmission
    /// at fixed rates.
    pub rtt: Duration,
}

/// The states of a flow's path in order of time, the first at the beginning. Jitter and traces are
/// left out.
///
/// # Errors
/// [`SetupError`] if the flow has no way.
pub fn path_over_time(network: &Network, flow: &FlowSpec) -> Result<Vec<PathState>, SetupError> {
    let way = Ways::new(network).of_flow(flow)?;
    let fixed = |rate: &RateSpec| match rate {
        RateSpec::Fixed(rate) => Some(*rate),
        RateSpec::Unlimited | RateSpec::Trace { .. } => None,
    };
    let mut links: Vec<(Option<Rate>, Duration)> = network
        .links
        .iter()
        .map(|link| (fixed(&link.rate), link.delay))
        .collect();
    let state = |links: &[(Option<Rate>, Duration)], at: Time| {
        let takes = |ids: &[u32], size: Bytes| -> Duration {
            let each = ids.iter().map(|&id| links[id as usize]);
            each.map(|(rate, delay)| delay + rate.map_or(Duration::ZERO, |r| r.time_to_send(size)))
                .sum()
        };
        let rates = (way.data.iter()).filter_map(|&id| Some((links[id as usize].0?, id)));
        let slowest = rates.min_by_key(|(rate, _)| *rate);
        PathState {
            at,
            rate: slowest.map(|(rate, _)| rate),
            slowest: slowest.map(|(_, id)| id),
            rtt: takes(&way.data, network.packet_size) + takes(&way.acks, network.ack_size),
        }
    };
    let mut states = vec![state(&links, Time::ZERO)];
    let mut changes: Vec<_> = network.changes.iter().collect();
    changes.sort_by_key(|change| change.at);
    for change in changes {
        let link = &mut links[change.link];
        link.0 = change.rate.or(link.0);
        link.1 = change.delay.unwrap_or(link.1);
        let next = state(&links, change.at);
        match states.last_mut() {
            Some(last) if last.at == next.at => *last = next,
            Some(last)
                if (last.rate, last.slowest, last.rtt) == (next.rate, next.slowest, next.rtt) => {}
            _ => states.push(next),
        }
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use headway_scenario::Scenario;

    use super::*;

    /// 1250 bytes at 10 Mbit/s take 1 ms; 40 bytes of an acknowledgement take no time on a link
    /// without a rate.
    #[test]
    fn steps_of_delay_and_rate_appear_at_their_time() {
        let text = "schema = 1\nname = \"steps\"\nseconds = 20\npacket_size = \"1250B\"\n\
            bottleneck = { rate = \"10Mbps\", delay = \"20ms\", queue = \"100pkt\" }\n\
            at = [{ time = \"5s\", delay = \"30ms\" }, { time = \"7s\", rate = \"5Mbps\" }]\n";
        let network = Scenario::parse(text, "steps").expect("TOML").draw(1);
        let states = path_over_time(&network, &network.flows[0]).expect("a way");
        let found: Vec<_> = states
            .iter()
            .map(|s| (s.at.as_nanos() / 1_000_000, s.rtt.as_millis_f64()))
            .collect();
        assert_eq!(found, [(0, 41.0), (5000, 61.0), (7000, 62.0)]);
        assert_eq!(states[2].rate, Some(Rate::from_mbps(5.0)));
    }
}
