"""Fetches or copies recorded traces, each checked against its pinned SHA-256."""

import hashlib
import http.client
import os
import tomllib
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from headway._native import RunError, UsageError
from headway.files import alone_in, home, write_atomic

TIMEOUT_S = 60


@dataclass(frozen=True)
class Collection:
    """Files of one origin.

    Attributes:
        url: Theirs, less the name.
        files: The SHA-256 of each, by our name.
        at: Names at the origin that are not ours, by our name.
    """

    url: str
    files: Mapping[str, str]
    at: Mapping[str, str] = field(default_factory=dict)

    def local(self, name: str, folder: Path) -> Path | None:
        """Returns where a local copy has the file, by our name or by the origin's."""
        return next((p for n in (name, self.at.get(name, name)) if (p := folder / n).is_file()), None)


@cache
def collections() -> dict[str, Collection]:
    """Returns the collections whose files are pinned, by name."""
    text = resources.files("headway").joinpath("data/collections.toml").read_text(encoding="utf-8")
    return {name: Collection(c["url"], c["sha256"], c.get("at", {})) for name, c in tomllib.loads(text).items()}


def collection_of(trace: str) -> str | None:
    """Returns the name of the collection that has this trace."""
    return next((name for name, collection in collections().items() if trace in collection.files), None)


def cache_folder() -> Path:
    """Returns the folder for fetched traces, in which they are also found."""
    cache = os.environ.get("XDG_CACHE_HOME") or home("XDG_CACHE_HOME") / ".cache"
    return Path(cache) / "headway" / "traces"


def fetch(collection: Collection, folder: Path, source: Path | None = None) -> Iterator[str]:
    """Puts a collection's files into `folder`; yields a line about each.

    A file that is there with the right hash stays, so an interrupted fetch continues where it
    stopped.

    Args:
        collection: The collection to fetch.
        folder: The target folder; it is made if it does not exist.
        source: A folder with a local copy, of some of the files at least, instead of the network.

    Raises:
        UsageError: The local copy has none of the files, or a different file under a name. Or the
            folder has a different file under a name, or another fetch uses it.
        RunError: The network failed, or a fetched file has another hash.
    """
    with alone_in(folder, "--to"):
        yield from _fetch(collection, folder, source)


def _fetch(collection: Collection, folder: Path, source: Path | None) -> Iterator[str]:
    if source is not None and not any(collection.local(name, source) for name in collection.files):
        known = (collection.at.get(name, name) for name in collection.files)
        raise UsageError(f"--from {source}: has none of the files; give a folder with {', '.join(known)}")
    for name, sha256 in collection.files.items():
        path = folder / name
        if path.is_file() and _sha256(path.read_bytes()) == sha256:
            yield f"{name}: already there"
            continue
        if path.is_file():
            # Files are written whole, so this is not a part of an interrupted fetch.
            raise UsageError(f"{path}: differs from the published file; move it away, or give another --to")
        if source is None:
            origin = collection.url + collection.at.get(name, name)
            content = _download(origin)
        elif copy := collection.local(name, source):
            origin, content = str(copy), copy.read_bytes()
        else:
            yield f"{name}: not in {source}, left out"
            continue
        if (found := _sha256(content)) != sha256:
            error = RunError if source is None else UsageError
            raise error(
                f"{origin}: SHA-256 is {found[:16]}..., pinned is {sha256[:16]}...: a different file, not used"
            )
        write_atomic(path, content)
        yield f"{name}: {len(content) / 1e6:.1f} MB"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read()
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise RunError(f"{url}: {reason}; try again, or use --from with a local copy") from None
    return content
