"""What pip installs has what a checkout has."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OBJECTS = ROOT / "crates" / "kernel" / "bpf" / "objects"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """As `pip install .` builds it; the crates are compiled already."""
    out = tmp_path_factory.mktemp("wheel")
    command = [Path(sys.executable).with_name("maturin"), "build", "--locked", "--release", "--quiet", "--out", out]
    subprocess.run(command, cwd=ROOT, check=True)
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_programs_for_the_kernel_are_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    objects = {path.name: path.read_bytes() for path in OBJECTS.glob("*.bpf.o")}
    assert len(objects) == 5
    assert {name: wheel.read(f"headway/data/bpf/{name}") for name in objects} == objects


def test_files_of_the_package_are_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "python/headway"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    assert {name.removeprefix("python/") for name in listed} <= set(wheel.namelist())
