//! Carries out a planned run, in real time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use headway_cc::{Duration, Time};
use headway_world::{Outcome, Recorded, TraceSource};

use super::bed::{Bed, Host};
use super::ends::{EndsReport, RunningEnds, join};
use super::honesty::path_of;
use super::job::LogTask;
use super::measure::Meter;
use super::plan::Plan;
use super::recording::start_log;
use crate::emulator::{Emulator, Links, PRIORITY};
use crate::fitness::{Machine, Strain, Vanished, cpu_wait, judge};
use crate::host::{ReceiverEnd, SenderEnd};
use crate::log::EventLog;
use crate::sys::{Clock, real_time};

/// How often the progress of a run is reported.
const TELL_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// The time from now to time zero, long enough for all threads to start; each flow has two.
fn head_start(plan: &Plan) -> Duration {
    Duration::from_millis(50 + plan.flows.len() as u64)
}

/// Carries out `plan`. It calls `go_on` about every tenth of a second with its progress, which may
/// end the run. The calling process has to be able to make namespaces
/// ([`become_able`](crate::sys::become_able)).
///
/// # Errors
/// One line, if something is not available or goes wrong on the way.
pub fn play(
    plan: &Plan,
    traces: TraceSource<'_>,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<Outcome, String> {
    play_logged(plan, traces, None, go_on).map(|(outcome, _)| outcome)
}

/// Same as [`play`], with a log.
pub(super) fn play_logged(
    plan: &Plan,
    traces: TraceSource<'_>,
    log: Option<&LogTask>,
    go_on: &mut dyn FnMut(Time) -> bool,
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
    let completions = ends.iter().map(|(_, receiver)| receiver.completion());
    let meter = Meter::new(
        plan,
        changes,
        plan.cross_traffic(),
        completions.collect(),
        log,
    );

    let clock = Clock::of_run(head_start(plan));
    let links = Links::new(links, plan.cross.clone());
    let emulator = Emulator::new(clock, ports, bed.ways(plan), links, meter);
    let mut emulator = emulator.map_err(|e| format!("cannot emulate: {e}"))?;
    if plan.is_clocked_by_acks() {
        emulator = emulator.without_stalls();
    }
    let mut stage = Stage {
        clock,
        end,
        emulator,
        hosts: bed.hosts,
        machine: Machine::default(),
    };
    let (emulated, ends) = stage.perform(ends, go_on)?;
    let Emulated { mut vanished, wait } = emulated;
    vanished.at_sockets += ends.iter().map(|e| e.not_sent).sum::<u64>();

    let (_ports, mut links, mut meter, report) = stage.emulator.into_parts();
    let links = links.all_mut();
    let logged = meter.log.take().map(EventLog::finish);
    let recorded = logged.map(|logged| Recorded {
        files: files.unwrap_or_default(),
        failure: logged.failure,
    });
    let log_failure = recorded.as_ref().and_then(|r| r.failure.as_deref());
    let path = path_of(plan, links, end);
    let strain = Strain {
        cpu_idle: stage.machine.idle(),
        emulator_wait: wait,
        host_wait: ends.iter().filter_map(|e| e.host_wait).max(),
        has_kernel_flows: plan.has_kernel_flows(),
    };
    let outcome = Outcome {
        fitness: Some(judge(&path, &report, &vanished, &strain, log_failure)),
        ..meter.finish(links, end, ends.iter().map(|e| &e.sender))
    };
    Ok((outcome, recorded))
}

/// The results of the emulator's thread, besides the emulator.
struct Emulated {
    /// Packets that vanished at no link.
    vanished: Vanished,
    /// The thread's [`cpu_wait`].
    wait: Option<Duration>,
}

/// A run that is ready to begin.
struct Stage {
    clock: Clock,
    end: Time,
    emulator: Emulator<Meter>,
    hosts: Vec<Host>,
    machine: Machine,
}

impl Stage {
    /// Runs to the end. Returns the results of the emulator, and what each flow's ends counted.
    fn perform(
        &mut self,
        ends: Vec<(SenderEnd, ReceiverEnd)>,
        go_on: &mut dyn FnMut(Time) -> bool,
    ) -> Result<(Emulated, Vec<EndsReport>), String> {
        let Stage {
            clock,
            end,
            emulator,
            hosts,
            machine,
        } = self;
        let (clock, end, hosts) = (*clock, *end, &*hosts);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let over = &over;
            let ends: Vec<RunningEnds<'_>> = ends
                .into_iter()
                .map(|ends| RunningEnds::start(scope, ends, clock, over))
                .collect();
            let running = scope.spawn(move || {
                real_time(PRIORITY);
                clock.wait_for_epoch();
                let run = emulator.run(end, over);
                over.store(true, Ordering::Relaxed);
                run.map_err(|e| format!("the emulator has lost a device: {e}"))?;
                // This has to come at once: nothing reads what the ends still send.
                let mut vanished = Vanished::default();
                vanished.add_emulator(emulator.report());
                let mut hosts = hosts.iter().zip(emulator.ports());
                let counted = hosts.try_for_each(|(h, port)| vanished.add_host(&h.namespace, port));
                let wait = cpu_wait();
                let emulated = counted.map(|()| Emulated { vanished, wait });
                emulated.map_err(|e| e.to_string())
            });
            watch_over(&running, clock, end, machine, &mut |at| {
                if !go_on(at) {
                    over.store(true, Ordering::Relaxed);
                }
            });
            // The emulator's thread may have died.
            over.store(true, Ordering::Relaxed);
            let emulated = join(running);
            // Wait for all ends, even if the first has failed.
            let reports: Vec<_> = ends.into_iter().map(RunningEnds::join).collect();
            let reports = reports.into_iter().collect::<Result<_, _>>();
            // If an end could not go on, that is why everything else ended.
            reports.and_then(|reports| Ok((emulated?, reports)))
        })
    }
}

/// Reports the emulator's progress, and notes how busy the machine is, until the emulator ends.
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
