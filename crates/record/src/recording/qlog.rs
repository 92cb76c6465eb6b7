//! qlog 0.3, the last version that qvis reads: draft-ietf-quic-qlog-main-schema-05 and
//! draft-ietf-quic-qlog-quic-events-04, as a sequence of JSON texts (RFC 7464).

use std::io::{self, Write};

use headway_cc::{Bytes, Duration, Rate, Time};
use serde::Serialize;

/// The log of one flow at its sender. Our transport numbers packets as QUIC does, so QUIC's events
/// fit.
#[derive(Debug)]
pub struct Qlog<W: Write> {
    to: W,
    metrics: Metrics,
    state: &'static str,
    acks: u64,
}

/// The sender's metrics in `recovery:metrics_updated`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// The smoothed RTT; like the next two, `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// The newest sample.
    pub latest_rtt: Option<Duration>,
    /// The smallest sample.
    pub min_rtt: Option<Duration>,
    /// The window; `None` without a limit.
    pub congestion_window: Option<Bytes>,
    /// The data in flight.
    pub bytes_in_flight: Option<Bytes>,
    /// The slow-start threshold, if the scheme reports one.
    pub ssthresh: Option<Bytes>,
    /// The pacing rate of a paced sender.
    pub pacing_rate: Option<Rate>,
}

/// Why a packet is taken for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Three later packets arrived.
    ReorderingThreshold,
    /// A packet sent sufficiently later arrived.
    TimeThreshold,
    /// A timeout.
    PtoExpired,
}

#[derive(Serialize)]
struct Header<'a> {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: &'a str,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    title: &'a str,
    common_fields: CommonFields,
    vantage_point: VantagePoint,
}

#[derive(Serialize)]
struct CommonFields {
    time_format: &'static str,
    reference_time: f64,
    protocol_type: [&'static str; 1],
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    r#type: &'static str,
}

#[derive(Serialize)]
struct Event<'a> {
    /// The time in ms.
    time: f64,
    #[serde(flatten)]
    body: Body<'a>,
}

