"""`headway keys`: key pairs of hosts and agents."""

import json as js
from pathlib import Path
from typing import Annotated

import typer

from headway._native import UsageError
from headway.cli.paths import FOLDER, Commands
from headway.cli.usage import EPILOG, Json, console, table_of
from headway.streams import plain, quoted, results_in, shown

app = Commands(
    name="keys",
    help="CURVE keys of hosts and agents: make and list them (docs/tuning.md).",
    epilog=EPILOG["keys"],
    no_args_is_help=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[
    Path | None,
    FOLDER,
    typer.Option(
        "--out", envvar="HEADWAY_KEYS", help="The keys' folder. Default: headway/keys in your configuration folder."
    ),
]


@app.command(epilog=EPILOG["keys new"])
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The host or agent that the key is for.")],
    out: Folder = None,
    json: Json = False,
) -> None:
    """Make a key pair: NAME.key to give away, NAME.key_secret to keep."""
    from headway.extras import need

    need("zmq", "tune")
    from headway.tune import keys

    public, secret = keys.new(name, out or keys.folder())
    results_in(secret.parent, "the keys are")
    if json:
        found = keys.read(public).public.decode()
        print(js.dumps({"name": name, "public": str(public), "secret": str(secret), "key": found}, indent=2))
        return
    print(f"{shown(secret)}: keep it on this machine, readable by you only (mode 600)")
    print(f"{shown(public)}: copy it to each machine that talks to {name}:")
    print(f"  of a host, into the agent's folder of peers:  headway tune agent --peers DIR (holding {public.name})")
    print(f"  of an agent, to its hosts and neighbours:     headway tune host --agent URL={public.name}")


@app.command(epilog=EPILOG["keys show"])
def show(out: Folder = None, json: Json = False) -> None:
    """Show the keys of a folder: names, public halves, and which are yours."""
    from headway.extras import need

    need("zmq", "tune")
    from headway.tune import keys

    place = out or keys.folder()
    if out is not None and not out.is_dir():
        raise UsageError(f"--out {out}: no such folder; make a key: headway keys new NAME --out {quoted(out)}")
    found = keys.listed(place)
    if json:
        rows = [{"name": k.name, "key": k.public.decode(), "has_secret": k.secret is not None} for k in found]
        print(js.dumps(rows, indent=2))
        return
    if not found:
        print(f"{shown(place)}: no key; make one: headway keys new NAME")
        return
    table = table_of("name", "public key", "secret half")
    for key in found:
        table.add_row(plain(key.name), key.public.decode(), "here" if key.secret else "")
    console().print(table)
