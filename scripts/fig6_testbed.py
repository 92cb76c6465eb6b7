"""Figure 6 of Owl with real switches.

Kernel Owl runs over the testbed's NSFNET, of which it knows 0, 20, 50 and 100%.

    sudo .venv/bin/python scripts/fig6_testbed.py            # 10 seeds, 60 s a run: about an hour
    sudo .venv/bin/python scripts/fig6_testbed.py --quick    # a run of 10 s each: does it work?
    sudo .venv/bin/python scripts/fig6_testbed.py --probe    # what reaches the policy at each level

The simulator's runs of the same path are shown for comparison, at the paper's 100 Mbit/s and at the
testbed's 10 Mbit/s. Finished runs are kept in out/fig6-testbed. After an interruption the same
command continues, and repeats unfit runs.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

import headway
import on_testbed
import probe_models
from daemon import Daemon
from headway import UsageError
from headway._native import RunError, Scenario, SimulatedNetwork, code_version
from headway.files import write_atomic
from headway.report.svg import Spec, standalone
from headway.reproduce.charts import looks_of, over, titled
from headway.reproduce.measured import mean_of, percent_of
from headway.runs.task import KERNEL, model_of
from headway.stats.estimate import Estimate
from headway.testbed import bed, wires
from headway.testbed.topology import load

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "fig6-testbed"
LEVELS = (0.0, 0.2, 0.5, 1.0)
LOAD = 0.4
CUBIC, OWL = "cubic", "owl"
SCALES = {"simulated, 100 Mbit/s": 1, "simulated, 10 Mbit/s": 10}
"""The divisors of the scenario's rate and queue."""
TESTBED = "testbed, 10 Mbit/s"
PERIOD_US = 4000
"""Owl decides every 4 ms. A run is unfit if more than 1% of headwayd's answers took longer."""
SOON_S = 2.5
"""A policy observes counters of at most this age: two periods, and the delay of a busy machine."""
Run = dict[str, Any]
METRICS = ("throughput_mbps", "rtt_ms")


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="scripts/fig6_testbed.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of each level; default: 10")
    parser.add_argument("--seconds", type=float, metavar="S", help="length of a run; default: 60")
    parser.add_argument("--quick", action="store_true", help="one seed and 10 s, as a test")
    parser.add_argument("--probe", action="store_true", help="show the policy's observations; nothing is kept")
    given = parser.parse_args()
    given.seeds = given.seeds or (1 if given.quick else 10)
    given.seconds = given.seconds or (10.0 if given.quick or given.probe else 60.0)
    if given.seeds < 1:
        parser.error(f"--seeds {given.seeds}: at least 1")
    if not 5 <= given.seconds <= 3600:
        parser.error(f"--seconds {given.seconds:g}: 5 to 3600")
    return given


def main() -> int:
    """Measures, and prints tables. Returns 1 if a policy did not observe the values of netwatch."""
    given = arguments()
    try:
        bed.check_machine()
        if given.probe:
            return probe(given.seconds)
        measured = {TESTBED: on_the_testbed(given.seeds, given.seconds)}
        measured |= simulated(given.seeds, given.seconds)
    except (UsageError, RunError, RuntimeError, headway.Error) as error:
        print(f"fig6_testbed: {error}", file=sys.stderr)
        return 2
    text = "\n".join(tables(measured, given.seconds))
    write_atomic(OUT / "fig6.md", text + "\n")
    write_atomic(OUT / "fig6-testbed.svg", standalone(picture(measured)))
    print(text)
    return 0


def warmup_of(seconds: float) -> float:
    """Seconds left out at the beginning of a run. Counters are known after two readings."""
    return min(5.0, seconds / 5)


@contextmanager
def testbed(known: float, seed: int) -> Iterator[tuple[bed.Bed, dict[str, int]]]:
    """Sets up NSFNET with load, and removes it at the end.

    The dictionary then has the load of its links.
    """
    one, carried = bed.Bed(load("nsfnet"), known=known, load=LOAD, seed=seed), dict[str, int]()
    try:
        one.set_up()
        yield one, carried
        one.check()
    finally:
        carried |= one.end()


class Agent(Daemon):
    """Runs a headwayd at the source that gets reports from netwatch.

    It has real-time priority, as the switches have.
    """

    is_ahead = True

    def __init__(self, one: bed.Bed, name: str, *words: str) -> None:
        options = ("--name", name, "--netwatch", one.url, *words)
        super().__init__(*options, within=one.source.enter(), environment=one.environment)


