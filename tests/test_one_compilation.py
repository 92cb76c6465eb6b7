"""A dependency of the core and of the tests compiles only once.

Its features are the same in both builds.
"""

import subprocess
from collections import defaultdict

import pytest

import checks

TREE = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{f}"]


def features(*which):
    """The sets of features with which these packages' dependencies are built, by dependency."""
    done = subprocess.run([*TREE, *which], cwd=checks.ROOT, capture_output=True, text=True, check=True)
    found = defaultdict(set)
    for line in done.stdout.splitlines():
        package, _, chosen = line.removesuffix(" (*)").partition("|")
        found[package].add(chosen)
    return found


@pytest.mark.parametrize("edges", ["normal,no-proc-macro", "normal,build"])
def test_the_core_and_the_tests_choose_the_same_features(edges):
    """The dependencies of shipped code, and those of code that runs in the compiler."""
    core = features("-p", "headway-py", "--features", "pyo3/extension-module", "--edges", edges)
    tests = features("--workspace", "--exclude", "headway-py", "--edges", f"{edges},dev")
    other = {name: (sets, tests[name]) for name, sets in core.items() if name in tests and not sets <= tests[name]}
    assert not other, "add the missing features to crates/features/Cargo.toml"
