//! Runs Rax in simulated time as it runs over a kernel's flows: Linux's transport (two packets an
//! acknowledgement, losses found in bursts), pacing during recovery, an agent that answers late,
//! whole windows, the guard and its Cubic.
//!
//! `cargo run --release -p headway-policy --example rax_live -- SCENARIO FIRST-LAST SECONDS [SPEC [EVERY]]`
//!
//! It prints the same as the example `rax`, and also counts trips of the guard. The last line sums
//! all seeds up. UNPACED in the environment turns pacing off.

#[path = "rax/runs.rs"]
mod runs;

use std::sync::{Arc, Mutex};

use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Feedback, Need, Probe, Rate, Rto, Scheme, Sent,
    Setup, Tag, Time,
};
use headway_fixed::Verdict;
use headway_policy::schemes::{RaxOverRecords, RaxSpec};
use headway_policy::{FlowGuard, Limits, Record, RecordBuilder};
use headway_scenario::Transport;
use runs::{Error, mean, percent_lost, play_over, tens};

/// The scheme needs nothing of single packets, so acknowledgements are delayed.
static LIVE: Scheme = Scheme::unlisted("rax-live", &[Need::RateSample, Need::Pacing]);
/// The time from an acknowledgement until the answer is in its slot.
const LATENCY: Duration = Duration::from_micros(50);

/// The trips and divergences of each flow that ended.
type Ended = Arc<Mutex<Vec<(f64, f64)>>>;

/// A flow of `headway_window` with its agent.
#[derive(Debug)]
struct Live {
    rax: RaxOverRecords,
    guard: FlowGuard,
    reporter: RecordBuilder,
    mss: Bytes,
    cwnd: Bytes,
    /// Is the flow paced during recovery, as by pace_policy()?
    is_paced: bool,
    is_recovering: bool,
    srtt: Duration,
    /// The next answer: when it arrives, the time of its request, and the window.
    answer: Option<(Time, Time, u32)>,
    every: Duration,
    next: Time,
    ended: Ended,
}

