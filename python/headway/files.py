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


def put_between(text: str, begin: str, block: str, path: Path) -> str:
    """The page with `block` between the line `begin` and the next `<!-- end -->`, and nothing else changed.

    Args:
        text: The page.
        begin: A marker that stands there once.
        block: What is measured, ending in a newline.
        path: Where the page is, for the message.

    Raises:
        UsageError: If the markers are not there.
    """
    before, found, rest = text.partition(f"{begin}\n")
    _, closed, after = rest.partition("<!-- end -->")
    if not (found and closed):
        raise UsageError(f"{path}: '{begin}' followed by '<!-- end -->' is missing; the figures go between them")
    # The empty lines keep a comment from swallowing the table's first line.
    return f"{before}{begin}\n\n{block}\n<!-- end -->{after}"
