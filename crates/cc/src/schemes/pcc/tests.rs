//! The family's utilities against numbers worked by hand, and flows over a link.

use super::{allegro, proteus, vivace};
use crate::testing::{Host, Link, MSS, select, setup};
use crate::{Bytes, Duration, Ecn, Rate};

const SCHEMES: [&str; 5] = [
    "pcc-allegro",
    "vivace",
    "vivace-loss",
    "proteus-p",
    "proteus-s",
];

fn close(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() < 6e-4, "{ours}, not {theirs}");
}

/// algorithms.md §14.5: x = 10 Mbit/s, b = 900, c = 11.35. The last value is 10^0.9 alone.
#[test]
fn vivace_utility_matches_its_formula() {
    for (loss, gradient, u) in [
        (0.0, 0.0, 7.943),
        (0.05, 0.0, 2.268),
        (0.1, 0.0, -3.407),
        (0.0, 0.001, -1.057),
        (0.0, 0.01, -82.057),
    ] {
        close(vivace::utility(10.0, gradient, loss, 900.0), u);
    }
    close(vivace::utility(10.0, 0.01, 0.0, 0.0), 7.943);
    close(vivace::utility(10.0, -0.01, 0.0, 900.0), 7.943);
}

/// algorithms.md §14.5: x = 10 Mbit/s, alpha = 100. At L = .05 by hand: 10 (.95) / 2 - .5.
#[test]
fn allegro_utility_matches_its_formula() {
    for (loss, u) in [(0.0, 9.933), (0.05, 4.250), (0.1, -0.940)] {
        close(allegro::utility(10.0, loss, 100.0, 0.05), u);
    }
}

/// SIGCOMM 2020 §4.2, by hand: 10^0.9 - 1500 x 10 x 0.1 ms. A falling RTT adds nothing.
#[test]
fn proteus_utility_matches_its_formula() {
    close(proteus::utility(10.0, 0.0, 0.0, 1500.0, 1e-4), 7.943 - 1.5);
    close(proteus::utility(10.0, -0.01, 0.0, 0.0, 1e-4), 7.943);
    close(proteus::utility(10.0, 0.01, 0.05, 1500.0, 1e-4), -89.232);
}

/// algorithms.md §12: with b = 0, dU/dx > 0 as long as L < 0.0793 x^-0.1. That is 6.2% at 12
/// Mbit/s, and 5.0% at 100.
#[test]
fn vivace_tolerates_five_percent_loss_and_not_much_more() {
    for (x, bearable) in [(12.0, 0.062), (100.0, 0.050)] {
        let slope = |loss| {
            vivace::utility(x * 1.001, 0.0, loss, 0.0) - vivace::utility(x * 0.999, 0.0, loss, 0.0)
        };
        assert!(slope(bearable - 0.0005) > 0.0 && slope(bearable + 0.0005) < 0.0);
    }
}

/// From 0.5 Mbit/s to a Gbit/s, and from 1 ms to 1 s, the link is used, and the rate is near its
/// capacity.
#[test]
fn every_member_finds_the_capacity() {
    for (mbps, rtt_ms) in [
        (0.5, 40),
        (12.0, 1),
        (12.0, 120),
        (12.0, 1000),
        (1000.0, 20),
    ] {
        let rate = Rate::from_mbps(mbps);
        let rtt = Duration::from_millis(rtt_ms);
        let bdp = rate.bytes_in(rtt).get() / MSS.get();
        for scheme in SCHEMES {
            let mut link = Link::new(&select(scheme), rate, rtt, bdp.max(10));
            // This takes some hundred round trips, or packets.
            link.run(rtt * 200 + rate.time_to_send(MSS) * 400);
            let used = link.utilisation(rtt * 100 + rate.time_to_send(MSS) * 400);
            println!("{scheme}, {mbps} Mbit/s, {rtt_ms} ms: {used:.3}");
            assert!(used > 0.7, "{scheme}, {mbps} Mbit/s, {rtt_ms} ms: {used}");
        }
    }
}

/// A trial in which the application has nothing to send does not change the rate.
#[test]
fn an_idle_application_does_not_change_the_rate() {
    for scheme in SCHEMES {
        let mut link = Link::new(
            &select(scheme),
            Rate::from_mbps(12.0),
            Duration::from_millis(40),
            40,
        );
        link.run(Duration::from_secs(20));
        let rate = |link: &Link| link.host.reading("rate_mbps").expect("a rate");
        let before = rate(&link);
        link.host.app_limited = true;
        // What is in flight arrives; after that a packet comes now and then.
        for _ in 0..50 {
            link.run(Duration::from_millis(200));
            let now = link.host.now();
            let number = link.host.send();
            link.host.wait_until(now + Duration::from_millis(40));
            link.host.feedback(&[number], &[], Ecn::NotEct, |_| {});
        }
        let after = rate(&link);
        assert!(
            (after / before - 1.0).abs() < 0.3,
            "{scheme}: {before} to {after}"
        );
    }
}

/// Nothing is acknowledged for a time. At most 2.5 round trips of the rate are in flight, and the
/// flow recovers.
#[test]
fn a_flow_recovers_from_an_outage() {
    for scheme in SCHEMES {
        let mut host = Host::new(select(scheme).build(&setup()), MSS);
        for _ in 0..10 {
            while host.may_send() {
                host.send();
            }
            let now = host.now();
            host.wait_until(now + Duration::from_millis(40));
            let flight: Vec<u64> = host.flight().collect();
            host.feedback(&flight, &[], Ecn::NotEct, |_| {});
        }
        for _ in 0..3 {
            while host.may_send() {
                host.send();
            }
            assert!(host.in_flight() > Bytes::ZERO);
            let now = host.now();
            host.wait_until(now + Duration::from_secs(1));
            host.time_out();
        }
        assert!(host.may_send(), "{scheme}");
        let control = host.cc.control();
        let rate = control.pacing_rate.expect("paced");
        let most = rate.bytes_in(Duration::from_millis(110)).max(MSS * 10);
        assert!(control.cwnd <= most, "{scheme}: {control:?}");
    }
}
