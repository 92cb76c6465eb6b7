//! Links, compared with a plain model of each and with one another.

use std::sync::Arc;

use headway_cc::{Bytes, Duration, Ecn, Header, Rate, Stream, Time};
use headway_net::queue::{DropTail, Limits};
use headway_net::trace::Trace;
use headway_net::{
    Body, Jitter, Link, LinkEvent, LinkEventKind, Loss, LossProcess, Packet, Reorder, Segment,
    Server, TraceCursor,
};
use proptest::prelude::*;

fn packet(number: u64, size: u16) -> Packet {
    Packet {
        flow: 0,
        size,
        hops_left: 0,
        ecn: Ecn::NotEct,
        arrived: Time::ZERO,
        body: Body::Data(Segment {
            number,
            seq: number,
            sent: Time::ZERO,
            queued: Duration::ZERO,
            header: Header::default(),
        }),
    }
}

fn segment(packet: &Packet) -> Segment {
    match packet.body {
        Body::Data(segment) => segment,
        _ => panic!("only data was sent"),
    }
}

/// Something that happens to a link.
#[derive(Clone, Debug)]
enum Step {
    Arrive { after_us: u64, size: u16 },
    SetRate { kbps: u64 },
    SetDelay { ms: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..3_000u64, 40..1500u16).prop_map(|(after_us, size)| Step::Arrive { after_us, size }),
        1 => (100..20_000u64).prop_map(|kbps| Step::SetRate { kbps }),
        1 => (0..40u64).prop_map(|ms| Step::SetDelay { ms }),
    ];
    prop::collection::vec(step, 1..200)
}

/// The deliveries: (delivery time, number, queued).
fn run(link: &mut Link, steps: &[Step]) -> Vec<(Time, u64, Duration)> {
    let mut now = Time::ZERO;
    let mut out = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if let Step::Arrive { after_us, .. } = step {
            let next = now + Duration::from_micros(*after_us);
            drain(link, next, &mut out);
            now = next;
        }
        match *step {
            Step::Arrive { size, .. } => {
                link.arrive(now, &packet(number as u64, size));
            }
            Step::SetRate { kbps } => link.set_rate(now, Rate::from_bps(kbps * 1000)),
            Step::SetDelay { ms } => link.set_delay(now, Duration::from_millis(ms)),
        }
    }
    drain(link, now + Duration::from_secs(3600), &mut out);
    out
}

fn drain(link: &mut Link, until: Time, out: &mut Vec<(Time, u64, Duration)>) {
    while link.next_delivery() <= until {
        let now = link.next_delivery();
        if let Some(p) = link.deliver(now) {
            out.push((now, segment(&p).number, segment(&p).queued));
        }
    }
}