def on_the_testbed(seeds: int, seconds: float) -> list[Run]:
    """The runs of Owl at each level and of Cubic.

    Finished runs are not repeated.
    """
    OUT.mkdir(parents=True, exist_ok=True)
    file = OUT / "runs.jsonl"
    model = model_of(OWL, KERNEL)
    kept = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    wanted = []
    for seed in range(1, seeds + 1):
        own = [(OWL, known) for known in LEVELS] + [(CUBIC, 0.0)]
        Random(seed).shuffle(own)
        wanted += [
            {
                "scheme": scheme,
                "known": known,
                "seed": seed,
                "seconds": seconds,
                "model": model if scheme == OWL else None,
                "code_version": code_version,
            }
            for scheme, known in own
        ]
    found = []
    for number, key in enumerate(wanted, 1):
        there = [run for run in kept if run["unfit"] is None and key.items() <= run.items()]
        if not there:
            begun = time.monotonic()
            there = [key | run_once(key["scheme"], key["known"], key["seed"], seconds)]
            with file.open("a") as lines:
                lines.write(json.dumps(there[0]) + "\n")
            say_run(there[0], f"{number} of {len(wanted)}", time.monotonic() - begun)
        found.append(there[-1])
    return found


def run_once(scheme: str, known: float, seed: int, seconds: float) -> Run:
    """Runs one flow in a separate testbed."""
    warmup = warmup_of(seconds)
    run: Run = {}
    with testbed(known, seed) as (one, carried), ExitStack() as stack:
        controller = CUBIC
        if scheme == OWL:
            controller = f"hw_fig6_{os.getpid()}"
            daemon = stack.enter_context(Agent(one, controller, "--policy", OWL))
        heard = stack.enter_context(on_testbed.listening(one))
        flow = stack.enter_context(on_testbed.flow(one, controller))
        time.sleep(warmup)
        heard.clear()
        run |= flow.measure(seconds - warmup)
        said = [state for _, state in heard]
        if scheme == OWL:
            run |= from_agent(daemon.status(), bed.path_name(one.topology))
    run |= {of: sum(getattr(s, of) for s in said) / max(len(said), 1) for of in ("pnc", "pna")}
    run["known_switches"] = list(one.known)
    run["known_least"] = min((state.known for state in said), default=0.0)
    run["measured_rtt_ms"] = 1e3 * one.measured_rtt_s
    run["late_p99_us"], run["failed"] = carried["lateness_p99_us"], carried["failed"]
    run["unfit"] = why_unfit(run, len(one.known) / len(one.topology.route), len(said))
    return run


def from_agent(status: Mapping[str, Any], path: str) -> Run:
    """The status of the flow in headwayd. Raises RunError if it got no report of its path."""
    network = status["network"]
    if not status["flows"]:
        raise RunError("headwayd has no flow")
    flow = max(status["flows"], key=lambda one: one["delivered_packets"])
    if flow["path"] != path or network["refused"] or not network["events"]:
        raise RunError(f"headwayd gets no reports of the path {path}: {json.dumps(network)}")
    if not flow["decisions"]:
        raise RunError("headwayd has decided nothing for the flow; take longer --seconds")
    return {
        "guard_trips": flow["guard_trips"],
        "decisions": flow["decisions"],
        "answers_p99_us": status["latency_us"]["p99"],
    }


def why_unfit(run: Run, known: float, snapshots: int) -> str | None:
    """The influence of the machine on a run, or None if there was none."""
    if not snapshots:
        return "netwatch sent no report"
    if run["known_least"] < known - 1e-9:
        return "the counters of a known switch were missing"
    if links := wires.why_unfit({"failed": run["failed"], "lateness_p99_us": run["late_p99_us"]}):
        return links
    if run.get("answers_p99_us", 0) > PERIOD_US:
        return f"headwayd answered late: {run['answers_p99_us']:.0f} us (p99)"
    return None


def say_run(run: Run, which: str, took_s: float) -> None:
    """Prints a line of progress."""
    who = run["scheme"] if run["scheme"] == CUBIC else f"{run['scheme']}, {100 * run['known']:g}% known"
    what = (
        f"{run['throughput_mbps']:.2f} Mbit/s, {run['rtt_ms']:.1f} ms, PNC {run['pnc']:.1f}, PNA {run['pna']:.3f}"
    )
    unfit = f", unfit: {run['unfit']}" if run["unfit"] else ""
    print(f"{which}: {who}, seed {run['seed']}: {what}{unfit} (took {took_s:.0f} s)", file=sys.stderr, flush=True)


