"""`make bench` measures how accurate and how fast Headway is.

Each speed is a ratio or a count taken in one run.
"""

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import accuracy
import document
import enclosure
import inference
import measures
import tables
from rounds import Figures, Progress

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "bench"

BUDGETS = {
    "accuracy": 90.0,
    "speed": 60.0,
    "schemes": 60.0,
    "instructions": 180.0,
    "flows": 45.0,
    "seconds": 20.0,
    "cores": 30.0,
    "inference": 30.0,
    "emulator": 45.0,
}
"""The seconds that each measurement may take. Rounds are repeated while time remains."""


def build_example(package: str, example: str) -> Path:
    """Builds the example of a package that measures it, and returns its path."""
    command = ["cargo", "build", "--locked", "--release", "--quiet", "-p", package, "--example", example]
    run = subprocess.run(
        [*command, "--message-format=json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    built = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return next(Path(b["executable"]) for b in built if b.get("executable"))


def measure() -> Figures:
    """Runs every measurement that this machine has the tools for."""
    print("bench: building the simulator, the emulator and the ns-3 program", file=sys.stderr, flush=True)
    speed, emulator = build_example("headway-sim", "speed"), build_example("headway-emu", "link_speed")
    answers = build_example("headway-policy", "inference")
    skipped = []
    ns3 = subprocess.run([ROOT / "benches/ns3/build"], check=False, stderr=subprocess.PIPE, text=True)
    if ns3.returncode:
        skipped.append(f"comparison with ns-3: {ns3.stderr.strip().splitlines()[-1]}")
    has_valgrind = shutil.which("valgrind") and shutil.which("addr2line")
    if not has_valgrind:
        skipped.append("instructions a packet: valgrind is missing: apt-get install valgrind binutils")

    peers = inference.pythons()
    for peer, module in inference.PEERS.items():
        if peer not in peers:
            skipped.append(f"networks compared with {peer}: {module} is missing: pip install onnx {module}")
    if refused := enclosure.refusal():
        skipped.append(f"the emulator: {refused}")

    figures: Figures = {"schema": 1, "machine": machine(), "skipped": skipped}
    left_out = {"instructions": not has_valgrind, "emulator": refused}
    progress = Progress({stage: budget for stage, budget in BUDGETS.items() if not left_out.get(stage)})
    progress.say("accuracy", "accuracy: the validation tests")
    figures["accuracy"] = accuracy.measure(ROOT)
    if ns3.returncode:
        figures["speed"] = measures.alone(progress, speed)
    else:
        figures["speed"] = measures.against_ns3(progress, speed, ROOT / "build/ns3/rax_link")
    figures["schemes"] = measures.over_schemes(progress, speed)
    if has_valgrind:
        figures["instructions"] = measures.instructions_a_packet(progress, speed, OUT)
    figures["flows"] = measures.over_flows(progress, speed, OUT)
    figures["seconds"] = measures.over_seconds(progress, speed, OUT)
    figures["cores"] = measures.two_cores(progress, OUT)
    figures["inference"] = inference.measure(progress, answers, peers, OUT)
    if not refused:
        figures["emulator"] = emulated(progress, emulator)
    progress.done()
    figures["targets"] = tables.judge(figures)
    return figures


def emulated(progress: Progress, emulator: Path) -> Figures:
    """The emulator's figures, which include their own place and date."""
    return {"machine": machine(), "links": measures.emulated(progress, emulator, OUT)}


def measure_emulator(figures: Figures) -> Figures:
    """The last `figures` with those of the emulator measured again.

    These need an idle machine.
    """
    progress = Progress({"emulator": BUDGETS["emulator"]})
    figures["emulator"] = emulated(progress, build_example("headway-emu", "link_speed"))
    progress.done()
    figures["targets"] = tables.judge(figures)
    return figures


def machine() -> Figures:
    """The machine, the commit and the date of the measurement."""
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    version = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, check=False, capture_output=True, text=True
    ).stdout.strip()
    return {
        "cpu": cpu[0].partition(":")[2].strip() if cpu else "unknown",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "version": version or "unknown",
        "date": datetime.date.today().isoformat(),
    }


def main() -> int:
    """Measures, shows and saves the figures.

    Returns 0 even if a target is missed, because this is a measurement and not a test.
    """
    parser = argparse.ArgumentParser(prog="benches/run", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print build/bench/bench.json instead of tables")
    parser.add_argument("--write-doc", action="store_true", help="write the figures into docs/performance.md")
    parser.add_argument("--last", action="store_true", help="use the last measurement instead of a new one")
    parser.add_argument("--emulator", action="store_true", help="measure only the emulator; other figures are kept")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    kept = OUT / "bench.json"
    if (args.last or args.emulator) and not kept.exists():
        print("benches/run: --last, --emulator: nothing has been measured yet; leave it out", file=sys.stderr)
        return 2
    try:
        if args.emulator:
            kept.write_text(json.dumps(measure_emulator(json.loads(kept.read_text())), indent=1) + "\n")
        elif not args.last:
            kept.write_text(json.dumps(measure(), indent=1) + "\n")
    except KeyboardInterrupt:
        return 130
    except KeyError as missing:
        sys.exit(f"benches/run: {kept} is of an older benches/run (without {missing}): leave --emulator out")
    except FileNotFoundError as error:
        print(f"benches/run: {error.filename} is missing; `make bench` installs what it needs", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().splitlines()
        print(f"benches/run: {error.cmd[0]} failed{': ' + said[-1] if said else ''}", file=sys.stderr)
        return 1
    except subprocess.TimeoutExpired as error:
        print(f"benches/run: {error.cmd[0]} was not done after {error.timeout:.0f} s", file=sys.stderr)
        return 1
    figures = json.loads(kept.read_text())
    if args.json:
        print(kept.read_text(), end="")
    else:
        tables.show(figures)
    if args.write_doc:
        for path in document.write(figures, ROOT / "docs"):
            print(f"bench: wrote {path.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
