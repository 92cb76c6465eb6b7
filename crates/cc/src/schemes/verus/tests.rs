use super::profile::Profile;
use super::spline::Spline;
use super::*;
use crate::Ecn;
use crate::testing::{MSS, feedback, setup};

const fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

fn verus() -> Verus {
    Verus::new(&setup(), 6.0, 1.0, 2.0)
}

fn send(v: &mut Verus, now: Time) -> Tag {
    let number = v.next_number;
    v.on_sent(&Sent {
        now,
        number,
        size: MSS,
        in_flight: v.in_flight + MSS,
        retransmission: false,
        app_limited: false,
    })
}

fn packet(v: &Verus, number: u64, sent: Time, window: u64) -> (Acked, Lost) {
    let acked = Acked {
        number,
        size: MSS,
        sent,
        received: None,
        tag: Tag(window),
        ecn: Ecn::NotEct,
        echo: 0.0,
    };
    let lost = Lost {
        number,
        size: MSS,
        sent,
        tag: Tag(window),
        tx_in_flight: v.in_flight,
        lost_before: Bytes::ZERO,
    };
    (acked, lost)
}

fn ack(v: &mut Verus, now: Time, number: u64, sent: Time, window: u64) {
    let (acked, _) = packet(v, number, sent, window);
    v.on_feedback(&Feedback {
        acked: &[acked],
        in_flight: v.in_flight.saturating_sub(MSS),
        ..feedback(now)
    });
}

fn lose(v: &mut Verus, now: Time, number: u64, window: u64) {
    let (_, lost) = packet(v, number, now, window);
    v.on_feedback(&Feedback {
        lost: &[lost],
        in_flight: v.in_flight.saturating_sub(MSS),
        ..feedback(now)
    });
}

/// A flow at `now` that has left slow start, with a profile of `base` ms and `slope` ms a packet.
fn steady(now: Time, base: f64, slope: f64) -> Verus {
    let mut v = verus();
    for window in 1..=200u32 {
        v.state
            .profile
            .note(window as usize, base + slope * f64::from(window));
    }
    (v.state.d_min, v.state.d_est, v.state.rtt) = (base, base, Some(base));
    (v.state.last_delay, v.state.last_ack) = (base, now);
    v.leave_slow_start(now);
    assert!(!v.state.slow_start);
    v
}

/// algorithms.md §14.5: an RTT of 130 ms, 125 packets on the way, a window of 130: 26 epochs, 10
/// packets.
#[test]
fn an_epoch_sends_its_share_of_the_window() {
    assert_eq!(to_send(130.0, 125, 130.0), 10);
    // SIGCOMM 2015 Eq. 5: n = 26, 130 - 24/25 125 = 10. In balance a window is sent in n - 1
    // epochs.
    assert_eq!(to_send(125.0, 125, 130.0), 5);
    assert_eq!(to_send(50.0, 125, 130.0), 0);
    // For RTTs within an epoch the difference is sent.
    assert_eq!(to_send(9.0, 4, 5.0), 5);
    assert_eq!(to_send(4.0, 9, 1.0), 0);
}

/// SIGCOMM 2015 Eq. 4, with delta_1 = 1 ms, delta_2 = 2 ms and R = 6 (`verus.hpp`).
#[test]
fn the_target_delay_follows_the_measured_delay() {
    let wanted_after = |d_max: f64, d_epoch: f64| {
        let mut v = steady(ms(0), 50.0, 1.0);
        (v.state.d_est, v.state.d_max, v.state.d_epoch) = (100.0, Some(d_max), Some(d_epoch));
        v.state.under_way = 40;
        v.on_epoch(ms(5));
        (v.state.d_est, v.state.window, v.state.d_max.unwrap())
    };
    // The profile is 50 ms plus 1 ms a packet, so 52 packets belong to 102 ms.
    let (d_est, window, d_max) = wanted_after(100.0, 90.0);
    assert_eq!((d_est, d_max), (102.0, 92.0));
    assert!((window - 52.0).abs() <= 1.0, "{window}");
    assert_eq!(wanted_after(100.0, 110.0).0, 99.0);
    assert_eq!(wanted_after(301.0, 90.0).0, 98.0);
}

