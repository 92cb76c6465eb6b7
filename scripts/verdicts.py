"""Decides what a live test's attempts say: is Headway wrong, or was the machine too busy?

What a live test asserts is made worse by a busy machine, and never better. So what is right once
is right. What is wrong counts only if the machine was quiet enough for it, and only twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from witness import Evidence

TRIES = 3
"""At most this many attempts of one test."""
WRONG_TWICE = 2

Outcome = Literal["right", "wrong", "unsure", "skipped"]
"""Of one attempt; "unsure" is what the test itself calls inconclusive."""
Verdict = Literal["PASS", "SUSPECT", "FAIL", "INCONCLUSIVE", "SKIPPED"]
"""Of a test. SUSPECT has passed too, after it was wrong on a quiet machine."""


@dataclass(frozen=True)
class Needs:
    """How quiet a machine has to be for a failure to count. A bound of None is not looked at.

    By default only what Headway cannot cause itself is looked at. A Headway that keeps the
    CPUs busy makes processes of normal priority wait; that is told, but excuses nothing.
    """

    gap_ms: float | None = 50.0
    stood_still: float | None = 0.02
    steal: float | None = 0.02
    others: float | None = 0.1
    waited_ms: float | None = None

    @staticmethod
    def read(text: str) -> "Needs":
        """Of words such as `gap_ms=20 steal=0.01`; the other bounds stay as they are by default."""
        pairs = (word.partition("=") for word in text.split())
        return Needs(**{name: float(value) for name, _, value in pairs})

    def missed(self, seen: Evidence) -> list[str]:
        """How the machine was busier than that, in words; empty where it was quiet enough."""
        worst = seen.stalls[0] if seen.stalls else None
        which = f"cpu{worst['cpu']:.0f}" if worst else "a CPU"
        at = f" at {worst['at_s']:.1f} s" if worst else ""
        found = {
            "gap_ms": f"{which} stood still {seen.gap_ms:.3g} ms{at}",
            "stood_still": f"{which} stood still for {_percent(seen.stood_still)} of the time",
            "steal": f"steal {_percent(seen.steal)}",
            "others": f"other processes used {_percent(seen.others)} of the CPUs",
            "waited_ms": f"a process waited {seen.waited_ms:.3g} ms for a CPU",
        }
        bounds: Mapping[str, float | None] = asdict(self)
        return [
            said
            for name, said in found.items()
            if (bound := bounds[name]) is not None and getattr(seen, name) > bound
        ]


@dataclass(frozen=True)
class Attempt:
    """A test ran once."""

    outcome: Outcome
    evidence: Evidence
    why: str = ""
    """What was wrong, or why the test said nothing."""
    measured: Sequence[str] = ()
    """The lines that the test printed."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def decide(attempts: Sequence[Attempt], needs: Needs) -> tuple[Verdict, str] | None:
    """The verdict and the reason for it; None where the test has to run again."""
    wrong: list[str] = []
    for attempt in attempts:
        if attempt.outcome == "skipped":
            return "SKIPPED", attempt.why
        if attempt.outcome == "right":
            if not wrong:
                return "PASS", ""
            return "SUSPECT", f"wrong once on a quiet machine: {wrong[0]}"
        if attempt.outcome == "wrong" and not needs.missed(attempt.evidence):
            wrong.append(attempt.why)
        if len(wrong) == WRONG_TWICE:
            return "FAIL", f"wrong twice on a quiet machine: {wrong[-1]}"
    if len(attempts) < TRIES:
        return None
    return "INCONCLUSIVE", _busy(attempts, needs, bool(wrong))


def _busy(attempts: Sequence[Attempt], needs: Needs, was_wrong: bool) -> str:
    """What kept the test from a verdict, by the last attempt that was kept from one."""
    said = ""
    for attempt in attempts:
        if missed := needs.missed(attempt.evidence):
            said = f"machine too busy: {', '.join(missed)}"
            said += f" (the test said: {attempt.why})" if attempt.outcome == "unsure" else ""
        elif attempt.outcome == "unsure":
            said = f"the machine was quiet, but the test said: {attempt.why}"
    return said + ("; it was also wrong once on a quiet machine" if was_wrong else "")


def in_words(seen: Evidence) -> str:
    """The evidence in one line."""
    steal, others = _percent(seen.steal), _percent(seen.others)
    return f"longest stall {seen.gap_ms:.3g} ms, steal {steal}, other processes {others}"


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %"