proptest! {
    /// The computed FIFO does the same as the simulated one, with any changes of rate and delay.
    #[test]
    fn computed_fifo_agrees_with_the_simulated_one(steps in steps(), packets in 0..12u64, bytes in 1000..20_000u64) {
        for limits in [
            Limits::new(Some(packets), None),
            Limits::new(None, Some(Bytes::new(bytes))),
            Limits::NONE,
        ] {
            let (rate, delay) = (Rate::from_mbps(5.0), Duration::from_millis(7));
            let mut computed = Link::fifo(rate, limits, delay);
            let mut simulated = Link::queued(Box::new(DropTail::new(limits)), Server::fixed(rate), delay);
            let mut observed = Link::fifo(rate, limits, delay).observed();
            let (a, b) = (run(&mut computed, &steps), run(&mut simulated, &steps));
            prop_assert_eq!(&a, &b);
            prop_assert_eq!(&a, &run(&mut observed, &steps));
            let end = Time::ZERO + Duration::from_secs(7200);
            prop_assert_eq!(computed.counters(end), simulated.counters(end));
            prop_assert_eq!(computed.offered_until(end), simulated.offered_until(end));
        }
    }

    /// Computed counters are equal to those of an observed link, which counts one by one, at any
    /// time.
    #[test]
    fn computed_counters_are_exact(steps in steps(), gaps in prop::collection::vec(0..20u32, 2..40)) {
        let trace = trace_of(&gaps);
        let delay = Duration::from_millis(7);
        let limits = Limits::new(Some(5), None);
        let by_trace = || {
            let server = Server::trace(Arc::clone(&trace), Duration::from_millis(3), false);
            Link::queued(Box::new(DropTail::new(limits)), server, delay)
        };
        let by_rate = || Link::fifo(Rate::from_mbps(5.0), limits, delay);
        for link in [&by_trace as &dyn Fn() -> Link, &by_rate, &|| Link::wire(delay)] {
            let (mut plain, mut observed) = (link(), link().observed());
            let (mut now, mut events, mut out) = (Time::ZERO, Vec::new(), (Vec::new(), Vec::new()));
            let mut delivered_bytes = 0;
            for (number, step) in steps.iter().enumerate() {
                let size = match *step {
                    Step::Arrive { after_us, size } => {
                        now += Duration::from_micros(after_us);
                        size
                    }
                    // Now and then there is a change, and a packet right after it.
                    Step::SetRate { kbps } => {
                        plain.set_rate(now, Rate::from_bps(kbps * 1000));
                        observed.set_rate(now, Rate::from_bps(kbps * 1000));
                        700
                    }
                    Step::SetDelay { ms } => {
                        plain.set_delay(now, Duration::from_millis(ms));
                        observed.set_delay(now, Duration::from_millis(ms));
                        900
                    }
                };
                let before = out.1.len();
                drain(&mut plain, now, &mut out.0);
                drain(&mut observed, now, &mut out.1);
                let arrived = |number: u64| sizes(&events)[number as usize];
                delivered_bytes += out.1[before..].iter().map(|d| arrived(d.1)).sum::<u64>();
                plain.arrive(now, &packet(number as u64, size));
                observed.arrive(now, &packet(number as u64, size));
                events.extend(observed.take_events(now));
                let counters = plain.counters(now);
                prop_assert_eq!(counters, observed.counters(now));
                let departed = events.iter().filter(|e| matches!(e.what, LinkEventKind::Departure { .. }));
                prop_assert_eq!(counters.served_packets, departed.count() as u64);
                prop_assert_eq!(counters.arrived_packets, number as u64 + 1);
                prop_assert_eq!(counters.delivered_packets, out.0.len() as u64);
                prop_assert_eq!(counters.delivered_bytes, delivered_bytes);
            }
            prop_assert_eq!(out.0, out.1);
        }
    }

    /// Packets are not overtaken, only dropped packets are lost, and the queue never exceeds its
    /// limit.
    #[test]
    fn fifo_keeps_order_and_limit(steps in steps(), packets in 0..12u64) {
        let mut link = Link::fifo(Rate::from_mbps(5.0), Limits::new(Some(packets), None), Duration::from_millis(7));
        let out = run(&mut link, &steps);
        prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
        let counters = link.counters(Time::NEVER);
        prop_assert_eq!(out.len() as u64 + counters.dropped_packets, counters.arrived_packets);
    }

    /// Every byte that a trace link serves fits into the opportunities between the packet's arrival
    /// and its departure (mahimahi: 1504 bytes each, idle ones are lost).
    #[test]
    fn trace_link_agrees_with_a_walk_over_opportunities(
        gaps in prop::collection::vec(0..40u32, 2..40),
        arrivals in prop::collection::vec((0..30_000u64, 40..1500u16), 1..80),
    ) {
        let trace = trace_of(&gaps);
        let server = Server::trace(Arc::clone(&trace), Duration::ZERO, false);
        let mut link = Link::queued(Box::new(DropTail::new(Limits::NONE)), server, Duration::from_millis(20));
        let steps: Vec<Step> =
            arrivals.iter().map(|&(after_us, size)| Step::Arrive { after_us, size }).collect();
        let out = run(&mut link, &steps);
        prop_assert_eq!(out, walk(&trace, &arrivals));
    }
}

