"""The library does not depend on the command line: who writes Python needs no typer."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "python" / "headway"
PROGRAMS = {"__main__.py", "train/program.py", "train/team_study.py"}
"""What is run by `python -m`: it prints as the command line does."""


def imported(file: Path) -> set[str]:
    """Every module that the file imports, wherever it does, under its full name."""
    package = ["headway", *file.relative_to(PACKAGE).parent.parts]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def needs_the_command_line(file: Path) -> bool:
    return any(name == "headway.cli" or name.startswith("headway.cli.") for name in imported(file))


def test_no_library_module_imports_the_command_line():
    names = {file: file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py")}
    library = {file: name for file, name in names.items() if not name.startswith("cli/")}
    assert len(library) > 100
    found = {name for file, name in library.items() if needs_the_command_line(file)}
    assert found == PROGRAMS, "move what they need out of headway.cli"


def test_every_way_to_import_it_is_seen(monkeypatch, tmp_path):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "runs").mkdir()
    file = tmp_path / "runs" / "one.py"
    for line in (
        "import headway.cli.usage",
        "from headway.cli.usage import words",
        "from headway import cli",
        "from ..cli import usage",
        "from .. import cli",
        "def f():\n    from headway.cli import usage",
    ):
        file.write_text(line)
        assert needs_the_command_line(file), line
    for line in ("import headway", "from headway import client", "import headway.clients"):
        file.write_text(line)
        assert not needs_the_command_line(file), line
