"""The packages of `headway` have an order.

Each imports only lower ones, and no modules form a cycle.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "headway"
PAGE = ROOT / "docs" / "architecture.md"


def modules_of(package: Path) -> dict[str, Path]:
    """Every module by its full name. A package is its `__init__`."""
    found = {}
    for file in package.rglob("*.py"):
        parts = [package.name, *file.relative_to(package).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(module: str, file: Path) -> list[tuple[str, list[str]]]:
    """The imports of a file, at the top, inside functions, or for types only.

    They are full names of modules, each with the full names of the objects taken from it.
    """
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    found: list[tuple[str, list[str]]] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found.append((base, [f"{base}.{alias.name}" for alias in node.names]))
    return found


def imports_of(module: str, modules: dict[str, Path]) -> set[str]:
    """The modules in `modules` that the module imports.

    A name that is not a module belongs to the module from which it is taken.
    """
    found = set()
    for base, names in imports(module, modules[module]):
        found.update({name if name in modules else base for name in names} or {base})
    return found & modules.keys() - {module}


def graph_of(package: Path) -> dict[str, set[str]]:
    """The imports of each module.

    `headway` itself is at the top, because it loads `headway.api`. It also has names that lower
    modules use (test_only_names_defined_in_the_package_are_imported_from_it), which are not
    counted here.
    """
    modules = modules_of(package)
    return {module: imports_of(module, modules) - {package.name} for module in modules}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return graph_of(PACKAGE)


def part_of(module: str) -> str:
    """The package or the module right below `headway` that a module belongs to."""
    return ".".join(module.split(".")[:2])


def parts(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports of each package, or module next to the packages, from the others."""
    merged: dict[str, set[str]] = {}
    for module, imported in graph.items():
        merged.setdefault(part_of(module), set()).update(map(part_of, imported))
    return {part: imported - {part} for part, imported in merged.items()}


def must_have_no_cycle(graph: dict[str, set[str]]) -> None:
    """Fails with the cycle, and with the imports that make it."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # The sorter puts each module after the one that it imports.
        pytest.fail(f"move what they share into a lower module: {' <- '.join(error.args[1])}")


def test_no_packages_import_each_other(graph):
    must_have_no_cycle(parts(graph))


def test_no_modules_import_each_other(graph):
    assert len(graph) > 100
    must_have_no_cycle(graph)


def test_packages_stand_in_their_documented_order(graph):
    ordered = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(ordered) == sorted(file.parent.name for file in PACKAGE.glob("*/__init__.py"))
    imported = parts(graph)
    for index, name in enumerate(ordered):
        higher = {f"headway.{other}" for other in ordered[index + 1 :]}
        reached, wanted = set(), {f"headway.{name}"}
        # Cycles through modules next to the packages count, although these have no place in the
        # table.
        while wanted:
            reached |= (one := {wanted.pop()})
            wanted |= imported[one.pop()] - reached
        assert reached & higher == set(), f"{name} imports a package that stands below it in {PAGE.name}"


def test_only_the_command_imports_the_command_line(graph):
    """A user of the Python API needs no Typer."""
    users = {module for module, imported in graph.items() if "headway.cli" in map(part_of, imported)}
    assert {part_of(user) for user in users} == {"headway.cli", "headway.__main__"}


def test_only_names_defined_in_the_package_are_imported_from_it():
    modules = modules_of(PACKAGE)
    taken = set()
    for file in modules.values():
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if "from headway import" in text else ():
            if isinstance(node, ast.ImportFrom) and node.module == "headway":
                taken.update(alias.name for alias in node.names)
    own = {name for name in taken if f"headway.{name}" not in modules}
    assert own == {"Package", "__version__", "_native"}


@pytest.mark.parametrize(
    "line",
    [
        "import headway.cli.usage",
        "from headway.cli.usage import words",
        "from headway.cli import usage",
        "from ..cli import usage",
        "from ..cli.usage import words",
        "def f():\n    from headway.cli import usage",
        "if TYPE_CHECKING:\n    from headway.cli.usage import words",
    ],
)
def test_a_cycle_is_found_however_it_is_imported(tmp_path, line):
    package = tmp_path / "headway"
    for folder in ("runs", "cli"):
        (package / folder).mkdir(parents=True)
        (package / folder / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "runs" / "one.py").write_text("import headway\nimport headway.clients\nimport os\n")
    (package / "cli" / "usage.py").write_text("from headway.runs import one\n")
    must_have_no_cycle(graph_of(package))
    must_have_no_cycle(parts(graph_of(package)))
    (package / "runs" / "one.py").write_text(line)
    modules = graph_of(package)
    for cyclic, of in ((modules, r"headway\.cli\.usage"), (parts(modules), r"headway\.cli")):
        with pytest.raises(pytest.fail.Exception, match=rf"headway\.runs.* <- {of}|{of} <- headway\.runs"):
            must_have_no_cycle(cyclic)


def test_a_cycle_of_packages_is_found_where_no_modules_form_one(tmp_path):
    package = tmp_path / "headway"
    for name, line in (
        ("a/one", "import headway.b.one"),
        ("a/two", ""),
        ("b/one", ""),
        ("b/two", "import headway.a.two"),
    ):
        file = package / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(line)
    must_have_no_cycle(graph_of(package))
    with pytest.raises(pytest.fail.Exception, match=r"headway\.a"):
        must_have_no_cycle(parts(graph_of(package)))