/// A trace with an opportunity after each of the gaps, in ms, and a last one a millisecond later.
fn trace_of(gaps: &[u32]) -> Arc<Trace> {
    let mut at = 0;
    let mut text = String::new();
    for gap in gaps.iter().chain([&1]) {
        at += gap;
        text += &format!("{at}\n");
    }
    Arc::new(Trace::parse(&text).unwrap())
}

/// The sizes of the packets that have arrived, by number.
fn sizes(events: &[LinkEvent]) -> Vec<u64> {
    let arrival = |e: &LinkEvent| match e.what {
        LinkEventKind::Arrival(packet) => Some(u64::from(packet.size)),
        _ => None,
    };
    events.iter().filter_map(arrival).collect()
}

/// A plain version of mahimahi's `link_queue.cc`: at each opportunity, in order, send what fits.
fn walk(trace: &Trace, arrivals: &[(u64, u16)]) -> Vec<(Time, u64, Duration)> {
    let mut now = Time::ZERO;
    let mut waiting: std::collections::VecDeque<(Time, u64, u32)> = arrivals
        .iter()
        .enumerate()
        .map(|(i, &(us, size))| {
            now += Duration::from_micros(us);
            (now, i as u64, u32::from(size) + 4)
        })
        .collect();
    let mut out = Vec::new();
    'passes: for pass in 0.. {
        for &ms in trace.opportunities() {
            let at = Time::ZERO + trace.period() * pass + Duration::from_millis(u64::from(ms));
            let mut budget = 1504;
            // An arrival at this very moment comes too late.
            while let Some((arrived, number, left)) = waiting.front_mut().filter(|w| w.0 < at) {
                let used = budget.min(*left);
                budget -= used;
                *left -= used;
                if *left > 0 {
                    break;
                }
                out.push((at + Duration::from_millis(20), *number, at.since(*arrived)));
                waiting.pop_front();
                if waiting.is_empty() {
                    break 'passes;
                }
            }
        }
    }
    out
}

#[test]
fn random_loss_has_its_probability() {
    let mut link = Link::wire(Duration::from_millis(1));
    let stream = Stream::new(5, "loss");
    let loss = Loss::Random { probability: 0.01 };
    link.set_loss(Some(LossProcess::new(loss, stream)));
    for i in 0..200_000 {
        link.arrive(Time::ZERO, &packet(i, 1500));
    }
    let lost = link.counters(Time::ZERO).lost_packets as f64 / 200_000.0;
    // The margin is four standard deviations of a binomial.
    assert!(
        (lost - 0.01).abs() < 4.0 * (0.01f64 * 0.99 / 200_000.0).sqrt(),
        "{lost}"
    );
}

#[test]
fn a_change_of_rate_moves_a_waiting_packet() {
    // 1 Mbit/s: 1250 bytes take 10 ms. Two packets; after 5 ms the rate doubles.
    let mut link = Link::fifo(Rate::from_mbps(1.0), Limits::NONE, Duration::ZERO);
    link.arrive(Time::ZERO, &packet(0, 1250));
    link.arrive(Time::ZERO, &packet(1, 1250));
    link.set_rate(Time::from_millis(5), Rate::from_mbps(2.0));
    let mut out = Vec::new();
    drain(&mut link, Time::from_millis(100), &mut out);
    let ms = Duration::from_micros;
    assert_eq!(
        out,
        [
            (Time::from_nanos(7_500_000), 0, ms(7_500)),
            (Time::from_nanos(12_500_000), 1, ms(12_500))
        ]
    );
}