#[derive(Default)]
struct Values(Vec<(&'static str, f64)>);

impl Probe for Values {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}

impl Live {
    /// Carries an answer out, as find_action() and steer_cwnd() do at an acknowledgement.
    fn carry_out(&mut self, now: Time) {
        let Some((answered, requested, window)) = self.answer.take_if(|(at, ..)| *at <= now) else {
            return;
        };
        if self.guard.answer(requested, answered, now) {
            self.cwnd = self.guard.cwnd((self.mss * u64::from(window)).as_f64());
        }
    }

    /// Reports as report() does, and computes the agent's answer.
    fn report(&mut self, mut record: Record) {
        let now = record.now();
        self.is_recovering = record.has(Record::RECOVERING);
        self.guard.ask(now);
        match self.guard.judge(&record) {
            Verdict::Trip => {
                let start = self.guard.restart(&record, &self.control());
                self.guard.start_fallback(start);
            }
            Verdict::Resume => {
                self.cwnd = self.guard.end_fallback().unwrap_or(self.cwnd);
            }
            Verdict::Policy | Verdict::Fallback => {}
        }
        record.flags |= Record::STEERABLE | Record::ASKS;
        if self.guard.fallback_cubic().is_some() {
            record.flags |= Record::TRIPPED;
        }
        self.rax.on_record(&record);
        if let Some(window) = self.rax.cwnd(now) {
            self.answer = Some((now + LATENCY, now, window));
        }
        if now >= self.next {
            self.next = now + self.every;
            let text: Vec<String> = (self.values().0.iter())
                .map(|(n, v)| format!("{n} {v:.3}"))
                .collect();
            println!(
                "  {:7.2} s cwnd {} flight {} lost {} {}",
                now.as_secs_f64(),
                record.cwnd,
                record.in_flight,
                record.lost,
                text.join(" ")
            );
        }
    }

    fn values(&self) -> Values {
        let mut values = Values::default();
        // The guard's trips count, and not Rax's own.
        self.guard.probe(&mut values);
        self.rax.probe(&mut values);
        values
    }
}

impl CongestionControl for Live {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.reporter.on_sent(sent);
        match self.guard.fallback_cubic_mut() {
            Some(cubic) => cubic.on_sent(sent),
            None => Tag::NONE,
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.carry_out(feedback.now);
        self.srtt = feedback.rtt_stats.smoothed;
        let for_cubic = self.guard.feedback_for_cubic(feedback);
        if let Some(cubic) = self.guard.fallback_cubic_mut() {
            cubic.on_feedback(&for_cubic);
        }
        let record = self.reporter.on_feedback(feedback, &self.control());
        self.report(record);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        if let Some(cubic) = self.guard.fallback_cubic_mut() {
            cubic.on_rto(rto);
        }
        // As tcp_enter_loss() does.
        self.cwnd = self.mss;
        let record = self.reporter.on_rto(rto, &self.control());
        self.report(record);
    }

    fn control(&self) -> Control {
        if let Some(cubic) = self.guard.fallback_cubic() {
            return cubic.control();
        }
        let seconds = self.srtt.as_secs_f64();
        let bps = 1.2 * 8.0 * self.cwnd.as_f64() / seconds;
        Control {
            pacing_rate: (self.is_paced && self.is_recovering && seconds > 0.0)
                .then(|| Rate::from_bps(bps as u64)),
            ..Control::window(self.cwnd)
        }
    }

    fn owns_recovery(&self) -> bool {
        let cubic = self.guard.fallback_cubic();
        cubic.is_none_or(|cubic| cubic.owns_recovery())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let values = self.values().0;
        let of = |name| values.iter().find(|(n, _)| *n == name).map_or(0.0, |v| v.1);
        if let Ok(mut ended) = self.ended.lock() {
            ended.push((of("guard_trips"), of("divergences")));
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Throughput and lost percentage over the last third, and the time from which on every ten seconds
/// use 95% of the link.
fn run(
    scenario: &str,
    seed: u64,
    seconds: u64,
    spec: &RaxSpec,
    every: Option<f64>,
) -> Result<[f64; 3], Error> {
    let ended = Ended::default();
    let (keeper, spec) = (Arc::clone(&ended), spec.clone());
    let selection = LIVE.built_by(move |setup: &Setup| {
        let rax = RaxOverRecords::new(setup, &spec, None);
        Box::new(Live {
            rax: rax.expect("settings in range"),
            guard: FlowGuard::new(setup, Limits::default().for_learners()),
            reporter: RecordBuilder::new(setup.mss),
            mss: setup.mss,
            cwnd: setup.initial_cwnd,
            is_paced: std::env::var_os("UNPACED").is_none(),
            is_recovering: false,
            srtt: Duration::ZERO,
            answer: None,
            every: every.map_or(Duration::MAX, Duration::from_secs_f64),
            next: every.map_or(Time::NEVER, |_| Time::ZERO),
            ended: Arc::clone(&keeper),
        })
    });
    let outcome = play_over(Some(Transport::Linux), scenario, seed, seconds, &selection)?;
    let flow = &outcome.series[0].series;
    let rates = &flow.throughput_mbps;
    let lost = |seconds: std::ops::Range<usize>| {
        percent_lost(&flow.lost_mbps[seconds.clone()], &flow.sent_mbps[seconds])
    };
    let last = rates.len() - rates.len() / 3;
    let slow = rates.windows(10).rposition(|ten| mean(ten) < 19.0);
    let found = [
        mean(&rates[last..]),
        lost(last..rates.len()),
        slow.map_or(0, |at| at + 1) as f64,
    ];
    let all = ended.lock().expect("no panic");
    println!(
        "seed {seed}: last third {:.2} Mbit/s, {:.2}% lost; from {:.0} s; trips {:.0} diverged {:.0}",
        found[0], found[1], found[2], all[0].0, all[0].1
    );
    println!(
        "  Mbit/s {}",
        tens(rates.len(), |seconds| mean(&rates[seconds]))
    );
    println!("  lost %  {}", tens(rates.len(), lost));
    Ok(found)
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "rax_live SCENARIO FIRST-LAST SECONDS [SPEC [EVERY]]";
    let [scenario, seeds, seconds, rest @ ..] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let (first, last) = seeds.split_once('-').ok_or(usage)?;
    let spec: RaxSpec = serde_json::from_str(rest.first().map_or("{}", String::as_str))?;
    let every = rest.get(1).map(|text| text.parse()).transpose()?;
    let runs = (first.parse::<u64>()?..=last.parse()?)
        .map(|seed| run(scenario, seed, seconds.parse()?, &spec, every))
        .collect::<Result<Vec<_>, Error>>()?;
    let good = runs.iter().filter(|run| run[0] >= 19.0 && run[1] < 1.0);
    println!(
        "{} of {} have 95% of the link with less than 1% lost over the last third; medians {:.2} Mbit/s, {:.2}% lost, from {:.0} s",
        good.count(),
        runs.len(),
        median(runs.iter().map(|run| run[0])),
        median(runs.iter().map(|run| run[1])),
        median(runs.iter().map(|run| run[2])),
    );
    Ok(())
}
