//! The guard: each rule by hand, and with any records and answers.

use headway_fixed::vectors::Draw;
use headway_fixed::{Cubic, Guard, Judgement, Limits, Reason, RecordBytes};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// A flow of 10 ms between records.
#[derive(Clone, Copy)]
struct Flow {
    now_ms: u64,
    delivered: u64,
    marked: u64,
    lost: u64,
    cwnd: u64,
    srtt_ms: u64,
    acks: u64,
    flags: u64,
}

const FLOW: Flow = Flow {
    now_ms: 0,
    delivered: 0,
    marked: 0,
    lost: 0,
    cwnd: 100,
    srtt_ms: 100,
    acks: 1,
    flags: 0,
};

impl Flow {
    /// `abi.h`: the minimum RTT is 100 ms, the window is in flight.
    fn record(&self) -> RecordBytes {
        [
            self.now_ms * MS,
            0,
            0,
            self.delivered | self.marked << 32,
            self.lost | self.cwnd << 32,
            self.cwnd | 1500 << 32,
            self.srtt_ms * 1000 * (1 | 1 << 32),
            100_000 << 32,
            0,
            self.acks | self.flags << 32,
            0,
            0,
        ]
    }
}

/// Goes on for so many records 10 ms apart, `change` before each; the time in ms and why it trips, if it does.
fn follow(
    guard: &mut Guard,
    flow: &mut Flow,
    records: u32,
    change: impl FnMut(&mut Guard, &mut Flow),
) -> Option<(u64, Reason)> {
    follow_by(&Limits::default(), guard, flow, records, change)
}

fn follow_by(
    limits: &Limits,
    guard: &mut Guard,
    flow: &mut Flow,
    records: u32,
    mut change: impl FnMut(&mut Guard, &mut Flow),
) -> Option<(u64, Reason)> {
    for _ in 0..records {
        flow.now_ms += 10;
        change(guard, flow);
        if guard.judge(limits, &flow.record()) == Judgement::Trips {
            return Some((flow.now_ms, guard.reason()));
        }
    }
    None
}

#[test]
fn nothing_that_is_well_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let trip = follow(&mut guard, &mut FLOW.clone(), 10_000, |_, f| {
        f.delivered += 10;
    });
    assert_eq!((trip, guard.trips()), (None, 0));
}

#[test]
fn an_answer_that_does_not_come_trips_after_two_round_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = FLOW;
    let limits = Limits::default();
    follow(&mut guard, &mut flow, 10, |_, f| f.delivered += 10);
    guard.ask(100 * MS);
    // 200 ms, and two acknowledgements that might have found it.
    let trip = follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    assert_eq!(trip, Some((320, Reason::Stale)));
    // It comes too late, is not carried out, and does not end the probation.
    assert!(!guard.answer(&limits, 100 * MS, 390 * MS, 400 * MS));
    assert_eq!(guard.until_ns(), (320 + 10_000) * MS);
}

/// An outage ends with a timeout, which looks for no answer, and an acknowledgement that finds it.
#[test]
fn an_answer_that_waited_for_an_acknowledgement_is_not_stale() {
    let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
    follow(&mut guard, &mut flow, 10, |_, f| f.delivered += 10);
    guard.ask(100 * MS);
    for (after_ms, acks) in [(400, 0), (800, 0), (1000, 1)] {
        flow.now_ms += after_ms;
        flow.acks = acks;
        let judged = guard.judge(&Limits::default(), &flow.record());
        assert_eq!(judged, Judgement::Policys, "after {after_ms} ms");
    }
}

/// Acknowledgements 400 ms apart, each of which finds an answer, that took so long.
#[test]
fn answers_that_always_come_too_late_trip() {
    let (limits, mut flow) = (Limits::default(), FLOW);
    let trips = |took_ms: u64, flow: &mut Flow| {
        let mut guard = Guard::new(0, 10, 0);
        for _ in 0..4 {
            guard.ask(flow.now_ms * MS);
            flow.now_ms += 400;
            flow.delivered += 2;
            let judged = guard.judge(&limits, &flow.record());
            if judged == Judgement::Trips {
                return Some(guard.reason());
            }
            let [decided, now] = [flow.now_ms - took_ms, flow.now_ms].map(|ms| ms * MS);
            guard.answer(&limits, decided + 1, now, now);
        }
        None
    };
    flow.now_ms = 2000;
    flow.srtt_ms = 400;
    assert_eq!(trips(1000, &mut flow), Some(Reason::Stale));
    assert_eq!(trips(399, &mut flow), None);
}

