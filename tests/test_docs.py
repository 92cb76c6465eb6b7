"""The generated pages say what the program says."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("schemes.md", "schemes_page"),
        ("features.md", "features_page"),
        ("cli.md", "cli_page"),
        ("columns.md", "columns_page"),
    ],
)
def test_a_generated_page_is_up_to_date(monkeypatch, name, page):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    made = getattr(importlib.import_module("make_docs"), page)()
    assert (ROOT / "docs" / name).read_text() == made, "run: make docs"
