//! Whether a run's result can be trusted: what the machine did to packets that no network does, and
//! whether that changes the result.
//!
//! The limits and their reasons are in docs/decisions/0022-logs-and-fitness.md.

mod procfs;

use std::io;

use headway_cc::Duration;
use headway_record::Fitness;

use crate::emulator::Report;
use crate::sys::{Namespace, SetupError, Tun};

pub use procfs::{Machine, cpu_wait, socket_drops};

/// The path that the machine's delays are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The minimum RTT of the flows under test: propagation alone.
    pub base_rtt: Duration,
    /// How long the bottleneck takes for a full packet, on average: a queue grows and drains in
    /// such steps.
    pub packet_time: Duration,
    /// How long the bottleneck takes for a full queue; `None` without a limit.
    pub queue_time: Option<Duration>,
    /// Packets that links have lost, in queues and at random.
    pub lost_packets: u64,
}

/// Packets that vanished at no link, by the place where they vanished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vanished {
    /// Sent by a host whose device had no room: the emulator did not read in time.
    pub at_devices: u64,
    /// Packets for which the emulator had no room, and packets that a device did not take from it.
    pub in_emulator: u64,
    /// Packets dropped by full sockets and their queues (see [`socket_drops`]), and packets that
    /// the socket did not take from its program.
    pub at_sockets: u64,
}

/// How hard the machine had to work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Strain {
    /// [`Machine::idle`].
    pub cpu_idle: Option<f64>,
    /// [`cpu_wait`] of the emulator's thread. Packets waited this long to be read, which their
    /// lateness leaves out.
    pub emulator_wait: Option<Duration>,
    /// The worst [`cpu_wait`] among the threads of UDP ends. TCP ends only fill and empty the
    /// kernel's buffers; the kernel's acknowledgements leave in the emulator's thread.
    pub host_wait: Option<Duration>,
    /// Does the kernel carry a flow under test?
    pub has_kernel_flows: bool,
}

impl Vanished {
    /// Adds the packets that a host has lost since its namespace and device were made. Call it as
    /// soon as the emulator stops: from then on the device fills, which says nothing.
    ///
    /// # Errors
    /// If the kernel's counters cannot be read.
    pub fn add_host(&mut self, host: &Namespace, port: &Tun) -> Result<(), SetupError> {
        let counters = host.within(|| Ok((port.counters()?, socket_drops()?)))?;
        let (device, sockets) =
            counters.map_err(|e: io::Error| SetupError::system("read a host's counters", e))?;
        self.at_devices += device.sent_dropped;
        self.in_emulator += device.received_dropped;
        self.at_sockets += sockets;
        Ok(())
    }

    /// Adds the packets that the emulator has lost.
    pub fn add_emulator(&mut self, report: &Report) {
        self.in_emulator += report.no_room + report.refused;
    }

    fn all(&self) -> u64 {
        self.at_devices + self.in_emulator + self.at_sockets
    }
}

/// The limit on packets that vanished, as a share of those that links lost. A loss-based sender's
/// rate goes with the root of the loss, so this share changes it by 1%.
const VANISHED: f64 = 0.02;
/// The limit on the 99th percentile of lateness, as a share of the base RTT. It is a tenth of the
/// one-way delay, and may be added to that delay's 95th percentile.
const LATE: f64 = 0.05;
/// The limit on the median lateness, as a share of the limit on the 99th percentile: the median
/// adds to every packet, both ways. The same limit holds for the time that the emulator and hosts
/// wait for a CPU.
const USUALLY_LATE: f64 = 0.2;
/// The limit on a single stall, besides a base RTT or the bottleneck's time for a packet. After two
/// RTTs of silence TCP sends a probe. It takes a packet for lost at the earliest an RTT and 200 ms
/// after it was sent.
const LONGEST_STALL: Duration = Duration::from_millis(200);
/// The limit on what the clock leaves out, as a share of the run. Hosts see a rate that is lower by
/// this share.
const LEFT_OUT: f64 = 0.01;
/// The smallest idle share of the CPUs in the busiest tenth of the seconds. With less, the kernel's
/// own work for TCP may have waited (`ksoftirqd` runs as any program), which nothing counts. With
/// compilers running, Cubic on `high-bdp` had 5.5 to 10 Mbit/s instead of 9.9 on an idle machine,
/// with no more lateness.
const NO_REST: f64 = 0.02;
/// With a smaller idle share in the busiest tenth of the seconds, the advice is more CPU.
const BUSY: f64 = 0.2;