/// A clock decides 20 ms after an acknowledgement, the next of which comes 900 ms later: the answer is there at each, took a
/// millisecond, and is as new as it can be.
#[test]
fn an_answer_that_waits_for_a_rare_acknowledgement_is_not_late() {
    let (mut guard, limits) = (Guard::new(0, 10, 0), Limits::default());
    // HEADWAY_APP_LIMITED
    let mut flow = Flow { flags: 1, ..FLOW };
    for _ in 0..20 {
        let decided = (flow.now_ms + 20) * MS;
        flow.now_ms += 900;
        flow.delivered += 2;
        let is_done = guard.answer(&limits, decided, decided + MS, flow.now_ms * MS);
        assert!(is_done, "at {} ms", flow.now_ms);
        assert_eq!(guard.judge(&limits, &flow.record()), Judgement::Policys);
        // Beside it the flow asks, just before the clock decides.
        guard.ask(flow.now_ms * MS);
    }
    // Minutes later it says nothing of the path, and still nobody was late.
    let decided = (flow.now_ms + 20) * MS;
    flow.now_ms += 200_000;
    assert!(!guard.answer(&limits, decided, decided + MS, flow.now_ms * MS));
    assert_eq!(guard.judge(&limits, &flow.record()), Judgement::Policys);
}

/// Its newest answer was prompt. Then the flow was idle for minutes, in which the agent may have died.
#[test]
fn an_old_answer_gives_no_flow_back() {
    let (mut guard, limits, mut flow) = (Guard::new(0, 10, 0), Limits::default(), FLOW);
    guard.ask(MS);
    follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10).expect("stale");
    let answered = flow.now_ms * MS;
    flow.now_ms += 200_000;
    assert!(guard.until_ns() < flow.now_ms * MS);
    assert!(!guard.answer(&limits, answered, answered, flow.now_ms * MS));
    assert_eq!(guard.judge(&limits, &flow.record()), Judgement::Cubics);
    // Asked again, it answers.
    flow.now_ms += 100;
    let now = flow.now_ms * MS;
    assert!(!guard.answer(&limits, now, now, now));
    assert_eq!(guard.judge(&limits, &flow.record()), Judgement::Returns);
}

/// Each acknowledgement finds the answer to the one before, as Rax's does, and Owl's on a slow
/// path: the answer is looked for 5 us after the acknowledgement arrived, and a record has the time
/// at which it arrived.
#[test]
fn an_answer_that_is_later_than_its_record_gives_a_flow_back() {
    let (mut guard, limits, mut flow) = (Guard::new(0, 10, 0), Limits::default(), FLOW);
    guard.ask(MS);
    let trip = follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    assert_eq!(trip, Some((220, Reason::Stale)));
    let until = guard.until_ns();
    for _ in 0..2000 {
        let asked = flow.now_ms * MS;
        flow.now_ms += 10;
        flow.delivered += 10;
        let now = flow.now_ms * MS;
        guard.answer(&limits, asked, asked + 100_000, now + 5000);
        match guard.judge(&limits, &flow.record()) {
            Judgement::Cubics => assert!(now < until, "Cubic's at {} ms", flow.now_ms),
            Judgement::Returns => assert_eq!(now, until),
            Judgement::Policys => assert!(now > until),
            Judgement::Trips => panic!("a second trip at {} ms", flow.now_ms),
        }
        guard.ask(now);
    }
    assert_eq!((guard.reason(), guard.trips()), (Reason::Fine, 1));
}

/// A policy that lost four epochs of five is replaced, with a question open: the next is asked nothing yet, and lost nothing.
#[test]
fn what_a_policy_did_is_not_held_against_the_next() {
    let lose = |f: &mut Flow| {
        f.delivered += 7;
        f.lost += 3;
    };
    let trips = |is_replaced| {
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        let trip = follow(&mut guard, &mut flow, 85, |_, f| lose(f));
        assert_eq!(trip, None);
        guard.ask(flow.now_ms * MS);
        if is_replaced {
            // Minutes later, in which Cubic had it and lost packets.
            flow.now_ms += 100_000;
            flow.delivered += 100_000;
            flow.lost += 50_000;
            guard.begin_anew(flow.now_ms * MS, 100, 0);
        }
        follow(&mut guard, &mut flow, 60, |_, f| lose(f)).map(|(_, reason)| reason)
    };
    assert_eq!(trips(true), None);
    assert!(trips(false).is_some());
}

