//! Which paths a scenario has, over all of its seeds: what a model that was trained on them knows.

use headway_cc::{Bytes, Duration, Rate};
use headway_net::Loss;
use headway_net::trace::Trace;
use headway_scenario::{LinkSpec, Network, RateSpec, Scenario};

use crate::{SetupError, TraceSource, Ways, path_over_time};

/// Rates of a trace are its means over so long.
const OF_TRACES: Duration = Duration::from_secs(10);

/// The least and the most of what paths have; nothing has been seen while the least is above the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathRange {
    /// The rate of the slowest link, Mbit/s. Of a trace: its mean rates over ten seconds.
    pub rate_mbps: [f64; 2],
    /// What a packet and its acknowledgement take without a queue, ms.
    pub rtt_ms: [f64; 2],
    /// What the slowest link takes to send a full queue, ms; of a trace at its mean rate. Queues that never drop are left
    /// out.
    pub buffer_ms: [f64; 2],
    /// The probability that a packet is lost before the queues on its way.
    pub loss: [f64; 2],
}

impl Default for PathRange {
    /// Of no path.
    fn default() -> PathRange {
        let none = [f64::INFINITY, f64::NEG_INFINITY];
        PathRange {
            rate_mbps: none,
            rtt_ms: none,
            buffer_ms: none,
            loss: none,
        }
    }
}

impl PathRange {
    /// Adds the paths of the scheme under test, as so many seeds draw them, from 1 on.
    ///
    /// # Errors
    /// [`SetupError`]: a flow has no way, or a trace is missing.
    pub fn see(
        &mut self,
        scenario: &Scenario,
        traces: TraceSource<'_>,
        seeds: u64,
    ) -> Result<(), SetupError> {
        (1..=seeds).try_for_each(|seed| self.see_run(&scenario.draw(seed), traces))
    }

    fn see_run(&mut self, network: &Network, traces: TraceSource<'_>) -> Result<(), SetupError> {
        for flow in network.flows.iter().filter(|flow| flow.scheme.is_none()) {
            for state in path_over_time(network, flow)? {
                extend(&mut self.rtt_ms, state.rtt.as_millis_f64());
                if let Some(rate) = state.rate {
                    extend(&mut self.rate_mbps, rate.as_mbps());
                }
            }
            let way = Ways::new(network).of_flow(flow)?;
            let links = way.data.iter().map(|&id| &network.links[id as usize]);
            let arrives: f64 = links.clone().map(|l| 1.0 - lost(l.loss.as_ref())).product();
            extend(&mut self.loss, 1.0 - arrives);
            // A link that follows a trace is taken for the slowest.
            for link in links.clone() {
                if let RateSpec::Trace { trace, .. } = &link.rate {
                    let found = traces(trace).map_err(SetupError::Trace)?;
                    self.see_trace(link, &found, network.packet_size);
                }
            }
            let slowest = links.filter_map(|link| match link.rate {
                RateSpec::Fixed(rate) => Some((rate, link)),
                RateSpec::Unlimited | RateSpec::Trace { .. } => None,
            });
            if let Some((rate, link)) = slowest.min_by_key(|(rate, _)| *rate) {
                extend(
                    &mut self.buffer_ms,
                    buffer_ms(link, rate, network.packet_size),
                );
            }
        }
        Ok(())
    }

    fn see_trace(&mut self, link: &LinkSpec, trace: &Trace, packet_size: Bytes) {
        let mut rates = trace.rates_mbps(OF_TRACES);
        let is_whole = (trace.period().as_nanos()).is_multiple_of(OF_TRACES.as_nanos());
        if !is_whole && rates.len() > 1 {
            rates.pop();
        }
        for mbps in rates {
            extend(&mut self.rate_mbps, mbps);
        }
        // A full queue outlasts the trace's slow times.
        let mean = Rate::from_mbps(trace.mean_mbps());
        extend(&mut self.buffer_ms, buffer_ms(link, mean, packet_size));
    }
}

fn extend([least, most]: &mut [f64; 2], value: f64) {
    if value.is_finite() {
        (*least, *most) = (least.min(value), most.max(value));
    }
}

