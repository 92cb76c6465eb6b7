"""Packages that only some commands need."""

import importlib
from typing import Any

from headway._native import UsageError


def install(extra: str) -> str:
    """Says how to install an extra.

    PyPI has another project of this name, so it names only our sources.
    """
    return f"pip install '.[{extra}]' in the folder of Headway's sources"


def need(module: str, extra: str = "onnx") -> Any:
    """Imports a module of an extra. Raises UsageError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise UsageError(f"the package '{package}' is missing; install it: {install(extra)}") from None
