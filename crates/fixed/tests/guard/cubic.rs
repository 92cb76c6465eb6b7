//! The shadow Cubic.

use super::*;

/// RFC 9438, Figure 1, for a window of 1000 packets that falls to 700: K = cbrt(300 / 0.4) = 9.086
/// s.
#[test]
fn the_shadow_cubic_follows_rfc_9438() {
    let mut cubic = Cubic::new(1000, 0);
    cubic.leave_slow_start();
    let rtt_ns = 100 * MS;
    cubic.lose(rtt_ns, rtt_ns);
    assert_eq!(cubic.cwnd(), 700.0);
    let k = libm::cbrt(300.0 / 0.4);
    let mut worst: f64 = 0.0;
    for step in 1..=1500u64 {
        let now_ns = rtt_ns + step * 10 * MS;
        cubic.acked((cubic.cwnd() / 10.0) as u32, now_ns, rtt_ns);
        // The window reaches the value that the formula has for one RTT earlier.
        let t = step as f64 / 100.0;
        let w = 0.4 * (t - k).powi(3) + 1000.0;
        worst = worst.max((cubic.cwnd() - w).abs() / w);
    }
    assert!(worst < 0.02, "off by {worst}");
}

/// RFC 5681, section 3.1, equation 4: ssthresh is at least two packets, and is lowered once,
/// however often the timer backs off.
#[test]
fn timeouts_in_a_row_lower_ssthresh_once() {
    let mut cubic = Cubic::new(100, 0);
    for (at, is_recovering) in [(1000, false), (1400, true), (2200, true)] {
        cubic.time_out(at * MS, is_recovering);
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1.0, Some(70.0)));
    }
    // A loss within a round trip after the timeouts does not lower it again.
    cubic.lose(2250 * MS, 2000 * MS);
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1.0, Some(70.0)));
    cubic.time_out(9000 * MS, false);
    assert_eq!(cubic.ssthresh(), Some(2.0));
}

/// RFC 3168, section 6.1.2: a mark counts like a loss, once a round trip. Here each acknowledgement
/// has a mark.
#[test]
fn marks_lower_the_shadow_cubic_once_a_round_trip() {
    let (mut guard, mut flow) = (Guard::new(0, 1000, 500), FLOW);
    follow(&mut guard, &mut flow, 1, |_, f| f.delivered += 10);
    let before = guard.cubic().cwnd();
    assert_eq!(before, 1000.0, "from where the flow was");
    follow(&mut guard, &mut flow, 11, |_, f| f.marked += 1);
    assert_eq!(
        guard.cubic().cwnd(),
        490.0,
        "0.7 times 0.7: at 20 and 120 ms"
    );
}
