"""The figures as tables, for the terminal and for docs/kernel-performance.md, which is written anew from them."""

from typing import Any

import tables
from datapath.judge import PATHS, cubics_ns, own_ns
from datapath.place import INITIAL_CWND
from tables import Table

Figures = dict[str, Any]

HEAD = """\
# What the Linux datapath costs

Written by `sudo make bench-kernel`, which measures it, from `build/bench/kernel.json`:

```sh
sudo make bench-kernel                                   # measures all of it, and shows it
sudo .venv/bin/python benches/kernel.py --rounds 7       # so many rounds of everything
sudo .venv/bin/python benches/kernel.py --only hooks     # one part anew; the rest stays the last's
.venv/bin/python benches/kernel.py --last --publish      # writes this page
```

"""
COST = """\
One flow of iperf3 between two namespaces over an unshaped veth pair. Both ends are on one processor, the agent
on the other, where a light heartbeat keeps it from sleeping: throughput halves on a machine of two virtual
processors when one is idle. Variants follow one another in each round, each round begins with another one, and
ratios are to Cubic in the same round: medians, with a bootstrap interval of 95%. CPU seconds are the whole
machine's, less the heartbeat's; beside them those of iperf3's two ends and the agent.

A policy steers on an unshaped path too, and its window or rate is then what decides the throughput. Where it is
*asked* and Cubic decides (`--shadow`), the difference to Cubic is what programs, records and agent
cost; a shadow's guard does not judge. *A net that holds the window* is asked, its answers, none of which changes
anything, are carried out, and the guard judges: the whole datapath. Only these are held to the target.

The route has an initial window of {window:,} packets and an ssthresh of half of it, for all: where nothing is ever
lost slow start does not end, and in it Owl is not asked. Where packets are as TSO makes them iperf3 writes 1 MB
at a time: with its own 128 KB a flow has 18 or 40 Gbit/s, plain Cubic's too, as writer and reader happen to take
turns.
"""
HOOKS = """\
By the kernel's own count (`BPF_ENABLE_STATS`): all programs that run for an acknowledgement together. "Counting"
is the count's own part, as a program that does nothing shows it; "Cubic's" is what the same program takes where no
agent is told of anything: Cubic's own functions, which it calls, and how it is entered. The rest is Headway's: the
record, the action, the guard. Where the agent sleeps when a decision is due the program wakes it, which takes
longer than all the rest: tens of microseconds where its processor idles. An agent that never sleeps
(`--busy-poll`) is never woken.
"""
LATENCY = """\
From the record of an acknowledgement in the kernel until Owl's action stands in the flow's slot, where the
flow's next acknowledgement finds it. The agent has its processor to itself, but for the heartbeat; its net is
that of the shipped model.
"""
MANY = """\
Flows that send as fast as they may over a link of {mbps} Mbit/s with a queue of {queue:.0f} ms, in packets of {mtu}
bytes that are acknowledged one by one; both ends share the other processor. Where a policy is *asked*, Cubic
decides (`--shadow`) and keeps all flows busy. Aurora itself,
at rates and round trips far from those it was trained on, lets many flows down to its least rate, and who sends
little decides seldom: a decision takes a record. The agent's processor time is that of all its threads. Cubic's
are flows that the guard had at the end.
"""
INT8 = """\
Aurora's network 30-32-16-1 and the whole agent around it, evaluated inside BPF. Each output and each flow state
is compared bit for bit with the native build of the same headers: `cargo test -p headwayd --test int8 --
--ignored` as root. Times are BPF_PROG_TEST_RUN's, over many calls.
"""


RATIOS = {"mbps": "{:,.0f}", "cpu_s_per_gb": "{:.3f}", "process_cpu_s_per_gb": "{:.3f}"}
"""What is compared with Cubic's, and how it is written."""


def every(figures: Figures) -> dict[str, tuple[str, list[Table]]]:
    """Text and tables of each part that was measured."""
    found: dict[str, tuple[str, list[Table]]] = {}
    if figures["targets"]:
        found["Targets"] = ("", [tables.targets(figures)._replace(title="")])
    if "cost" in figures:
        others = f"\nMeanwhile others used {figures['cost']['others_cores']:.2f} cores.\n"
        parts = [table for path in PATHS for table in _cost(figures, path)]
        found["Throughput and CPU a GB"] = (COST.format(window=INITIAL_CWND) + others, parts)
    if "hooks" in figures:
        found["ns a hook"] = (HOOKS, [_hooks(figures)])
    if "latency" in figures:
        found["From an acknowledgement to the action"] = (LATENCY, [_latency(figures)])
    if "flows" in figures:
        first = figures["flows"][0]
        found["Many flows"] = (
            MANY.format(mbps=first["link_mbps"], mtu=first["mtu"], queue=first.get("queue_ms", 20)),
            [_flows(figures)],
        )
    if figures.get("int8"):
        found["A policy inside BPF"] = (INT8, [_int8(figures)])
    return found


