//! SCReAM and GCC: the requirements of WebRTC's own tests, RFC 8867's cases, and the queues that
//! their rules predict.

use headway_cc::{Duration, Rate, Time};
use headway_net::Loss;
use headway_net::queue::{Discipline, StepParams};
use headway_record::jain_index;
use headway_scenario::{Change, FlowSpec, Network, QueueSpec, RateSpec};
use headway_sim::{FlowSeries, Options};

use crate::check::{Check, Outside};
use crate::networks::{bulk, fixed, link, options, packets, run};
use crate::sawtooth;

const GCC_TESTS: &str = "WebRTC's goog_cc_network_control_unittest.cc";
const SCREAM_TESTS: &str = "WebRTC's scream_v2_unittest.cc";
/// RFC 8867 §4.3: the media's bitrate.
const MEDIA: &str = "min_bitrate=150kbps:max_bitrate=1500kbps";

fn check<'a>(
    scheme: &'a str,
    what: &'a str,
    unit: &'a str,
    source: &'a str,
    outside: Outside,
    ours: f64,
) -> Check<'a> {
    Check {
        scheme,
        what,
        unit,
        source,
        outside,
        ours,
    }
}

/// The series of all flows together, then of each flow.
fn series(network: &Network, scheme: &str, seconds: u64, grid_ms: u64) -> Vec<FlowSeries> {
    let options = Options {
        grid: Some(Duration::from_millis(grid_ms)),
        ..options(seconds as f64, 0.0)
    };
    run(network, scheme, options).series
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values
        .into_iter()
        .fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
    sum / f64::from(n)
}

/// The smallest and the largest value.
fn extremes(values: &[Option<f64>]) -> (f64, f64) {
    let seen = || values.iter().flatten().copied();
    (
        seen().fold(f64::INFINITY, f64::min),
        seen().fold(0.0, f64::max),
    )
}

/// A link of `kbps`, `one_way_ms` each way, and a queue that holds `queue_ms` of packets of `size`.
fn slow(kbps: u64, one_way_ms: u64, queue_ms: u64, size: u64) -> Network {
    let queue = kbps * queue_ms / (8 * size);
    fixed(kbps as f64 / 1e3, one_way_ms, queue.max(1), size)
}

fn change(at_s: u64, kbps: u64) -> Change {
    Change {
        at: Time::from_millis(1000 * at_s),
        link: 0,
        rate: Some(Rate::from_bps(1000 * kbps)),
        delay: None,
        loss: None,
    }
}

fn from(start_s: u64) -> FlowSpec {
    FlowSpec {
        start: Time::from_millis(1000 * start_s),
        ..bulk(0, 1)
    }
}

fn reno(start_s: u64) -> FlowSpec {
    FlowSpec {
        scheme: Some("newreno".to_owned()),
        ..from(start_s)
    }
}

fn marking(network: &mut Network, threshold_packets: u64) {
    network.links[0].queue = QueueSpec {
        discipline: Discipline::Step(StepParams { threshold_packets }),
        ..packets(1000)
    };
}

