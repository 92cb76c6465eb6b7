//! The qlog of one flow's sender.

use std::io;

use headway_cc::{Bytes, Recovery, Time};
use headway_net::transport::Sender;
use headway_net::{Ack, Body, Packet};
use headway_record::recording::{Cause, File, Metrics, Qlog};
use headway_scenario::{Network, Transport};

#[derive(Debug)]
pub(super) struct FlowLog {
    log: Qlog<File>,
    packet_size: Bytes,
    ack_size: Bytes,
    transport: Transport,
    watches: bool,
}

impl FlowLog {
    pub(super) fn new(file: File, network: &Network, title: &str) -> io::Result<FlowLog> {
        Ok(FlowLog {
            log: Qlog::new(file, title)?,
            packet_size: network.packet_size,
            ack_size: network.ack_size,
            transport: network.transport,
            watches: false,
        })
    }

    pub(super) fn data_sent(&mut self, now: Time, packet: &Packet) -> io::Result<()> {
        let Body::Data(segment) = &packet.body else {
            return Ok(());
        };
        let offset = segment.seq * self.packet_size.get();
        self.log
            .packet_sent(now, segment.number, offset, packet.size())
    }

    pub(super) fn on_sender(
        &mut self,
        now: Time,
        ack: Option<&Ack>,
        sender: &mut Sender,
    ) -> io::Result<()> {
        if !self.watches {
            // Nothing is sent before this: a timer starts the sender.
            sender.keep_losses();
            self.watches = true;
        }
        if let Some(ack) = ack {
            self.log.ack_received(now, &ranges(ack), self.ack_size)?;
        }
        let timed_out = sender.recovery() == Recovery::Loss && sender.in_flight() == Bytes::ZERO;
        let cause = match self.transport {
            _ if ack.is_none() && timed_out => Cause::PtoExpired,
            Transport::Simple => Cause::ReorderingThreshold,
            Transport::Linux => Cause::TimeThreshold,
        };
        for lost in sender.take_losses() {
            self.log.packet_lost(now, lost.number, cause)?;
        }
        let ssthresh = self.ssthresh(sender);
        let window = sender.control().cwnd;
        let state = match (sender.recovery(), ssthresh) {
            (Recovery::Recovery, _) => "recovery",
            (Recovery::Loss, _) => "loss",
            (Recovery::Cwr, _) => "cwr",
            (Recovery::Open | Recovery::Disorder, None) => "open",
            (_, Some(ssthresh)) if window < ssthresh => "slow_start",
            (_, Some(_)) => "congestion_avoidance",
        };
        self.log.congestion_state(now, state)?;
        let rtt = sender.rtt_stats();
        let has_rtt = !rtt.smoothed.is_zero();
        self.log.metrics(
            now,
            Metrics {
                smoothed_rtt: has_rtt.then_some(rtt.smoothed),
                latest_rtt: has_rtt.then_some(rtt.latest),
                min_rtt: has_rtt.then_some(rtt.min),
                congestion_window: Some(window).filter(|&w| w != Bytes::MAX),
                bytes_in_flight: Some(sender.in_flight()),
                ssthresh: ssthresh.filter(|&s| s != Bytes::MAX),
                pacing_rate: sender.control().pacing_rate,
            },
        )
    }

    /// The slow-start threshold, if the controller reports one; [`Bytes::MAX`] if slow start has
    /// not ended yet.
    fn ssthresh(&self, sender: &Sender) -> Option<Bytes> {
        let bytes = sender.named_value("ssthresh_bytes").map(Bytes::from_f64);
        bytes.or_else(|| {
            let packets = sender.named_value("ssthresh_packets")?;
            Some(self.packet_size.mul_f64(packets))
        })
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.log.finish()
    }
}

/// The packets that an acknowledgement covers, as ranges from the first to the last of each, in
/// order.
fn ranges(ack: &Ack) -> Vec<[u64; 2]> {
    let mut ranges = vec![[ack.number; 2]];
    let earlier = (0..64).filter(|i| ack.earlier >> i & 1 == 1);
    for number in earlier.filter_map(|i| ack.number.checked_sub(1 + i)) {
        match ranges.last_mut() {
            Some(range) if range[0] == number + 1 => range[0] = number,
            _ => ranges.push([number; 2]),
        }
    }
    ranges.reverse();
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_cc::Ecn;

    #[test]
    fn an_acknowledgement_becomes_ranges() {
        let ack = |number, earlier| Ack {
            number,
            earlier,
            cumulative: 0,
            received: Time::ZERO,
            echo: 0.0,
            window: 0,
            message: Ack::NO_MESSAGE,
            ecn: Ecn::NotEct,
        };
        assert_eq!(ranges(&ack(0, 0)), [[0, 0]]);
        assert_eq!(ranges(&ack(9, 0b1101)), [[5, 6], [8, 9]]);
        assert_eq!(ranges(&ack(100, 1 << 63)), [[36, 36], [100, 100]]);
    }
}
