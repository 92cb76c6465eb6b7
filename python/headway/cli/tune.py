"""`headway tune`: starts hosts and agents, and shows their status (docs/tuning.md)."""

import json as js
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from headway import ending
from headway._native import RunError
from headway.cli.paths import FOLDER, MODEL, Commands, Names
from headway.cli.usage import EPILOG, Json, console, table_of
from headway.streams import plain, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.tune.status import AgentStatus, HostStatus, Status

app = Commands(
    name="tune",
    help="Tune congestion-control parameters of many hosts by agents (docs/tuning.md).",
    epilog=EPILOG["tune"],
    no_args_is_help=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

WHERE = "tcp://127.0.0.1:5757"


class Source(StrEnum):
    """Where the flows of a host come from."""

    SOCKETS = "sockets"
    SIMULATED = "simulated"
    MADE_UP = "made-up"


Key = Annotated[
    str | None,
    Names("key pair"),
    typer.Option(
        metavar="NAME|FILE",
        help="Your own key pair (headway keys new). Default, on loopback: one for all your processes.",
    ),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Do not encrypt or authenticate; on loopback only.")]
Socket = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The control socket. Default: one by role and name in your runtime folder."),
]
Tied = Annotated[
    bool,
    typer.Option(
        "--until-stdin-closes", help="End when standard input closes, too: for a program that starts this one."
    ),
]


@app.command(epilog=EPILOG["tune host"])
def host(
    name: Annotated[str | None, typer.Option(help="The host's name. Default: the name of this machine.")] = None,
    agent: Annotated[
        str,
        typer.Option(
            metavar="URL[=KEY]",
            help="The host's agents, with commas between, each with the file of its public key.",
        ),
    ] = WHERE,
    source: Annotated[
        Source, typer.Option(help="Real sockets, simulated flows, or made-up ones.")
    ] = Source.SOCKETS,
    controller: Annotated[
        str | None,
        typer.Option(
            help="Flows of this controller are tuned. Default: headway_bbr, and bbr of simulated flows, which "
            "can also have cubic."
        ),
    ] = None,
    ports: Annotated[
        str | None, typer.Option(help="Real sockets: only flows with one of these ports at either end.")
    ] = None,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--all-namespaces", help="Real sockets: in every network namespace of this machine; needs root."
        ),
    ] = False,
    headwayd: Annotated[
        Path | None,
        typer.Option(
            envvar="HEADWAYD_SOCKET", help="headwayd's control socket. Default: /run/headway/headwayd.sock."
        ),
    ] = None,
    scenario: Annotated[str, typer.Option(help="Scenario of simulated flows.")] = "bbr-training",
    hosts: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of hosts in this process: NAME-0, NAME-1 and so on.")
    ] = 1,
    flows: Annotated[int, typer.Option(min=1, max=2048, help="Made-up flows of each host.")] = 4,
    t1: Annotated[str, typer.Option(help="Sampling period (T1).")] = "20ms",
    t2: Annotated[str, typer.Option(help="Period of reports and of new settings (T2).")] = "1s",
    restore_after: Annotated[
        str,
        typer.Option(help="After this time without a message from an agent, flows get the default windows."),
    ] = "5s",
    cutoff: Annotated[
        float,
        typer.Option(
            min=1e-3, max=1e6, help="Cut-off frequency of the low-pass filter of RTTs, Hz (section III-A)."
        ),
    ] = 5.0,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of simulated and made-up flows.")] = 1,
    key: Key = None,
    insecure: Insecure = False,
    socket: Socket = None,
    tied: Tied = False,
) -> int:
    """Watch this host's flows and apply an agent's settings, until Ctrl-C.

    Then defaults are restored.
    """
    _need()
    from headway.tune.command import HostRequest, serve_hosts

    asked = HostRequest(
        name=name,
        agents=agent,
        source=source.value,
        controller=controller,
        ports=ports,
        everywhere=everywhere,
        headwayd=headwayd,
        scenario=scenario,
        hosts=hosts,
        flows=flows,
        t1=t1,
        t2=t2,
        restore_after=restore_after,
        cutoff_hz=cutoff,
        seed=seed,
        key=key,
        insecure=insecure,
        socket=socket,
        tied=tied,
    )
    return _said(serve_hosts(asked), "the flows have their default windows again")


