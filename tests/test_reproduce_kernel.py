"""Figures over the kernel's TCP: their runs, and the schemes next to Owl."""

import pytest

from headway._native import Scenario, canonical_scheme
from headway.reproduce.claim import Verdict, judge
from headway.reproduce.engine import (
    UNFIT,
    command,
    of_real_time,
    only_fit,
    or_all,
    shows_unfit,
    unsure,
    without_unfit,
)
from headway.reproduce.lab import FULL_KERNEL, QUICK_KERNEL, Lab, MissingError, family
from headway.reproduce.measured import Measured
from headway.reproduce.owl import contenders
from headway.reproduce.scenarios import of_text
from headway.stats.estimate import NOTHING
from test_reproduce import OWL
from test_reproduce_claims import measured, metric


def test_a_figure_of_the_kernel_is_shown_next_to_the_simulators():
    (in_kernel,) = [figure for figure in OWL.figures if figure.world == "kernel"]
    assert (in_kernel.name, in_kernel.cli_name) == ("fig11-kernel", "fig11")
    assert command(OWL, in_kernel) == "headway reproduce owl fig11 --world kernel"
    (simulated,) = [figure for figure in OWL.figures if figure.cli_name == "fig11" and figure.world == "sim"]
    assert command(OWL, simulated) == "headway reproduce owl fig11"


def test_a_lab_of_the_kernel_asks_for_runs_there(monkeypatch, tmp_path):
    program = tmp_path / "headwayd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("HEADWAYD", str(program))
    full, quick = (Lab(settings, world="kernel") for settings in (FULL_KERNEL, QUICK_KERNEL))
    assert (full.quick, quick.quick) == (False, True)
    assert quick.lengths([1, 2, 5]) == [1, 2]
    assert list(quick.members("owl-geni")) == [1, 16]
    assert list(full.members("owl-geni")) == list(family("owl-geni"))
    task = full.want("owl", full.scheme("owl"), Scenario.load("owl-geni:count=2")).tasks[0]
    assert (task.world, task.transport) == ("kernel", "linux")
    assert task.key["scheme"] == canonical_scheme("owl", "kernel")
    assert task.key["world"] == "kernel"
    # Without random parameters, real time still varies.
    fixed = of_text('schema = 1\nname = "fixed"\nseconds = 4\n[bottleneck]\nrate = "12Mbps"\ndelay = "9ms"\n')
    assert fixed.varies == []
    assert [len(lab.want("c", "cubic", fixed).seeds) for lab in (full, Lab())] == [5, 1]


def test_a_scheme_missing_in_the_kernel_is_noted_in_one_line(monkeypatch):
    monkeypatch.setenv("HEADWAYD", "/nowhere")
    lab = Lab(world="kernel")
    with pytest.raises(MissingError, match=r"^owl is not in this kernel: HEADWAYD=/nowhere: no such program"):
        lab.scheme("owl")
    assert lab.available_schemes(["kernel-reno", "kernel-renno"]) == {"kernel-reno": "kernel-reno"}
    assert "kernel-renno is not in this kernel: the kernel has no congestion control 'renno'" in lab.notes[0]


def test_every_controller_of_the_kernel_is_a_contender(monkeypatch, tmp_path):
    available = tmp_path / "available"
    available.write_text("reno bbr cubic vegas hw_12_0 headway_owl pk_owl dctcp\n")
    monkeypatch.setattr(contenders, "AVAILABLE", available)
    assert contenders.of_this_kernel() == ["bbr", "cubic", "kernel-vegas", "newreno"]


def test_unfit_runs_are_left_out_pair_by_pair():
    """The second run of Owl is unfit.

    Its seed shows no difference, also not with Cubic's run of it.
    """
    found, wanted = measured(owl=[11.0, 99.0, 31.0], cubic=[10.0, 20.0, 30.0])
    runs = {one: list(found.runs(one)) for one in wanted.values()}
    del runs[wanted["owl"]][1]
    found = Measured(runs)
    assert found.difference(wanted["owl"], wanted["cubic"], "throughput_mbps").mean == 1.0
    assert found.mean(wanted["owl"], "throughput_mbps").mean == 21.0
    del runs[wanted["owl"]][:]
    nothing = found.difference(wanted["owl"], wanted["cubic"], "throughput_mbps")
    assert nothing.mean is None


def test_a_point_without_fit_runs_shows_all_runs_with_a_note():
    found, wanted = measured(owl=[11.0, 99.0, 31.0], cubic=[10.0, 20.0, 30.0])
    runs = {one: [run | {"unfit": None, "guard_trips": 0} for run in found.runs(one)] for one in wanted.values()}
    owl = runs[wanted["owl"]]
    shown = or_all(only_fit(runs), runs)
    assert (shown, of_real_time(runs, shown)) == (runs, [])
    assert not shows_unfit(shown)
    owl[0] |= {"unfit": "it stood still", "guard_trips": 3}
    shown = or_all(only_fit(runs), runs)
    assert [run["throughput_mbps"] for run in shown[wanted["owl"]]] == [99.0, 31.0]
    assert of_real_time(runs, shown) == [
        "1 of 6 runs are unfit and left out. The first one's reason: it stood still."
    ]
    owl[1]["unfit"] = owl[2]["unfit"] = "it was late"
    runs[wanted["cubic"]][0]["unfit"] = "it stood still"
    shown = or_all(only_fit(runs), runs)
    assert shown[wanted["owl"]] == owl
    assert [run["throughput_mbps"] for run in shown[wanted["cubic"]]] == [20.0, 30.0]
    left_out, said, guard = of_real_time(runs, shown)
    assert left_out.startswith("1 of 6 runs are unfit and left out.")
    assert said.startswith("**All 3 runs of owl over ")
    assert "are unfit but shown**" in said
    assert "owl" in guard
    assert shows_unfit(shown)


def test_claims_without_unfit_runs_are_decided():
    """Owl has no fit run.

    The claim about Cubic stays the same without Owl's runs, the others do not.
    """

    def claims(owl, cubic):
        less = metric(1.0, 0.5, 1.5) if owl else NOTHING
        return [
            judge("fig.cubic", "it says", "measured", metric(cubic, 1.0, 3.0), low=0.0),
            judge("fig.owl-less-cubic", "it says", "measured", less, low=0.0),
            judge("fig.best", "it says", "measured", metric(max(owl, cubic), 1.0, 30.0), low=0.0),
        ]

    shown, sure = claims(9.0, 2.0), claims(0.0, 2.0)
    assert [one.verdict for one in shown] == [Verdict.HOLDS] * 3
    assert sure[2].verdict is Verdict.HOLDS
    found = without_unfit(shown, sure)
    assert [one.verdict for one in found] == [Verdict.HOLDS, Verdict.OPEN, Verdict.OPEN]
    assert [one.note for one in found[1:]] == [UNFIT, UNFIT]
    assert [one.verdict for one in without_unfit(shown, [])] == [Verdict.OPEN] * 3


def test_unfit_runs_decide_no_claim():
    sure = judge("fig.more", "it says", "measured", metric(2.0, 1.0, 3.0), low=0.0)
    assert sure.verdict is Verdict.HOLDS
    assert (unsure(sure).verdict, unsure(sure).note, unsure(sure).ours) == (Verdict.OPEN, UNFIT, sure.ours)
