//! One model for all controllers, which turns bytes into a causally consistent sequence of a flow's
//! events.

use super::{Host, MSS};
use crate::{CongestionControl, Duration, Ecn, NetworkView, Receiver, Time};

/// The most packets in flight. More would only slow the test down.
const MAX_FLIGHT: usize = 2048;

/// Runs a flow of `cc`, and of its `half` at the receiver if it has one, through the events of
/// `script`. Each has two bytes: the kind and the amount. Any bytes are valid. A [`Host`] checks
/// the invariants after every event.
///
/// # Panics
/// If the controller panics or breaks an invariant.
pub fn drive(cc: Box<dyn CongestionControl>, half: Option<Box<dyn Receiver>>, script: &[u8]) {
    let mut host = Host::new(cc, MSS).with_receiver(half);
    for event in script.chunks_exact(2) {
        step(&mut host, event[0], event[1]);
    }
}

fn step(host: &mut Host, what: u8, much: u8) {
    let many = usize::from(much % 64) + 1;
    match what % 21 {
        // The usual case: the window is sent, and some of it is acknowledged a little later.
        0..=2 => fill(host, usize::from(much) * 4),
        3..=5 => {
            pass(host, 10 + u32::from(much % 18));
            let acked = oldest(host, many);
            host.feedback(&acked, &[], Ecn::Ect0, |_| {});
        }
        // Gaps between acknowledgements are lost at once, or never reported.
        6 => {
            pass(host, 10);
            let some = oldest(host, many);
            let (lost, acked) = some.split_at(usize::from(much >> 6).min(some.len()));
            host.feedback(acked, lost, Ecn::NotEct, |_| {});
        }
        7 => {
            pass(host, 10);
            let newest: Vec<u64> = oldest(host, MAX_FLIGHT)
                .into_iter()
                .rev()
                .take(many)
                .collect();
            host.feedback(&newest, &[], Ecn::NotEct, |_| {});
        }
        8 => {
            let lost = oldest(host, many);
            host.feedback(&[], &lost, Ecn::NotEct, |_| {});
        }
        9 => {
            pass(host, u32::from(much % 36));
            host.time_out();
        }
        10 => {
            pass(host, 12);
            let acked = oldest(host, many);
            host.feedback(&acked, &[], Ecn::Ce, |_| {});
        }
        11 => {
            pass(host, 10);
            let acked = oldest(host, many);
            host.feedback(&acked, &[], Ecn::NotEct, |f| {
                f.undo = f.congestion.is_none()
            });
        }
        // Nothing is acknowledged for a nanosecond to a minute.
        12 => pass(host, u32::from(much % 37)),
        // Arrivals in no time, samples that are useless or missing, digests without packets.
        13 => {
            if much.is_multiple_of(2) {
                pass(host, 10);
            }
            let acked = oldest(host, many);
            host.feedback(&acked, &[], Ecn::NotEct, |f| match much >> 6 {
                0 => f.rate.iter_mut().for_each(|r| r.interval = Duration::ZERO),
                1 => f.rate = None,
                2 => (f.rtt, f.rate) = (None, None),
                _ => (f.acked, f.lost) = (&[], &[]),
            });
        }
        14 => host.app_limited = !host.app_limited,
        // Routers mark packets: accelerate, brake.
        15 => {
            pass(host, 12);
            let acked = oldest(host, many);
            let ecn = if much >> 6 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
            host.feedback(&acked, &[], ecn, |_| {});
        }
        // Routers write anything into the headers from now on.
        16 => {
            const WRITTEN: [f32; 7] = [0.0, 1e-3, -1e-3, 1e9, -1e9, f32::NAN, f32::NEG_INFINITY];
            host.written = WRITTEN.get(usize::from(much % 8)).copied();
        }
        // The receiver's clock jumps, or its times are no longer reported.
        17 => {
            let ahead = Duration::from_nanos(1 << (much % 45));
            host.clock_ahead = (much < 192).then_some(ahead);
        }
        // A message comes that the receiver's half did not send.
        18 => {
            let message: Vec<u8> = (0..many as u8).map(|i| much.wrapping_mul(i)).collect();
            let acked = oldest(host, usize::from(much % 3));
            host.pretend_message(&message);
            host.feedback(&acked, &[], Ecn::NotEct, |_| {});
        }
        // Packets that were taken for lost arrive, alone or with others.
        19 => {
            pass(host, 10);
            let mut acked: Vec<u64> = host.late().take(many).collect();
            if much.is_multiple_of(2) {
                acked.extend(oldest(host, many));
            }
            host.feedback(&acked, &[], Ecn::NotEct, |f| {
                f.undo = much > 127 && f.congestion.is_none()
            });
        }
        // A probe beyond the window, or a report of the network's switches.
        _ => {
            if host.flight().count() < MAX_FLIGHT {
                host.send();
            }
            let share = f64::from(much) / 255.0;
            let view = NetworkView {
                pnc: 1e4 * share,
                pna: 1.0 - share,
                known: share,
                age: Duration::ZERO,
            };
            host.cc.on_network(host.now(), &view);
        }
    }
}

/// Sends what the window allows, up to `most` packets.
fn fill(host: &mut Host, most: usize) {
    let room = MAX_FLIGHT.saturating_sub(host.flight().count());
    for _ in 0..most.min(room) {
        if !host.may_send() {
            break;
        }
        host.send();
    }
}

/// Waits 2^`log` nanoseconds, but at least two microseconds for a signal to travel.
fn pass(host: &mut Host, log: u32) {
    let then: Time = host.now() + Duration::from_nanos(2_000 + (1 << log));
    host.wait_until(then);
}

fn oldest(host: &Host, most: usize) -> Vec<u64> {
    host.flight().take(most).collect()
}
