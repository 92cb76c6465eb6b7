//! One episode: a simulation that stops whenever its learning flows have to decide.

use headway_cc::{Bytes, Duration, Time};
use headway_net::Ack;
use headway_net::transport::Sender;
use headway_policy::{Answer, External, Learned};
use headway_scenario::{FlowSpec, Network, Scenario, TraceSpec};
use headway_sim::{Hold, Observer, Options, Simulation, SimulationError};
use headway_world::{PathState, SetupError, Ways, path_over_time};

use crate::measurement::{self, WayState};
use crate::{EnvError, EnvSpec, external};

/// An active episode.
#[derive(Debug)]
pub struct Episode {
    simulation: Simulation<Decisions>,
    learners: Vec<Learner>,
    /// The learners that have yet to answer.
    waiting: Vec<usize>,
    scenario: String,
    seed: u64,
    steps: u32,
    most_steps: u32,
    patience: Duration,
    packet_size: Bytes,
    end: Option<End>,
    failure: Option<EnvError>,
}

/// A learning flow, and the state of its path at the end of the last step.
#[derive(Debug)]
struct Learner {
    flow: usize,
    /// Which of the scenario's learning flows it is. A flow that comes and goes is another learner
    /// each time.
    place: usize,
    begun: Time,
    ends: Time,
    base_rtt_ms: f64,
    /// The flow's path over the length of the episode.
    path: Vec<PathState>,
    /// The links with a rate that its data crosses.
    shared: Vec<Shared>,
    /// Bytes that each link of its path could have carried by then.
    offered: Vec<Option<f64>>,
    offered_at: Time,
    answers: u32,
}

/// A link of a learner's path, and the flows whose data crosses it.
#[derive(Debug)]
struct Shared {
    /// The link's mean rate.
    mbps: f64,
    /// When flows begin, in order.
    begin: Box<[Time]>,
    /// When flows end, in order.
    end: Box<[Time]>,
}

impl Shared {
    fn new(mbps: f64, flows: impl Iterator<Item = (Time, Time)>) -> Shared {
        let (mut begin, mut end): (Vec<_>, Vec<_>) = flows.filter(|f| f.0 < f.1).unzip();
        begin.sort_unstable();
        end.sort_unstable();
        Shared {
            mbps,
            begin: begin.into(),
            end: end.into(),
        }
    }

    /// The link's rate, divided by the number of running flows, at least one.
    fn fair_mbps(&self, now: Time) -> f64 {
        let before = |times: &[Time]| times.partition_point(|&t| t <= now);
        let there = before(&self.begin) - before(&self.end);
        self.mbps / there.max(1) as f64
    }
}

impl Learner {
    /// The time of a packet and its acknowledgement without queues.
    fn path_rtt_ms(&self, now: Time) -> f64 {
        let states = self.path.partition_point(|state| state.at <= now);
        self.path[states.max(1) - 1].rtt.as_millis_f64()
    }

    /// The mean rate of the slowest link; infinite if none has a rate.
    fn path_mbps(&self) -> f64 {
        let rates = self.shared.iter().map(|link| link.mbps);
        rates.fold(f64::INFINITY, f64::min)
    }

    /// The smallest share that a link has for this flow; infinite if none has a rate.
    fn fair_mbps(&self, now: Time) -> f64 {
        let shares = self.shared.iter().map(|link| link.fair_mbps(now));
        shares.fold(f64::INFINITY, f64::min)
    }
}

/// Why a run of an episode has paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Some flows have to decide: those that [wait](Episode::waiting).
    Decision,
    /// The episode is over.
    End(End),
}

/// Why an episode is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// Its flows have sent all their data, so nothing is left to decide. All other ends cut it off.
    Done = 1,
    /// A flow has answered as often as it may.
    Steps = 2,
    /// The episode's time is over.
    Time = 3,
    /// For a long time no flow had to decide.
    Stalled = 4,
    /// The episode [failed](Episode::failure).
    Failed = 5,
}

impl End {
    /// Every end, with its name in infos.
    pub const NAMES: [(End, &'static str); 5] = [
        (End::Done, "done"),
        (End::Steps, "steps"),
        (End::Time, "time"),
        (End::Stalled, "stalled"),
        (End::Failed, "failed"),
    ];
}

/// Holds a simulation at every decision, and when a learner has sent all its data.
#[derive(Debug)]
struct Decisions {
    hold: Hold,
    holds: bool,
}

impl Observer for Decisions {
    #[inline]
    fn on_sender(&mut self, _: Time, _: u32, _: Option<&Ack>, sender: &mut Sender) {
        let learned = sender.steered::<Learned<External>>();
        self.holds = match learned {
            Some(learned) => learned.awaits_answer() || sender.is_done(),
            None => false,
        };
    }

