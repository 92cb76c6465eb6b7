//! The draft's "BBR Example Test Cases", with one flow over one drop-tail link.

use super::*;
use crate::Ecn;
use crate::testing::{Host, Link};

/// A link of 12 Mbit/s and 120 ms, a packet a millisecond, with a queue of `buffer` packets.
fn link(buffer: u64) -> Link {
    Link::new(&select("bbr3"), MBPS_12, MS * 120, buffer)
}

fn reading(link: &Link, name: &str) -> f64 {
    link.host
        .reading(name)
        .unwrap_or_else(|| panic!("{name} is not reported"))
}

fn is_in(link: &Link, state: State) -> bool {
    reading(link, "state") == f64::from(state as u8)
}

/// Runs until `state`, and returns how long it took.
fn until(link: &mut Link, state: State) -> f64 {
    let from = link.host.now();
    while !is_in(link, state) {
        link.run(MS);
        assert!(
            link.host.now().since(from) < Duration::from_secs(60),
            "never {state:?}"
        );
    }
    link.host.now().since(from).as_secs_f64()
}

/// The time that the flow stays in `state`.
fn lasts(link: &mut Link, state: State) -> f64 {
    let from = link.host.now();
    while is_in(link, state) {
        link.run(MS);
    }
    link.host.now().since(from).as_secs_f64()
}

/// "Exiting STARTUP on Bandwidth Plateau" and "Exiting DRAIN Based on Inflight".
#[test]
fn startup_finds_the_bandwidth_and_drain_empties_the_queue() {
    let mut link = link(240);
    let startup = until(&mut link, State::Drain);
    // The pipe is full after log2(120 / 10) = 3.6 rounds, and three more show it.
    assert!((0.8..1.5).contains(&startup), "{startup} s");
    let max_bw = reading(&link, "max_bw_mbps");
    assert!((max_bw / 12.0 - 1.0).abs() < 0.02, "{max_bw} Mbit/s");
    // §5.3.1.1: the window of 2 BDP bounds the queue to one.
    assert!(link.queue() <= 1.1 * 121.0, "{} packets", link.queue());
    assert_eq!(reading(&link, "pacing_gain"), 0.5);
    let drain = lasts(&mut link, State::Drain);
    assert!(drain < 3.5 * 0.12 && link.queue() < 10.0, "{drain} s");
}

/// "Exiting PROBE_UP on Bandwidth Plateau" and "Exiting PROBE_DOWN on Inflight".
#[test]
fn probing_up_lasts_three_rounds_and_down_drains() {
    let mut link = link(1000);
    until(&mut link, State::ProbeBwUp);
    assert_eq!(reading(&link, "pacing_gain"), 1.25);
    let up = until(&mut link, State::ProbeBwDown);
    // Up lasts three rounds, each longer by the queue that the last has built.
    assert!((3.0 * 0.12..6.0 * 0.12).contains(&up), "{up} s");
    let queue = link.queue();
    assert!((30.0..120.0).contains(&queue), "{queue} packets");
    until(&mut link, State::ProbeBwCruise);
    assert!(link.queue() < 10.0, "{} packets", link.queue());
}

/// "Exiting PROBE_DOWN After Max Time": REFILL follows although inflight never falls.
#[test]
fn down_ends_by_the_clock() {
    let spec = "bbr3:probe_rtt_interval=60s";
    let mut link = Link::new(&select(spec), MBPS_12, MS * 120, 1000);
    until(&mut link, State::ProbeBwUp);
    until(&mut link, State::ProbeBwDown);
    link.rate = link.rate.mul_f64(0.8);
    let mut states = Vec::new();
    let from = link.host.now();
    while !is_in(&link, State::ProbeBwRefill) {
        states.push(reading(&link, "state"));
        link.run(MS);
    }
    let down = link.host.now().since(from).as_secs_f64();
    assert!((2.0..3.1).contains(&down), "{down} s");
    let is_down = |state: &f64| *state == f64::from(State::ProbeBwDown as u8);
    assert!(states.iter().all(is_down), "never CRUISE");
}

