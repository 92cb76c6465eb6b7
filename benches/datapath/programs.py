"""Which programs of the kernel were measured: a digest of what the kernel loads of them."""

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path

SECTION_HEADERS = struct.Struct("<40xQ10xHH2x")
"""Of an ELF header: where the section headers are, their size and their number."""
SECTION = struct.Struct("<4xIQ8xQQ")
"""Of a section header: its type, its flags, and where its bytes are."""
NO_BYTES = 8
"""SHT_NOBITS"""
LOADED = 2
"""SHF_ALLOC: code and data. Types and line numbers, which comments change, have it not."""


def loaded(image: bytes) -> Iterator[bytes]:
    """The bytes of the loaded sections of a 64-bit little-endian ELF file, in its order."""
    at, size, count = SECTION_HEADERS.unpack_from(image)
    for number in range(count):
        kind, flags, begin, length = SECTION.unpack_from(image, at + number * size)
        if flags & LOADED and kind != NO_BYTES:
            yield image[begin : begin + length]


def digest(objects: Path) -> str:
    """The first 12 digits of the SHA-256 of all programs in a folder.

    It changes with their code, and not with their comments.
    """
    found = hashlib.sha256()
    for program in sorted(objects.glob("*.bpf.o")):
        for section in loaded(program.read_bytes()):
            found.update(section)
    return found.hexdigest()[:12]
