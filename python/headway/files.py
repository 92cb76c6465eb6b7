"""Writes files that are either there whole or not at all, and locks folders for one process."""

import errno
import fcntl
import os
import re
import select
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import IO, Any

from headway._native import RunError, UsageError

STDOUT = Path("/dev/stdout")
MAX_SPOOLED = 1 << 30
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_IN_PLACE = {errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS}
"""Errors that prevent replacing a file that can be written: it is mounted, or its folder is
closed."""


def write_atomic(path: Path, content: bytes | str, mode: int = 0o666) -> None:
    """Writes `path` as `write_parts` does."""
    write_parts(path, [content], mode)


def write_parts(path: Path, parts: Iterable[bytes | str], mode: int = 0o666) -> None:
    """Writes a file that readers never see half written, not even after a crash.

    It writes a temporary file in the same folder, and renames it. A file that exists keeps its mode
    and owner. A new one gets `mode` with the umask applied. A symbolic link stays, and its target
    is replaced. A device, a pipe or an open stream is written into, because nothing could replace
    it. So is a file that is mounted by itself, or whose folder cannot be written. Of several hard
    links only this name gets the new contents.

    Raises:
        RunError: It cannot be written.
        BrokenPipeError: The reader of a pipe has left.
    """
    blocks = (part.encode(errors="backslashreplace") if isinstance(part, str) else part for part in parts)
    try:
        if (number := descriptor_of(path)) is not None:
            # Earlier output comes first.
            sys.stdout.flush()
            _write_all(number, blocks)
        elif replaceable(path):
            _replace(Path(os.path.realpath(path)), blocks, mode)
        else:
            with path.open("ab", buffering=0) as stream:
                _write_all(stream.fileno(), blocks)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; not written") from None


def _write_all(number: int, blocks: Iterable[bytes]) -> None:
    """Writes all of the parts to the descriptor, and waits while a pipe is full."""
    for block in blocks:
        left = memoryview(block)
        while left:
            try:
                left = left[os.write(number, left) :]
            except BlockingIOError:
                select.select([], [number], [])


def unfinished(path: Path, end: object) -> Path:
    """Returns a hidden name next to `path` for a file that is not complete yet.

    A long name is shortened.
    """
    # 60 characters are at most 240 bytes, and a name may have 255.
    return path.with_name(f".{path.name[:60]}.{end}")


def _replace(target: Path, blocks: Iterable[bytes], mode: int) -> None:
    """Replaces `target` by a new file. If that is impossible, writes into it."""
    if target.is_symlink():
        raise OSError(errno.ELOOP, "the link leads to itself")
    temporary = unfinished(target, os.getpid())
    try:
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.writelines(blocks)
            file.flush()
            # A power loss leaves the old file or the new.
            os.fsync(file.fileno())
        if target.exists():
            before = target.stat()
            # Only root may give a file away, and some file systems have no owners.
            with suppress(OSError):
                os.chown(temporary, before.st_uid, before.st_gid)
            temporary.chmod(stat.S_IMODE(before.st_mode))
        temporary.replace(target)
    except OSError as error:
        if error.errno not in _IN_PLACE or not target.is_file():
            raise
        with target.open("r+b") as file:
            if temporary.exists():
                with temporary.open("rb") as written:
                    shutil.copyfileobj(written, file)
            else:
                file.writelines(blocks)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
    finally:
        with suppress(OSError):
            temporary.unlink()


def descriptor_of(path: Path) -> int | None:
    """Returns the open descriptor of this process that is meant, by itself or by a link.

    None for any other file. If it were opened again, it would be written from its beginning, over
    what others have put there.
    """
    for _ in range(40):
        name = os.path.abspath(path)
        if name in _STREAMS:
            return _STREAMS[name]
        if found := re.fullmatch(rf"/(?:dev|proc/(?:self|thread-self|{os.getpid()}))/fd/(\d+)", name):
            return int(found[1])
        if not os.path.islink(path):
            return None
        path = Path(os.path.dirname(name), os.readlink(path))
    return None


