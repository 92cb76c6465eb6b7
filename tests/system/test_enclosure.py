"""That the system tests' own look for what is left over finds it."""

import subprocess
import sys
from pathlib import Path

import pytest

import enclosure

pytestmark = pytest.mark.system

SCRIPT = """
import subprocess, sys
sys.path.insert(0, {scripts!r})
import enclosure
before = enclosure.Census.take()
subprocess.run(["sh", "-c", sys.argv[1]], check=True)
print("\\n".join(enclosure.left_over(before, grace_s=0.3)))
"""


def left_by(command, tmp_path):
    """What is found left over by a shell command in a place of its own."""
    script = tmp_path / "run.py"
    script.write_text(SCRIPT.format(scripts=str(Path(enclosure.__file__).parent)))
    inner = enclosure.command(sys.executable, str(script), command)
    done = subprocess.run(inner, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("true", []),
        ("sleep 0.1 &", []),  # ends within the grace
        ("unshare --net true", []),
        ("sleep 60 >/dev/null 2>&1 &", ["processes"]),
        ("unshare --net sleep 60 >/dev/null 2>&1 &", ["namespaces", "processes"]),
        ("mkdir -p /run/netns && ip netns add left", ["namespaces"]),
        ("ip tuntap add dev left0 mode tun", ["devices"]),
        ("mkdir /run/headway && touch /run/headway/entry /run/headway/registry.lock", ["registry"]),
    ],
)
def test_what_a_command_leaves_is_found(tmp_path, command, kinds):
    assert sorted(line.partition(":")[0] for line in left_by(command, tmp_path) if line) == kinds


def test_nothing_of_it_reaches_the_outside(tmp_path):
    """The devices and processes left inside end with it."""
    left_by("ip tuntap add dev left1 mode tun; sleep 61 >/dev/null 2>&1 &", tmp_path)
    assert "left1" not in Path("/proc/net/dev").read_text()
    assert all("sleep\x0061" not in p.read_text(errors="replace") for p in Path("/proc").glob("[0-9]*/cmdline"))