@app.command(epilog=EPILOG["tune agent"])
def agent(
    name: Annotated[str, typer.Option(help="The agent's name among its neighbours.")] = "agent",
    model: Annotated[
        str | None,
        MODEL,
        typer.Option(metavar="MODEL|DIR", help="Model that chooses the windows. Give --model or --fixed."),
    ] = None,
    fixed: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="Windows for all flows, without a model: rtprop_window=2s,btlbw_window=4.",
        ),
    ] = None,
    learn: Annotated[
        bool,
        typer.Option(
            "--learn", help="Go on learning in use, and share what was learned with neighbours (needs '.[train]')."
        ),
    ] = False,
    state: Annotated[
        Path | None,
        FOLDER,
        typer.Option(metavar="DIR", help="Folder of the learner's state. The next start continues from it."),
    ] = None,
    bind: Annotated[str, typer.Option(metavar="URL", help="Address that hosts and neighbours connect to.")] = WHERE,
    neighbours: Annotated[
        str | None, typer.Option(metavar="URL[=KEY],...", help="Agents to share observations with.")
    ] = None,
    share_every: Annotated[str, typer.Option(help="Period of messages to neighbours.")] = "1s",
    peers: Annotated[
        Path | None,
        FOLDER,
        typer.Option(metavar="DIR", help="Folder of public keys: only these hosts and neighbours may connect."),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**31 - 1, help="Seed of the sample that is taken if there are too many flows."),
    ] = 1,
    key: Key = None,
    insecure: Insecure = False,
    socket: Socket = None,
    tied: Tied = False,
) -> int:
    """Serve hosts: answer their flows' statistics with settings, until Ctrl-C."""
    _need()
    from headway.tune.command import AgentRequest, serve_agent

    asked = AgentRequest(
        name=name,
        model=model,
        fixed=fixed,
        learn=learn,
        state=state,
        bind=bind,
        neighbours=neighbours,
        share_every=share_every,
        peers=peers,
        seed=seed,
        key=key,
        insecure=insecure,
        socket=socket,
        tied=tied,
    )
    left = f"what it has learned is in {shown(state)}" if state else "hosts set their default windows again"
    return _said(serve_agent(asked), left)


def _said(code: int, what: str) -> int:
    """Returns the exit code.

    If a signal has ended a service, which is the usual end, says what is left behind.
    """
    if ending.is_asked():
        print(f"headway: stopped; {what}", file=sys.stderr)
    return code


@app.command(epilog=EPILOG["tune status"])
def status(
    socket: Annotated[
        Path | None, typer.Argument(metavar="SOCKET", help="A control socket. Default: all in your runtime folder.")
    ] = None,
    json: Json = False,
) -> int:
    """Show running hosts and agents: counters, hosts, flows, ages."""
    from headway.tune import control

    paths = [socket] if socket else sorted(control.folder().glob("*.sock"))
    found: list[Status] = []
    silent = 0
    for path in paths:
        try:
            found.append(cast("Status", control.ask(path)))
        except RunError as error:
            if socket:
                raise
            silent += 1
            typer.echo(f"headway: {error}", err=True)
    if json:
        print(js.dumps(found[0] if socket else found, indent=2))
    elif not paths:
        start = "start one: headway tune agent, headway tune host"
        print(f"no host or agent runs in {shown(control.folder())}; {start}")
    else:
        for one in found:
            _show(one)
    return 1 if silent else 0


def _show(one: "Status") -> None:
    screen = console()
    own: Sequence[HostStatus | AgentStatus] = one["hosts"] if one["role"] == "processes" else [one]
    for each in own:
        screen.print(f"[bold]{each['role']} {plain(each['name'])}[/bold]  {each['uptime_s']:.0f} s", soft_wrap=True)
        if each["role"] == "agent":
            screen.print(plain(f"  at {each['bind']}, policy {each['policy']}"), soft_wrap=True)
            rows = [[h["name"], "host", str(h["flows"]), f"{h['heard_s']:.1f}"] for h in each["hosts"]]
            rows += [[n["name"], "neighbour", str(n["flows"]), f"{n['heard_s']:.1f}"] for n in each["neighbours"]]
            _print_rows(("name", "role", "flows", "heard s ago"), rows)
        else:
            state = "default windows" if each["is_restored"] else "tuned"
            said = f"  agent {each['agent']}, last message {each['heard_s']:.1f} s ago; {state}"
            screen.print(plain(said), soft_wrap=True)
            rows = [
                [f["flow"], " ".join(f"{k}={v:g}" for k, v in f["settings"].items()), f"{f['rtt_ms'] or 0:.1f}"]
                for f in each["flows"]
            ]
            _print_rows(("flow", "settings", "RTT ms"), rows)
        counted = {**each["counters"], **{f"refused {k}": v for k, v in each["refused"].items()}}
        counted |= {f"rejected {k}": v for k, v in each["rejected"].items()}
        counts = ", ".join(f"{k} {v}" for k, v in sorted(counted.items()) if v)
        screen.print(f"  {plain(counts)}", soft_wrap=True)


def _print_rows(heads: tuple[str, ...], rows: list[list[str]]) -> None:
    if rows:
        table = table_of(*heads)
        for row in rows:
            table.add_row(*map(plain, row))
        console().print(table)


def _need() -> None:
    from headway.extras import need

    for module in ("zmq", "msgspec"):
        need(module, "tune")
