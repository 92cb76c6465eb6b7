"""`--ray` on a real cluster of two nodes, whose processes are killed: make test-ray runs this.

Its name keeps it out of `make test`, where Ray is not installed.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import needs
from same_results import FILES, must_be_equal, store_of

CLUSTER = Path(__file__).parent / "ray_cluster.py"
NAMESPACES = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
BENCH = ["bench", "--schemes", "cubic,owl,bbr,copa", "--scenario", "rax-1,high-bdp", "--json"]
LENGTH = ["--runs", "12", "--seconds", "60"]
FIGURE = ["reproduce", "rax", "fig8", "--quick", "--json"]
HANGS_S = 560


@pytest.fixture(scope="module", autouse=True)
def ray():
    if find_spec("ray") is None:
        needs.skip("ray", "Ray is not installed here; make test-ray runs these tests")
    allowed = subprocess.run([*NAMESPACES, *as_root(), "true"], check=False, capture_output=True, text=True)
    if allowed.returncode:
        needs.skip("ray", f"no namespaces: {allowed.stderr.strip()}")


def as_root():
    return [] if os.geteuid() == 0 else ["--map-root-user"]


def headway(*arguments):
    done = subprocess.run([sys.executable, "-m", "headway", *map(str, arguments)], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_cluster(kill, output, *arguments):
    """The output on standard output and on standard error.

    It also returns the processes that were killed.
    """
    command = [*NAMESPACES, *as_root(), sys.executable, CLUSTER, kill, output, *arguments]
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == 0, done.stderr
    return output.read_bytes(), done.stderr, done.stdout.split()


def test_a_bench_whose_workers_are_killed_leaves_the_same_files(tmp_path):
    one, many = tmp_path / "one", tmp_path / "many"
    alone = headway(*BENCH, *LENGTH, "--out", one)
    printed, said, killed = on_cluster("workers", tmp_path / "printed", *BENCH, *LENGTH, "--out", many)
    assert len(killed) == 2
    assert "retried" in said
    # Ray's messages about them are not in the results.
    assert printed == alone
    assert {file.name for file in one.iterdir()} == {*FILES}
    must_be_equal(one, many)


def test_a_figure_whose_node_is_lost_has_the_same_runs(tmp_path):
    one, many = tmp_path / "one", tmp_path / "many"
    alone = headway(*FIGURE, "--out", one)
    printed, _, killed = on_cluster("node", tmp_path / "printed", *FIGURE, "--out", many)
    assert len(killed) == 1
    assert json.loads(printed) == json.loads(alone)
    assert store_of(one) == store_of(many)
