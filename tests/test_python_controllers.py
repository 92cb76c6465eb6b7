"""Controllers as Python classes, compared with built-in ones."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headway import controllers
from headway._native import Batch, Scenario, UsageError
from headway.cli.app import app

EXAMPLE = Path(__file__).parents[1] / "examples" / "aimd.py"

FIXED = """
class Fixed:
    owns_recovery = True

    def __init__(self, setup):
        self.cwnd = 20 * setup.mss

    def on_feedback(self, f):
        pass
"""

# The rules are those of crates/cc/src/schemes/newreno.rs, in whole bytes as there.
RENO = """
class Reno:
    def __init__(self, setup):
        self.mss = setup.mss
        self.initial = self.cwnd = setup.initial_cwnd
        self.ssthresh = 2**62
        self.acked = 0
        self.before = None

    def reduce(self, flight):
        self.before = self.cwnd, self.ssthresh
        self.ssthresh = max(min(flight, self.cwnd) // 2, 2 * self.mss)
        self.acked = 0

    def on_feedback(self, f):
        if f.undo and self.before:
            self.cwnd = max(self.cwnd, self.before[0])
            self.ssthresh = max(self.ssthresh, self.before[1])
            self.before = None
        if f.congestion:
            self.reduce(f.prior_in_flight_bytes)
            self.cwnd = self.ssthresh
        elif f.cwnd_limited and f.recovery in ("open", "loss"):
            step = min(f.acked_bytes, max(self.ssthresh - self.cwnd, 0))
            self.cwnd += step
            self.acked += f.acked_bytes - step
            while self.acked >= self.cwnd:
                self.acked -= self.cwnd
                self.cwnd += self.mss

    def on_rto(self, rto):
        if rto.consecutive == 1:
            self.reduce(rto.prior_in_flight_bytes)
        self.cwnd = self.mss

    def on_idle(self, now_s, idle_s):
        self.cwnd = min(self.cwnd, self.initial)
        self.acked = 0
"""

RATE = """
class Rate:
    def __init__(self, setup):
        self.cwnd = 1000 * setup.mss
        self.pacing_mbps = 4.0
        self.next_timer_s = setup.start_s + 0.1
        self.ticks = 0

    def on_feedback(self, f):
        pass

    def on_timer(self, now_s):
        self.ticks += 1
        self.next_timer_s = now_s + 0.1
        if self.ticks == 30:
            self.pacing_mbps = 8.0
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a controller's file, and returns its name as a scheme."""

    def write(source: str, name: str = "mine.py") -> str:
        (tmp_path / name).write_text(source)
        controllers.load.cache_clear()
        return f"python:{tmp_path / name}"

    return write


def rows(scheme: str, scenario: str, seconds: float) -> list[dict[str, Any]]:
    batch = Batch([Scenario.load(scenario)], [scheme], runs=2, seconds=seconds, seed=3)
    batch.start()
    while not batch.wait(60.0):
        pass
    return batch.results()


def measured(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("scheme", "flow_scheme", "model")} for row in found]


def bench(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["bench", *arguments])


@pytest.mark.parametrize(("source", "builtin"), [(FIXED, "fixed-window"), (RENO, "newreno")], ids=["fixed", "reno"])
@pytest.mark.parametrize("scenario", ["pantheon-default", "synthetic-att"])
def test_a_class_of_the_same_rules_gives_the_rows_of_the_built_in_scheme(
    write: Any, source: str, builtin: str, scenario: str
) -> None:
    own, known = rows(write(source), scenario, 8.0), rows(builtin, scenario, 8.0)
    assert len(own) >= 1
    assert measured(own) == measured(known)


def test_the_class_sets_its_pacing_rate_and_timer(write: Any) -> None:
    (row, *_) = rows(write(RATE), "pantheon-default", 13.0)
    # The limits are 3 s at 4 Mbit/s and 10 s at 8.
    assert row["throughput_mbps"] == pytest.approx((3 * 4 + 10 * 8) / 13, rel=0.05)


def test_the_example_is_short_and_compared_with_cubic(tmp_path: Path) -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 40
    scheme, out = f"python:{EXAMPLE}", tmp_path / "out"
    schemes = f"{scheme},cubic"
    common = ("--scenario", "pantheon-default", "--runs", "3", "--seconds", "5", "--out", str(out))
    done = bench("--schemes", schemes, *common, "--against", "cubic")
    assert done.exit_code == 0, done.output
    facts = json.loads((out / "bench.json").read_text())
    own = next(row for row in facts["results"] if row["scheme"] == scheme)
    assert own["against"]["scheme"] == "cubic"
    digest = hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()
    assert facts["controllers"] == {scheme: {"file": str(EXAMPLE), "class": "Aimd", "sha256": digest}}
    assert f"class Aimd of {EXAMPLE}, SHA-256 {digest}" in (out / "report.html").read_text()


