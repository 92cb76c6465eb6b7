"""Measures what a BBR tuner gains by learning in use (section V-C of "BBR tuner": PPO at 1e-4).

    build/train/bin/python scripts/tuner_online.py [FOLDER]

Each of the five PPO trainings serves eight simulated flows for an hour of simulated time. The rows
are a host's (`FlowRow`), and an agent's `LearningPolicy` decides and learns from the results. Then
its policy is frozen and compared, on paths that it has not seen, with what it was before. This is
done on figure 3's paths, which are in the range of the training, and on faster and longer paths,
which are not. Intervals are over trainings. It takes about a quarter of an hour on two cores. After
an interruption the same command continues with the trainings that are missing.
"""

import sys
import time
from bisect import bisect_right
from collections import defaultdict, deque
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean

from safetensors.numpy import load as read_tensors

from headway import models
from headway._native import RunError, Scenario
from headway.models.dense import ACTIVATIONS
from headway.models.folder import TRAININGS
from headway.reproduce import paper
from headway.reproduce.bbr_tuning.path import BIN_MS, CLOSE, FIRST_SEED, RUNS
from headway.reproduce.run import lab_of
from headway.runs.collect import collect
from headway.runs.store import Store
from headway.stats import student_interval
from headway.tune.host import HostOptions
from headway.tune.learner import LearningPolicy
from headway.tune.messages import Weights
from headway.tune.robust import Rules
from headway.tune.simulated import SimulatedFlows
from headway.tune.table import FlowRow

FAR = """
schema = 1
name = "bbr-epochs-far"
description = "10 to 50 Mbit/s, a round trip of 50 to 200 ms, both drawn again about every 4 s, one flow"
seconds = 60

[bottleneck]
rate = "10Mbps..50Mbps"
delay = "25ms..100ms"  # one way
queue = "1000pkt"

[[every]]
gap = "3s..5s"
rate = "10Mbps..50Mbps"
delay = "25ms..100ms"
"""
"""Figure 3's scenario with paths outside the range of the trainings: 1 to 10 Mbit/s, 10 to 50
ms."""
SEEDS = range(2, 7)
"""The trainings; the shipped one, seed 1, is not among them, as in the figures."""
FLOWS, HOURS = 8, (1,)
"""Flows that an agent serves, and after how many hours of learning it is compared."""
HOST = HostOptions("simulated")


def learn(title: str, scenario: str, seed: int, folder: Path) -> None:
    """Lets a training learn from simulated flows. Writes a model folder for each of `HOURS`."""
    policy = LearningPolicy(title, seed)
    hosts = [SimulatedFlows(scenario, HOST.t1_s, 1000 * seed + flow) for flow in range(FLOWS)]
    rules, made = Rules(), [dict[str, FlowRow]() for _ in hosts]
    newest: defaultdict[str, deque] = defaultdict(lambda: deque(maxlen=policy.history))
    state = None
    samples = round(HOST.t2_s / HOST.t1_s)
    for second in range(1, 3600 * HOURS[-1] + 1):
        for host, own in zip(hosts, made, strict=True):
            for _ in range(samples):
                for stats in host.sample():
                    row = own.get(stats.flow)
                    if row is None:
                        # An episode of the simulation has ended, and its flow with it.
                        own.clear()
                        row = own[stats.flow] = FlowRow(HOST.cutoff_hz, HOST.t2_s)
                    row.add(stats, rules)
        seen = {name: row for own in made for name, each in own.items() if (row := each.row()) is not None}
        for name, row in seen.items():
            newest[name].append(row)
        settings = policy.decide_for(list(seen), [list(newest[name]) for name in seen])
        # In use an answer does not wait for an update. Here it does, so that a run can be repeated.
        while policy.describe()["is_updating"]:
            time.sleep(0.001)
            policy.decide_for([], [])
        for name, values in zip(seen, settings, strict=True):
            for host in hosts:
                host.apply(name, values)
        for name in newest.keys() - seen.keys():
            del newest[name]
        while policy.outbox:
            message = policy.outbox.popleft()
            state = message.safetensors if isinstance(message, Weights) else state
        if second % 3600 == 0 and second // 3600 in HOURS:
            _write(folder / f"{second // 3600}h", title, state)
    policy.close()
    counters = policy.describe()["counters"]
    print(f"{folder}: {counters['updates']} updates from {counters['tuples']} tuples", flush=True)


