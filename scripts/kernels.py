"""`make test-kernels` boots Debian's kernels in virtual machines.

It tries each controller on each of them. It takes the newest kernel of each version that apt offers
for cloud machines, and others that are given. Nothing is installed. Downloads and builds are in
build/kernels.
"""

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import checks

OUT = checks.ROOT / "build" / "kernels"
GUEST = Path(__file__).with_name("kernels_guest.sh")
HEADWAYD = checks.ROOT / ".venv" / "bin" / "headwayd"
MODEL = checks.ROOT / "models" / "aurora-int8-v1"
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "iperf3": "iperf3",
    "ip": "iproute2",
    "tc": "iproute2",
    "dpkg-deb": "dpkg",
    "xz": "xz-utils",
    "zstd": "zstd",
}
"""Programs that are needed here, with the packages that contain them."""
IN_GUEST = ("ip", "tc", "iperf3")
MODULES = ("veth", "sch_netem", "tcp_bbr")
UNPACK = {".xz": "xz", ".zst": "zstd", ".gz": "gzip"}
"""The program that unpacks a module, by the end of the module's name."""
KERNEL = re.compile(r"linux-image-(\d+\.\d+\.\S*cloud-amd64)")
PARTS = ("image", "binary", "modules")
"""The packages of a Debian kernel: one package, or three."""
FLOORS = {"headway_owl": (6, 1), "headway_rate": (6, 1), "headway_window": (6, 10), "headway_bbr": (6, 10)}
"""The oldest kernel for each controller (docs/kernel.md)."""
LINKS = (6, 4)
"""The oldest kernel that registers a controller by a link, which can be pinned."""
PIN = re.compile(r"/sys/fs/bpf/headway/headway_owl/headway_owl-\d+-[0-9a-f]+/link\b")
"""The pin that keeps headway_owl registered."""
UNPINNED = re.compile(r'because they cannot be pinned why="(.*? since 6\.4)"')
"""The message in the log of an agent that pins nothing on kernels before `LINKS`."""
NO_BBR = "the kernel has no BBR to call; 'modprobe tcp_bbr' may help"
WANTED = 0.02
"""The required share of Cubic's throughput there. A stalled flow has less. Emulated machines are
too slow for a larger one."""
ACCELERATORS = (("kvm", 30), ("tcg", 120))
"""The accelerators of qemu, each with the seconds in which a kernel starts to print."""
LIMIT_S = 600
"""The time limit of a kernel's trials. They take about 200 s, also emulated."""

Said = dict[str, dict[str, str]]
"""The output of the virtual machine, by trial and by kind."""

Wrong = dict[str, bool]
"""The possible faults of a controller, and whether each is there."""


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    kernel: str
    what: str
    verdict: str
    why: str

    def __str__(self) -> str:
        return f"| {self.kernel} | {self.what} | {self.verdict} | {self.why} |"


def main() -> int:
    """Tries all available kernels. Returns 1 if one does not behave as documented."""
    arguments = argparse.ArgumentParser(description=__doc__)
    others = "kernels besides apt's: .deb files for amd64, or folders with what was in some"
    arguments.add_argument("others", nargs="*", type=Path, help=others)
    given = arguments.parse_args()
    if why := refusal():
        print(f"SKIPPED all kernels: {why}")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    print("| kernel | controller | verdict | what was seen |\n|---|---|---|---|")
    kernels: list[list[str] | Path] = [*offered(), *given.others]
    rows = [row for kernel in kernels for row in tried(kernel)]
    if not rows:
        print("SKIPPED all kernels: apt offers none (apt-get update?)")
    return int(any(row.verdict == "FAILS" for row in rows))


def refusal() -> str | None:
    """The reason why no trial can run here, with a remedy, or None if they can."""
    if platform.machine() != "x86_64":
        return f"they are for x86_64, and this is {platform.machine()}"
    if not shutil.which("apt-get"):
        return "they are Debian's, and there is no apt-get"
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            return f"{tool} is missing; install it: sudo apt-get install -y {package}"
    return None if HEADWAYD.exists() else f"{HEADWAYD} is missing: make headwayd"


def offered() -> list[list[str]]:
    """The packages that apt has: the newest kernel of each version."""
    listed = subprocess.run(["apt-cache", "pkgnames", "linux-"], capture_output=True, text=True, check=True)
    names = set(listed.stdout.split())
    releases = sorted((found[1] for name in names if (found := KERNEL.fullmatch(name))), key=numbers)
    newest = {tuple(numbers(release)[:2]): release for release in releases}
    parts = ([f"linux-{part}-{release}" for part in PARTS] for release in newest.values())
    return [[name for name in packages if name in names] for packages in parts]


