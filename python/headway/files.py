"""Files that are either there whole or not at all."""

import os
from pathlib import Path

from headway._native import RunError, UsageError


def write_atomic(path: Path, content: bytes | str) -> None:
    """Writes beside `path` and renames: a reader or a crash never meets half a file. Raises RunError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(path)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; not written") from None
    finally:
        beside.unlink(missing_ok=True)


def make_folder(path: Path, option: str) -> Path:
    """Makes the folder that `option` names, with its parents. Raises UsageError where it cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{option} {path}: a file is in the way; give a folder") from None
    except OSError:
        raise UsageError(f"{option} {path}: cannot be made; give a folder that can be written") from None
    if not os.access(path, os.W_OK):
        raise UsageError(f"{option} {path}: not writable; give a folder that can be written")
    return path