/// What it was taken for stays: only an answer of the next policy's ends the probation, and not before its time.
#[test]
fn a_probation_outlives_its_policy() {
    let (mut guard, limits, mut flow) = (Guard::new(0, 10, 0), Limits::default(), FLOW);
    guard.ask(MS);
    follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10).expect("stale");
    let until = guard.until_ns();
    guard.begin_anew(until - 100 * MS, 100, 0);
    assert_eq!(
        (guard.reason(), guard.trips(), guard.until_ns()),
        (Reason::Stale, 1, until)
    );
    flow.now_ms = until / MS + 100;
    assert_eq!(guard.judge(&limits, &flow.record()), Judgement::Cubics);
    flow.now_ms += 10;
    let now = flow.now_ms * MS;
    guard.answer(&limits, now, now, now);
    assert_eq!(guard.judge(&limits, &flow.record()), Judgement::Returns);
}

/// A question that is asked while a clock's answer is written has it with that: the next is due in a long time.
#[test]
fn an_answer_closes_what_was_asked_until_it_was_given() {
    let (mut guard, limits, mut flow) = (Guard::new(0, 10, 0), Limits::default(), FLOW);
    follow(&mut guard, &mut flow, 10, |_, f| f.delivered += 10);
    guard.ask(100 * MS);
    assert!(guard.answer(&limits, 99 * MS, 101 * MS, 110 * MS));
    let trip = follow(&mut guard, &mut flow, 1000, |_, f| f.delivered += 10);
    assert_eq!(trip, None);
    // One that was given before is none to it.
    guard.ask(flow.now_ms * MS);
    let given = flow.now_ms * MS - 1;
    assert!(guard.answer(&limits, given, given, (flow.now_ms + 10) * MS));
    let trip = follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    assert_eq!(trip.expect("a trip").1, Reason::Stale);
}

/// Ten packets in 10 ms of which three are lost: five epochs of 200 ms.
#[test]
fn losses_that_cubic_would_not_have_trip() {
    let mut guard = Guard::new(0, 10, 0);
    let trip = follow(&mut guard, &mut FLOW.clone(), 1000, |_, f| {
        f.delivered += 7;
        f.lost += 3;
    });
    let (at, reason) = trip.expect("a trip");
    assert_eq!(reason, Reason::Lossy);
    assert!((1000..=1300).contains(&at), "{at} ms");
}

/// An RTT of 500 ms where 100 would do, and twice the window that Cubic would have.
#[test]
fn a_queue_that_cubic_would_not_have_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let trip = follow(&mut guard, &mut FLOW.clone(), 1000, |_, f| {
        f.delivered += 1;
        f.cwnd = 2000;
        f.srtt_ms = 500;
    });
    assert_eq!(trip.expect("a trip").1, Reason::Slow);
}

/// The same queue where losses come at such an RTT, one in five seconds: Cubic's would be as long.
#[test]
fn a_queue_that_cubic_would_have_too_trips_nothing() {
    let mut guard = Guard::new(0, 10, 0);
    let trip = follow(&mut guard, &mut FLOW.clone(), 3000, |_, f| {
        f.delivered += 1;
        f.lost += u64::from(f.now_ms % 5000 == 100);
        f.cwnd = 2000;
        f.srtt_ms = 500;
    });
    assert_eq!(trip, None);
}

/// A second at ten packets in 10 ms, then one.
#[test]
fn a_policy_that_leaves_the_path_to_nobody_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = FLOW;
    let none = follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    assert_eq!(none, None);
    let trip = follow(&mut guard, &mut flow, 1000, |_, f| {
        f.delivered += 1;
        f.cwnd = 10;
    });
    let (at, reason) = trip.expect("a trip");
    assert_eq!(reason, Reason::Poor);
    assert!(at < 1000 + 1500, "{at} ms");
}

