"""Runs `headway shell` for a long time, while flows start and end.

It checks whether anything grows or is left behind.

    .venv/bin/python scripts/soak.py --minutes 30

Then it kills another shell with SIGKILL, and checks what is left behind and what
`headway shell --clean` removes. It prints a summary as JSON. The exit code is 1 if there are
problems. It runs in a separate place (scripts/enclosure.py).
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import enclosure
from soak_flows import PORT

SHELL = [sys.executable, "-m", "headway", "shell"]
LINK = ["--delay", "10ms", "--queue", "200pkt", "--live", "off"]
FLOWS = [sys.executable, str(Path(__file__).with_name("soak_flows.py"))]

SAMPLES = 400
SETTLED = 0.2
"""Measurements in this first share of the time do not count."""
GROWTH_MB = 4.0
"""Resident memory may vary by this amount. A leak of a byte for each packet would be 30 MB in half
an hour."""
LEAST_SHARE = 0.7
"""The share of each direction's rate that the flows should use, although they start and end."""
KILLED_AFTER_S = 2.0
END_S = 60.0
"""A shell that takes longer than its own time by this amount counts as stuck."""

Facts = dict[str, Any]


def main() -> int:
    """Runs everything in a separate place. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long flows start and end (default: 30)")
    parser.add_argument("--mbps", type=int, default=100, help="the rate of each direction (default: 100)")
    parser.add_argument(
        "--least",
        type=float,
        default=LEAST_SHARE,
        help=f"the share of it that flows should use (default: {LEAST_SHARE})",
    )
    given = parser.parse_args()
    minutes = given.minutes
    if not 0.1 <= minutes <= 10_000:
        parser.error(f"--minutes {minutes:g}: give a number from 0.1 to 10000")
    if not enclosure.is_inside():
        if why := enclosure.refusal():
            parser.error(why)
        return enclosure.enter(__file__, sys.argv[1:])
    before = enclosure.Census.take()
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen([*FLOWS, "serve"]) as server:
        try:
            wait_for_server()
            facts = long_run(60 * minutes, Path(folder) / "flows.json", given.mbps) | {"killed": killed(given.mbps)}
        finally:
            server.terminate()
    facts["left_over"] = enclosure.left_over(before)
    facts["problems"] = problems(facts, given.mbps, given.least)
    print(json.dumps(facts, indent=2))
    return int(bool(facts["problems"]))


def link(mbps: int) -> list[str]:
    """The options of a shell whose directions have this rate."""
    return ["--up", f"{mbps}Mbps", "--down", f"{mbps}Mbps", *LINK]


def wait_for_server() -> None:
    """Waits until the server accepts connections. Raises OSError if it does not."""
    until = time.monotonic() + END_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", PORT), timeout=1.0).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def wait_for_device(shell: subprocess.Popen[Any], before: enclosure.Census) -> None:
    """Waits until the shell has its device, or has ended, at most as long as a shell may take."""
    until = time.monotonic() + END_S
    while shell.poll() is None and enclosure.Census.take().devices == before.devices and time.monotonic() < until:
        time.sleep(0.1)


def long_run(seconds: float, told: Path, mbps: int) -> Facts:
    """Runs a shell whose flows start and end for this time. Returns the observations."""
    before = enclosure.Census.take()
    flows = [*FLOWS, "load", "--seconds", f"{seconds:g}", "--out", str(told)]
    shell = subprocess.Popen([*SHELL, *link(mbps), "--json", "--", *flows], stdout=subprocess.PIPE, text=True)
    wait_for_device(shell, before)
    started = time.monotonic()
    samples = []
    # A short run has as many samples as a long one. A sample costs no more than the flows.
    pause_s = max(0.2, seconds / SAMPLES)
    while shell.poll() is None and time.monotonic() - started < seconds + END_S:
        time.sleep(pause_s)
        with suppress(OSError, KeyError):
            samples.append({"at_s": time.monotonic() - started} | sample(shell.pid))
    stuck = shell.poll() is None
    if stuck:
        shell.kill()
    output = shell.communicate()[0].strip()
    settled = [s for s in samples if SETTLED * seconds <= s["at_s"] <= seconds]
    return {
        "minutes": seconds / 60,
        "exit_code": shell.returncode,
        "stuck": stuck,
        "flows": json.loads(told.read_text()) if told.exists() else None,
        "shell": json.loads(output.splitlines()[-1]) if output else None,
        "samples": len(settled),
        **{
            name: grown([s[name] for s in settled])
            for name in ("rss_mb", "files", "threads", "namespaces", "devices")
        },
        "left_after_end": enclosure.left_over(before),
    }


def sample(pid: int) -> dict[str, float]:
    """The resources of the shell's process, and the objects of the network."""
    folder = Path("/proc") / str(pid)
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    census = enclosure.Census.take()
    return {
        "rss_mb": int(status["VmRSS"].split()[0]) / 1024,
        "files": len(list((folder / "fd").iterdir())),
        "threads": int(status["Threads"]),
        "namespaces": len(census.namespaces),
        "devices": len(census.devices),
    }


