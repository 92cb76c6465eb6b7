"""Makes the synthetic-* traces that the package ships, for machines without a recorded trace.

The rate follows a log-normal autoregressive process in steps of 100 ms, interrupted by outages (a
two-state Markov chain); packets come in bursts of geometric size, Poisson in time. Its parameters
are statistics of recorded LTE traces (mahimahi's Verizon-LTE-short, TMobile-LTE-short,
ATT-LTE-driving: numbers measured from them, none of their data). Same seed, same files.

Usage: python scripts/make_synthetic_traces.py [FOLDER]   (default: python/headway/data/traces)
"""

import math
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

STEP_S = 0.1
PACKET_BITS = 1500 * 8


@dataclass(frozen=True)
class Link:
    """One direction of an operator's link, as measured.

    Attributes:
        mean_mbps: Mean rate, 1500 bytes a delivery opportunity.
        cv: Coefficient of variation of the rates of 1-s intervals.
        correlation: Autocorrelation of those rates at a lag of 1 s.
        outage_share: Share of time in gaps of at least 0.5 s without an opportunity.
        outage_s: Mean length of such a gap.
        burst: Mean opportunities in a millisecond that has any.
        seconds: Length of the trace to make: 60, or less where a file would pass 150 kB.
    """

    mean_mbps: float
    cv: float
    correlation: float
    outage_share: float
    outage_s: float
    burst: float
    seconds: int


LINKS = {
    "synthetic-verizon.down": Link(5.03, 0.64, 0.85, 0.010, 1.4, 1.4, 60),
    "synthetic-verizon.up": Link(5.95, 0.52, 0.75, 0.012, 1.7, 1.5, 50),
    "synthetic-tmobile.down": Link(16.70, 0.59, 0.70, 0.029, 0.8, 5.1, 19),
    "synthetic-tmobile.up": Link(13.32, 0.60, 0.91, 0.005, 0.7, 2.5, 20),
    "synthetic-att.down": Link(5.17, 0.56, 0.92, 0.045, 1.0, 1.7, 60),
    "synthetic-att.up": Link(0.83, 0.49, 0.84, 0.020, 1.0, 1.3, 60),
}
"""The links, measured in November 2026. The share of ATT-LTE-driving.up leaves out its one outage
of 78 s."""


def rates(link: Link, draw: random.Random) -> list[float]:
    """Rates in Mbit/s, one a step, with the link's mean, variation, correlation and outages."""
    steps = round(link.seconds / STEP_S)
    keep = link.correlation**STEP_S
    noise = math.sqrt(1 - keep * keep)
    level, path = draw.gauss(0, 1), []
    for _ in range(steps):
        level = keep * level + noise * draw.gauss(0, 1)
        path.append(level)
    # A short sample of a correlated process deviates from its mean and variance. They are
    # corrected.
    centre, spread = statistics.fmean(path), statistics.pstdev(path)
    sigma = math.sqrt(math.log1p(link.cv**2))
    series = [math.exp(sigma * (x - centre) / spread) for x in path]

    end = STEP_S / link.outage_s
    begin = end * link.outage_share / (1 - link.outage_share)
    out = False
    for k in range(steps):
        out = draw.random() >= end if out else draw.random() < begin
        if out:
            series[k] = 0.0
    scale = link.mean_mbps / statistics.fmean(series)
    return [rate * scale for rate in series]


def opportunities(link: Link, draw: random.Random) -> list[int]:
    """Times in ms of the link's delivery opportunities."""
    times: list[int] = []
    per_ms = [rate * 1e6 / PACKET_BITS / 1000 for rate in rates(link, draw)]
    credit = 0.0
    for ms in range(1, link.seconds * 1000 + 1):
        mean = per_ms[min(int((ms - 1) / 1000 / STEP_S), len(per_ms) - 1)]
        credit = min(credit + mean, 4 * link.burst) if mean else 0.0
        # A burst begins at random, and delivers the opportunities that are due.
        if credit >= 1 and draw.random() < max(mean / link.burst, 0.05) * (1 + credit / link.burst):
            times += [ms] * int(credit)
            credit -= int(credit)
    return times


def main() -> None:
    """Writes every trace of LINKS."""
    default = Path(__file__).parent.parent / "python/headway/data/traces"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    for name, link in LINKS.items():
        times = opportunities(link, random.Random(f"{name} 1"))
        # The last stamp is the trace's length.
        times[-1] = link.seconds * 1000
        (folder / name).write_text("".join(f"{t}\n" for t in times))
        print(f"{name}: {link.seconds} s, {len(times) * PACKET_BITS / 1e6 / link.seconds:.2f} Mbit/s")


if __name__ == "__main__":
    main()
