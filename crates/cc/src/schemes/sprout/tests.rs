use super::forecast::{Forecast, Forecaster};
use super::model::{BINS, Belief, Model, escape_probability, step_deviation, uniform_belief};
use super::receiver::{Inference, Report};
use super::*;
use crate::testing::{Link, MSS, feedback, select, setup};
use crate::{Arrival, Ecn, Rate, Receiver};

fn certain(bin: usize) -> Belief {
    let mut belief = [0.0; BINS];
    belief[bin] = 1.0;
    belief
}

fn mean(model: &Model, belief: &Belief) -> f64 {
    let products = belief.iter().zip(model.means);
    products.map(|(p, m)| f64::from(*p) * m).sum()
}

/// algorithms.md §14.5; NSDI 2013 §3.1.
#[test]
fn one_tick_applies_brownian_motion_and_outages() {
    assert!((step_deviation(200.0) - 28.28).abs() < 0.005);
    assert!((escape_probability() - 0.0198).abs() < 5e-5);

    let model = Model::new(1000.0, 200.0);
    let rate = |bin: usize| model.means[bin] / 0.02;
    let after = model.evolve(&certain(128));
    let middle = mean(&model, &after) / 0.02;
    let spread = |bin: usize| f64::from(after[bin]) * (rate(bin) - middle) * (rate(bin) - middle);
    let deviation = (0..BINS).map(spread).sum::<f64>().sqrt();
    assert!((middle - rate(128)).abs() < 0.01, "{middle}");
    // A bin of 3.9 packets a second has a standard deviation of 1.1, and sqrt(28.28^2 + 1.13^2) =
    // 28.3.
    assert!((deviation - 28.3).abs() < 0.05, "{deviation}");

    // `process.cc`, by hand: 0.9802 Phi(3.906 / 28.28) = 0.5440 stays, 0.0198 (1 - 0.5549) = 0.0088
    // leaves.
    let after = model.evolve(&certain(0));
    let by_hand = 0.5440 / (0.5440 + 0.0088);
    assert!((after[0] - by_hand).abs() < 1e-4, "{}", after[0]);
    // Against a distant rate, which keeps all of its probability, the outage has 0.5440.
    let mut both = certain(0);
    both[128] = 1.0;
    let after = model.evolve(&both);
    let outage = f64::from(after[0])
        / (128 - 60..128 + 60)
            .map(|bin| f64::from(after[bin]))
            .sum::<f64>();
    assert!((outage - 0.5440).abs() < 1e-3, "{outage}");
}

/// NSDI 2013 §3.2.1, by hand: the rates of 5 and 10 packets a tick are equally likely. 7 arrivals
/// leave the ratio (10/5)^7 e^-5 = 0.862.
#[test]
fn arrivals_update_the_rates_by_poisson_likelihood() {
    let model = Model::new(1000.0, 200.0);
    let nearest = |mean: f64| {
        let off = |bin: &usize| (model.means[*bin] - mean).abs();
        (0..BINS).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap()
    };
    let (slow, fast) = (nearest(5.0), nearest(10.0));
    let (m_slow, m_fast) = (model.means[slow], model.means[fast]);
    let mut belief = [0.0; BINS];
    (belief[slow], belief[fast]) = (0.5, 0.5);
    let after = model.observe(&belief, 7);
    let by_hand = (m_fast / m_slow).powi(7) * libm::exp(m_slow - m_fast);
    assert!((by_hand - 0.862).abs() < 0.03, "{by_hand}");
    assert!((f64::from(after[fast] / after[slow]) - by_hand).abs() < 1e-6);
}

/// The model finds the rate within a second, and an outage within 200 ms.
#[test]
fn the_model_follows_a_rate_and_an_outage() {
    let model = Model::new(1000.0, 200.0);
    let mut belief = uniform_belief();
    for _ in 0..50 {
        belief = model.observe(&model.evolve(&belief), 8);
    }
    let found = mean(&model, &belief);
    assert!((found - 8.0).abs() < 0.5, "{found}");
    for _ in 0..10 {
        belief = model.observe(&model.evolve(&belief), 0);
    }
    assert!(mean(&model, &belief) < 0.5, "{}", mean(&model, &belief));
    // Bursts that no rate explains leave the highest rates, as far as steps lead.
    for _ in 0..10 {
        belief = model.observe(&model.evolve(&belief), 5000);
    }
    assert!(mean(&model, &belief) > 18.0);
    assert!((belief.iter().sum::<f32>() - 1.0).abs() < 1e-5);
}

