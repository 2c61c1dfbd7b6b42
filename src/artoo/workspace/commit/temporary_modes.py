"""Directories of a plain user that are read-only, made writable while artoo works in them.

Their modes are noted durably in `modes.json` of the record before the first is changed, so that a crash cannot
leave one open: the next start gives them back.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_durably
from artoo.workspace.commit.dirfd_ops import Location, Walker
from artoo.workspace.commit.manifest import Record, printable, text_of
from artoo.workspace.fs.stat import chmod_at

_FILE = "modes.json"
_WRITTEN = TypeAdapter(list[tuple[str, str, int]])
_WORK, _PASS = 0o700, 0o100

Modes = dict[Location, int]
"""The modes that opened directories had, and get again; a caller that gives one a mode of its own removes it."""


@contextmanager
def unlocked(record: Record, directories: Iterable[Location]) -> Generator[Modes]:
    """Have access to these directories and to all above them, and give their modes back at the end.

    Raises SandboxError, OSError.
    """
    lock_again(record)  # a process that died left them open
    wanted = _wanted(directories) if os.geteuid() != 0 else {}
    modes: Modes = {}
    try:
        for where, rights in sorted(wanted.items(), key=lambda one: one[0].depth):
            with Walker() as walker:  # a new one each time: what is above was opened just now
                now = walker.look(where)
                if now is None or not now.is_directory or now.mode & rights == rights or now.uid != os.geteuid():
                    continue
                modes[where] = now.mode
                _write(record, modes)
                chmod_at(*walker.place(where), now.mode | _WORK)
        yield modes
    finally:
        with suppress(OSError):  # `lock_again` tries once more, now or at the next start
            _lock(record, modes, {})


def _wanted(directories: Iterable[Location]) -> dict[Location, int]:
    """Return which rights are needed in which directories, those above included."""
    wanted: dict[Location, int] = {}
    for where in directories:
        wanted[where] = _WORK
        while where.relative and where.above not in wanted:
            where = where.above
            wanted[where] = _PASS
    return wanted


def lock_again(record: Record, given: Mapping[Location, int] | None = None) -> None:
    """Give back the modes that a process that died could not; directories with a `given` mode get that."""
    if modes := _read(record):
        _lock(record, modes, given or {})


def _lock(record: Record, modes: Mapping[Location, int], given: Mapping[Location, int]) -> None:
    for where, mode in sorted(modes.items(), key=lambda one: -one[0].depth):
        with suppress(PermissionError), Walker() as walker:  # in one that was closed for everybody meanwhile
            now = walker.look(where)
            if now is not None and now.is_directory and now.mode == mode | _WORK:
                chmod_at(*walker.place(where), given.get(where, mode))
    with suppress(FileNotFoundError):
        (record.place / _FILE).unlink()


def _read(record: Record) -> Modes:
    path = record.place / _FILE
    try:
        written = _WRITTEN.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        raise SandboxError(f"{path} cannot be read; keep it and report this") from error
    return {Location(text_of(root), text_of(relative)): mode for root, relative, mode in written}


def _write(record: Record, modes: Modes) -> None:
    written = [(printable(where.root), printable(where.relative), mode) for where, mode in modes.items()]
    write_durably(record.place / _FILE, _WRITTEN.dump_json(written))