/// Target bitrates on links of a given capacity, with unlimited queues.
#[test]
fn gcc_as_webrtc_tests_it() {
    // `UpdatesTargetRateBasedOnLinkCapacity`.
    let mut network = slow(500, 100, 100_000, 1200);
    network.changes = vec![change(25, 800), change(45, 100)];
    network.changes[1].delay = Some(Duration::from_millis(200));
    let scheme = "gcc:min_bitrate=10kbps:max_bitrate=1500kbps";
    let rates = &series(&network, scheme, 96, 1000)[1].series.pacing_mbps;
    for (at_s, what, target, near) in [
        (25, "target bitrate after 25 s of 0.5 Mbit/s", 0.45, 0.1),
        (
            45,
            "target bitrate after 20 s of 0.8 Mbit/s more",
            0.75,
            0.15,
        ),
        (
            95,
            "target bitrate 50 s after a fall to 0.1 Mbit/s",
            0.09,
            0.025,
        ),
    ] {
        let ours = rates[at_s - 1].expect("a rate");
        let outside = Outside::Difference(target, near);
        check(scheme, what, "Mbit/s", GCC_TESTS, outside, ours).holds();
    }
    // `StableEstimateDoesNotVaryInSteadyState`: drops of 15% or more.
    let rates = &series(&slow(500, 100, 100_000, 1200), "gcc", 50, 1000)[1]
        .series
        .pacing_mbps;
    let (least, most) = extremes(&rates[29..]);
    let what = "least over most target bitrate, 0.5 Mbit/s, 30 s to 50 s";
    let outside = Outside::Between(0.0, 0.85);
    check("gcc", what, "", GCC_TESTS, outside, least / most).holds();
    // `LossBasedControlDoesModestBackoffToHighLoss`: with this loss controller it falls to about 10
    // kbit/s; with the later one it stays above 100.
    let mut network = slow(2000, 200, 100_000, 1200);
    network.links[0].loss = Some(Loss::Random { probability: 0.1 });
    let rates = &series(&network, scheme, 120, 1000)[1].series.pacing_mbps;
    let what = "target bitrate after 120 s of 2 Mbit/s with 10% loss";
    let outside = Outside::Between(0.01, 0.1);
    let ours = rates[119].expect("a rate");
    check(scheme, what, "Mbit/s", GCC_TESTS, outside, ours).holds();
    // `IsFairToTCP` requires only this upper limit.
    let mut network = slow(1000, 50, 100_000, 1200);
    network.flows.push(reno(0));
    let scheme = "gcc:start_bitrate=1Mbps";
    let rates = &series(&network, scheme, 10, 1000)[1].series.pacing_mbps;
    let what = "target bitrate against TCP after 10 s of 1 Mbit/s";
    let outside = Outside::Between(0.0, 0.75);
    let ours = rates[9].expect("a rate");
    check(scheme, what, "Mbit/s", GCC_TESTS, outside, ours).holds();
}

/// Media bitrates, and the smoothed RTT, from the time when it should have adapted, for five
/// seconds. Their version of SCReAM v2 follows the draft too; their packets have 255 bytes.
#[test]
fn scream_as_webrtc_tests_it() {
    let seen = |network: &Network, scheme: &str, from_s: usize, to_s: usize| {
        let all = series(network, scheme, to_s as u64, 10);
        let s = &all[1].series;
        let range = 100 * from_s..100 * to_s;
        (
            extremes(&s.pacing_mbps[range.clone()]),
            extremes(&s.rtt_ms[range]).1,
        )
    };
    let least_of = |least| Outside::Between(least, f64::INFINITY);
    let most_of = |most| Outside::Between(f64::NEG_INFINITY, most);

    // `AdaptsToEcnLinkCapacity1Mbps`. Their test does not say how the link marks; here it marks
    // above 3 packets, 6 ms.
    let mut network = slow(1000, 25, 1000, 255);
    marking(&mut network, 3);
    let scheme = "scream:ecn=l4s";
    let ((least, most), rtt) = seen(&network, scheme, 4, 9);
    let what = "most bitrate, 1 Mbit/s that marks, 50 ms";
    check(scheme, what, "Mbit/s", SCREAM_TESTS, most_of(1.1), most).holds();
    let what = "least bitrate, 1 Mbit/s that marks, 50 ms";
    check(scheme, what, "Mbit/s", SCREAM_TESTS, least_of(0.65), least).misses_because(
        "for a moment after a burst of marks it is 1% lower; how their link marks is not told, and their version \
         weakens reductions where the queue varies, which the draft calls optional",
    );
    let what = "smoothed RTT, 1 Mbit/s that marks, 50 ms";
    check(scheme, what, "ms", SCREAM_TESTS, most_of(75.0), rtt).holds();

    // `AdaptsToLossLinkCapacity5Mbps`.
    let ((least, most), rtt) = seen(&fixed(5.0, 10, 3, 255), "scream", 10, 15);
    let what = "least bitrate, 5 Mbit/s with a queue of 3 packets, 20 ms";
    check("scream", what, "Mbit/s", SCREAM_TESTS, least_of(1.5), least).holds();
    let what = "most bitrate, 5 Mbit/s with a queue of 3 packets, 20 ms";
    check("scream", what, "Mbit/s", SCREAM_TESTS, most_of(5.4), most).holds();
    let what = "smoothed RTT, 5 Mbit/s with a queue of 3 packets, 20 ms";
    check("scream", what, "ms", SCREAM_TESTS, most_of(60.0), rtt).holds();

    // `AdaptsToDelayLinkCapacity2Mbps` and, for the RTT, `...LongRunning`.
    let network = slow(2000, 10, 1000, 255);
    let scheme = "scream:drain=off";
    let ((least, most), _) = seen(&network, scheme, 10, 15);
    let what = "least bitrate, 2 Mbit/s, 20 ms";
    check(scheme, what, "Mbit/s", SCREAM_TESTS, least_of(1.5), least).holds();
    let what = "most bitrate, 2 Mbit/s, 20 ms";
    check(scheme, what, "Mbit/s", SCREAM_TESTS, most_of(2.5), most).holds();
    let what = "smoothed RTT in 300 s, 2 Mbit/s, 20 ms";
    let rtt = seen(&network, scheme, 5, 300).1;
    check(scheme, what, "ms", SCREAM_TESTS, most_of(80.0), rtt).holds();
    let rtt = seen(&network, "scream", 5, 300).1;
    check("scream", what, "ms", SCREAM_TESTS, most_of(80.0), rtt).holds();
}