/// NSDI 2013 §3.3: at a known rate that hardly changes, the arrivals of k ticks are Poisson. The
/// 5th percentiles of Poisson with means 8, 16, .. 64 come from tables.
#[test]
fn forecasts_are_the_fifth_percentiles_of_arrivals() {
    let still = Forecaster::shared(1000.0, 20.0);
    let bin = (0..BINS)
        .find(|&bin| still.model.means[bin] > 7.96)
        .unwrap();
    assert!((still.model.means[bin] - 8.0).abs() < 0.05);
    let forecast = still.forecast(&certain(bin), 0.05, &[0; TICKS]);
    let poisson: Forecast = [4, 10, 16, 23, 30, 37, 44, 51];
    for (ours, exact) in forecast.iter().zip(poisson) {
        assert!(ours.abs_diff(exact) <= 1, "{forecast:?}");
    }
    // Wherever the search begins, it ends at the same counts.
    assert_eq!(
        still.forecast(&certain(bin), 0.05, &[u32::MAX; TICKS]),
        forecast
    );
    // Each tick adds its own counts (`processforecaster.cc`): at 200 packets a second the variance
    // of eight is 64 + (0 + 1 + .. + 7) 0.566^2 = 73, the 5th percentile 64 - 1.645 sqrt(73) = 50.
    let wandering = Forecaster::shared(1000.0, 200.0);
    let less = wandering.forecast(&certain(bin), 0.05, &[0; TICKS]);
    assert_eq!((less[0], less[7]), (4, 50));
    assert!(wandering.forecast(&uniform_belief(), 0.05, &[0; TICKS])[7] < 16);
}

fn inference() -> Inference {
    Inference::new(&setup(), Forecaster::shared(1000.0, 200.0), 0.95)
}

fn arrival(ms: u64, number: u64, sent_ms: u64, silence_ms: f32) -> Arrival {
    Arrival {
        now: Time::from_millis(ms),
        number,
        size: MSS,
        sent: Time::from_millis(sent_ms),
        ecn: Ecn::NotEct,
        header: Header([silence_ms, 0.0, 0.0]),
    }
}

fn report(receiver: &mut Inference) -> Option<Report> {
    let mut message = Vec::new();
    receiver.take_message(&mut message);
    Report::read(&message)
}

/// NSDI 2013 §3.2: ticks begin with the first packet, and each sends a report.
#[test]
fn the_receiver_reports_every_tick() {
    let mut receiver = inference();
    assert_eq!(receiver.next_timer(), Time::NEVER);
    receiver.on_data(&arrival(7, 0, 0, 0.0));
    assert_eq!(report(&mut receiver), None);
    assert_eq!(receiver.next_timer(), Time::from_millis(27));
    receiver.on_timer(Time::from_millis(27));
    assert_eq!(report(&mut receiver).unwrap().received_or_lost, 1);
    assert_eq!(report(&mut receiver), None);
    assert_eq!(receiver.next_timer(), Time::from_millis(47));
}

/// NSDI 2013 §3.2 ("time-to-next"): an announced silence says nothing about the link, any other
/// silence does.
#[test]
fn an_announced_silence_is_not_an_outage() {
    let after_silence = |announced: f32| {
        let mut receiver = inference();
        for tick in 0..20 {
            for i in 0..8 {
                let last = tick == 19 && i == 7;
                let silence = if last { announced } else { 0.0 };
                receiver.on_data(&arrival(20 * tick + i, 8 * tick + i, 20 * tick, silence));
            }
        }
        receiver.on_timer(Time::from_millis(400 + 40));
        report(&mut receiver).unwrap().forecast[7]
    };
    let (announced, not) = (after_silence(60.0), after_silence(0.0));
    assert!(announced > 20 && not < announced / 2, "{announced}, {not}");
}

/// After a second without arrivals there are no reports until a packet arrives.
#[test]
fn silence_is_reported_for_a_second() {
    let mut receiver = inference();
    receiver.on_data(&arrival(0, 0, 0, 0.0));
    let mut last = Time::ZERO;
    while receiver.next_timer() < Time::NEVER {
        last = receiver.next_timer();
        receiver.on_timer(last);
    }
    assert_eq!(last, Time::from_millis(51 * 20));
    assert!(report(&mut receiver).unwrap().forecast[7] <= 1);
    receiver.on_data(&arrival(60_007, 1, 60_000, 0.0));
    assert_eq!(receiver.next_timer(), Time::from_millis(60_020));
}

/// NSDI 2013 §3.4 and `throwaway_window`: packets that left 10 ms before one that has arrived count
/// as lost.
#[test]
fn the_receiver_distinguishes_lost_from_late_packets() {
    let mut receiver = inference();
    let mut accounted = |ms, number, sent_ms| {
        receiver.on_data(&arrival(ms, number, sent_ms, 0.0));
        receiver.on_timer(Time::from_millis(ms + 20));
        report(&mut receiver).unwrap().received_or_lost
    };
    assert_eq!(accounted(100, 0, 50), 1);
    // Packets 1 and 2 are missing, and may still come.
    assert_eq!(accounted(120, 3, 55), 2);
    assert_eq!(accounted(140, 2, 54), 3);
    // Packet 3 left 11 ms before 4. Packet 1 left before 3 and is lost.
    assert_eq!(accounted(160, 4, 66), 5);
    // Packet 1 arrives late, and counts once.
    assert_eq!(accounted(180, 1, 52), 5);
    assert_eq!(accounted(200, 4, 66), 5);
}

