"""The start, the help and the end of the program."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata

import pytest

import headway
from commands import HANGS_S, Server
from headway._native import Scenario, scenario_names
from headway.cli.usage import EXAMPLES


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
def test_the_help_of_every_command_has_an_example(run, command):
    done = run(*command.split(), "--help")
    assert done.returncode == 0
    # The command is on one line at any width, so that it can be copied.
    assert f"Example: {EXAMPLES[command or 'headway']}\n" in done.stdout
    assert "[/" not in done.stdout


@pytest.mark.parametrize("command", ["headway", "bench", "gap", "shell", "traces info", "traces plot"])
def test_an_example_needs_no_recorded_trace(command):
    """Recorded traces are not part of Headway.

    A new user's first command would end with an error.
    """
    words = re.findall(r"[\w.-]+", EXAMPLES[command])
    scenarios = [Scenario.load(word) for word in words if word in scenario_names()]
    traces = {trace for scenario in scenarios for trace in scenario.traces}
    traces |= {word for word in words if word.endswith((".down", ".up"))}
    assert scenarios or traces
    assert {trace for trace in traces if not trace.startswith("synthetic-")} == set()


HEAVY = {"numpy", "scipy", "pyarrow", "pandas", "vl_convert", "torch", "gymnasium", "fastapi", "uvicorn", "os_ken"}
MOST_MODULES = 300
"""The program imports 178 modules with Python 3.11."""
SHOWS_MODULES = """
import atexit, runpy, sys
sys.argv = ["headway", "--help"]
atexit.register(lambda: print(*sorted(sys.modules), sep="\\n", file=sys.stderr))
runpy.run_module("headway", run_name="__main__")
"""


def test_help_imports_nothing_heavy():
    """`headway --help` is quick, about 0.2 s, because it imports little.

    A time limit would depend on the machine.
    """
    done = subprocess.run([sys.executable, "-c", SHOWS_MODULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = set(done.stderr.split())
    assert "headway" in imported
    assert imported & HEAVY == set()
    assert len(imported) < MOST_MODULES


def test_all_versions_agree(run):
    assert run("--version").stdout == f"headway {headway.__version__}\n"
    assert metadata.version("headway") == headway.__version__


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_gives_a_one_line_error_and_exit_1():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "headway", "schemes", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "headway: standard output: No space left on device\n"


def test_ctrl_c_during_imports_prints_one_line(tmp_path):
    """An import that raises KeyboardInterrupt, as Ctrl-C does."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "headway", "schemes"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "headway: interrupted\n")


@pytest.mark.parametrize(
    "arguments", [("scenarios", "--json"), ("scenarios", "--jsn"), ("traces", "info", "own.down")]
)
def test_a_forked_test_command_behaves_like_a_process(run, tmp_path, arguments):
    (tmp_path / "own.down").write_text("1\n2\n")
    command = [sys.executable, "-m", "headway", *arguments]
    real = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=600)
    forked = run(*arguments, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)


DECISION = {
    **{"schema": 1, "flow": 3, "remote": "192.0.2.1:443", "policy": "owl", "model": "owl-v1"},
    **{"at_ns": 1, "cwnd_packets": 20, "would": "nothing", "value": None},
}
LOADS = {
    "bench": "bench --schemes cubic,newreno --scenario rax-1 --runs 2 --seconds 1 --against cubic --out b",
    "report": "report {bench}",
    "traces": "traces info own.down --json",
    "picture of a trace": "traces plot own.down --out p.svg",
    "schemes": "schemes",
    "scenarios": "scenarios",
    "model": "models show owl-v1",
    "shadow": "shadow own.jsonl --plot s.svg",
    "systems": "train --list",
    "keys": "keys new host --out k",
}
"""Commands that load each library, with their input."""


@pytest.mark.parametrize("name", LOADS)
def test_a_command_imports_everything_that_it_uses(small_bench, tmp_path, name):
    """Runs in a separate process.

    In tests, forked commands have all libraries loaded (commands.py).
    """
    (tmp_path / "own.down").write_text("".join(f"{k}\n" for k in range(1, 3000)))
    (tmp_path / "own.jsonl").write_text(f"{json.dumps(DECISION)}\n")
    command = [sys.executable, "-m", "headway", *LOADS[name].format(bench=small_bench).split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.fixture
def server():
    one = Server(1)
    yield one
    one.close()


def shadow(server, folder, name):
    """The exit code of `headway shadow` for a file, which needs few libraries."""
    return server.run(["shadow", name], folder, os.environ, is_drawn=False).returncode


def test_a_hanging_test_command_is_killed_and_the_next_one_runs(server, tmp_path):
    """The pipe never gets any input."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "own.jsonl").write_text(f"{json.dumps(DECISION)}\n")
    server.hangs_s = 0.5
    with pytest.raises(TimeoutError, match=r"^headway shadow pipe.jsonl does not end"):
        shadow(server, tmp_path, "pipe.jsonl")
    server.hangs_s = HANGS_S
    assert shadow(server, tmp_path, "own.jsonl") == 0


LEAVES = """
import subprocess
subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Fixed:
    owns_recovery = True

    def __init__(self, setup):
        self.cwnd = 20 * setup.mss

    def on_feedback(self, f):
        pass
"""


def test_a_process_left_by_a_test_command_is_detected(server, tmp_path):
    """The process keeps none of the command's streams open."""
    (tmp_path / "mine.py").write_text(LEAVES)
    server.lingers_s = 0.5
    words = "bench --schemes python:mine.py --scenario rax-1 --runs 1 --seconds 1 --out b"
    with pytest.raises(TimeoutError, match="has ended, but a process that it has started runs on"):
        server.run(words.split(), tmp_path, os.environ, is_drawn=False)
    assert (tmp_path / "b" / "bench.json").exists()