def scenario(divided: int) -> dict[str, Any]:
    """The scenario owl-nsfnet with LEVELS as its family, and with rate and queue divided."""
    table = tomllib.loads(Scenario.load("owl-nsfnet:known=1").text)
    table["name"] = f"fig6-{divided}"
    table["topology"] |= {"rate": f"{100 / divided:g}Mbps", "queue": f"{375 / divided:g}kB"}
    table["sweep"] = {"key": "switches.known", "values": [f"{100 * level:g}%" for level in LEVELS]}
    return table


def simulated(seeds: int, seconds: float) -> dict[str, list[Run]]:
    """The simulator's runs, by their titles in SCALES."""
    found = {}
    for scale, divided in SCALES.items():
        file = OUT / f"fig6-{divided}.toml"
        write_atomic(file, tomli_w.dumps(scenario(divided)))
        results = headway.bench([OWL, CUBIC], [str(file)], runs=seeds, seconds=seconds, warmup=warmup_of(seconds))
        level = dict(zip(results.scenarios, LEVELS, strict=True))
        members = {one.name: one for one in Scenario.load_all(str(file))}
        found[scale] = [
            {
                "scheme": row["scheme"],
                "known": level[row["scenario"]],
                "seed": row["seed"],
                "throughput_mbps": row["throughput_mbps"],
                "rtt_ms": row["rtt_mean_ms"],
                "unfit": None,
                **(told(members[row["scenario"]], row["seed"], seconds) if row["scheme"] == OWL else {}),
            }
            for row in results.runs()
            if row["flow"] == -1
        ]
    return found


def told(member: Scenario, seed: int, seconds: float) -> Run:
    """The means that a simulated flow of Owl observed in the same run, as `run_once` has them."""
    network = SimulatedNetwork(member, OWL, seed=seed, seconds=seconds)
    network.advance(seconds)
    news = [one for one in network.take_measurements() if one[0] >= warmup_of(seconds)]
    pnc, pna, known = (sum(one[k] for one in news) / max(len(news), 1) for k in (2, 3, 4))
    return {"pnc": pnc, "pna": pna, "known_least": known}


def tables(measured: Mapping[str, Sequence[Run]], seconds: float) -> list[str]:
    """Lines of Markdown, with a table for each scale."""
    lines = []
    for scale, runs in measured.items():
        fit = [run for run in runs if run["unfit"] is None]
        count = len(runs) - len(fit)
        what = f"{len(runs)} runs of {seconds:g} s" + (f", {count} of them unfit and left out" if count else "")
        what += f", Headway {code_version}"
        lines += [
            f"{scale}: {what}. Means with Student's interval of 95%; differences are of runs with one seed.",
            "",
        ]
        lines += [
            "| scheme, switches known | Mbit/s | mean RTT, ms | Mbit/s against 0% known, % | RTT, % |",
            "|---|---|---|---|---|",
        ]
        none = of_level(fit, OWL, 0.0)
        for scheme, known in [*((OWL, level) for level in LEVELS), (CUBIC, 0.0)]:
            own = of_level(fit, scheme, known)
            who = f"Owl, {100 * known:g}%" if scheme == OWL else "Cubic"
            cells = [shown(mean_of([run[metric] for run in own.values()])) for metric in METRICS]
            both = sorted(own.keys() & none.keys())
            for metric in METRICS:
                pairs = [(none[seed][metric], own[seed][metric]) for seed in both]
                cells.append("" if own == none else shown(percent_of(pairs), "+.1f"))
            lines.append(f"| {who} | {' | '.join(cells)} |")
        lines += ["", *counters(fit)]
    return lines


def picture(measured: Mapping[str, Sequence[Run]]) -> Spec:
    """A row of panels for each scale: throughput and RTT over the share of known switches."""
    looks, panels = looks_of([OWL, CUBIC]), []
    for scale, runs in measured.items():
        fit = [run for run in runs if run["unfit"] is None]
        for metric, title in zip(METRICS, ("throughput (Mbit/s)", "mean RTT (ms)"), strict=True):

            def over_runs(scheme: str, level: float, of: str = metric, among: Sequence[Run] = fit) -> Estimate:
                return mean_of([run[of] for run in of_level(among, scheme, level).values()])

            cubic = over_runs(CUBIC, 0.0)
            lines = {
                OWL: {100 * level: over_runs(OWL, level) for level in LEVELS},
                CUBIC: {100 * level: cubic for level in LEVELS},
            }
            panels.append((scale, over(lines, looks, "switches known (%)", title, zero=False)))
    return titled(panels, looks, columns=2)


