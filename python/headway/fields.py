"""The columns of every Parquet file that Headway writes. docs/columns.md is made of this.

The files themselves are written in Rust (`crates/record`); tests/test_api_documented.py compares
the two.
"""

from typing import NamedTuple


class Field(NamedTuple):
    """A column."""

    name: str
    kind: str
    """text, int32, int64 or float64; with a question mark after it, values may be missing."""
    unit: str
    """The unit; empty for a column without one."""
    help: str
    """The meaning, for docs."""

    @property
    def type(self) -> str:
        """The kind without its question mark."""
        return self.kind.removesuffix("?")

    @property
    def optional(self) -> bool:
        """Whether values may be missing."""
        return self.kind.endswith("?")


RESULTS = (
    Field("schema", "int32", "", "Version of the columns."),
    Field("code_version", "text", "", "Version and commit of the Headway that ran it."),
    Field("scenario", "text", "", "The scenario's name."),
    Field("scenario_hash", "text", "", "The scenario's hash: the same for the same meaning."),
    Field("scheme", "text", "", "The scheme under test, as you wrote it."),
    Field("world", "text", "", "`sim`, `emu` or `kernel`."),
    Field("run", "int32", "", "Which run, from 0. Run *k* of every scheme has the same seed."),
    Field("seed", "int64", "", "The run's seed."),
    Field("flow", "int32", "", "Which flow, from 0. **-1: the whole run**, all flows under test."),
    Field("flow_scheme", "text", "", "What this flow ran; a scenario may name another scheme."),
    Field("model", "text?", "", "Id of the trained model that decided. Null without one."),
    Field("seconds", "float64", "s", "How long the run lasted."),
    Field("warmup", "float64", "s", "How much of its beginning the metrics leave out."),
    Field("throughput_mbps", "float64?", "Mbit/s", "Data that arrived, per second."),
    Field("delay_mean_ms", "float64?", "ms", "Mean one-way delay, propagation included."),
    Field("delay_p95_ms", "float64?", "ms", "95th percentile of the one-way delay."),
    Field("queue_mean_ms", "float64?", "ms", "Mean delay in queues and transmission."),
    Field("queue_p95_ms", "float64?", "ms", "95th percentile of that delay."),
    Field("loss", "float64?", "share", "Bytes sent that did not arrive, 0 to 1."),
    Field(
        "utilisation",
        "float64?",
        "share",
        "Used capacity of the busiest link, 0 to 1. Flow -1: by all traffic.",
    ),
    Field("rtt_mean_ms", "float64?", "ms", "Mean of the sender's RTT samples."),
    Field("rtt_p95_ms", "float64?", "ms", "95th percentile of the RTT samples."),
    Field("power", "float64?", "Mbit/s / s", "Throughput over mean one-way delay."),
    Field("power_p95", "float64?", "Mbit/s / s", "Throughput over p95 delay."),
    Field(
        "utility",
        "float64?",
        "",
        "Owl's utility (Eq. 7): x - 0.5 x / (1 - loss) - 0.5 ln(mean RTT / minimum RTT of 10 s), where x is the "
        "throughput in Mbit/s. More is better.",
    ),
    Field(
        "jain",
        "float64?",
        "",
        "Jain's index among the flows that are there, 0 to 1. Flow -1 of several flows only.",
    ),
    Field(
        "convergence_s",
        "float64?",
        "s",
        "Time until the flow held its fair share. Flow -1: the slowest flow's, if all did.",
    ),
    Field("sent_packets", "int64", "packets", "Packets sent."),
    Field("delivered_packets", "int64", "packets", "Packets that arrived."),
    Field(
        "refused_decisions",
        "int64",
        "",
        "Decisions that did nothing, because a number was not finite.",
    ),
    Field(
        "guard_trips",
        "int64",
        "",
        "How often the fallback took over a flow: by the guard, or as a learner diverged. World `kernel`: in "
        "flow -1 only.",
    ),
    Field(
        "lateness_p50_ms",
        "float64?",
        "ms",
        "Real time only: how late the emulator wrote packets, median.",
    ),
    Field("lateness_p99_ms", "float64?", "ms", "99th percentile of the lateness."),
    Field("longest_stall_ms", "float64?", "ms", "Longest pause of the emulator."),
    Field("emulator_wait_ms", "float64?", "ms", "Mean wait of the emulator for a CPU."),
    Field("host_wait_ms", "float64?", "ms", "Mean wait of the worst sender for a CPU."),
    Field(
        "cpu_idle",
        "float64?",
        "share",
        "Idle CPU time in the busiest tenth of the seconds, 0 to 1.",
    ),
    Field("emulator_cpu", "float64?", "CPUs", "CPUs that the emulator took."),
    Field("unexplained_loss", "float64?", "share", "Packets that vanished at no link."),
    Field(
        "unfit",
        "text?",
        "",
        "Why the machine changed this run ([fitness](fitness.md)). Null if it did not.",
    ),
)
"""results.parquet: one row a run and flow."""