/// The same where the receiver takes no more: `HEADWAY_RWND_LIMITED`.
#[test]
fn a_slow_receiver_is_no_fault_of_the_policy() {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = FLOW;
    follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    let trip = follow(&mut guard, &mut flow, 6000, |_, f| {
        f.delivered += 1;
        f.cwnd = 10;
        f.flags = 64;
    });
    assert_eq!(trip, None);
}

/// The same with two packets in flight and an RTT that others' queue makes: it is not the flow's.
#[test]
fn a_policy_that_starves_beside_others_trips() {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = FLOW;
    follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10);
    let trip = follow(&mut guard, &mut flow, 1000, |_, f| {
        f.delivered += u64::from(f.now_ms % 100 == 0);
        f.cwnd = 2;
        f.srtt_ms = 200;
    });
    let (at, reason) = trip.expect("a trip");
    assert_eq!(reason, Reason::Poor);
    assert!(at < 1000 + 2000, "{at} ms");
}

/// So many packets a round trip from the beginning, of which the first may be lost.
fn begins_with(packets: u64, is_lost: bool) -> Option<(u64, Reason)> {
    let mut flow = Flow {
        cwnd: packets + 1,
        ..FLOW
    };
    follow(&mut Guard::new(0, 10, 0), &mut flow, 3000, |_, f| {
        if f.now_ms % 100 == 0 {
            f.delivered += packets;
            f.lost += u64::from(is_lost && f.now_ms == 300);
        }
    })
}

/// What the path carries was never seen: a quarter of an initial window it does, unless a loss or a queue says otherwise.
#[test]
fn a_policy_that_starves_from_the_beginning_trips() {
    let (at, reason) = begins_with(1, false).expect("a trip");
    assert_eq!(reason, Reason::Poor);
    assert!(at < 2000, "{at} ms");
    assert_eq!(begins_with(3, false), None);
    assert_eq!(begins_with(1, true), None);
}

/// `rate` packets in 10 ms without a queue, after five seconds of ten with an RTT of `queue_ms`, where a packet is lost.
fn gives_up(rate: u64, queue_ms: u64) -> Option<(u64, Reason)> {
    let mut guard = Guard::new(0, 10, 0);
    let mut flow = Flow {
        srtt_ms: queue_ms,
        cwnd: queue_ms,
        ..FLOW
    };
    let none = follow(&mut guard, &mut flow, 500, |_, f| {
        f.delivered += 10;
        f.lost += u64::from(f.now_ms == 3000);
    });
    assert_eq!(none, None);
    follow(&mut guard, &mut flow, 6000, |_, f| {
        f.delivered += rate;
        f.srtt_ms = 105;
    })
}

/// Utility's price: half of the rate for a quarter of the RTT. Averages go over 32 epochs of 200 ms.
#[test]
fn less_for_long_trips_where_too_little_delay_is_saved() {
    let (at, reason) = gives_up(6, 200).expect("a trip");
    assert_eq!(reason, Reason::Poor);
    assert!((9_000..25_000).contains(&at), "{at} ms");
    // Nine tenths are enough, and six tenths for a quarter of the RTT a bargain.
    assert_eq!(gives_up(9, 200), None);
    assert_eq!(gives_up(6, 400), None);
}

/// Two packets each four seconds are 1,500 bytes in two seconds: three times that, and not any rate.
#[test]
fn a_rate_is_bounded_below_one_packet_a_second() {
    let (mut guard, limits) = (Guard::new(0, 10, 0), Limits::default());
    for (at, delivered) in [(0, 0), (4000, 2), (8000, 4), (12_000, 6)] {
        let flow = Flow {
            now_ms: at,
            delivered,
            cwnd: 2,
            ..FLOW
        };
        assert_eq!(guard.judge(&limits, &flow.record()), Judgement::Policys);
    }
    let half_a_packet = 1500 / 2;
    assert_eq!(guard.rate(&limits, u64::MAX >> 1), 3 * half_a_packet);
    assert_eq!(guard.rate(&limits, half_a_packet), half_a_packet);
}

#[test]
fn what_may_not_be_is_bounded_and_trips_if_it_is_wanted_again_and_again() {
    let (mut guard, limits) = (Guard::new(0, 10, 0), Limits::default());
    for (wanted, given) in [
        (-5, 2),
        (1, 2),
        (2, 2),
        (7, 7),
        (100_000, 100_000),
        (i64::MAX, 100_000),
    ] {
        assert_eq!(guard.cwnd(&limits, wanted), given);
    }
    let trip = follow(&mut guard, &mut FLOW.clone(), 100, |g, f| {
        f.delivered += 10;
        g.cwnd(&limits, 1 << 40);
    });
    // The 32nd in a row.
    assert_eq!(trip, Some((310, Reason::Wild)));
}

