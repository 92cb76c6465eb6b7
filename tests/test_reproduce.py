"""A paper's figures: when claims hold, on numbers worked out by hand; what is run, and what is published.

What each figure of Owl judges is in test_reproduce_owl.py.
"""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from headway._native import Batch, Scenario, UsageError, canonical_scheme, check_scheme
from headway.report.svg import standalone
from headway.reproduce import PAPERS, paper
from headway.reproduce.charts import Bar, bars, heat, looks_of, over, over_time, recoloured, titled
from headway.reproduce.claim import (
    LESS,
    MORE,
    Verdict,
    all_of,
    any_of,
    each_within,
    measured_once,
    so_many,
    text_of,
    verdict,
    within,
)
from headway.reproduce.engine import Outcome, begin, circumstances
from headway.reproduce.figure import Drawn, Figure
from headway.reproduce.lab import FULL, QUICK, Lab, MissingError, Settings, family
from headway.reproduce.measured import Measured
from headway.reproduce.owl.abc_path import SWITCHES, abc_path
from headway.reproduce.owl.buffer import needed, passes
from headway.reproduce.owl.contenders import ablation, model_of, online
from headway.reproduce.owl.design import ACTIONS, HISTORIES, LAYERS, RULE, STATES, WEIGHTS
from headway.reproduce.owl.fairness import DELTAS
from headway.reproduce.publish import publish
from headway.reproduce.scenarios import of_text, own, path_of
from headway.train.ablation import find

OWL = paper("owl")
HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def metric(mean, low=None, high=None):
    return {"mean": mean, "ci95": None if low is None else [low, high]}


@pytest.mark.parametrize(
    ("ci95", "expected"),
    [
        ([0.1, 0.9], HOLDS),
        ([0.0, 1.0], HOLDS),
        ([1.1, 2.0], FAILS),
        ([-2.0, -0.1], FAILS),
        ([0.9, 1.1], OPEN),
        (None, OPEN),
    ],
)
def test_a_claim_needs_its_whole_interval(ci95, expected):
    assert verdict({"mean": 0.5, "ci95": ci95}, low=0, high=1) is expected


def test_more_is_not_the_same():
    same = metric(0.0, 0.0, 0.0)
    assert verdict(same, low=0) is verdict(same, high=0) is HOLDS
    assert verdict(same, low=MORE) is verdict(same, high=LESS) is FAILS
    assert verdict(metric(1e-9, 1e-12, 1e-6), low=MORE) is HOLDS


def test_verdicts_together():
    assert all_of([HOLDS, HOLDS]) is HOLDS
    assert all_of([HOLDS, OPEN]) is OPEN
    assert all_of([OPEN, FAILS, HOLDS]) is FAILS
    assert any_of([FAILS, HOLDS, OPEN]) is HOLDS
    assert any_of([FAILS, OPEN]) is OPEN
    assert any_of([FAILS, FAILS]) is FAILS


def test_of_several_cases_the_one_that_fails_is_shown():
    cases = {"a": metric(-1, -9, 7), "b": metric(-0.5, -0.6, -0.4), "c": metric(3, 2, 4)}
    claim = each_within("x", "", "", cases, low=0)
    assert claim.verdict is FAILS
    assert claim.ours == cases["b"]
    assert claim.note == "the worst: b"
    # What is not measured leaves it open, and is named.
    claim = each_within("x", "", "", {"c": cases["c"], "d": metric(None)}, low=0)
    assert (claim.verdict, claim.ours) == (OPEN, cases["c"])
    assert "not measured: d" in claim.note
    assert each_within("x", "", "", {}, low=0).verdict is OPEN


def test_how_many_hold_is_from_the_sure_to_the_possible():
    cases = {"a": HOLDS, "b": HOLDS, "c": OPEN}
    claim = so_many("x", "", "", cases, least=2)
    assert (claim.verdict, claim.ours) == (HOLDS, metric(2, 2, 3))
    assert text_of(claim.ours, claim.unit) == ("2 of 3", "2 to 3")
    assert claim.note == "open: c"
    assert so_many("x", "", "", cases).verdict is OPEN
    assert so_many("x", "", "", cases | {"d": FAILS}).verdict is FAILS
    assert so_many("x", "", "", {}).verdict is OPEN


