"""Bearer tokens for access. The file has their digests; a token itself is shown once."""

from __future__ import annotations

import hashlib
import re
import secrets
import shlex
import time
from typing import TYPE_CHECKING

from headway._native import UsageError
from headway.files import alone_making, write_atomic
from headway.from_toml import NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOOK_S = 1.0
"""Time in s between two looks at the file. After that, a token whose line was removed is
refused."""
LINE = re.compile(rf"({NAME.pattern}) ([0-9a-f]{{64}})")
HEADER = "# Tokens of headway: a name and the SHA-256 of its token. Remove a line to revoke its token."


def new(name: str, path: Path) -> str:
    """Makes a token and adds its digest to the file, which only its owner may read.

    Raises:
        UsageError: The name is invalid or has a token; or another process makes a token there.
        RunError: The file cannot be written, and is unchanged.
    """
    if not NAME.fullmatch(name):
        raise UsageError(f"'{name}': a token's name has at most 64 letters, digits, '_', '.' and '-'")
    token = secrets.token_urlsafe(32)
    with alone_making(path, "token", "--tokens"):
        if path.exists() and name in read(path):
            raise UsageError(f"{path}: has a token '{name}' already; remove its line, or give another name")
        before = path.read_text(encoding="utf-8-sig").rstrip("\n") if path.exists() else ""
        write_atomic(path, f"{before or HEADER}\n{name} {digest(token)}\n", 0o600)
    return token


def read(path: Path) -> dict[str, str]:
    """Returns digests by name. Raises UsageError: the line, and what is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"{path}: {why}; {_cure(path)}") from None
    if mode & 0o022:
        raise UsageError(f"{path}: other users may write it; run chmod 600 {shlex.quote(str(path))}")
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            matched = LINE.fullmatch(line.strip())
            if matched is None:
                raise UsageError(
                    f"{path}: line {number}: not a name and a SHA-256; make tokens: headway netwatch token"
                )
            found[matched[1]] = matched[2]
    return found


def _cure(path: Path) -> str:
    return f"make one: headway netwatch token NAME --tokens {shlex.quote(str(path))}"


class Tokens:
    """The tokens of a file, as it is now."""

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises UsageError, also if it has no token."""
        self._path = path
        self._digests = read(path)
        self._looked_s, self._written = time.monotonic(), self._stamp()
        if not self._digests:
            raise UsageError(f"{path}: has no token; {_cure(path)}")

    def who(self, token: str) -> str | None:
        """Returns the name of the token, or None."""
        own = digest(token)
        return self.who_proves(lambda known: secrets.compare_digest(known, own))

    def who_proves(self, proves: Callable[[str], bool]) -> str | None:
        """Returns the name of the token whose digest `proves` accepts."""
        self._look()
        found = None
        # All digests are compared, so that the duration reveals nothing.
        for name, known in self._digests.items():
            if proves(known):
                found = name
        return found

    def _look(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        if (written := self._stamp()) != self._written:
            self._written = written
            try:
                self._digests = read(self._path)
            except UsageError:
                # A user that cannot be looked up has no access.
                self._digests = {}

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return 0, 0, 0
        return status.st_mtime_ns, status.st_size, status.st_ino


def digest(token: str) -> str:
    """Returns what a file keeps of a token: its SHA-256, in hexadecimal digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
