"""`make docs`: writes the generated pages of docs.

Their contents come from the program and its tests.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import checks
import plain
from checks import Check
from headway._native import Scenario, features, measurements, scenario_names, schemes
from headway.fields import EVENTS, RESULTS, SERIES, Field
from headway.lists import varies
from wrap_docs import wrapped

DOCS = Path(__file__).parent.parent / "docs"
NOTE = "<!-- Written by `make docs`; change the program instead. -->\n"
COMMANDS = (
    "bench",
    "shell",
    "report",
    "gap",
    "reproduce",
    "train",
    "try",
    "shadow",
    "schemes",
    "scenarios",
    "models",
    "models show",
    "models check",
    "models export",
    "models import",
    "tune",
    "tune host",
    "tune agent",
    "tune status",
    "testbed",
    "netwatch",
    "netwatch run",
    "netwatch status",
    "netwatch token",
    "keys",
    "keys new",
    "keys show",
    "traces",
    "traces fetch",
    "traces info",
    "traces convert",
    "traces plot",
)
FEATURES_ABOUT = """# Features

This page lists what a learned controller can observe. In every world, each feature is computed from the same
records of a flow (`Record` in `crates/policy`, `struct headway_record` in `crates/kernel/bpf/abi.h`). So a
model sees the same in training and in use. There is no feature that the kernel cannot supply.

*Simulator* is the source in our transport, in simulated time and over UDP. *Kernel* is what the BPF program
reads; `tp` is the `tcp_sock`. *Rounding* is the largest difference because of the kernel's whole numbers: its
time stamps are in microseconds. `cargo test -p headway-kernel --test all features` computes the features of
seven runs both ways. This tests only the rounding, because our transport supplies the data of both.

"""
FEATURES_DIFFER = """
## What differs beyond rounding

- In recovery over Cubic the kernel does not call `cong_avoid`. There, records come before loss detection and
  the rate sample, so both are one acknowledgement late, and `cwnd_packets` is the window of proportional rate
  reduction. No decision is made during recovery.
- The kernel takes no RTT sample of retransmitted packets (Karn). Our retransmissions have new numbers.
- The kernel drops a delivery-rate sample over less than its minimum RTT in whole microseconds. Headway's
  transport may keep a sample within 1 us of that limit that the kernel drops.
- The kernel counts a last packet that is not full. Headway's transport does not.
- With digests of several acknowledgements, counts are the same and samples are the newest. Averages,
  spreads, means and slopes (`_ewma`, `_mean_`, `rtt_ms`, `rtt_slope`) are over digests.
"""
EXIT_CODES = """
## Exit codes

| code | meaning |
| ---: | --- |
| 0 | Done. |
| 1 | It failed while it ran, or an option such as `--strict` was not met. |
| 2 | Wrong usage or bad input. Nothing was run. |
| 129 | SIGHUP ended it: a terminal or connection that was closed. |
| 130 | SIGINT ended it: Ctrl-C. |
| 143 | SIGTERM ended it: `kill`, `timeout`, a batch system, `docker stop`. |

A signal loses no finished work: it is written, and one line says where it is. After an interruption of
`bench`, `gap`, `reproduce`, `train`, `try` or `traces fetch`, the same command continues from there.
`distill` and `train rax-v3` make their folder completely or not at all. They start again from the beginning.
`bench` writes its runs before it computes statistics. A signal ends its statistics and its
report at once: `bench.json` has no `results` then. Results that do not fit into `--out` are written to the
temporary folder (`TMPDIR`), and one line says where.
If standard output is full, the exit code is 1 and one line says where the results are. Closed standard
output counts as `/dev/null`. A reader that leaves early (`head`) ends a command with exit code 0.
A second signal cannot interrupt the writing. `headway shell` has the exit code of its program.
`headway tune host`, `headway tune agent`, `headway netwatch run` and `headway try --serve` serve
until a signal ends them. Their exit code is then 0, as `headwayd`'s is. `nohup` works as usual: an
ignored signal stays ignored.

## Files that are written

A file is written completely or not at all: a temporary file in the same folder is written, then renamed. An
existing file keeps its mode and owner, and a link stays a link. These are written in place instead:

- `-` (standard output), `/dev/stdout`, `/dev/stderr` and `/dev/fd/N`: the stream itself, after its earlier
  contents, so that `>>` and a redirect that several commands share work as usual.