/// A question that nobody answers, and the probation that follows: how long it is, in ms. The flow has returned then.
fn probation(guard: &mut Guard, flow: &mut Flow) -> u64 {
    probation_of(&Limits::default(), guard, flow)
}

fn probation_of(limits: &Limits, guard: &mut Guard, flow: &mut Flow) -> u64 {
    guard.ask(flow.now_ms * MS);
    let stale = follow_by(limits, guard, flow, 100, |_, f| f.delivered += 10);
    let (at, _) = stale.expect("stale");
    let until = guard.until_ns() / MS;
    // Asked on, it answers; not before the end it has the flow again.
    loop {
        flow.now_ms += 100;
        let now = flow.now_ms * MS;
        assert!(!guard.answer(limits, now, now, now));
        match guard.judge(limits, &flow.record()) {
            Judgement::Cubics => assert!(flow.now_ms < until),
            judged => {
                assert_eq!(judged, Judgement::Returns);
                assert!(flow.now_ms >= until && flow.now_ms < until + 200);
                return until - at;
            }
        }
    }
}

/// A guard and a flow whose time is not zero, at which a question would be none.
fn begun() -> (Guard, Flow) {
    (Guard::new(0, 10, 0), Flow { now_ms: 10, ..FLOW })
}

/// Ten seconds, then twenty, forty, ... at most 320.
#[test]
fn probations_double() {
    let (mut guard, mut flow) = begun();
    let probations = [(); 7].map(|()| probation(&mut guard, &mut flow));
    assert_eq!(
        probations,
        [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 320_000]
    );
}

/// The first three are equally long. A policy that does not improve loses the flow for longer and longer all the same.
#[test]
fn a_learners_probations_double_after_the_third() {
    let (mut guard, mut flow) = begun();
    let limits = Limits::default().of_learners();
    let probations = [(); 9].map(|()| probation_of(&limits, &mut guard, &mut flow) / 1000);
    assert_eq!(probations, [10, 10, 10, 20, 40, 80, 160, 320, 320]);
}

/// A learner may lose too much for 25 epochs, and a policy that takes its place after 20 of them for 5 of its own.
#[test]
fn what_a_learner_did_is_not_counted_against_the_next_policy() {
    let (mut guard, mut flow) = begun();
    let learners = Limits::default().of_learners();
    let lose = |_: &mut Guard, f: &mut Flow| {
        f.delivered += 7;
        f.lost += 3;
        f.cwnd = 1000;
    };
    let mut other = (guard.clone(), flow);
    let trip = follow_by(&learners, &mut other.0, &mut other.1, 2000, lose);
    let (at, reason) = trip.expect("a trip");
    assert_eq!(reason, Reason::Lossy);
    assert!((5000..5500).contains(&at), "{at}");
    let trip = follow_by(&learners, &mut guard, &mut flow, 400, lose);
    assert_eq!(trip, None);
    guard.acquit();
    let trip = follow(&mut guard, &mut flow, 70, lose);
    assert_eq!(trip, None);
    let trip = follow(&mut guard, &mut flow, 50, lose);
    assert_eq!(trip.expect("a trip").1, Reason::Lossy);
}

/// Each ten minutes without a trip make the next probation half as long again, down to the shortest.
#[test]
fn ten_good_minutes_pardon_a_trip() {
    let (mut guard, mut flow) = begun();
    let first = [(); 3].map(|()| probation(&mut guard, &mut flow));
    assert_eq!(first, [10_000, 20_000, 40_000]);
    let mut after = |minutes: u32| {
        let well = follow(&mut guard, &mut flow, minutes * 6000, |_, f| {
            f.delivered += 10
        });
        assert_eq!(well, None);
        probation(&mut guard, &mut flow)
    };
    // The third trip is pardoned; the one that follows is the third again.
    assert_eq!(after(11), 40_000);
    assert_eq!(after(9), 80_000);
    assert_eq!(after(45), 10_000);
}

