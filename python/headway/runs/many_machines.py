"""Tasks on the machines of a Ray cluster. Only this module knows Ray (docs/many-machines.md).

A worker that is killed, or whose machine is lost, is replaced, and its task begins again. An error
of the task itself is not tried again: it would be the same error.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import socket
import sys
import threading
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from headway import ending
from headway._native import RunError, UsageError, code_version
from headway.extras import need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

T = TypeVar("T")
R = TypeVar("R")

LOCAL = "local"
"""The address of a cluster that Ray starts on this machine, and ends with the command."""
CLIENT = "ray://"
"""The start of addresses of Ray Client, whose programs are not part of the cluster."""
RETRIES = 5
"""How often a task begins again after its worker was lost."""
REACHED_S = 5.0
"""Time limit in s for the head of a cluster to answer."""
LOOK_S = 0.1
"""The longest wait in s before signals are looked at."""


@dataclass(frozen=True)
class Answer:
    """The result of a task in its worker."""

    result: Any = None
    error: RunError | UsageError | None = None
    host: str = ""


def code(packages: Sequence[str] = ()) -> dict[str, str]:
    """Returns what must be the same on all machines for results that are the same bit for bit.

    These are names and versions.
    """
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    # The version of an installed headway does not name its commit; our code version does.
    return found | {"headway": code_version, "Python": platform.python_version()}


def carry_out(packed: bytes, here: dict[str, str], folder: str) -> Answer:
    """Carries out a task. This runs in a worker.

    Args:
        packed: The function and its task, pickled. They are unpacked once the code is known to be
            the same.
        here: The result of `code` on the machine of the command.
        folder: The working folder of the command. Relative paths start there.
    """
    host = socket.gethostname()
    there = code([*here])
    for name, wanted in here.items():
        if there.get(name) != wanted:
            has = f"{name} {there[name]}" if name in there else f"no {name}"
            why = f"it has {has}, not {name} {wanted}; install the same there"
            return Answer(error=UsageError(why), host=host)
    # A machine without this folder may not need it.
    with suppress(OSError):
        os.chdir(folder)
    try:
        work, task = pickle.loads(packed)
        return Answer(work(task), host=host)
    except (RunError, UsageError) as error:
        return Answer(error=error, host=host)
    except Exception as error:
        return Answer(error=RunError(f"{type(error).__name__}: {' '.join(str(error).split())}"), host=host)


class Machines:
    """The machines of a cluster, which this process is connected to."""

    def __init__(self, ray: Any, address: str) -> None:
        """Takes Ray's module, and the address that it was given."""
        self._ray = ray
        self.address = address

    @property
    def cores(self) -> int:
        """Number of cores in all, at least 1."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    @property
    def cores_of_one(self) -> int:
        """Number of cores of the machine with the fewest, at least 1.

        Machines without any do not count.
        """
        alive = [node["Resources"].get("CPU", 0) for node in self._ray.nodes() if node["Alive"]]
        return max(1, int(min(filter(None, alive), default=1)))

    @contextmanager
    def running(
        self,
        work: Callable[[T], R],
        tasks: Iterable[T],
        jobs: int | None = None,
        *,
        cores: int = 1,
        packages: Sequence[str] = (),
    ) -> Iterator[Tasks[T, R]]:
        """Gives the tasks that are under way.

        Those that have not finished at the end are cancelled.

        Args:
            work: A function of a module, which carries out one task. It may be called again for the
                same task.
            tasks: Tasks that pickle can handle.
            jobs: How many are under way at most. Default: one a core, and as many again that wait
                at their machine.
            cores: How many cores each takes, all of one machine.
            packages: Packages whose versions must also be the same on all machines.
        """
        at_most = jobs or 2 * max(1, self.cores // cores)
        sent = Tasks(self._ray, self.address, work, tasks, at_most, cores, code(packages))
        try:
            yield sent
        finally:
            sent.cancel()


class Tasks(Generic[T, R]):
    """Tasks of a cluster; see `Machines.running`."""

    def __init__(
        self,
        ray: Any,
        address: str,
        work: Callable[[T], R],
        tasks: Iterable[T],
        at_most: int,
        cores: int,
        here: dict[str, str],
    ) -> None:
        """Prepares the tasks, and sends none of them yet."""
        self._ray, self._address, self._work, self._at_most = ray, address, work, at_most
        self._waiting = deque(tasks)
        self._under_way: dict[Any, T] = {}
        self._error: RunError | UsageError | None = None
        with self._ray_works():
            self._here = ray.put(here)
        # Ray repeats lost tasks, and nothing else.
        self._remote = ray.remote(num_cpus=cores, max_retries=RETRIES, retry_exceptions=False)(carry_out)

    @property
    def is_done(self) -> bool:
        """Whether all tasks have finished, or were cancelled, and each error was raised."""
        return not (self._waiting or self._under_way or self._error)

    def wait(self, timeout_s: float = LOOK_S) -> list[tuple[T, R | RunError]]:
        """Returns the tasks that have finished since the last call, with results or errors.

        If none has finished yet, it waits for the first one. Finished tasks are returned before an
        error is raised.

        Args:
            timeout_s: After this time in s it returns an empty list if none has finished.

        Raises:
            UsageError: A machine has other code, or lacks what a task needs.
            RunError: Ray itself fails, as when the head of the cluster is lost.
        """
        found: list[tuple[T, R | RunError]] = []
        if self._error is None:
            for ref in self._ready(timeout_s):
                # The task comes first, because a task that has been taken is no longer under way.
                task = self._under_way.pop(ref)
                try:
                    found.append((task, self._taken(ref)))
                except (RunError, UsageError) as error:
                    self._error = self._error or error
        if self._error and not found:
            raised, self._error = self._error, None
            raise raised
        return found

    def _ready(self, timeout_s: float) -> list[Any]:
        """Sends what can be sent; returns those that have finished. Raises RunError."""
        with self._ray_works():
            while self._waiting and len(self._under_way) < self._at_most:
                task = self._waiting.popleft()
                ref = self._remote.remote(pickle.dumps((self._work, task)), self._here, os.getcwd())
                self._under_way[ref] = task
            if not self._under_way:
                return []
            ready, _ = self._ray.wait([*self._under_way], num_returns=1, timeout=timeout_s)
            if ready:
                # Others may have finished at the same time.
                ready, _ = self._ray.wait([*self._under_way], num_returns=len(self._under_way), timeout=0)
            return [*ready]

    def _taken(self, ref: Any) -> R | RunError:
        errors = self._ray.exceptions
        try:
            with self._ray_works():
                answer = self._ray.get(ref)
        except errors.RayTaskError as error:
            # Before our own code runs, only its imports can fail.
            why = str(error).strip().splitlines()[-1]
            cure = "install this version of Headway for the Python of every machine"
            raise UsageError(f"--ray {self._address}: a worker cannot begin: {why}; {cure}") from None
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.LocalRayletDiedError) as error:
            why = f"its worker was lost, {RETRIES + 1} times in a row: {_first_line(error)}"
            answer = Answer(error=RunError(why))
        except errors.RayError as error:
            answer = Answer(error=RunError(f"Ray has given it up: {_first_line(error)}"))
        if isinstance(answer.error, UsageError):
            raise UsageError(f"--ray {self._address}: machine {answer.host}: {answer.error}")
        result: R | RunError = answer.error or answer.result
        return result

    @contextmanager
    def _ray_works(self) -> Iterator[None]:
        """Turns an error of Ray itself, not of a task, into a RunError."""
        try:
            yield
        except (self._ray.exceptions.RaySystemError, self._ray.exceptions.RpcError, ConnectionError) as error:
            raise RunError(f"--ray {self._address}: Ray fails: {_first_line(error)}") from None

    def cancel(self) -> None:
        """Cancels all tasks that have not finished."""
        self._waiting.clear()
        self._error = None
        for ref in self._under_way:
            with suppress(self._ray.exceptions.RayError, ConnectionError):
                # If a task is ended by force while it finishes, Ray 2.60 aborts this process.
                self._ray.cancel(ref, force=False)
        self._under_way.clear()


def _first_line(error: Exception) -> str:
    said = " ".join(str(error).strip().split("\n")[0].split())
    return said or type(error).__name__


@contextmanager
def connected(address: str | None) -> Iterator[Machines | None]:
    """Gives the machines of the cluster at this address; None without an address.

    Args:
        address: As Ray has it: `auto` (the cluster that this machine is in), HOST:PORT of the head,
            or `local`.

    Raises:
        UsageError: Ray is not installed, or there is no such cluster.
    """
    if address is None:
        yield None
        return
    if address.startswith(CLIENT):
        cure = "run the command on a machine of the cluster, with --ray auto"
        raise UsageError(f"--ray {address}: Ray Client is not supported; {cure}")
    # Headway sends no usage statistics to anyone.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with _signals_kept():
        ray = need("ray", "ray")
        is_ours = not ray.is_initialized()
        if is_ours:
            _lead_to_stderr()
            _connect(ray, address)
    try:
        yield Machines(ray, address)
    finally:
        # A program that has already connected keeps its own connection.
        if is_ours:
            with _signals_kept(), ending.held():
                ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    more = {"include_dashboard": False} if address == LOCAL else {}
    host, colon, port = address.rpartition(":")
    try:
        if colon:
            # Ray would try for minutes.
            socket.create_connection((host.strip("[]"), int(port)), REACHED_S).close()
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **more)
    except (ConnectionError, RuntimeError, ValueError, OSError, AssertionError) as error:
        why = " ".join(str(error).split()).partition(". ")[0] or type(error).__name__
        cure = "give auto on a machine of a cluster that `ray start` has made, HOST:PORT of its head, or local"
        if why.startswith("Failed to connect"):
            cure = "make sure that its head runs, and that RAY_AUTH_MODE and ~/.ray/auth_token are the same here"
        raise UsageError(f"--ray {address}: {why}; {cure}") from None
    except ray.exceptions.RayError as error:
        # Comes first, because it is about a token that is missing or wrong.
        why = _first_line(error).partition(". ")[0].rstrip(".")
        cure = "set RAY_AUTH_MODE=token, and copy the token of the cluster to ~/.ray/auth_token"
        raise UsageError(f"--ray {address}: {why}; {cure}") from None


def _lead_to_stderr() -> None:
    """Sends Ray's messages about lost workers to standard error.

    Ray prints them on standard output, which is for results, and no option changes it.
    """
    inside: Any = sys.modules.get("ray._private.worker")
    if hasattr(inside, "print_to_stdstream"):
        inside.print_to_stdstream = _tell


class Printed(TypedDict):
    """What Ray prints. It has further keys."""

    lines: list[str]


def _tell(data: Printed, *_: object, **__: object) -> None:
    """Prints in a line what Ray prints in many."""
    said = " ".join(" ".join(map(str, data["lines"])).split())
    for end in (" To troubleshoot", " Error:"):
        said = said.partition(end)[0]
    print(f"headway: Ray: {said.rstrip('.')}", file=sys.stderr)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keeps our signal handlers inside.

    Ray replaces them, and SIGTERM would end the process at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.getsignal(number)) for number in ending.SIGNALS]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