def test_a_number_that_was_measured_once_has_no_interval_and_decides():
    claim = measured_once("x", "", "", 94.5, "s", high=300)
    assert (claim.verdict, claim.ours) == (HOLDS, metric(94.5))
    assert text_of(claim.ours, claim.unit) == ("94.5 s", "none")
    assert measured_once("x", "", "", 301.0, high=300).verdict is FAILS
    assert measured_once("x", "", "", None, high=300).verdict is OPEN


def test_numbers_are_written_with_the_digits_that_their_interval_needs():
    assert text_of(metric(-16.66, -20.04, -13.4), "%") == ("-16.7 %", "-20.0 to -13.4")
    assert text_of(metric(None)) == ("\u2013", "\u2013")
    assert text_of(metric(3.0), "ms") == ("3.00 ms", "none")


# -- what runs gave --


def measured(**values):
    """Measured and what was wanted, by label: throughputs of runs on a network without a trace."""
    lab = Lab(Settings(runs=3), first_seed=5)
    scenario = Scenario.load("owl-geni:count=2")
    wanted = {label: lab.want(label, "cubic", scenario) for label in values}
    runs = {
        wanted[label]: [
            {"seed": seed, "seconds": 60.0, "throughput_mbps": rate}
            for seed, rate in zip(wanted[label].seeds, rates, strict=True)
        ]
        for label, rates in values.items()
    }
    return Measured(runs), wanted


def test_differences_are_of_runs_with_one_seed():
    found, wanted = measured(owl=[11.0, 21.0, 31.0], cubic=[10.0, 20.0, 30.0])
    assert found.difference(wanted["owl"], wanted["cubic"], "throughput_mbps") == metric(1.0, 1.0, 1.0)
    # 21 over 20 in the mean; what pairs add to it are 2.5, 0 and -2.5 points, and Student's factor is 4.303.
    percent = found.percent(wanted["owl"], wanted["cubic"], "throughput_mbps")
    half = 4.302652730 * 2.5 / 3**0.5
    assert percent["mean"] == pytest.approx(5.0)
    assert percent["ci95"] == pytest.approx([5 - half, 5 + half])
    alone = found.mean(wanted["owl"], "throughput_mbps")
    assert alone["ci95"] == pytest.approx([21 - 4.302652730 * 10 / 3**0.5, 21 + 4.302652730 * 10 / 3**0.5])


def test_what_is_kept_is_a_ratio_of_means():
    """Of 20 in the mean 16 are left, and of the other's 20 ten: 80% less 50%."""
    found, wanted = measured(
        ours=[10.0, 20.0, 30.0], left=[8.0, 16.0, 24.0], theirs=[10.0, 20.0, 30.0], rest=[4.0, 10.0, 16.0]
    )
    ours, theirs = (wanted["ours"], wanted["left"]), (wanted["theirs"], wanted["rest"])
    kept = found.kept(ours, theirs, "throughput_mbps")
    # The other's rest is 1, 0 and -1 below half of each run's, of 20: 5, 0 and -5 points. (Mean ratio: 48%.)
    half = 4.302652730 * 5 / 3**0.5
    assert kept["mean"] == pytest.approx(30.0)
    assert kept["ci95"] == pytest.approx([30 - half, 30 + half])


def test_runs_with_nothing_do_not_end_what_is_kept():
    rates = {"first": [0.0, 20.0, 40.0], "second": [10.0, 10.0, 10.0], "gap": [None, 30.0, 30.0], "none": [0.0] * 3}
    found, wanted = measured(**rates)

    def kept(*labels):
        return found.kept(
            (wanted["first"], wanted["second"]), tuple(wanted[one] for one in labels), "throughput_mbps"
        )

    assert kept("second", "first")["mean"] == pytest.approx(100 * (10 / 20 - 20 / 10))
    # Without the first seed: 10 of 30, less 30 of 10.
    assert kept("second", "gap")["mean"] == pytest.approx(100 * (10 / 30 - 30 / 10))
    assert kept("none", "first") == metric(None)


def test_a_run_without_a_value_says_nothing():
    found, wanted = measured(owl=[11.0, None, 31.0])
    assert found.mean(wanted["owl"], "throughput_mbps")["mean"] == 21.0


def test_a_lab_gives_the_same_seeds_to_all_and_cuts_quick_runs():
    scenario = Scenario.load("owl-geni:count=2")
    full, quick = (Lab(s).want("owl", "cubic", scenario) for s in (FULL, QUICK))
    assert (len(full.seeds), full.seconds) == (30, 60.0)
    assert (quick.seeds, quick.seconds) == (full.seeds[:2], 10.0)
    assert Lab(QUICK).lengths([1, 10, 20]) == [1, 10]
    key = full.tasks[0].key
    assert key["scheme"] == canonical_scheme("cubic", "sim")
    assert (key["seed"], key["seconds"], key["scenario_hash"]) == (full.seeds[0], 60.0, scenario.hash)