/// RFC 9438, Figure 1, for a window of 1000 packets that falls to 700: K = cbrt(300 / 0.4) = 9.086 s.
#[test]
fn the_cubic_follows_rfc_9438() {
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
        // A round trip to get there: what it was to be a round trip ago.
        let t = step as f64 / 100.0;
        let w = 0.4 * (t - k).powi(3) + 1000.0;
        worst = worst.max((cubic.cwnd() - w).abs() / w);
    }
    assert!(worst < 0.02, "off by {worst}");
}

/// RFC 5681, section 3.1, equation 4: two packets at least, and once however often the timer backs off.
#[test]
fn time_outs_in_a_row_lower_ssthresh_once() {
    let mut cubic = Cubic::new(100, 0);
    for (at, is_recovering) in [(1000, false), (1400, true), (2200, true)] {
        cubic.time_out(at * MS, is_recovering);
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1.0, Some(70.0)));
    }
    // What was lost by then it has paid for.
    cubic.lose(2250 * MS, 2000 * MS);
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1.0, Some(70.0)));
    cubic.time_out(9000 * MS, false);
    assert_eq!(cubic.ssthresh(), Some(2.0));
}

/// `HEADWAY_LEAVE` has no reason, and a learner that diverges may have had any window: Cubic does not begin with that.
#[test]
fn who_leaves_a_flow_hands_no_runaway_window_over() {
    let (mut guard, mut flow) = (Guard::new(0, 100, 0), FLOW);
    // 100 packets a round trip of 100 ms.
    let trip = follow(&mut guard, &mut flow, 300, |_, f| f.delivered += 10);
    assert_eq!(trip, None);
    assert_eq!(
        guard.restart(&Limits::default(), &flow.record()),
        Guard::NO_SSTHRESH
    );
    flow.cwnd = 4000;
    let ssthresh = guard.restart(&Limits::default(), &flow.record());
    assert!((100..=250).contains(&ssthresh), "{ssthresh}");
}

/// RFC 3168, section 6.1.2: a mark is as a loss, once a round trip. Here each acknowledgement has one.
#[test]
fn marks_lower_the_cubic_once_a_round_trip() {
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

proptest! {
    /// Answers that are prompt trip nothing, and end a probation at the first record after it,
    /// however much later than its record's time each is looked for.
    #[test]
    fn it_does_not_matter_when_an_answer_is_looked_for(
        steps in prop::collection::vec((1u64..20_000, 0u64..900, 0u64..2_000), 2000..4000),
    ) {
        // Of nothing but stale answers.
        let limits = Limits::default().without_epochs();
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        guard.ask(MS);
        follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10).expect("stale");
        let mut record = flow.record();
        let until = guard.until_ns();
        for (gap_us, took_us, jitter_us) in steps {
            let asked = record[0];
            guard.ask(asked);
            record[0] += (took_us + gap_us) * 1000;
            record[3] += 1;
            guard.answer(&limits, asked, asked + took_us * 1000, record[0] + jitter_us * 1000);
            let judged = guard.judge(&limits, &record);
            prop_assert!(judged != Judgement::Trips, "at {} ns", record[0]);
            prop_assert_eq!(judged == Judgement::Cubics, record[0] < until);
        }
    }

    #[test]
    fn whatever_comes_bounds_and_probations_hold(seed in any::<u64>()) {
        let (limits, mut draw) = (Limits::default(), Draw::new(seed));
        let mut last: RecordBytes = [0; 12];
        let mut guard = Guard::new(0, 10, 0);
        let mut until = 0;
        for _ in 0..500 {
            last = draw.record(&last);
            let now = last[0];
            if draw.below(3) == 0 {
                guard.ask(now);
            }
            if draw.below(3) == 0 {
                let mut before = || now.wrapping_sub(draw.bits() >> draw.below(64));
                let (decided, answered) = (before(), before());
                guard.answer(&limits, decided, answered, now);
            }
            let wanted = draw.bits() as i64 >> draw.below(64);
            prop_assert!((2..=100_000).contains(&guard.cwnd(&limits, wanted)));
            prop_assert!(guard.rate(&limits, draw.bits()) <= limits.max_rate);
            prop_assert!(guard.restart(&limits, &last) >= 2);
            match guard.judge(&limits, &last) {
                Judgement::Trips => until = guard.until_ns(),
                Judgement::Returns => prop_assert!(now >= until),
                Judgement::Policys => prop_assert_eq!(guard.reason(), Reason::Fine),
                Judgement::Cubics => prop_assert_ne!(guard.reason(), Reason::Fine),
            }
        }
    }
}