/// Judges a run by what was measured. `log_failure` says why a requested log is incomplete.
pub fn judge(
    path: &Path,
    report: &Report,
    vanished: &Vanished,
    strain: &Strain,
    log_failure: Option<&str>,
) -> Fitness {
    let sent = report.read + vanished.at_devices;
    let cpu_share = report.cpu.as_secs_f64() / report.elapsed.as_secs_f64();
    let mut fitness = Fitness {
        lateness_p50_ms: report.lateness.percentile_ms(0.5),
        lateness_p99_ms: report.lateness.percentile_ms(0.99),
        longest_stall_ms: (!report.elapsed.is_zero()).then(|| report.longest_stall.as_millis_f64()),
        emulator_wait_ms: strain.emulator_wait.map(Duration::as_millis_f64),
        host_wait_ms: strain.host_wait.map(Duration::as_millis_f64),
        cpu_idle: strain.cpu_idle,
        emulator_cpu: Some(cpu_share).filter(|share| share.is_finite()),
        unexplained_loss: (sent > 0).then(|| vanished.all() as f64 / sent as f64),
        unfit: None,
    };
    let why = loss(path, report, vanished)
        .or_else(|| lateness(path, &fitness))
        .or_else(|| left_out(report))
        .or_else(|| no_rest(strain))
        .map(|why| format!("{why}; {}", help(&fitness)));
    fitness.unfit = why.or_else(|| log_failure.map(|why| format!("its log is incomplete: {why}")));
    fitness
}

fn loss(path: &Path, report: &Report, vanished: &Vanished) -> Option<String> {
    let overflow = overflow(path, report);
    let lost = path.lost_packets;
    if (vanished.all() + overflow) as f64 <= VANISHED * lost as f64 {
        return None;
    }
    if vanished.all() == 0 && excess(path, report) == 0 {
        return Some(format!(
            "hosts sent packets while the emulator stood still, at the longest for {:.3} ms; they arrived at once, \
             and up to {overflow} packets found no room, where links lost {lost}",
            report.longest_stall.as_millis_f64()
        ));
    }
    if vanished.all() == 0 {
        return Some(format!(
            "the emulator stood still for longer than the bottleneck's queue takes to drain, at the longest \
             for {:.3} ms, and up to {overflow} packets found no room afterwards, where links lost {lost}",
            report.longest_stall.as_millis_f64()
        ));
    }
    let places = [
        (vanished.at_devices, "at hosts' full devices"),
        (vanished.in_emulator, "in the emulator"),
        (vanished.at_sockets, "at full sockets"),
        (overflow, "in bursts after the emulator stood still"),
    ];
    let places = places.iter().filter(|(count, _)| *count > 0);
    let places: Vec<String> = places.map(|(n, place)| format!("{n} {place}")).collect();
    Some(format!(
        "packets vanished at no link, {}, where links lost {lost}",
        places.join(", "),
    ))
}

/// How many packets the bottleneck's queue may have dropped because the emulator stood still.
/// Packets that arrived meanwhile come at once. By then the queue has sent what it held, and has
/// room for no more than that. Of stalls that the clock leaves out, only packets that hosts sent
/// meanwhile come at once, and the queue has sent nothing. The result is at most what the links
/// have dropped.
fn overflow(path: &Path, report: &Report) -> u64 {
    match path.queue_time {
        Some(_) => (report.waited + excess(path, report)).min(path.lost_packets),
        None => 0,
    }
}

/// How many packets found no room in the queue because they came at once after stalls that the
/// clock has not left out.
fn excess(path: &Path, report: &Report) -> u64 {
    // A queue also has room for the packet that is being sent.
    let Some(room) = path.queue_time.map(|time| time.max(path.packet_time)) else {
        return 0;
    };
    (report.stalls.excess_ms(room) / path.packet_time.as_millis_f64()).ceil() as u64
}