/// RFC 8867 §5.1: the bitrate follows the capacity and does not oscillate. The test requires 0.7 of
/// the usable capacity in the second half of each phase.
#[test]
fn rmcat_variable_capacity() {
    let mut network = slow(1000, 50, 300, 1200);
    network.changes = vec![change(40, 2500), change(60, 600), change(80, 1000)];
    for name in ["scream", "gcc"] {
        let scheme = format!("{name}:{MEDIA}");
        let all = series(&network, &scheme, 100, 1000);
        let s = &all[1].series;
        for (seconds, usable, what) in [
            (20..40, 1.0, "RFC 8867 5.1, bitrate over 1 Mbit/s"),
            (
                50..60,
                1.5,
                "RFC 8867 5.1, bitrate over the media's 1.5 Mbit/s of 2.5",
            ),
            (70..80, 0.6, "RFC 8867 5.1, bitrate over 0.6 Mbit/s"),
            (90..100, 1.0, "RFC 8867 5.1, bitrate over 1 Mbit/s again"),
        ] {
            let share = mean(s.throughput_mbps[seconds].iter().copied()) / usable;
            // A media bitrate of 1.5 Mbit/s is a little more on the wire.
            let outside = Outside::Between(0.7, 1.02);
            check(name, what, "", "RFC 8867 (our bound)", outside, share).holds();
        }
        let queue = mean(s.queue_mean_ms[20..40].iter().flatten().copied());
        let what = "RFC 8867 5.1, queueing delay at 1 Mbit/s";
        let (source, most) = match name {
            "scream" => ("draft: below QDELAY_TARGET_LO", 60.0),
            _ => ("RFC 8867: far below the queue's 300 ms (our bound)", 60.0),
        };
        check(name, what, "ms", source, Outside::Between(0.0, most), queue).holds();
    }
}

