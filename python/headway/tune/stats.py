"""What a monitor says of a flow (section III-B)."""

from __future__ import annotations

from dataclasses import dataclass

Row = dict[str, float | None]
"""Features of one interval by name; None where one is not known, as BBR's variables of other
controllers."""


@dataclass(frozen=True, slots=True)
class FlowStats:
    """One flow at one moment: what is sampled every T1. Totals count from the flow's beginning."""

    flow: str
    """The same text as long as the flow lives: 10.0.0.1:5000-10.0.0.2:443, local end first."""
    time_s: float
    """Of the sample, on a clock that never goes back."""
    rtt_ms: float
    """The newest RTT that the source knows; the kernel's TCP_INFO has only the smoothed one."""
    srtt_ms: float
    """Smoothed, gain 1/8."""
    min_rtt_ms: float
    """The least that the flow, or its controller's window, has seen."""
    delivery_rate_mbps: float
    """The newest delivery-rate sample, headers included."""
    pacing_rate_mbps: float
    """0 without pacing."""
    cwnd_packets: float
    in_flight_packets: float
    acked_bytes: int
    """Payload acknowledged so far."""
    delivered_packets: int
    """Acknowledged so far, as packets."""
    lost_packets: int
    """Taken for lost so far; where the source does not say, packets sent again."""
    retransmitted_packets: int
    mss_bytes: int
    """A full packet on the wire, headers included."""
    payload_bytes: int
    """What of it is payload."""
    btlbw_mbps: float | None = None
    """BBR's estimate of the bottleneck's bandwidth, headers included; None of other controllers, or
    if unknown."""
    rtprop_ms: float | None = None
    """BBR's estimate of the round trip without queues."""
    pacing_gain: float | None = None
    cwnd_gain: float | None = None
