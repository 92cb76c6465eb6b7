//! Headway beside ns-3 3.37. The figures of ns-3 are those of `docs/validation-ns3.md`, which says
//! how they were made.

use headway_cc::Duration;
use headway_net::Loss;
use headway_net::queue::{CoDelParams, Discipline, FqCodelParams, PieParams, RedParams};
use headway_scenario::{Network, Transport};

use crate::check::{Check, Outside};
use crate::classic::marking;
use crate::networks::{fixed, metrics, options, rax};
use crate::sawtooth::{self, Sawtooth};

/// The tolerances: utilisation within 2 points, loss within a factor of 1.5.
#[track_caller]
fn beside(class: &str, ours: Sawtooth, utilisation: f64, loss: f64) {
    println!("{class} {utilisation} {loss:e}: ours {ours:?}");
    assert!(
        (ours.utilisation - utilisation).abs() <= 0.02,
        "{class} {utilisation}: {ours:?}"
    );
    let ratio = ours.loss / loss;
    assert!(
        (1.0 / 1.5..=1.5).contains(&ratio),
        "{class} {loss:e}: {ours:?}"
    );
}

#[test]
fn newreno_on_rax_link() {
    let whole = sawtooth::run(&rax(), "newreno", 0, 600);
    beside("TcpNewReno", whole, 0.8134, 2.14e-4);
    let steady = sawtooth::run(&rax(), "newreno", 100, 700);
    beside("TcpNewReno", steady, 0.8146, 1.93e-4);
    beside("TcpLinuxReno", steady, 0.8332, 2.12e-4);
}

#[test]
fn newreno_of_profile_linux_on_rax_link() {
    let mut network = rax();
    network.transport = Transport::Linux;
    let steady = sawtooth::run(&network, "newreno", 100, 700);
    beside("TcpLinuxReno, ACK every 2", steady, 0.8269, 2.12e-4);
}

#[test]
fn cubic_on_rax_link() {
    let whole = sawtooth::run(&rax(), "cubic", 0, 600);
    beside("TcpCubic", whole, 0.9517, 1.86e-4);
    let whole = sawtooth::run(&rax(), "cubic:hystart=none", 0, 600);
    beside("TcpCubic, HyStart=false", whole, 0.9517, 1.86e-4);
    let steady = sawtooth::run(&rax(), "cubic", 100, 700);
    beside("TcpCubic", steady, 0.9569, 1.68e-4);
    let steady = sawtooth::run(&rax(), "cubic:fast_convergence=off", 100, 700);
    beside("TcpCubic, FastConvergence=false", steady, 0.9569, 1.68e-4);
}

#[test]
fn cubic_of_profile_linux_on_rax_link() {
    let mut network = rax();
    network.transport = Transport::Linux;
    let whole = sawtooth::run(&network, "cubic", 0, 600);
    beside("TcpCubic, ACK every 2", whole, 0.9471, 1.86e-4);
    let steady = sawtooth::run(&network, "cubic", 100, 700);
    beside("TcpCubic, ACK every 2", steady, 0.9528, 1.69e-4);
}

/// With 1% random loss: utilisation against `TcpNewReno` (.1033); against `TcpLinuxReno` (.1408) no
/// more than a lower bound, since ns-3 grows the window by the whole flight as it leaves
/// recovery (`docs/validation-ns3.md`). Cubic must not be below Reno there (RFC 9438 §4.3); ns-3's,
/// which has no Reno-friendly region, is (.0463).
#[test]
fn one_percent_of_random_loss() {
    let mean = |scheme: &str| {
        let mut network = rax();
        network.links[0].loss = Some(Loss::Random { probability: 0.01 });
        let runs = (1..=3).map(|seed| {
            let mut options = options(320.0, 20.0);
            options.seed = seed;
            metrics(&network, scheme, options)
                .utilisation
                .expect("a bottleneck")
        });
        runs.sum::<f64>() / 3.0
    };
    let (newreno, cubic) = (mean("newreno"), mean("cubic"));
    println!("1% loss: newreno {newreno:.4}, cubic {cubic:.4}");
    assert!((newreno - 0.1033).abs() <= 0.02, "{newreno}");
    assert!(newreno < 0.1408, "{newreno}");
    assert!(cubic >= newreno, "{cubic} {newreno}");
}

