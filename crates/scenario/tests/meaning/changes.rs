//! Changes during a scenario's run.

use headway_cc::{Duration, Rate, Time};
use headway_scenario::Change;

use crate::{ONE, parse};

#[test]
fn a_new_bottleneck_delay_also_changes_the_way_back() {
    let step = format!("{ONE}\n[[at]]\ntime='11s'\ndelay='200ms'\nrate='5Mbps'");
    let changes = parse(&step).draw(1).changes;
    let (at, delay) = (Time::from_millis(11_000), Some(Duration::from_millis(200)));
    let change = |link, rate| Change {
        at,
        link,
        rate,
        delay,
        loss: None,
    };
    assert_eq!(
        changes,
        [change(0, Some(Rate::from_mbps(5.0))), change(1, None)]
    );
    // Both directions draw the same values; unless the way back has its own delay, or the change is
    // not of delays.
    let both = parse(&step.replace("'200ms'", "'200ms..400ms'"))
        .draw(1)
        .changes;
    assert_eq!(both[0].delay, both[1].delay);
    let own = parse(&format!("{step}\n[return]\ndelay='20ms'")).draw(1);
    assert_eq!(own.changes.len(), 1);
    assert_eq!(
        parse(&step.replace("delay='200ms'\n", ""))
            .draw(1)
            .changes
            .len(),
        1
    );
}

/// Times between changes and the new values are drawn each time, uniformly over their range.
#[test]
fn recurring_changes_are_drawn_each_time() {
    let text = "schema=1\nname='x'\nseconds=60\n[bottleneck]\nrate='5Mbps'\n\
        [[every]]\ngap='1s..50s'\nrate='1Mbps..10Mbps'\ndelay='5ms..25ms'\nstart='3s'\nstop='900000s'";
    let scenario = parse(text);
    assert_eq!(
        scenario.varies(),
        ["every.0.delay", "every.0.gap", "every.0.rate"]
    );
    let network = scenario.draw_for(7, Duration::from_secs_f64(49_000.0));
    let there: Vec<&Change> = network.changes.iter().filter(|c| c.link == 0).collect();
    let back: Vec<&Change> = network.changes.iter().filter(|c| c.link == 1).collect();
    assert_eq!(there.len(), back.len());
    assert!(
        there
            .iter()
            .zip(&back)
            .all(|(a, b)| (a.at, a.delay, None) == (b.at, b.delay, b.rate))
    );
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut times = vec![3.0];
    times.extend(there.iter().map(|c| c.at.as_secs_f64()));
    let gaps: Vec<f64> = times.windows(2).map(|t| t[1] - t[0]).collect();
    assert!(gaps.iter().all(|g| (1.0..=50.0).contains(g)));
    // There are 1900 gaps with a standard deviation of 14.1; the mean's is 0.32.
    assert!((mean(&gaps) - 25.5).abs() < 1.1, "{}", mean(&gaps));
    let rates: Vec<f64> = there.iter().map(|c| c.rate.unwrap().as_mbps()).collect();
    assert!((mean(&rates) - 5.5).abs() < 0.2, "{}", mean(&rates));
    assert!(rates.iter().all(|r| (1.0..=10.0).contains(r)));
    // A longer run begins like a shorter one.
    let short = scenario.draw(7).changes;
    assert_eq!(short, network.changes[..short.len()]);
    assert!(network.changes[short.len()].at >= Time::from_millis(60_000));
    let stopped = parse(&text.replace("900000s", "30s")).draw_for(7, Duration::from_secs_f64(4e4));
    assert!(
        stopped
            .changes
            .iter()
            .all(|c| c.at < Time::from_millis(30_000))
    );
    assert_eq!(scenario.longest(), Duration::from_secs_f64(50_000.0));
}

#[test]
fn each_visit_of_a_flow_is_a_new_flow() {
    let scenario = parse(
        "schema=1\nname='x'\nseconds=600\n[bottleneck]\nrate='5Mbps'\n\
         [[flow]]\ncount=2\nstart='1s'\npresent='1s..50s'\nabsent='2s..4s'\nbytes='1kB..9MB'\n[[flow]]",
    );
    assert_eq!(scenario.flows(), 3);
    assert!(scenario.varies().contains(&"flow.0.present".to_owned()));
    let flows = scenario.draw(3).flows;
    let second = flows[1..]
        .iter()
        .position(|f| f.start == flows[0].start)
        .unwrap()
        + 1;
    let (first, rest) = flows.split_at(second);
    let (second, last) = rest.split_at(rest.len() - 1);
    assert_eq!((last[0].start, last[0].stop), (Time::ZERO, None));
    assert_ne!(first[0].stop, second[0].stop); // each flow of a count draws for itself
    for visits in [first, second] {
        // A visit takes 30 s on average, over 599 s.
        assert!((12..40).contains(&visits.len()), "{}", visits.len());
        assert_eq!(visits[0].start, Time::from_millis(1000));
        assert!(visits.last().unwrap().start < Time::from_millis(600_000));
        assert_ne!(visits[0].source, visits[1].source);
        for (a, b) in visits.iter().zip(&visits[1..]) {
            let present = a.stop.unwrap().since(a.start).as_secs_f64();
            let absent = b.start.since(a.stop.unwrap()).as_secs_f64();
            assert!((1.0..=50.0).contains(&present) && (2.0..=4.0).contains(&absent));
        }
    }
    // No visit begins after the entry's own stop.
    let stops = parse(
        &scenario
            .text()
            .replace("start='1s'", "start='1s'\nstop='100s'"),
    );
    let stop = Time::from_millis(100_000);
    let flows = stops.draw(3).flows;
    assert!(
        flows
            .iter()
            .all(|f| f.start < stop && f.stop.is_none_or(|s| s <= stop))
    );
}