/// `verus_server.cpp`: with too much delay above a low target nothing is sent. If hardly anything
/// is on the way, the minimum delay was too low.
#[test]
fn at_the_minimum_delay_it_waits_or_assumes_a_longer_path() {
    let at_least = |under_way: u64| {
        let mut v = steady(ms(0), 50.0, 1.0);
        (v.state.d_est, v.state.d_max, v.state.d_epoch) = (50.0, Some(400.0), Some(400.0));
        v.state.under_way = under_way;
        v.on_epoch(ms(5));
        (v.budget, v.state.d_min)
    };
    assert_eq!(at_least(40), (0, 50.0));
    assert_eq!(at_least(1), (1, 60.0));
}

/// SIGCOMM 2015 §5.3: a loss leaves 0.7 of the lost packet's window, once in a loss phase, 150 ms
/// after the gap. A packet of the smaller window ends the phase.
#[test]
fn a_loss_shrinks_the_window_once() {
    let mut v = steady(ms(0), 50.0, 1.0);
    for _ in 0..10 {
        send(&mut v, ms(0));
    }
    v.state.window = 100.0;
    v.state.next_epoch = Time::NEVER;
    lose(&mut v, ms(60), 3, 100);
    assert_eq!(v.state.window, 100.0);
    assert_eq!(v.next_timer(), ms(210));
    lose(&mut v, ms(70), 4, 100);
    v.on_timer(ms(210));
    assert_eq!((v.state.window, v.state.loss_phase), (70.0, true));
    assert!((v.state.d_est - 120.0).abs() < 0.5, "{}", v.state.d_est);
    v.on_timer(ms(220));
    assert_eq!((v.state.window, v.state.under_way), (70.0, 8));
    // An acknowledgement adds 1/W, and the profile does not change.
    let before = v.state.profile.delay_ms(100.0);
    ack(&mut v, ms(221), 5, ms(0), 100);
    assert!((v.state.window - (70.0 + 1.0 / 70.0)).abs() < 1e-12);
    v.fit(ms(222));
    assert_eq!(v.state.profile.delay_ms(100.0), before);
    ack(&mut v, ms(223), 6, ms(100), 70);
    assert!(!v.state.loss_phase);
}

/// A packet that arrives late was not lost.
#[test]
fn a_late_packet_is_not_taken_for_lost() {
    let mut v = steady(ms(0), 50.0, 1.0);
    for _ in 0..10 {
        send(&mut v, ms(0));
    }
    lose(&mut v, ms(60), 3, 100);
    ack(&mut v, ms(100), 3, ms(0), 100);
    v.state.next_epoch = Time::NEVER;
    v.on_timer(ms(210));
    assert!(!v.state.loss_phase);
}

/// SIGCOMM 2015 §5.1: each acknowledgement adds a packet, until a delay exceeds half a second.
#[test]
fn slow_start_doubles_and_ends_when_delay_rises() {
    let mut v = verus();
    assert_eq!(v.control().cwnd, MSS);
    let (mut now, mut sent) = (0, 0);
    for round in 0..6 {
        let flight: Vec<(u64, u64)> = (0..v.budget)
            .map(|_| (v.next_number, send(&mut v, ms(now)).0))
            .collect();
        assert_eq!(flight.len(), 1 << round, "round {round}");
        sent += flight.len() as u64;
        for (number, window) in flight {
            ack(&mut v, ms(now + 100), number, ms(now), window);
        }
        now += 100;
    }
    assert_eq!((v.state.window, v.state.under_way), (64.0, 0));
    send(&mut v, ms(now));
    ack(&mut v, ms(now + 501), sent, ms(now), 64);
    assert!(!v.state.slow_start);
    assert!(v.state.window <= 0.7 * 64.0 + 1.0, "{}", v.state.window);
    assert_eq!(v.state.next_epoch, ms(now + 506));
}

