"""`headway models`: lists, shows, checks and exchanges trained models."""

import json as js
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway._native import UsageError
from headway.cli.paths import FOLDER, MODEL, Commands
from headway.cli.usage import EPILOG, Json, console, table_of
from headway.streams import plain, report_stream, results_in, shown

if TYPE_CHECKING:
    from headway.models import Model
    from headway.models.learner import Learner

app = Commands(
    help="List, show and check trained models; export and import them as ONNX.",
    epilog=EPILOG["models"],
    invoke_without_command=True,
)

Which = Annotated[
    str, MODEL, typer.Argument(metavar="NAME|DIR", help="A model that comes with Headway, or a folder.")
]


@app.callback()
def listing(context: typer.Context, json: Json = False) -> None:
    """Trained models. Alone, lists those that come with Headway."""
    if context.invoked_subcommand is not None:
        return
    from headway.lists import about_models

    found = about_models()
    if json:
        print(js.dumps(found, indent=2))
        return
    table = table_of("model", "network", "parameters", "size", "trained on", "what it is")
    for row in found:
        size = f"{row['bytes'] / 1000:.0f} kB"
        trained = row["paths"] or ", ".join(row["trained_on"]) or "unknown"
        net = row["net"] or "learner"
        table.add_row(row["name"], net, str(row["parameters"]), size, trained, row["description"])
    show = console()
    show.print(table if found else "no model comes with this Headway")
    show.print(
        "[dim]Any folder runs as scheme learned:model=DIR, a learner's as rax-pretrained:model=DIR. "
        "headway models show NAME says where a model is from.[/dim]"
    )


@app.command(epilog=EPILOG["models show"])
def show(name: Which, json: Json = False) -> None:
    """Show a model's card: what it sees and does, how it was trained, what was measured."""
    from headway.models import CARD, load
    from headway.models.learner import load_learner

    learner = load_learner(name)
    if learner is not None:
        if json:
            print(js.dumps({"id": learner.id, "place": learner.place, **learner.card}, indent=2))
            return
        screen = console()
        screen.print(f"[bold]{plain(learner.id)}[/bold]", soft_wrap=True)
        about = f"{learner.parameters} parameters, {learner.updates} gradients, {learner.size / 1000:.0f} kB in all"
        for fact, text in {"place": learner.place, "learner": about, **_paths(learner)}.items():
            screen.print(f"  {fact:<8} {plain(text)}", soft_wrap=True)
        print()
        print(learner.files[CARD].decode(), end="")
        return
    model = load(name)
    if json:
        print(js.dumps({"id": model.id, "place": model.place, **model.card}, indent=2))
        return
    screen = console()
    screen.print(f"[bold]{plain(model.id)}[/bold]", soft_wrap=True)
    facts = {
        "place": model.place,
        "network": f"{model.net}, {model.parameters} parameters, {model.size / 1000:.0f} kB in all",
        "checked": f"{model.golden_rows} golden outputs, largest difference {model.golden_error:.1e}",
        **_paths(model),
    }
    for fact, text in facts.items():
        screen.print(f"  {fact:<8} {plain(text)}", soft_wrap=True)
    print()
    print(_readable(model.files[CARD].decode()), end="")


def _readable(card: str) -> str:
    """Returns a card's TOML with the training's configuration line by line.

    It is one long line in the file.
    """

    def in_lines(line: re.Match[str]) -> str:
        config = str(tomllib.loads(line[0])["config"])
        can_be_shown = config.replace("\n", "").isprintable() and "'''" not in config
        return f"config = '''\n{config}'''" if can_be_shown else line[0]

    return re.sub(r'^config = ".*"$', in_lines, card, flags=re.MULTILINE)


def _paths(model: "Model | Learner") -> dict[str, str]:
    """Returns the paths that a model was trained on, if its card has them."""
    from headway.trained_range import described

    bounds = model.card["training"].get("range")
    return {"paths": described(bounds)} if bounds else {}


@app.command(epilog=EPILOG["models check"])
def check(name: Which, json: Json = False) -> None:
    """Check a model as it is checked before it runs: hashes, shapes, numbers, golden outputs."""
    from headway.models import load
    from headway.models.learner import load_learner

    learner = load_learner(name)
    if learner is not None:
        facts = {key: getattr(learner, key) for key in ("id", "parameters", "updates")}
        print(js.dumps(facts, indent=2) if json else f"{learner.id}: sound; {learner.updates} gradients applied")
        return
    model = load(name)
    if json:
        kept = ("id", "parameters", "golden_rows", "golden_error")
        print(js.dumps({key: getattr(model, key) for key in kept}, indent=2))
        return
    print(f"{model.id}: sound; {model.golden_rows} golden outputs, largest difference {model.golden_error:.1e}")


@app.command(epilog=EPILOG["models export"])
def export(
    name: Which,
    onnx: Annotated[Path, typer.Option(help="The .onnx file to write; - is standard output.", show_default=False)],
    json: Json = False,
) -> None:
    """Export a model as an ONNX graph, whose outputs are compared with the golden ones first."""
    from headway.files import given, not_over, write_atomic
    from headway.models import CARD, GOLDEN, WEIGHTS, load
    from headway.models.learner import load_learner
    from headway.models.to_onnx import export as to_onnx

    if load_learner(name) is not None:
        raise UsageError(f"models export: {name} is a learner and cannot be exported; give a model")
    if onnx.is_dir() or not onnx.parent.is_dir():
        raise UsageError(f"models export: --onnx {onnx}: give a file in an existing folder, such as model.onnx")
    model = load(name)
    path = given(onnx)
    # A model that comes with Headway has no folder on disk.
    not_over(path, [Path(model.place, file) for file in (CARD, WEIGHTS, GOLDEN)], "--onnx")
    content, error = to_onnx(model)
    write_atomic(path, content)
    results_in(path, "the graph is")
    said = f"{shown(path)}: {model.id}; largest difference of an output {error:.1e}"
    found = {"path": str(path), "id": model.id, "golden_error": error}
    print(js.dumps(found, indent=2) if json else said, file=report_stream(path))


@app.command("import", epilog=EPILOG["models import"])
def import_(
    onnx: Annotated[Path, typer.Option(help="The .onnx file; - is standard input.", show_default=False)],
    card: Annotated[
        Path, typer.Option(help="Its card: name, version, agent; - is standard input.", show_default=False)
    ],
    out: Annotated[Path, FOLDER, typer.Option(help="The folder to write. It must not exist.", show_default=False)],
    output: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The output that is the action. Default: the one with 'action' in its name, or the first.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a model folder of an ONNX graph: dense layers, GRU and LSTM (docs/models.md)."""
    from headway.models.from_onnx import import_ as from_onnx

    found = from_onnx(onnx, card, out, output)
    results_in(out, "the model is")
    print(js.dumps({"folder": str(out), "id": found}, indent=2) if json else f"{shown(out)}: {found}")