#[test]
fn nothing_is_undefined_whatever_the_limits_and_the_records() {
    if let Some(trips) = crate::sanitized::run("guard") {
        assert!(trips > 10_000, "{trips} trips");
    }
}

/// What was written into the C code before is in `Limits`: each of these changes what the guard does.
#[test]
fn limits_say_when_a_flow_falls_back() {
    let usual = Limits::default();
    let trip = |limits: &Limits, change: fn(&mut Flow)| {
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        guard.ask(MS);
        guard.answer(limits, MS, MS, MS);
        let trip = follow_by(limits, &mut guard, &mut flow, 1000, |_, f| change(f));
        trip.map(|(_, reason)| reason)
    };
    // A third of twelve packets an epoch is lost, with 5000 in flight.
    let lose_a_third = |f: &mut Flow| {
        f.cwnd = 5000;
        f.delivered += u64::from(f.now_ms.is_multiple_of(50)) * 2;
        f.lost += u64::from(f.now_ms.is_multiple_of(50));
    };
    assert_eq!(trip(&usual, lose_a_third), None, "too few packets");
    let few = Limits {
        loss_packets: 10,
        ..usual
    };
    assert_eq!(trip(&few, lose_a_third), Some(Reason::Lossy));
    let none_is_beyond = Limits {
        beyond: u32::MAX,
        ..few
    };
    assert_eq!(trip(&none_is_beyond, lose_a_third), None);
    let long = Limits {
        epochs: 60_000,
        ..few
    };
    assert_eq!(trip(&long, lose_a_third), None);
    // A queue of 400 ms over 100 ms.
    let queue = |f: &mut Flow| {
        (f.cwnd, f.srtt_ms) = (5000, 500);
        f.delivered += 10;
    };
    assert_eq!(trip(&usual, queue), Some(Reason::Slow));
    let ahead = Limits {
        ahead: 100_000,
        ..usual
    };
    assert_eq!(trip(&ahead, queue), None);
    let patient = Limits {
        slow_epochs: 60_000,
        ..usual
    };
    assert_eq!(trip(&patient, queue), None);
}

#[test]
fn limits_say_what_cubic_begins_with_and_when_the_policy_returns() {
    let mut limits = Limits {
        stale_answers: 4,
        ..Limits::default()
    };
    let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
    follow(&mut guard, &mut flow, 10, |_, f| f.delivered += 10);
    guard.ask(100 * MS);
    let trip = follow_by(&limits, &mut guard, &mut flow, 100, |_, f| {
        f.delivered += 10
    });
    assert_eq!(
        trip,
        Some((340, Reason::Stale)),
        "four acknowledgements after 300 ms"
    );
    let after_300_ms = (flow.now_ms + 300) * MS;
    assert!(!guard.spares(&limits, after_300_ms, 100_000));
    limits.spared_rtts = 4;
    assert!(guard.spares(&limits, after_300_ms, 100_000));
    // A mark, and the window is one packet: nothing is known of the path.
    let record = Flow {
        now_ms: 1000,
        marked: 1,
        cwnd: 1,
        ..FLOW
    }
    .record();
    let mut guard = Guard::new(0, 1, 0);
    let first = Flow { now_ms: 10, ..FLOW };
    guard.judge(&limits, &first.record());
    guard.judge(&limits, &record);
    assert_eq!(guard.restart(&limits, &record), 4);
    limits.least_ssthresh = 7;
    assert_eq!(guard.restart(&limits, &record), 7);
    // The newest answer is 1.5 s old when the probation is over.
    for (return_patiences, judged) in [(2, Judgement::Cubics), (4, Judgement::Returns)] {
        let limits = Limits {
            return_patiences,
            ..Limits::default()
        };
        let (mut guard, mut flow) = (Guard::new(0, 10, 0), FLOW);
        guard.ask(MS);
        follow(&mut guard, &mut flow, 100, |_, f| f.delivered += 10).expect("stale");
        flow.now_ms = guard.until_ns() / MS - 1500;
        let now = flow.now_ms * MS;
        guard.answer(&limits, now, now, now);
        flow.now_ms += 1500;
        assert_eq!(guard.judge(&limits, &flow.record()), judged);
    }
}
