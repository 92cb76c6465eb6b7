"""The statistics that a monitor reports of a flow (section III-B)."""

from __future__ import annotations

from dataclasses import dataclass

Row = dict[str, float | None]
"""Features of one interval by name. An unknown feature is None, such as BBR's variables of other
controllers."""


@dataclass(frozen=True, slots=True)
class FlowStats:
    """A flow at one moment: a sample of every T1. Totals count from the flow's beginning."""

    flow: str
    """The flow's id, the same for its whole life: 10.0.0.1:5000-10.0.0.2:443, local end first."""
    time_s: float
    """Time of the sample in s, on a clock that never goes back."""
    rtt_ms: float
    """The newest RTT that the source knows; the kernel's TCP_INFO has only the smoothed one."""
    srtt_ms: float
    """The smoothed RTT, gain 1/8."""
    min_rtt_ms: float
    """The minimum RTT that the flow, or its controller's window, has seen."""
    delivery_rate_mbps: float
    """The newest delivery-rate sample, headers included."""
    pacing_rate_mbps: float
    """The pacing rate; 0 without pacing."""
    cwnd_packets: float
    in_flight_packets: float
    acked_bytes: int
    """Payload bytes acknowledged so far."""
    delivered_packets: int
    """Packets acknowledged so far."""
    lost_packets: int
    """Packets declared lost so far; if the source does not know, packets sent again."""
    retransmitted_packets: int
    mss_bytes: int
    """Bytes of a full packet on the wire, headers included."""
    payload_bytes: int
    """Payload bytes of a full packet."""
    btlbw_mbps: float | None = None
    """BBR's estimate of the bottleneck's bandwidth, headers included; None for other controllers,
    or if unknown."""
    rtprop_ms: float | None = None
    """BBR's estimate of the round trip without queues."""
    pacing_gain: float | None = None
    cwnd_gain: float | None = None