    #[inline]
    fn holds(&mut self) -> Hold {
        match self.holds {
            true => self.hold,
            false => Hold::No,
        }
    }
}

impl Episode {
    /// The episode of this seed, from its beginning.
    ///
    /// # Errors
    /// [`EnvError::Scenario`]
    pub fn new(spec: &EnvSpec, seed: u64) -> Result<Episode, EnvError> {
        Episode::of(spec, spec.task(seed), seed)
    }

    /// An episode of this scenario.
    pub(crate) fn of(spec: &EnvSpec, scenario: &Scenario, seed: u64) -> Result<Episode, EnvError> {
        let name = scenario.name();
        let wrong = |error: SimulationError| EnvError::Scenario {
            scenario: name.to_owned(),
            error,
        };
        let length = spec.length_of(scenario);
        let network = scenario.draw_for(seed, length);
        let learners = learners(spec, &network).map_err(|e| wrong(e.into()))?;
        let Some(first) = learners.first() else {
            return Err(EnvError::Usage(format!(
                "scenario '{name}': no flow learns; leave out the scheme of one"
            )));
        };
        let agent = external::selection(spec.agent(seed, first.path_mbps()), spec.latency);
        let options = Options {
            duration: length,
            warmup: Duration::ZERO,
            seed,
            grid: None,
        };
        let traces = |wanted: &TraceSpec| {
            scenario
                .load_trace(wanted, &spec.traces)
                .map_err(|e| e.to_string())
        };
        let observer = Decisions {
            hold: match spec.agent.clock.is_fixed() {
                true => Hold::AfterThisInstant,
                false => Hold::Now,
            },
            holds: false,
        };
        let simulation =
            Simulation::observed(&network, &agent, &spec.registry, &traces, options, observer)
                .map_err(wrong)?;
        let mut episode = Episode {
            simulation,
            learners,
            waiting: Vec::new(),
            scenario: name.to_owned(),
            seed,
            steps: 0,
            most_steps: spec.steps.unwrap_or(u32::MAX),
            patience: spec.patience,
            packet_size: network.packet_size,
            end: None,
            failure: None,
        };
        for learner in 0..episode.learners.len() {
            episode.read_way(learner);
        }
        Ok(episode)
    }

    /// Runs to the next decision, or to the end.
    pub fn advance(&mut self) -> Pause {
        if let Some(end) = self.end {
            return Pause::End(end);
        }
        let last = self.simulation.now() + self.patience;
        let end = match self.run_until(last) {
            Err(error) => {
                self.failure = Some(EnvError::Failed {
                    scenario: self.scenario.clone(),
                    seed: self.seed,
                    error,
                });
                Some(End::Failed)
            }
            Ok(()) if self.is_done() => Some(End::Done),
            Ok(()) if !self.waiting.is_empty() => {
                (self.steps >= self.most_steps).then_some(End::Steps)
            }
            Ok(()) if self.simulation.now() >= self.simulation.end() => Some(End::Time),
            Ok(()) => Some(End::Stalled),
        };
        self.end = end;
        let Some(end) = end else {
            return Pause::Decision;
        };
        // The interval of the waiting learners has just ended.
        let now = self.simulation.now();
        for learner in 0..self.learners.len() {
            if !self.waiting.contains(&learner) {
                self.learned(learner).conclude(now);
            }
        }
        Pause::End(end)
    }

    /// Runs until a learner waits, all are done, or `last`.
    fn run_until(&mut self, last: Time) -> Result<(), SimulationError> {
        self.waiting.clear();
        loop {
            self.simulation.run_until(last)?;
            for learner in 0..self.learners.len() {
                let flow = self.learners[learner].flow;
                if self.simulation.held().contains(&flow) && self.learned(learner).awaits_answer() {
                    self.waiting.push(learner);
                }
            }
            let is_over = self.simulation.held().is_empty() || self.is_done();
            if is_over || !self.waiting.is_empty() {
                return Ok(());
            }
            // One of several is done: the others continue.
            self.simulation.release();
        }
    }

    /// Why the episode failed, if it did.
    pub fn failure(&self) -> Option<&EnvError> {
        self.failure.as_ref()
    }

    fn is_done(&mut self) -> bool {
        let simulation = &mut self.simulation;
        let mut senders = self.learners.iter().map(|l| l.flow);
        senders.all(|flow| simulation.sender_mut(flow).is_done())
    }

    /// The number of learners.
    pub fn learners(&self) -> usize {
        self.learners.len()
    }

    /// The number of the scenario's learning flows; each that comes and goes counts once.
    pub fn places(&self) -> usize {
        let places = self.learners.iter().map(|l| l.place + 1);
        places.max().unwrap_or(0)
    }

    /// The learning flow of the scenario that a learner belongs to.
    pub fn place(&self, learner: usize) -> usize {
        self.learners[learner].place
    }

    /// The present learner of such a flow, if there is one.
    pub fn present(&self, place: usize) -> Option<usize> {
        let now = self.simulation.now();
        let is_there = |l: &Learner| l.place == place && l.begun <= now && now < l.ends;
        self.learners.iter().position(is_there)
    }

