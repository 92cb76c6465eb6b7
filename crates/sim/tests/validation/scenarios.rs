//! The contents of a scenario's file happen in the simulator.

use headway_cc::{Duration, Rate};
use headway_record::{Metrics, Series};
use headway_scenario::{Part, Scenario, TraceSpec};

use headway_sim::Options;

use crate::networks::{has_traces, metrics, options, run, traces};

fn scenario(link: &str) -> Scenario {
    let text = format!("schema = 1\nname = 'x'\nseconds = 60\n[bottleneck]\n{link}\n");
    Scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}"))
}

/// A flow over 12 Mbit/s, a millisecond a packet, with 40 ms of round trip, and 600 packets unless
/// the queue is managed.
fn through(queue: &str, scheme: &str) -> Metrics {
    let link = format!("rate = '12Mbps'\ndelay = '20ms'\nqueue = {queue}");
    metrics(&scenario(&link).draw(1), scheme, options(60.0, 10.0))
}

/// Each discipline is the one that the file names: one long flow shows its distinguishing
/// behaviour.
#[test]
fn disciplines_match_the_file() {
    let tail = through("{kind='droptail',packets='600pkt'}", "cubic");
    println!("drop-tail: {tail:?}");
    // Cubic fills the queue.
    assert!(tail.queue_p95_ms.unwrap() > 550.0, "{tail:?}");
    for (queue, scheme, at_most_ms) in [
        // RFC 8289 §4.2, RFC 8290: the standing queue is about 5 ms; the sawtooth goes beyond.
        ("{kind='codel',packets='600pkt'}", "cubic", 15.0),
        ("{kind='fq_codel',packets='600pkt'}", "cubic", 15.0),
        // RFC 8033 §4.2: 15 ms.
        ("{kind='pie',packets='600pkt'}", "cubic", 45.0),
        // The average stays below twice the upper threshold of 15 packets.
        ("{kind='red',packets='600pkt'}", "cubic", 30.0),
        // DCTCP's switch: 20 packets, and the packets that the flow sends before the mark reaches
        // it.
        ("{kind='step',packets='600pkt'}", "newreno:ecn=on", 30.0),
    ] {
        let ours = through(queue, scheme);
        println!("{queue}, {scheme}: {ours:?}");
        assert!(ours.queue_p95_ms.unwrap() < at_most_ms, "{queue}: {ours:?}");
        assert!(ours.utilisation.unwrap() > 0.8, "{queue}: {ours:?}");
    }
    let pie = through("{kind='pie',packets='600pkt'}", "cubic");
    assert!((pie.queue_mean_ms.unwrap() - 15.0).abs() < 2.0, "{pie:?}");
    // A mark is not a loss: a packet that has not arrived is under way. For a flow that cannot be
    // marked, only the limit matters.
    let marked = through("{kind='step',packets='600pkt'}", "newreno:ecn=on");
    assert!(
        marked.sent_packets - marked.delivered_packets < 60,
        "{marked:?}"
    );
    let unmarked = through("{kind='step',packets='600pkt'}", "newreno");
    assert!(unmarked.loss.unwrap() > 0.0 && unmarked.queue_p95_ms.unwrap() > 300.0);
}

/// A packet is lost with the probability of the link's state; the link is bad a tenth of the time.
/// The mean delay grows by the mean of the added delay.
#[test]
fn loss_jitter_and_reordering_match_the_file() {
    let with = |what: &str| {
        let link = format!("rate = '100Mbps'\ndelay = '20ms'\n{what}");
        metrics(
            &scenario(&link).draw(1),
            "fixed-rate:rate=10Mbps",
            options(600.0, 1.0),
        )
    };
    let plain = with("");
    let bursts = with(
        "loss = {kind='gilbert-elliott',to_bad=0.01,to_good=0.09,loss_good=0.01,loss_bad=0.5}",
    );
    let expected = 0.9 * 0.01 + 0.1 * 0.5;
    // There are 500,000 packets in 4,500 bad periods of 11 packets each.
    assert!(
        (bursts.loss.unwrap() / expected - 1.0).abs() < 0.05,
        "{bursts:?}"
    );
    for (what, more_ms) in [
        ("jitter = '0.1ms'", 0.05),
        ("jitter = {mean='0.05ms'}", 0.05),
        ("reorder = {probability=0.1,delay='5ms'}", 0.5),
    ] {
        let ours = with(what);
        let more = ours.delay_mean_ms.unwrap() - plain.delay_mean_ms.unwrap();
        println!("{what}: {more} ms");
        assert!((more / more_ms - 1.0).abs() < 0.05, "{what}: {more}");
    }
}

