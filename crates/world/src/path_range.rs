//! The range of a scenario's paths over all of its seeds: what a model that was trained on them
//! knows.

use std::collections::HashMap;

use headway_cc::{Bytes, Duration, Rate, Time};
use headway_net::Loss;
use headway_net::trace::Trace;
use headway_scenario::{LinkSpec, Network, RateSpec, Scenario, TraceSpec};

use crate::{SetupError, TraceSource, Ways, path_over_time};

/// A trace's rates are means over this time, as headwayd measures a flow's.
const OF_TRACES: Duration = Duration::from_secs(10);
/// The distance between the times at which such a mean begins: a flow may begin at any time.
const STEP: Duration = Duration::from_millis(100);

/// The minimum and the maximum of paths' properties. If the minimum exceeds the maximum, there was
/// no path yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathRange {
    /// The rate of the slowest link, Mbit/s. For a trace, its mean rates over any ten seconds.
    pub rate_mbps: [f64; 2],
    /// The time of a packet and its acknowledgement without a queue, ms.
    pub rtt_ms: [f64; 2],
    /// The time that the slowest link takes to send a full queue, ms. A trace counts with its mean
    /// rate. Queues that never drop are left out.
    pub buffer_ms: [f64; 2],
    /// The probability that a packet is lost before the queues on its way.
    pub loss: [f64; 2],
}

impl Default for PathRange {
    /// The range of no path.
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
    /// Adds the paths of the scheme under test, as this many seeds draw them, from 1 on.
    ///
    /// # Errors
    /// [`SetupError`]: a flow has no way, or a trace is missing.
    pub fn see(
        &mut self,
        scenario: &Scenario,
        traces: TraceSource<'_>,
        seeds: u64,
    ) -> Result<(), SetupError> {
        let mut recorded = HashMap::new();
        (1..=seeds).try_for_each(|seed| self.see_run(&scenario.draw(seed), traces, &mut recorded))
    }

    fn see_run(
        &mut self,
        network: &Network,
        traces: TraceSource<'_>,
        recorded: &mut HashMap<TraceSpec, Recorded>,
    ) -> Result<(), SetupError> {
        for flow in network.flows.iter().filter(|flow| flow.scheme.is_none()) {
            let way = Ways::new(network).of_flow(flow)?;
            let links = way.data.iter().map(|&id| &network.links[id as usize]);
            let arrives: f64 = links.clone().map(|l| 1.0 - lost(l.loss.as_ref())).product();
            extend(&mut self.loss, 1.0 - arrives);
            let mut follow = Vec::new();
            for link in links {
                if let RateSpec::Trace { trace, .. } = &link.rate {
                    if !recorded.contains_key(trace) {
                        let found = traces(trace).map_err(SetupError::Trace)?;
                        recorded.insert(trace.clone(), Recorded::of(&found));
                    }
                    follow.push((link, recorded[trace]));
                }
            }
            for state in path_over_time(network, flow)? {
                extend(&mut self.rtt_ms, state.rtt.as_millis_f64());
                // The slowest link counts, once while the trace is slow, and once while it is fast.
                let fixed = state.rate.map_or(f64::INFINITY, Rate::as_mbps);
                for end in [0, 1] {
                    let rates = follow.iter().map(|(_, of)| of.bounds_mbps[end]);
                    extend(&mut self.rate_mbps, rates.fold(fixed, f64::min));
                }
                let fixed = (state.rate.zip(state.slowest))
                    .map(|(rate, id)| (&network.links[id as usize], rate));
                let means = follow.iter().map(|(link, of)| (*link, of.mean));
                let slowest = fixed.into_iter().chain(means).min_by_key(|(_, rate)| *rate);
                if let Some((link, rate)) = slowest {
                    extend(
                        &mut self.buffer_ms,
                        buffer_ms(link, rate, network.packet_size),
                    );
                }
            }
        }
        Ok(())
    }
}

/// A trace's rates, over all its repetitions.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    /// The rates of its slowest and fastest ten seconds, Mbit/s.
    bounds_mbps: [f64; 2],
    mean: Rate,
}

impl Recorded {
    fn of(trace: &Trace) -> Recorded {
        let bits = |packets: u64| packets as f64 * 1500.0 * 8.0;
        let mut bounds_mbps = [f64::INFINITY, f64::NEG_INFINITY];
        for step in 0..trace.period().as_nanos().div_ceil(STEP.as_nanos()) {
            let from = Time::ZERO + STEP * step;
            let packets = trace.opportunities_between(Duration::ZERO, from, from + OF_TRACES);
            let mbps = bits(packets) / OF_TRACES.as_secs_f64() * 1e-6;
            extend(&mut bounds_mbps, mbps);
        }
        let mean = Rate::from_mbps(trace.mean_mbps());
        Recorded { bounds_mbps, mean }
    }
}