    /// The learners that wait for an answer.
    pub fn waiting(&self) -> &[usize] {
        &self.waiting
    }

    /// Answers a learner that waits. After all are answered, call [`resume`](Self::resume).
    pub fn answer(&mut self, learner: usize, answer: Answer) {
        self.waiting.retain(|&waiting| waiting != learner);
        let now = self.simulation.now();
        let flow = self.learners[learner].flow;
        let sender = self.simulation.sender_mut(flow);
        if let Some(learned) = sender.steered::<Learned<External>>() {
            learned.act(now, answer);
        }
        sender.on_steered();
        let learner = &mut self.learners[learner];
        learner.answers += 1;
        self.steps = self.steps.max(learner.answers);
    }

    /// Lets the flows continue after their decisions.
    pub fn resume(&mut self) {
        self.simulation.release();
    }

    /// A learner's last observation.
    pub fn observation(&mut self, learner: usize) -> &[f32] {
        self.learned(learner).observation()
    }

    /// Writes the measurements of a learner's last step.
    pub fn measure(&mut self, learner: usize, row: &mut [f64]) {
        let way = self.read_way(learner);
        let begun = self.learners[learner].begun;
        let interval = *self.learned(learner).interval();
        measurement::write(row, begun, &interval, way);
    }

    /// Data packets that the learners have sent so far.
    pub fn packets(&mut self) -> u64 {
        let flows = self.learners.iter().map(|l| l.flow);
        let sent = flows.map(|flow| self.simulation.sender_mut(flow).counters().sent.get());
        sent.sum::<u64>() / self.packet_size.get()
    }

    /// The name of its scenario.
    pub fn scenario(&self) -> &str {
        &self.scenario
    }

    /// The episode's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    fn learned(&mut self, learner: usize) -> &mut Learned<External> {
        let flow = self.learners[learner].flow;
        let learned = self.simulation.sender_mut(flow).steered();
        learned.expect("this crate built the learner's controller")
    }

    /// The present state of a learner's path, and its capacity since the last call.
    fn read_way(&mut self, learner: usize) -> WayState {
        let now = self.simulation.now();
        let learner = &mut self.learners[learner];
        let mut way = WayState {
            capacity_mbps: f64::INFINITY,
            queue_packets: 0,
            base_rtt_ms: learner.base_rtt_ms,
            path_rtt_ms: learner.path_rtt_ms(now),
            path_mbps: learner.path_mbps(),
            fair_mbps: learner.fair_mbps(now),
        };
        let Learner {
            flow,
            offered,
            offered_at,
            ..
        } = learner;
        let (route, links) = self.simulation.way_mut(*flow);
        let seconds = now.since(*offered_at).as_secs_f64();
        offered.resize(route.len(), None);
        for (&link, before) in route.iter().zip(offered) {
            let link = &mut links[link as usize];
            way.queue_packets += link.backlog(now);
            let after = link.offered_until(now);
            if let (Some(before), Some(after), true) = (*before, after, seconds > 0.0) {
                way.capacity_mbps = way.capacity_mbps.min((after - before) * 8e-6 / seconds);
            }
            *before = after;
        }
        *offered_at = now;
        way
    }
}

/// The learning flows.
fn learners(spec: &EnvSpec, network: &Network) -> Result<Vec<Learner>, SetupError> {
    let ways = Ways::new(network);
    let way_of = |flow: &FlowSpec| ways.of_flow(flow);
    let crossed: Vec<_> = network.flows.iter().map(way_of).collect::<Result<_, _>>()?;
    let shared = |&link: &u32| {
        let flows = network.flows.iter().zip(&crossed);
        let crossing = flows.filter(|(_, way)| way.data.contains(&link));
        let times = crossing.map(|(flow, _)| (flow.start, flow.stop.unwrap_or(Time::NEVER)));
        Some(Shared::new(spec.mean_mbps(network, link)?, times))
    };
    let flows = network.flows.iter().zip(&crossed).enumerate();
    let learning = flows.filter(|(_, (flow, _))| flow.scheme.is_none());
    let mut places: Vec<usize> = network
        .flows
        .iter()
        .filter(|flow| flow.scheme.is_none())
        .map(|flow| flow.place)
        .collect();
    places.sort_unstable();
    places.dedup();
    let learners = learning.map(|(flow, (begins, way))| {
        let links = way.data.iter().chain(&way.acks);
        let rtt: Duration = links.map(|&l| network.links[l as usize].delay).sum();
        Ok(Learner {
            flow,
            shared: way.data.iter().filter_map(shared).collect(),
            place: places.partition_point(|&place| place < begins.place),
            begun: begins.start,
            ends: begins.stop.unwrap_or(Time::NEVER),
            base_rtt_ms: rtt.as_millis_f64(),
            offered: Vec::new(),
            offered_at: Time::ZERO,
            path: path_over_time(network, begins)?,
            answers: 0,
        })
    });
    learners.collect()
}
