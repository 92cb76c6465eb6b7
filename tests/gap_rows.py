"""Made-up runs and their rows, for tests of the gap."""

from headway._native import Scenario, canonical_scheme, code_version
from headway.gap import compare, plan
from headway.gap.plan import EMU, SIM, Settings, Task
from headway.runs import store

NETWORK = Scenario.load("pantheon-default")
TRACE = Scenario.load("synthetic-att")
OWL = canonical_scheme("owl", SIM).partition(":model=")[2].partition(":")[0]


def finished(task, throughput=10.0, delay=100.0, **more):
    """A run as in the store."""
    return {
        **task.key,
        "store_schema": store.SCHEMA,
        "flow": -1,
        "throughput_mbps": throughput,
        "delay_mean_ms": 0.8 * delay,
        "delay_p95_ms": delay,
        "queue_p95_ms": delay - 60,
        "loss": 0.0,
        "utilisation": throughput / 12,
        "rtt_mean_ms": None,
        "lateness_p99_ms": 0.25 if task.world == EMU else None,
        "unfit": None,
        "code_version": code_version,
        "machine": "2 cores of a processor, Linux 6.18",
        "at": "2026-11-22T06:00:00Z",
    } | more


def compared(values, settings, scenario=NETWORK, scheme="cubic"):
    """The row of a scheme.

    Its `values` are (simulator, emulator) keywords of `finished` for each pair.
    """
    assert len(values) >= settings.runs
    by_key = {}
    for seed, pair in zip(plan.all_seeds(settings), values, strict=False):
        for world, value in zip((SIM, EMU), pair, strict=True):
            task = Task(world, scenario, scheme, seed, scenario.seconds, settings.warmup)
            if value is not None:
                by_key[tuple(task.key.values())] = finished(task, **value)
    rows = compare.compare([scenario], [scheme], settings, lambda task: by_key.get(tuple(task.key.values())))
    return rows[0] if rows else None


def rows():
    """Rows of two networks, one scheme each."""
    pairs = [({}, {"throughput": 10.08 + k / 50, "delay": 140.0}) for k in range(3)]
    return [compared(pairs, Settings(runs=3)), compared(pairs, Settings(runs=3), TRACE, "copa")]
