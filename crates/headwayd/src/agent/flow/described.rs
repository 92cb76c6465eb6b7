//! The status of a flow.

use headway_cc::{Probe, Time};
use headway_policy::{Record, observed};

use super::{Driver, Flow};
use crate::agent::range::Outside;
use crate::agent::statistics;

impl Flow {
    /// Describes the flow for `headwayd status`.
    pub fn describe(&self, controller: &str, now: Time) -> serde_json::Value {
        let Record {
            cwnd,
            srtt_us,
            min_rtt_us,
            rate_delivered,
            rate_interval_us,
            mss,
            pacing_rate,
            in_flight,
            delivered,
            lost,
            btlbw,
            rtprop_us,
            pacing_gain,
            cwnd_gain,
            ..
        } = self.last;
        let rate =
            f64::from(rate_delivered) * f64::from(mss) * 8.0 / f64::from(rate_interval_us.max(1));
        let mut told = Told::default();
        let mut settings = serde_json::Map::new();
        match &self.driver {
            Driver::Policy(_, carried) => carried.probe(&mut told),
            Driver::Tuner(names, values) => {
                settings.extend(
                    names
                        .iter()
                        .cloned()
                        .zip(values.iter().map(|v| (*v).into())),
                );
            }
            Driver::Nobody => {}
        }
        // The network's report, as its policy would observe it now.
        let (has_path, since) = (!self.path.is_empty(), now.since(self.path_seen));
        let network = observed(&self.path_view, since);
        // Only BBR has these values; they are 0 otherwise.
        let known = |value: f64| (value > 0.0).then_some(value);
        // The kernel does not report what an int8 policy decides.
        let served = self.driver.served();
        let is_counted = served.is_none_or(|served| served.int8().is_none());
        serde_json::json!({
            "flow": self.number,
            "controller": controller,
            "policy": self.policy(),
            "model": self.model_id(),
            "settings": settings,
            "local": self.local.to_string(),
            "remote": self.remote.to_string(),
            "user": self.user,
            "class": self.class.to_string(),
            "path": has_path.then_some(&self.path),
            "network_known": has_path.then_some(network.known),
            "network_age_s": has_path.then(|| (self.path_view.age + since).as_secs_f64()),
            "age_s": now.since(self.setup.start).as_secs_f64(),
            "cwnd_packets": cwnd,
            "in_flight_packets": in_flight,
            "srtt_ms": f64::from(srtt_us) * 1e-3,
            "min_rtt_ms": f64::from(min_rtt_us) * 1e-3,
            "delivery_rate_mbps": rate,
            "pacing_rate_mbps": if pacing_rate > 0 { Some(pacing_rate as f64 * 8e-6) } else { None },
            "btlbw_mbps": known(btlbw as f64 * 8e-6),
            "rtprop_ms": known(f64::from(rtprop_us) * 1e-3),
            "pacing_gain": known(f64::from(pacing_gain) / 256.0),
            "cwnd_gain": known(f64::from(cwnd_gain) / 256.0),
            "delivered_packets": delivered,
            "lost_packets": lost,
            "decisions": self.decisions,
            "in_range": self.watch.as_deref().and_then(|watch| watch.is_inside(self.last.now())),
            "outside_range": self.watch.as_deref().and_then(|watch| watch.outside(self.last.now())).map(Outside::name),
            "decisions_outside_range": is_counted.then_some(self.outside),
            "decisions_at_bound": is_counted.then_some(self.at_bound),
            "refused_decisions": told.refused,
            "updates": told.updates,
            "has_ended_learning": self.has_ended_learning,
            "skipped_updates": told.skipped,
            "dropped_transitions": told.dropped,
            "divergences": told.divergences,
            "forgotten_actions": told.forgotten,
            "guard": if self.in_fallback() { "cubic" } else { "policy" },
            "guard_reason": statistics::reason(if self.in_fallback() { self.guard.reason } else { 0 }),
            "guard_trips": self.guard.trips,
            "guard_judged_at_s": self.guard.at_ns as f64 * 1e-9,
        })
    }
}

/// What a policy reports about itself.
#[derive(Default)]
struct Told {
    /// Decisions that the policy could not make.
    refused: u64,
    /// Gradient steps of a learner, those before this flow included.
    updates: u64,
    /// Gradient steps that were due while the learning thread was busy.
    skipped: u64,
    /// Transitions that found no room while the learning thread was busy.
    dropped: u64,
    divergences: u64,
    /// Actions that a learner gave up because their effect did not show in time.
    forgotten: u64,
}

impl Probe for Told {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "refused_decisions" => self.refused = value as u64,
            "updates" => self.updates = value as u64,
            "skipped_updates" => self.skipped = value as u64,
            "dropped_transitions" => self.dropped = value as u64,
            "divergences" => self.divergences = value as u64,
            "forgotten_actions" => self.forgotten = value as u64,
            _ => {}
        }
    }
}
