"""CURVE keys of agents and hosts. See ZeroMQ's CurveZMQ, rfc.zeromq.org/spec/26."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import zmq

from headway._native import RunError, UsageError
from headway.files import home, make_path

PUBLIC, SECRET = ".key", ".key_secret"
LOOPBACK = "loopback"
"""The name of the pair that hosts and agents of one user on one machine share. It is made when
first needed."""
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Errors of file systems without hard links: exFAT and some of FUSE."""
NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Pair:
    """A key in ZeroMQ's 40 characters. Without its secret half it belongs to somebody else."""

    name: str
    public: bytes
    secret: bytes | None = None


def folder() -> Path:
    """Returns the default folder: HEADWAY_KEYS, else headway/keys of the user's configuration."""
    if given := os.environ.get("HEADWAY_KEYS"):
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or home("HEADWAY_KEYS") / ".config") / "headway" / "keys"


def new(name: str, out: Path) -> tuple[Path, Path]:
    """Makes a pair: the public file NAME.key and the secret one NAME.key_secret.

    Only its owner may read the secret one.

    Raises:
        UsageError: The name is invalid, or one of the files exists.
        RunError: The files cannot be written.
    """
    if not NAMES.fullmatch(name):
        raise UsageError(
            f"keys new '{name}': not a name for a key; give letters, digits, '.', '-' and '_', such as agent-1"
        )
    public_file, secret_file = out / f"{name}{PUBLIC}", out / f"{name}{SECRET}"
    for file in (public_file, secret_file):
        if file.exists():
            raise UsageError(f"{file}: exists already, and a key is never overwritten; give another name or --out")
    public, secret = zmq.curve_keypair()
    try:
        make_path(out, 0o700)
        _write(secret_file, f'curve\n    public-key = "{public.decode()}"\n    secret-key = "{secret.decode()}"\n')
        try:
            _write(public_file, f'curve\n    public-key = "{public.decode()}"\n')
        except OSError:
            secret_file.unlink()
            raise
    except FileExistsError as error:
        there = error.filename2 or error.filename
        raise UsageError(f"{there}: exists already; give another name or --out") from None
    except OSError as error:
        raise RunError(
            f"{error.filename or out}: {error.strerror}; give a folder that can be written: --out DIR"
        ) from None
    return public_file, secret_file


def _write(file: Path, text: str) -> None:
    """Writes a new file that no other user can read, not even at first.

    It is there whole or not at all. Only on a file system without links, a crash may leave a part.
    """
    # Other users who may write the folder cannot have made a file of this name.
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    _write_new(temporary, text)
    try:
        # Unlike a rename, a link overwrites nothing.
        os.link(temporary, file)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _write_new(file, text)
    finally:
        temporary.unlink()


def _write_new(file: Path, text: str) -> None:
    """Writes a file that this process makes, for its own user only.

    Raises OSError, and leaves nothing.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w") as out:
            # zmq.auth's format: lines before `curve` are comments.
            out.write("metadata\n" + text)
            out.flush()
            os.fsync(out.fileno())
    except OSError:
        file.unlink()
        raise


def read(file: Path) -> Pair:
    """Reads a key from its file.

    Raises UsageError if it is missing or invalid, or other users may read its secret.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise UsageError(f"{file}: {why}; make a key: headway keys new NAME") from None
    found = dict(re.findall(r'^\s*(public|secret)-key\s*=\s*"([^"\n]{40})"\s*$', text, re.MULTILINE))
    if "public" not in found:
        raise UsageError(f"{file}: not a key; remove it, and make one: headway keys new NAME")
    if "secret" in found:
        if mode & 0o077:
            cure = f"run chmod 600 {shlex.quote(str(file))}"
            raise UsageError(f"{file}: other users may read this secret; {cure}")
        if zmq.curve_public(found["secret"].encode()).decode() != found["public"]:
            raise UsageError(f"{file}: its two keys are not a pair; copy it again, or make another")
    secret = found.get("secret")
    name = file.name.removesuffix(SECRET).removesuffix(PUBLIC)
    return Pair(name, found["public"].encode(), secret.encode() if secret else None)


def own(name: str) -> Pair:
    """Returns a pair by the name of a key in `folder()` or by a file. Raises UsageError."""
    file = Path(name) if "/" in name or name.endswith((SECRET, PUBLIC)) else folder() / f"{name}{SECRET}"
    pair = read(file)
    if pair.secret is None:
        raise UsageError(f"{file}: has no secret half; give NAME{SECRET}")
    return pair


def loopback() -> Pair:
    """Returns the pair of this user's own hosts and agents on this machine.

    Raises UsageError and RunError.
    """
    file = folder() / f"{LOOPBACK}{SECRET}"
    if not file.exists():
        try:
            new(LOOPBACK, folder())
        except UsageError:
            # Another process made it at the same time.
            if not file.exists():
                raise
    return own(LOOPBACK)


def public_of(place: Path) -> dict[bytes, str]:
    """Returns the public keys of a folder's *.key files, or of one file, with their names.

    Raises UsageError.
    """
    files = sorted(place.glob(f"*{PUBLIC}")) if place.is_dir() else [place]
    return {pair.public: pair.name for pair in map(read, files)}


def listed(place: Path) -> list[Pair]:
    """Returns all keys of a folder, by name.

    Each has its secret half if that is there. Raises UsageError.
    """
    found = {pair.name: pair for pair in map(read, sorted(place.glob(f"*{PUBLIC}")))}
    found |= {pair.name: pair for pair in map(read, sorted(place.glob(f"*{SECRET}")))}
    return [found[name] for name in sorted(found)]


class Guest:
    """Decides for zmq.auth whether a client's key is allowed, and counts."""

    def __init__(self, allowed: dict[bytes, str]) -> None:
        """Takes `allowed`, public keys with names."""
        self.allowed = allowed
        self.counted: Counter[str] = Counter()
        """Counts of `accepted` and `refused`."""

    def callback(self, domain: str, key: bytes) -> bool:
        """Returns whether the key is allowed, in the form that zmq.auth needs."""
        del domain
        is_known = key in self.allowed
        self.counted["accepted" if is_known else "refused"] += 1
        return is_known
