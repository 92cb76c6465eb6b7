"""Checkpoints, from which a killed training continues."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from headway._native import UsageError
from headway.files import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

FILE = "checkpoint.pt"
FORMAT = 1

State = dict[str, Any]
"""What PyTorch saves of a training: tensors, numbers, texts, lists and dicts of these."""
Identity = Mapping[str, object]
"""What has to be the same for a training to continue: plain numbers, texts, and dicts of these."""


def save(folder: Path, identity: Identity, state: State) -> None:
    """Writes a checkpoint into the training's folder, whole or not at all. Raises RunError."""
    content = io.BytesIO()
    torch.save({"format": FORMAT, "identity": identity, "state": state}, content)
    write_atomic(folder / FILE, content.getvalue())


def load(folder: Path, identity: Identity) -> State | None:
    """Returns the state that was saved last, or None.

    Raises UsageError if it cannot be read, or comes from a training of another identity.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        # Weights only: our checkpoints never run code when they are read.
        saved = torch.load(path, weights_only=True)
        if saved["format"] != FORMAT:
            raise UsageError(f"{path}: format {saved['format']}, must be {FORMAT}; give another --out")
        found, state = saved["identity"], saved["state"]
    except (RuntimeError, OSError, EOFError, KeyError, TypeError, pickle.UnpicklingError):
        raise UsageError(f"{path}: not a checkpoint that can be read; remove it, or give another --out") from None
    for key, value in identity.items():
        if found.get(key) != value:
            raise UsageError(
                f"{path}: of a training with {key} {found.get(key)}, not {value}; "
                "ask for the same, or give another --out"
            )
    return dict(state)
