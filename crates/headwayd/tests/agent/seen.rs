//! Records what simulated flows do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, NetworkView, Probe, Rto, Sent, Setup, Stamp,
    Tag, Time,
};
use headway_fixed::Reason;

/// A flow's state after an acknowledgement or a timeout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    pub at: Time,
    /// The window in packets.
    pub cwnd: f64,
    /// The threshold in packets.
    pub ssthresh: f64,
    /// The packets that this acknowledgement covers.
    pub acked: f64,
    pub srtt: Duration,
    /// Is it in loss recovery?
    pub is_repairing: bool,
    /// Why the flow is in fallback.
    pub reason: Reason,
    pub trips: u32,
}

/// What the flows of a run did.
#[derive(Debug, Default)]
pub struct Seen {
    pub states: Vec<Vec<State>>,
    /// The time and bytes of each packet that arrived, by flow.
    pub arrived: Vec<Vec<(Time, u64)>>,
    /// The times of each flow's requests.
    pub asked: BTreeMap<u32, Vec<Time>>,
}

impl Seen {
    /// The throughput of all flows between two times, in Mbit/s.
    pub fn mbps(&self, since: Time, until: Time) -> f64 {
        (0..self.arrived.len())
            .map(|flow| self.mbps_of(flow, since, until))
            .sum()
    }

    /// The throughput of one flow between two times, in Mbit/s.
    pub fn mbps_of(&self, flow: usize, since: Time, until: Time) -> f64 {
        let came = self.arrived[flow]
            .iter()
            .filter(|(at, _)| *at > since && *at <= until);
        let bytes: u64 = came.map(|(_, bytes)| bytes).sum();
        bytes as f64 * 8e-6 / until.since(since).as_secs_f64()
    }

    /// The longest time without an arrival from a flow.
    pub fn longest_gap(&self, flow: usize, since: Time, until: Time) -> Duration {
        let came = self.arrived[flow].iter().map(|(at, _)| *at);
        let within = came.filter(|at| *at > since && *at < until).chain([until]);
        let mut before = since;
        within
            .map(|at| at.since(std::mem::replace(&mut before, at)))
            .max()
            .unwrap_or_default()
    }

    pub fn flows(&self) -> usize {
        self.arrived.len()
    }

    /// A flow's states from a time on.
    pub fn from(&self, flow: usize, since: Time) -> &[State] {
        let states = &self.states[flow];
        &states[states.partition_point(|state| state.at < since)..]
    }

    /// When the guard first tripped for a flow, and why.
    pub fn trip(&self, flow: usize) -> Option<(Time, Reason)> {
        let tripped = self.states[flow].iter().find(|state| state.trips > 0)?;
        Some((tripped.at, tripped.reason))
    }

    /// When the guard first returned a flow to its policy.
    pub fn returned(&self, flow: usize) -> Option<Time> {
        let (trip, _) = self.trip(flow)?;
        let back = self
            .from(flow, trip)
            .iter()
            .find(|state| state.reason == Reason::Fine);
        back.map(|state| state.at)
    }
}

pub type SharedSeen = Arc<Mutex<Seen>>;

/// A controller whose states are recorded.
#[derive(Debug)]
pub struct Watched {
    within: Box<dyn CongestionControl>,
    seen: SharedSeen,
    flow: usize,
    mss: f64,
}

/// What a controller reports about itself.
struct Said {
    ssthresh: f64,
    reason: f64,
    trips: f64,
}

impl Probe for Said {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "ssthresh_packets" => self.ssthresh = value,
            "guard_reason" => self.reason = value,
            "guard_trips" => self.trips = value,
            _ => {}
        }
    }
}

impl Watched {
    pub fn new(within: Box<dyn CongestionControl>, setup: &Setup, seen: &SharedSeen) -> Watched {
        let mut all = seen.lock().expect("no panic");
        all.states.push(Vec::new());
        all.arrived.push(Vec::new());
        Watched {
            within,
            seen: Arc::clone(seen),
            flow: all.states.len() - 1,
            mss: setup.mss.as_f64(),
        }
    }

    fn look(&self, now: Time, acked: f64, srtt: Duration, is_repairing: bool) {
        let mut said = Said {
            ssthresh: f64::INFINITY,
            reason: 0.0,
            trips: 0.0,
        };
        self.within.probe(&mut said);
        let state = State {
            at: now,
            cwnd: self.within.control().cwnd.as_f64() / self.mss,
            ssthresh: said.ssthresh,
            acked,
            srtt,
            is_repairing,
            reason: Reason::of(said.reason as u32).expect("a reason"),
            trips: said.trips as u32,
        };
        self.seen.lock().expect("no panic").states[self.flow].push(state);
    }
}

impl CongestionControl for Watched {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.within.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.within.on_feedback(feedback);
        let acked = feedback.acked_bytes.as_f64() / self.mss;
        let is_repairing = feedback.recovery != headway_cc::Recovery::Open;
        self.look(
            feedback.now,
            acked,
            feedback.rtt_stats.smoothed,
            is_repairing,
        );
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.within.on_rto(rto);
        self.look(rto.now, 0.0, Duration::ZERO, true);
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.within.on_idle(now, idle);
    }

    fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.within.on_network(now, view);
    }

    fn next_timer(&self) -> Time {
        self.within.next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.within.on_timer(now);
    }

    fn control(&self) -> Control {
        self.within.control()
    }

    fn stamp(&self) -> Stamp {
        self.within.stamp()
    }

    fn owns_recovery(&self) -> bool {
        self.within.owns_recovery()
    }
}
