"""`make bench-kernel` compares the cost of the Linux datapath with the kernel's own Cubic.

It also measures how soon the agent answers. It needs root and a kernel that accepts BPF
controllers. Everything runs in separate network, mount and process namespaces, which end with it.
See docs/kernel-performance.md.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import enclosure
import performance
from datapath import (
    agent,
    backlog,
    built,
    cost,
    in_bpf,
    judge,
    many,
    measures,
    others,
    page,
    place,
    programs,
    variants,
)
from datapath.progress import Progress
from headway import UsageError
from wrap_docs import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "bench"
KEPT = OUT / "kernel.json"
PAGE = ROOT / "docs" / "kernel-performance.md"
ABI = ROOT / "crates" / "kernel" / "bpf" / "abi.h"
OBJECTS = ABI.parent / "objects"
TOOLS = {"iperf3": "iperf3", "ip": "iproute2", "tc": "iproute2", "taskset": "util-linux", "cc": "build-essential"}
SCHEMA = 4
STAGES = ("cost", "hooks", "latency", "flows", "backlog", "answers", "int8")
TESTED = "HEADWAY_BENCH_PROGRAMS"
"""An environment variable with the programs built for this measurement, by name."""


def refusal() -> str | None:
    """The reason why the measurement cannot run here, in one line, or None if it can."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
    reasons = {
        "it takes root, for BPF programs and namespaces: sudo make bench-kernel": os.geteuid() != 0,
        "it takes two processors: one for the traffic, one for the agent": (os.cpu_count() or 1) < 2,
        f"without {', '.join(missing)}; install: apt-get install -y {packages}": bool(missing),
    }
    if why := next((why for why, holds in reasons.items() if holds), None) or enclosure.refusal():
        return why
    try:
        with agent.Agent("--no-agent", "--controllers", "headway_owl", "--name", place.CONTROLLER):
            return None
    except (RuntimeError, UsageError) as error:
        return str(error)


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="benches/kernel.py", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print build/bench/kernel.json instead of tables")
    parser.add_argument("--quick", action="store_true", help="short runs and few rounds, as a test")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of every stage; default: 7 for cost, 3 else"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="length of a transfer; default: 2.2, or 1 with --quick"
    )
    parser.add_argument("--flows", type=int, default=1000, metavar="N", help="flows that one agent serves at once")
    parser.add_argument(
        "--only", metavar="STAGE,...", help=f"only these stages of {', '.join(STAGES)}; the others are kept"
    )
    parser.add_argument("--int8", metavar="SPEC", help="the integer policy; default: the newest in models/")
    parser.add_argument("--last", action="store_true", help="use the last measurement instead of a new one")
    parser.add_argument("--publish", action="store_true", help="write docs/kernel-performance.md")
    args = parser.parse_args()
    if args.rounds is not None and args.rounds < 1:
        parser.error(f"--rounds {args.rounds}: at least 1")
    if args.seconds is not None and not 1 <= args.seconds <= 600:
        parser.error(f"--seconds {args.seconds:g}: 1 to 600")
    if not many.FEW < args.flows <= many.MOST_FLOWS:
        parser.error(f"--flows {args.flows}: {many.FEW + 1} to {many.MOST_FLOWS}")
    args.only = args.only.split(",") if args.only else list(STAGES)
    if unknown := set(args.only) - set(STAGES):
        parser.error(f"--only {unknown.pop()}: one or more of {', '.join(STAGES)}")
    return args


def kept() -> dict[str, Any] | None:
    """The last measurement, or None if there is none, or one of another schema."""
    figures: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return figures if figures.get("schema") == SCHEMA else None