fn extend([least, most]: &mut [f64; 2], value: f64) {
    if value.is_finite() {
        (*least, *most) = (least.min(value), most.max(value));
    }
}

/// The time in which a link sends its full queue at this rate.
fn buffer_ms(link: &LinkSpec, rate: Rate, packet_size: Bytes) -> f64 {
    let of_packets = (link.queue.packets).map(|packets| packet_size * packets);
    match [of_packets, link.queue.bytes].into_iter().flatten().min() {
        Some(_) if rate == Rate::ZERO => f64::INFINITY,
        Some(bytes) => rate.time_to_send(bytes).as_millis_f64(),
        None => f64::INFINITY,
    }
}

/// The long-term probability that a link loses a packet.
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

    /// 1250 bytes take 1 ms at 10 Mbit/s; a full queue of 100 packets takes 100 ms at 10 and 10 ms
    /// at 100 Mbit/s.
    #[test]
    fn path_ranges_match_the_scenarios_ranges() {
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
    fn changes_count_and_flows_with_their_own_scheme_do_not() {
        let found = range(
            "schema = 1\nname = \"steps\"\nseconds = 20\npacket_size = \"1250B\"\n\
             bottleneck = { rate = \"10Mbps\", delay = \"20ms\", queue = \"100pkt\" }\n\
             at = [{ time = \"5s\", rate = \"5Mbps\" }]\n\
             [[flow]]\n[[flow]]\nscheme = \"cubic\"\n",
            None,
        );
        assert_eq!(found.rate_mbps, [5.0, 10.0]);
        assert_eq!(found.rtt_ms, [41.0, 42.0]);
        assert_eq!(found.buffer_ms, [100.0, 200.0]);
        assert_eq!(found.loss, [0.0, 0.0]);
    }

    /// A trace that repeats: 20 s of 12, 10 s of 6 and 5 s of 24 Mbit/s.
    fn recorded() -> Option<Trace> {
        let steps = [(20, 12.0), (10, 6.0), (5, 24.0)];
        let steps = steps.map(|(s, mbps)| (Duration::from_secs(s), mbps));
        Some(Trace::from_steps(&steps).expect("a trace"))
    }

    fn is_near(found: [f64; 2], expected: [f64; 2]) -> bool {
        let mut pairs = found.into_iter().zip(expected);
        pairs.all(|(one, other)| (one - other).abs() <= 0.005 * other)
    }

    /// Half of the fastest ten seconds has 24, the other half 12 Mbit/s. The mean rate is 12
    /// Mbit/s, so 100 packets of 1500 bytes take 100 ms.
    #[test]
    fn rates_of_a_trace_are_means_over_ten_seconds() {
        let found = range(
            "schema = 1\nname = \"trace\"\nseconds = 20\n\
             bottleneck = { trace = \"own.down\", delay = \"20ms\", queue = \"100pkt\" }\n",
            recorded(),
        );
        assert!(is_near(found.rate_mbps, [6.0, 18.0]), "{found:?}");
        assert!(is_near(found.buffer_ms, [100.0, 100.0]), "{found:?}");
        assert_eq!(found.rtt_ms, [40.0, 40.0]);
    }

    /// The range of a recorded link behind one with a fixed rate and 100 packets of queue. The
    /// recorded link has 50 packets, which take 50 ms at its mean rate.
    fn behind(fixed: &str) -> PathRange {
        range(
            &format!(
                "schema = 1\nname = \"behind\"\nseconds = 20\n\
                 [[link]]\nfrom = \"sender\"\nto = \"middle\"\nrate = \"{fixed}\"\nqueue = \"100pkt\"\n\
                 [[link]]\nfrom = \"middle\"\nto = \"receiver\"\ntrace = \"own.down\"\nqueue = \"50pkt\"\n\
                 [[link]]\nfrom = \"receiver\"\nto = \"sender\"\nrate = \"1Gbps\"\ndelay = \"20ms\"\n\
                 [[flow]]\nfrom = \"sender\"\nto = \"receiver\"\n"
            ),
            recorded(),
        )
    }

    #[test]
    fn the_range_of_a_path_with_a_trace_is_that_of_its_slowest_link() {
        for (fixed, rates, buffer_ms) in [
            ("1Gbps", [6.0, 18.0], 50.0),
            ("15Mbps", [6.0, 15.0], 50.0),
            ("8Mbps", [6.0, 8.0], 150.0),
            ("4Mbps", [4.0, 4.0], 300.0),
        ] {
            let found = behind(fixed);
            assert!(is_near(found.rate_mbps, rates), "{fixed}: {found:?}");
            let buffers = [buffer_ms, buffer_ms];
            assert!(is_near(found.buffer_ms, buffers), "{fixed}: {found:?}");
        }
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