#[derive(Serialize)]
#[serde(tag = "name", content = "data")]
enum Body<'a> {
    #[serde(rename = "transport:packet_sent")]
    PacketSent(Packet<'a>),
    #[serde(rename = "transport:packet_received")]
    PacketReceived(Packet<'a>),
    #[serde(rename = "recovery:packet_lost")]
    PacketLost {
        header: PacketHeader,
        trigger: Cause,
    },
    #[serde(rename = "recovery:metrics_updated")]
    MetricsUpdated(Update),
    #[serde(rename = "recovery:congestion_state_updated")]
    CongestionStateUpdated {
        #[serde(skip_serializing_if = "str::is_empty")]
        old: &'static str,
        new: &'static str,
    },
}

#[derive(Serialize)]
struct Packet<'a> {
    header: PacketHeader,
    frames: [Frame<'a>; 1],
    raw: RawInfo,
}

#[derive(Serialize)]
struct PacketHeader {
    packet_type: &'static str,
    packet_number: u64,
}

impl PacketHeader {
    fn new(packet_number: u64) -> PacketHeader {
        PacketHeader {
            packet_type: "1RTT",
            packet_number,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum Frame<'a> {
    Stream {
        stream_id: u64,
        offset: u64,
        length: u64,
    },
    Ack {
        acked_ranges: &'a [[u64; 2]],
    },
}

#[derive(Serialize)]
struct RawInfo {
    length: u64,
}

#[derive(Serialize)]
struct Update {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
}

impl<W: Write> Qlog<W> {
    /// Begins a log with this title.
    ///
    /// # Errors
    /// If `to` cannot be written to. The same holds for the other methods.
    pub fn new(to: W, title: &str) -> io::Result<Qlog<W>> {
        let mut log = Qlog {
            to,
            metrics: Metrics::default(),
            state: "",
            acks: 0,
        };
        log.record(&Header {
            qlog_version: "0.3",
            qlog_format: "JSON-SEQ",
            title,
            trace: Trace {
                title,
                common_fields: CommonFields {
                    time_format: "relative",
                    reference_time: 0.0,
                    protocol_type: ["QUIC"],
                },
                vantage_point: VantagePoint {
                    name: "sender",
                    r#type: "server",
                },
            },
        })?;
        Ok(log)
    }

    /// A packet leaves: it has `length` bytes on the wire, and carries the stream from `offset` on.
    pub fn packet_sent(
        &mut self,
        now: Time,
        number: u64,
        offset: u64,
        length: Bytes,
    ) -> io::Result<()> {
        let body = Body::PacketSent(Packet {
            header: PacketHeader::new(number),
            frames: [Frame::Stream {
                stream_id: 0,
                offset,
                length: length.get(),
            }],
            raw: RawInfo {
                length: length.get(),
            },
        });
        self.event(now, body)
    }

    /// An acknowledgement of `length` bytes arrives. It covers these packets, in ranges from the
    /// first to the last of each.
    pub fn ack_received(
        &mut self,
        now: Time,
        ranges: &[[u64; 2]],
        length: Bytes,
    ) -> io::Result<()> {
        let number = self.acks;
        self.acks += 1;
        let body = Body::PacketReceived(Packet {
            header: PacketHeader::new(number),
            frames: [Frame::Ack {
                acked_ranges: ranges,
            }],
            raw: RawInfo {
                length: length.get(),
            },
        });
        self.event(now, body)
    }

    /// A packet is taken for lost.
    pub fn packet_lost(&mut self, now: Time, number: u64, trigger: Cause) -> io::Result<()> {
        let header = PacketHeader::new(number);
        self.event(now, Body::PacketLost { header, trigger })
    }

    /// Writes the sender's current metrics, if they differ from the last ones.
    pub fn metrics(&mut self, now: Time, metrics: Metrics) -> io::Result<()> {
        if metrics == self.metrics {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.metrics, metrics);
        let ms = |now: Option<Duration>, before| {
            now.filter(|_| now != before).map(Duration::as_millis_f64)
        };
        let bytes = |now: Option<Bytes>, before| now.filter(|_| now != before).map(Bytes::get);
        let update = Update {
            min_rtt: ms(metrics.min_rtt, before.min_rtt),
            smoothed_rtt: ms(metrics.smoothed_rtt, before.smoothed_rtt),
            latest_rtt: ms(metrics.latest_rtt, before.latest_rtt),
            congestion_window: bytes(metrics.congestion_window, before.congestion_window),
            bytes_in_flight: bytes(metrics.bytes_in_flight, before.bytes_in_flight),
            ssthresh: bytes(metrics.ssthresh, before.ssthresh),
            pacing_rate: metrics
                .pacing_rate
                .filter(|_| metrics.pacing_rate != before.pacing_rate)
                .map(Rate::as_bps),
        };
        self.event(now, Body::MetricsUpdated(update))
    }

    /// Writes the current state of congestion control, if it has changed.
    pub fn congestion_state(&mut self, now: Time, new: &'static str) -> io::Result<()> {
        if new == self.state {
            return Ok(());
        }
        let old = std::mem::replace(&mut self.state, new);
        self.event(now, Body::CongestionStateUpdated { old, new })
    }

    fn event(&mut self, now: Time, body: Body<'_>) -> io::Result<()> {
        let time = now.as_nanos() as f64 / 1e6;
        self.record(&Event { time, body })
    }

    /// RFC 7464 §2.2: a record separator, the text, a line feed.
    fn record(&mut self, text: &impl Serialize) -> io::Result<()> {
        self.to.write_all(b"\x1e")?;
        serde_json::to_writer(&mut self.to, text)?;
        self.to.write_all(b"\n")
    }

    /// Ends the log.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }
}