/// RFC 8867 §5.2, §5.4: flows of one kind get equal shares.
#[test]
fn rmcat_flows_of_one_kind_share_equally() {
    for name in ["scream", "gcc"] {
        let scheme = format!("{name}:{MEDIA}");
        let shares = |network: &Network, seconds: u64, from_s: usize| -> f64 {
            let all = series(network, &scheme, seconds, 1000);
            let of = |s: &FlowSeries| mean(s.series.throughput_mbps[from_s..].iter().copied());
            let mbps: Vec<f64> = all[1..].iter().map(of).collect();
            println!("{scheme}: {mbps:.2?} Mbit/s");
            jain_index(&mbps).expect("traffic")
        };
        let mut network = slow(4000, 50, 300, 1200);
        network.changes = vec![
            change(25, 2000),
            change(50, 3500),
            change(75, 1000),
            change(100, 2000),
        ];
        network.flows = vec![from(0), from(0)];
        let what = "RFC 8867 5.2, fairness (Jain) of two flows, the capacity changing";
        let outside = Outside::Between(0.95, 1.0);
        let source = "RFC 8867 (our bound)";
        check(name, what, "", source, outside, shares(&network, 125, 25)).holds();
        let mut network = slow(3500, 50, 300, 1200);
        network.flows = vec![from(0), from(20), from(40)];
        let what = "RFC 8867 5.4, fairness (Jain) of three flows, the last 40 s of 120";
        check(name, what, "", source, outside, shares(&network, 120, 80)).holds();
    }
}

/// RFC 8867 §5.5: five flows of 20 to 300 ms share 4 Mbit/s. The test requires that each has half
/// of its share.
#[test]
fn flows_over_long_round_trips_have_half_of_their_share() {
    let mut network = slow(4000, 0, 300, 1200);
    network.nodes = (0..7).map(|i| i.to_string()).collect();
    let (rate, none) = (RateSpec::Fixed(Rate::from_mbps(4.0)), Duration::ZERO);
    network.links = vec![
        link(5, 6, rate, none, packets(125)),
        link(6, 5, RateSpec::Unlimited, none, QueueSpec::INFINITE),
    ];
    for (i, one_way_ms) in [10, 25, 50, 100, 150].into_iter().enumerate() {
        let one_way = Duration::from_millis(one_way_ms);
        for (a, b) in [(i, 5), (5, i)] {
            let line = link(a, b, RateSpec::Unlimited, one_way, QueueSpec::INFINITE);
            network.links.push(line);
        }
    }
    network.flows = (0..5)
        .map(|i| FlowSpec {
            from: i,
            to: 6,
            ..from(10 * i as u64)
        })
        .collect();
    for name in ["scream", "gcc"] {
        let all = series(&network, &format!("{name}:{MEDIA}"), 300, 1000);
        let of = |s: &FlowSeries| mean(s.series.throughput_mbps[100..].iter().copied());
        let mbps: Vec<f64> = all[1..].iter().map(of).collect();
        println!("{name}, 20 to 300 ms: {mbps:.2?} Mbit/s");
        let least = mbps.iter().copied().fold(f64::INFINITY, f64::min) / 0.8;
        let what = "RFC 8867 5.5, least share of five flows of 20 to 300 ms, over a fair one";
        let outside = Outside::Between(0.5, 1.0);
        let check = check(name, what, "", "RFC 8867 (our bound)", outside, least);
        match name {
            "scream" => check.misses_because(
                "a packet a round trip, as TCP: the draft makes flows alike up to VIRTUAL_RTT, 25 ms, and those \
                 of 20 and 50 ms have most",
            ),
            _ => check.holds(),
        }
    }
}

