//! The time series, compared with the arithmetic of a fixed window.

use headway_cc::Duration;
use headway_record::Series;
use headway_sim::Options;

use crate::networks::{bulk, fixed, options, run};

/// 12 Mbit/s and 100 ms of propagation both ways hold 100 packets of 1500 bytes, and one more in
/// transmission. The rest of a window of 130 is queued, and the RTT is 130 ms.
#[test]
fn a_fixed_windows_excess_is_queued() {
    let options = Options {
        grid: Some(Duration::from_millis(500)),
        ..options(10.0, 0.0)
    };
    let outcome = run(
        &fixed(12.0, 50, 1000, 1500),
        "fixed-window:window=130",
        options,
    );
    let (pooled, flow) = (&outcome.series[0], &outcome.series[1]);
    assert_eq!(pooled.series.rtt_ms, flow.series.rtt_ms);
    assert_eq!(pooled.queue_packets.len(), 20);
    assert!(flow.queue_packets.is_empty());
    for bin in 4..20 {
        assert!((pooled.queue_packets[bin] - 30.0).abs() <= 1.0, "{bin}");
        assert_eq!(flow.series.in_flight_packets[bin], Some(130.0), "{bin}");
        assert!((flow.series.rtt_ms[bin].unwrap() - 130.0).abs() < 0.1);
        assert_eq!(flow.series.pacing_mbps[bin], None);
    }
}

/// Two flows, the second from 2.1 s to 3.9 s: pooled values are sums over the flows that are
/// running, except the RTT, which is a mean.
#[test]
fn pooled_series_cover_running_flows() {
    let mut network = fixed(12.0, 50, 1000, 1500);
    let mut second = bulk(0, 1);
    second.start = headway_cc::Time::from_millis(2100);
    second.stop = Some(headway_cc::Time::from_millis(3900));
    network.flows.push(second);
    let options = Options {
        grid: Some(Duration::from_secs(1)),
        ..options(6.0, 0.0)
    };
    let outcome = run(&network, "fixed-rate:rate=3Mbps", options);
    let series = |i: usize| -> &Series { &outcome.series[i].series };
    let (x, none) = (Some(3.0), None);
    assert_eq!(series(1).pacing_mbps, [x, x, x, x, x, x]);
    assert_eq!(series(2).pacing_mbps[..2], [none; 2]);
    assert_eq!(series(2).pacing_mbps[2], x);
    assert_eq!(series(2).pacing_mbps[3..], [none; 3]);
    assert_eq!(series(0).pacing_mbps[2], Some(6.0));
    assert_eq!(series(0).pacing_mbps[5], x);
    let rtt = |i: usize| series(i).rtt_ms[2].expect("a sample");
    assert!((rtt(0) - (rtt(1) + rtt(2)) / 2.0).abs() < 1e-9);
}

/// A packet of a window too large for its path arrives, is lost, or is still under way: 12 Mbit/s
/// and 100 ms hold 100 packets, and ten more are queued. The meter behind the results counts
/// packets independently.
#[test]
fn sent_packets_arrive_or_are_lost() {
    let options = Options {
        grid: Some(Duration::from_secs(1)),
        ..options(20.0, 0.0)
    };
    let network = fixed(12.0, 50, 10, 1500);
    let outcome = run(&network, "fixed-window:window=130", options);
    let flow = &outcome.series[1].series;
    let packets = |mbps: &[f64]| mbps.iter().sum::<f64>() * 1e6 / 8.0 / 1500.0;
    let sent = packets(&flow.sent_mbps);
    let counted = outcome.rows[1].metrics.sent_packets as f64;
    // Packets sent in the very last moment are in no bin.
    assert!((0.0..3.0).contains(&(counted - sent)), "{sent} {counted}");
    let (lost, arrived) = (packets(&flow.lost_mbps), packets(&flow.throughput_mbps));
    assert!(lost > 1000.0, "{lost}");
    let under_way = sent - arrived - lost;
    assert!((0.0..=130.0 + 1e-6).contains(&under_way), "{under_way}");
}
