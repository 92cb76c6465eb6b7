"""A paper's figures: their runs, and their publication.

test_reproduce_claims.py tests when a claim holds, and test_reproduce_owl.py the judgement of each
figure of Owl.
"""

import json
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from headway._native import Scenario, UsageError, canonical_scheme, code_version
from headway.report.svg import standalone
from headway.reproduce import PAPERS, paper
from headway.reproduce.charts import Bar, bars, heat, looks_of, over, over_time, recoloured, titled
from headway.reproduce.claim import Zone, judge
from headway.reproduce.engine import Outcome, begin, circumstances, recorded, trained_once
from headway.reproduce.engine import make as engine_make
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import FULL, QUICK, TRAININGS, Lab, MissingError
from headway.reproduce.publish import publish
from headway.reproduce.scenarios import of_text
from headway.stats.estimate import Estimate
from headway.train.online import TRAINING_FLOWS

OWL = paper("owl")


@pytest.fixture(scope="session")
def run(undrawn_run):
    """Disables pictures, because no test here looks at one that a command draws."""
    return undrawn_run


def metric(mean, low=None, high=None):
    """An estimate with the same interval at any level."""
    return Estimate.fixed(mean, None if low is None else (low, high))


def test_a_lab_uses_the_same_seeds_for_all_schemes_and_shortens_quick_runs():
    scenario = Scenario.load("owl-geni:count=2")
    full, quick = (Lab(s).want("owl", "cubic", scenario) for s in (FULL, QUICK))
    assert (len(full.seeds), full.seconds) == (30, 60.0)
    assert (quick.seeds, quick.seconds) == (full.seeds[:2], 10.0)
    assert Lab(QUICK).lengths([1, 10, 20]) == [1, 10]
    key = full.tasks[0].key
    assert key["scheme"] == canonical_scheme("cubic", "sim")
    assert (key["seed"], key["seconds"], key["scenario_hash"]) == (full.seeds[0], 60.0, scenario.hash)


def test_a_missing_scheme_is_noted_in_one_line():
    lab = Lab()
    with pytest.raises(MissingError, match="no scheme tao-va here"):
        lab.scheme("tao-va")
    assert lab.available_schemes(["cubic", "tao-va", "cubik"]) == {"cubic": "cubic"}
    assert lab.notes == ["no scheme tao-va here: left out", "no scheme cubik here; nearest is cubic: left out"]
    with pytest.raises(UsageError, match="beta"):
        lab.scheme("cubic:beta=7")


# -- publishing, and the command line --


def outcome(name, value):
    figure = next(figure for figure in OWL.figures if figure.name == name)
    chart = {"data": {"values": [{"a": 1}]}, "mark": {"type": "point", "color": "#1f4e9c"}, "encoding": {}}
    ours = metric(value, value - 0.1, value + 0.1)
    claim = judge(f"{name}.x", "It is above | 1", "ours; above 1", {"a": ours, "b": ours}, low=1)
    return Outcome(figure, FigureResult(chart, [claim], [["scheme", "loss"], ["owl", "0.1"]]), ["A note."], runs=60)


def test_publishing_one_figure_leaves_the_others(tmp_path):
    (tmp_path / "img").mkdir()
    publish(tmp_path, OWL, [outcome("fig7", 2.0)])
    page = tmp_path / "owl.md"
    titled = page.read_text().replace("## fig10: ", "## fig10: An older title of ")
    page.write_text(titled.replace("## fig9", "By hand.\n\n## fig9"))
    publish(tmp_path, OWL, [outcome("fig10", 0.5)])
    text = page.read_text()
    assert "By hand.\n" in text
    worst = "closest to the bound, a: 2.00 (1.90 to 2.10)"
    assert f"| holds | It is above \\| 1 | 2 of 2 as claimed; {worst} |" in text
    assert "| **does not hold** | It is above \\| 1 | 0 of 2 as claimed, 2 not as claimed; furthest off, a" in text
    assert "`fig7.x`: ours; above 1.\n\n| level | measured | 95% interval |  |\n" in text
    assert "| b | 0.500 | 0.400 to 0.600 | not as claimed |" in text
    assert "`headway reproduce owl fig7`" in text
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