/// RFC 8867 §5.6: against a long TCP flow neither starves; the test requires a tenth of the link.
/// Carlucci et al. (IEEE/ACM ToN 2017, abstract) say that GCC, with the draft's Kalman filter and
/// gains, is fair to other protocols: half.
#[test]
fn rmcat_against_tcp() {
    let mut network = slow(2000, 50, 300, 1200);
    network.flows = vec![from(5), reno(0)];
    for name in ["scream", "gcc"] {
        let all = series(&network, &format!("{name}:{MEDIA}"), 120, 1000);
        let share =
            |flow: usize| mean(all[flow].series.throughput_mbps[30..].iter().copied()) / 2.0;
        let (ours, tcp) = (share(1), share(2));
        println!("{name}: {ours:.3}, TCP: {tcp:.3}");
        let what = "RFC 8867 5.6, share of 2 Mbit/s against NewReno";
        let outside = Outside::Between(0.1, 0.9);
        check(name, what, "", "RFC 8867 (our bound)", outside, ours).holds();
        if name == "gcc" {
            let outside = Outside::Difference(0.5, 0.15);
            let source = "Carlucci et al., ToN 2017: fair to other protocols";
            check(name, what, "", source, outside, ours).misses_because(
                "the paper's threshold forgets a loud trend in 6 s, WebRTC's in 26 ms, and a comment in WebRTC's test of this case says \
                 that it backs out quite a lot. The paper's gains with WebRTC's trendline instead of the Kalman \
                 filter leave TCP less than a tenth",
            );
        }
    }
}

/// By the draft's rules alone the queue of a single flow stays at half of the target, 30 ms:
/// virtual marks begin there, and a window that grows by a packet a round trip needs few of them.
/// With drains every 180 round trips of 120 ms it is slightly lower on average, and so is the
/// throughput.
#[test]
fn scream_keeps_half_of_its_target() {
    for (one_way_ms, what_used, what_queue) in [
        (
            10,
            "12 Mbit/s, 20 ms: utilisation",
            "12 Mbit/s, 20 ms: mean queue",
        ),
        (
            60,
            "12 Mbit/s, 120 ms: utilisation",
            "12 Mbit/s, 120 ms: mean queue",
        ),
    ] {
        let network = fixed(12.0, one_way_ms, 240, 1500);
        let ours = sawtooth::run(&network, "scream", 100, 400);
        println!("scream, {one_way_ms} ms each way: {ours:?}");
        let source = "rules of the draft";
        let full = Outside::Between(0.97, 1.0);
        check("scream", what_used, "", source, full, ours.utilisation).holds();
        let half = Outside::Between(20.0, 35.0);
        check("scream", what_queue, "ms", source, half, ours.mean_queue_ms).holds();
        assert!(ours.p95_queue_ms < 60.0 && ours.loss == 0.0, "{ours:?}");
    }
}

/// A path that becomes 120 ms longer, 60 each way, looks like a queue as long as the target. The
/// draft drains once the average of each round trip's minimum delay is a quarter of that: 256
/// ln(4/3) = 74 round trips of 160 ms at most, 12 s. Without the drain, the minimum delay of ten
/// minutes would hold.
#[test]
fn scream_finds_out_that_a_path_is_longer() {
    for (scheme, mbps) in [("scream", 10.0..12.1), ("scream:drain=off", 0.0..0.5)] {
        let mut network = fixed(12.0, 20, 100, 1500);
        network.changes = vec![Change {
            delay: Some(Duration::from_millis(80)),
            rate: None,
            ..change(8, 0)
        }];
        let seen = &series(&network, scheme, 60, 1000)[1].series.throughput_mbps;
        println!("{scheme}: {seen:.1?}");
        assert!(mean(seen[10..19].iter().copied()) < 0.5, "{seen:?}");
        let late = mean(seen[40..].iter().copied());
        assert!(mbps.contains(&late), "{scheme}: {late}");
    }
}

/// A minute and a half at 0.05 Mbit/s leaves a queue of 72 s. The draft drains it for five round
/// trips, which are as short as the queue when the link is back at 12 Mbit/s.
#[test]
fn screams_drain_ends_with_its_queue() {
    let mut network = fixed(12.0, 20, 300, 1500);
    network.changes = vec![change(10, 50), change(110, 12_000)];
    let seen = &series(&network, "scream", 200, 1000)[1]
        .series
        .throughput_mbps;
    println!("{:.1?}", &seen[105..]);
    let after = mean(seen[150..].iter().copied());
    assert!(after > 0.9 * 12.0, "{after}");
}

