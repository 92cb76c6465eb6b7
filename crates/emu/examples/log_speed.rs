//! How fast the event log is: `cargo run --release -p headway-emu --example log_speed [FOLDER]`.
//!
//! Two million events of a full 1 Gbit/s link (each packet arrives, has its opportunity, departs
//! and is delivered) are handed over at once.

use std::path::PathBuf;

use headway_cc::{Duration, Ecn, Header, Time};
use headway_emu::emulator::Watch;
use headway_emu::log::{EventLog, LoggedLink};
use headway_emu::sys::{Clock, cpu_time};
use headway_net::{Body, LinkEvent, LinkEventKind, Packet, Segment};
use headway_record::recording::{File, LinkLog, LinkLogHead};

const PACKETS: u64 = 500_000;
const EACH: Duration = Duration::from_micros(12);

fn main() -> std::io::Result<()> {
    let folder = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let head = LinkLogHead {
        link: "up",
        source: "1000Mbps",
        queue: "infinite",
        command: "log_speed",
        rated_from: Time::ZERO,
    };
    let file = |name: &str| folder.join(format!("headway-log-speed.{name}"));
    let links = vec![LoggedLink {
        name: "up".to_owned(),
        log: Some(LinkLog::new(File::create(&file("up.log"))?, &head)?),
    }];
    let events = file("events.parquet");
    let clock = Clock::start();
    let mut log = EventLog::start(&events, links, &["far".to_owned()])?;
    for i in 0..PACKETS {
        let at = Time::ZERO + EACH * i;
        let packet = Packet {
            flow: (i % 3) as u32,
            size: 1500,
            hops_left: 0,
            ecn: Ecn::NotEct,
            arrived: at,
            body: Body::Data(Segment {
                number: i % 100,
                seq: i + 1,
                sent: at,
                queued: Duration::ZERO,
                header: Header::default(),
            }),
        };
        // The queueing delay varies.
        let wait = Duration::from_nanos(EACH.as_nanos() + i * 7919 % 3_000_000);
        let kinds = [
            LinkEventKind::Arrival(packet),
            LinkEventKind::Opportunity,
            LinkEventKind::Departure { packet, wait },
        ];
        for what in kinds {
            log.on_link_event(0, &LinkEvent { at, what });
        }
        let late = Duration::from_nanos(20_000 + i * 104_729 % 50_000);
        log.on_delivery(at + late, at, 0, &packet, &[]);
    }
    let (own_cpu, handed_over) = (cpu_time(), clock.now());
    let logged = log.finish();
    let (all, millions) = (clock.now(), logged.events as f64 / 1e6);
    let ns = |cpu: Duration| cpu.as_secs_f64() * 1e3 / millions;
    println!(
        "{millions:.2} M events; emulator's end {:.0} ns of CPU each, writer {:.0} ns; handed over in {:.2} s, written in {:.2} s ({:.2} M/s)",
        ns(own_cpu),
        ns(logged.cpu),
        handed_over.as_secs_f64(),
        all.as_secs_f64(),
        millions / all.as_secs_f64(),
    );
    println!("failure: {:?}", logged.failure);
    for name in ["up.log", "events.parquet"] {
        let bytes = std::fs::metadata(file(name))?.len() as f64;
        println!("{name}: {:.1} bytes an event", bytes / logged.events as f64);
        if std::env::args().nth(1).is_none() {
            std::fs::remove_file(file(name))?;
        }
    }
    Ok(())
}