def test_the_page_quotes_the_example_to_the_letter() -> None:
    page = EXAMPLE.parents[1] / "docs" / "python-controllers.md"
    assert EXAMPLE.read_text() in page.read_text()


def test_one_class_under_two_names_is_refused(write: Any) -> None:
    scheme = write(FIXED)
    done = bench("--schemes", f"{scheme},{scheme}:Fixed", "--scenario", "pantheon-default")
    assert "are the same scheme; name it once" in str(done.exception)


def test_two_classes_of_one_file_are_two_schemes(write: Any, tmp_path: Path) -> None:
    file = write(FIXED + FIXED.replace("Fixed", "Other").replace("20", "40"))
    refused = bench("--schemes", file, "--scenario", "pantheon-default")
    assert "has several controllers" in str(refused.exception)
    out = tmp_path / "out"
    schemes = f"{file}:Fixed,{file}:Other"
    done = bench(
        "--schemes", schemes, "--scenario", "pantheon-default", "--runs", "1", "--seconds", "3", "--out", str(out)
    )
    assert done.exit_code == 0, done.output
    facts = json.loads((out / "bench.json").read_text())
    assert [row["scheme"] for row in facts["results"]] == schemes.split(",")


def test_an_error_names_file_and_line_and_keeps_the_other_results(write: Any, tmp_path: Path) -> None:
    broken = write(FIXED.replace("        pass", "        if f.now_s > 1:\n            1 / 0"), "broken.py")
    out = tmp_path / "out"
    common = ("--scenario", "pantheon-default", "--runs", "2", "--seconds", "3", "--out", str(out))
    done = bench("--schemes", f"{broken},cubic", *common, "--against", "cubic")
    line = f"{tmp_path / 'broken.py'}:10: in on_feedback: ZeroDivisionError: division by zero"
    assert line in str(done.exception)
    assert "\n" not in str(done.exception)
    assert "report it" not in str(done.exception)
    facts = json.loads((out / "bench.json").read_text())
    assert [row["scheme"] for row in facts["results"]] == ["cubic"]
    assert (out / "report.html").exists()


def test_a_folder_resumes_with_the_same_file_and_refuses_a_changed_one(write: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def again(source: str, runs: int) -> Any:
        common = ("--scenario", "pantheon-default", "--seconds", "2", "--out", str(out))
        return bench("--schemes", write(source), *common, "--runs", str(runs))

    # Without a finished run, another file contradicts nothing.
    assert "has no attribute 'no'" in str(again(FIXED.replace("pass", "self.no"), 1).exception)
    assert again(FIXED, 1).exit_code == 0
    assert again(FIXED, 2).exit_code == 0
    assert len(json.loads((out / "bench.json").read_text())["results"]) == 1
    changed = again(FIXED.replace("20", "40"), 2)
    assert "with model mine.py:Fixed-" in str(changed.exception)
    assert "give another --out" in str(changed.exception)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("class A:\n  def on_feedback(self f):", "mine.py:2: SyntaxError"),
        ("import nothing_of_that_name", "mine.py:1: in <module>: ModuleNotFoundError"),
        ("x = 1", "has no class with on_feedback"),
        (
            "class A:\n  cwnd = 9000\n  def on_feedback(self, f): pass",
            "mine.py: class A does not take setup; write def __init__(self, setup)",
        ),
        (
            "class A:\n  def __init__(self, setup, more): pass\n  def on_feedback(self, f): pass",
            "does not take setup",
        ),
        (
            "class A:\n  def __init__(self, setup): pass\n  def on_feedbak(self, f): pass",
            "mine.py: Headway never calls A.on_feedbak; did you mean on_feedback?",
        ),
        (
            "class A:\n  def __init__(self, setup): pass\n  def on_feedback(self, f): pass\n"
            "  def on_rt0(self, rto): pass",
            "mine.py: Headway never calls A.on_rt0; did you mean on_rto?",
        ),
    ],
)
def test_a_file_that_cannot_be_loaded_is_refused_before_anything_runs(write: Any, source: str, told: str) -> None:
    scheme = write(source)
    with pytest.raises(UsageError) as refused:
        controllers.load(scheme.removeprefix("python:"))
    assert told in str(refused.value)
    assert told in str(bench("--schemes", scheme, "--scenario", "pantheon-default").exception)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("self.cwnd = 20 * setup.mss", "pass"), "there is no self.cwnd; set it to the window in bytes"),
        (("pass", "self.cwnd = float('nan')"), "self.cwnd is nan, must be a number"),
        (("pass", "self.pacing_mbps = 0"), "self.pacing_mbps is 0, must be from 0.001"),
        (("pass", "pass\n    next_timer_s = 1.0\n    def on_timer(self, now_s): pass"), "must be later, or None"),
    ],
)
def test_an_invalid_value_from_the_class_ends_its_run_with_a_reason(
    write: Any, change: tuple[str, str], told: str
) -> None:
    with pytest.raises(RuntimeError, match=told):
        rows(write(FIXED.replace(*change)), "pantheon-default", 2.0)


