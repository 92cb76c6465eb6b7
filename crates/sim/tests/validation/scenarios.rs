//! What a scenario's file says happens in the simulator.

use headway_cc::{Duration, Rate};
use headway_record::Metrics;
use headway_scenario::{Part, Scenario, TraceSpec};

use crate::networks::{has_traces, metrics, options, traces};

fn scenario(link: &str) -> Scenario {
    let text = format!("schema = 1\nname = 'x'\nseconds = 60\n[bottleneck]\n{link}\n");
    Scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}"))
}

/// 12 Mbit/s, a millisecond a packet, 40 ms of round trip, 600 packets unless the queue is managed.
fn through(queue: &str, scheme: &str) -> Metrics {
    let link = format!("rate = '12Mbps'\ndelay = '20ms'\nqueue = {queue}");
    metrics(&scenario(&link).draw(1), scheme, options(60.0, 10.0))
}

/// Each discipline is the one that the file names: what distinguishes it shows in one long flow.
#[test]
fn disciplines_are_those_of_the_file() {
    let tail = through("{kind='droptail',packets='600pkt'}", "cubic");
    println!("drop-tail: {tail:?}");
    // Cubic fills what it gets.
    assert!(tail.queue_p95_ms.unwrap() > 550.0, "{tail:?}");
    for (queue, scheme, at_most_ms) in [
        // RFC 8289 §4.2, RFC 8290: the standing queue is about 5 ms; the sawtooth goes beyond.
        ("{kind='codel',packets='600pkt'}", "cubic", 15.0),
        ("{kind='fq_codel',packets='600pkt'}", "cubic", 15.0),
        // RFC 8033 §4.2: 15 ms.
        ("{kind='pie',packets='600pkt'}", "cubic", 45.0),
        // The average stays below twice the upper threshold of 15 packets.
        ("{kind='red',packets='600pkt'}", "cubic", 30.0),
        // DCTCP's switch: 20 packets, and what the flow sends before it hears of the mark.
        ("{kind='step',packets='600pkt'}", "newreno:ecn=on", 30.0),
    ] {
        let ours = through(queue, scheme);
        println!("{queue}, {scheme}: {ours:?}");
        assert!(ours.queue_p95_ms.unwrap() < at_most_ms, "{queue}: {ours:?}");
        assert!(ours.utilisation.unwrap() > 0.8, "{queue}: {ours:?}");
    }
    let pie = through("{kind='pie',packets='600pkt'}", "cubic");
    assert!((pie.queue_mean_ms.unwrap() - 15.0).abs() < 2.0, "{pie:?}");
    // A mark is not a loss: what has not arrived is on its way. A flow that cannot be marked only meets the limit.
    let marked = through("{kind='step',packets='600pkt'}", "newreno:ecn=on");
    assert!(
        marked.sent_packets - marked.delivered_packets < 60,
        "{marked:?}"
    );
    let unmarked = through("{kind='step',packets='600pkt'}", "newreno");
    assert!(unmarked.loss.unwrap() > 0.0 && unmarked.queue_p95_ms.unwrap() > 300.0);
}

/// A packet is lost with the probability of the state in which the link is: bad a tenth of the time.
/// The mean delay grows by the mean of what is added.
#[test]
fn loss_in_bursts_jitter_and_reordering_are_those_of_the_file() {
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
    // 500,000 packets in 4,500 bad times of 11 each.
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

/// "Interval", table 1: the mean bandwidth of each cellular link, over a pass of its trace.
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
        // It begins anywhere in the trace.
        let offset = |seed| scenario.trace_offset(seed).expect("an offset");
        let last = (0..200).map(offset).max().expect("seeds");
        assert!(last < trace.period() && last.as_secs_f64() > 0.95 * trace.period().as_secs_f64());
    }
}

/// `mean` scales a trace: a flow that is never short of data carries as much.
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
    // Whole packets in opportunities of 1504 bytes; the window needs a moment to be on its way.
    assert!(
        (ours.throughput_mbps.unwrap() / 21.0 - 1.0).abs() < 0.01,
        "{ours:?}"
    );
}
