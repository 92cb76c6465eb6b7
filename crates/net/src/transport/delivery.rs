//! Delivery-rate estimation (draft-cheng-iccrg-delivery-rate-estimation-02).

use headway_cc::{Bytes, Duration, RateSample, Time};

use super::flight::Entry;

/// The connection's state for stamping packets and taking samples.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Bytes acknowledged so far.
    pub(super) delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    /// Samples of packets sent before `delivered` passes this mark are application-limited.
    app_limited_until: u64,
    newest: Option<Newest>,
}

/// The packet that was sent last, among those of this acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Newest {
    delivered: u64,
    delivered_time: Time,
    send_elapsed: Duration,
    lost_before: u64,
    tx_in_flight: u32,
    app_limited: bool,
}

/// The stamp that a packet gets as it leaves (§3.2).
pub(super) struct DeliveryStamp {
    pub(super) delivered: u64,
    pub(super) delivered_time: Time,
    pub(super) first_sent: Time,
    pub(super) app_limited: bool,
}

impl Delivery {
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, nothing_in_flight: bool) -> DeliveryStamp {
        if nothing_in_flight {
            self.first_sent = now;
            self.delivered_time = now;
        }
        DeliveryStamp {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            app_limited: self.delivered < self.app_limited_until,
        }
    }

    /// The window is open, but there is nothing to send (§3.4).
    #[inline]
    pub(super) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered + in_flight.max(1);
    }

    #[inline]
    pub(super) fn is_app_limited(&self) -> bool {
        self.delivered < self.app_limited_until
    }

    /// This many bytes were acknowledged now.
    #[inline]
    pub(super) fn advance(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_time = now;
    }

    /// Adds one of the packets acknowledged now (§3.3).
    #[inline]
    pub(super) fn fold(&mut self, entry: &Entry) {
        if self.newest.is_none_or(|n| entry.delivered >= n.delivered) {
            self.newest = Some(Newest {
                delivered: entry.delivered,
                delivered_time: entry.delivered_time,
                send_elapsed: entry.sent.since(entry.first_sent),
                lost_before: entry.lost_before,
                tx_in_flight: entry.tx_in_flight,
                app_limited: entry.app_limited,
            });
            self.first_sent = entry.sent;
        }
    }

    /// The sample of the packets added since the last call. Call [`advance`](Self::advance) first.
    /// `None` if there were none, or if the interval is shorter than any round trip, which means
    /// ACK compression (§3.3).
    #[inline]
    pub(super) fn sample(&mut self, now: Time, min_rtt: Duration, lost: u64) -> Option<RateSample> {
        let p = self.newest.take()?;
        let ack_elapsed = now.since(p.delivered_time);
        let interval = p.send_elapsed.max(ack_elapsed);
        if interval < min_rtt || interval.is_zero() {
            return None;
        }
        Some(RateSample {
            delivered: Bytes::new(self.delivered - p.delivered),
            interval,
            prior_delivered: Bytes::new(p.delivered),
            app_limited: p.app_limited,
            tx_in_flight: Bytes::new(u64::from(p.tx_in_flight)),
            lost: Bytes::new(lost.saturating_sub(p.lost_before)),
        })
    }
}