/// "Interval", table 1: the mean bandwidth of each cellular link, over one pass of its trace.
#[test]
fn cellular_links_have_the_means_of_table_1() {
    for (name, mbps) in [
        ("static", 21.0),
        ("walking", 16.0),
        ("taxi", 21.0),
        ("bus", 19.8),
    ] {
        let scenario = Scenario::load(&format!("cellular-{name}")).expect("it ships");
        let spec = scenario.trace_specs().next().expect("a trace");
        if !has_traces("cellular_links_have_the_means_of_table_1", &[&spec.name]) {
            return;
        }
        let trace = traces().load_spec(&spec).expect("a trace");
        let recorded = traces().load(&spec.name, spec.part).expect("a trace");
        println!(
            "cellular-{name}: {:.4} Mbit/s, recorded {:.2}, {:.1} s",
            trace.mean_mbps(),
            recorded.mean_mbps(),
            trace.period().as_secs_f64()
        );
        assert!((trace.mean_mbps() / mbps - 1.0).abs() < 1e-3);
        assert_eq!(trace.period(), recorded.period());
        // A run begins at a random place in the trace.
        let offset = |seed| scenario.trace_offset(seed).expect("an offset");
        let last = (0..200).map(offset).max().expect("seeds");
        assert!(last < trace.period() && last.as_secs_f64() > 0.95 * trace.period().as_secs_f64());
    }
}

/// `mean` scales a trace: a flow that always has data carries as much.
#[test]
fn a_scaled_trace_carries_its_mean() {
    const TRACE: &str = "Verizon-LTE-short.down";
    if !has_traces("a_scaled_trace_carries_its_mean", &[TRACE]) {
        return;
    }
    let scaled = traces().load_spec(&TraceSpec {
        name: TRACE.to_owned(),
        part: Part::Whole,
        mean: Some(Rate::from_mbps(21.0)),
    });
    let scaled = scaled.expect("a trace");
    assert!((scaled.mean_mbps() / 21.0 - 1.0).abs() < 1e-4);
    let seconds = scaled.period().as_secs_f64();
    let link = format!("trace = '{TRACE}'\nmean = '21Mbps'\ndelay = '20ms'");
    let network = scenario(&link).draw_for(1, Duration::from_secs_f64(seconds));
    let ours = metrics(&network, "fixed-window:window=3000", options(seconds, 0.0));
    // Whole packets go into opportunities of 1504 bytes, and the first window takes a moment to
    // arrive.
    assert!(
        (ours.throughput_mbps.unwrap() / 21.0 - 1.0).abs() < 0.01,
        "{ours:?}"
    );
}

/// One flow's series in whole seconds.
fn seconds_of(name: &str, scheme: &str, seed: u64) -> Series {
    let scenario = Scenario::load(name).expect("it ships");
    let options = Options {
        seed,
        grid: Some(Duration::from_secs(1)),
        ..options(scenario.seconds(), 0.0)
    };
    let outcome = run(&scenario.draw(seed), scheme, options);
    outcome.series[1].series.clone()
}

/// The smallest and the largest value over ten seeds.
fn over_seeds(of: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (1..=10).map(of).collect();
    let fold = |f: fn(f64, f64) -> f64| values.iter().copied().fold(values[0], f);
    (fold(f64::min), fold(f64::max))
}

