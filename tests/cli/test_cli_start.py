"""How the program starts, explains itself and stops."""

import os
import subprocess
import sys
from importlib import metadata

import pytest

import headway


@pytest.mark.parametrize(
    "command",
    [
        "",
        "bench",
        "try",
        "shadow",
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


HEAVY = {"numpy", "scipy", "pyarrow", "pandas", "vl_convert", "torch", "gymnasium", "fastapi", "uvicorn", "os_ken"}
MOST_MODULES = 300
"""It imports 178 with Python 3.11."""
SHOWS_MODULES = """
import atexit, runpy, sys
sys.argv = ["headway", "--help"]
atexit.register(lambda: print(*sorted(sys.modules), sep="\\n", file=sys.stderr))
runpy.run_module("headway", run_name="__main__")
"""


def test_help_imports_nothing_heavy():
    """`headway --help` is quick, about 0.2 s, because it imports little. A time would depend on the machine."""
    done = subprocess.run([sys.executable, "-c", SHOWS_MODULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = set(done.stderr.split())
    assert "headway" in imported
    assert imported & HEAVY == set()
    assert len(imported) < MOST_MODULES


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
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "headway", "schemes"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "headway: interrupted\n")


@pytest.mark.parametrize(
    "arguments", [("scenarios", "--json"), ("scenarios", "--jsn"), ("traces", "info", "own.down")]
)
def test_a_command_of_tests_that_forks_does_what_a_process_does(run, tmp_path, arguments):
    (tmp_path / "own.down").write_text("1\n2\n")
    command = [sys.executable, "-m", "headway", *arguments]
    real = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=600)
    forked = run(*arguments, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)
