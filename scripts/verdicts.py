"""Decides from a live test's attempts whether Headway is wrong, or the machine was too busy.

A busy machine makes the results of a live test worse, and never better. So a test that passes once
has passed. A failure counts only if the machine was quiet enough, and only if it happens twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from witness import Evidence

TRIES = 3
"""At most this many attempts of one test."""
WRONG_TWICE = 2

Outcome = Literal["right", "wrong", "unsure", "skipped"]
"""The outcome of one attempt. "unsure" means that the test itself calls it inconclusive."""
Verdict = Literal["PASS", "SUSPECT", "FAIL", "INCONCLUSIVE", "SKIPPED"]
"""The verdict of a test. A SUSPECT test passed, after it had failed on a quiet machine."""


@dataclass(frozen=True)
class Needs:
    """How quiet a machine has to be for a failure to count. A bound of None is not checked.

    By default only loads that Headway cannot cause itself are checked. A Headway that keeps the
    CPUs busy makes processes of normal priority wait. That is reported, but does not excuse a
    failure.
    """

    gap_ms: float | None = 50.0
    stood_still: float | None = 0.02
    steal: float | None = 0.02
    others: float | None = 0.1
    waited_ms: float | None = None

    @staticmethod
    def read(text: str) -> "Needs":
        """Reads words such as `gap_ms=20 steal=0.01`. The other bounds keep their defaults."""
        pairs = (word.partition("=") for word in text.split())
        return Needs(**{name: float(value) for name, _, value in pairs})

    def missed(self, seen: Evidence) -> list[str]:
        """The bounds that the machine exceeded, in words.

        The list is empty if it was quiet enough.
        """
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
    """One run of a test."""

    outcome: Outcome
    evidence: Evidence
    why: str = ""
    """The failure, or the reason why the test could not judge."""
    measured: Sequence[str] = ()
    """The lines that the test printed."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The attempt as values for JSON."""
        return asdict(self)


def decide(attempts: Sequence[Attempt], needs: Needs) -> tuple[Verdict, str] | None:
    """The verdict and its reason, or None if the test has to run again."""
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
    """The reason why a test has no verdict, from the last inconclusive attempt."""
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