def replaceable(path: Path) -> bool:
    """Is `path` a regular file, or nothing yet? False for devices, pipes and open streams."""
    return descriptor_of(path) is None and (path.is_file() or not path.exists())


def given(path: Path) -> Path:
    """Returns the file that is meant: `-` is standard output."""
    return STDOUT if str(path) == "-" else path


def not_over(path: Path, inputs: Iterable[Path], option: str) -> None:
    """Raises UsageError if the output file `path` is one of the input files."""
    for one in inputs:
        if one.exists() and path.exists() and one.samefile(path):
            raise UsageError(f"{option} {path}: is an input too, and would be lost; give another file")


def make_parent(path: Path, option: str) -> None:
    """Makes the folder of the output file `path`. Raises UsageError as `make_folder`."""
    if replaceable(path):
        make_folder(Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent, option)


def make_folder(path: Path, option: str) -> Path:
    """Makes the folder that `option` names, with its parents.

    Raises UsageError if it cannot be written.
    """
    try:
        make_path(path)
    except (FileExistsError, NotADirectoryError):
        what = "a link that leads nowhere" if path.is_symlink() else "a file"
        raise UsageError(f"{option} {path}: {what} exists and is not a folder; give a folder") from None
    except OSError:
        raise UsageError(f"{option} {path}: cannot be made; give a folder that can be written") from None
    # Capabilities count here as they do when the process writes.
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise UsageError(f"{option} {path}: not writable; give a folder that can be written")
    return path


_made: list[Path] = []
"""Folders that this process has made, and may remove while they are empty."""


def make_path(path: Path, mode: int = 0o777) -> None:
    """Makes a folder with its parents, as `Path.mkdir`; `remove_empty` takes it away again."""
    _made.extend(one.absolute() for one in (path, *path.parents) if not os.path.lexists(one))
    path.mkdir(mode, parents=True, exist_ok=True)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Gives a descriptor of the folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def remove_empty() -> None:
    """Removes the folders that were made here and are empty, as after a refusal.

    It leaves a folder that another process has locked.
    """
    # A folder's contents go before it.
    for folder in sorted(_made, key=lambda folder: len(folder.parts), reverse=True):
        with suppress(OSError), _opened(folder) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder.rmdir()
    _made.clear()


def is_at(descriptor: int, path: Path) -> bool:
    """Is the opened file still there? Another process may have removed it."""
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())


def new_folder(parent: Path) -> Path:
    """Makes a new folder that no one else has, named by the time.

    Raises UsageError if it cannot be written.
    """
    make_folder(parent, "the working folder's")
    name = time.strftime("%Y%m%d-%H%M%S")
    for number in count(1):
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"{folder}: {error.strerror}; give --out a folder that can be written") from None
        _made.append(folder.absolute())
        return folder
    raise AssertionError


def lock(file: IO[Any] | int, folder: Path, option: str = "--out") -> None:
    """Locks the folder for this process until `file` is closed.

    Args:
        file: An open file in the folder, or a descriptor of the folder.
        folder: Where it is, for the message.
        option: The option that names the folder, for the message.

    Raises:
        UsageError: Another process has it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{option} {folder}: another headway command is at work there; give another folder"
        ) from None
    except OSError as error:
        # Some network file systems keep no locks, or none of a folder.
        print(
            f"headway: warning: {option} {folder}: cannot be locked ({error.strerror}); "
            "make sure that no other command writes there",
            file=sys.stderr,
        )


@contextmanager
def in_utf8(path: Path | str) -> Iterator[str]:
    """Gives the file or folder under a name in UTF-8, because our native module takes no other.

    A name with other bytes is reached through an open file descriptor of its folder.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        pass
    else:
        yield str(path)
        return
    given = Path(path)
    is_utf8 = given.name.encode(errors="replace") == os.fsencode(given.name)
    flags = os.O_PATH | os.O_CLOEXEC
    descriptor = os.open(given.parent if is_utf8 else given, flags)
    try:
        place = f"/proc/{os.getpid()}/fd/{descriptor}"
        yield f"{place}/{given.name}" if is_utf8 else place
    finally:
        os.close(descriptor)


