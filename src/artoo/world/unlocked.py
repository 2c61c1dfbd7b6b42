"""Directories of the person's whose own modes keep artoo from an act or an undo, opened while that lasts.

UNDO/TASK/ACT/opened    a JSON list of them with the modes that they have again, durable before the first is opened
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.changes import printable_path
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_durably
from artoo.world.files import parent_of, set_mode
from artoo.world.journal import Record, Step
from artoo.world.move import now_at
from artoo.world.nodes import NodeState

_OPENED = "opened"


class Located(Protocol):
    """Something at a path: a step, a move."""

    @property
    def root(self) -> str: ...

    @property
    def relative(self) -> str: ...


class _Place(NamedTuple):
    root: str
    relative: str


Modes = dict[tuple[str, str], int]
"""By root and path below it, printable."""

_WRITTEN = TypeAdapter(list[tuple[str, str, int]])


def directories_above(places: Iterable[Located]) -> set[tuple[str, str]]:
    """All directories above the paths of steps or moves; a root itself is the empty path."""
    found: set[tuple[str, str]] = set()
    for place in places:
        relative = place.relative
        while relative:
            relative = relative.rpartition("/")[0]
            if (place.root, relative) in found:
                break
            found.add((place.root, relative))
    return found


def is_locked(now: NodeState | None) -> bool:
    """Whether this is a directory of ours whose own mode keeps us from changing what is in it."""
    if now is None or not now.is_directory or os.geteuid() == 0:
        return False
    return now.mode & 0o300 != 0o300 and now.uid == os.geteuid()


def unlock(directories: Iterable[tuple[str, str]]) -> None:
    """Opens those that are locked, outermost first."""
    for root, relative in sorted(directories) if os.geteuid() != 0 else ():
        now = now_at(root, relative)
        if now is not None and is_locked(now):
            _set(root, relative, now.mode | 0o700)


@contextmanager
def unlocked(record: Record, steps: Iterable[Step], *, lenders: bool = False) -> Generator[Modes]:
    """Access to everything above the steps of an act, and to the `lenders`, where a view's own files lie.

    Gives the modes that directories had before: at the end they have them again, if they are as opened. Whoever
    gives one of them its mode meanwhile takes it out (`keep_given`). Raises SandboxError, OSError.
    """
    modes = _read(record)  # of a process that died: what is open now was not
    listed = list(steps)
    places = directories_above([*listed, *(_lenders(record, listed) if lenders else ())])
    opened: set[tuple[str, str]] = set()
    while fresh := _locked(places - opened):
        modes |= fresh
        opened |= fresh.keys()
        _write(record, modes)
        for (root, relative), mode in fresh.items():
            _set(root, relative, mode | 0o700)
    try:
        yield modes
    finally:
        _lock_again(record, modes)


def keep_given(modes: Modes, moves: Iterable[Located]) -> None:
    """What these moves ended has the mode that they gave it."""
    for move in moves:
        modes.pop((move.root, move.relative), None)


def lock_again(record: Record) -> None:
    """What a process that died left open of an act that is whole. Raises SandboxError, OSError."""
    if modes := _read(record):
        _lock_again(record, modes)


def _lenders(record: Record, steps: Iterable[Step]) -> Iterable[_Place]:
    """Where in their layers the lent files lie, at the same path below the layer's root."""
    for step in steps:
        if step.lent and (source := record.source(step)) is not None:
            lies = printable_path(os.fsencode(source))
            yield _Place(lies.removesuffix(f"/{step.relative}"), step.relative)


def _locked(places: Iterable[tuple[str, str]]) -> Modes:
    """Those that are seen to be locked: what is in one that lets nobody pass is seen when that is open."""
    found: Modes = {}
    for root, relative in places if os.geteuid() != 0 else ():
        with suppress(PermissionError):
            now = now_at(root, relative)
            if now is not None and is_locked(now):
                found[root, relative] = now.mode
    return found


def _lock_again(record: Record, modes: Modes) -> None:
    for (root, relative), mode in sorted(modes.items(), reverse=True):
        with suppress(PermissionError):  # in one that was closed for everybody meanwhile
            now = now_at(root, relative)
            if now is not None and now.is_directory and now.mode == mode | 0o700:
                _set(root, relative, mode)
    (record.place / _OPENED).unlink(missing_ok=True)


def _set(root: str, relative: str, mode: int) -> None:
    with parent_of(root, relative) as (directory, name):
        set_mode(directory, name, mode)


def _read(record: Record) -> Modes:
    path = record.place / _OPENED
    try:
        return {(root, relative): mode for root, relative, mode in _WRITTEN.validate_json(path.read_bytes())}
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        raise SandboxError(f"{path} cannot be read: {error}; keep it and report this") from error


def _write(record: Record, modes: Modes) -> None:
    written = [(root, relative, mode) for (root, relative), mode in modes.items()]
    write_durably(record.place / _OPENED, _WRITTEN.dump_json(written))
