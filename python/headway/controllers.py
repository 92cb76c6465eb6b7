"""Controllers that are Python classes.

`--schemes python:FILE` loads them (docs/python-controllers.md).
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

from headway._native import UsageError

SCHEME = "python:"
"""The start of such a scheme's name."""
OURS = "headway_controller_"
"""The start of a loaded file's module name, before the hash of the file."""
METHODS = ("on_feedback", "on_rto", "on_idle", "on_timer")
"""The methods of a controller that Headway calls."""
ALIKE = 0.8
"""A name that is this similar to one of them is a misspelling: `on_rt0` is, `on_timeout` is not."""


@dataclass(frozen=True)
class Loaded:
    """A controller's class, and its file."""

    controller: type[Any]
    file: str
    """The file as it was given."""
    sha256: str
    """SHA-256 of the file that was run."""

    @property
    def id(self) -> str:
        """The class, the file's name, and 12 digits of the hash of its content."""
        return f"{Path(self.file).name}:{self.controller.__name__}-{self.sha256[:12]}"


@cache
def load(text: str) -> Loaded:
    """The controller that `FILE` or `FILE:Class` names.

    A file is read once: `load.cache_clear()` forgets it.

    Raises:
        UsageError: No such file or class, or an error of its code: one line with the file, line and
            exception.
    """
    file, name = text, ""
    # A class name has no dot and no slash.
    if ":" in text and text.rpartition(":")[2].isidentifier():
        file, _, name = text.rpartition(":")
    if not file:
        raise UsageError(f"{SCHEME}{text}: names no file; give a Python file, or FILE:Class")
    try:
        source = Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; give a Python file, or FILE:Class") from None
    digest = hashlib.sha256(source).hexdigest()
    return Loaded(_class_of(file, name, _run(file, source, f"{OURS}{digest[:12]}")), file, digest)


def _run(file: str, source: bytes, name: str) -> ModuleType:
    """Runs the file and returns its module.

    Modules that it imports are also searched for in its folder.
    """
    module = ModuleType(name)
    module.__file__ = file
    folder = Path(file).resolve().parent
    before = set(sys.modules)
    sys.modules[name] = module
    sys.path.insert(0, str(folder))
    try:
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise UsageError(error_line(error)) from None
    finally:
        del sys.path[0]
        # Files of the same name in different folders are different modules.
        for helper in [one for one in sys.modules if one not in before and one != name]:
            if _is_in(sys.modules[helper], folder):
                del sys.modules[helper]
    return module


def _is_in(module: ModuleType, folder: Path) -> bool:
    origin = getattr(module, "__file__", None)
    return origin is not None and Path(origin).resolve().is_relative_to(folder)


def _class_of(file: str, name: str, module: ModuleType) -> type[Any]:
    own = {key: value for key, value in vars(module).items() if isinstance(value, type)}
    written = {key: value for key, value in own.items() if value.__module__ == module.__name__}
    found = {key: value for key, value in written.items() if callable(getattr(value, "on_feedback", None))}
    for key, value in (found or written).items():
        if name in ("", key):
            _refuse_misspelled(file, key, value)
    if name in found:
        return _takes_setup(file, found[name])
    if name:
        why = "does not exist"
        if name in own:
            is_own = own[name].__module__ == module.__name__
            why = "has no on_feedback" if is_own else "is imported there; give the file that defines it"
        has = f"the file has {', '.join(found)}" if found else "write a class with on_feedback(self, feedback)"
        raise UsageError(f"{file}: class {name} {why}; {has}")
    if len(found) != 1:
        choice = f"has several controllers; give {file}:CLASS, with one of {', '.join(found)}"
        raise UsageError(f"{file}: {choice if found else 'has no class with on_feedback(self, feedback)'}")
    return _takes_setup(file, next(iter(found.values())))


def _refuse_misspelled(file: str, name: str, controller: type[Any]) -> None:
    """Raises UsageError if the class has a method whose name is nearly one of `METHODS`.

    It would never be called, and the results would be those of a class without it.
    """
    for method, value in vars(controller).items():
        like = get_close_matches(method, METHODS, n=1, cutoff=ALIKE) if method.startswith("on_") else []
        if callable(value) and like and not hasattr(controller, like[0]):
            raise UsageError(f"{file}: Headway never calls {name}.{method}; did you mean {like[0]}?")


def _takes_setup(file: str, controller: type[Any]) -> type[Any]:
    """Returns the class. Raises UsageError if a flow cannot construct it."""
    try:
        signature(controller).bind(None)
    except TypeError:
        cure = "write def __init__(self, setup)"
        raise UsageError(f"{file}: class {controller.__name__} does not take setup; {cure}") from None
    except ValueError:
        # A class that is not written in Python has no signature.
        pass
    return controller


def error_line(error: BaseException) -> str:
    """Returns an error in one line.

    It has the file and line of the user's code that raised it, and the exception.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    what = " ".join(f"{type(error).__name__}: {error}".split())
    frames = [
        f"{frame.f_code.co_filename}:{line}: in {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").startswith(OURS)
    ]
    return f"{frames[-1]}: {what}" if frames else what
