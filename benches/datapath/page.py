"""Writes the figures as tables, for the terminal and for docs/kernel-performance.md."""

from typing import Any

import tables
from datapath.judge import DECISIONS_A_SECOND, PATHS, RULE, base_of, own_ns, run_ns
from datapath.many import BATCHES
from datapath.others import MOST, TRIES
from datapath.place import INITIAL_CWND
from datapath.variants import YARDSTICK
from tables import Table

Figures = dict[str, Any]

HEAD = """\
# What the Linux datapath costs

Written by `sudo make bench-kernel`, which measures it, from `build/bench/kernel.json`:

```sh
sudo make bench-kernel                                   # measures and shows everything in half an hour
sudo make bench-kernel OPTIONS="--rounds 9"              # this number of rounds for each part
sudo make bench-kernel OPTIONS="--only hooks"            # one part again; the other figures are kept
make bench-kernel OPTIONS="--last --publish"             # writes this page
```

"""
VERSIONS = """\
The figures come from these commits, by stage:

{stages}

The digest of today's programs is {programs} (SHA-256 of the code and data in
`crates/kernel/bpf/objects/*.bpf.o`, when this page was written). Figures with another digest, or without one, come
from older programs. Today's ABI of programs and agent is `HEADWAY_VERSION` in `crates/kernel/bpf/abi.h`.
"""
COST = """\
One flow of iperf3 runs between two namespaces over an unshaped veth pair: {rounds} rounds of {seconds:g} s for
each transfer. Both ends are on one processor and the agent is on the other. A light heartbeat keeps the agent's
processor from sleeping: on a machine of two virtual processors throughput halves when one is idle. In each
round each variant has its turn, in a random order. Ratios are to the kernel's Cubic in the same round (of
headway_bbr to the kernel's BBR). They are medians, with a bootstrap interval of 95%. CPU seconds are those of
the whole machine, without the heartbeat and without other processes. The columns "of the processes" have only
iperf3's two ends and the agent.

Other processes on this machine take caches and time. So their CPU time is counted during each transfer. If they
used more than {most:g} cores, the transfer is repeated, whatever its variant and its result: {repeated} of
{transfers} were. After {tries} tries the last one counts: {disturbed} of {transfers} were still disturbed. The
median over all transfers is {others:.2f} cores.

A policy controls the flow on an unshaped path too, so its window or rate decides the throughput. If a policy is
asked *in shadow*, Cubic decides (`--shadow`). The difference from Cubic is then the cost of programs, records
and agent; the guard does not judge a shadow. *A net that holds the window* is asked, and its answers are carried
out but change nothing. The guard judges it, so this is the whole datapath. *A net that asks for the maximum
rate* always asks for more. It gets the guard's limit, which is three times the rate that the path was seen to
carry. This rate does not limit the flow, but the kernel paces at it, with its timers. The targets apply only to
these rows.

All variants have a route with an initial window of {window:,} packets and an ssthresh of half of it: without
losses slow start does not end, and Owl is not asked in slow start. Where packets are as TSO makes them, iperf3
writes 1 MB at a time. With its own 128 KB a flow has 18 or 40 Gbit/s with any controller, depending on how
writer and reader alternate.
"""
HOOKS = """\
The table has the time of all programs that run for an acknowledgement, by the kernel's own count
(`BPF_ENABLE_STATS`). It is taken over {seconds:g} s in the middle of a flow, and is the median of {rounds}
rounds. "Counting" is the time of the count itself, measured with an empty program. "Base" is the time of the
same program without an agent: the entry, and the functions of Cubic or BBR that it calls. The rest is Headway's:
the record, the action, the guard. The target is for that rest. If a policy controls the flow, Cubic's own
functions are called less often than without it.

If the agent sleeps when a decision is due, the program wakes it. That takes longer than everything else: tens of
microseconds if its processor is idle. An agent that never sleeps (`--busy-poll`) is never woken. A record goes
to the agent for each acknowledgement. If a policy inside the kernel decides (int8), the program uses each
record itself, and sends one to the agent every {digest:g} ms. {again}
"""
LATENCY = """\
The time runs from the record of an acknowledgement in the kernel until Owl's action is in the flow's slot,
where the flow's next acknowledgement finds it. It is measured in {rounds} rounds of {seconds:g} s. Only the
heartbeat shares the agent's processor. 100-128-64-7 is the shipped model, which decides. 60-512-256-7 is the
network of Owl's paper and holds the window. Its weights are arbitrary, because the time does not depend on
them. {again}
"""
MANY = """\
The flows send as fast as possible over a link of {mbps} Mbit/s with a queue of {queue:.0f} ms. Packets have
{mtu} bytes and are acknowledged one by one. Both ends share the other processor. There are {rounds} rounds of
{seconds:g} s. Policies are asked in shadow, and Cubic keeps all flows busy. *Every 10 ms*: the net decides for
each flow every 10 ms by a clock, regardless of packets. *Its own clock*: a decision needs a record, so a flow
with 75 packets a second decides less often. *Aurora decides*: rates and round trips are far from those of its
training. So it reduces many flows to its minimum rate, and slow flows decide rarely. The agent's processor time
is that of all its threads. The flows of Cubic are those that the guard had taken over at the end. *KiB a flow*
is the difference of headwayd's resident memory with {flows:,} and with {few:,} flows, over the difference of the
flows that it knows. It does not contain the kernel's memory: BPF maps have room for `--flows` from the start.
{again}
"""
BACKLOG = """\
The table has the largest number of records that the ring's thread processes in a second. The traffic of one
processor makes fewer records. So {flows:,} flows, over the link above and asked in shadow, send for
{seconds:.0f} s while the agent is stopped, and their records gather in a ring that has room for them. Then the
agent continues. It has caught up when it is idle again, although the flows still send. The figures are medians
of {rounds} rounds. All flows belong to one user, who has a millisecond of each turn: *waited* is the share of
records that had to wait for a later turn. If 4,096 records wait, those of a flow are combined. {again}
"""
ANSWERS = """\
The table has the microseconds of an answer on one core, over {rounds} rounds. Answers are computed one by one
as in the agent (`crates/policy/examples/inference.rs`), and several at once by NumPy (OpenBLAS, one thread),
whose sums have another order. headwayd answers flow by flow, one by one.{saved}
"""
INT8 = """\
Aurora's network 30-32-16-1 and the whole agent around it are evaluated inside BPF. Each output and each flow
state is compared bit for bit with the native build of the same headers: `cargo test -p headwayd --test int8 --
--ignored` as root. Over many calls (BPF_PROG_TEST_RUN) everything is in the caches and nothing else runs, so the
time is that of the computation. On live flows the time is that of a whole acknowledgement, with Cubic's
functions, the guard and cold caches. The path's round trips limit how many acknowledgements decide.
"""