def test_what_is_not_there_is_one_line():
    lab = Lab()
    with pytest.raises(MissingError, match="no scheme tao-va here"):
        lab.scheme("tao-va")
    assert lab.those(["cubic", "tao-va", "cubik"]) == {"cubic": "cubic"}
    assert lab.notes == ["no scheme tao-va here: left out", "no scheme cubik here; nearest is cubic: left out"]
    with pytest.raises(UsageError, match="beta"):
        lab.scheme("cubic:beta=7")


def test_an_ablation_is_where_training_writes_it(tmp_path):
    lab = Lab(models=tmp_path)
    with pytest.raises(MissingError, match=r"headway train owl --ablation delta-0\.5$"):
        ablation(lab, "delta-0.5")
    folder = tmp_path / "owl-delta-05-v1-seed-3" / "owl-delta-05-v1"
    folder.mkdir(parents=True)
    assert ablation(lab, "delta-0.5").startswith(f"learned:model={folder}")


def test_an_ablation_of_other_settings_or_scenarios_is_refused(tmp_path):
    folder = tmp_path / "owl-no-mask-v1"
    folder.mkdir()

    def card(settings, scenario):
        (folder / "card.toml").write_text(
            f'[training]\nconfig_sha256 = "{settings}"\nscenarios = {{ owl-nash-training = "{scenario}" }}\n'
            "validation_scenarios = {}\n"
        )
        return ablation(Lab(models=tmp_path), "no-mask")

    settings, scenario = find("owl", "no-mask").hash, Scenario.load("owl-nash-training").hash
    assert card(settings, scenario).startswith(f"learned:model={folder}")
    with pytest.raises(
        MissingError, match="other settings than here; remove it, then headway train owl --ablation"
    ):
        card("0" * 64, scenario)
    with pytest.raises(MissingError, match="other scenarios than here"):
        card(settings, "0" * 16)
    (folder / "card.toml").write_text("[training]\nscenarios = {}\nvalidation_scenarios = {}\n")
    assert ablation(Lab(models=tmp_path), "no-mask").startswith("learned:")