#[test]
fn mahimahis_byte_limit_counts_its_header() {
    // Two packets of 1496 bytes and their headers make 3000; one byte less holds only one.
    for (limit, held) in [(3000, 2), (2999, 1)] {
        let limits = Limits::new(None, Some(Bytes::new(limit)));
        let trace = Arc::new(Trace::parse("50\n").unwrap());
        let server = Server::trace(trace, Duration::ZERO, false);
        let mut link = Link::queued(
            Box::new(DropTail::new(limits).with_overhead(TraceCursor::OVERHEAD)),
            server,
            Duration::ZERO,
        );
        for i in 0..3 {
            link.arrive(Time::ZERO, &packet(i, 1496));
        }
        assert_eq!(link.backlog(Time::ZERO), held);
    }
}

/// The numbers of the packets that pass a wire with this loss.
fn survivors(loss: Loss, packets: u64) -> Vec<u64> {
    let mut link = Link::wire(Duration::from_millis(1));
    link.set_loss(Some(LossProcess::new(loss, Stream::new(5, "loss"))));
    for i in 0..packets {
        link.arrive(Time::ZERO, &packet(i, 1500));
    }
    let mut out = Vec::new();
    drain(&mut link, Time::from_millis(1), &mut out);
    assert_eq!(
        link.counters(Time::from_millis(1)).lost_packets,
        packets - out.len() as u64
    );
    out.iter().map(|d| d.1).collect()
}

/// Elliott 1963: a link is bad for 1/r packets in a row, and sends a share r/(p+r) of all packets
/// while it is good.
#[test]
fn gilbert_elliott_loses_in_bursts() {
    let packets = 400_000;
    let (to_bad, to_good) = (0.01, 0.25);
    let loss = |loss_good, loss_bad| Loss::GilbertElliott {
        to_bad,
        to_good,
        loss_good,
        loss_bad,
    };
    let through = survivors(loss(0.0, 1.0), packets);
    let lost = packets as f64 - through.len() as f64;
    let bursts = through.windows(2).filter(|w| w[1] > w[0] + 1).count() as f64;
    let bad = to_bad / (to_bad + to_good);
    // Bursts are independent: four standard deviations of their number are 6%.
    assert!((lost / packets as f64 / bad - 1.0).abs() < 0.06, "{lost}");
    assert!((lost / bursts * to_good - 1.0).abs() < 0.06, "{bursts}");

    let through = survivors(loss(0.02, 0.5), packets);
    let share = 1.0 - through.len() as f64 / packets as f64;
    let expected = (1.0 - bad) * 0.02 + bad * 0.5;
    assert!((share / expected - 1.0).abs() < 0.06, "{share}");
}

/// Sends a packet every `gap_us` over a wire of 20 ms. Returns (delay in ms, number), by arrival.
fn delays(link: Link, gap_us: u64, packets: u64) -> Vec<(f64, u64)> {
    let mut link = link;
    let mut out = Vec::new();
    for i in 0..packets {
        let now = Time::from_nanos(i * gap_us * 1000);
        drain(&mut link, now, &mut out);
        link.arrive(now, &packet(i, 1500));
    }
    drain(&mut link, Time::from_millis(3_600_000), &mut out);
    let sent = |number| Time::from_nanos(number * gap_us * 1000);
    out.iter()
        .map(|&(at, number, queued)| {
            assert_eq!(queued, Duration::ZERO);
            (at.since(sent(number)).as_millis_f64(), number)
        })
        .collect()
}

#[test]
fn jitter_delays_and_keeps_the_order() {
    let most = Duration::from_millis(10);
    let wire = |jitter| {
        let delay = Duration::from_millis(20);
        Link::wire(delay).with_jitter(jitter, Stream::new(1, "jitter"))
    };
    let mean = |seen: &[(f64, u64)]| seen.iter().map(|d| d.0).sum::<f64>() / seen.len() as f64;
    // Packets are so rare that none could overtake another.
    let seen = delays(wire(Jitter::Uniform { most }), 10_000, 20_000);
    assert!(seen.iter().all(|d| (20.0..=30.0).contains(&d.0)));
    assert!((mean(&seen) - 25.0).abs() < 0.1, "{}", mean(&seen));
    let seen = delays(wire(Jitter::Exponential { mean: most }), 500_000, 20_000);
    assert!((mean(&seen) - 30.0).abs() < 0.3, "{}", mean(&seen));
    // Packets are close together: all arrive, and none is overtaken.
    let seen = delays(wire(Jitter::Exponential { mean: most }), 100, 5_000);
    assert!(seen.iter().map(|d| d.1).eq(0..5_000));
}

