"""`headway netwatch`: what switches count becomes the state of paths (docs/netwatch.md)."""

import json as js
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway._native import RunError, UsageError
from headway.cli.paths import Commands
from headway.cli.usage import EPILOG, Json, Seed, console, table_of
from headway.streams import is_animated, plain
from headway.text import seconds

if TYPE_CHECKING:
    from rich.table import Table

    from headway.netwatch.client import Client
    from headway.netwatch.watch import Snapshot

app = Commands(
    name="netwatch",
    help="Measure congestion and availability of paths by switches' counters (docs/netwatch.md).",
    epilog=EPILOG["netwatch"],
    no_args_is_help=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

BIND = "127.0.0.1:8633"
Tokens = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Digests of the tokens of the clients that may ask. Default: everybody on loopback."
    ),
]


@app.command(epilog=EPILOG["netwatch run"])
def run(
    topology: Annotated[
        Path | None, typer.Argument(metavar="TOPOLOGY", help="A TOML file: switches, links, paths.")
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(metavar="SCENARIO", help="A scenario in simulated time, in place of a topology file."),
    ] = None,
    scheme: Annotated[str, typer.Option(help="Controller of the simulated flows.")] = "cubic",
    seed: Seed = 1,
    length: Annotated[
        float | None,
        typer.Option(
            "--seconds", min=0.1, max=1e6, help="Length of the simulation, s. Default: the scenario's own."
        ),
    ] = None,
    speed: Annotated[float, typer.Option(min=0.01, max=1000, help="Simulated seconds per real second.")] = 1.0,
    bind: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of the API.")] = BIND,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="File of certificates, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="File of their key, PEM.")] = None,
    tokens: Tokens = None,
    rate: Annotated[
        float, typer.Option(min=0, max=1e6, help="Limit of requests a second for each client; 0 is no limit.")
    ] = 50.0,
    period: Annotated[str | None, typer.Option(help="Period of readings. Default: the file's, or 1s.")] = None,
    stale_after: Annotated[
        str | None,
        typer.Option(help="Age from which counters count as unknown. Default: the file's, or three periods."),
    ] = None,
    tied: Annotated[
        bool,
        typer.Option(
            "--until-stdin-closes", help="End when standard input closes, too: for a program that starts this one."
        ),
    ] = False,
) -> int:
    """Read switches and serve what is known of paths, until Ctrl-C."""
    from headway.extras import need

    for module in ("fastapi", "uvicorn", "prometheus_client"):
        need(module, "netwatch")
    from headway.netwatch import server
    from headway.netwatch.sources import real, simulated
    from headway.netwatch.tokens import Tokens

    if (topology is None) == (simulate is None):
        raise UsageError("netwatch run: give one of a topology's file and --simulate owl-nsfnet:known=4")
    known = Tokens(tokens) if tokens else None
    server.checked(bind, tls_cert, tls_key, known)
    period_s = seconds(period, "--period") if period else None
    stale_s = seconds(stale_after, "--stale-after") if stale_after else None
    if simulate is not None:
        watched = simulated(
            simulate,
            scheme,
            seed=seed,
            seconds=length,
            speed=speed,
            period_s=period_s,
            stale_after_s=stale_s,
        )
    else:
        assert topology is not None
        watched = real(topology, period_s=period_s, stale_after_s=stale_s)
    return server.run(*watched, bind=bind, cert=tls_cert, key=tls_key, tokens=known, rate=rate, tied=tied)


@app.command(epilog=EPILOG["netwatch status"])
def status(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of a netwatch.")] = f"http://{BIND}",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="HEADWAY_NETWATCH_TOKEN",
            help="Your token. The environment hides it from other users, this option does not.",
        ),
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificates to trust. Default: the system's.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Print every snapshot until Ctrl-C.")] = False,
    json: Json = False,
) -> int:
    """Show the paths and switches of a running netwatch.

    The exit code is 1 if its health is not ok.
    """
    from headway.netwatch.client import Client

    client = Client(url, token=token, ca=ca)
    if watch:
        _follow(client, json)
        return 0
    health, paths, switches = client.health(), client.paths(), client.switches()
    if json:
        said = {"health": asdict(health), **asdict(paths), "switches": [asdict(switch) for switch in switches]}
        print(js.dumps(said, indent=2))
    else:
        screen = console()
        screen.print(plain(f"{url}: {health.status}, {health.uptime_s:.0f} s"), soft_wrap=True)
        for source in health.sources:
            why = f": {source.last_failure}" if source.last_failure else ""
            line = f"  {source.name} {source.state}, failed {source.failures} times{why}"
            screen.print(plain(line), soft_wrap=True)
        screen.print(_table(paths))
        table = table_of("switch", "state", "age s", "counted")
        for switch in switches:
            state = f"{switch.state}: {switch.why}" if switch.why else switch.state
            counted = ", ".join(f"{what} {count}" for what, count in switch.counted.items())
            table.add_row(plain(switch.name), plain(state), _number(switch.age_s, 1), plain(counted))
        screen.print(table)
    return 0 if health.status == "ok" else 1


def _follow(client: "Client", json: bool) -> None:
    # The stream would wait for a missing netwatch, so ask for its health first: that fails at once.
    client.health()
    if json:
        for snapshot in client.stream():
            print(js.dumps(asdict(snapshot)), flush=True)
        return
    from rich.live import Live

    screen = console()
    if not is_animated(screen):
        for snapshot in client.stream():
            screen.print(_table(snapshot))
        return
    with Live(console=screen, auto_refresh=False) as live:
        for snapshot in client.stream():
            live.update(_table(snapshot), refresh=True)


def _table(snapshot: "Snapshot") -> "Table":
    table = table_of("path", "PNC packets/s", "PNA", "known %", "age s", "not used")
    for path in snapshot.paths:
        unused = ", ".join(f"{switch.name} ({switch.why})" for switch in path.switches if not switch.used)
        table.add_row(
            plain(path.name),
            _number(path.pnc if path.known else None, 1),
            _number(path.pna if path.known else None, 3),
            f"{100 * path.known:.0f}",
            _number(path.age_s, 1),
            plain(unused),
        )
    return table


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


@app.command(epilog=EPILOG["netwatch token"])
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the client that gets the token.")],
    tokens: Annotated[Path, typer.Option(metavar="FILE", help="File that gets the token's digest.")] = Path(
        "tokens"
    ),
    json: Json = False,
) -> None:
    """Make a token: it is printed once, the file keeps its digest."""
    from headway.netwatch.tokens import new

    made = new(name, tokens)
    said = {"name": name, "token": made, "tokens": str(tokens)}
    try:
        print(js.dumps(said, indent=2) if json else made, flush=True)
    except OSError as error:
        line = f"take the line of '{name}' out of {tokens}, and make another token"
        raise RunError(f"standard output: {error.strerror}, and nobody has the token; {line}") from None
    if json:
        return
    typer.echo(f"{tokens}: knows its digest; nobody can show the token again", err=True)