def numbers(release: str) -> list[int]:
    """The numbers in a kernel's name."""
    return [int(number) for number in re.findall(r"\d+", release.removesuffix("amd64"))]


def tried(kernel: list[str] | Path) -> list[Row]:
    """Boots a kernel and prints the results."""
    name = str(kernel) if isinstance(kernel, Path) else kernel[0]
    try:
        said = boot(folder_of(kernel))
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        why = (error.stderr or b"").decode(errors="replace").strip().split("\n")[-1]
        rows = [Row(name, "all", "skipped", why or str(error))]
    except UnfitError as error:
        rows = [Row(name, "all", "FAILS", str(error))]
    else:
        rows = judged(said)
    for row in rows:
        print(row, flush=True)
    return rows


class UnfitError(Exception):
    """A kernel that was not found, or did not end."""


def folder_of(kernel: list[str] | Path) -> Path:
    """The folder with the kernel's files."""
    if isinstance(kernel, Path):
        return kernel if kernel.is_dir() else unpacked([kernel])
    return unpacked(download(kernel))


def download(packages: list[str]) -> list[Path]:
    """The files of the packages. Missing ones are downloaded."""
    if missing := [name for name in packages if not next(OUT.glob(f"{name}_*.deb"), None)]:
        command = ["apt-get", "download", "-qq", *missing]
        subprocess.run(command, cwd=OUT, check=True, capture_output=True, timeout=LIMIT_S)
    return [next(OUT.glob(f"{name}_*.deb")) for name in packages]


def unpacked(packages: list[Path]) -> Path:
    """The folder with the unpacked packages."""
    root = OUT / packages[0].stem
    if not root.exists():
        half = root.with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        for package in packages:
            subprocess.run(["dpkg-deb", "-x", package, half], check=True, capture_output=True)
        half.rename(root)
    return root


def boot(root: Path) -> Said:
    """Runs the trials under a kernel."""
    image = next(root.rglob("vmlinuz*"), None)
    if not image:
        raise UnfitError("no vmlinuz in the package")
    initrd, console, results = OUT / "initrd", OUT / f"{root.name}.console", OUT / f"{root.name}.results"
    initrd.write_bytes(archive(contents(root)))
    command = ["qemu-system-x86_64", "-cpu", "max", "-m", "1024", "-smp", "2", "-nodefaults", "-display", "none"]
    command += ["-no-reboot", "-kernel", str(image), "-initrd", str(initrd)]
    # On a loaded machine an emulated timer can seem to be broken.
    command += ["-append", "console=ttyS0 quiet panic=-1 no_timer_check rdinit=/init"]
    command += ["-serial", f"file:{console}", "-serial", f"file:{results}"]
    # On some machines KVM starts a virtual machine, which then does nothing.
    used = next((how for how, begin_s in ACCELERATORS if runs([*command, "-accel", how], results, begin_s)), "")
    said: Said = {"kernel": {"accelerator": used}}
    for what, key, value in re.findall(r"^(.*?)\t(.*?)\t(.*)$", results.read_text(errors="replace"), re.MULTILINE):
        said.setdefault(what, {})[key] = value
    if "end" not in said["kernel"]:
        raise UnfitError(f"has not come to the end; its console: {console}")
    return said


def runs(command: list[str], results: Path, begin_s: float) -> bool:
    """Runs a virtual machine until it ends, or for LIMIT_S.

    It runs no longer than `begin_s` if it prints nothing by then.
    """
    results.write_text("")
    # It also ends if this process is killed.
    limited = ["timeout", "--kill-after=5", str(LIMIT_S), *command]
    with subprocess.Popen(limited, stderr=subprocess.DEVNULL) as machine:
        until = time.monotonic() + begin_s
        try:
            while machine.poll() is None and (results.stat().st_size or time.monotonic() < until):
                time.sleep(0.5)
        finally:
            machine.terminate()
    return results.stat().st_size > 0