def measure(args: argparse.Namespace, tested: dict[str, str]) -> None:
    """Runs every stage that was chosen, and saves its figures.

    The figures of other stages are taken from the last measurement.
    """
    figures = kept() or {}
    figures |= {
        "schema": SCHEMA,
        "machine": performance.machine() | {"kernel": os.uname().release},
        "skipped": [],
        "quick": args.quick,
    }
    seconds = args.seconds or (1 if args.quick else 2.2)
    rounds = args.rounds or (1 if args.quick else 3)
    int8 = args.int8 or in_bpf.shipped(ROOT)
    models = OUT / "models"
    compared = variants.every(models, int8)
    transferring, counted = variants.transferring(compared), variants.counted(compared)
    if not int8:
        figures["skipped"].append("flows with a policy inside BPF: no model of whole numbers; --int8 SPEC is one")
    plan = {
        "cost": (args.rounds or (1 if args.quick else 7), 2 * len(transferring) * (seconds + 0.4) + 2),
        "hooks": (rounds, 3 * (len(counted) * (seconds + 0.8) + 2 * variants.SETTLE_S)),
        "latency": (rounds, 12 * (2 * seconds + 0.8)),
        "flows": (rounds, 6 * (2 * seconds + (args.flows + many.FEW) * 1e-3 + 15)),
        "backlog": (rounds, len(backlog.POLICIES) * (backlog.GATHERS_S + 10)),
        "answers": (rounds, 3.0),
        "int8": (rounds, 1.0),
    }
    progress = Progress({stage: plan[stage] for stage in STAGES if stage in args.only})
    measured: dict[str, Callable[[], Any]] = {
        "cost": lambda: cost.measure(progress, transferring, seconds),
        "hooks": lambda: measures.hook_times(progress, counted, seconds),
        "latency": lambda: measures.latencies(progress, models, 2 * seconds),
        "flows": lambda: many.measure(progress, models, many_flows(), 2 * seconds, args.flows),
        "backlog": lambda: backlog.measure(progress, many_flows()),
        "answers": lambda: many.answers(progress, tested.get("answers"), OUT),
        "int8": lambda: in_bpf.measure(progress, tested["int8"]) if "int8" in tested else None,
    }
    for name, what in built.WHAT.items():
        if name in args.only and name not in tested:
            figures["skipped"].append(f"{what}: cargo cannot build what measures it")
    known = {name: variant._asdict() for name, variant in (compared | counted).items()}
    figures["variants"] = figures.get("variants", {}) | known
    figures.setdefault("made", {})
    for stage in progress.stages():
        figures[stage] = measured[stage]()
        figures["made"][stage] = {
            "version": figures["machine"]["version"],
            "abi": abi(),
            "programs": programs.digest(OBJECTS),
        }
        figures["targets"] = judge.targets(figures)
        # The finished figures are saved, even if a later stage fails.
        KEPT.write_text(json.dumps(figures, indent=1) + "\n")
    progress.done()


def abi() -> int:
    """The version of the interface between programs and agent."""
    found = re.search(r"^#define HEADWAY_VERSION (\d+)$", ABI.read_text(), re.MULTILINE)
    if not found:
        raise RuntimeError(f"{ABI.relative_to(ROOT)} does not define HEADWAY_VERSION")
    return int(found[1])


def many_flows() -> Path:
    """Compiles the program that sends and receives many flows."""
    program = OUT / "many_flows"
    subprocess.run(["cc", "-O2", "-o", program, Path(__file__).parent / "datapath/many_flows.c"], check=True)
    return program


def enter(stages: list[str]) -> int:
    """Runs this script again in separate namespaces, which end with this process in any case."""
    command = enclosure.command(sys.executable, __file__, *sys.argv[1:])
    outer = others.outer_proc()
    inside = {enclosure.INSIDE: "1", TESTED: json.dumps(built.build(ROOT, stages)), others.OUTER_PROC: f"{outer}"}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with subprocess.Popen(command, env=os.environ | inside, pass_fds=[outer]) as inside_it:
        try:
            return inside_it.wait()
        except KeyboardInterrupt:
            # The child has received the signal too, and cleans up.
            inside_it.wait(20)
            return 130
        finally:
            inside_it.kill()


def main() -> int:
    """Measures, saves and shows the figures.

    Returns 0 even if a target is missed, because this is a measurement and not a test.
    """
    # The program that started this may ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    args = arguments()
    OUT.mkdir(parents=True, exist_ok=True)
    if args.last and not kept():
        print("benches/kernel.py: --last: there is no measurement of this version; leave it out", file=sys.stderr)
        return 2
    if not args.last and not enclosure.is_inside():
        if why := refusal():
            print(f"SKIPPED the kernel's measurements: {why}")
            return 0
        return enter(args.only)
    if not args.last:
        try:
            measure(args, json.loads(os.environ[TESTED]))
        except KeyboardInterrupt:
            return 130
        except (RuntimeError, OSError, subprocess.CalledProcessError, UsageError) as error:
            print(f"\nbenches/kernel.py: {str(error).splitlines()[0]}", file=sys.stderr)
            return 1
    figures = json.loads(KEPT.read_text())
    figures["targets"] = judge.targets(figures)
    if args.json:
        print(json.dumps(figures, indent=1))
    else:
        page.show(figures)
    if args.publish:
        PAGE.write_text(wrapped(page.markdown(figures, programs.digest(OBJECTS))))
        print(f"bench: wrote {PAGE.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
