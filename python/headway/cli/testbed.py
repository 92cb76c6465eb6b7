"""`headway testbed`: a network of Open vSwitch bridges, and a program in it (docs/testbed.md)."""

import json as js
import os
import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headway import ending
from headway._native import UsageError
from headway.cli.usage import Json

if TYPE_CHECKING:
    from headway.testbed.bed import Bed
    from headway.testbed.topology import Topology


def run(
    topology: Annotated[
        str, typer.Argument(metavar="TOPOLOGY", help="nsfnet, or a TOML file with switches, links and two hosts.")
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- CMD]", help="Program to run at the source. Default: your shell.", show_default=False
        ),
    ] = None,
    known: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the path's switches that netwatch reads, 0 to 1.")
    ] = 1.0,
    load: Annotated[
        float, typer.Option(min=0, max=0.95, help="UDP on each link of the path, as a share of its rate.")
    ] = 0.4,
    peer: Annotated[
        str | None,
        typer.Option(
            metavar="CMD", help="Command that runs at the destination meanwhile, by sh -c.", show_default=False
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Seed of which switches are known, and of the load's gaps.")
    ] = 1,
    json: Json = False,
) -> int:
    """Run a program in a network of Open vSwitch bridges whose counters netwatch reads.

    The destination is $HEADWAY_PEER, the path $HEADWAY_PATH, netwatch $HEADWAY_NETWATCH. The exit
    code is the program's. With --json the last line of standard output is what was set up. It needs
    root.
    """
    from headway.extras import need
    from headway.testbed import bed, wires
    from headway.testbed.play import play
    from headway.testbed.topology import load as load_topology

    network = load_topology(topology)
    for module in ("fastapi", "uvicorn", "prometheus_client", "os_ken"):
        need(module, "netwatch")
    bed.check_machine()
    program = command or [os.environ.get("SHELL") or "/bin/sh"]
    if shutil.which(program[0]) is None:
        raise UsageError(f"cannot run '{program[0]}': no such program; give one on the PATH, or its path")
    one = bed.Bed(network, known=known, load=load, seed=seed)
    report: dict[str, int] = {}
    try:
        _set_up(one, network)
        code = play(one, program, peer, lambda line: _say(f"warning: {line}"))
    finally:
        # An interruption must not leave a testbed that is half removed.
        ending.ignore()
        report = one.end()
    if unfit := wires.why_unfit(report):
        _say(f"warning: the machine was too slow or too busy for this testbed: {unfit}")
    if json:
        print(js.dumps({**one.said(), "links_carried": report, "unfit": unfit, "exit_code": code}))
    return code


def _set_up(one: "Bed", network: "Topology") -> None:
    from headway.cli.progress import progress_of

    for number in one.claim.removed:
        _say(f"removed what testbed {number} left, which was killed")
    with progress_of("setting up the testbed") as tell:
        one.set_up(tell)
    count = f"{len(network.switches)} switches, {len(network.links)} links"
    _say(f"{count}; path {' '.join(network.route)}")
    known = f"netwatch reads {len(one.known)} of {len(network.route)}: {' '.join(one.known) or 'none'}"
    _say(f"base RTT {1e3 * network.base_rtt_s:g} ms, {1e3 * one.measured_rtt_s:.1f} ms measured; {known}")


def _say(line: str) -> None:
    print(f"headway: {line}", file=sys.stderr, flush=True)
