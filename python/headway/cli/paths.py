"""Options and arguments that name files and folders.

An empty name, and a stream for a folder, are refused.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from headway._native import UsageError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Names:
    """Marks a parameter with the kind of path that it names. A `Path` without this names a file."""

    what: str


FOLDER = Names("folder")
MODEL = Names("model")
FILE = Names("file")


class _Command(TyperCommand):
    """A command that refuses paths that no file or folder can have."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # The text is checked as it was typed: Typer makes the working folder of an empty path.
        typed, *_ = self.make_parser(ctx).parse_args(list(args))
        left = super().parse_args(ctx, args)
        named = _named(self.callback)
        for parameter in self.get_params(ctx):
            names, text = named.get(parameter.name), typed.get(parameter.name)
            usual = parameter.metavar or parameter.name.upper()
            label = next((one for one in parameter.opts if one.startswith("--")), usual)
            if names and text == "":
                raise UsageError(f"{label}: an empty path; name a {names.what}")
            # A typed ./- is a folder. Of a variable only the parsed path is known.
            is_typed = isinstance(text, str)
            if names is FOLDER and str(text if is_typed else ctx.params.get(parameter.name)) == "-":
                raise UsageError(f"{label} -: a stream cannot hold files; name a folder")
        return left


def _named(command: Any) -> dict[str, Names]:
    """Returns the kind of path that each parameter of a command names."""
    found = {}
    for name, hint in get_type_hints(inspect.unwrap(command), include_extras=True).items():
        kind, *more = get_args(hint) if get_origin(hint) else (hint,)
        if Path in (kind, *get_args(kind)):
            found[name] = FILE
        for one in more:
            if isinstance(one, Names):
                found[name] = one
    return found


class Commands(typer.Typer):
    """Typer whose commands refuse such names."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        """Works as Typer's own."""
        return super().command(name, cls=_Command, **options)