/// 12 Mbit/s, 120 ms, buffers of a half, one and two bandwidth-delay products: utilisation and loss
/// as on Rax's link, the mean queue within 10%.
#[test]
fn larger_buffers() {
    for (buffer, scheme, class, utilisation, loss, queue_ms) in [
        (60, "newreno", "TcpNewReno", 0.9590, 7.6e-5, 24.3),
        (60, "newreno", "TcpLinuxReno", 0.9687, 7.9e-5, 24.9),
        (60, "cubic", "TcpCubic", 1.0, 4.16e-4, 35.6),
        (120, "newreno", "TcpNewReno", 0.9999, 4.0e-5, 65.9),
        (120, "newreno", "TcpLinuxReno", 1.0, 4.7e-5, 68.9),
        (120, "cubic", "TcpCubic", 1.0, 5.86e-4, 87.5),
        (240, "newreno", "TcpNewReno", 1.0, 2.0e-5, 159.3),
        (240, "newreno", "TcpLinuxReno", 1.0, 2.3e-5, 161.0),
        (240, "cubic", "TcpCubic", 1.0, 9.72e-4, 190.6),
    ] {
        let ours = sawtooth::run(&fixed(12.0, 60, buffer, 1500), scheme, 100, 400);
        beside(class, ours, utilisation, loss);
        let apart = (ours.mean_queue_ms - queue_ms).abs();
        assert!(apart <= 0.1 * queue_ms, "{class}, {buffer}: {ours:?}");
    }
}

/// Utilisation within 2 points, the mean queue within 10% or a packet.
fn checks<'a>(
    scheme: &'a str,
    what: &'a [String; 2],
    class: &'a str,
    [utilisation, queue]: [f64; 2],
    ours: &Sawtooth,
) -> [Check<'a>; 2] {
    let of = |figure: usize, unit, outside, ours| Check {
        scheme,
        what: &what[figure],
        unit,
        source: class,
        outside,
        ours,
    };
    let queue = match queue {
        0.0..=10.0 => Outside::Difference(queue, 1.0),
        _ => Outside::Percent(queue, 10.0),
    };
    [
        of(
            0,
            "",
            Outside::Difference(utilisation, 0.02),
            ours.utilisation,
        ),
        of(1, "packets", queue, ours.mean_queue_ms),
    ]
}

/// The links: 12 Mbit/s, 120 ms, buffers of a half, one and two bandwidth-delay products.
const BUFFERS: [u64; 3] = [60, 120, 240];

fn what(buffer: u64) -> [String; 2] {
    let of = |figure| format!("12 Mbit/s, 120 ms, {buffer} packets: {figure}");
    [of("utilisation"), of("mean queue")]
}

fn classes_link(buffer: u64) -> Network {
    fixed(12.0, 60, buffer, 1500)
}

/// `docs/validation-ns3.md`, "One class of each kind".
#[test]
fn classes_that_agree() {
    for (scheme, class, theirs) in [
        (
            "newreno",
            "ns-3.37 TcpLinuxReno",
            [[0.9687, 24.1], [1.0, 68.9], [1.0, 161.0]],
        ),
        (
            "cubic",
            "ns-3.37 TcpCubic",
            [[1.0, 35.6], [1.0, 87.5], [1.0, 190.6]],
        ),
        (
            "dctcp",
            "ns-3.37 TcpDctcp",
            [[1.0, 16.95], [1.0, 36.6], [1.0, 75.9]],
        ),
        (
            "ledbat",
            "ns-3.37 TcpLedbat, mended",
            [[0.9729, 30.0], [1.0, 100.0], [1.0, 100.0]],
        ),
    ] {
        for (buffer, theirs) in BUFFERS.into_iter().zip(theirs) {
            let network = match scheme {
                // A step at a third of the buffer, on both sides.
                "dctcp" => marking(buffer / 3, buffer),
                _ => classes_link(buffer),
            };
            let ours = sawtooth::run(&network, scheme, 100, 400);
            for check in checks(scheme, &what(buffer), class, theirs, &ours) {
                check.holds();
            }
        }
    }
}

/// ns-3's LEDBAT as it is.
#[test]
fn a_ledbat_that_does_not_grow() {
    for (buffer, theirs) in BUFFERS.into_iter().zip([0.5868, 0.9173, 0.9173]) {
        let ours = sawtooth::run(&classes_link(buffer), "ledbat", 100, 400);
        let what = what(buffer);
        let [utilisation, _] = checks("ledbat", &what, "ns-3.37 TcpLedbat", [theirs, 0.0], &ours);
        utilisation.misses_because(
            "The class leaves out RFC 6817's ALLOWED_INCREASE, so that its window never grows after slow start; \
             with that mended it agrees.",
        );
    }
}

