"""A trial from its options to its results: what `headway try --to` and `headway.try_path` share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, NotRequired, cast

from headway import ending
from headway._native import RunError, UsageError
from headway.files import alone_in
from headway.netwatch import topology
from headway.path_trial.controllers import named
from headway.path_trial.folder import TrialFolder
from headway.path_trial.plan import Plan
from headway.path_trial.transfer import Sender
from headway.path_trial.trial import check_time, run, usual_seconds
from headway.path_trial.verdicts import Summary, summary, whole_rounds
from headway.path_trial.wire import PORT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from headway.path_trial.plan import Options
    from headway.path_trial.trial import Sends

FOLDER = "out/try"
"""A trial without a folder of its own is kept in a new folder in this one."""


class TrialFile(Summary):
    """What `try.json` has, and what `headway try --json` prints."""

    schema: int
    to: str
    schemes: dict[str, str]
    """The kernel's name of each; the first is what the others are compared with."""
    seconds: float
    """Length of a transfer."""
    seed: int
    kernel: str
    """Release of the kernel that sent."""
    code_version: str
    looks: int
    """How often results were shown, each time of more rounds."""
    failures: NotRequired[dict[str, int]]
    """How many transfers of each scheme failed, if any did."""


class End(NamedTuple):
    """What ended a trial before its time was over, if anything did."""

    is_asked: bool = False
    """A signal asked for the end."""
    failed: RunError | None = None
    """An error ended it. What had finished is in the folder."""


class Request:
    """A trial whose controllers this kernel has. Nothing is sent yet, and no file is written."""

    def __init__(self, options: Options) -> None:
        """Looks for the controllers. Raises UsageError: one is missing, or it is no address."""
        self.options = options
        self.controllers = named(options.schemes)
        self.host, self.port = address(options.to)

    @contextmanager
    def in_folder(self, folder: Path) -> Iterator[Trial]:
        """The trial inside, in a folder that only this process has, with its earlier transfers.

        Raises:
            UsageError: The folder has something else or a trial with other options, another process
                has it, or two rounds do not fit into the minutes.
        """
        asked = self.options
        with alone_in(folder):
            kept = TrialFolder(folder)
            usual = usual_seconds(asked.minutes, len(self.controllers))
            seconds = asked.seconds or (kept.facts or {}).get("seconds") or usual
            plan = Plan(asked.to, self.controllers, seconds, asked.seed)
            kept.must_fit(plan)
            check_time(asked.minutes, plan)
            sends = Sender(self.host, self.port, asked.token).send
            yield Trial(plan, kept, asked.minutes, sends)


class Trial:
    """A trial in its folder. Use it inside `headway.files.alone_in`."""

    def __init__(self, plan: Plan, folder: TrialFolder, minutes: float, sends: Sends) -> None:
        """`minutes` are all of its time; `sends` does a transfer."""
        self.plan, self.folder = plan, folder
        self._minutes, self._sends = minutes, sends

    @property
    def left_s(self) -> float:
        """The time that earlier transfers have left of the minutes, in s."""
        taken = sum(float(row["took_s"]) for row in self.folder.rows)
        return max(0.0, self._minutes * 60 - taken)

    def carry_out(self, tell: Callable[[float], None], warn: Callable[[str], None]) -> End:
        """Runs rounds until the time is over, or until a signal or an error ends them.

        Args:
            tell: Gets the share of the time that is over, 0 to 1, after each transfer.
            warn: Gets a line about each failure that does not end the trial.

        Raises:
            UsageError: The server refuses this client, and no transfer is in the folder.
            RunError: A transfer failed, and none is in the folder.
        """
        with ending.noted() as asked:
            try:
                run(
                    self.plan,
                    self.folder,
                    self._sends,
                    minutes=self._minutes,
                    asked=asked,
                    tell=tell,
                    warn=warn,
                )
            except (RunError, UsageError) as error:
                if not self.folder.rows:
                    raise
                kept = f"{len(self.folder.rows)} transfers are in {self.folder.path}"
                return End(failed=RunError(f"{error}; {kept}"))
            return End(is_asked=asked.is_set())

    def results(self) -> TrialFile | None:
        """What the transfers in the folder say; None if there is none."""
        kept = self.folder
        if not kept.rows:
            return None
        looks = kept.looks(len(whole_rounds(kept.rows, list(self.plan.schemes))))
        found = summary(kept.rows, self.plan.schemes, kept.failures, looks)
        assert kept.facts is not None
        return cast("TrialFile", kept.facts | found | {"looks": looks})

    def keep(self, results: TrialFile) -> None:
        """Writes results to `try.json`, also if a signal comes meanwhile. Raises RunError."""
        with ending.held():
            self.folder.write(dict(results))


def address(to: str) -> tuple[str, int]:
    """Host and port of `--to`; an IPv6 address with a port stands in brackets.

    Raises UsageError.
    """
    has_port = to.rpartition(":")[0].endswith("]") or to.count(":") == 1
    bare = to.removeprefix("[").removesuffix("]")
    host, port = topology.address(to, "--to") if has_port and bare else (bare, PORT)
    try:
        # As the resolver does: no empty label, none above 63 letters.
        host.encode("idna")
    except UnicodeError:
        host = ""
    if not host or any(sign.isspace() for sign in to):
        raise UsageError(f"--to '{to}': not an address; write HOST or HOST:PORT")
    return host, port
