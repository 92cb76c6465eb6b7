"""A cluster in this process: the few functions of Ray that `headway.runs.many_machines` calls.

It shows our requests to Ray, and our use of its answers. tests/ray_on_two_nodes.py shows the
behaviour of Ray itself where it is installed.
"""

from __future__ import annotations

import pickle
import signal
from functools import partial
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """Stands for Ray's error about a task, or about Ray."""


class RayTaskError(RayError):
    """Stands for Ray's error if a task raised an exception."""


class WorkerCrashedError(RayError):
    """Stands for Ray's error if the worker was lost in every attempt of a task."""


class RaySystemError(RayError):
    """Stands for Ray's error if Ray itself fails."""


class FakeRay:
    """Nodes, with the number of cores of each.

    A task runs when the caller waits for it, and the last one runs first.
    """

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=RayTaskError,
        WorkerCrashedError=WorkerCrashedError,
        NodeDiedError=WorkerCrashedError,
        LocalRayletDiedError=WorkerCrashedError,
        RaySystemError=RaySystemError,
        RpcError=RaySystemError,
    )

    def __init__(self, *cores: int) -> None:
        self.node_cores = cores
        self.is_up = False
        self.sent: list[dict[str, Any]] = []
        """The options of each task."""
        self.tasks: list[Any] = []
        """The tasks that were sent."""
        self.under_way: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self.most = 0
        """The largest number of tasks at a time."""
        self.answers: dict[int, Any] = {}
        self.cancelled: list[int] = []
        self.inits: list[dict[str, Any]] = []
        self.refuses: Exception | None = None
        """The error that `init` raises."""
        self.fails: Exception | None = None
        """The error that `wait` raises."""
        self.at_once = 1
        """The number of tasks that finish at the same time."""
        self.around: Any = lambda carry_out: carry_out()
        """A wrapper around a task, in its worker."""

    def is_initialized(self) -> bool:
        return self.is_up

    def init(self, **options: Any) -> None:
        self.inits.append(options)
        # Ray does the same: SIGTERM would end the process.
        signal.signal(signal.SIGTERM, lambda *_: None)
        if self.refuses:
            raise self.refuses
        self.is_up = True

    def shutdown(self) -> None:
        self.is_up = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(sum(self.node_cores)), "memory": 1e9}

    def nodes(self) -> list[dict[str, Any]]:
        alive = [{"Alive": True, "Resources": {"CPU": float(cores)}} for cores in self.node_cores]
        return [*alive, {"Alive": True, "Resources": {}}, {"Alive": False, "Resources": {"CPU": 1.0}}]

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **options: Any) -> Any:
        def of(function: Any) -> Any:
            def send(*arguments: Any) -> int:
                ref = len(self.sent)
                self.sent.append(options)
                self.tasks.append(pickle.loads(arguments[0])[1])
                # Another process has neither our objects nor our modules' variables.
                self.under_way[ref] = pickle.loads(pickle.dumps((function, arguments)))
                self.most = max(self.most, len(self.under_way))
                return ref

            return SimpleNamespace(remote=send)

        return of

    def wait(self, refs: list[int], *, num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        if self.fails:
            raise self.fails
        at_once = self.at_once if timeout and not any(ref in self.answers for ref in refs) else 0
        for last in sorted(self.under_way, reverse=True)[:at_once]:
            function, arguments = self.under_way[last]
            try:
                self.answers[last] = pickle.loads(pickle.dumps(self.around(partial(function, *arguments))))
            except RayError as error:
                self.answers[last] = error
        ready = [ref for ref in refs if ref in self.answers][:num_returns]
        return ready, [ref for ref in refs if ref not in ready]

    def get(self, ref: int) -> Any:
        answer = self.answers[ref]
        del self.under_way[ref]
        if isinstance(answer, RayError):
            raise answer
        return answer

    def cancel(self, ref: int, *, force: bool) -> None:
        assert not force, "by force, Ray 2.60 aborts this process if the task finishes at the same time"
        assert ref in self.under_way, "it has finished"
        self.cancelled.append(ref)
        del self.under_way[ref]