/// The application writes a packet every 4 ms for four seconds, a quarter of the link's rate, over
/// a path of 120 ms that loses the packets that `loses` chooses.
fn limited(loses: impl Fn(u64) -> bool) -> Vec<f64> {
    let mut host = Host::new(select("bbr3").build(&setup()), MSS);
    host.app_limited = true;
    let mut states = Vec::new();
    for _ in 0..1000 {
        host.send();
        host.wait_until(host.now() + MS * 4);
        let arrived = host.flight().next().filter(|_| host.flight().count() >= 30);
        let lost: Vec<u64> = host.flight().take(30).take_while(|&n| loses(n)).collect();
        if let Some(number) = arrived {
            let acked = number + lost.len() as u64;
            host.feedback(&[acked], &lost, Ecn::NotEct, |f| {
                // Losses continue in every round, but this host would count the first of them as
                // repaired.
                if f.counters.lost > Bytes::ZERO {
                    f.recovery = Recovery::Recovery;
                }
            });
        }
        states.push(host.reading("state").expect("a state"));
    }
    states.dedup();
    states
}

/// "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss".
#[test]
fn startup_continues_while_application_limited() {
    assert_eq!(limited(|_| false), [f64::from(State::Startup as u8)]);
}

/// "Exiting STARTUP on Loss When Application-Limited".
#[test]
fn losses_end_startup_of_an_application_limited_flow() {
    let states = limited(|n| n > 300 && n % 4 == 0);
    // Drain has nothing to drain.
    let first = [State::Startup, State::ProbeBwDown].map(|s| f64::from(s as u8));
    assert_eq!(states[..2], first, "{states:?}");
}

/// When ProbeRTT was entered within `seconds`, and how long it took each time. The RTT rises
/// slowly, so that no sample refreshes the minimum.
fn probe_rtts(link: &mut Link, seconds: u32) -> (Vec<f64>, Vec<f64>) {
    let (mut entries, mut lasted, mut was) = (Vec::new(), Vec::new(), false);
    for _ in 0..seconds * 1000 {
        link.rtt += Duration::from_micros(1);
        link.run(MS);
        let is = is_in(link, State::ProbeRtt);
        if is && !was {
            entries.push(link.host.now().as_secs_f64());
            lasted.push(0.0);
        }
        if is {
            *lasted.last_mut().expect("an entry") += 0.001;
            let half = 0.5 * reading(link, "bw_mbps") * reading(link, "min_rtt_ms") / 12.0;
            let cwnd = link.host.cc.control().cwnd.as_f64() / 1500.0;
            assert!(cwnd <= half + 0.01, "{cwnd} of {half}");
        }
        was = is;
    }
    (entries, lasted)
}

/// "Entering and Exiting PROBE_RTT": every 5 s, half a BDP, 200 ms and a round.
#[test]
fn probe_rtt_comes_every_five_seconds() {
    let (entries, lasted) = probe_rtts(&mut link(240), 60);
    assert!((10..=11).contains(&entries.len()), "{entries:?}");
    for pair in entries.windows(2) {
        assert!((5.0..6.0).contains(&(pair[1] - pair[0])), "{entries:?}");
    }
    // Half a BDP leaves in half a round trip. 200 ms later the round is long over.
    for seconds in &lasted[..lasted.len() - 1] {
        assert!((0.2..0.5).contains(seconds), "{lasted:?}");
    }
}

/// "Skipping PROBE_RTT Due to Application-Limited Sending".
#[test]
fn an_idle_period_replaces_probe_rtt() {
    let mut link = link(240);
    until(&mut link, State::ProbeBwCruise);
    link.host.app_limited = true;
    link.run(Duration::from_secs(8));
    assert_eq!(link.host.in_flight(), Bytes::ZERO);
    // The first packet after the pause is sent while the flow still counts as limited.
    link.host.send();
    link.host.app_limited = false;
    link.run(Duration::from_secs(1));
    assert!(!is_in(&link, State::ProbeRtt));
}