DIGEST_MS = 100
"""The interval of records from an integer policy, Frame::OWN_POLICY_INTERVAL_US of headwayd."""
RATIOS = {"mbps": "{:,.0f}", "cpu_s_per_gb": "{:.3f}", "process_cpu_s_per_gb": "{:.3f}"}
"""The figures that are compared with Cubic's, and their formats."""


def every(figures: Figures) -> dict[str, tuple[str, list[Table]]]:
    """Text and tables of each part that was measured."""
    found: dict[str, tuple[str, list[Table]]] = {}
    if figures["targets"]:
        found["Targets"] = (RULE, [tables.targets(figures)._replace(title="")])
    if "cost" in figures:
        parts = [table for path in PATHS for table in _cost(figures, path)]
        found["Throughput and CPU a GB"] = (_about_cost(figures["cost"]), parts)
    if "hooks" in figures:
        found["ns a hook"] = (HOOKS.format(**_length(figures["hooks"]), digest=DIGEST_MS), [_hooks(figures)])
    if "latency" in figures:
        found["From an acknowledgement to the action"] = (
            LATENCY.format(**_length(figures["latency"])),
            [_latency(figures)],
        )
    if "flows" in figures:
        first = figures["flows"][0]
        path = {"mbps": first["link_mbps"], "mtu": first["mtu"], "queue": first["queue_ms"]}
        path |= {"flows": first["flows"], "few": first["few"]}
        found["Many flows"] = (MANY.format(**path, **_length(figures["flows"])), [_flows(figures)])
    if "backlog" in figures:
        rows = figures["backlog"]
        text = BACKLOG.format(**_length(rows), flows=rows[0]["flows"])
        found["A ring full of records"] = (text, [_backlog(figures)])
    if "answers" in figures:
        rounds = figures["answers"][0]["rounds"]
        words = ANSWERS.format(rounds=rounds, saved=_saved(figures))
        found["Answers at once"] = (words, [_answers(figures)])
    if figures.get("int8"):
        found["A policy inside BPF"] = (INT8, [_int8(figures)])
    return found


