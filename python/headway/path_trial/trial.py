"""A trial: rounds of transfers, each controller once a round, until its time is over."""

from __future__ import annotations

import random
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol, cast

from headway._native import RunError, UsageError
from headway.path_trial.transfer import BusyError, EndedError, Measured

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable

    from headway.path_trial.folder import Row, TrialFolder
    from headway.path_trial.plan import Plan

ROUNDS = 30
"""As many fit into the time, if transfers may be as short as that takes."""
SENDING = 0.9
"""A transfer sends for this share of its time. Handshake and last bytes take the rest."""
SHORTEST_S, LONGEST_S = 1.0, 10.0
"""Of a transfer, unless told."""
LEAST_ROUNDS = 2
"""One difference has no interval."""
MOST_FAILURES = 5
"""A trial ends after this many rounds in a row in which a transfer failed."""
PATIENCE_S = 1.0
"""Before the first transfer after a failure; twice as long after each further one."""


class Sends(Protocol):
    """What does one transfer, as `Sender.send`."""

    def __call__(
        self,
        scheme: str,
        controller: str,
        seconds: float,
        asked: threading.Event,
    ) -> Measured:
        """Raises EndedError, UsageError and RunError."""


def usual_seconds(minutes: float, schemes: int) -> float:
    """How long a transfer sends: 30 rounds take the minutes, if that makes it 1 to 10 s."""
    return min(max(SENDING * minutes * 60 / (ROUNDS * schemes), SHORTEST_S), LONGEST_S)


def check_time(minutes: float, plan: Plan) -> None:
    """Raises UsageError where two rounds do not fit into the minutes."""
    least = LEAST_ROUNDS * len(plan.schemes) * plan.seconds / 60
    if minutes < least * (1 - 1e-9):
        what = f"{LEAST_ROUNDS} rounds of {len(plan.schemes)} transfers of {plan.seconds:g} s"
        raise UsageError(f"--minutes {minutes:g}: {what} take {least:.3g}; give at least that")


def order(schemes: Iterable[str], seed: int, number: int) -> list[str]:
    """The order of a round: any is as likely as any other, and the seed decides."""
    drawn = list(schemes)
    random.Random(f"headway try {seed} {number}").shuffle(drawn)
    return drawn


def run(
    plan: Plan,
    folder: TrialFolder,
    sends: Sends,
    *,
    minutes: float,
    asked: threading.Event,
    tell: Callable[[float], None],
    warn: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Runs rounds until the minutes are over, with those that earlier calls took.

    The last round is the one whose end comes closest to the minutes. A round that a failure or a
    signal ends stays in the folder, and counts for nothing.

    Args:
        plan: What is compared.
        folder: Where rows are kept.
        sends: Does a transfer.
        minutes: In all.
        asked: Ends it once it is set.
        tell: Gets the share of the time that is over, 0 to 1, after each transfer.
        warn: Gets a line about each failure.
        clock: In seconds.

    Raises:
        UsageError: The server refuses this client.
        RunError: Transfers fail again and again, or a row cannot be kept, which ends it at once.
    """
    budget = minutes * 60
    earlier: float = sum(row["took_s"] for row in folder.rows)
    begun, longest, failures = clock(), len(plan.schemes) * plan.seconds, 0
    number = max((row["round"] for row in folder.rows), default=-1) + 1

    def spent() -> float:
        return earlier + clock() - begun

    while not asked.is_set() and spent() + longest / 2 <= budget:
        at = spent()
        for place, scheme in enumerate(order(plan.schemes, plan.seed, number)):
            since = clock()
            try:
                found = sends(scheme, plan.schemes[scheme], plan.seconds, asked)
            except EndedError:
                return
            except RunError as error:
                failures += 1
                if folder.rows and not isinstance(error, BusyError):
                    folder.failed(scheme)
                if failures == MOST_FAILURES or not folder.rows:
                    raise
                warn(f"{error}; this round does not count")
                asked.wait(PATIENCE_S * 2 ** (failures - 1))
                break
            row = {
                "round": number,
                "place": place,
                "scheme": scheme,
                "controller": plan.schemes[scheme],
                "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "took_s": clock() - since,
                **asdict(found),
            }
            folder.begin(plan)
            folder.add(cast("Row", row))
            tell(min(spent() / budget, 1.0))
        else:
            failures, longest = 0, spent() - at
        number += 1
