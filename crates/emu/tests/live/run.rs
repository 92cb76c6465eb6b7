//! Bench runs whose rates, delays and ends are judged in real time.

use headway_scenario::Scenario;

use crate::run::{bottleneck, run};

/// The link has 12 Mbit/s, 40 ms and two BDP of buffer: Cubic keeps it full, and so does Copa with
/// a shorter queue.
#[test]
#[ignore = "judges rates and delays in real time; make test-live runs it"]
fn one_flow_fills_the_link() {
    let flow = bottleneck("[[flow]]\nfrom = \"a\"\nto = \"b\"\n");
    for scheme in ["cubic", "copa"] {
        let outcome = run(&flow, scheme, 5);
        let total = outcome.rows[0].metrics;
        assert!(total.utilisation.unwrap() > 0.85, "{scheme}: {total:?}");
        let mbps = total.throughput_mbps.unwrap();
        assert!((10.0..=12.05).contains(&mbps), "{scheme}: {total:?}");
        let delay = total.delay_mean_ms.unwrap();
        assert!((21.0..101.0).contains(&delay), "{scheme}: {total:?}");
        // The RTT is the propagation, the wait at the bottleneck, and a little more.
        let rtt = total.rtt_mean_ms.unwrap();
        assert!((rtt - delay - 20.0).abs() < 5.0, "{scheme}: {total:?}");
        let series = &outcome.series[0].series;
        assert_eq!(series.time_s.len(), 10);
        assert!(series.cwnd_packets[5].unwrap() > 10.0, "{scheme}");
        let capacity = outcome.series[0].capacity_mbps[5];
        assert!((capacity - 12.0).abs() < 0.1, "{capacity}");
        assert!(outcome.fitness.unwrap().lateness_p50_ms.unwrap() < 1.0);
    }
}

#[test]
#[ignore = "judges rates and delays in real time; make test-live runs it"]
fn two_flows_share_and_one_stops() {
    let flows = bottleneck(
        "[[flow]]\nfrom = \"a\"\nto = \"b\"\ncount = 2\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\nscheme = \"udp-fixed-rate:rate=2Mbps\"\nstart = \"1s\"\nstop = \"3s\"\n",
    );
    let outcome = run(&flows, "newreno", 6);
    let rows = &outcome.rows;
    assert_eq!(
        rows.iter().map(|r| r.flow).collect::<Vec<_>>(),
        [-1, 0, 1, 2]
    );
    assert!(rows[0].metrics.jain.unwrap() > 0.7, "{rows:?}");
    let constant = rows[3].metrics;
    // 2 Mbit/s for two seconds are 333 packets of 1500 bytes.
    assert!(constant.sent_packets.abs_diff(333) <= 4, "{constant:?}");
    let all: f64 = rows[1..3]
        .iter()
        .filter_map(|r| r.metrics.throughput_mbps)
        .sum();
    assert!(
        (9.5..11.7).contains(&all),
        "12 less 2 for two of five seconds: {rows:?}"
    );
}

#[test]
#[ignore = "judges rates and delays in real time; make test-live runs it"]
fn a_finite_flow_ends_with_its_data() {
    // 750 kB at 12 Mbit/s take half a second and a slow start.
    let flow =
        bottleneck("[[flow]]\nfrom = \"a\"\nto = \"b\"\nbytes = \"750kB\"\nstart = \"1s\"\n");
    for scheme in ["newreno", "udp-newreno"] {
        let total = run(&flow, scheme, 4).rows[0].metrics;
        // The source counts packets, and each carries data.
        assert!(
            (500..=503).contains(&total.delivered_packets),
            "{scheme}: {total:?}"
        );
        assert!(
            total.throughput_mbps.unwrap() > 5.0,
            "it has ended: {scheme}: {total:?}"
        );
        // Utilisation is taken from the flow's start, throughput from the first arrival, 21 ms
        // later and with a handshake of 40 ms before it; both until the last arrival. The
        // acknowledgement takes 20 ms more.
        let bits = total.delivered_packets as f64 * 12_000.0;
        let measured_s = bits / 12e6 / total.utilisation.unwrap();
        let arriving_s = bits / 1e6 / total.throughput_mbps.unwrap();
        let before_s = if scheme == "newreno" { 0.061 } else { 0.021 };
        let longer_s = measured_s - arriving_s - before_s;
        assert!(longer_s.abs() < 0.01, "{longer_s}: {scheme}: {total:?}");
    }
}

#[test]
#[ignore = "judges rates and delays in real time; make test-live runs it"]
fn a_trace_is_followed_and_background_traffic_waits_too() {
    let scenario = Scenario::load("synthetic-verizon").unwrap();
    let total = run(&scenario, "cubic", 4).rows[0].metrics;
    assert!(total.utilisation.unwrap() > 0.8, "{total:?}");
    let cross = bottleneck(
        "[[flow]]\nfrom = \"a\"\nto = \"b\"\n\
         [[cross]]\nfrom = \"a\"\nto = \"b\"\nrate = \"6Mbps\"\n",
    );
    let total = run(&cross, "newreno", 4).rows[0].metrics;
    assert!(
        total.utilisation.unwrap() > 0.9,
        "of all traffic: {total:?}"
    );
    let mbps = total.throughput_mbps.unwrap();
    assert!(
        (4.0..6.5).contains(&mbps),
        "what cross traffic leaves: {total:?}"
    );
}
