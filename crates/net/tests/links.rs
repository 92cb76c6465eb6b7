//! Links, against a plain model of each and against one another.

use std::sync::Arc;

use headway_cc::{Bytes, Duration, Ecn, Header, Rate, Stream, Time};
use headway_net::queue::{DropTail, Limits};
use headway_net::trace::Trace;
use headway_net::{Body, Link, Packet, RandomLoss, Segment, Server, TraceCursor};
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

/// What comes out: (delivery, number, queued).
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
    /// The computed FIFO does what the simulated one does, whatever happens to rate and delay.
    #[test]
    fn a_computed_fifo_is_a_simulated_one(steps in steps(), packets in 0..12u64, bytes in 1000..20_000u64) {
        for limits in [
            Limits::new(Some(packets), None),
            Limits::new(None, Some(Bytes::new(bytes))),
            Limits::NONE,
        ] {
            let (rate, delay) = (Rate::from_mbps(5.0), Duration::from_millis(7));
            let mut computed = Link::fifo(rate, limits, delay);
            let mut simulated = Link::queued(Box::new(DropTail::new(limits)), Server::fixed(rate), delay);
            let (a, b) = (run(&mut computed, &steps), run(&mut simulated, &steps));
            prop_assert_eq!(a, b);
            let end = Time::ZERO + Duration::from_secs(7200);
            prop_assert_eq!(computed.counters(end), simulated.counters(end));
            prop_assert_eq!(computed.offered_until(end), simulated.offered_until(end));
        }
    }

    /// Nothing is overtaken, nothing is lost but what was dropped, and the queue never exceeds its limit.
    #[test]
    fn fifo_keeps_order_and_limit(steps in steps(), packets in 0..12u64) {
        let mut link = Link::fifo(Rate::from_mbps(5.0), Limits::new(Some(packets), None), Duration::from_millis(7));
        let out = run(&mut link, &steps);
        prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
        let counters = link.counters(Time::NEVER);
        prop_assert_eq!(out.len() as u64 + counters.dropped_packets, counters.arrived_packets);
    }

    /// Every byte a trace link serves fits into the opportunities that lie between a packet's
    /// arrival and its departure (mahimahi: 1504 bytes each, idle ones lost).
    #[test]
    fn a_trace_link_is_a_plain_walk_over_opportunities(
        gaps in prop::collection::vec(0..40u32, 2..40),
        arrivals in prop::collection::vec((0..30_000u64, 40..1500u16), 1..80),
    ) {
        let mut at = 0;
        let mut text = String::new();
        for gap in &gaps {
            at += gap;
            text += &format!("{at}\n");
        }
        text += &format!("{}\n", at + 1);
        let trace = Arc::new(Trace::parse(&text).unwrap());
        let server = Server::trace(Arc::clone(&trace), Duration::ZERO, false);
        let mut link = Link::queued(Box::new(DropTail::new(Limits::NONE)), server, Duration::from_millis(20));
        let steps: Vec<Step> =
            arrivals.iter().map(|&(after_us, size)| Step::Arrive { after_us, size }).collect();
        let out = run(&mut link, &steps);
        prop_assert_eq!(out, walk(&trace, &arrivals));
    }
}

/// mahimahi's `link_queue.cc`, told plainly: at each opportunity, in order, send what fits.
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
fn random_loss_loses_its_share() {
    let mut link = Link::wire(Duration::from_millis(1));
    let stream = Stream::new(5, "loss");
    link.set_loss(Some(RandomLoss {
        probability: 0.01,
        stream,
    }));
    for i in 0..200_000 {
        link.arrive(Time::ZERO, &packet(i, 1500));
    }
    let lost = link.counters(Time::ZERO).lost_packets as f64 / 200_000.0;
    // Four standard deviations of a binomial.
    assert!(
        (lost - 0.01).abs() < 4.0 * (0.01f64 * 0.99 / 200_000.0).sqrt(),
        "{lost}"
    );
}

#[test]
fn a_packet_that_waits_moves_with_the_rate() {
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