/// "Entering and Exiting PROBE_RTT During STARTUP": Startup goes on afterwards.
#[test]
fn probe_rtt_during_startup_returns_to_startup() {
    let mut bbr = in_state(State::Startup);
    bbr.c.now = Time::from_millis(6_000);
    bbr.update_min_rtt(Some(RTT + MS));
    bbr.check_probe_rtt();
    assert_eq!(bbr.state, State::ProbeRtt);
    bbr.probe_rtt_done_stamp = Some(Time::from_millis(6_200));
    bbr.c.now = Time::from_millis(6_201);
    bbr.check_probe_rtt_done();
    assert_eq!(bbr.state, State::Startup);
}

/// A path of 12 Mbit/s and 40 ms whose acknowledgements come 20 at a time, every 20 ms. Returns the
/// window of `spec` in BDP and the used share of the link, after `seconds`.
fn aggregated(spec: &str, seconds: u64) -> (f64, f64) {
    let mut host = Host::new(select(spec).build(&setup()), MSS);
    let (mut sent, mut free, mut departure) = (Vec::new(), Time::ZERO, Time::ZERO);
    let mut cwnd = 0.0_f64;
    for ms in 0..seconds * 1000 {
        while host.may_send() && departure <= host.now() {
            let rate = host.cc.control().pacing_rate.expect("paced");
            // The loop is at most a millisecond late.
            departure = departure.max(host.now().saturating_sub(MS)) + rate.time_to_send(MSS);
            free = free.max(host.now()) + MS;
            sent.push((free + MS * 40, host.send()));
        }
        host.wait_until(Time::from_millis(ms + 1));
        if ms % 20 == 0 {
            let arrived = sent.partition_point(|(at, _)| *at <= host.now());
            let numbers: Vec<u64> = sent.drain(..arrived).map(|(_, n)| n).collect();
            host.feedback(&numbers, &[], Ecn::NotEct, |_| {});
            cwnd = cwnd.max(host.cc.control().cwnd.as_f64() / 1500.0 / 40.0);
        }
    }
    let delivered = host.counters().delivered.get() / 1500;
    (cwnd, delivered as f64 / (seconds * 1000) as f64)
}

/// "Achieving Expected STARTUP (and Cruise) Bandwidth on a Link With Aggregation".
#[test]
fn aggregation_does_not_stall_the_flow() {
    let (cwnd, _) = aggregated("bbr3", 1);
    assert!(cwnd > 2.0, "{cwnd} BDP");
    let (_, used) = aggregated("bbr3", 30);
    assert!(used > 0.94, "{used}");
}

/// "Handling Token Bucket Policers", as on Pantheon: the queue holds a packet or two.
#[test]
fn a_queue_of_two_packets_does_not_cause_heavy_loss() {
    let mut link = Link::new(&select("bbr3"), MBPS_12, MS * 40, 2);
    link.run(Duration::from_secs(10));
    let before = link.host.counters();
    let used = link.utilisation(Duration::from_secs(30));
    let after = link.host.counters();
    let lost = (after.lost - before.lost).as_f64() / (after.sent - before.sent).as_f64();
    println!("two packets: {used:.3} used, {lost:.4} lost");
    assert!(used > 0.8 && lost < 0.03, "{used} used, {lost} lost");
}

/// "Correctly Managing Sub-Packet BDPs": 64 kbit/s and 2 ms.
#[test]
fn a_bdp_below_a_packet_keeps_the_pipe_full() {
    let mut link = Link::new(&select("bbr3"), Rate::from_bps(64_000), MS * 2, 10);
    link.run(Duration::from_secs(30));
    let used = link.utilisation(Duration::from_secs(60));
    assert!(used > 0.95, "{used}");
    assert!(link.host.cc.control().cwnd >= packets(4));
    let mbps = reading(&link, "max_bw_mbps");
    assert!((mbps / 0.064 - 1.0).abs() < 0.02, "{mbps}");
}

