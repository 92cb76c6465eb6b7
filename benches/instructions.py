"""Counts instructions for a packet with callgrind, by the part of Headway that they belong to."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

PARTS = (
    ("event queue", r"sim/src/event_queue"),
    ("event loop", r"sim/"),
    ("transport", r"net/src/transport"),
    ("links and queues", r"net/"),
    ("controller", r"cc/"),
    ("metrics", r"record/"),
)
"""The parts of Headway with their source files below `crates/`. The first match counts."""
LIBRARY = "library code"
"""Code that no file of Headway inlined: the allocator, memcpy, and containers that were not
inlined."""

SHARED = ("cc/src/units.rs", "net/src/ring.rs")
"""Arithmetic on times and rates, and the ring. It counts for the code that calls it."""


def profile(program: Path, args: list[str], out: Path) -> tuple[int, Counter[str]]:
    """Runs `speed` once under callgrind.

    Args:
        program: The simulator's example `speed`.
        args: The options of the program.
        out: The path of callgrind's profile.

    Returns:
        Delivered data packets, and instructions by part.
    """
    command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={out}"]
    run = subprocess.run([*command, str(program), *args], check=True, capture_output=True, text=True, timeout=120)
    at = by_address(out.read_text(), program.name)
    part_of = parts(program, [address for address in at if address is not None])
    total: Counter[str] = Counter()
    for address, count in at.items():
        total[LIBRARY if address is None else part_of.get(address, LIBRARY)] += count
    return json.loads(run.stdout)["packets"], total


def by_address(text: str, name: str) -> Counter[int | None]:
    """The instructions at each address of the program called `name`.

    None collects all other objects.

    `text` is a profile in callgrind's format ("Callgrind Format Specification", Valgrind manual). A
    name is written once and a number stands for it from then on. An address is often relative to
    the previous one.
    """
    names: dict[str, str] = {}
    counts: Counter[int | None] = Counter()
    here, address, called = False, 0, False
    for line in text.splitlines():
        if line.startswith(("ob=", "cob=")):
            kind, _, value = line.partition("=")
            number, _, path = value.partition(" ")
            path = names.setdefault(number, path)
            if kind == "ob":
                here = path.rpartition("/")[2] == name
        elif line.startswith("calls="):
            called = True
        elif line[:1] in "0123456789+-*" and line:
            position, _, rest = line.partition(" ")
            if position.startswith(("+", "-")):
                address += int(position, 0)
            elif position != "*":
                address = int(position, 0)
            # The line after calls= is the cost of the called function, which is counted where it
            # ran.
            if not called:
                counts[address if here else None] += int(rest.split()[1])
            called = False
    return counts


def parts(program: Path, addresses: list[int]) -> dict[int, str]:
    """The part that each address belongs to.

    Of the functions inlined at an address, the innermost one of Headway counts.
    """
    asked = "\n".join(f"{address:#x}" for address in addresses)
    command = ["addr2line", "--inlines", "--addresses", f"--exe={program}"]
    answer = subprocess.run(command, input=asked, check=True, capture_output=True, text=True).stdout
    found: dict[int, str] = {}
    address = 0
    for line in answer.splitlines():
        if line.startswith("0x"):
            address = int(line, 16)
            continue
        file = re.search(r"crates/([^:]*)", line)
        if file and file[1] not in SHARED and address not in found:
            found[address] = next((part for part, files in PARTS if re.match(files, file[1])), LIBRARY)
    return found