def contents(root: Path) -> dict[str, bytes]:
    """The files of the virtual machine by their paths."""
    files = {"init": GUEST.read_bytes(), "bin/busybox": Path(str(shutil.which("busybox"))).read_bytes()}
    programs = {f"usr/bin/{name}": Path(str(shutil.which(name))) for name in IN_GUEST}
    for path, program in (programs | {"usr/bin/headwayd": HEADWAYD}).items():
        files[path] = program.read_bytes()
        listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        files |= {library[1:]: Path(library).read_bytes() for library in re.findall(r"(/\S+) \(0x", listed)}
    files |= {f"model/{file.name}": file.read_bytes() for file in MODEL.iterdir()}
    return files | modules(root)


def modules(root: Path) -> dict[str, bytes]:
    """The available modules, named so that each comes after those it needs."""
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        file = next(root.rglob(f"{name}.ko*"), None)
        if not file or any(path.endswith(f"-{name}.ko") for path in found):
            return
        code = file.read_bytes()
        if unpack := UNPACK.get(file.suffix):
            code = subprocess.run([unpack, "-dc"], input=code, check=True, capture_output=True).stdout
        needs = re.search(rb"\0depends=([^\0]*)\0", code)
        for other in needs[1].decode().split(",") if needs else ():
            add(other)
        found[f"modules/{len(found):02}-{name}.ko"] = code

    for name in MODULES:
        add(name)
    return found


