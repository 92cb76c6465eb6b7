"""Packages that only some commands need."""

import importlib
from typing import Any

from headway._native import UsageError


def need(module: str, extra: str = "onnx") -> Any:
    """Imports a module of the extra `headway[extra]`. Raises UsageError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise UsageError(
            f"the package '{package}' is missing; install it: pip install 'headway[{extra}]'"
        ) from None