def test_a_scenario_and_digests_run_no_python(write: Any, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    scheme = write(f"open({str(ran)!r}, 'w')\n" + FIXED)
    text = 'schema = 1\nname = "x"\nseconds = 1\n[bottleneck]\nrate = "1Mbps"\n[[flow]]\n[[flow]]\n'
    (tmp_path / "x.toml").write_text(text + f'scheme = "{scheme}"\n')
    with pytest.raises(UsageError, match=r"x\.toml:8: .* give it as --schemes python:FILE"):
        Scenario.load(str(tmp_path / "x.toml"))
    batched = f"batched-{scheme}:interval=10ms"
    (tmp_path / "x.toml").write_text(text + f'scheme = "{batched}"\n')
    for tested, scenario in ((batched, "pantheon-default"), ("cubic", str(tmp_path / "x.toml"))):
        with pytest.raises(UsageError, match="python takes no digests; write python:"):
            Batch([Scenario.load(scenario)], [tested])
    assert not ran.exists()


def test_a_missing_file_another_world_and_no_file_are_refused(write: Any) -> None:
    common = ("--scenario", "pantheon-default")
    missing = bench("--schemes", "python:nothing.py", *common)
    assert "nothing.py: No such file or directory" in str(missing.exception)
    for named in ("mine.py", "there/mine.py:Mine"):
        why = f"--schemes {named}: names a file; for a class of it give python:{named}"
        assert str(bench("--schemes", f"cubic,{named}", *common).exception) == why
    emu = bench("--schemes", write(FIXED), *common, "--world", "emu")
    assert "runs in world sim only" in str(emu.exception)
    with pytest.raises(UsageError, match="needs FILE or FILE:Class"):
        Batch([Scenario.load("pantheon-default")], ["python"])


def test_helpers_of_the_same_name_in_two_folders_are_two_modules(tmp_path):
    for folder, window in (("a", 10), ("b", 20)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "common.py").write_text(f"WINDOW = {window}\n")
        text = f"from common import WINDOW\n# {folder}\n{FIXED.replace('20 *', 'WINDOW *')}"
        (tmp_path / folder / "mine.py").write_text(text)
    loaded = [controllers.load(str(tmp_path / folder / "mine.py")) for folder in "ab"]
    assert [vars(__import__("sys").modules[one.controller.__module__])["WINDOW"] for one in loaded] == [10, 20]


def test_a_name_without_a_file_or_of_an_imported_class_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"^python:: names no file"):
        controllers.load("")
    (tmp_path / "mine.py").write_text(FIXED)
    (tmp_path / "other.py").write_text("from mine import Fixed\n")
    with pytest.raises(UsageError, match="class Fixed is imported there"):
        controllers.load(f"{tmp_path / 'other.py'}:Fixed")


def test_the_third_signal_ends_a_controller_that_never_returns(tmp_path):
    """The first two signals wait for its end, which never comes."""
    began = tmp_path / "began"
    text = FIXED.replace(
        "        pass\n", f"        open({str(began)!r}, 'w').close()\n        while True:\n            pass\n"
    )
    (tmp_path / "mine.py").write_text(text)
    words = ["--schemes", f"python:{tmp_path / 'mine.py'}", "--scenario", "low-bdp", "--runs", "1"]
    command = [sys.executable, "-m", "headway", "bench", *words, "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 120
        try:
            while not began.exists():
                assert child.poll() is None
                assert time.monotonic() < end
                time.sleep(0.01)
            while child.poll() is None:
                assert time.monotonic() < end
                child.send_signal(signal.SIGINT)
                time.sleep(0.1)
        finally:
            child.kill()
        said = child.stderr.read()
    assert child.returncode == 130, said
    assert "headway: ending, and saving what has finished; once more ends at once, without it\n" in said
    assert "headway: ended at once: what was not saved yet is lost\n" in said


def test_a_class_may_have_methods_of_its_own(write: Any) -> None:
    source = "class A:\n  def __init__(self, setup): pass\n  def on_feedback(self, f): pass\n"
    own = ("on_timeout", "on_loss", "_on_timer", "on_rto", "on_rtt")
    scheme = write(source + "\n".join(f"  def {name}(self, more=None): pass" for name in own))
    assert controllers.load(scheme.removeprefix("python:")).controller.__name__ == "A"