def archive(files: dict[str, bytes]) -> bytes:
    """An archive in the format that the kernel unpacks.

    See Documentation/driver-api/early-userspace/buffer-format.rst.
    """
    folders = {str(folder) for path in files for folder in Path(path).parents if folder.name}
    folder_mode, file_mode = 0o040755, 0o100755
    entries = [(path, folder_mode, b"") for path in sorted(folders)]
    entries += [(path, file_mode, content) for path, content in files.items()]
    packed = bytearray()
    for inode, (path, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        name = path.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        packed += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        packed += bytes(-len(packed) % 4) + content
        packed += bytes(-len(packed) % 4)
    return bytes(packed)


def judged(said: Said) -> list[Row]:
    """A row for each trial."""
    release = said["kernel"]["release"]
    name = f"{release} ({said['kernel']['accelerator']})"
    cubic = mbps(said["cubic"]["flow"])
    complaints = said["kernel"]["complaints"]
    rows = [Row(name, "all", "FAILS", f"the kernel says: {complaints}")] if complaints else []
    for what, trial in said.items():
        if what in ("kernel", "cubic"):
            continue
        try:
            rows.append(Row(name, what, *verdict(what, trial, release, cubic)))
        except (json.JSONDecodeError, KeyError) as error:
            rows.append(Row(name, what, "FAILS", f"it says too little: {error!r}"))
    return rows


def verdict(what: str, trial: dict[str, str], release: str, cubic: float) -> tuple[str, str]:
    """Whether a controller behaved as expected under a kernel, and the observations."""
    controller, _, how = what.partition(", ")
    version = tuple(numbers(release)[:2])
    refusal = None
    if version < (floor := FLOORS[controller]):
        refusal = f"headwayd: {controller} needs Linux {floor[0]}.{floor[1]} or newer; this is {release}"
    elif how == "no tcp_bbr":
        refusal = f"headwayd: cannot register {controller}: {NO_BBR}"
    if refusal or "refused" in trial:
        said = trial.get("refused", "is not refused")
        return ("refused" if said == refusal else "FAILS"), said
    if how == "pinned":
        wrong, seen = outlived(controller, trial, version, cubic)
    else:
        wrong, seen = served(controller, how, trial, version, cubic)
    found = [said for said, is_so in wrong.items() if is_so]
    return ("FAILS" if found else "works"), "; ".join([*found, seen])


def served(
    controller: str, how: str, trial: dict[str, str], version: tuple[int, ...], cubic: float
) -> tuple[Wrong, str]:
    """The same for a controller that ends with its agent."""
    early, status = json.loads(trial["early"]), json.loads(trial["status"])
    flows = [flow for flow in early["flows"] + status["flows"] if flow["controller"] == controller]
    decisions, trips = status["counters"]["actions"], status["counters"]["guard_trips"]
    rate, after = mbps(trial["flow"]), mbps(trial["flow_of_killed"])
    outlives = controller in trial["after_kill"]
    wrong = {
        "serves no flow": not flows,
        # Decisions of a policy inside the kernel are not counted.
        "decides nothing": how != "int8" and controller != "headway_bbr" and not decisions,
        "its rate stays": how == "int8" and len({flow["pacing_rate_mbps"] for flow in flows}) < 2,
        # With an RTprop window of 0.5 s the flow has reached PROBE_RTT, and so 4 packets. With
        # BBR's own window that takes 10 s.
        "its windows are not set": controller == "headway_bbr" and least_cwnd(trial["flow"]) > 4,
        "stalls": rate < WANTED * cubic,
        "stalls once its agent was killed": after < WANTED * cubic,
        f"lets another take its name: {trial['another']}": "another headwayd running" not in trial["another"],
        f"ended with {trial['ended']}": trial["ended"] != "0",
        "stays registered after its end": controller in trial["after_term"] + trial["after_again"],
        "stays registered once its agent was killed": outlives and version >= LINKS,
        "is gone once its agent was killed": not outlives and version < LINKS,
        f"does not begin again: {trial['again']}": '"ready"' not in trial["again"],
    }
    seen = f"{rate:.1f} Mbit/s, {decisions} decisions, {trips} trips; agent killed: {after:.1f} (Cubic {cubic:.1f})"
    if outlives:
        seen += ", registered until the next agent"
    return wrong, seen


def outlived(controller: str, trial: dict[str, str], version: tuple[int, ...], cubic: float) -> tuple[Wrong, str]:
    """The same for a controller that is pinned where the kernel can do that."""
    before, after = (steered(json.loads(trial[key]), controller) for key in ("served", "adopted"))
    rate, why = mbps(trial["flow"]), UNPINNED.search(trial["log"])
    stays = controller in trial["available term"]
    wrong = {
        "serves no flow": not before,
        "is gone once its agent was killed": controller not in trial["available kill"],
        f"does not begin again: {trial['again']}": '"ready"' not in trial["again"],
        "stalls": rate < WANTED * cubic,
        f"ended with {trial['ended']}": trial["ended"] != "0",
    }
    seen = f"{rate:.1f} Mbit/s (Cubic {cubic:.1f}); "
    unloaded = f"{controller} is unloaded"
    if version >= LINKS:
        taken, after_term = f"another headwayd serves {controller}", unloaded
        wrong |= {
            f"pins no link, but {trial['pins kill']}": not PIN.search(trial["pins kill"]),
            "is not adopted": "adopted the pinned programs of an earlier agent" not in trial["again"],
            "does not decide again for the flow of the killed agent": not before.keys() <= after.keys(),
            "is gone after its end": not stays,
            f"pins no link after its end, but {trial['pins term']}": not PIN.search(trial["pins term"]),
        }
        decisions = (max(flows.values(), default=0) for flows in (before, after))
        seen += "{} decisions, {} once adopted; unloaded".format(*decisions)
    else:
        taken, after_term = "another headwayd running", "no controller of headwayd's is registered"
        pins = trial["pins kill"] + trial["pins term"]
        wrong |= {
            f"does not say why it pins nothing: {trial['log']}": not why,
            f"pins {pins}": bool(pins),
            "decides again for the flow of the killed agent": bool(after),
            "stays registered after its end": stays,
        }
        seen += f"{why[1] if why else 'nothing is pinned'}; unloaded"
    wrong[f"lets another take its name: {trial['another']}"] = taken not in trial["another"]
    for end, says in (("term", after_term), ("kill", unloaded)):
        said, left = trial[f"unload {end}"], trial[f"pins unload {end}"]
        wrong[f"unload ({end}) ends with {said}"] = said != f"0 {says}"
        wrong[f"unload ({end}) leaves the controller"] = controller in trial[f"available unload {end}"]
        wrong[f"unload ({end}) leaves {left}"] = bool(left)
    return wrong, seen


def steered(status: dict[str, Any], controller: str) -> dict[tuple[int, str], int]:
    """The flows that the policy controls, by number and port, each with its decisions."""
    flows = [flow for flow in status["flows"] if flow["controller"] == controller and flow["guard"] == "policy"]
    return {(flow["flow"], flow["local"]): flow["decisions"] for flow in flows if flow["decisions"]}


def least_cwnd(flow: str) -> float:
    """The flow's smallest window, in packets."""
    told = json.loads(flow)
    windows = [interval["streams"][0]["snd_cwnd"] for interval in told["intervals"]]
    return float(min(windows) / told["start"]["tcp_mss_default"])


def mbps(flow: str) -> float:
    """The received bytes, as counted by iperf3."""
    try:
        return float(json.loads(flow)["end"]["sum_received"]["bits_per_second"]) / 1e6
    except (json.JSONDecodeError, KeyError):
        return 0.0


if __name__ == "__main__":
    sys.exit(main())
