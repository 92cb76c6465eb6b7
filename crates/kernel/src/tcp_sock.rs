//! A socket's fields as the kernel has them, and the BPF program's record of them.

use headway_cc::{Bytes, Control, Feedback, RateSample, Recovery, Time};
use headway_policy::Record;

/// From `TCP_CA_CWR` on the kernel reduces the window.
pub(crate) const TCP_CA_CWR: u8 = 2;
/// From `TCP_CA_Recovery` on the kernel repairs losses.
pub(crate) const TCP_CA_RECOVERY: u8 = 3;
const TCP_CA_LOSS: u8 = 4;

/// What the BPF program reads of a socket, in the kernel's units, and what it stores for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the kernel's names")]
pub struct TcpSock {
    pub snd_cwnd: u32,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub data_segs_out: u32,
    pub total_retrans: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
    pub rate_delivered: u32,
    pub rate_interval_us: u32,
    /// The largest payload of a packet, without headers.
    pub mss_cache: u32,
    pub tcp_header_len: u16,
    /// The pacing rate in bytes a second; all ones without pacing.
    pub sk_pacing_rate: u64,
    pub app_limited: u32,
    pub is_cwnd_limited: bool,
    pub icsk_ca_state: u8,
    /// `ack_sample->rtt_us`: negative without a sample.
    pub rtt_us: i32,
    /// The smoothed RTT times 8, as in the kernel. The program stores it.
    pub srtt_us: u32,
    /// The mean deviation of the RTT times 4, as in the kernel. The program stores it.
    pub mdev_us: u32,
    /// The minimum RTT, zero without a sample. The program stores it.
    pub min_rtt_us: u32,
}

impl TcpSock {
    /// No pacing: the kernel's `~0UL`.
    pub const UNPACED: u64 = u64::MAX;
    /// The size of IPv4's header.
    const IP_HEADER: u32 = 20;

    /// A socket that sends packets of `mss` on the wire.
    pub fn new(mss: Bytes) -> TcpSock {
        let tcp_header_len = 32;
        TcpSock {
            mss_cache: mss.get() as u32 - u32::from(tcp_header_len) - TcpSock::IP_HEADER,
            tcp_header_len,
            sk_pacing_rate: TcpSock::UNPACED,
            rtt_us: -1,
            ..TcpSock::default()
        }
    }

    /// Adds an RTT sample to the program's statistics (RFC 6298 in whole numbers, as
    /// `tcp_rtt_estimator()` does).
    pub fn sample_rtt(&mut self, rtt_us: i32) {
        self.rtt_us = rtt_us;
        let Ok(sample @ 1..) = u32::try_from(rtt_us) else {
            return;
        };
        if self.srtt_us == 0 {
            (self.srtt_us, self.mdev_us, self.min_rtt_us) = (sample << 3, sample << 1, sample);
            return;
        }
        let error = i64::from(sample) - i64::from(self.srtt_us >> 3);
        self.mdev_us =
            (i64::from(self.mdev_us) + error.abs() - i64::from(self.mdev_us >> 2)) as u32;
        self.srtt_us = (i64::from(self.srtt_us) + error) as u32;
        self.min_rtt_us = self.min_rtt_us.min(sample);
    }

