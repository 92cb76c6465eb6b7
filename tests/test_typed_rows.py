"""Result rows have types: mypy checks the names of their keys, these tests the keys themselves."""

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace
from typing import NotRequired, get_args, get_origin, get_type_hints

import pytest

from headway._native import Batch, Scenario
from headway.compare import MEASURES, Differences
from headway.fitness import WORSE, Fitness
from headway.path_trial import verdicts
from headway.path_trial.folder import NEEDED
from headway.path_trial.folder import Row as TransferRow
from headway.path_trial.transfer import Measured
from headway.results import BenchRow, read_bench
from headway.rows import BatchRow, RunRow, SeriesLists, SeriesName
from headway.runs import store
from headway.stats.means import Metric
from headway.summary import METRICS, FlowSummary, Metrics, Summary, summarise

PACKAGE = Path(__file__).parent.parent / "python" / "headway"
UNTYPED = {
    "distill/run.py": "a card's [agent], which the core checks",
    "distill/teacher.py": "TOML: the configuration of a training",
    "envs/config.py": "TOML before it is checked, and an agent's spec from the core",
    "envs/flows.py": "PettingZoo's signatures: actions, infos and options",
    "envs/sb3.py": "Stable-Baselines3's infos",
    "envs/single.py": "Gymnasium's signatures: infos and options",
    "envs/team.py": "signatures of PettingZoo and Gymnasium",
    "envs/vector.py": "Gymnasium's signatures: infos and options",
    "models/folder.py": "card.toml, in which users may have further keys",
    "models/from_onnx.py": "ONNX's attributes and nodes, and card.toml",
    "models/learner.py": "card.toml, in which users may have further keys",
    "netwatch/api.py": "FastAPI's responses and OpenAPI's schema",
    "netwatch/client.py": "JSON, of which dataclasses are made",
    "path_trial/folder.py": "try.json, which another version may have written",
    "report/svg.py": "`Spec`, a chart in Vega-Lite",
    "train/ablation.py": "TOML tables that are merged",
    "train/checkpoint.py": "`State`, what PyTorch saves",
    "train/config.py": "TOML before it is checked",
    "train/guide.py": "TOML: an `[agent.action]`",
    "train/sections.py": "TOML that is being checked, and arguments of dataclasses",
    "tune/control.py": "JSON: the status of another process",
    "tune/headwayd.py": "JSON: an answer of headwayd",
    "tune/policy.py": "TOML: a section of a training's configuration",
}
"""The files in which a dict or mapping with values of any type is right, and what it is there."""
ANY_VALUES = re.compile(r"\b(dict|Mapping|MutableMapping)\[str, Any\]")
MANY_FLOWS, ALONE = "owl-geni:count=2", "pantheon-default"


def test_no_other_file_has_dicts_or_mappings_with_values_of_any_type():
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]
    found = {str(file.relative_to(PACKAGE)) for file in files if ANY_VALUES.search(file.read_text())}
    assert sorted(found - UNTYPED.keys()) == [], "a row of results has a TypedDict, as in headway/rows.py"
    assert sorted(UNTYPED.keys() - found) == [], "take it out of UNTYPED"


def keys_of(kind):
    """The keys of a TypedDict, and those that may be missing."""
    hints = get_type_hints(kind, localns={"Metric": Metric}, include_extras=True)
    return set(hints), {name for name, hint in hints.items() if get_origin(hint) is NotRequired}


def must_be(kind, row):
    """Fails unless the row has the keys of the type."""
    every, may_miss = keys_of(kind)
    assert every - may_miss <= set(row) <= every


@pytest.fixture(scope="module")
def batch():
    made = Batch(
        [Scenario.load(MANY_FLOWS), Scenario.load(ALONE)], ["cubic", "newreno"], runs=1, seconds=3.0, jobs=1
    )
    made.start()
    while not made.wait(1.0):
        pass
    return made


def test_rows_of_a_batch_have_their_keys(batch):
    rows, series = batch.results(), batch.series()
    assert {row["flow"] for row in rows} == {-1, 0, 1}
    for row in rows:
        must_be(BatchRow, row)
    assert set(BatchRow.__annotations__) == set(RunRow.__annotations__) - {"warmup"}
    for lists in series:
        assert set(lists) == set(SeriesLists.__annotations__)
        assert len({len(lists[name]) for name in ("time_s", "sent_mbps", "throughput_mbps", "rtt_ms")}) == 1
    assert set(SeriesLists.__annotations__) - set(get_args(SeriesName)) == {
        *("scenario", "scheme", "run", "flow", "time_s")
    }


def test_summaries_have_their_keys(batch):
    found = summarise(batch.results())
    assert {row["scenario"]: len(row.get("flows", ())) for row in found} == {MANY_FLOWS: 2, ALONE: 0}
    for row in found:
        must_be(Summary, row)
        for flow in row.get("flows", ()):
            must_be(FlowSummary, flow)
    assert set(METRICS) == set(Metrics.__annotations__)
    assert {*WORSE, "unfit"} == set(Fitness.__annotations__)


def test_rows_of_a_bench_have_their_keys(small_bench):
    read = read_bench(small_bench)
    against = dataclasses.replace(read, facts=read.facts | {"against": "cubic"})
    for bench in (read, against):
        for row in bench.rows:
            must_be(BenchRow, row)
    compared = [row["against"] for row in against.rows if "against" in row]
    assert {one["scheme"] for one in compared} == {"cubic"}
    for one in compared:
        must_be(Differences, one)
    assert {measure.metric for measure in MEASURES} == keys_of(Differences)[1]


@pytest.mark.parametrize("name", [MANY_FLOWS, ALONE])
def test_kept_runs_have_their_keys(batch, tmp_path, name):
    scenario = next(one for one in (Scenario.load(MANY_FLOWS), Scenario.load(ALONE)) if one.name == name)
    key = {"world": "sim", "scenario_hash": scenario.hash, "scheme": "cubic", "seed": 1}
    key |= {"seconds": 3.0, "warmup": 0.0, "transport": None}
    task = SimpleNamespace(world="sim", grid_ms=500.0, scenario=scenario, spec="cubic", key=key)

    def of_task(rows):
        return [row for row in rows if (row["scenario"], row["scheme"]) == (name, "cubic")]

    kept = store.Store(tmp_path)
    kept.add(task, of_task(batch.results()), of_task(batch.series()))
    kept.close()
    again = store.Store(tmp_path)
    run = again.find(task)
    again.close()
    must_be(store.Run, run)
    must_be(store.RunSeries, run["series"])
    assert len(run.get("flows", ())) == (2 if name == MANY_FLOWS else 0)
    for flow in run.get("flows", ()):
        must_be(store.KeptFlow, flow)
        must_be(store.FlowSeries, flow["series"])


def test_a_trials_rows_have_their_keys():
    measured = [field.name for field in dataclasses.fields(Measured)]
    every = list(TransferRow.__annotations__)
    assert every == ["round", "place", "scheme", "controller", "at", "took_s", *measured]
    assert NEEDED.keys() <= set(every)
    row = dict.fromkeys(every, 1.0) | {"round": 0}
    schemes = ("cubic", "bbr")
    rounds = verdicts.whole_rounds([row | {"scheme": scheme} for scheme in schemes], schemes)
    for means in verdicts.means(rounds, schemes):
        assert list(means) == list(verdicts.MeansRow.__annotations__)
