//! How much of a link flows use, and with which delays, judged in real time.

use headway_cc::Bytes;
use headway_emu::host::kernel;
use headway_net::queue::{Discipline, XcpParams};

use crate::hosts::{marking, run};

#[test]
#[ignore = "judges rates and delays in real time; make test-live runs it"]
fn the_kernels_controllers_fill_the_link() {
    let available = kernel::available();
    for name in ["reno", "cubic", "bbr"] {
        if !available.iter().any(|a| a == name) {
            println!("skipped: the kernel has no {name}");
            continue;
        }
        let run = run(&format!("kernel-{name}"), &Discipline::DropTail, 60);
        let used = run.utilisation();
        assert!((0.85..1.0).contains(&used), "{name}: {used}");
        assert_eq!(run.not_read, 0, "{name}");
        // The kernel takes for lost what the queue dropped, and a lost tail that it cannot know of.
        let lost = run.sent.lost.get() / 1500;
        let dropped = run.meter.dropped;
        assert!(
            lost <= dropped + 5 && dropped <= lost + 60,
            "{name}: {lost} of {dropped}"
        );
        assert!(run.received.received.get() < run.meter.delivered);
        assert_eq!(
            run.sent.meter.arrived_bytes(),
            0,
            "{name}: meters of delivery are the emulator's"
        );

        // RFC 6298's average over our samples is the kernel's own.
        let samples = run.meter.rtts.iter().map(|rtt| rtt.as_millis_f64());
        let least = samples.clone().fold(f64::MAX, f64::min);
        assert!((20.0..23.0).contains(&least), "{name}: {least} ms");
        let ours: Vec<f64> = samples
            .scan(None, |smoothed: &mut Option<f64>, rtt| {
                let next = smoothed.map_or(rtt, |s| s + (rtt - s) / 8.0);
                *smoothed = Some(next);
                Some(next)
            })
            .collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (ours, kernels) = (mean(&ours), mean(&run.smoothed_ms()));
        assert!(
            (ours / kernels - 1.0).abs() < 0.1,
            "{name}: {ours} ms, not {kernels} ms"
        );
    }
}

#[test]
#[ignore = "judges rates and delays in real time; make test-live runs it"]
fn our_transport_fills_the_link() {
    for scheme in ["udp-cubic", "udp-bbr", "copa"] {
        let run = run(scheme, &Discipline::DropTail, 60);
        let used = run.utilisation();
        assert!((0.85..1.0).contains(&used), "{scheme}: {used}");
        assert_eq!(run.not_read, 0, "{scheme}");
        assert_eq!(run.sent.failures, Default::default(), "{scheme}");
        assert_eq!(run.received.failures, Default::default(), "{scheme}");
        let lost = run.sent.lost.get() / 1500;
        let dropped = run.meter.dropped;
        assert!(
            lost.abs_diff(dropped) <= 60,
            "{scheme}: {lost} of {dropped}"
        );
        let least = run.smoothed_ms().into_iter().fold(f64::MAX, f64::min);
        assert!((20.0..24.0).contains(&least), "{scheme}: {least} ms");
    }
}

#[test]
#[ignore = "judges rates and delays in real time; make test-live runs it"]
fn marks_of_a_queue_reach_the_scheme() {
    let run = run("dctcp", &marking(), 200);
    assert!(run.meter.marked > 50, "{}", run.meter.marked);
    assert_eq!((run.meter.dropped, run.sent.lost), (0, Bytes::ZERO));
    let used = run.utilisation();
    assert!((0.85..1.0).contains(&used), "{used}");
}

/// XCP's sender grows only by what the router writes into its packets' header.
#[test]
#[ignore = "judges rates and delays in real time; make test-live runs it"]
fn a_router_speaks_to_its_senders() {
    let run = run("xcp", &Discipline::Xcp(XcpParams::default()), 200);
    let used = run.utilisation();
    assert!((0.85..1.0).contains(&used), "{used}");
    assert_eq!(run.meter.dropped, 0);
    // Without the router's feedback the queue would be full: 140 ms.
    let smoothed = run.smoothed_ms();
    let mean = smoothed.iter().sum::<f64>() / smoothed.len() as f64;
    assert!((20.0..30.0).contains(&mean), "{mean} ms");
}