fn sender() -> Sprout {
    Sprout::new(&setup())
}

fn send(sprout: &mut Sprout, now: Time, number: u64) {
    let in_flight = sprout.in_flight + MSS;
    sprout.on_sent(&Sent {
        now,
        number,
        size: MSS,
        in_flight,
        retransmission: false,
        app_limited: false,
    });
}

fn receive_report(sprout: &mut Sprout, now: Time, received_or_lost: u64, forecast: Forecast) {
    let mut receiver = Vec::new();
    receiver.extend(received_or_lost.to_le_bytes());
    receiver.extend(forecast.iter().flat_map(|c| c.to_le_bytes()));
    sprout.on_feedback(&Feedback {
        in_flight: sprout.in_flight,
        message: &receiver,
        ..feedback(now)
    });
}

/// NSDI 2013 §3.5, fig. 4, by hand: 10 packets a tick, 30 on the way. At once the five ticks after
/// this one deliver 50, so 20 may be sent. A tick later 10 have left and the target is a tick
/// later, so 10 more may be sent.
#[test]
fn the_window_is_the_forecast_drain_of_100_ms() {
    let (mut sprout, ms) = (sender(), Time::from_millis);
    receive_report(&mut sprout, ms(0), 0, [0, 8, 16, 24, 32, 40, 48, 56]);
    for number in 0..40 {
        send(&mut sprout, ms(0), number);
    }
    receive_report(&mut sprout, ms(100), 10, [10, 20, 30, 40, 50, 60, 70, 80]);
    assert_eq!(sprout.room(), 20);
    assert_eq!(sprout.control().cwnd, MSS * 60);
    // Only the last packet of a flight announces silence.
    assert_eq!(sprout.stamp().header.0[0], 0.0);
    for number in 40..60 {
        send(&mut sprout, ms(100), number);
    }
    assert_eq!((sprout.room(), sprout.control().cwnd), (0, MSS * 60));
    assert_eq!(sprout.stamp().header.0[0], 50.0);
    assert_eq!(sprout.next_timer(), ms(120));
    sprout.on_timer(ms(120));
    assert_eq!(sprout.room(), 10);
    // The forecast ends, so nothing more may be sent.
    for tick in 2..8 {
        sprout.on_timer(ms(100 + 20 * tick));
    }
    assert_eq!(sprout.tick, TICKS - 1);
    assert_eq!(sprout.room(), 0);
}

/// `sproutbt2.cc`: a heartbeat is sent after 50 ms of silence, whatever the forecast. It does not
/// count as queue.
#[test]
fn a_heartbeat_is_sent_after_silence() {
    let (mut sprout, ms) = (sender(), Time::from_millis);
    send(&mut sprout, ms(0), 0);
    receive_report(&mut sprout, ms(10), 0, [0; TICKS]);
    assert_eq!(sprout.control().cwnd, MSS);
    sprout.on_timer(ms(50));
    assert_eq!(sprout.control().cwnd, MSS * 2);
    send(&mut sprout, ms(50), 1);
    assert_eq!((sprout.queue, sprout.control().cwnd), (1, MSS * 2));
    receive_report(&mut sprout, ms(60), 1, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((sprout.queue, sprout.room()), (0, 5));
}

/// Malformed messages do not cause a panic.
#[test]
fn malformed_reports_do_not_panic() {
    let mut sprout = sender();
    for message in [&[255; 40][..], &[0; 39], &[7; 100], &[0; 40]] {
        sprout.on_feedback(&Feedback {
            message,
            ..feedback(Time::from_millis(5))
        });
        sprout.on_timer(Time::from_millis(500));
        assert!(sprout.control().cwnd >= MSS);
    }
    assert_eq!(Report::read(&[0; 39]), None);
    let falling = [9, 0, 9, 0, 9, 0, 9, 0];
    receive_report(&mut sprout, Time::from_millis(600), u64::MAX, falling);
    sprout.on_timer(Time::from_millis(900));
    assert_eq!(sprout.room(), 0);
}

/// Without reports a flow sends its initial window, then heartbeats. They are 50 ms apart, or a
/// round trip of 41 ms, since a window is at least a packet.
#[test]
fn without_reports_there_are_heartbeats() {
    let mut link = Link::new(
        &select("sprout"),
        Rate::from_mbps(12.0),
        Duration::from_millis(40),
        100,
    );
    link.run(Duration::from_millis(30));
    assert_eq!(link.host.counters().sent, MSS * 10);
    link.run(Duration::from_secs(10));
    let sent = link.host.counters().sent.get() / MSS.get();
    assert!((200..=260).contains(&sent), "{sent}");
}
