"""How the program starts, explains itself and stops."""

import os
import subprocess
import sys
import time
from importlib import metadata

import pytest

import headway


@pytest.mark.parametrize(
    "command",
    [
        "",
        "bench",
        "schemes",
        "scenarios",
        "models",
        "models show",
        "models import",
        "tune",
        "tune host",
        "tune agent",
        "tune status",
        "keys",
        "keys new",
        "keys show",
        "traces",
        "traces fetch",
        "traces info",
        "traces convert",
        "traces plot",
    ],
)
def test_every_command_explains_itself_with_an_example(run, command):
    done = run(*command.split(), "--help")
    assert done.returncode == 0
    assert f"Example: headway {command}".strip() in done.stdout
    assert "[/" not in done.stdout


def test_help_is_quick(run):
    run("--help")
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run("--help")
        seconds.append(time.perf_counter() - start)
    # 0.2 s on an idle machine; more than twice that is a heavy import gone astray.
    assert min(seconds) < 0.5


def test_the_version_is_one(run):
    assert run("--version").stdout == f"headway {headway.__version__}\n"
    assert metadata.version("headway") == headway.__version__


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line_and_exit_1():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "headway", "schemes", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "headway: standard output: No space left on device\n"


def test_interrupted_while_it_loads_it_says_so(tmp_path):
    """An import that raises what Ctrl-C raises."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "headway", "schemes"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "headway: interrupted\n")