- A pipe or a device.
- A file that is mounted by itself (as `docker run -v FILE:FILE` does), or whose folder cannot be written.

Charts are drawn last, after the results are written and the table is printed, in a separate process. If
that is impossible, as under `ulimit -v`, one line says so, and the exit code is 1. `headway report DIR`
draws the report later.
"""
FEATURES_REWARDS = """
## Columns for rewards only

A policy cannot observe these columns, because a kernel does not know all of them. A
[reward](stable-baselines3.md#1-the-reward) may use them together with every feature above. `info` of an environment
has them too. Units are in the names.

"""


def table(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def scheme_section(scheme: dict[str, Any], found: list[Check]) -> str:
    """The section of one scheme: how it differs from its source, its parameters, and its checks."""
    name = scheme["name"]
    snapshot = f"../crates/sim/tests/snapshots/{name}.snap"
    needs = ", ".join(scheme["needs"]) or "nothing special"
    parts = [
        f"\n### {name}\n\n{sentence(scheme['summary'])} Source: {scheme['source']}. Needs {needs}. "
        f"[How it behaves]({snapshot}), second by second.\n"
    ]
    if scheme["deviations"]:
        parts.append("\nIt differs from its source:\n\n")
        parts += [f"- {sentence(one)}\n" for one in scheme["deviations"]]
    if scheme["params"]:
        params = [
            [f"`{p['name']}`", p["help"], str(p["kind"]), p["default"] or "required"] for p in scheme["params"]
        ]
        parts.append("\n" + table(["parameter", "what it does", "value", "default"], params))
    if found:
        rows = [
            [
                (f"`{c['scheme']}`: " if c["scheme"] != name else "") + c["what"],
                plain.rounded(f"{c['outside']} {c['unit']}".strip()),
                f"{c['ours']:.4g}",
                f"**missed**: {c['missed']}" if c["missed"] else "met",
                c["source"],
            ]
            for c in found
        ]
        parts.append("\n" + table(["figure", "published value", "measured", "", "source"], rows))
    return "".join(parts)


def sentence(text: str) -> str:
    """The text with a capital and a full stop."""
    return text[:1].upper() + text[1:].removesuffix(".") + "."


def verdict(found: list[Check]) -> str:
    """The number of checks that hold, and the figure with the largest miss or difference."""
    if not found:
        return "none"
    worst = max(found, key=lambda check: abs(check["off"]))
    met = sum(not check["missed"] for check in found)
    outside = plain.rounded(f"{worst['outside']} {worst['unit']}".strip())
    largest = "largest miss" if met < len(found) else "largest difference"
    return f"{met} of {len(found)} met; {largest}: {worst['what']}, {outside}, measured {worst['ours']:.4g}"


def schemes_page() -> str:
    """The page of all schemes, and of all scenarios and families.

    A scheme has its source, its needs, its differences from the source, parameters and checks.
    """
    checks_of: dict[str, list[Check]] = {}
    for check in checks.kept():
        checks_of.setdefault(check["scheme"].partition(":")[0], []).append(check)
    rows, parts = [], []
    for s in schemes():
        found = checks_of.get(s["name"], [])
        needs = ", ".join(s["needs"]) or "nothing"
        link = f"[`{s['name']}`](#{s['name']})"
        count = len(s["deviations"])
        differs = f"[in {count}](#{s['name']})" if count else "no difference"
        rows.append(
            [link, s["family"], s["summary"], needs, ", ".join(s["worlds"]), s["source"], differs, verdict(found)]
        )
        parts.append(scheme_section(s, found))
    scenarios = []
    for name in scenario_names():
        members = Scenario.load_all(name)
        s, sweep = members[0], members[0].sweep
        about = f"{s.description}; {sweep['key']} = {', '.join(sweep['values'])}" if sweep else s.description
        counts = sorted({m.flows for m in members})
        flows = f"{counts[0]}-{counts[-1]}" if len(counts) > 1 else str(counts[0])
        scenarios.append(
            [f"`{name}`", s.paper, about, flows, ", ".join(s.traces), ", ".join(varies(members)) or "nothing"]
        )
    return wrapped(
        f"{NOTE}# Schemes and scenarios\n\nYou write a scheme as `name:key=value:key=value`.\n\n"
        + table(
            [
                *("scheme", "family", "what it does", "needs", "worlds", "source"),
                *("differs from its source", "checks against published values"),
            ],
            rows,
        )
        + "\n## Scheme by scheme\n\n"
        + "A figure compares a measurement of the project's tests with a published value and its tolerance\n"
        + "([how they are run](validation.md)). A missed figure says why.\n"
        + "".join(parts)
        + "\n## Scenarios\n\n"
        + table(["scenario", "paper", "what it is", "flows", "traces", "the seed varies"], scenarios)
    )


def features_page() -> str:
    """The page of the features that a learned controller can observe, with their sources.

    It also lists the other columns that a reward can use.
    """
    rows = [
        [
            f"`{f['name']}`",
            f["unit"],
            f["help"],
            "; ".join(dict.fromkeys(f["simulator"])),
            "; ".join(dict.fromkeys(f["kernel"])),
            f["rounding"],
        ]
        for f in features()
    ]
    heads = ["feature", "unit", "what it is", "simulator", "kernel", "rounding"]
    observed = {f["name"] for f in features()}
    only = table(["column", "what it is"], [[f"`{n}`", about] for n, about in measurements() if n not in observed])
    return wrapped(f"{NOTE}{FEATURES_ABOUT}{table(heads, rows)}{FEATURES_DIFFER}{FEATURES_REWARDS}{only}")


def cli_page() -> str:
    """The page of the exit codes and of every command's --help."""
    parts = [f"{NOTE}# Commands\n{EXIT_CODES}"]
    for command in ("", *COMMANDS):
        words = command.split()
        text = subprocess.run(
            [sys.executable, "-m", "headway", *words, "--help"],
            check=True,
            capture_output=True,
            text=True,
            env={"COLUMNS": "100", "TERM": "dumb"},
        ).stdout
        parts.append(f"\n## {' '.join(['headway', *words])}\n\n```\n{text.strip()}\n```\n")
    return wrapped("".join(parts))


COLUMNS_ABOUT = """# Columns of the Parquet files

Any Parquet reader opens these files, such as pandas, Polars or DuckDB. In Python,
[`results.to_pandas()` and `results.series()`](python-api.md) have the same columns.

A type with "or null" has no value where the quantity does not apply. For example, one flow alone
has no Jain's index. [How metrics are counted](decisions/0004-metrics.md) has the definitions.
"""
FILES: tuple[tuple[str, str, tuple[Field, ...]], ...] = (
    (
        "results.parquet",
        """\
`headway bench` writes it: one row a run and flow. **`flow` is -1 in the row of the whole run**,
which takes all flows under test together. Most analyses begin with the rows where `flow == -1`. A
scenario with one flow has two rows a run, -1 and 0. The footer has `schema`, and `bench`: how the
bench was made, as JSON.""",
        RESULTS,
    ),
    (
        "series.parquet",
        """\
`headway bench` writes it: one row a flow and bin of 500 ms (wider if a run had over a million
bins). **It has only run 0 of each scheme and scenario.** The same bench with another `--seed` has
the series of another run. The footer has `schema`.""",
        SERIES,
    ),
    (
        "events.parquet",
        """\
`headway shell --log DIR` writes it, and `headway bench --logs` in worlds `emu` and `kernel` (as
`run-0.events.parquet`): one row an event at a link or a host. [Recordings](recordings.md) explains
it.""",
        EVENTS,
    ),
)


def columns_page() -> str:
    """The page of the columns of each Parquet file."""
    parts = [f"{NOTE}{COLUMNS_ABOUT}"]
    for name, about, fields in FILES:
        rows = []
        for field in fields:
            kind = f"{field.type} or null" if field.optional else field.type
            rows.append([f"`{field.name}`", kind, field.unit, field.help])
        columns = table(["column", "type", "unit", "meaning"], rows)
        parts.append(f"\n## {name}\n\n{about}\n\n{columns}")
    return wrapped("".join(parts))


def main() -> None:
    """Measures the checks and writes the pages."""
    checks.keep(checks.measure())
    pages = {
        "schemes.md": schemes_page(),
        "features.md": features_page(),
        "cli.md": cli_page(),
        "columns.md": columns_page(),
    }
    for name, text in pages.items():
        (DOCS / name).write_text(text)
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
