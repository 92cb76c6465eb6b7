use super::*;

/// Eight rounds, each with 100 packets acknowledged in 100 ms and 20 lost: 12 Mbit/s.
fn eight_lossy_rounds(bbr: &mut Bbr) {
    (1..=8).for_each(|n| bbr.on_feedback(&round(n, 20)));
}

fn round(n: u64, lost: u64) -> Feedback<'static> {
    Feedback {
        lost_bytes: MSS * lost,
        largest_acked: 1000 * n,
        next_number: 1000 * (n + 1),
        ..acked(Time::from_millis(100 * n), 100, 100)
    }
}

/// A flow that the tokens allowed 24 Mbit/s, of which 12 are left.
fn policed(spec: &str) -> Bbr {
    let mut bbr = Bbr::new(&setup(), &select(spec).values);
    bbr.btlbw.update(0, MBPS_12.mul_f64(2.0));
    (bbr.rtprop, bbr.filled_pipe) = (RTT, true);
    bbr.enter_probe_bw(Time::ZERO);
    bbr.cwnd = bbr.inflight(bbr.bandwidth(), 2.0);
    eight_lossy_rounds(&mut bbr);
    bbr
}

fn rate(bbr: &Bbr) -> f64 {
    bbr.pacing_rate.as_mbps()
}

#[test]
fn policed_flow_keeps_to_the_policers_rate() {
    let mut bbr = policed("bbr");
    for n in 9..56 {
        bbr.on_feedback(&round(n, 0));
        assert!((rate(&bbr) - 0.99 * 12.0).abs() < 1e-3, "round {n}");
    }
    // The window is two BDP of 100 packets, three quanta of two, and 100 packets of aggregation.
    assert_eq!(bbr.cwnd, MSS * (200 + 6 + 100));
    // The largest rate is still known, but no sample came within its window of ten rounds.
    bbr.on_feedback(&round(56, 0));
    assert_eq!(bbr.bandwidth(), bbr.btlbw.max());
    assert_eq!(bbr.cycle_gain(), CYCLE[bbr.cycle_index]);
}

#[test]
fn without_detection_the_flow_keeps_probing() {
    let bbr = policed("bbr:policer=off");
    assert_eq!(bbr.bandwidth(), MBPS_12.mul_f64(2.0));
}

/// As in Linux, spurious losses do not show a policer.
#[test]
fn undo_forgets_the_policer() {
    let mut bbr = policed("bbr");
    bbr.on_feedback(&Feedback {
        undo: true,
        ..round(9, 0)
    });
    assert_eq!(bbr.bandwidth(), bbr.btlbw.max());
}

/// As in Linux, a timeout counts as a loss and as the end of a round.
#[test]
fn timeouts_count_as_rounds_with_loss() {
    let mut bbr = bbr(1);
    (1..=7).for_each(|n| bbr.on_feedback(&round(n, 20)));
    bbr.on_feedback(&Feedback {
        largest_acked: 0,
        ..round(8, 0)
    });
    assert_eq!(bbr.policer.and_then(|p| p.rate()), None, "no new round");
    bbr.on_rto(&rto(Time::from_millis(800), 100, 1));
    let policed = bbr.policer.and_then(|p| p.rate());
    assert_eq!(policed.map(Rate::as_mbps), Some(12.0));
}

/// The link gives 24 Mbit/s while the tokens last, then 6 and hardly a queue. Most of what the old
/// estimate sends is lost. Without detection the estimate also adapts in ten rounds, but probes,
/// and loses, a quarter more.
#[test]
fn flow_keeps_to_a_policers_rate_on_a_link() {
    let run = |spec: &str| {
        let mut link = Link::new(&select(spec), MBPS_12.mul_f64(2.0), MS * 120, 240);
        link.run(Duration::from_secs(5));
        (link.rate, link.buffer) = (MBPS_12.mul_f64(0.5), 4);
        link.run(MS * 120 * 15);
        let policed = link.host.reading("policer_mbps");
        let before = link.host.counters();
        link.run(MS * 120 * 30);
        let after = link.host.counters();
        let lost = (after.lost - before.lost).as_f64() / (after.sent - before.sent).as_f64();
        (policed, lost)
    };
    let (policed, lost) = run("bbr");
    let mbps = policed.expect("taken for policed");
    assert!((5.5..=6.1).contains(&mbps), "{mbps} Mbit/s");
    let (policed, lost_probing) = run("bbr:policer=off");
    assert_eq!(policed, None);
    assert!(
        lost < 0.002 && lost_probing > 0.01,
        "{lost} lost, {lost_probing} without the detection"
    );
}