    /// `tcp_packets_in_flight()`
    pub(crate) fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// The program's record. `acks` is zero at a timeout.
    pub fn record(&self, now_ns: u64, acks: u32) -> Record {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        Record {
            now_ns,
            pacing_rate: match self.sk_pacing_rate {
                TcpSock::UNPACED => 0,
                rate => rate,
            },
            sent: self.data_segs_out,
            retransmitted: self.total_retrans,
            delivered: self.delivered,
            delivered_ce: self.delivered_ce,
            lost: self.lost,
            in_flight: self.in_flight(),
            cwnd: self.snd_cwnd,
            mss: self.mss_cache + u32::from(self.tcp_header_len) + TcpSock::IP_HEADER,
            rtt_us: self.rtt_us.max(0) as u32,
            srtt_us: self.srtt_us >> 3,
            rttvar_us: self.mdev_us >> 2,
            min_rtt_us: self.min_rtt_us,
            rate_delivered: self.rate_delivered,
            rate_interval_us: self.rate_interval_us,
            acks,
            // Only a program over BBR fills in BBR's model of the path.
            btlbw: 0,
            rtprop_us: 0,
            pacing_gain: 0,
            cwnd_gain: 0,
            flags: flag(self.app_limited != 0, Record::APP_LIMITED)
                | flag(self.is_cwnd_limited, Record::CWND_LIMITED)
                | flag(self.icsk_ca_state >= TCP_CA_RECOVERY, Record::RECOVERING),
        }
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, retransmission: bool) {
        match retransmission {
            true => self.retrans_out += 1,
            false => self.packets_out += 1,
        }
        self.data_segs_out = self.data_segs_out.wrapping_add(1);
        self.total_retrans = self.total_retrans.wrapping_add(u32::from(retransmission));
    }

    /// Updates the fields at an acknowledgement from a transport's feedback. The kernel has times
    /// in whole microseconds.
    pub fn on_feedback(&mut self, feedback: &Feedback<'_>, mss: Bytes) {
        let packets = |bytes: Bytes| (bytes.get() / mss.get()) as u32;
        self.delivered = self.delivered.wrapping_add(packets(feedback.acked_bytes));
        self.delivered_ce = packets(feedback.counters.ce);
        self.lost = self.lost.wrapping_add(packets(feedback.lost_bytes));
        // A transport reports all that is in flight at once.
        self.packets_out = packets(feedback.in_flight);
        (self.sacked_out, self.lost_out, self.retrans_out) = (0, 0, 0);
        self.app_limited = u32::from(feedback.app_limited);
        self.is_cwnd_limited = feedback.cwnd_limited;
        self.icsk_ca_state = match feedback.recovery {
            Recovery::Open => 0,
            Recovery::Disorder => 1,
            Recovery::Cwr => TCP_CA_CWR,
            Recovery::Recovery => TCP_CA_RECOVERY,
            Recovery::Loss => TCP_CA_LOSS,
        };
        let since = |span: headway_cc::Duration| {
            let now = feedback.now.as_nanos();
            (now / 1000 - now.saturating_sub(span.as_nanos()) / 1000) as u32
        };
        self.sample_rtt(feedback.rtt.map_or(-1, |rtt| since(rtt).max(1) as i32));
        if let Some(sample) = feedback.rate {
            self.sample_rate(&sample, packets(sample.delivered), since(sample.interval));
        }
    }

    /// `tcp_rate_gen()`: the newest sample, or one that the application limited if it is larger.
    fn sample_rate(&mut self, sample: &RateSample, delivered: u32, interval_us: u32) {
        let larger = u64::from(delivered) * u64::from(self.rate_interval_us)
            >= u64::from(self.rate_delivered) * u64::from(interval_us);
        if !sample.app_limited || larger {
            (self.rate_delivered, self.rate_interval_us) = (delivered, interval_us);
        }
    }

    /// The retransmission timer ran out. All packets in flight are marked as lost.
    pub fn on_rto(&mut self) {
        self.lost = self.lost.wrapping_add(self.in_flight());
        (self.packets_out, self.retrans_out, self.app_limited) = (0, 0, 0);
        (self.sacked_out, self.lost_out) = (0, 0);
        (self.is_cwnd_limited, self.icsk_ca_state, self.rtt_us) = (false, TCP_CA_LOSS, -1);
    }

    /// Sets what the base controller allows.
    pub fn allow(&mut self, control: &Control, mss: Bytes) {
        let cwnd = control.cwnd.get() / mss.get();
        self.snd_cwnd = u32::try_from(cwnd).unwrap_or(u32::MAX);
        self.sk_pacing_rate = control
            .pacing_rate
            .map_or(TcpSock::UNPACED, |rate| rate.as_bps() / 8);
    }

    /// The time on the program's clock.
    pub fn now_ns(now: Time) -> u64 {
        now.as_nanos()
    }
}