def called(path: str) -> str:
    """Returns the name of a given file for a message: `-` is standard input."""
    return "standard input" if path in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0") else path


def is_stream(path: str) -> bool:
    """Is it `-`, a pipe or a device, which can be read only once?"""
    is_file = os.path.isfile(path) or os.path.isdir(path)
    return path == "-" or (os.path.exists(path) and not is_file)


@cache
def _spool_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="headway-")


@cache
def spooled(path: str) -> str:
    """Gives a regular file with the contents of `path`.

    It is the file itself, or a copy of a pipe, which can be read only once. `-` is standard input.
    Raises UsageError if it cannot be read.
    """
    name, path = called(path), "/dev/stdin" if path == "-" else path
    if os.path.isfile(path):
        return path
    copy = Path(_spool_folder().name) / str(len(list(Path(_spool_folder().name).iterdir())))
    try:
        with Path(path).open("rb") as stream, copy.open("wb") as file:
            # Some devices have no end.
            left = MAX_SPOOLED
            while block := stream.read(min(left, 1 << 20)):
                left -= file.write(block)
        if left == 0:
            raise OSError(errno.EFBIG, "it has 1 GiB or more")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}; give a file or a pipe with a trace") from None
    _given_as[str(copy)] = name
    return str(copy)


_given_as: dict[str, str] = {}
"""The path that was given for each copy that `spooled` has made."""


@contextmanager
def by_given_names() -> Iterator[None]:
    """An error inside about the copy of a pipe names the pipe instead."""
    try:
        yield
    except (UsageError, RunError) as error:
        said = str(error)
        # The longest comes first: the name of one copy may be the start of another's.
        for copy in sorted(_given_as, key=len, reverse=True):
            said = said.replace(copy, _given_as[copy])
        raise type(error)(said) from None


@contextmanager
def alone_in(folder: Path, option: str = "--out", *, named: Path | None = None) -> Iterator[int]:
    """Locks the folder for this process inside, and gives its descriptor.

    It is made if it does not exist. Raises UsageError if another process has it. The error names
    `named` or else the folder.
    """
    while True:
        make_folder(folder, option)
        with _opened(folder) as descriptor:
            lock(descriptor, named or folder, option)
            # Its previous owner may have removed it since it was opened.
            if is_at(descriptor, folder):
                yield descriptor
                return


@contextmanager
def alone_making(path: Path, command: str, option: str = "--out") -> Iterator[None]:
    """Locks as `alone_in` does, for a file or folder that is made whole or not at all.

    It locks an empty folder next to it.
    """
    whole = path.absolute()
    marker = unfinished(whole, command)
    with alone_in(marker, option, named=path):
        try:
            yield
        finally:
            with suppress(OSError):
                marker.rmdir()


def put_between(text: str, begin: str, block: str, path: Path) -> str:
    """Returns the page with `block` between the line `begin` and the next `<!-- end -->`.

    Nothing else is changed.

    Args:
        text: The page.
        begin: A marker that stands there once.
        block: The measured text, ending in a newline.
        path: Where the page is, for the message.

    Raises:
        UsageError: The markers are missing.
    """
    before, found, rest = text.partition(f"{begin}\n")
    _, closed, after = rest.partition("<!-- end -->")
    if not (found and closed):
        raise UsageError(f"{path}: '{begin}' followed by '<!-- end -->' is missing; the figures go between them")
    # The empty lines keep a comment from swallowing the table's first line.
    return f"{before}{begin}\n\n{block}\n<!-- end -->{after}"


def home(variable: str) -> Path:
    """Returns the user's home folder.

    Raises UsageError if there is none; `variable` may be set instead.
    """
    try:
        return Path.home()
    except RuntimeError:
        raise UsageError(f"HOME is not set, and this user has no home folder; set HOME or {variable}") from None