/// `verus_server.cpp`: after five round trips without an acknowledgement, at least 150 ms,
/// everything is given up.
#[test]
fn silence_marks_all_in_flight_as_lost() {
    let mut v = steady(ms(0), 20.0, 1.0);
    (v.state.next_epoch, v.state.next_fit) = (Time::NEVER, Time::NEVER);
    v.state.d_est = 90.0;
    send(&mut v, ms(0));
    assert_eq!(v.next_timer(), ms(150));
    v.on_timer(ms(150));
    assert_eq!(
        (v.state.d_est, v.state.under_way, v.state.loss_phase),
        (20.0, 0, true)
    );
    // Packets of it that arrive later do not count.
    ack(&mut v, ms(160), 0, ms(0), 1);
    assert_eq!((v.state.under_way, v.state.last_ack), (0, ms(0)));
}

/// A straight line has no bend to penalise, so the spline equals the line, also beyond its ends.
#[test]
fn the_spline_keeps_a_line_unchanged() {
    let points: Vec<(f64, f64)> = (3..90)
        .filter(|i| i % 7 != 0)
        .map(|i| (f64::from(i), 40.0 + 0.5 * f64::from(i)))
        .collect();
    let spline = Spline::fit(&points, 6, 2.0).unwrap();
    for x in [-10.0, 3.0, 17.5, 60.0, 89.0, 300.0] {
        let off = spline.at(x) - (40.0 + 0.5 * x);
        assert!(off.abs() < 1e-6, "{x}: {off}");
    }
}

/// Without a penalty the spline meets points that a natural spline can go through (here a bump at
/// one node). With a penalty the curve is flatter, and noise about a line is smoothed.
#[test]
fn the_penalty_smooths_bends() {
    let bump: Vec<(f64, f64)> = (0..=100)
        .map(|i| (f64::from(i), if i == 50 { 10.0 } else { 0.0 }))
        .collect();
    let sharp = Spline::fit(&bump, 101, -8.0).unwrap();
    assert!((sharp.at(50.0) - 10.0).abs() < 1e-3 && sharp.at(48.0).abs() < 1e-3);
    let flat = Spline::fit(&bump, 101, 2.0).unwrap();
    assert!(flat.at(50.0) < 3.0, "{}", flat.at(50.0));
    assert!(Spline::fit(&bump[..1], 5, 2.0).is_none());

    let noisy: Vec<(f64, f64)> = (0..300)
        .map(|i| (f64::from(i), f64::from(i) + f64::from(i % 3 - 1) * 30.0))
        .collect();
    let even = Spline::fit(&noisy, 20, 2.0).unwrap();
    for x in [10.0, 150.0, 290.0] {
        assert!((even.at(x) - x).abs() < 3.0, "{x}: {}", even.at(x));
    }
}

