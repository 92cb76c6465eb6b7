"""The gate itself: a wrong tree does not pass it, and a right one does not fail."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

import again
import cargo_tests
import gate
import python_tests
import surroundings
import system_tests
import train_tests
from test_layers import imports, modules_of
from waiting import HANGS_S, until

ROOT = Path(gate.__file__).parent.parent
LIST = """
running 3 tests
test one ... ok
test two ... libbpf: a line that splits another
FAILED
test three - should panic ... FAILED

failures:

---- two stdout ----
failures:
    what a test prints
---- three stdout ----

failures:
    three
    two

test result: FAILED. 1 passed; 2 failed; 0 ignored
"""


def program(folder, script):
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return cargo_tests.Program("crate", "target", folder, path)


def test_failed_rust_tests_are_read_from_the_final_list():
    assert cargo_tests.names_of_failed(LIST) == ["three", "two"]
    assert cargo_tests.names_of_failed("test one ... ok\n") == []


@pytest.mark.parametrize("code", [1, 101, 134])
def test_a_rust_program_that_fails_without_a_name_has_failed(tmp_path, code):
    outcome = cargo_tests.run(program(tmp_path, f"echo error: no such option; exit {code}"))
    assert outcome.failed == [f"crate: target (exit {code})"]


@pytest.mark.parametrize(
    ("again_prints", "is_forgiven"),
    [("test result: ok. 1 passed; 0 failed", True), ("test result: ok. 0 passed; 0 failed", False)],
)
def test_a_rust_test_is_forgiven_only_if_it_ran_again(tmp_path, monkeypatch, again_prints, is_forgiven):
    monkeypatch.delenv(again.LOG, raising=False)
    first = "printf 'failures:\\n    one\\n\\ntest result: FAILED. 4 passed; 1 failed\\n'; exit 101"
    once_more = f"printf '\\n{again_prints}\\n'"
    script = f'case "$*" in *--exact*) {once_more};; *) {first};; esac'
    outcome = cargo_tests.run(program(tmp_path, script))
    assert (outcome.failed == []) == is_forgiven


def test_a_worker_that_dies_is_a_failure_and_no_hang(tmp_path, monkeypatch):
    """The tests left to the worker never ran, so it does not help that they would pass alone."""
    monkeypatch.setattr(again, "forgive", lambda *_: [])
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'scripts')!r})\nfrom workers import *\n"
    )
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    (tmp_path / "test_dies.py").write_text("import os\ndef test_a(): os.abort()\ndef test_b(): pass\n")
    assert not python_tests.run(str(tmp_path), processes=2)


def test_at_most_three_failures_are_forgiven_in_all_parts_together(tmp_path, monkeypatch):
    monkeypatch.setenv(again.LOG, str(tmp_path / "flaky.jsonl"))
    assert again.forgive(["a", "b"], lambda _: True) == []
    assert again.forgive(["c", "d"], lambda _: True) == ["c", "d"]
    assert again.forgive(["e"], lambda _: False) == ["e"]
    assert again.forgive(["f"], lambda _: True) == []
    assert again.forgive(["g"], lambda _: True) == ["g"]
    assert len((tmp_path / "flaky.jsonl").read_text().splitlines()) == again.MOST


@pytest.mark.parametrize(("may_be_none", "passes"), [(False, False), (True, True)])
def test_no_test_at_all_is_a_failure_unless_words_chose_them(tmp_path, may_be_none, passes):
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    found = python_tests.run(str(tmp_path), "-k", "nothing_of_this_name", may_be_none=may_be_none)
    assert found == passes


def test_a_program_of_system_tests_that_is_missing_ends_them(monkeypatch):
    monkeypatch.setattr(cargo_tests, "built", list)
    with pytest.raises(SystemExit, match="no such Rust tests"):
        system_tests.programs(system_tests.GROUPS["networks"])


def prepared(script, starter="", **environment):
    """The output of a script if `starter` has changed its process before `surroundings.prepare`."""
    head = f"import os, signal, subprocess, sys\n{starter}\n"
    then = f"import json, os, signal, subprocess, surroundings\nsurroundings.prepare()\n{script}"
    scripts = {"PYTHONPATH": str(Path(surroundings.__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", f"{head}os.execv(sys.executable, [sys.executable, '-c', {then!r}])"],
        env=os.environ | scripts | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_S,
    )
    return done.stdout.strip()


def test_exit_codes_are_known_although_the_starter_ignores_sigchld():
    """The kernel keeps no exit code then, and each command of the gate would seem to pass."""
    ignored = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    assert prepared("print(subprocess.run(['false']).returncode)", ignored) == "1"


def test_signals_blocked_by_the_starter_reach_tests():
    blocked = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])"
    assert prepared("print(signal.pthread_sigmask(signal.SIG_BLOCK, []))", blocked) == "set()"


def test_files_of_tests_are_readable_with_any_umask_of_the_starter():
    assert prepared("print(oct(os.umask(0)))", "os.umask(0o077)") == "0o22"


def test_tests_do_not_inherit_the_settings_of_the_starter():
    """Variables that choose tests, set defaults of commands, or name a proxy, are not inherited.

    The proxy knows no server here.
    """
    given = {
        "PYTEST_ADDOPTS": "-k nothing",
        "PYTHONOPTIMIZE": "1",
        "HEADWAY_SECONDS": "1",
        "HEADWAY_MEMORY": "unchecked",
        "HEADWAY_TRACES": "/traces",
        "HEADWAY_REQUIRE": "bpf",
        "no_proxy": "example.org",
    }
    told = json.loads(prepared("print(json.dumps(dict(os.environ)))", **given))
    assert {name: told.get(name) for name in given} == {
        "PYTEST_ADDOPTS": None,
        "PYTHONOPTIMIZE": None,
        "HEADWAY_SECONDS": None,
        "HEADWAY_MEMORY": None,
        "HEADWAY_TRACES": "/traces",
        "HEADWAY_REQUIRE": "bpf",
        "no_proxy": "example.org,localhost,127.0.0.1,::1",
    }


def test_each_mutants_text_occurs_exactly_once():
    """A fault whose text has changed would not be tried."""
    mutants = runpy.run_path(str(ROOT / "scripts" / "mutants"))["MUTANTS"]
    counts = {m.name: (ROOT / m.file).read_text().count(m.before) for m in mutants}
    assert {name: count for name, count in counts.items() if count != 1} == {}
    files = {word for m in mutants for word in m.python if word.endswith(".py")}
    assert {file for file in files if not (ROOT / file).is_file()} == set()


def test_training_covers_the_crates_and_not_their_tests():
    names = train_tests.covered()
    assert {"crates/policy/src/lib.rs", "models/owl-v1/card.toml", "tests/train/test_dqn.py"} <= set(names)
    assert [name for name in names if name.startswith("crates/") and "tests" in name] == []


def test_training_covers_the_imports_of_its_files():
    """A change there requires the tests of training too.

    Such a file belongs in IMPORTED, and no other.
    """
    names = set(train_tests.covered(train_tests.COVERED))
    found = modules_of(ROOT / "python" / "headway")
    modules = {module: file.relative_to(ROOT).as_posix() for module, file in found.items()}
    used = set()
    for module, file in modules.items():
        if file in names:
            imported = {name for base, taken in imports(module, ROOT / file) for name in (base, *taken)}
            used |= {modules[name] for name in imported & modules.keys()}
    # The programs that run them are named by scripts and tests.
    for name in names - set(modules.values()):
        if name.endswith(".py"):
            words = re.findall(r"^(?:from|import) (\w+)", (ROOT / name).read_text(), re.MULTILINE)
            files = {f"{folder}/{word}.py" for word in words for folder in ("scripts", "tests")}
            used |= {file for file in files if (ROOT / file).is_file()}
    assert sorted(used - names) == sorted(train_tests.IMPORTED)
    assert used <= set(train_tests.covered())


def test_the_gate_ends_with_a_list_of_skipped_tests(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "LOGS", tmp_path)
    text = "SKIPPED [2] scripts/needs.py:25: no users here\nSKIPPED a Rust test: no trace\nnone SKIPPED\n"
    (tmp_path / "system.log").write_text(text)
    assert gate.skipped(gate.PARTS) == [
        "3 tests were skipped",
        "  2: scripts/needs.py:25: no users here",
        "  1: a Rust test: no trace",
    ]


def test_an_unknown_part_is_refused():
    done = subprocess.run([sys.executable, gate.__file__, "systems"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no such part: systems; parts are lint, build" in done.stderr


@pytest.mark.parametrize(
    "said",
    [
        "error: cannot update the lock file /a/Cargo.lock because --locked was passed",
        "The lockfile at `uv.lock` needs to be updated, but `--locked` was provided.",
        "error: failed to parse manifest at `/a/Cargo.toml`",
        "Makefile:7: *** missing separator.  Stop.",
    ],
)
def test_a_wrong_tree_is_not_blamed_on_the_network(said):
    assert gate.OWN_FAULTS.search(said)
    assert not gate.OWN_FAULTS.search("error: failed to fetch: connection timed out")
    assert not gate.OWN_FAULTS.search("make: *** [Makefile:183: .venv/deps.stamp] Error 2")


def test_processes_of_the_gate_end_with_it(tmp_path):
    """SIGTERM reaches the processes of a part, although they have their own session."""
    marker = tmp_path / "pid"
    script = f"""
