"""The generated pages match the program."""

import importlib
import os
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


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


def test_the_site_leads_to_every_page():
    """Decisions have a separate list."""
    pages = {page.relative_to(DOCS).as_posix() for page in [*DOCS.glob("*.md"), *DOCS.glob("[!d]*/*.md")]}
    nav = set(re.findall(r": ([a-z0-9/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    # Pages that the site makes itself.
    assert nav - {"index.md", "python-modules.md", "decisions/README.md"} - pages == set()
    assert pages - nav == set()
    listed = (DOCS / "decisions" / "README.md").read_text()
    assert [page.name for page in sorted(DOCS.glob("decisions/0*.md")) if f"({page.name})" not in listed] == []


def test_the_sites_home_page_links_to_the_pages_and_keeps_urls(monkeypatch):
    for name in ("mkdocs", "mkdocs.structure"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    files = SimpleNamespace(File=None, Files=None)
    monkeypatch.setitem(sys.modules, "mkdocs.structure.files", files)
    monkeypatch.syspath_prepend(ROOT / "scripts")
    home_page = importlib.import_module("site_hooks").home_page
    readme = "[a](docs/cli.md#try) [b](LICENSE) [c](https://example.org/docs/x#y)"
    made = "[a](cli.md#try) [b](../LICENSE) [c](https://example.org/docs/x#y)"
    assert home_page(readme) == made


def test_programs_of_the_tree_that_documents_start_can_be_started():
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("scripts/*.py"), *ROOT.glob("benches/*.py")]
    started = {
        (page.relative_to(ROOT).as_posix(), program)
        for page in pages
        for program in re.findall(r"^ {0,4}((?:benches|scripts)/[\w./-]+) ", page.read_text(), re.MULTILINE)
    }
    assert ("docs/performance.md", "benches/run") in started
    assert [(page, program) for page, program in sorted(started) if not os.access(ROOT / program, os.X_OK)] == []


def test_the_documented_size_of_the_largest_event_is_that_of_headwayd():
    code = (ROOT / "crates/headwayd/src/network.rs").read_text()
    said = re.search(r"an event over\s(\d+) MiB", (DOCS / "netwatch.md").read_text())
    assert said[1] == re.search(r"LONGEST: u64 = (\d+) << 20", code)[1]


def test_the_example_of_the_base_controller_prints_what_its_page_says(capsys):
    from headway.envs import EnvConfig

    page = (Path(__file__).parent.parent / "docs" / "base-controller.md").read_text()
    example, printed = re.findall(r"^```(?:python)?\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(example, {})
    assert capsys.readouterr().out == printed
    # Each table on the page is valid for an agent.
    shown = [tomllib.loads(f"it = {text}")["it"] for text in re.findall(r"^\| `(\{.*?\})`", page, re.MULTILINE)]
    assert len(shown) == 6
    for table in shown:
        agents = {"rate": "aurora-v1", "bbr": "bbr-tuner-ppo-v1"}
        named = EnvConfig.named(agents.get(table.get("name", "rate"), "owl"))
        made = replace(named, agent={**named.agent, "base": table})
        assert made.spec["base"]["kind"] == table["kind"]


def test_each_crate_in_the_architecture_picture_uses_only_crates_below_it():
    """Every crate with code is in the picture."""
    picture = (DOCS / "img" / "architecture.svg").read_text()
    heights = {name: float(y) for y, name in re.findall(r'class="name" x="[\d.]+" y="([\d.]+)">([\w/]+)<', picture)}
    assert heights.pop("python/headway") < min(heights.values())
    uses = {}
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        table = tomllib.loads(manifest.read_text())
        own = [table, *table.get("target", {}).values()]
        found = {name for one in own for name in one.get("dependencies", {}) if name.startswith("headway-")}
        uses[manifest.parent.name] = {name.removeprefix("headway-") for name in found} - {"features"}
    del uses["features"]
    assert set(uses) == set(heights)
    assert "emu" in uses["py"]
    assert [(one, used) for one in uses for used in uses[one] if heights[used] <= heights[one]] == []