def counters(runs: Sequence[Run]) -> list[str]:
    """The table of the values that the flows of Owl observed."""
    lines = [
        "| switches known | known, on average | PNC, packets/s | PNA | guard took over |",
        "|---|---|---|---|---|",
    ]
    for level in LEVELS:
        own = list(of_level(runs, OWL, level).values())
        if own:
            known, pnc, pna = (mean(own, of) for of in ("known_least", "pnc", "pna"))
            # Simulated flows have no value here.
            trips = f"{sum(run['guard_trips'] for run in own)} times" if "guard_trips" in own[0] else "no guard"
            lines.append(f"| {100 * level:g}% | {100 * known:.0f}% | {pnc:.1f} | {pna:.3f} | {trips} |")
    return [*lines, ""]


def of_level(runs: Sequence[Run], scheme: str, known: float) -> dict[int, Run]:
    """The runs by seed."""
    return {run["seed"]: run for run in runs if (run["scheme"], run["known"]) == (scheme, known)}


def mean(runs: Sequence[Run], of: str) -> float:
    """The mean of at least one run."""
    return float(sum(run[of] for run in runs) / len(runs))


def shown(one: Estimate, form: str = ".2f") -> str:
    """The mean, with its interval if there is one."""
    if one.mean is None:
        return "none"
    ends = f" ({one.ci95[0]:{form}} to {one.ci95[1]:{form}})" if one.ci95 else ""
    return f"{one.mean:{form}}{ends}"


def probe(seconds: float) -> int:
    """Runs policies that show their observations, one for each feature.

    It compares them with the values of netwatch.
    """
    print("| switches known | feature | netwatch said | the policy observed | decisions | the same |")
    print("|---|---|---|---|---|---|")
    wrong = 0
    for known in LEVELS:
        with tempfile.TemporaryDirectory() as folder:
            found = probed(known, seconds, Path(folder))
        for feature, (said, observed, same) in found.items():
            cells = [f"{100 * known:g}%", feature, spread(said), spread(observed), str(len(observed)), f"{same}"]
            print(f"| {' | '.join(cells)} |", flush=True)
            wrong += same < len(observed) or not observed
    return 1 if wrong else 0


def spread(values: Sequence[float]) -> str:
    """The range from the smallest to the largest value."""
    return f"{min(values):g} to {max(values):g}" if values else "nothing"


def probed(known: float, seconds: float, folder: Path) -> dict[str, tuple[list[float], list[float], int]]:
    """The values of netwatch and the observations of the policy, by feature.

    It also returns the number of decisions that used the newest report.
    """
    views: dict[str, Callable[[Any], float]] = {
        "network_known": lambda state: state.known,
        "pna": lambda state: state.pna,
        "pnc_packets": lambda state: state.pnc,
    }
    with testbed(known, 1) as (one, _), ExitStack() as stack:
        heard = stack.enter_context(on_testbed.listening(one))
        files = {}
        for number, feature in enumerate(views):
            name, files[feature] = f"hw_p{number}_{os.getpid()}", folder / f"{feature}.jsonl"
            spec = probe_models.probe(folder / f"{feature}-v1", feature)
            stack.enter_context(Agent(one, name, "--policy", spec, "--shadow", str(files[feature])))
            stack.enter_context(on_testbed.flow(one, name, on_testbed.PORT + number))
        time.sleep(2)
        begun = time.monotonic()
        time.sleep(seconds)
        ended = time.monotonic()
        # A line is in the file a second after its decision.
        time.sleep(1.5)
        lines = {feature: file.read_text().splitlines() for feature, file in files.items()}
    found = {}
    for feature, view in views.items():
        factor = probe_models.FACTORS[feature]
        observed, same = [], 0
        for line in map(json.loads, lines[feature][:-1]):
            at_s = line["at_ns"] / 1e9
            if not begun <= at_s <= ended:
                continue
            observed.append(line["value"] / factor)
            # The window has whole packets.
            near = [factor * view(state) for heard_s, state in heard if at_s - SOON_S <= heard_s <= at_s + 0.1]
            same += any(abs(value - line["value"]) <= 0.5 + 1e-3 for value in near)
        said = [view(state) for heard_s, state in heard if begun - SOON_S <= heard_s <= ended]
        found[feature] = said, observed, same
    return found


if __name__ == "__main__":
    sys.exit(main())
