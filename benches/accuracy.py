"""How right the simulator is: what the validation tests print, held against the outside figures."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rounds import Figures

COMMAND = ["cargo", "test", "--locked", "--quiet", "-p", "headway-sim", "--test", "validation", "--", "--nocapture"]
CURVE = ["cargo", "test", "--locked", "--quiet", "-p", "headway-cc", "--lib", "--", "--nocapture", "cubic"]

NUMBER = r"(-?[\d.]+(?:e-?\d+)?)"
GRAPH = rf"Graph {{ mbps: {NUMBER}, p95_queue_ms: {NUMBER}, p95_signal_ms: {NUMBER} }}"
SAWTOOTH = rf"ours Sawtooth {{ utilisation: {NUMBER}, loss: {NUMBER},"

MAHIMAHI = {"20": (3.34, 96.0, 278.0), "100": (5.02, 517.0, 1056.0)}
"""Mbit/s, p95 of queueing and of signal delay in ms, by window: a model of mahimahi's rules."""
LINUX = {
    ("cubic, 1260 packets", "Verizon-LTE-short.down"): (5.03, 6735.0, 7925.0),
    ("cubic, 1260 packets", "ATT-LTE-driving.down"): (5.18, 7187.0, 9461.0),
    ("vegas", "Verizon-LTE-short.down"): (4.23, 230.0, 534.0),
    ("vegas", "ATT-LTE-driving.down"): (2.37, 61.0, 502.0),
}
"""The same of Linux's Cubic and Vegas, published."""
ABC = {
    ("cubic", "DropTail"): (0.974, 557.0),
    ("cubic:hystart=classic", "DropTail"): (0.974, 557.0),
    ("cubic", "CoDel"): (0.621, 208.0),
    ("cubic", "Pie"): (0.551, 173.0),
    ("vegas", None): (0.930, 592.0),
}
"""Utilisation and p95 delay in ms by scheme and queue in ABC's figure 2."""
RANDOM_LOSS = {"TcpNewReno": 0.1033, "TcpLinuxReno": 0.1408}
"""Utilisation of ns-3's classes on Rax's link with 1% of loss."""


class Check(NamedTuple):
    """A figure beside ours. `off` is the difference over the bound: beyond 1 or -1 it is missed."""

    group: str
    what: str
    outside: float
    ours: float
    bound: str
    off: float


def relative(group: str, what: str, outside: float, ours: float, percent: float) -> Check:
    """A check whose bound is a share of the outside figure."""
    return Check(group, what, outside, ours, f"{percent:g}%", (ours / outside - 1) * 100 / percent)


def absolute(group: str, what: str, outside: float, ours: float, limit: float, unit: str) -> Check:
    """A check whose bound is a difference."""
    return Check(group, what, outside, ours, f"{limit:g} {unit}", (ours - outside) / limit)


def checks(line: str) -> Iterator[Check]:
    """The checks in one line that a test printed; the bounds are the project's targets, not the tests' own."""
    yield from on_traces(line)
    yield from on_fixed_links(line)


def on_traces(line: str) -> Iterator[Check]:
    """Against mahimahi's rules and published runs over recorded traces."""
    if found := re.search(rf"(sourdough|fixed-window), window (\d+): {GRAPH}", line):
        sender = "as its sender sends" if found[1] == "sourdough" else "fixed-window, over the transport"
        group = f"mahimahi's rules: {sender}"
        rate, queue, signal = MAHIMAHI[found[2]]
        yield relative(group, f"window {found[2]}, Mbit/s", rate, float(found[3]), 1)
        yield absolute(group, f"window {found[2]}, p95 queue, ms", queue, float(found[4]), 2, "ms")
        yield absolute(group, f"window {found[2]}, p95 signal delay, ms", signal, float(found[5]), 2, "ms")
    elif found := re.search(rf"(cubic, 1260 packets|vegas), (\S+): {GRAPH}", line):
        group, percent = ("published Vegas, Linux", 15) if found[1] == "vegas" else ("published Cubic, Linux", 10)
        for what, outside, ours in zip(
            ("Mbit/s", "p95 queue, ms", "p95 signal delay, ms"),
            LINUX[found[1], found[2]],
            found.groups()[2:],
            strict=True,
        ):
            yield relative(group, f"{found[2]}, {what}", outside, float(ours), percent)
    elif found := re.search(
        rf"ABC, ([^,]+)(?:, ([A-Z]\w+).*)?, (Simple|Linux): utilisation {NUMBER}, p95 delay {NUMBER}", line
    ):
        published = ABC.get((found[1], found[2]), ())  # Copa is printed too, and was not published.
        both = zip(("utilisation", "p95 delay, ms"), published, found.groups()[3:], strict=False)
        name = ", ".join(part for part in (found[1], found[2], found[3].lower()) if part)
        for what, outside, ours in both:
            yield relative("published by ABC", f"{name}, {what}", outside, float(ours), 10)