SERIES = (
    Field("scenario", "text", "", "The scenario's name."),
    Field("scheme", "text", "", "The scheme under test, as you wrote it."),
    Field("run", "int32", "", "Which run: **0, the first one**. Other runs have no series."),
    Field("flow", "int32", "", "Which flow, from 0. **-1 is all flows under test together.**"),
    Field("time_s", "float64", "s", "When the bin begins."),
    Field("sent_mbps", "float64", "Mbit/s", "Sent in the bin."),
    Field("lost_mbps", "float64", "Mbit/s", "Taken for lost by the sender in the bin."),
    Field("throughput_mbps", "float64", "Mbit/s", "Arrived in the bin."),
    Field("delay_mean_ms", "float64?", "ms", "Mean one-way delay of what arrived."),
    Field("queue_mean_ms", "float64?", "ms", "Mean delay in queues and transmission."),
    Field("loss", "float64?", "ratio", "`lost_mbps` over `sent_mbps`; may exceed 1."),
    Field(
        "cwnd_packets",
        "float64?",
        "packets",
        "Congestion window as the bin ends. Flow -1: the sum.",
    ),
    Field(
        "in_flight_packets",
        "float64?",
        "packets",
        "In flight as the bin ends, in full packets. Flow -1: the sum.",
    ),
    Field(
        "pacing_mbps",
        "float64?",
        "Mbit/s",
        "Pacing rate as the bin ends. Null without pacing. Flow -1: the sum.",
    ),
    Field("rtt_ms", "float64?", "ms", "Smoothed RTT as the bin ends. Flow -1: the mean."),
    Field(
        "btlbw_mbps",
        "float64?",
        "Mbit/s",
        "BBR's estimate of the bottleneck's rate. Flow -1: the sum.",
    ),
    Field("rtprop_ms", "float64?", "ms", "BBR's estimate of the base RTT. Flow -1: the mean."),
    Field(
        "capacity_mbps",
        "float64?",
        "Mbit/s",
        "Capacity of the bottleneck in the bin. Flow -1 only.",
    ),
    Field(
        "queue_packets",
        "float64?",
        "packets",
        "Longest queue on the path as the bin ends. Flow -1 only.",
    ),
)
"""series.parquet: one row a recorded run, flow and bin."""

EVENTS = (
    Field("time_ns", "int64", "ns", "When, since the run's start."),
    Field("place", "text", "", "The link, or the host that a packet is delivered to."),
    Field(
        "event",
        "text",
        "",
        "`arrival`, `loss`, `drop`, `departure`, `opportunity` or `delivery`.",
    ),
    Field(
        "packet",
        "int64?",
        "",
        "The packet's number, from 1. Null for cross traffic and opportunities.",
    ),
    Field(
        "flow",
        "int64?",
        "",
        "The flow's index; in `headway shell` a hash of addresses and ports.",
    ),
    Field("size", "int32?", "bytes", "Size of the IP packet."),
    Field("ecn", "int32?", "", "The two ECN bits, 0 to 3."),
    Field(
        "wait_ns",
        "int64?",
        "ns",
        "A departure's time in queue and transmission; a delivery's lateness.",
    ),
)
"""events.parquet: one row an event at a link or a host."""
