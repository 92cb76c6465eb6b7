"""`make docs`: writes docs/schemes.md and docs/cli.md from what the program says of itself."""

import subprocess
import sys
from pathlib import Path

from headway._native import Scenario, scenario_names, schemes
from headway.cli.lists import varies

DOCS = Path(__file__).parent.parent / "docs"
NOTE = "<!-- Written by `make docs`; change the program instead. -->\n"
COMMANDS = (
    "bench",
    "report",
    "schemes",
    "scenarios",
    "traces",
    "traces fetch",
    "traces info",
    "traces convert",
    "traces plot",
)


def table(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def schemes_page() -> str:
    """Every scheme with its parameters, and every scenario or family."""
    rows, parts = [], []
    for s in schemes():
        needs = ", ".join(s["needs"]) or "nothing"
        rows.append([f"`{s['name']}`", s["family"], s["summary"], needs, ", ".join(s["worlds"]), s["source"]])
        if s["params"]:
            params = [[f"`{p['name']}`", p["help"], str(p["kind"]), str(p["default"])] for p in s["params"]]
            parts.append(
                f"\n### {s['name']}\n\n" + table(["parameter", "what it does", "value", "default"], params)
            )
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
    return (
        f"{NOTE}# Schemes and scenarios\n\nWritten `name:key=value:key=value`.\n\n"
        + table(["scheme", "family", "what it does", "needs", "worlds", "source"], rows)
        + "\n## Parameters\n"
        + "".join(parts)
        + "\n## Scenarios\n\n"
        + table(["scenario", "paper", "what it is", "flows", "traces", "the seed varies"], scenarios)
    )


def cli_page() -> str:
    """Every command's --help."""
    parts = [f"{NOTE}# Commands\n"]
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
    return "".join(parts)


def main() -> None:
    """Writes both pages."""
    for name, text in (("schemes.md", schemes_page()), ("cli.md", cli_page())):
        (DOCS / name).write_text(text)
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
