"""`make test-train` runs the tests that need PyTorch, and keeps a digest of the files that passed.

PyTorch is 3 GB. So the gate runs these tests only where one of the files in `COVERED` has changed
since they passed last: tests/train/passed.txt holds one digest of these files. This program writes
it, and you commit it.

Usage: train_tests.py [--have-passed | WORD ...]
"""

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import python_tests
import surroundings

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests" / "train" / "passed.txt"
COVERED = [
    "Cargo.toml",
    "examples/train_sb3.py",
    *(f"crates/{name}" for name in ("cc", "env", "net", "policy", "py", "record", "scenario", "sim", "world")),
    "models",
    "pyproject.toml",
    *(
        f"python/headway/{name}"
        for name in ("distill", "data/systems", "envs", "ending.py", "files.py", "models", "train", "tune")
    ),
    *(f"python/headway/cli/{name}.py" for name in ("distill", "train", "tune")),
    "python/headway/api/training.py",
    "scenarios",
    *(f"scripts/{name}.py" for name in ("again", "python_tests", "train_tests")),
    *(f"tests/{name}.py" for name in ("commands", "conftest", "undrawn")),
    "tests/train",
    "uv.lock",
    # These tests do not read the crates' own tests. Without `glob` a pattern would leave out no
    # folder.
    ":(exclude,glob)crates/*/tests/**",
    ":(exclude,glob)crates/*/src/**/tests/**",
    ":(exclude,glob)crates/*/src/**/tests.rs",
]
IMPORTED = [
    *(f"python/headway/{name}.py" for name in ("__init__", "companions", "extras", "memory", "streams")),
    *(f"python/headway/{name}.py" for name in ("summary", "systems", "text", "traces/__init__", "trained_range")),
    *(f"python/headway/api/{name}.py" for name in ("arguments", "errors", "rows", "table")),
    *(f"python/headway/cli/{name}.py" for name in ("paths", "usage")),
    *(f"python/headway/{name}.py" for name in ("report/style", "runs/many_machines", "runs/store")),
    *(f"scripts/{name}.py" for name in ("needs", "surroundings", "workers")),
]
"""Files that those of COVERED import themselves. tests/test_gate.py compares them."""


def covered(paths: Sequence[str] = (*IMPORTED, *COVERED)) -> list[str]:
    """The names of the files that the tests cover."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths]
    done = subprocess.run(listed, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return sorted(set(done.stdout.split("\0")) - {"", str(KEPT.relative_to(ROOT))})


def digest() -> str:
    """The digest of the names and contents of the covered files, as they are on disk."""
    total = hashlib.sha256()
    for name in covered():
        file = ROOT / name
        if file.is_file():
            total.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def main() -> int:
    """Returns 0 if the tests pass or, with `--have-passed`, if they passed with the same files."""
    now = digest()
    if sys.argv[1:] == ["--have-passed"]:
        return int(not KEPT.exists() or KEPT.read_text().strip() != now)
    words = sys.argv[1:]
    chosen = ["-k", " or ".join(words)] if words else []
    if not python_tests.run("-m", "train", *chosen, may_be_none=bool(words)):
        return 1
    if not words:
        KEPT.write_text(f"{now}\n")
    return 0


if __name__ == "__main__":
    surroundings.prepare()
    sys.exit(main())
