"""Certificates and their keys, looked at before anything is served with them."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from headway._native import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def check_pair(cert: Path | str, key: Path | str, where: str) -> None:
    """Raises UsageError unless the key is the certificate's and has no passphrase.

    The error begins with `where`.
    """

    def ask() -> str:
        # A service has nobody who could be asked for it.
        raise UsageError(f"{where}: the key is encrypted; give one without: openssl pkey -in KEY -out NEW")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, ask)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{where}: {error.strerror or error}") from None