def _length(rows: list[Figures]) -> Figures:
    """The number and length of the rounds, and a sentence about repeated runs."""
    disturbed, runs = sum(row["disturbed"] for row in rows), sum(row["rounds"] for row in rows)
    again = f"Disturbed runs are repeated here too: {disturbed} of {runs} were still disturbed."
    return {"rounds": rows[0]["rounds"], "seconds": rows[0]["seconds"], "again": again}


def _about_cost(cost: Figures) -> str:
    counted = {key: cost[key] for key in ("seconds", "transfers", "repeated", "disturbed")}
    rounds = len(next(iter(cost["rounds"]["tso"].values())))
    return COST.format(
        **counted,
        rounds=rounds,
        others=cost["others_cores"],
        most=MOST,
        tries=TRIES,
        window=INITIAL_CWND,
    )


def _saved(figures: Figures) -> str:
    """A sentence about the time that batches would save, from the cost of flows without them."""
    alone = {row["net"]: row for row in figures["answers"] if "alone" in row}
    said = ""
    for row in figures.get("flows", []):
        if row["period_ms"] and row["net"] in alone:
            net = alone[row["net"]]
            most = max(BATCHES)
            less = max(0.0, net["alone"] - net[f"{most}"])
            cores = [us * DECISIONS_A_SECOND * 1e-6 for us in (row["us_a_decision"], row["us_a_decision"] - less)]
            said += (
                f" {DECISIONS_A_SECOND:,} decisions a second of {row['net']} take {cores[0]:.2f} cores, at"
                f" {row['us_a_decision']:.1f} us each, {net['alone']:.1f} of them in the network. With"
                f" {most} answers at a time they would take {cores[1]:.2f} cores."
            )
    return said


def show(figures: Figures) -> None:
    """Prints the figures as tables."""
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


def markdown(figures: Figures, programs: str) -> str:
    """Returns the page.

    Args:
        figures: All figures.
        programs: The digest of today's programs.
    """
    text = HEAD + about(figures) + "\n\n" + versions(figures, programs)
    if figures["quick"]:
        text += "\nThis is a run of `--quick`. It only shows that everything can be measured.\n"
    for heading, (words, parts) in every(figures).items():
        text += f"\n## {heading}\n" + (f"\n{words}" if words else "")
        for table in parts:
            text += (f"\n### {table.title}\n" if table.title else "") + "\n" + tables.markdown(table)
    if figures["skipped"]:
        text += "\n## Not measured\n\n" + "".join(f"- {line}\n" for line in figures["skipped"])
    return text


def about(figures: Figures) -> str:
    """One line with the machine, the commit and the date."""
    return tables.about(figures)[:-1] + f"; Linux {figures['machine']['kernel']}."


def versions(figures: Figures, programs: str) -> str:
    """The commits of the figures, by part.

    It also names the ABI of the programs and the agent, and the programs' digest.

    Args:
        figures: All figures.
        programs: The digest of today's programs.
    """
    of: dict[tuple[str, int, str], list[str]] = {}
    for stage, made in figures["made"].items():
        of.setdefault((made["version"], made["abi"], made.get("programs", "older")), []).append(stage)
    stages = [
        f"- {', '.join(which)}: {version}, ABI {abi}, programs {digest}"
        for (version, abi, digest), which in of.items()
    ]
    return VERSIONS.format(stages="\n".join(stages), programs=programs)