def on_fixed_links(line: str) -> Iterator[Check]:
    """Against ns-3 and the fluid model."""
    if found := re.search(
        rf"(newreno|cubic), ([A-Z]\w+).*: {NUMBER}, {NUMBER} ms, loss .*; ns-3 {NUMBER}, {NUMBER} ms", line
    ):
        name = f"{found[1]}, {found[2]}"
        ours, ours_ms, outside, outside_ms = map(float, found.groups()[2:])
        yield absolute("ns-3, queue discs", f"{name}, utilisation", 100 * outside, 100 * ours, 2, "points")
        yield absolute("ns-3, queue discs", f"{name}, mean queue", outside_ms, ours_ms, 1, "packet")
    elif found := re.search(rf"(newreno|cubic)\S*, (buffer \d+, .+): {NUMBER}, model {NUMBER}:", line):
        group, ours, model = f"fluid model, {found[1]}", float(found[3]), float(found[4])
        # The model has no packets: a queue, in ms at a packet a ms, is right to one of them.
        if "queue" in found[2] and 0.05 * model < 1:
            yield absolute(group, found[2], model, ours, 1, "packet")
        else:
            yield relative(group, found[2], model, ours, 5)
    elif found := re.search(rf"(Tcp[^:]*?) {NUMBER} {NUMBER}: {SAWTOOTH}", line):
        utilisation, loss = float(found[2]), float(found[3])
        yield absolute("ns-3, utilisation", found[1], 100 * utilisation, 100 * float(found[4]), 2, "points")
        ratio = float(found[5]) / loss
        # Both ways: half as much is as far off as twice as much.
        off = (max(ratio, 1 / ratio) - 1) / 0.5
        yield Check("ns-3, loss", found[1], loss, float(found[5]), "1.5 times", off)
    elif found := re.search(rf"1% loss: newreno {NUMBER},", line):
        for name, outside in RANDOM_LOSS.items():
            yield absolute("ns-3, 1% random loss", name, 100 * outside, 100 * float(found[1]), 2, "points")


def measure(root: Path) -> Figures:
    """Runs the validation tests and Cubic's vectors.

    Returns:
        checks (each as a dict, with met), tests (what each suite ends with) and skipped (tests that lack a trace).
    """
    found: list[Check] = []
    suites, skipped = {}, []
    for name, command in (("validation", COMMAND), ("Cubic, its W(t) vectors to 1e-3 packets among them", CURVE)):
        run = subprocess.run(
            command, cwd=root, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600
        )
        results = re.findall(r"test result: (.*?);.*?(\d+) failed", run.stdout)
        passed = sum(map(int, re.findall(r"(\d+) passed", run.stdout)))
        suites[name] = {"met": run.returncode == 0 and bool(results), "passed": passed}
        for line in run.stdout.splitlines():
            found += checks(line)
            if reason := re.search(r"skipped: (.*)", line):
                skipped.append(reason[1])
    return {
        "checks": [c._asdict() | {"met": abs(c.off) <= 1} for c in sorted(found)],
        "suites": suites,
        "skipped": skipped,
    }