def test_figures_need_nothing_of_training():
    code = (
        "import sys; sys.modules |= dict.fromkeys(['tomli_w', 'gymnasium', 'torch', 'safetensors', 'onnx']);"
        "from headway.reproduce import paper; print(len(paper('owl').figures))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("12\n", "")


def test_every_ablation_that_figures_take_can_be_trained():
    ablation = pytest.importorskip("headway.train.ablation")
    taken = {name for named in (STATES, ACTIONS, HISTORIES, LAYERS, WEIGHTS, RULE) for name in named.values()}
    assert {"no-mask", *(f"delta-{delta}" for delta in DELTAS), *taken} <= set(ablation.names("owl"))


def test_the_model_of_a_spec_is_its_folder_or_the_schemes_own():
    assert model_of("learned:model=out/mine-v1:latency=1ms") == "out/mine-v1"
    assert model_of("owl:model=v3") == "owl-v3"
    assert model_of("owl").startswith("owl-v")


def test_owl_goes_on_learning_beside_itself_and_its_ablations_take_as_long_to_answer(tmp_path):
    lab = Lab(models=tmp_path)
    assert [check_scheme(spec) for spec in online(lab).values()] == ["owl:online=true"]
    assert online(Lab(stand_ins={"owl": "aurora"})) == {}
    folder = tmp_path / "owl-delta-05-v1"
    folder.mkdir()
    assert ablation(lab, "delta-0.5") == f"learned:model={folder}:latency=0.026ms"


# -- Owl's buffers and paths --


def test_the_buffer_that_is_needed_lies_between_sizes_on_a_log_scale():
    assert passes([10, 40, 160], [40.0, 50.0, 50.0], 45.0) == pytest.approx(20.0)
    assert passes([10, 40], [46.0, 40.0], 45.0) == 10
    assert passes([10, 40], [30.0, 40.0], 45.0) is None


@pytest.mark.parametrize(
    ("owl", "vivace", "ratio"),
    [([40.0, 50.0], [46.0, 46.0], 2.0), ([40.0, 40.0], [46.0, 46.0], 8.0), ([40.0, 40.0], [40.0, 40.0], None)],
)
def test_a_scheme_that_never_has_enough_needs_more_than_the_largest_buffer(owl, vivace, ratio):
    """Sizes of 10 and 40: 45 lies half-way from 40 to 50, at 20; never is as 80."""
    found, wanted = measured(a=[owl[0]] * 3, b=[owl[1]] * 3, c=[vivace[0]] * 3, d=[vivace[1]] * 3)
    buffers = {10: {"owl": wanted["a"], "vivace": wanted["c"]}, 40: {"owl": wanted["b"], "vivace": wanted["d"]}}
    assert needed(buffers, found)["mean"] == (ratio and pytest.approx(ratio))


def test_abcs_path_is_that_of_the_figure_with_so_many_routers():
    for routers in range(1, 8):
        scenario = abc_path(routers)
        assert scenario.text.count('router = "scheme"') == routers
        assert scenario.text.count('rate = "40Mbps"') == len(SWITCHES) - 1
    route = ", ".join(f'"{s}"' for s in SWITCHES)
    assert route in abc_path(3).text
    assert route in Scenario.load("owl-nsfnet:known=3").text


def test_the_path_written_out_behaves_as_the_topology_with_routers_everywhere():
    text = Scenario.load("owl-nsfnet:known=7").text
    everywhere = of_text(text.replace('load = "40%"', 'load = "40%"\nrouter = "scheme"'))
    batch = Batch([everywhere, abc_path(7)], ["abc"], runs=3, seconds=5, grid_ms=None)
    batch.start()
    while not batch.wait(1):
        pass
    rows = [row for row in batch.results() if row["flow"] == -1]
    rates, rtts = ([row[name] for row in rows] for name in ("throughput_mbps", "rtt_mean_ms"))
    # Their cross traffic is drawn under other names.
    assert sum(rates[:3]) == pytest.approx(sum(rates[3:]), rel=0.02)
    assert sum(rtts[:3]) == pytest.approx(sum(rtts[3:]), rel=0.02)


def test_paths_unknown_differ_from_those_known_in_nothing_else():
    for value, scenario in family("owl-random").items():
        other = family(path_of("owl-random-unknown"))[value]

        def told(text):
            lines = [
                line for line in text.splitlines() if line and not line.startswith(("#", "name", "description"))
            ]
            return [line for line in lines if not line.startswith("known")]

        assert told(scenario.text) == told(other.text)
        assert 'known = "0%"' in other.text
    assert own("owl-friendly:scheme=bbr").flows == 2
    with pytest.raises(UsageError, match="owl-friendly:scheme=copa"):
        own("owl-friendly:scheme=copa")


def test_families_are_in_order_and_in_one_unit():
    assert list(family("owl-buffer")) == [4.5, 15, 45, 75, 150, 300, 750, 3000]
    with pytest.raises(UsageError, match="do not differ in a number"):
        family("owl-geni:count=2")


# -- publishing, and the command line --


def outcome(name, value):
    figure = next(figure for figure in OWL.figures if figure.name == name)
    chart = {"data": {"values": [{"a": 1}]}, "mark": {"type": "point", "color": "#1f4e9c"}, "encoding": {}}
    claim = within(f"{name}.x", "It is above | 1", "ours; above 1 wanted", metric(value, value, value), low=1)
    return Outcome(figure, Drawn(chart, [claim], [["scheme", "loss"], ["owl", "0.1"]]), ["A note."], runs=60)


def test_publishing_one_figure_leaves_the_others(tmp_path):
    (tmp_path / "img").mkdir()
    publish(tmp_path, OWL, [outcome("fig7", 2.0)])
    page = tmp_path / "owl.md"
    page.write_text(page.read_text().replace("## fig9", "By hand.\n\n## fig9"))
    publish(tmp_path, OWL, [outcome("fig10", 0.5)])
    text = page.read_text()
    assert "By hand.\n" in text
    assert (
        "| `fig7.x` | It is above \\| 1 | 2.00 | 2.00 to 2.00 | holds | ours; above 1 wanted | "
        "`headway reproduce owl fig7` |" in text
    )
    assert "| 0.500 | 0.500 to 0.500 | **does not hold** |" in text
    assert text.count("- A note.") == 2
    assert text.count("60 runs in simulated time") == 2
    for figure in OWL.figures:
        assert f"## {figure.name}: {figure.title}\n" in text
    for name in ("fig7", "fig10"):
        assert f'srcset="img/owl-{name}-dark.svg"' in text
        light, dark = ((tmp_path / "img" / f"owl-{name}{end}.svg").read_text() for end in ("", "-dark"))
        assert "#1f4e9c" in light
        assert "#1f4e9c" not in dark
        assert dark == recoloured(light)
    page.write_text("# Owl\n")
    with pytest.raises(UsageError, match="fig7"):
        publish(tmp_path, OWL, [outcome("fig7", 2.0)])


def test_runs_that_figures_share_are_counted_once_with_the_time_they_took():
    first, second, other = (outcome(name, 2.0) for name in ("fig7", "fig10", "fig5"))
    shared = {("a", k): 0.5 for k in range(60)}
    first, second = (replace(one, took_s=shared) for one in (first, second))
    assert circumstances([first, second]).startswith("60 runs in simulated time, 30 s of one core. ")
    # Without times nobody knows which are shared.
    assert circumstances([first, other]).startswith("120 runs in simulated time, 30 s of one core. ")
    assert circumstances([other]).startswith("60 runs in simulated time. ")


def test_short_tables_stand_under_their_titles(tmp_path):
    (tmp_path / "img").mkdir()
    made = outcome("fig7", 2.0)
    table = {"Table 3": [["", "value"], ["Wilks", "0.5"]]}
    publish(tmp_path, OWL, [replace(made, drawn=replace(made.drawn, tables=table))])
    assert "**Table 3**\n\n|  | value |\n| --- | --- |\n| Wilks | 0.5 |\n" in (tmp_path / "owl.md").read_text()
    assert replace(made, drawn=replace(made.drawn, tables=table)).json(OWL, quick=True)["tables"] == table


def test_the_summary_counts_when_all_figures_are_published(tmp_path):
    (tmp_path / "img").mkdir()
    first, *others = [outcome(figure.name, 2.0) for figure in OWL.figures]
    missing = Outcome(first.figure, missing="no trace x here")
    publish(tmp_path, OWL, [missing, *others])
    text = (tmp_path / "owl.md").read_text()
    assert f"| all |  | {len(others)} | 0 | 0 |" in text
    assert "; not made: no trace x here | 0 | 0 | 0 |" in text


def test_the_summary_follows_a_figure_that_is_published_alone(tmp_path):
    (tmp_path / "img").mkdir()
    publish(tmp_path, OWL, [outcome(figure.name, 2.0) for figure in OWL.figures])
    count = len(OWL.figures)
    assert f"| all |  | {count} | 0 | 0 |" in (tmp_path / "owl.md").read_text()
    publish(tmp_path, OWL, [outcome("fig7", 0.5)])
    text = (tmp_path / "owl.md").read_text()
    title = outcome("fig7", 0.5).figure.title
    assert f"| {title} | 0 | 1 | 0 |" in text
    assert f"| all |  | {count - 1} | 1 | 0 |" in text
    # A figure that cannot be made now keeps what stands there.
    publish(tmp_path, OWL, [Outcome(outcome("fig7", 0.5).figure, missing="no trace x here")])
    text = (tmp_path / "owl.md").read_text()
    assert f"| {title}; not made anew: no trace x here | 0 | 1 | 0 |" in text


QUICKLY = ("reproduce", "owl", "fig10", "--quick", "--stand-in", "owl=aurora", "--json")


def test_a_figure_is_made_and_what_has_finished_is_not_run_again(run, tmp_path):
    done = run(*QUICKLY, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert (result["paper"], result["figure"], result["quick"]) == ("owl", "fig10", True)
    assert {claim["id"] for claim in result["claims"]} == {f"fig10.{s}" for s in ("cubic", "bbr", "aurora", "abc")}
    for claim in result["claims"]:
        assert claim["holds"] in set(Verdict)
        assert claim["command"] == "headway reproduce owl fig10"
        low, high = claim["ci95"]
        assert low <= claim["ours"] <= high
    # Owl's stand-in is Aurora itself: the same runs, and no difference.
    aurora = next(claim for claim in result["claims"] if claim["id"] == "fig10.aurora")
    assert (aurora["ours"], aurora["ci95"]) == (0.0, [0.0, 0.0])
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    # Four schemes, lengths of 1, 2, 5 and 10 s, two runs.
    assert len(lines) == 4 * 4 * 2
    assert (tmp_path / "fig10.svg").read_text().startswith("<svg")
    (tmp_path / "runs.jsonl").write_text("\n".join(lines[:-3]) + "\n")
    assert run(*QUICKLY, "--out", tmp_path).stdout == done.stdout
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == len(lines)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ovl"], ["no paper 'ovl'", "owl"]),
        (["owl", "fig44"], ["no figure 'fig44'", "nearest is fig4", "all"]),
        (["owl", "fig7", "--quick", "--publish"], ["--publish", "only full runs"]),
        (["owl", "fig7", "--publish"], ["--publish", "sources"]),
        (["owl", "fig7", "--jobs", "0"], ["--jobs", "'0'"]),
        (["owl", "fig7", "--out", "/proc/x"], ["--out /proc/x", "folder"]),
        (["owl", "fig7", "--models", "nowhere"], ["--models nowhere", "no such folder"]),
        (["owl", "fig7", "--stand-in", "owl"], ["--stand-in 'owl'", "NAME=SPEC"]),
    ],
)
def test_wrong_input_is_one_line(run, arguments, says):
    done = run("reproduce", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("headway: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in says:
        assert word in done.stderr


def test_without_its_traces_a_figure_is_not_made_and_says_so(run, tmp_path):
    nowhere = {name: str(tmp_path) for name in ("HEADWAY_TRACES", "XDG_CACHE_HOME")}
    done = run("reproduce", "owl", "fig5", "--quick", "--stand-in", "owl=aurora", "--out", tmp_path, **nowhere)
    assert done.returncode == 1
    assert "fig5: no trace Verizon-LTE-short.down" in done.stderr or "no scheme owl-loss" in done.stderr
    assert "Traceback" not in done.stderr


def test_traces_that_are_missing_name_what_fetches_them(monkeypatch):
    monkeypatch.setattr("headway.reproduce.engine.Trace", SimpleNamespace(find=lambda _: None))
    text = 'schema = 1\nname = "mine"\nseconds = 4\n[bottleneck]\ntrace = "mine.down"\ndelay = "9ms"\n'

    def missing(*scenarios):
        def make(lab):
            yield [lab.want("cubic", "cubic", one) for one in scenarios]

        return begin([Figure("fig1", "", "", make)], Lab())[0].missing

    walking, lte = (Scenario.load(name) for name in ("cellular-walking", "lte-verizon"))
    assert missing(walking) == "no trace nyc-walking.down here: headway traces fetch nyc"
    assert missing(lte).endswith(" here: headway traces fetch mahimahi")
    assert missing(walking, lte).endswith(" here: headway traces fetch nyc and headway traces fetch mahimahi")
    assert missing(of_text(text)) == "no trace mine.down here: no collection of headway traces has it"


def test_every_kind_of_chart_is_drawn_on_light_and_on_dark():
    looks = looks_of(["owl", "cubic"], ["theory"])
    points = {1.0: metric(3.0, 2.0, 4.0), 10.0: metric(5.0), 100.0: metric(None)}
    found = [Bar("two", "owl", points[1.0]), Bar("two", "theory", points[10.0]), Bar("three", "owl", points[100.0])]
    line = [(0.0, 1.0), (0.5, None), (1.0, 2.0)]
    panels = [
        (
            "lines",
            over({"owl": points, "cubic": {5.0: metric(-1.0)}}, looks, "buffer (kB)", "rate (Mbit/s)", log=True),
        ),
        ("bars", bars(found, looks, "senders", "rate (Mbit/s)", line=4)),
        ("time", over_time({"owl": line}, looks, "rate (Mbit/s)", 1.0, line)),
        ("weights", heat(["rtt_ms", "pna"], ["20%", "70%"], [[0.9, 0.6], [0.1, 0.4]])),
        ("none", bars([found[2]], looks, "senders", "rate (Mbit/s)")),
    ]
    light = standalone(titled(panels, looks))
    for word in ("lines", "buffer (kB)", "senders", "rtt_ms", "60.0%", "nothing was measured", "theory"):
        assert word in light
    dark = recoloured(light)
    for style in looks.values():
        assert style.colour in light
        assert style.colour not in dark


def test_every_figure_of_the_issue_is_there():
    assert list(PAPERS) == ["bbr-tuning", "interval", "owl", "rax"]
    simulated = [figure.name for figure in OWL.figures if figure.world == "sim"]
    assert simulated == [f"fig{n}" for n in range(4, 15)]