def _cost(figures: Figures, path: str) -> list[Table]:
    rows, does = [], []
    for name, of_name in figures["cost"]["paths"][path].items():
        variant = figures["variants"][name]
        title = variant["title"] + ("" if variant["over"] == YARDSTICK else " (over the kernel's BBR)")
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
        base, own = base_of(figures, row), own_ns(figures, row)
        programs = ", ".join(f"{n.partition('_')[2]} {ns:.0f}" for n, ns in row["programs"].items())
        rows.append(
            [
                figures["variants"][row["variant"]]["title"],
                row["path"],
                f"{row['ns_an_ack']:.0f}",
                f"{row['counting_ns']:.0f}",
                _optional(base and run_ns(base), "{:.0f}"),
                f"{own['median']:.0f}",
                f"{own['ci95'][0]:.0f} .. {own['ci95'][1]:.0f}" if own["ci95"] and base is not row else "",
                f"{run_ns(row):.0f}",
                f"{row['acks_a_second']:,.0f}",
                f"{row['reports_a_second']:,.0f}",
                f"{row['wakes_a_second']:,.0f}",
                programs,
            ]
        )
    columns = ["", "path", "ns an ACK", "counting", "base controller", "Headway's", "95%", "both", "ACKs a second"]
    columns += ["records", "woke the agent", "ns a run of each"]
    return Table("", columns, rows)


def _latency(figures: Figures) -> Table:
    rows = [
        [
            row["net"],
            row["path"],
            row["wait"],
            f"{row['p50']:.1f}",
            f"{row['p99']:.1f}",
            f"{row['count']:,.0f}",
            f"{row['agent_cores']:.2f}",
        ]
        for row in figures["latency"]
    ]
    columns = ["net", "path", "agent waits by", "p50, us", "p99, us", "decisions a run", "agent's cores"]
    return Table("", columns, rows)


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
        "KiB a flow": "{kib_a_flow:.1f}",
    }
    rows = [
        [f"{row['policy']}: {row['served']:,.0f} flows", *(form.format(**row) for form in shown.values())]
        for row in figures["flows"]
    ]
    return Table("", ["", *shown], rows)


def _backlog(figures: Figures) -> Table:
    shown = {
        "records": "{records:,.0f}",
        "seconds to take them": "{taken_s:.2f}",
        "records a second": "{records_a_second:,.0f}",
        "decisions a second": "{decisions_a_second:,.0f}",
        "the thread's cores": "{thread_cores:.2f}",
        "waited": "{waited:.2f}",
        "records dropped": "{ring_dropped:,.0f}",
    }
    rows = [
        [f"{row['policy']}, its own clock", *(form.format(**row) for form in shown.values())]
        for row in figures["backlog"]
    ]
    return Table("", ["", *shown], rows)


def _answers(figures: Figures) -> Table:
    batches = ["alone", *map(str, BATCHES)]
    rows = [[row["net"], *(_optional(row.get(key), "{:.2f}") for key in batches)] for row in figures["answers"]]
    return Table("", ["net", "Headway, one by one", *(f"NumPy, {n} at once" for n in BATCHES)], rows)


def _int8(figures: Figures) -> Table:
    found = figures["int8"]
    rows = [
        ["the network alone, ns", f"{found['net_ns']:,.0f}"],
        ["a record with a decision, ns", f"{found['agent_ns']:,.0f}"],
        ["a record without one, ns", f"{found['record_ns']:,.0f}"],
        *(
            [f"an acknowledgement of a live flow, {row['path']}, ns", f"{row['ns_an_ack']:,.0f}"]
            for row in figures.get("hooks", [])
            if row["variant"] == "int8"
        ),
        ["networks compared", f"{found['nets']:,.0f}"],
        ["records compared", f"{found['records']:,.0f}"],
    ]
    return Table("", ["", "measured"], rows)


def _ratio(found: Figures) -> str:
    interval = f" ({found['ci95'][0]:.2f} .. {found['ci95'][1]:.2f})" if found["ci95"] else ""
    return f"{found['median']:.3f}{interval}"


def _optional(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