import signal, sys
sys.path.insert(0, {str(Path(gate.__file__).parent)!r})
import gate
run = gate.Run()
signal.signal(signal.SIGTERM, run.end)
run._logged(["sh", "-c", "echo $$ >{marker}.new; mv {marker}.new {marker}; sleep 600"], [])
"""
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        until(marker.exists)
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    pid = int(marker.read_text())
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_signal_while_a_process_starts_ends_that_process_too(tmp_path):
    marker = tmp_path / "pid"
    script = f"""
import os, signal, subprocess, sys
sys.path.insert(0, {str(Path(gate.__file__).parent)!r})
import gate

class Slow(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        with open({str(marker)!r}, "w") as file:
            print(self.pid, file=file)
        os.kill(os.getpid(), signal.SIGTERM)

run = gate.Run()
signal.signal(signal.SIGTERM, run.end)
gate.subprocess.Popen = Slow
run._logged(["sleep", "600"], [])
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=120)
    assert done.returncode == 128 + signal.SIGTERM
    until(lambda: not Path(f"/proc/{int(marker.read_text())}").exists())


def test_a_part_that_hangs_is_ended(monkeypatch, capfd):
    monkeypatch.setattr(gate, "HANGS_S", 0.0)
    assert gate.Run()._logged(["sleep", "600"], []) == -signal.SIGKILL
    assert "did not end" in capfd.readouterr().out


def test_an_orphan_that_holds_the_pipe_does_not_hold_the_gate():
    printed = BytesIO()
    assert gate.Run()._logged(["sh", "-c", "setsid sleep 600 & echo $!"], [printed]) == 0
    os.kill(int(printed.getvalue()), signal.SIGKILL)