/// What a link takes to send its full queue at this rate.
fn buffer_ms(link: &LinkSpec, rate: Rate, packet_size: Bytes) -> f64 {
    let of_packets = (link.queue.packets).map(|packets| packet_size * packets);
    match [of_packets, link.queue.bytes].into_iter().flatten().min() {
        Some(_) if rate == Rate::ZERO => f64::INFINITY,
        Some(bytes) => rate.time_to_send(bytes).as_millis_f64(),
        None => f64::INFINITY,
    }
}

/// The probability that a link loses a packet, in the long run.
fn lost(loss: Option<&Loss>) -> f64 {
    match loss {
        None => 0.0,
        Some(Loss::Random { probability }) => *probability,
        Some(Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_good,
            loss_bad,
        }) => {
            let bad = if *to_bad > 0.0 {
                to_bad / (to_bad + to_good)
            } else {
                0.0
            };
            (1.0 - bad) * loss_good + bad * loss_bad
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn range(text: &str, trace: Option<Trace>) -> PathRange {
        let scenario = Scenario::parse(text, "text").expect("TOML");
        let trace = trace.map(Arc::new);
        let mut range = PathRange::default();
        let found = |_: &_| trace.clone().ok_or_else(|| "no trace".to_owned());
        range.see(&scenario, &found, 200).expect("paths");
        range
    }

    /// 1250 bytes take 1 ms at 10 Mbit/s; 100 packets of a full queue 100 ms at 10 and 10 ms at 100 Mbit/s.
    #[test]
    fn ranges_are_those_that_the_scenario_draws_from() {
        let found = range(
            "schema = 1\nname = \"drawn\"\nseconds = 20\npacket_size = \"1250B\"\n\
             bottleneck = { rate = \"10Mbps..100Mbps\", delay = \"20ms\", queue = \"100pkt\", loss = \"0..2%\" }\n",
            None,
        );
        let is_near = |found: [f64; 2], least: f64, most: f64, share: f64| {
            let slack = (most - least) * share;
            assert!(
                (least..=least + slack).contains(&found[0])
                    && (most - slack..=most).contains(&found[1]),
                "{found:?} for {least} to {most}"
            );
        };
        is_near(found.rate_mbps, 10.0, 100.0, 0.05);
        is_near(found.rtt_ms, 40.1, 41.0, 0.05);
        is_near(found.buffer_ms, 10.0, 100.0, 0.05);
        is_near(found.loss, 0.0, 0.02, 0.05);
    }

    #[test]
    fn changes_of_a_run_are_seen_and_flows_with_a_scheme_of_their_own_are_not() {
        let found = range(
            "schema = 1\nname = \"steps\"\nseconds = 20\npacket_size = \"1250B\"\n\
             bottleneck = { rate = \"10Mbps\", delay = \"20ms\", queue = \"100pkt\" }\n\
             at = [{ time = \"5s\", rate = \"5Mbps\" }]\n\
             [[flow]]\n[[flow]]\nscheme = \"cubic\"\n",
            None,
        );
        assert_eq!(found.rate_mbps, [5.0, 10.0]);
        assert_eq!(found.rtt_ms, [41.0, 42.0]);
        assert_eq!(found.loss, [0.0, 0.0]);
    }

    /// The last 5 s are too short to count. The mean rate is 12 Mbit/s, so 100 packets of 1500 bytes take 100 ms.
    #[test]
    fn rates_of_a_trace_are_means_over_ten_seconds() {
        let steps = [(20, 12.0), (10, 6.0), (5, 24.0)];
        let steps = steps.map(|(s, mbps)| (Duration::from_secs(s), mbps));
        let found = range(
            "schema = 1\nname = \"trace\"\nseconds = 20\n\
             bottleneck = { trace = \"own.down\", delay = \"20ms\", queue = \"100pkt\" }\n",
            Some(Trace::from_steps(&steps).expect("a trace")),
        );
        assert_eq!(found.rate_mbps, [6.0, 12.0]);
        let is_near = |ms: f64| (ms - 100.0).abs() < 0.5;
        assert!(found.buffer_ms.iter().all(|ms| is_near(*ms)), "{found:?}");
        assert_eq!(found.rtt_ms, [40.0, 40.0]);
    }

    #[test]
    fn queues_that_never_drop_are_left_out() {
        let found = range(
            "schema = 1\nname = \"endless\"\nseconds = 20\n\
             bottleneck = { rate = \"10Mbps\", delay = \"20ms\" }\n",
            None,
        );
        assert_eq!(found.buffer_ms, PathRange::default().buffer_ms);
    }
}