fn lateness(path: &Path, fitness: &Fitness) -> Option<String> {
    let rtt_ms = path.base_rtt.as_millis_f64();
    let p99_may = (LATE * rtt_ms).max(path.packet_time.as_millis_f64());
    let usually_may = USUALLY_LATE * p99_may;
    let stall_may = path.base_rtt.max(path.packet_time).min(LONGEST_STALL);
    let limits = [
        (
            "the emulator stood still for",
            "(longest stall)",
            fitness.longest_stall_ms,
            stall_may.as_millis_f64(),
        ),
        (
            "the emulator was",
            "late (99th percentile)",
            fitness.lateness_p99_ms,
            p99_may,
        ),
        (
            "the emulator was",
            "late (median)",
            fitness.lateness_p50_ms,
            usually_may,
        ),
        (
            "the emulator waited",
            "for a CPU (mean)",
            fitness.emulator_wait_ms,
            usually_may,
        ),
        (
            "hosts waited",
            "for a CPU (mean)",
            fitness.host_wait_ms,
            usually_may,
        ),
    ];
    limits.into_iter().find_map(|(who, how, value, limit)| {
        let value = value.filter(|ms| *ms > limit)?;
        Some(format!(
            "{who} {value:.3} ms {how}, and a base RTT of {rtt_ms:.3} ms allows {limit:.3} ms"
        ))
    })
}

fn left_out(report: &Report) -> Option<String> {
    let (left_out, of) = (report.left_out.as_secs_f64(), report.elapsed.as_secs_f64());
    (left_out > LEFT_OUT * of).then(|| {
        format!(
            "the clock left out stalls of {left_out:.3} s in {of:.0} s, and may leave out {:.0}%",
            100.0 * LEFT_OUT
        )
    })
}

fn no_rest(strain: &Strain) -> Option<String> {
    let idle = strain
        .cpu_idle
        .filter(|idle| strain.has_kernel_flows && *idle < NO_REST)?;
    Some(format!(
        "{:.1}% of the CPUs' time was idle in the busiest tenth of the seconds, and the kernel's TCP needs {:.0}%",
        100.0 * idle,
        100.0 * NO_REST
    ))
}

/// Says what would improve the next run.
fn help(fitness: &Fitness) -> &'static str {
    let emulator_is_busy = fitness.emulator_cpu.is_some_and(|share| share > 0.8);
    match fitness.cpu_idle {
        Some(idle) if idle > BUSY && emulator_is_busy => "a lower rate or a faster CPU would help",
        Some(idle) if idle > BUSY => "root, for real-time priority, or another machine would help",
        _ => "fewer --jobs or an idle machine would help",
    }
}

#[cfg(test)]
mod tests {
    use headway_record::LogHistogram;

    use super::*;

    /// A path of 40 ms and 12 Mbit/s: lateness may be 2 ms at the 99th percentile, 0.4 ms at the
    /// median.
    fn path() -> Path {
        Path {
            base_rtt: Duration::from_millis(40),
            packet_time: Duration::from_millis(1),
            queue_time: None,
            lost_packets: 100,
        }
    }

    /// 1000 packets, `late` of them by `by_us`, the others by 20 us.
    fn report(late: u64, by_us: u64) -> Report {
        let mut lateness = LogHistogram::default();
        for i in 0..1000 {
            lateness.add(Duration::from_micros(if i < late { by_us } else { 20 }));
        }
        Report {
            lateness,
            read: 1000,
            cpu: Duration::from_millis(500),
            elapsed: Duration::from_millis(2000),
            ..Report::default()
        }
    }

    fn strain(cpu_idle: f64) -> Strain {
        Strain {
            cpu_idle: Some(cpu_idle),
            ..Strain::default()
        }
    }

    /// Packets take 1 ms: after 12 ms without the emulator 2 find no room in a queue of 10.
    #[test]
    fn packets_dropped_after_stalls_count_as_vanished() {
        let stalled = |stalls_ms: &[u64]| {
            let mut report = report(0, 0);
            for &ms in stalls_ms {
                let stall = Duration::from_millis(ms);
                report.longest_stall = report.longest_stall.max(stall);
                report.stalls.add(stall);
            }
            report
        };
        let short = Path {
            queue_time: Some(Duration::from_millis(10)),
            ..path()
        };
        let none = Vanished::default();
        let of = |path: &Path, stalls_ms: &[u64]| unfit(path, &stalled(stalls_ms), &none, 0.5);
        assert_eq!(of(&path(), &[30]), None, "a queue without a limit");
        assert_eq!(of(&short, &[9, 9, 9]), None, "the queue holds them");
        assert_eq!(of(&short, &[11]), None, "1 or 2 of 100");
        let why = of(&short, &[9, 12, 13]).unwrap();
        assert!(
            why.contains("at the longest for 13.000 ms") && why.contains("links lost 100"),
            "{why}"
        );
        let lossless = Path {
            lost_packets: 0,
            ..short
        };
        assert_eq!(of(&lossless, &[11]), None, "the queue dropped nothing");
        let device = Vanished {
            at_devices: 3,
            ..Vanished::default()
        };
        let both = unfit(&short, &stalled(&[13]), &device, 0.5).unwrap();
        assert!(
            both.contains("3 at hosts' full devices, ") && both.contains(" in bursts after"),
            "{both}"
        );
    }

