//! How fast the two ends of a flow are over loopback, and what they cost:
//! `cargo run --release -p headway-emu --example hosts -- SCHEME [SECONDS]`, such as
//! `udp-fixed-rate:rate=100Mbps` or `kernel-cubic`.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use headway_cc::{Bytes, Duration, Registry, Time, schemes};
use headway_emu::host::{Driver, receiver, sender};
use headway_emu::sys::Clock;
use headway_net::transport::Profile;
use headway_scenario::Source;
use headway_world::FlowPlan;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let scheme = args.next().unwrap_or_else(|| "udp-cubic".to_owned());
    let seconds: f64 = args.next().map_or(Ok(5.0), |text| text.parse())?;
    let driver = Driver::parse(&scheme, &Registry::new(schemes::SCHEMES))?;
    let plan = FlowPlan {
        flow: 0,
        packet_size: Bytes::new(1500),
        ack_size: Bytes::new(40),
        profile: Profile::Linux,
        start: Time::ZERO,
        stop: Time::from_secs_f64(seconds),
        measured_from: Time::ZERO,
        bin: Some(Duration::from_millis(100)),
        data: Source::Bulk,
        receive_window: None,
        seed: 1,
    };
    let from: SocketAddr = "127.0.77.1:5300".parse()?;
    let to: SocketAddr = "127.0.77.2:5300".parse()?;
    let receiver = receiver(&plan, &driver, to, from)?;
    let sender = sender(&plan, &driver, from, to)?;
    let (clock, over) = (Clock::start(), AtomicBool::new(false));
    let (sent, received) = thread::scope(|scope| {
        let receiver = scope.spawn(|| receiver.run(clock, &over));
        let sent = scope.spawn(|| sender.run(clock, &over)).join();
        over.store(true, Ordering::Relaxed);
        (sent, receiver.join())
    });
    let sent = sent.map_err(|_| "the sender panicked")??;
    let received = received.map_err(|_| "the receiver panicked")??;
    let gigabytes = received.received.as_f64() / 1e9;
    println!("{scheme} for {seconds} s over loopback");
    println!("  received {:.1} Mbit/s", gigabytes * 8e3 / seconds);
    for (end, cpu) in [("sender", sent.cpu), ("receiver", received.cpu)] {
        let cpu = cpu.as_secs_f64();
        let (share, each) = (100.0 * cpu / seconds, cpu / gigabytes);
        println!("  {end}: {share:.0}% of a core, {each:.1} CPU s/GB");
    }
    println!("  lost {:?} of {:?}", sent.lost, sent.sent);
    let late_us = |p| 1e3 * sent.lateness.percentile_ms(p).unwrap_or_default();
    println!(
        "  timers late by p50 {:.0} us, p99 {:.0} us",
        late_us(0.5),
        late_us(0.99)
    );
    println!("  sender's socket {:?}", sent.failures);
    println!("  receiver's socket {:?}", received.failures);
    Ok(())
}
