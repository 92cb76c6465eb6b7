//! Carries a planned run out, in real time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

use headway_cc::{Duration, Stream, Time};
use headway_record::recording::File;
use headway_world::{CrossTraffic, LinkLogs, Outcome, Recorded, TraceSource};

use super::bed::Bed;
use super::honesty::path_of;
use super::job::LogTask;
use super::measure::Meter;
use super::plan::Plan;
use crate::emulator::{Emulator, Links};
use crate::fitness::{Machine, Strain, Vanished, cpu_wait, judge};
use crate::host::{HostError, ReceiverEnd, ReceiverReport, SenderEnd, SenderReport};
use crate::log::{EventLog, LoggedLink};
use crate::sys::{Clock, real_time};

/// From the making of the last thread to time zero.
const HEAD_START: Duration = Duration::from_millis(50);
/// Before ordinary threads, behind those of the system.
const PRIORITY: i32 = 10;
/// How often is said how far a run is.
const TELL_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// Carries `plan` out. `tell` hears about every tenth of a second how far it is. The calling process has to be
/// able to make namespaces ([`become_able`](crate::sys::become_able)).
///
/// # Errors
/// One line, if something cannot be had or goes wrong on the way.
pub fn play(
    plan: &Plan,
    traces: TraceSource<'_>,
    tell: &mut dyn FnMut(Time),
) -> Result<Outcome, String> {
    play_logged(plan, traces, None, tell).map(|(outcome, _)| outcome)
}

/// As [`play`], with a log.
pub(super) fn play_logged(
    plan: &Plan,
    traces: TraceSource<'_>,
    log: Option<&LogTask>,
    tell: &mut dyn FnMut(Time),
) -> Result<(Outcome, Option<Recorded>), String> {
    let (links, changes) = plan.links(traces).map_err(|e| e.to_string())?;
    let end = Time::ZERO + plan.options.duration;
    let mut bed = Bed::make(plan)?;
    let (ports, ends) = (
        std::mem::take(&mut bed.ports),
        std::mem::take(&mut bed.ends),
    );
    let started = log.map(|task| start_log(plan, task)).transpose();
    let started = started.map_err(|e| format!("cannot begin the log: {e}"))?;
    let (log, files) = started.unzip();
    let complete: Vec<AtomicBool> = ends.iter().map(|_| AtomicBool::new(false)).collect();
    let meter = Meter::new(plan, changes, cross_traffic(plan), &complete, log);

    let clock = Clock::start_in(HEAD_START);
    let links = Links::new(links, plan.cross.clone());
    let emulator = Emulator::new(clock, ports, bed.ways(plan), links, meter);
    let mut emulator = emulator.map_err(|e| format!("cannot emulate: {e}"))?;
    let mut machine = Machine::default();
    let (over, hosts) = (AtomicBool::new(false), bed.hosts);
    let worst_wait = AtomicU64::new(0);
    let (vanished, senders) = thread::scope(|scope| {
        let (over, worst_wait) = (&over, &worst_wait);
        let flows = ends.into_iter().zip(&complete);
        let ends: Vec<RunningEnds<'_>> = flows
            .map(|(ends, complete)| start_ends(scope, ends, complete, clock, over, worst_wait))
            .collect();
        let (emulator, hosts) = (&mut emulator, &hosts);
        let running = scope.spawn(move || {
            real_time(PRIORITY);
            clock.wait_for_epoch();
            let run = emulator.run(end, over);
            over.store(true, Ordering::Relaxed);
            run.map_err(|e| format!("the emulator has lost a device: {e}"))?;
            // At once: what the ends still send nobody reads any more.
            let mut vanished = Vanished::default();
            vanished.add_emulator(emulator.report());
            let mut hosts = hosts.iter().zip(emulator.ports());
            let counted = hosts.try_for_each(|(h, port)| vanished.add_host(&h.namespace, port));
            counted.map(|()| vanished).map_err(|e| e.to_string())
        });
        watch_over(&running, clock, end, &mut machine, tell);
        // Should it have died.
        over.store(true, Ordering::Relaxed);
        let vanished = join(running);
        let reports = ends.into_iter().map(|(sender, receiver)| {
            let (sent, received) = (join(sender), join(receiver));
            received.and(sent)
        });
        // All of them have to be waited for, whatever the first one says.
        let reports: Vec<_> = reports.collect();
        let reports: Result<Vec<SenderReport>, String> = reports.into_iter().collect();
        // If an end could not go on, that is why all else ended.
        reports.and_then(|reports| Ok((vanished?, reports)))
    })?;
    let (_ports, mut links, mut meter, report) = emulator.into_parts();
    let logged = meter.log.take().map(EventLog::finish);
    let recorded = logged.map(|logged| Recorded {
        files: files.unwrap_or_default(),
        failure: logged.failure,
    });
    let links = links.all_mut();
    let log_failure = recorded.as_ref().and_then(|r| r.failure.as_deref());
    let path = path_of(plan, links, end);
    let host_wait = Duration::from_nanos(worst_wait.into_inner());
    let strain = Strain {
        cpu_idle: machine.idle(),
        host_wait: (!host_wait.is_zero()).then_some(host_wait),
    };
    let fitness = judge(&path, &report, &vanished, &strain, log_failure);
    let outcome = Outcome {
        fitness: Some(fitness),
        ..meter.finish(links, end, &senders)
    };
    Ok((outcome, recorded))
}