/// Both keep the two to four packets of their rule, counted differently.
#[test]
fn vegas_counts_from_another_base() {
    for (buffer, agrees) in BUFFERS.into_iter().zip([true, false, true]) {
        let ours = sawtooth::run(&classes_link(buffer), "vegas", 100, 400);
        let what = what(buffer);
        let [utilisation, queue] = checks("vegas", &what, "ns-3.37 TcpVegas", [1.0, 2.0], &ours);
        utilisation.holds();
        if agrees {
            queue.holds();
        } else {
            queue.misses_because(
                "Both keep alpha to beta, two to four packets: ns-3 counts one more, as its base RTT is of the SYN, \
                 which crosses the link in no time, and came to them from below, ours from above after slow start.",
            );
        }
    }
}

/// ns-3's BBR with an acknowledgement every two packets: with one for each it loses packets again as it repairs
/// what startup lost, and hangs. A millisecond of jitter: without any, RTTs repeat to the nanosecond, RTprop never
/// expires, and there is no PROBE_RTT.
#[test]
fn bbr_probes_the_rtt_as_often() {
    let class = "ns-3.37 TcpBbr, ACK every 2";
    for (buffer, later) in BUFFERS.into_iter().zip([9.5, 14.6, 19.7]) {
        let mut network = classes_link(buffer);
        network.transport = Transport::Linux;
        network.host_jitter = Duration::from_millis(1);
        let ours = sawtooth::run(&network, "bbr", 100, 200);
        let what_of = what(buffer);
        for check in checks("bbr", &what_of, class, [0.9681, 7.95], &ours) {
            check.holds();
        }
        let ours = sawtooth::run(&network, "bbr", 100, 400);
        let what_of = what(buffer).map(|what| format!("{what}, to second 400"));
        let [utilisation, queue] = checks("bbr", &what_of, class, [0.9681, later], &ours);
        utilisation.holds();
        queue.misses_because(
            "ns-3's queue is 7.9 packets with every buffer for a hundred seconds; then some windows of RTprop \
             begin with a wrong one and keep nearly a BDP in the queue for ten seconds. Ours do not.",
        );
    }
}

/// 12 Mbit/s, 120 ms, 240 packets under each queue discipline, means of three seeds: utilisation within
/// 2 points, the mean queue within a packet, which is what ns-3's device holds below its queue disc.
/// Cubic under RED misses that by 2.3 points: two of ns-3's runs have RTOs, the third loses more often.
#[test]
fn queue_disciplines() {
    let codel = || Discipline::CoDel(CoDelParams::default());
    let fq_codel = || Discipline::FqCodel(FqCodelParams::default());
    let pie = || Discipline::Pie(PieParams::default());
    let red = || Discipline::Red(RedParams::default());
    for (scheme, discipline, utilisation, queue_ms, points) in [
        ("newreno", codel(), 0.7875, 0.81, 2.0),
        ("newreno", fq_codel(), 0.7875, 0.81, 2.0),
        ("newreno", pie(), 0.8510, 5.10, 2.0),
        ("newreno", red(), 0.7955, 1.44, 2.0),
        ("cubic", codel(), 0.9083, 1.08, 2.0),
        ("cubic", fq_codel(), 0.9083, 1.08, 2.0),
        ("cubic", pie(), 0.9723, 9.22, 2.0),
        ("cubic", red(), 0.8819, 2.10, 5.0),
    ] {
        let mut network = fixed(12.0, 60, 240, 1500);
        network.links[0].queue.discipline = discipline.clone();
        let runs = [1, 2, 3].map(|seed| sawtooth::run_of_seed(&network, scheme, 100, 400, seed));
        let mean = |of: fn(&Sawtooth) -> f64| runs.iter().map(of).sum::<f64>() / 3.0;
        let (ours, ours_ms) = (mean(|r| r.utilisation), mean(|r| r.mean_queue_ms));
        println!(
            "{scheme}, {discipline:?}: {ours:.4}, {ours_ms:.2} ms, loss {:.2e}; ns-3 {utilisation}, {queue_ms} ms",
            mean(|r| r.loss)
        );
        let (off, off_ms) = (100.0 * (ours - utilisation), ours_ms - queue_ms);
        assert!(
            off.abs() <= points,
            "{scheme}, {discipline:?}: {off} points"
        );
        assert!(off_ms.abs() <= 1.0, "{scheme}, {discipline:?}: {off_ms} ms");
    }
}