/// "Increasing Bandwidth 10x": one or two probes find it, each of which doubles its step.
#[test]
fn a_tenfold_bandwidth_is_found() {
    let mut link = Link::new(&select("bbr3"), Rate::from_mbps(10.0), MS * 40, 1000);
    link.run(Duration::from_secs(10));
    link.rate = Rate::from_mbps(100.0);
    let from = link.host.now();
    while reading(&link, "max_bw_mbps") < 98.0 {
        link.run(MS);
    }
    let took = link.host.now().since(from).as_secs_f64();
    // Up to 3 s until the probe; 1.25 a round thereafter is 11 rounds for ten times.
    assert!(took < 8.0, "{took} s");
    println!("ten times the bandwidth after {took} s");
}

/// "Decreasing Bandwidth 10x": the short-term bound follows within rounds, max_bw within two
/// cycles.
#[test]
fn a_tenth_of_the_bandwidth_lowers_the_estimate() {
    let mut link = Link::new(&select("bbr3"), Rate::from_mbps(100.0), MS * 40, 300);
    link.run(Duration::from_secs(10));
    assert!((reading(&link, "bw_mbps") / 100.0 - 1.0).abs() < 0.02);
    link.rate = Rate::from_mbps(10.0);
    let from = link.host.now();
    let since = |link: &Link| link.host.now().since(from).as_secs_f64();
    while reading(&link, "bw_mbps") > 50.0 {
        link.run(MS);
    }
    let shortterm = since(&link);
    while reading(&link, "max_bw_mbps") > 10.5 {
        link.run(MS);
    }
    let max_bw = since(&link);
    println!("half of it after {shortterm} s, a tenth after {max_bw} s");
    assert!(
        shortterm < 4.0 && max_bw < 20.0,
        "{shortterm} s, {max_bw} s"
    );
    link.run(Duration::from_secs(10));
    let used = link.utilisation(Duration::from_secs(10));
    assert!(used > 0.95, "{used}");
}

/// "run with a variety of RTTs (e.g., < 1 ms to 1 s) and bandwidths": the estimate is within 2%,
/// and the link is used.
#[test]
fn utilisation_is_high_from_64_kbit_to_10_gbit_and_half_a_ms_to_1_s() {
    let us = Duration::from_micros;
    for (bps, rtt, seconds) in [
        (64_000, us(500), 20),
        (64_000, us(1_000_000), 60),
        (1_000_000, us(500), 20),
        (1_000_000, us(1_000_000), 60),
        (100_000_000, us(500), 10),
        (100_000_000, us(1_000_000), 30),
        (10_000_000_000, us(500), 1),
        (10_000_000_000, us(10_000), 1),
    ] {
        let rate = Rate::from_bps(bps);
        let bdp = rate.bytes_in(rtt).get() / MSS.get();
        let mut link = Link::new(&select("bbr3"), rate, rtt, 2 * bdp + 20);
        link.run(Duration::from_millis(500 * seconds));
        let used = link.utilisation(Duration::from_millis(500 * seconds));
        let found = reading(&link, "max_bw_mbps") * 1e6 / bps as f64;
        println!("{bps} bit/s, {rtt:?}: used {used:.3}, max_bw {found:.3}");
        assert!((found - 1.0).abs() < 0.02, "{bps}, {rtt:?}: {found}");
        // In ProbeRTT nothing leaves until the flight is half a BDP, for half a round trip; then
        // half of the rate for a round trip. At an RTT of one second that is one of six and a half.
        let least = if rtt > MS * 100 { 0.82 } else { 0.95 };
        assert!(used > least, "{bps}, {rtt:?}: {used}");
    }
}
