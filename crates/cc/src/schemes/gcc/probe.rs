//! Probes: short trains of packets at a higher rate, which quickly measure what a path can carry
//! (`probe_controller.cc`, `bitrate_prober.cc`, `probe_bitrate_estimator.cc`).

use std::collections::VecDeque;

use super::arrival::ms;
use super::feedback::Reported;
use crate::{Bytes, Duration, Time};

const FIRST_SCALE: f64 = 3.0;
const SECOND_SCALE: f64 = 6.0;
const FURTHER_SCALE: f64 = 2.0;
/// A result above this share of the last probe starts another.
const FURTHER_THRESHOLD: f64 = 0.7;
const RESULT_TIMEOUT: Duration = Duration::from_millis(1000);
const MIN_PACKETS: u32 = 5;
const MIN_DURATION: Duration = Duration::from_millis(15);
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(5);

/// The train of a packet, and the smallest size of the train in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Train {
    pub(super) id: u32,
    pub(super) min_bytes: f32,
}

/// A train that will be sent.
#[derive(Debug)]
struct Cluster {
    train: Train,
    rate: f64,
    created: Time,
    packets: u32,
    bytes: f64,
}

/// Decides when to probe, and sends the trains.
#[derive(Debug)]
pub(super) struct Prober {
    max_rate: f64,
    clusters: VecDeque<Cluster>,
    next_id: u32,
    /// The result above which another probe starts, and when the last began.
    waiting: Option<(f64, Time)>,
}

impl Prober {
    /// A prober that begins with three and six times the start rate.
    pub(super) fn new(now: Time, start_rate: f64, max_rate: f64) -> Prober {
        let mut prober = Prober {
            max_rate,
            clusters: VecDeque::new(),
            next_id: 0,
            waiting: None,
        };
        prober.probe(now, &[FIRST_SCALE * start_rate, SECOND_SCALE * start_rate]);
        prober
    }

    fn probe(&mut self, now: Time, rates: &[f64]) {
        while self
            .clusters
            .front()
            .is_some_and(|c| now.since(c.created) > CLUSTER_TIMEOUT)
        {
            self.clusters.pop_front();
        }
        self.waiting = None;
        for &rate in rates {
            let further = rate <= self.max_rate;
            let rate = rate.min(self.max_rate);
            self.clusters.push_back(Cluster {
                train: Train {
                    id: self.next_id,
                    min_bytes: (rate * MIN_DURATION.as_secs_f64() / 8.0) as f32,
                },
                rate,
                created: now,
                packets: 0,
                bytes: 0.0,
            });
            self.next_id = self.next_id.wrapping_add(1);
            self.waiting = further.then_some((FURTHER_THRESHOLD * rate, now));
        }
    }

    /// The rate of sending while a train is being sent.
    pub(super) fn rate(&self) -> Option<f64> {
        self.clusters.front().map(|c| c.rate)
    }

    /// A packet is sent. Returns its train, if it is part of one.
    pub(super) fn on_sent(&mut self, size: Bytes) -> Option<Train> {
        let cluster = self.clusters.front_mut()?;
        cluster.packets += 1;
        cluster.bytes += size.as_f64();
        let train = cluster.train;
        if cluster.packets >= MIN_PACKETS && cluster.bytes >= f64::from(train.min_bytes) {
            self.clusters.pop_front();
        }
        Some(train)
    }

    /// The target rate has changed to `rate`.
    pub(super) fn on_target(&mut self, now: Time, rate: f64) {
        if let Some((threshold, _)) = self.waiting
            && rate > threshold
        {
            self.probe(now, &[FURTHER_SCALE * rate]);
        }
    }

    /// Updates the state as time passes.
    pub(super) fn process(&mut self, now: Time) {
        self.waiting
            .take_if(|(_, began)| now.since(*began) > RESULT_TIMEOUT);
    }
}

/// The packets of a train that have arrived.
#[derive(Debug)]
struct Received {
    train: Train,
    packets: u32,
    bytes: f64,
    first_sent: f64,
    last_sent: f64,
    last_sent_bytes: f64,
    first_received: f64,
    first_received_bytes: f64,
    last_received: f64,
}

/// Computes rates from trains that have arrived.
#[derive(Debug, Default)]
pub(super) struct ProbeEstimator {
    trains: Vec<Received>,
}

impl ProbeEstimator {
    /// The share of a train's packets and bytes that must have arrived.
    const MIN_RECEIVED: f64 = 0.8;
    const MAX_INTERVAL_MS: f64 = 1000.0;
    /// The largest ratio of the arrival rate to the sending rate.
    const MAX_VALID_RATIO: f64 = 2.0;
    /// Below this share of the sending rate the link was full, so the result is lowered a little.
    const UNSATURATED_RATIO: f64 = 0.9;
    const TARGET_UTILISATION: f64 = 0.95;

    /// Adds a packet of `train`. Returns the measured rate once enough of the train has arrived.
    pub(super) fn on_packet(&mut self, train: Train, packet: &Reported) -> Option<f64> {
        let (sent, received) = (ms(packet.sent), ms(packet.received));
        let bytes = packet.size.as_f64();
        self.trains.retain(|t| {
            t.train.id == train.id || t.last_received + Self::MAX_INTERVAL_MS >= received
        });
        let index = self.trains.iter().position(|t| t.train.id == train.id);
        let index = index.unwrap_or_else(|| {
            self.trains.push(Received {
                train,
                packets: 0,
                bytes: 0.0,
                first_sent: sent,
                last_sent: sent,
                last_sent_bytes: bytes,
                first_received: received,
                first_received_bytes: bytes,
                last_received: received,
            });
            self.trains.len() - 1
        });
        let train = &mut self.trains[index];
        train.packets += 1;
        train.bytes += bytes;
        train.first_sent = train.first_sent.min(sent);
        if sent > train.last_sent {
            (train.last_sent, train.last_sent_bytes) = (sent, bytes);
        }
        if received < train.first_received {
            (train.first_received, train.first_received_bytes) = (received, bytes);
        }
        train.last_received = train.last_received.max(received);
        train.rate()
    }
}

impl Received {
    /// The smaller of the rates of sending and of arrival.
    fn rate(&self) -> Option<f64> {
        let enough = f64::from(self.packets)
            >= ProbeEstimator::MIN_RECEIVED * f64::from(MIN_PACKETS)
            && self.bytes >= ProbeEstimator::MIN_RECEIVED * f64::from(self.train.min_bytes);
        let sent_in = self.last_sent - self.first_sent;
        let received_in = self.last_received - self.first_received;
        let is_valid = |ms: f64| ms > 0.0 && ms <= ProbeEstimator::MAX_INTERVAL_MS;
        if !enough || !is_valid(sent_in) || !is_valid(received_in) {
            return None;
        }
        // The intervals contain neither the last packet's sending nor the first's arrival.
        let send_rate = 8e3 * (self.bytes - self.last_sent_bytes) / sent_in;
        let receive_rate = 8e3 * (self.bytes - self.first_received_bytes) / received_in;
        if receive_rate > ProbeEstimator::MAX_VALID_RATIO * send_rate {
            return None;
        }
        Some(
            if receive_rate < ProbeEstimator::UNSATURATED_RATIO * send_rate {
                ProbeEstimator::TARGET_UTILISATION * receive_rate
            } else {
                send_rate.min(receive_rate)
            },
        )
    }
}