def grown(values: list[float]) -> Facts:
    """The beginning and the end of a quantity: medians of its first and last quarter."""
    if not values:
        return {"first": None, "last": None, "most": None}
    quarter = max(1, len(values) // 4)
    first, last = statistics.median(values[:quarter]), statistics.median(values[-quarter:])
    return {"first": round(first, 2), "last": round(last, 2), "most": round(max(values), 2)}


def killed(mbps: int) -> Facts:
    """Kills a shell in the middle of its run.

    Returns the leftovers of the shell, the output of --clean, and the leftovers after it.
    """
    before = enclosure.Census.take()
    # The flows are grandchildren, which continue after their shell is killed.
    inner = " ".join([*FLOWS, "load", "--seconds", "600"])
    shell = subprocess.Popen([*SHELL, *link(mbps), "--", "sh", "-c", f"{inner} & sleep 600"])
    wait_for_device(shell, before)
    time.sleep(KILLED_AFTER_S)
    ran = shell.poll() is None
    shell.kill()
    shell.wait()
    left = enclosure.left_over(before, grace_s=2.0)
    clean = subprocess.run([*SHELL, "--clean"], capture_output=True, text=True, check=False, timeout=END_S)
    return {
        "ran": ran,
        "left": left,
        "clean_exit_code": clean.returncode,
        "clean_said": (clean.stdout + clean.stderr).splitlines(),
        "left_after_clean": enclosure.left_over(before),
    }


def problems(facts: Facts, mbps: int, least: float) -> list[str]:
    """The problems, one in a line."""
    found = []
    if facts["stuck"]:
        found.append("the shell did not end with its program")
    elif facts["exit_code"]:
        found.append(f"the shell's exit code was {facts['exit_code']}")
    if not facts["samples"]:
        found.append("nothing could be watched")
    else:
        growth = facts["rss_mb"]["last"] - facts["rss_mb"]["first"]
        if growth > GROWTH_MB:
            found.append(f"resident memory grew by {growth:.1f} MB")
        for name in ("files", "threads", "namespaces", "devices"):
            if facts[name]["last"] > facts[name]["first"]:
                found.append(f"{name} grew from {facts[name]['first']:g} to {facts[name]['last']:g}")
    flows = facts["flows"]
    if not flows:
        found.append("the flows did not tell what they did")
    else:
        if flows["failures"]:
            found.append(f"{len(flows['failures'])} flows failed, first: {flows['failures'][0]}")
        found += [
            f"{way}: {flows[way]:.1f} of {mbps} Mbit/s"
            for way in ("up_mbps", "down_mbps")
            if flows[way] < least * mbps
        ]
    found += problems_of_killed(facts["killed"])
    found += [f"after the shell's end: {line}" for line in facts["left_after_end"]]
    return found + [f"at the end: {line}" for line in facts["left_over"]]


def problems_of_killed(killed: Facts) -> list[str]:
    """The problems of the shell that was killed."""
    found = []
    if not killed["ran"]:
        found.append("the shell that was to be killed had ended by itself")
    if not killed["left"]:
        found.append("the killed shell left nothing, so --clean had nothing to show")
    if killed["clean_exit_code"]:
        found.append(f"--clean: exit code {killed['clean_exit_code']}")
    return found + [f"after --clean: {line}" for line in killed["left_after_clean"]]


if __name__ == "__main__":
    sys.exit(main())