def show(figures: Figures) -> None:
    """Prints them."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn

    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    for heading, (_, parts) in every(figures).items():
        for table in parts:
            title = ": ".join(filter(None, (heading, table.title)))
            drawn = Drawn(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
            for number, column in enumerate(table.columns):
                drawn.add_column(column, justify="right" if number else "left")
            for row in table.rows:
                drawn.add_row(*(cell.replace("**", "") for cell in row))
            console.print(drawn)
    console.print(about(figures))
    for line in figures["skipped"]:
        console.print(f"skipped {line}")
    others = [f"{t['name']} ({t['verdict']})" for t in figures["targets"] if t["verdict"] != "met"]
    console.print(f"not met: {'; '.join(others)}" if others else "every target is met")


def markdown(figures: Figures) -> str:
    """The page."""
    text = HEAD + about(figures) + "\n"
    if figures["quick"]:
        text += "\nA run of `--quick`: it says that all of this can be measured, and no more.\n"
    for heading, (words, parts) in every(figures).items():
        text += f"\n## {heading}\n" + (f"\n{words}" if words else "")
        for table in parts:
            text += (f"\n### {table.title}\n" if table.title else "") + "\n" + tables.markdown(table)
    if figures["skipped"]:
        text += "\n## Not measured\n\n" + "".join(f"- {line}\n" for line in figures["skipped"])
    return text


def about(figures: Figures) -> str:
    """One line: of what, where and when."""
    return tables.about(figures)[:-1] + f"; Linux {figures['machine']['kernel']}."


def _cost(figures: Figures, path: str) -> list[Table]:
    rows, does = [], []
    for name, of_name in figures["cost"]["paths"][path].items():
        title = figures["titles"][name]
        ratios = [_ratio(of_name[f"{key}_ratio"]) for key in RATIOS]
        amounts = [form.format(of_name[key]) for key, form in RATIOS.items()]
        rows.append([title, *(cell for pair in zip(amounts, ratios, strict=True) for cell in pair)])
        steering = [_optional(of_name.get(key), "{:,.0f}") for key in ("pacing_mbps", "decisions", "guard_trips")]
        counted = [_optional(of_name.get(key), "{:,.0f}") for key in ("wakes", "ring_dropped")]
        does.append(
            [
                title,
                f"{of_name['cwnd_kb']:,.0f}",
                f"{of_name['rtt_us']:,.0f}",
                f"{of_name['retransmits']:,.0f}",
                *steering,
                *counted,
                f"{of_name['agent_cores']:.2f}",
            ]
        )
    columns = ["", "Mbit/s", "over Cubic's", "CPU s a GB", "over Cubic's", "of the processes", "over Cubic's"]
    acts = ["", "mean cwnd, kB", "mean RTT, us", "retransmits", "paced, Mbit/s", "decisions", "guard trips"]
    acts += ["woke the agent", "records dropped", "agent's cores"]
    return [
        Table(PATHS[path].capitalize().replace("tso", "TSO"), columns, rows),
        Table(f"What windows and rates were: {PATHS[path]}", acts, does),
    ]


def _hooks(figures: Figures) -> Table:
    rows = []
    for row in figures["hooks"]:
        cubics = cubics_ns(figures["hooks"], row)
        programs = ", ".join(f"{n.partition('_')[2]} {ns:.0f}" for n, ns in row["programs"].items())
        rows.append(
            [
                figures["titles"][row["variant"]],
                row["path"],
                f"{row['ns_an_ack']:.0f}",
                f"{row['counting_ns']:.0f}",
                _optional(cubics, "{:.0f}"),
                f"{own_ns(figures['hooks'], row):.0f}",
                f"{row['acks_a_second']:,.0f}",
                programs,
            ]
        )
    columns = ["", "path", "ns an ACK", "counting", "Cubic's", "Headway's", "ACKs a second", "ns a run of each"]
    return Table("", columns, rows)


def _latency(figures: Figures) -> Table:
    rows = [
        [
            row["path"],
            row["wait"],
            f"{row['p50']:.1f}",
            f"{row['p99']:.1f}",
            f"{row['count']:,.0f}",
            f"{row['agent_cores']:.2f}",
        ]
        for row in figures["latency"]
    ]
    return Table("", ["path", "agent waits by", "p50, us", "p99, us", "decisions a run", "agent's cores"], rows)


def _flows(figures: Figures) -> Table:
    shown = {
        "agent's cores": "{agent_cores:.2f}",
        "decisions a second": "{decisions_a_second:,.0f}",
        "ms between a flow's": "{decisions_a_flow_ms:.1f}",
        "us of CPU a decision": "{us_a_decision:.1f}",
        "records a second": "{reports_a_second:,.0f}",
        "records dropped": "{ring_dropped:,.0f}",
        "woke the agent, a decision": "{wakes:.3f}",
        "Cubic's": "{cubics:.0f}",
        "RTT, ms": "{srtt_ms:.1f}",
        "answer p50, us": "{latency_us_p50:,.0f}",
        "p99": "{latency_us_p99:,.0f}",
        "Mbit/s": "{mbps:.0f}",
        "memory, MiB": "{memory_mib:.0f}",
    }
    rows = [
        [f"{row['policy']}, {row['served']:,.0f} flows", *(form.format(**row) for form in shown.values())]
        for row in figures["flows"]
    ]
    return Table("", ["", *shown], rows)


def _int8(figures: Figures) -> Table:
    found = figures["int8"]
    rows = [
        ["the network alone, ns", f"{found['net_ns']:,.0f}"],
        ["a record with a decision, ns", f"{found['agent_ns']:,.0f}"],
        ["a record without one, ns", f"{found['record_ns']:,.0f}"],
        ["networks compared", f"{found['nets']:,.0f}"],
        ["records compared", f"{found['records']:,.0f}"],
    ]
    return Table("", ["", "here"], rows)


def _ratio(found: Figures) -> str:
    interval = f" ({found['ci95'][0]:.2f} .. {found['ci95'][1]:.2f})" if found["ci95"] else ""
    return f"{found['median']:.3f}{interval}"


def _optional(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
