"""Figures of the validation tests, from their output to docs/schemes.md."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINE = (
    'check {"scheme": "%s", "what": "p95 queue", "unit": "ms", "source": "a paper", "outside": "66 +- 15%%", '
    '"ours": %s, "off": 0.5, "missed": ""}'
)


@pytest.fixture
def checks(monkeypatch, tmp_path):
    """The module, with its file in a folder of this test."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    module = importlib.import_module("checks")
    monkeypatch.setattr(module, "KEPT", tmp_path / "checks.json")
    return module


def test_checks_are_found_between_other_lines(checks):
    output = "\n".join(
        ["---- a::test stdout ----", LINE % ("verus", 70), "Verizon: 3", LINE % ("sprout", 60.5), ""]
    )
    assert [(c["scheme"], c["ours"]) for c in checks.read(output)] == [("sprout", 60.5), ("verus", 70)]


def test_a_figure_that_differs_from_the_stored_one_is_reported(checks):
    before = checks.read(LINE % ("verus", 70) + "\n" + LINE % ("sprout", 60.5))
    checks.keep(before)
    assert checks.kept() == before
    verus, sprout = before[1:], before[:1]
    assert checks.drifted(before, is_whole=True) == []
    assert checks.drifted(verus, is_whole=False) == [], "a test that lacked a trace"
    assert checks.drifted(verus, is_whole=True) == ["sprout, a paper, p95 queue"], "nothing measures it"
    other = checks.read(LINE % ("verus", 71))
    assert checks.drifted(sprout + other, is_whole=True) == ["verus, a paper, p95 queue"]
    assert checks.drifted(checks.read(LINE % ("bbr3", 70)), is_whole=False) == ["bbr3, a paper, p95 queue"]
