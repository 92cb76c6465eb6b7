"""Checks certificates and their keys before anything is served with them."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from headway._native import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def check_pair(cert: Path | str, key: Path | str, where: str) -> None:
    """Raises UsageError unless the key belongs to the certificate and has no passphrase.

    The error begins with `where`.
    """

    def ask() -> str:
        # A service cannot ask a person for a passphrase.
        raise UsageError(f"{where}: the key is encrypted; give one without: openssl pkey -in KEY -out NEW")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, ask)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{where}: {error.strerror or error}") from None