def test_the_section_in_short_comes_before_the_table(tmp_path):
    (tmp_path / "img").mkdir()
    publish(tmp_path, OWL, [outcome("fig7", 2.0)])
    page = tmp_path / "owl.md"
    begun = page.read_text()
    assert 0 < begun.index("## In short\n") < begun.index("<!-- summary -->\n")
    # On this page the section is after the table, with another section after it.
    short = "## In short\n\nIt holds.\n\n"
    head, _, rest = begun.partition(
        "## In short\n\nTo be written: what holds and what does not, in plain words.\n\n"
    )
    old = head + rest.replace("\n## fig4", f"\n{short}## Costs\n\nMuch.\n\n## fig4")
    assert old.index(short) > old.index("<!-- summary -->\n")
    page.write_text(old)
    publish(tmp_path, OWL, [outcome("fig7", 2.0)])
    text = page.read_text()
    assert text.index(short) < text.index("<!-- summary -->\n") < text.index("## Costs\n\nMuch.\n\n## fig4")
    assert sorted(text.splitlines()) == sorted(old.splitlines())
    publish(tmp_path, OWL, [outcome("fig7", 2.0)])
    assert page.read_text() == text


def test_runs_shared_by_figures_are_counted_once_with_their_time():
    first, second, other = (outcome(name, 2.0) for name in ("fig7", "fig10", "fig5"))
    shared = {("a", k): 0.5 for k in range(60)}
    first, second = (replace(one, took_s=shared) for one in (first, second))
    assert circumstances([first, second]).startswith("60 runs in simulated time, which took 30 s of one core")
    # Without times it is unknown which runs are shared.
    assert circumstances([first, other]).startswith("120 runs in simulated time, which took 30 s of one core")
    assert circumstances([other]).startswith("60 runs in simulated time. ")
    live = replace(first, real=50)
    assert circumstances([live]).startswith("10 runs in simulated time, which took 30 s of one core")
    assert " added up) and 50 runs in real time. " in circumstances([live])
    assert circumstances([replace(live, real=60, took_s={})]).startswith("60 runs in real time. ")


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
    assert f"| all |  | {len(others)} | 0 | 0 | 0 | 0 |" in text
    assert "; not made: no trace x here | 0 | 0 | 0 | 0 | 0 |" in text


@pytest.mark.parametrize("head", ["here", "measured"])
def test_verdicts_of_older_rules_are_not_counted(tmp_path, head):
    (tmp_path / "img").mkdir()
    publish(tmp_path, OWL, [outcome("fig7", 2.0)])
    page = tmp_path / "owl.md"
    # Before decision 47 an interval had a separate column.
    text = page.read_text()
    assert "measured here (95% interval)" in text
    page.write_text(text.replace("measured here (95% interval)", f"{head} | 95% interval"))
    nothing = Outcome(
        next(f for f in OWL.figures if f.name == "fig13"), FigureResult(outcome("fig8", 2.0).drawn.chart, [])
    )
    publish(tmp_path, OWL, [outcome("fig8", 2.0), nothing])
    rows = {line.split("]")[0][3:]: line for line in page.read_text().splitlines() if line.startswith("| [")}
    assert "judged by the older rules of decision 32, not counted" in rows["fig7"]
    assert rows["fig7"].endswith("| 0 | 0 | 0 | 0 | 0 |")
    assert rows["fig8"].endswith("| 1 | 0 | 0 | 0 | 0 |")
    # A figure without claims does not count as one of older rules either.
    assert "older rules" not in rows["fig8"] + rows["fig13"]


def test_the_summary_follows_a_figure_that_is_published_alone(tmp_path):
    (tmp_path / "img").mkdir()
    publish(tmp_path, OWL, [outcome(figure.name, 2.0) for figure in OWL.figures])
    count = len(OWL.figures)
    assert f"| all |  | {count} | 0 | 0 | 0 | 0 |" in (tmp_path / "owl.md").read_text()
    publish(tmp_path, OWL, [outcome("fig7", 0.5)])
    text = (tmp_path / "owl.md").read_text()
    title = outcome("fig7", 0.5).figure.title
    assert f"| {title} | 0 | 1 | 0 | 0 | 0 |" in text
    assert f"| all |  | {count - 1} | 1 | 0 | 0 | 0 |" in text
    # A figure that cannot be made now keeps its published part.
    publish(tmp_path, OWL, [Outcome(outcome("fig7", 0.5).figure, missing="no trace x here")])
    text = (tmp_path / "owl.md").read_text()
    assert f"| {title}; not made again: no trace x here | 0 | 1 | 0 | 0 | 0 |" in text