#[test]
fn reordering_lets_later_packets_overtake() {
    let reorder = Reorder {
        probability: 0.1,
        delay: Duration::from_millis(5),
    };
    let link =
        Link::wire(Duration::from_millis(20)).with_reorder(reorder, Stream::new(1, "reorder"));
    let seen = delays(link, 1_000, 20_000);
    assert_eq!(seen.len(), 20_000);
    let held = seen.iter().filter(|d| d.0 == 25.0).count() as f64 / 20_000.0;
    assert!(seen.iter().all(|d| d.0 == 20.0 || d.0 == 25.0));
    assert!(
        (held - 0.1).abs() < 4.0 * (0.09f64 / 20_000.0).sqrt(),
        "{held}"
    );
    let overtaken = seen.windows(2).filter(|w| w[1].1 < w[0].1).count();
    assert!(overtaken > 1_000, "{overtaken}");

    // The same holds behind a queue, at the queue's pace.
    let link = Link::fifo(
        Rate::from_mbps(12.0),
        Limits::NONE,
        Duration::from_millis(20),
    );
    let mut link = link.with_reorder(reorder, Stream::new(1, "reorder"));
    let mut out = Vec::new();
    for i in 0..2_000 {
        link.arrive(Time::ZERO, &packet(i, 1500));
    }
    drain(&mut link, Time::from_millis(10_000), &mut out);
    for (at, number, _) in &out {
        let leaves = Time::from_millis(number + 1 + 20);
        let late = at.since(leaves);
        assert!(
            late.is_zero() || late == reorder.delay,
            "{number}: {late:?}"
        );
    }
    assert_eq!(out.len(), 2_000);
    assert!(!out.is_sorted_by_key(|d| d.1));
}

/// The log of mahimahi's `mm-link`, by hand: two unused opportunities, a packet that waits for the
/// third, one for which the queue has no room, and one that is lost before it.
#[test]
fn an_observed_link_logs_every_event() {
    let trace = Arc::new(Trace::parse("1\n4\n9\n12\n").unwrap());
    let server = Server::trace(trace, Duration::ZERO, true);
    let queue = DropTail::new(Limits::new(Some(1), None));
    let mut link = Link::queued(Box::new(queue), server, Duration::from_millis(3)).observed();
    link.arrive(Time::from_millis(5), &packet(0, 1500));
    link.arrive(Time::from_millis(6), &packet(1, 1500));
    let all = Loss::Random { probability: 1.0 };
    link.set_loss(Some(LossProcess::new(all, Stream::new(1, "loss"))));
    link.arrive(Time::from_millis(10), &packet(2, 1500));
    let events: Vec<String> = link
        .take_events(Time::from_millis(20))
        .iter()
        .map(|e| {
            let at = e.at.as_nanos() / 1_000_000;
            match &e.what {
                LinkEventKind::Arrival(p) => format!("{at} + {}", segment(p).number),
                LinkEventKind::Loss(p) => format!("{at} loss {}", segment(p).number),
                LinkEventKind::Drop(p) => format!("{at} d {}", segment(p).number),
                LinkEventKind::Departure { packet, wait } => {
                    format!("{at} - {} {}", segment(packet).number, wait.as_millis_f64())
                }
                LinkEventKind::Opportunity => format!("{at} #"),
            }
        })
        .collect();
    let expected = [
        "1 #",
        "4 #",
        "5 + 0",
        "6 + 1",
        "6 d 1",
        "9 #",
        "9 - 0 4",
        "10 loss 2",
        "12 #",
    ];
    assert_eq!(events, expected);
    assert!(link.take_events(Time::from_millis(20)).is_empty());
}