type RunningEnds<'s> = (
    ScopedJoinHandle<'s, Result<SenderReport, HostError>>,
    ScopedJoinHandle<'s, Result<ReceiverReport, HostError>>,
);

/// Starts the two ends of a flow, which begin at time zero.
fn start_ends<'s>(
    scope: &'s Scope<'s, '_>,
    (sender, receiver): (SenderEnd, ReceiverEnd),
    complete: &'s AtomicBool,
    clock: Clock,
    over: &'s AtomicBool,
    worst_wait: &'s AtomicU64,
) -> RunningEnds<'s> {
    let is_udp = matches!(sender, SenderEnd::Udp(_));
    let note_wait = move || {
        if let Some(wait) = cpu_wait().filter(|_| is_udp) {
            worst_wait.fetch_max(wait.as_nanos(), Ordering::Relaxed);
        }
    };
    let sender = scope.spawn(move || {
        clock.wait_for_epoch();
        let report = end_of(sender.run(clock, over), over)?;
        complete.store(report.finished.is_some(), Ordering::Relaxed);
        note_wait();
        Ok(report)
    });
    let receiver = scope.spawn(move || {
        clock.wait_for_epoch();
        let report = end_of(receiver.run(clock, over), over);
        note_wait();
        report
    });
    (sender, receiver)
}

/// Tells how far the emulator is, and notes how busy the machine is, until it is done.
fn watch_over<T>(
    running: &ScopedJoinHandle<'_, T>,
    clock: Clock,
    end: Time,
    machine: &mut Machine,
    tell: &mut dyn FnMut(Time),
) {
    clock.wait_for_epoch();
    while !running.is_finished() {
        let now = clock.now();
        // Without /proc/stat it stays unknown.
        let _ = machine.look(now);
        tell(now.min(end));
        thread::sleep(TELL_EVERY);
    }
    let _ = machine.look(clock.now());
    tell(end);
}

const DIED: &str = "a thread of the run died (a defect of Headway: please report it)";

/// If an end cannot go on, the run need not either.
fn end_of<T>(result: Result<T, HostError>, over: &AtomicBool) -> Result<T, HostError> {
    if result.is_err() {
        over.store(true, Ordering::Relaxed);
    }
    result
}

fn join<T, E: ToString>(thread: ScopedJoinHandle<'_, Result<T, E>>) -> Result<T, String> {
    let ended = thread.join().map_err(|_| DIED.to_owned())?;
    ended.map_err(|e| e.to_string())
}

fn cross_traffic(plan: &Plan) -> Vec<CrossTraffic> {
    let specs = plan.network.cross.iter().zip(&plan.cross).enumerate();
    specs
        .map(|(index, (spec, route))| {
            let stream = Stream::new(plan.options.seed, &format!("cross.{index}"));
            CrossTraffic::new(index as u32, spec, route.clone(), stream)
        })
        .collect()
}

/// Begins the log of a run, and says which files it writes.
fn start_log(plan: &Plan, task: &LogTask) -> std::io::Result<(EventLog, Vec<PathBuf>)> {
    let path = |what: &str| PathBuf::from(format!("{}.{what}", task.stem.display()));
    let mut files = vec![path("events.parquet")];
    let file = |spec: &headway_scenario::LinkSpec| {
        let name = headway_record::recording::safe_name(&spec.name);
        let log = path(&format!("{name}.log"));
        let file = File::create(&log)?;
        files.push(log);
        Ok(file)
    };
    let logs = LinkLogs::new(&plan.network, plan.router, &task.title, file)?.into_logs();
    let names = plan.network.links.iter().map(|l| l.name.clone());
    let links = names.zip(logs);
    let links = links.map(|(name, log)| LoggedLink { name, log });
    // Each way leads to a host: to the receiver's, and back.
    let ends = plan.network.flows.iter().flat_map(|f| [f.to, f.from]);
    let hosts: Vec<String> = ends.map(|node| plan.network.nodes[node].clone()).collect();
    let log = EventLog::start(&files[0], links.collect(), &hosts)?;
    Ok((log, files))
}