/// A queue that marks keeps an L4S flow at its threshold. On 120 ms the flow answers a burst of
/// marks for a round trip too long, and a quarter of the link is unused: the draft is made for 25
/// ms.
#[test]
fn scream_reacts_to_marks() {
    for (threshold, what_used, what_queue) in [
        (
            10,
            "12 Mbit/s, 20 ms, marked above 10 packets: utilisation",
            "12 Mbit/s, 20 ms, marked above 10 packets: p95 of the queue",
        ),
        (
            20,
            "12 Mbit/s, 20 ms, marked above 20 packets: utilisation",
            "12 Mbit/s, 20 ms, marked above 20 packets: p95 of the queue",
        ),
    ] {
        let mut network = fixed(12.0, 10, 240, 1500);
        marking(&mut network, threshold);
        let scheme = "scream:ecn=l4s";
        let ours = sawtooth::run(&network, scheme, 100, 200);
        println!("{scheme}, marked above {threshold}: {ours:?}");
        let source = "the threshold";
        let full = Outside::Between(0.95, 1.0);
        check(scheme, what_used, "", source, full, ours.utilisation).holds();
        // A packet takes a millisecond.
        let near = Outside::Percent(threshold as f64, 20.0);
        check(scheme, what_queue, "ms", source, near, ours.p95_queue_ms).holds();
    }
    let mut network = fixed(12.0, 60, 240, 1500);
    marking(&mut network, 20);
    let ours = sawtooth::run(&network, "scream:ecn=l4s", 100, 200);
    println!("scream:ecn=l4s, 120 ms: {ours:?}");
    assert!((0.65..0.95).contains(&ours.utilisation), "{ours:?}");
}

/// How GCC's rules work on 12 Mbit/s. The trend is noticed from 6 ms on, the threshold's minimum:
/// 60 x 4 x slope, so an excess of 1/40, 0.3 Mbit/s, is not noticed. Near capacity the bitrate
/// grows by a packet of 9,600 bits in two times the RTT, including 50 ms of waiting for the report,
/// and 100 ms: 28 kbit/s each second at 20 ms, and less with a queue. It takes at least 11 s until
/// the growth is noticed, and by then 140 ms and more are queued; with a backoff to 0.85 the link
/// is used to 0.92 and more. On 120 ms the bitrate grows so slowly that 240 ms are full before.
/// Then the delay stops growing, and 2% of loss is no reason to back off either.
#[test]
fn gcc_notices_slow_growth_late() {
    let network = fixed(12.0, 10, 480, 1500);
    let queue = &series(&network, "gcc", 400, 500)[1].series.queue_mean_ms;
    let (_, most) = extremes(queue);
    let source = "rules of WebRTC's code";
    let what = "12 Mbit/s, 20 ms: most queue before it backs off";
    check(
        "gcc",
        what,
        "ms",
        source,
        Outside::Between(150.0, 250.0),
        most,
    )
    .holds();
    let ours = sawtooth::run(&network, "gcc", 100, 400);
    println!("gcc, 20 ms: {ours:?}");
    let what = "12 Mbit/s, 20 ms: utilisation, between 0.85 and 1";
    let outside = Outside::Between(0.9, 0.97);
    check("gcc", what, "", source, outside, ours.utilisation).holds();
    let ours = sawtooth::run(&fixed(12.0, 60, 240, 1500), "gcc", 200, 400);
    println!("gcc, 120 ms: {ours:?}");
    let what = "12 Mbit/s, 120 ms, 240 packets: mean queue";
    check(
        "gcc",
        what,
        "ms",
        source,
        Outside::Between(200.0, 241.0),
        ours.mean_queue_ms,
    )
    .holds();
    let what = "12 Mbit/s, 120 ms, 240 packets: loss";
    check(
        "gcc",
        what,
        "",
        source,
        Outside::Between(0.015, 0.1),
        ours.loss,
    )
    .holds();
}
