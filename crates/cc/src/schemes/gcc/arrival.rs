//! Groups of packets, and how much longer each group takes than the one before
//! (draft-ietf-rmcat-gcc-02 §5.2 and §5.3; `inter_arrival.cc`). Times are exact, as in its
//! successor `inter_arrival_delta.cc`. With whole milliseconds two packets of one millisecond would
//! be a burst.

use crate::Time;

/// The time in which packets of a group are sent.
const GROUP_LENGTH_MS: f64 = 5.0;
/// The time within which packets arrive in a burst and join the group.
const BURST_DELTA_MS: f64 = 5.0;
const MAX_BURST_MS: f64 = 100.0;
/// A jump of the receiver's clock by more than this means that the clock was set.
const CLOCK_JUMP_MS: f64 = 3000.0;
const REORDERED_GROUPS: u32 = 3;

/// A time in milliseconds, as WebRTC uses it.
pub(super) fn ms(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: f64,
    last_sent: f64,
    first_arrival: f64,
    last_arrival: f64,
    reported: f64,
}

/// The difference between a group and the one before, in sending and in arriving, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deltas {
    pub(super) send: f64,
    pub(super) arrival: f64,
}

/// Puts packets into groups.
#[derive(Debug, Default)]
pub(super) struct InterArrival {
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u32,
}

impl InterArrival {
    /// Adds a packet with the times of sending and arrival, reported at `now`. If it begins a
    /// group, returns the difference of the two groups before.
    pub(super) fn on_packet(&mut self, sent: f64, arrival: f64, now: f64) -> Option<Deltas> {
        let fresh = Group {
            first_sent: sent,
            last_sent: sent,
            first_arrival: arrival,
            last_arrival: arrival,
            reported: now,
        };
        let Some(group) = &mut self.current else {
            self.current = Some(fresh);
            return None;
        };
        if sent < group.first_sent {
            return None;
        }
        if is_burst(group, sent, arrival) || sent - group.first_sent <= GROUP_LENGTH_MS {
            group.last_sent = group.last_sent.max(sent);
            group.last_arrival = arrival;
            group.reported = now;
            return None;
        }
        let mut deltas = None;
        if let Some(previous) = &self.previous {
            let between = Deltas {
                send: group.last_sent - previous.last_sent,
                arrival: group.last_arrival - previous.last_arrival,
            };
            if between.arrival - (group.reported - previous.reported) >= CLOCK_JUMP_MS {
                *self = InterArrival::default();
                return None;
            }
            if between.arrival < 0.0 {
                self.reordered += 1;
                if self.reordered >= REORDERED_GROUPS {
                    *self = InterArrival::default();
                }
                return None;
            }
            self.reordered = 0;
            deltas = Some(between);
        }
        self.previous = self.current.replace(fresh);
        deltas
    }
}

/// §5.2: does the packet arrive within 5 ms of the group, in less time after it than it was sent?
fn is_burst(group: &Group, sent: f64, arrival: f64) -> bool {
    let send_delta = sent - group.last_sent;
    let arrival_delta = arrival - group.last_arrival;
    send_delta == 0.0
        || (arrival_delta < send_delta
            && arrival_delta <= BURST_DELTA_MS
            && arrival - group.first_arrival < MAX_BURST_MS)
}
