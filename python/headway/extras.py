"""Packages that only some commands need."""

import importlib
from typing import Any

from headway._native import UsageError


def install(extra: str) -> str:
    """How to get an extra. PyPI has another project of our name: only our sources are named."""
    return f"pip install '.[{extra}]' in the folder of Headway's sources"


def need(module: str, extra: str = "onnx") -> Any:
    """Imports a module that the extra brings. Raises UsageError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise UsageError(f"the package '{package}' is missing; install it: {install(extra)}") from None
