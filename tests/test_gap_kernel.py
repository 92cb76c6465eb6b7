"""The gap between simulator and kernel, next to the emulator's, on results worked out by hand."""

import json

import pytest

from gap_rows import NETWORK, compared, finished, rows
from headway.gap import compare, page, plan, tables
from headway.gap.chart import figure
from headway.gap.plan import EMU, KERNEL, SIM, Settings, Task
from headway.report.svg import standalone


def in_three(triples, scenario=NETWORK, scheme="owl", runs=None):
    """The row of a learned scheme.

    It has (simulator, emulator, kernel) keywords of `finished` for each seed.
    """
    settings = Settings(runs=runs or len(triples))
    by_key = {}
    for seed, values in zip(plan.all_seeds(settings), triples, strict=False):
        for world, value in zip((SIM, EMU, KERNEL), values, strict=True):
            task = Task(world, scenario, scheme, seed, scenario.seconds, settings.warmup)
            if value is not None:
                by_key[tuple(task.key.values())] = finished(task, **value)
    rows = compare.compare([scenario], [scheme], settings, lambda task: by_key.get(tuple(task.key.values())))
    return rows[0] if rows else None


def owl_row():
    """Three pairs in each world. The kernel is 5% slower and its delay 25% longer."""
    return in_three(
        [
            ({}, {"throughput": 10.1}, {"throughput": 9.5, "delay": 125.0, "guard_trips": trips})
            for trips in (0, 2, 0)
        ]
    )


def test_the_kernel_has_its_own_target_next_to_the_emulator():
    row = owl_row()
    assert row["throughput_mbps"]["percent"]["mean"] == pytest.approx(1)
    assert row["target"] is None
    kernel = row["kernel"]
    assert kernel["throughput_mbps"]["kernel"]["mean"] == 9.5
    assert kernel["throughput_mbps"]["percent"]["mean"] == pytest.approx(-5)
    assert kernel["target"] == {"throughput_mbps": "met", "delay_p95_ms": "missed"}
    assert (kernel["pairs"], kernel["guard_trips"]) == (3, [2])
    assert page.guards([row]) == [
        "In the kernel, pantheon-default, owl: the fallback took over 2 times, in 1 of 3 runs; "
        "those runs show in part a classical controller, not the policy"
    ]
    # Only learned schemes have it, because newreno is the kernel's in the emulator already.
    assert compared([({}, {})], Settings(runs=1))["kernel"] is None
    assert in_three([({}, {}, None)])["kernel"] is None


def test_runs_in_the_kernel_are_reported_without_the_emulator():
    row = in_three([({"throughput": 8.0}, None, {"throughput": 9.0})])
    assert (row["pairs"], row["kernel"]["pairs"]) == (0, 1)
    assert row["throughput_mbps"]["sim"]["mean"] is None
    cells = [column.cell(row) for column in tables.columns_for([row])]
    assert cells[:3] == ["8.00 (1 run)", tables.NOTHING, "+12.5 (1 pair)"]
    standalone(figure([row]))


def test_tables_have_kernel_columns_if_anything_ran_there():
    alone, both = rows(), [*rows(), owl_row()]
    assert [c.title for c in tables.columns_for(alone)].count("kernel less sim") == 0
    assert [c.title for c in tables.columns_for(both)].count("kernel less sim") == 2
    text = page.tables(both)
    # The scenario of the learned scheme has these columns, and the other has not.
    first, second = text.split("### ")[1:]
    assert "in the kernel" in first
    assert "in the kernel" not in second
    owl = next(line for line in first.splitlines() if line.startswith("| owl |"))
    assert owl.startswith("| owl | ours over UDP | 3 | 3 | 10.0 ")
    assert "| -5.00 (-5.00 to -5.00) |" in owl
    targets = page.targets(both)
    assert "In the kernel, of 2: 1 met, 1 missed." in targets
    assert "throughput, within 10%" in targets
    assert "7 emulated" not in page.about(both, "headway gap", [])
    assert "9 emulated runs and 3 in the kernel, none of them unfit" in page.about(both, "headway gap", [])
    drawing = json.dumps(figure(both))
    assert "owl, kernel" in drawing
    assert "in the kernel 10%, 20%" in drawing
    assert "kernel" not in json.dumps(figure(alone))


def test_the_default_schemes_include_owl_if_headwayd_is_usable(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWAYD", str(tmp_path / "none"))
    assert plan.usual() == [*plan.OF_KERNEL, *plan.UDP_HOSTED]
    program = tmp_path / "headwayd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("HEADWAYD", str(program))
    assert plan.usual()[-1] == "owl"


def test_parts_of_the_page_without_new_measurements_are_kept(tmp_path):
    (tmp_path / "img").mkdir()
    names = ["about", "target", "tables", "kernel: about", "kernel: target", "kernel: tables"]
    parts = "".join(f"<!-- gap: {name} -->\nold {name}\n<!-- end -->\n" for name in names)
    (tmp_path / "gap.md").write_text(parts)
    written = page.publish(tmp_path, [owl_row()], "headway gap --schemes owl", [])
    assert [path.name for path in written] == ["gap.md", "gap-kernel.svg"]
    text = (tmp_path / "gap.md").read_text()
    assert [name for name in names if f"old {name}\n" in text] == ["about", "target", "tables"]
    assert "in the kernel" in text