def _write(folder: Path, title: str, weights: bytes | None) -> None:
    """Writes the model `title` with other weights. Raises RunError if there are none."""
    if weights is None:
        raise RunError(f"{folder}: no update was made, so there is nothing to compare")
    state = read_tensors(weights)
    model = models.load(title)
    names = [name for name in state if name.startswith("mlp_extractor.policy_net") and name.endswith("weight")]
    layers = [name.removesuffix(".weight") for name in sorted(names)] + ["action_net"]
    tensors = {
        f"layers.{n}.{kind}": state[f"{layer}.{kind}"]
        for n, layer in enumerate(layers)
        for kind in ("weight", "bias")
    }
    seen = model.golden()["observations"]
    x = seen
    for n, name in enumerate(model.card["net"]["activations"]):
        x = ACTIVATIONS[name](x @ tensors[f"layers.{n}.weight"].T + tensors[f"layers.{n}.bias"])
    card = {name: model.card[name] for name in ("name", "version", "description", "net", "agent", "training")}
    models.write(folder, card | {"evaluation": {}}, tensors, (seen, x))


def compare(title: str, scenario: str, folder: Path) -> dict[str, dict[str, float]]:
    """Returns what a training's policy does before and after it has learned: means over runs."""
    lab = lab_of(paper("bbr-tuning"), "sim")
    lab.first_seed = FIRST_SEED
    where = Scenario.load(scenario)
    specs = {"before": f"learned:model={TRAININGS / title}"}
    specs |= {f"after {hours} h": f"learned:model={folder / f'{hours}h'}" for hours in HOURS}
    specs |= {"BBR": "bbr"}
    store = Store(folder / "runs")
    found = {}
    for label, spec in specs.items():
        tasks = lab.want(label, spec, where, series=True, bin_ms=BIN_MS, runs=RUNS, whole=True).tasks
        if failures := collect([task for task in tasks if store.find(task) is None], 1, store, lambda *_: None):
            raise RunError(f"{folder}: {failures[0]}")
        runs = [store.find(task) for task in tasks]
        found[label] = {
            "RTprop is right (%)": fmean(_percent_right(run, where) for run in runs),
            "throughput (% of the link)": fmean(100 * run["utilisation"] for run in runs),
            "mean RTT (ms)": fmean(run["rtt_mean_ms"] for run in runs),
        }
    return found


def _percent_right(run: dict, scenario: Scenario) -> float:
    """Returns the share of time in which RTprop is within 10% of the path's RTT, as in figure 3."""
    at, _, rtts = zip(*scenario.path(run["seed"], run["seconds"]), strict=True)
    series = run["series"]
    right = []
    for begin, estimate in zip(series["time_s"], series["rtprop_ms"], strict=True):
        if estimate is not None:
            rtt = rtts[max(0, bisect_right(at, begin + BIN_MS / 1000) - 1)]
            right.append(abs(estimate - rtt) <= CLOSE * rtt)
    return 100 * fmean(right)


def one(seed: int, scenario: str, folder: Path) -> dict[str, dict[str, float]]:
    """Lets one training learn, unless it has, and compares it."""
    title = f"bbr-tuner-ppo-v1-seed-{seed}"
    if not (folder / f"{HOURS[-1]}h").is_dir():
        learn(title, scenario, seed, folder)
    return compare(title, scenario, folder)


def main() -> int:
    """Lets all trainings learn, and prints a table."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/tuner-online")
    folder.mkdir(parents=True, exist_ok=True)
    far = folder / "bbr-epochs-far.toml"
    far.write_text(FAR)
    with ProcessPoolExecutor(2) as pool:
        jobs = {
            (scenario, seed): pool.submit(one, seed, scenario, folder / f"{Path(scenario).stem}-seed-{seed}")
            for scenario in ("bbr-epochs", str(far))
            for seed in SEEDS
        }
        found = {key: job.result() for key, job in jobs.items()}
    for scenario in ("bbr-epochs", str(far)):
        each = [found[scenario, seed] for seed in SEEDS]
        print(f"\n{Path(scenario).stem}: means of {len(each)} trainings, with 95% intervals over them")
        for quantity in each[0]["before"]:
            for label in each[0]:
                values = [one[label][quantity] for one in each]
                gains = [one[label][quantity] - one["before"][quantity] for one in each]
                gain = "" if label in ("before", "BBR") else f", gained {_text(gains)}"
                print(f"{quantity}, {label}: {_text(values)}{gain}")
    return 0


def _text(values: list[float]) -> str:
    low, high = student_interval(values, level=0.95) or (float("nan"),) * 2
    return f"{fmean(values):.1f} ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    sys.exit(main())
