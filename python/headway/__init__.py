"""Headway: learned congestion control you can train, compare and run.

`headway.bench` compares congestion controllers, and `headway.load` reads what the command
`headway bench` has written. docs/python-api.md explains all functions. What is listed in `__all__`
is loaded when it is first used, so that `import headway` is quick.

Example:
    >>> import headway
    >>> results = headway.bench(["cubic", "bbr"], ["pantheon-default"], runs=30)
    >>> print(results.compare(against="cubic"))
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

# What headway.envs and headway.models raise. For callers these are ValueError and RuntimeError.
from headway._native import RunError as RunError
from headway._native import UsageError as UsageError
from headway._native import __version__

if TYPE_CHECKING:
    from headway.api import (
        Error,
        Gap,
        Interrupted,
        Picture,
        Reproduction,
        Results,
        Shadow,
        Table,
        Training,
        Trial,
        bench,
        gap,
        list_models,
        list_scenarios,
        list_schemes,
        list_traces,
        load,
        reproduce,
        shadow,
        train,
        try_path,
    )

__all__ = [
    "Error",
    "Gap",
    "Interrupted",
    "Picture",
    "Reproduction",
    "Results",
    "Shadow",
    "Table",
    "Training",
    "Trial",
    "__version__",
    "bench",
    "gap",
    "list_models",
    "list_scenarios",
    "list_schemes",
    "list_traces",
    "load",
    "reproduce",
    "shadow",
    "train",
    "try_path",
]
PACKAGES = ("gap", "reproduce", "shadow", "train")
"""Names that are both a function and a package or module.

Importing such a package binds it here.
"""


class Package(ModuleType):
    """A package or a module that can be called: `headway.gap(...)` is `headway.api.gap(...)`."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.__wrapped__(*arguments, **named)

    @property
    def __wrapped__(self) -> Any:
        """The function, whose parameters `inspect.signature` and editors show."""
        from headway import api

        return getattr(api, self.__name__.rpartition(".")[2])


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'headway' has no attribute '{name}'")
        if name in PACKAGES:
            return import_module(f"headway.{name}")
        from headway import api

        found = globals()[name] = getattr(api, name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
