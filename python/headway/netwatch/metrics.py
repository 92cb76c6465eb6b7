"""Prometheus' text of netwatch's state and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from prometheus_client import Metric

    from headway.netwatch.stream import Broadcast
    from headway.netwatch.watch import Watch


class Metrics(Collector):
    """Collects the metrics at each request."""

    def __init__(self, watch: Watch, broadcast: Broadcast, responses: Counter[int]) -> None:
        """Takes the sources of the metrics; `responses` are counted by status."""
        self._watch, self._broadcast, self._responses = watch, broadcast, responses
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """Returns the text in the exposition format."""
        return generate_latest(self._registry)

    def describe(self) -> Iterator[Metric]:
        """Returns nothing, because there may be no path yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics."""
        yield from self._of_paths()
        yield from self._of_switches()
        responses = CounterMetricFamily("headway_netwatch_responses", "Answers of the API.", labels=["status"])
        for status, count in sorted(self._responses.items()):
            responses.add_metric([str(status)], count)
        yield responses
        subscribers = GaugeMetricFamily("headway_netwatch_subscribers", "Streams that are open.")
        subscribers.add_metric([], self._broadcast.subscribers)
        yield subscribers
        snapshots = CounterMetricFamily(
            "headway_netwatch_snapshots",
            "Snapshots published; skipped by and for slow subscribers; subscribers dropped and refused.",
            labels=["what"],
        )
        for what, count in sorted(self._broadcast.counted.items()):
            snapshots.add_metric([what], count)
        yield snapshots
        failures = CounterMetricFamily("headway_netwatch_source_failures", "Of sources.", labels=["source"])
        for source in self._watch.sources:
            failures.add_metric([source.name], source.failures)
        yield failures

    def _of_paths(self) -> Iterator[Metric]:
        pnc = GaugeMetricFamily(
            "headway_path_pnc", "Partial network congestion, packets a second.", labels=["path"]
        )
        pna = GaugeMetricFamily("headway_path_pna", "Partial network availability, 0 to 1.", labels=["path"])
        known = GaugeMetricFamily(
            "headway_path_known_ratio", "Share of the path's switches in use.", labels=["path"]
        )
        age = GaugeMetricFamily("headway_path_age_seconds", "Age of the oldest counter used.", labels=["path"])
        for path in self._watch.paths().paths:
            known.add_metric([path.name], path.known)
            age.add_metric([path.name], path.age_s)
            if path.known:
                pnc.add_metric([path.name], path.pnc)
                pna.add_metric([path.name], path.pna)
        yield from (pnc, pna, known, age)

    def _of_switches(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "headway_switch_age_seconds", "Age of the switch's newest reading.", labels=["switch"]
        )
        trusted = GaugeMetricFamily(
            "headway_switch_trusted", "1 if the switch's counters are used.", labels=["switch"]
        )
        counted = CounterMetricFamily(
            "headway_switch_events", "Readings, and what was wrong with some.", labels=["switch", "what"]
        )
        for switch in self._watch.switches():
            if not switch.known:
                continue
            trusted.add_metric([switch.name], switch.state == "trusted")
            if switch.age_s is not None:
                age.add_metric([switch.name], switch.age_s)
            for what, count in switch.counted.items():
                counted.add_metric([switch.name, what], count)
        yield from (age, trusted, counted)