    #[test]
    fn after_left_out_stalls_only_packets_sent_meanwhile_burst() {
        let of = |waited| {
            let report = Report {
                longest_stall: Duration::from_millis(15),
                left_out: Duration::from_millis(15),
                waited,
                ..report(0, 0)
            };
            let short = Path {
                queue_time: Some(Duration::from_millis(10)),
                ..path()
            };
            unfit(&short, &report, &Vanished::default(), 0.5)
        };
        assert_eq!(of(2), None, "of 100");
        assert!(of(3).unwrap().contains("up to 3 packets"));
    }

    #[test]
    fn the_clock_leaves_out_a_hundredth_at_most() {
        let of = |left_out_ms| {
            let report = Report {
                left_out: Duration::from_millis(left_out_ms),
                ..report(0, 0)
            };
            unfit(&path(), &report, &Vanished::default(), 0.5)
        };
        assert_eq!(of(20), None, "of 2 s");
        assert!(of(21).unwrap().contains("0.021 s in 2 s"));
    }

    #[test]
    fn kernel_flows_need_idle_cpu_time() {
        let of = |has_kernel_flows, idle| {
            let strain = Strain {
                has_kernel_flows,
                ..strain(idle)
            };
            judge(&path(), &report(0, 0), &Vanished::default(), &strain, None).unfit
        };
        assert!(of(true, 0.03).is_none() && of(false, 0.0).is_none());
        assert!(
            of(true, 0.01)
                .unwrap()
                .starts_with("1.0% of the CPUs' time")
        );
    }

    fn unfit(path: &Path, report: &Report, vanished: &Vanished, idle: f64) -> Option<String> {
        judge(path, report, vanished, &strain(idle), None).unfit
    }

    #[test]
    fn an_idle_machine_is_fit() {
        let fitness = judge(
            &path(),
            &report(9, 5000),
            &Vanished::default(),
            &strain(0.5),
            None,
        );
        assert_eq!(fitness.unfit, None, "nine of a thousand are no percentile");
        assert!((fitness.lateness_p99_ms.unwrap() - 0.02).abs() < 1e-4);
        assert_eq!(fitness.emulator_cpu, Some(0.25));
        assert_eq!(fitness.unexplained_loss, Some(0.0));
    }

    #[test]
    fn lateness_limits_depend_on_the_path() {
        let none = Vanished::default();
        let p99 = unfit(&path(), &report(20, 2100), &none, 0.5).unwrap();
        assert_eq!(
            p99,
            "the emulator was 2.099 ms late (99th percentile), and a base RTT of 40.000 ms allows 2.000 ms; \
             root, for real-time priority, or another machine would help"
        );
        assert_eq!(unfit(&path(), &report(20, 1900), &none, 0.5), None);
        let median = unfit(&path(), &report(600, 410), &none, 0.1).unwrap();
        assert!(
            median.contains("(median)")
                && median.ends_with("fewer --jobs or an idle machine would help"),
            "{median}"
        );
        // A path in a data centre allows less; a slow link allows at least the time of one packet.
        let short = Path {
            base_rtt: Duration::from_millis(1),
            packet_time: Duration::from_micros(12),
            ..path()
        };
        assert!(
            unfit(&short, &report(20, 60), &none, 0.5)
                .unwrap()
                .contains("allows 0.050 ms")
        );
        let slow = Path {
            packet_time: Duration::from_millis(12),
            ..short
        };
        assert_eq!(unfit(&slow, &report(20, 2100), &none, 0.5), None);
    }