QUICKLY = ("reproduce", "owl", "fig10", "--quick", "--stand-in", "owl=aurora", "--json")


def test_a_figure_is_made_without_repeating_finished_runs(run, tmp_path):
    done = run(*QUICKLY, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert (result["paper"], result["figure"], result["quick"]) == ("owl", "fig10", True)
    claim, against_the_rule = result["claims"]
    assert against_the_rule["id"] == "fig10.rule"
    assert (claim["id"], claim["verdict"]) == ("fig10.outperforms", "not testable from the text")
    assert claim["command"] == "headway reproduce owl fig10"
    levels = {level["level"]: level for level in claim["levels"]}
    assert list(levels) == [f"{s}, {n} s" for s in ("cubic", "bbr", "aurora", "abc") for n in (1, 2, 5, 10)]
    for level in levels.values():
        assert level["zone"] in set(Zone)
        low, high = level["ci95"]
        assert low <= level["ours"] <= high
    # Owl's stand-in is Aurora itself, so the runs are the same without a difference. Two equal runs
    # decide nothing.
    aurora = levels["aurora, 5 s"]
    assert (aurora["ours"], aurora["ci95"], aurora["zone"]) == (0.0, [0.0, 0.0], "unclear")
    # With two equal runs nearly all others may differ. The judged interval contains more than 0.
    assert aurora["judged"][0] < -0.1 < 0.1 < aurora["judged"][1]
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    # There are five schemes, lengths of 1, 2, 5 and 10 s, and two runs.
    assert len(lines) == 5 * 4 * 2
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
def test_wrong_input_gives_a_one_line_error(run, arguments, says):
    done = run("reproduce", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("headway: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in says:
        assert word in done.stderr


def test_a_figure_without_its_traces_is_refused(run, tmp_path):
    nowhere = {name: str(tmp_path) for name in ("HEADWAY_TRACES", "XDG_CACHE_HOME")}
    done = run("reproduce", "owl", "fig5", "--quick", "--stand-in", "owl=aurora", "--out", tmp_path, **nowhere)
    assert done.returncode == 1
    assert "fig5: no trace Verizon-LTE-short.down" in done.stderr or "no scheme owl-loss" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_about_missing_traces_names_the_fetch_command(monkeypatch):
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


def test_a_figure_names_the_learned_rivals_of_one_training():
    def notes(*specs, trained=("owl",)):
        def make(lab):
            yield [lab.want(spec, spec, Scenario.load("pantheon-default")) for spec in specs]

        return trained_once(begin([Figure("fig", "", "", make)], Lab(QUICK, trained=trained))[0])

    assert notes("owl", "cubic", "learned:model=x") == []
    assert notes("owl", "aurora", "cubic", "rax-pretrained:alpha=4") == [
        "Learned schemes of one training, taken as they are: aurora, rax-pretrained. "
        "Other trainings of them may do better or worse."
    ]
    # Rax starts learning again in each run. With two models it is not one training any more.
    assert notes("rax", "aurora:model=v1:model=v2", trained=()) == []


def test_both_directions_and_all_seconds_of_a_link_are_one_recording():
    def traces(*scenarios):
        lab = Lab(QUICK)
        return recorded([lab.want("cubic", "cubic", Scenario.load(name)) for name in scenarios])

    assert traces("pantheon-default", "synthetic-att") == set()
    assert traces("lte-verizon", "owl-lte-verizon") == {"Verizon-LTE-short"}
    assert len(traces("lte-verizon", "owl-lte-att", "cellular-bus", "pantheon-default")) == 3


def test_fewer_than_five_recordings_decide_no_claim_and_the_figure_says_so():
    noted = []

    def outcome(*scenarios, unfit=()):
        def make(lab):
            measured = yield [lab.want(name, "cubic", Scenario.load(name)) for name in scenarios]
            ours = Estimate.fixed(2.0, (1.0, 3.0))
            assert measured
            claims = [
                judge(f"fig.{of}", "", "", ours, low=0, of_recordings=of == "links") for of in ("links", "cpu")
            ]
            return FigureResult({}, claims, notes=["A note."])

        def run(task):
            late = "it was late" if task.seed in unfit else None
            return {"unfit": late, "code_version": code_version, "took_s": 0.1}

        begun = begin([Figure("fig", "", "", make)], Lab(QUICK))[0]
        made = engine_make(begun, SimpleNamespace(find=run), 1, lambda *_: None)
        noted.append(made.drawn.claims[0].note)
        return [claim.verdict.value for claim in made.drawn.claims], list(made.notes)

    assert outcome("pantheon-default") == (["holds", "holds"], ["A note."])
    verdicts, notes = outcome("pantheon-default", "owl-lte-verizon", "owl-lte-att")
    assert verdicts == ["open", "holds"]
    assert notes[0] == "A note."
    assert notes[1].startswith("The recorded links of this figure come from 2 recordings.")
    assert outcome("lte-verizon")[1][1].startswith("The recorded links of this figure come from one recording.")
    links = [f"cellular-{of}" for of in ("bus", "static", "taxi", "walking")]
    assert outcome(*links, "owl-lte-att") == (["holds", "holds"], ["A note."])
    # The number of left-out runs is next to each claim.
    assert noted[-1] == ""
    seed = Lab(QUICK).want("cubic", "cubic", Scenario.load("pantheon-default")).seeds[1]
    assert outcome("pantheon-default", unfit=[seed])[0] == ["holds", "holds"]
    assert noted[-1] == "without 1 of 2 runs of the figure, which are unfit"


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


def test_every_figure_of_the_issue_exists():
    assert list(PAPERS) == ["bbr-tuning", "interval", "owl", "rax"]
    simulated = [figure.name for figure in OWL.figures if figure.world == "sim"]
    assert simulated == [f"fig{n}" for n in range(4, 15)]


def test_training_seeds_are_the_models_of_the_papers_own_schemes():
    """The scheme with the fewest trainings counts.

    Baselines and schemes served in the kernel have one model.
    """

    def seeds(lab, *names):
        scenario = Scenario.load("pantheon-default")
        return lab.training_seeds([lab.want(name, lab.scheme(name), scenario) for name in names])

    trained = len([folder for folder in TRAININGS.iterdir() if folder.name.startswith("owl-v1-seed-")])
    assert trained > 0
    owl = Lab(trained=("owl",))
    assert seeds(owl, "owl", "cubic", "aurora") == 1 + trained
    assert seeds(owl, "cubic") is None
    # A claim may be about one of them alone.
    both = Lab(trained=("owl", "owl-loss"))
    asked = [both.want(s, both.scheme(s), Scenario.load("pantheon-default")) for s in ("owl", "owl-loss")]
    of_loss, of_owl = (both.training_seeds(asked, [one]) for one in ("owl-loss", "owl"))
    assert both.training_seeds(asked) == min(of_loss, of_owl)
    assert of_owl == 1 + trained
    assert seeds(Lab(), "owl") is None
    assert seeds(Lab(trained=("owl", "aurora")), "owl", "aurora") == 1
    three = ":model=".join(["owl", "v1", *[str(TRAININGS / "owl-v1-seed-2")] * 2])
    assert seeds(Lab(trained=("owl",), stand_ins={"owl": three}), "owl") == 3
    assert owl.scheme("owl-loss") == Lab().scheme("owl-loss")
    in_kernel = Lab(trained=("owl",), world="kernel")
    assert in_kernel.training_seeds([in_kernel.want("owl", "owl", Scenario.load("pantheon-default"))]) == 1


@pytest.mark.parametrize("folder", sorted(TRAININGS.iterdir()), ids=lambda folder: folder.name)
def test_a_training_is_identified_by_its_folder(folder):
    """NAME-v1-seed-N is the recipe of NAME-v1 with seed N, and replaces it."""
    title, _, seed = folder.name.partition("-seed-")
    card = tomllib.loads((folder / "card.toml").read_text())
    name = "rax-pretrained" if card.get("scheme") == "rax" else title.rpartition("-")[0]
    # A learner's card has the seeds of its training flows, which no other training has.
    flows = len(TRAINING_FLOWS)
    of_flows = [*range((int(seed) - 1) * flows + 1, int(seed) * flows + 1)]
    assert card["training"]["seeds"] == (of_flows if name == "rax-pretrained" else [int(seed)])
    assert card["training"]["command"] == f"headway train {title} --seed {seed}"
    assert canonical_scheme(f"{name}:model={folder}", "sim") != canonical_scheme(name, "sim")