/// BBR tuning, figure 2a: after the round trip has grown at 11 s "the RTprop stores the invalid
/// minimum for RTT for around 9-10s [...] leading to a drop in throughput for around 20s".
#[test]
fn bbr_after_a_step_of_the_round_trip() {
    const STEP: usize = 11;
    // The filter expires where BBR next drains the path to measure it: ProbeRTT's four packets.
    let stale_s = over_seeds(|seed| {
        let flight = seconds_of("bbr-rtt-step", "bbr", seed).in_flight_packets;
        let drained = |i: &usize| flight[*i].is_some_and(|packets| packets < 10.0);
        (STEP..flight.len()).find(drained).expect("ProbeRTT") as f64 - STEP as f64
    });
    let drop_s = over_seeds(|seed| {
        let mbps = seconds_of("bbr-rtt-step", "bbr", seed).throughput_mbps;
        assert!(mbps[1..STEP - 1].iter().all(|&x| x > 19.8), "{mbps:?}");
        let back = (STEP..mbps.len()).find(|&i| mbps[i] > 0.9 * 20.0);
        back.expect("it recovers") as f64 - STEP as f64
    });
    println!("figure 2a: stale {stale_s:?} s, throughput under 90% for {drop_s:?} s");
    assert!(stale_s.0 >= 8.0 && stale_s.1 <= 10.0, "{stale_s:?}");
    assert!(drop_s.0 >= 15.0 && drop_s.1 <= 23.0, "{drop_s:?}");
}

/// BBR tuning, figure 2b: after the rate has fallen at 3 s "the BtlBw estimation is invalid during
/// 3s-7s interval when the change leads to a buffer build-up and a huge increase in RTT".
#[test]
fn bbr_after_a_step_of_the_rate() {
    const STEP: usize = 3;
    let invalid_s = over_seeds(|seed| {
        let pacing = seconds_of("bbr-rate-step", "bbr", seed).pacing_mbps;
        let right = |i: &usize| pacing[*i].is_some_and(|mbps| mbps < 1.3 * 5.0);
        (STEP..pacing.len()).find(right).expect("it learns") as f64 - STEP as f64
    });
    let peak_ms = over_seeds(|seed| {
        let rtt = seconds_of("bbr-rate-step", "bbr", seed).rtt_ms;
        let before = rtt[STEP - 1].expect("samples");
        assert!(before < 60.0, "{before}");
        rtt[STEP..].iter().flatten().copied().fold(0.0, f64::max)
    });
    println!("figure 2b: invalid for {invalid_s:?} s, round trip up to {peak_ms:?} ms");
    assert!(invalid_s.0 >= 2.0 && invalid_s.1 <= 5.0, "{invalid_s:?}");
    // Twice the old BDP at a quarter of the rate: 8 times 40 ms.
    assert!(peak_ms.0 > 280.0 && peak_ms.1 < 400.0, "{peak_ms:?}");
}

/// BBR tuning, figure 4: flows "join every 5 seconds at the beginning of the emulation, and leave
/// one-by-one every 5 seconds at the end".
#[test]
fn flows_that_join_and_leave() {
    let scenario = Scenario::load("bbr-join-leave").expect("it ships");
    let options = Options {
        grid: Some(Duration::from_secs(1)),
        ..options(scenario.seconds(), 0.0)
    };
    let outcome = run(&scenario.draw(1), "bbr", options);
    let flows = &outcome.series[1..];
    assert_eq!(flows.len(), 5);
    for (i, flow) in flows.iter().enumerate() {
        let mbps = &flow.series.throughput_mbps;
        let (join, leave) = (5 * i, 45 + 5 * i);
        let silent = |from: usize, to: usize| {
            mbps[from.min(mbps.len())..to.min(mbps.len())]
                .iter()
                .all(|&x| x == 0.0)
        };
        assert!(silent(0, join), "flow {i}: {mbps:?}");
        // Packets under way as the flow leaves may take a while.
        assert!(silent(leave + 3, 65), "flow {i}: {mbps:?}");
        assert!(
            mbps[join + 1..leave.min(mbps.len())].iter().sum::<f64>() > 10.0,
            "flow {i}"
        );
    }
    // The last flow has the link to itself.
    assert!(flows[4].series.throughput_mbps[63] > 9.0);
}