    #[test]
    fn a_stall_longer_than_the_rtt_is_unfit() {
        let why = |base_rtt_ms: u64, stall_ms: u64| {
            let path = Path {
                base_rtt: Duration::from_millis(base_rtt_ms),
                ..path()
            };
            let report = Report {
                longest_stall: Duration::from_millis(stall_ms),
                ..report(0, 0)
            };
            unfit(&path, &report, &Vanished::default(), 0.5)
        };
        assert_eq!(why(40, 40), None);
        assert_eq!(
            why(40, 41).unwrap(),
            "the emulator stood still for 41.000 ms (longest stall), and a base RTT of 40.000 ms allows 40.000 ms; \
             root, for real-time priority, or another machine would help"
        );
        // On a longer path a sender's timer limits the stall to 200 ms.
        assert_eq!(why(500, 200), None);
        assert!(why(500, 201).unwrap().contains("allows 200.000 ms"));
        // A queue moves in steps of one packet, here of 1 ms.
        assert_eq!(why(0, 1), None);
    }

    #[test]
    fn waits_for_a_cpu_have_the_limit_of_lateness() {
        let waiting = |us| Strain {
            emulator_wait: Some(Duration::from_micros(us)),
            ..strain(0.5)
        };
        let judged = |us| {
            judge(
                &path(),
                &report(0, 0),
                &Vanished::default(),
                &waiting(us),
                None,
            )
        };
        assert_eq!(judged(390).unfit, None);
        assert_eq!(judged(390).emulator_wait_ms, Some(0.39));
        assert!(
            judged(410)
                .unfit
                .unwrap()
                .starts_with("the emulator waited 0.410 ms for a CPU (mean), and")
        );
    }

    #[test]
    fn vanished_packets_are_compared_with_link_losses() {
        let few = Vanished {
            at_devices: 1,
            at_sockets: 1,
            ..Vanished::default()
        };
        assert_eq!(unfit(&path(), &report(0, 0), &few, 0.5), None, "2 of 100");
        let more = Vanished {
            in_emulator: 1,
            ..few
        };
        let why = unfit(&path(), &report(0, 0), &more, 0.5).unwrap();
        assert!(
            why.starts_with("packets vanished at no link, 1 at hosts' full devices, 1 in the emulator, 1 at full sockets, where links lost 100;"),
            "{why}"
        );
        let lossless = Path {
            lost_packets: 0,
            ..path()
        };
        assert!(unfit(&lossless, &report(0, 0), &few, 0.5).is_some());
        let loss = judge(&path(), &report(0, 0), &more, &Strain::default(), None).unexplained_loss;
        assert_eq!(
            loss,
            Some(3.0 / 1001.0),
            "a packet that found no room was not read"
        );
    }

    #[test]
    fn a_busy_machine_and_a_broken_log_are_reported() {
        let none = Vanished::default();
        // No idle CPU does no harm if no thread waits for one.
        let mut strain = strain(0.0);
        strain.host_wait = Some(Duration::from_micros(390));
        let patient = judge(&path(), &report(0, 0), &none, &strain, None);
        assert_eq!((patient.unfit, patient.host_wait_ms), (None, Some(0.39)));
        strain.host_wait = Some(Duration::from_micros(410));
        let waiting = judge(&path(), &report(0, 0), &none, &strain, None);
        assert_eq!(
            waiting.unfit.unwrap(),
            "hosts waited 0.410 ms for a CPU (mean), and a base RTT of 40.000 ms allows 0.400 ms; \
             fewer --jobs or an idle machine would help"
        );
        let calm = Strain::default();
        let log = judge(&path(), &report(0, 0), &none, &calm, Some("x.log: full"));
        assert_eq!(log.unfit.unwrap(), "its log is incomplete: x.log: full");
        // An emulator that never ran has no numbers, and none are made up.
        let nothing = judge(&Path::default(), &Report::default(), &none, &calm, None);
        assert_eq!(nothing, Fitness::default());
    }

    #[test]
    fn help_fits_the_cause() {
        let busy = Report {
            cpu: Duration::from_millis(1900),
            ..report(20, 9000)
        };
        let why = unfit(&path(), &busy, &Vanished::default(), 0.4).unwrap();
        assert!(
            why.ends_with("a lower rate or a faster CPU would help"),
            "{why}"
        );
    }
}