/// The fit minimises what it states: any other coefficient gives a larger sum. The integral is
/// computed numerically, and the scale from splines that are one at a node.
#[test]
fn the_fit_minimises_residuals_and_bending() {
    let wave = |i: u32| 20.0 * libm::sin(f64::from(i) / 9.0) + f64::from(i * i % 11);
    let points: Vec<(f64, f64)> = (0..=80).map(|i| (f64::from(i), wave(i))).collect();
    let cost = |at: &dyn Fn(f64) -> f64| {
        let residuals: f64 = points.iter().map(|&(x, y)| (at(x) - y) * (at(x) - y)).sum();
        let (h, nodes) = (10.0, 8.0);
        let step = 0.01;
        let bend: f64 = (1..7999)
            .map(|i| {
                let x = f64::from(i) * step;
                let second = (at(x - step) - 2.0 * at(x) + at(x + step)) / (step * step);
                second * second * step
            })
            .sum();
        // The terms are 10^rho, the points per node, and the ratio of the two integrals in units of
        // h.
        residuals + 10.0 * (81.0 / nodes) * 0.0609 * h * h * h * bend
    };
    let spline = Spline::fit(&points, 9, 1.0).unwrap();
    let best = cost(&|x| spline.at(x));
    for changed in 2..=6 {
        for by in [-0.3, 0.3] {
            // The bump of one more coefficient of a B-spline at an inner node.
            let bump = move |x: f64| {
                let u = (x / 10.0 - f64::from(changed)).abs();
                match u {
                    u if u < 1.0 => (4.0 - 6.0 * u * u + 3.0 * u * u * u) / 6.0,
                    u if u < 2.0 => (2.0 - u) * (2.0 - u) * (2.0 - u) / 6.0,
                    _ => 0.0,
                }
            };
            let other = cost(&|x| spline.at(x) + by * bump(x));
            assert!(other > best, "{changed}, {by}: {other} < {best}");
        }
    }
}

/// §4.2: an EWMA of 0.875; the largest window below the first whose delay is above the target; a
/// straight line beyond.
#[test]
fn the_profile_turns_delays_into_windows() {
    let mut profile = Profile::default();
    profile.note(4, 100.0);
    profile.note(4, 140.0);
    assert_eq!(profile.delay_ms(4.5), Some(105.0));
    assert!(!profile.fit());
    let mut profile = Profile::default();
    for window in 1..=300u32 {
        profile.note(window as usize, 50.0 + 0.5 * f64::from(window));
    }
    assert!(profile.fit());
    for (delay, window) in [(0.0, 1), (100.2, 100), (149.8, 199), (250.2, 400)] {
        assert_eq!(profile.window(delay), Some(window), "{delay}");
    }
    // No window up to 40,000 has a delay of 30 s. Where delays fall, no window is too large.
    assert_eq!(profile.window(30_000.0), None);
    let mut falling = Profile::default();
    for window in 1..=300u32 {
        falling.note(window as usize, 500.0 - f64::from(window));
    }
    assert!(falling.fit());
    assert_eq!(falling.window(600.0), None);
    assert_eq!(falling.window(100.0), Some(1));
}

/// `delayProfile_thread`: N begins at 15, falls until `max_i / N` is 5, and never rises again.
#[test]
fn a_curve_that_began_small_keeps_its_finer_nodes() {
    let mut profile = Profile::default();
    assert_eq!(profile.nodes(200), 13);
    assert_eq!(profile.nodes(40), 5);
    assert_eq!(profile.nodes(200), 25);
}

/// `receiver_thread`: a packet of a flight that was given up does not count, but its window ends a
/// loss phase.
#[test]
fn a_packet_that_was_given_up_ends_the_loss_phase() {
    let mut v = steady(ms(0), 50.0, 1.0);
    (v.state.next_epoch, v.state.next_fit) = (Time::NEVER, Time::NEVER);
    v.state.window = 40.0;
    send(&mut v, ms(0));
    v.time_out(ms(400));
    assert!(v.state.loss_phase);
    ack(&mut v, ms(410), 0, ms(0), 41);
    assert!(v.state.loss_phase);
    ack(&mut v, ms(410), 0, ms(0), 40);
    assert!(!v.state.loss_phase);
    assert_eq!((v.state.under_way, v.state.d_epoch), (0, None));
}

/// A late timer does not delay later epochs.
#[test]
fn epochs_do_not_drift() {
    let mut v = steady(ms(0), 50.0, 1.0);
    for (late, next) in [(5, 10), (12, 15), (33, 35)] {
        v.on_timer(ms(late));
        assert_eq!(v.state.next_epoch, ms(next));
    }
}
