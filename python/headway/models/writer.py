"""How a model folder is written: whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import RunError, UsageError, agent_version, check_agent, check_model
from headway.ending import held
from headway.extras import need
from headway.files import make_path, unfinished
from headway.models.folder import CARD, GOLDEN, WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Array = np.ndarray[Any, Any]

FORMAT = 1
"""Version of the card's own keys."""


def write(
    folder: str | Path,
    card: Mapping[str, object],
    tensors: Mapping[str, Array],
    golden: tuple[Array, Array],
) -> str:
    """Writes a model folder, after the loader that deployment uses has checked it.

    Returns the model's id. The folder is written under another name, checked, and renamed: it is
    there whole or not at all.

    Args:
        folder: Where, such as models/aurora-v1; nothing may be there, as models are never changed.
        card: `name`, `version` (from 1 on), `description`, `net` (as in docs/models.md), `agent`
            (an agent spec), `training`, `evaluation`. Versions and hashes are added here. None is
            left out.
        tensors: The weights by PyTorch's names and in its shapes, float32 or what can be made of
            it; of an int8 model int8 and int32.
        golden: Observations `[n, inputs]`, and what the trained network makes of them: outputs
            `[n, outputs]`, or actions `[n]`. Rows are one flow's successive decisions: a recurrent
            network carries its state over.

    Raises:
        UsageError: Something is there already; or the loader refuses the model, such as for outputs
            that differ by more than 1e-5.
        RunError: It cannot be written.
    """
    return put(Path(folder), _content(card, tensors, golden), lambda beside: str(check_model(beside)["id"]))


@held()
def put(folder: Path, content: Mapping[str, bytes], check: Callable[[Path], str]) -> str:
    """Writes a folder's files whole, once `check` has read them; returns what it gives, an id.

    Raises:
        UsageError: Something is there already, or `check` refuses it.
        RunError: It cannot be written.
    """
    if folder.exists():
        raise UsageError(
            f"{folder}: is there already, and models are never changed; give another version or folder"
        )
    beside = unfinished(folder, os.getpid())
    try:
        make_path(folder.parent)
        beside.mkdir()
        for name, data in content.items():
            (beside / name).write_bytes(data)
        try:
            found = check(beside)
        except UsageError as error:
            raise UsageError(str(error).replace(str(beside), str(folder), 1)) from None
        beside.rename(folder)
    except OSError as error:
        raise RunError(f"{folder}: {error.strerror}; not written") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return found


def _content(
    card: Mapping[str, object], tensors: Mapping[str, Array], golden: tuple[Array, Array]
) -> dict[str, bytes]:
    """The files of the folder. The same arguments give the same bytes."""
    weights = weights_file(tensors)
    observations, answers = (np.ascontiguousarray(array, dtype=np.float32) for array in golden)
    buffer = io.BytesIO()
    # float32 throughout: what the network is shown and puts out in deployment.
    if answers.ndim == 1:
        np.savez(buffer, observations=observations, actions=answers)
    else:
        np.savez(buffer, observations=observations, outputs=answers)
    arrays = buffer.getvalue()
    spec, hashed = check_agent(json.dumps(_plain(card["agent"])))
    added = {
        "format": FORMAT,
        "spec_version": agent_version,
        "agent_hash": hashed,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "golden_sha256": hashlib.sha256(arrays).hexdigest(),
    }
    text = card_text({**added, **card, **added, "agent": json.loads(spec)})
    return {CARD: text, WEIGHTS: weights, GOLDEN: arrays}


def card_text(card: Mapping[str, object]) -> bytes:
    """A `card.toml`; None is left out."""
    text: str = need("tomli_w", "train").dumps(_plain(dict(card)))
    return text.encode()


def weights_file(tensors: Mapping[str, Array]) -> bytes:
    """What `weights.safetensors` holds of these tensors, by name.

    The same tensors give the same bytes.
    """
    plain: dict[str, Array] = {
        name: np.ascontiguousarray(tensor, dtype=_kept(tensor)) for name, tensor in sorted(tensors.items())
    }
    data: bytes = need("safetensors.numpy", "train").save(plain)
    return data


def _kept(tensor: Array) -> type:
    """Whole numbers of an int8 model stay what they are; all else is float32."""
    return tensor.dtype.type if tensor.dtype in (np.int8, np.int32) else np.float32


def _plain(value: Any) -> Any:
    """As TOML has it: no None, no scalars of NumPy, no tuples."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
