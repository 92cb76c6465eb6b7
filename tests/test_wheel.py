"""The installed package has everything that a checkout has."""

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import checks

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).resolve().parent.parent
OBJECTS = ROOT / "crates" / "kernel" / "bpf" / "objects"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel is built as by `pip install .`, with the crates compiled already."""
    out = tmp_path_factory.mktemp("wheel")
    command = [Path(sys.executable).with_name("maturin"), "build", "--locked", "--release", "--quiet", "--out", out]
    subprocess.run(command, cwd=ROOT, check=True)
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_files_of_the_package_are_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "python/headway"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    assert {name.removeprefix("python/") for name in listed} <= set(wheel.namelist())


def test_headwayd_is_in_the_wheel_and_needs_no_library(tmp_path: Path) -> None:
    if why := checks.without_headwayd():
        pytest.skip(why)
    subprocess.run(["make", "--silent", "wheel", f"WHEEL_OUT={tmp_path}"], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert not (ROOT / "headway._native.data").exists()
    # It is installed as by pip, without its dependencies.
    venv.create(tmp_path / "venv", with_pip=True)
    pip = [tmp_path / "venv" / "bin" / "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True)
    headwayd = tmp_path / "venv" / "bin" / "headwayd"
    # headwayd has the programs for the kernel in it.
    objects = list(OBJECTS.glob("*.bpf.o"))
    assert len(objects) == 6
    content = headwayd.read_bytes()
    assert [path.name for path in objects if path.read_bytes() not in content] == []
    done = subprocess.run([headwayd, "--version"], check=True, stdout=subprocess.PIPE, text=True)
    assert re.fullmatch(r"headwayd \d+\.\d+\.\d+\n", done.stdout)
    assert (tmp_path / "venv" / "bin" / "headway").exists()
    unit = subprocess.run([headwayd, "systemd-unit"], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert f"\nExecStart={headwayd} run " in unit
    linked = subprocess.run(["ldd", headwayd], check=True, stdout=subprocess.PIPE, text=True).stdout
    libraries = {line.split()[0].rpartition("/")[2] for line in linked.splitlines()}
    # The libraries are glibc's, gcc's for unwinding, and the kernel's own.
    assert {re.sub(r"\.so.*", "", name) for name in libraries} <= {
        *("libc", "libm", "libgcc_s", "linux-vdso", "ld-linux-x86-64", "ld-linux-aarch64"),
    }
