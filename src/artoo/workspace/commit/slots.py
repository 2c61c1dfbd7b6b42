"""Where a step's new content is staged: on the file system of its target, so that a rename brings it there.

Usually that is `new/` of the record, out of sight. Where no rename leads from there to the target, it is a hidden
file in the nearest directory above the target that exists and stays.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import sync_directory, write_durably
from artoo.workspace.commit.dirfd_ops import Location, Walker, mount_of
from artoo.workspace.commit.manifest import Record, printable, text_of

PART = "~"
"""Ends the name of a slot whose content is being copied: half a copy never has a slot's name."""
_FILE, _NEW = "slots.json", "new"


class _Beside(BaseModel):
    """`slots.json`: directories (root and path below it, printable) by the number of the step; a random token."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    token: str
    directories: dict[int, tuple[str, str]]


class Slots:
    """The slots of one record. Raises SandboxError if the list of a crashed process cannot be read."""

    def __init__(self, record: Record, *, beside: bool = False) -> None:
        self._record = record
        self._always_beside = beside
        self._list = self._read()

    def _read(self) -> _Beside:
        path = self._record.place / _FILE
        try:
            return _Beside.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return _Beside(token=secrets.token_hex(6), directories={})
        except (OSError, ValidationError) as error:
            raise SandboxError(f"{path} cannot be read; keep it and report this") from error

    def of(self, number: int) -> Location:
        """Return the slot of a step."""
        directory = self._list.directories.get(number)
        if directory is None:
            return Location(str(self._record.place), f"{_NEW}/{number}")
        where = Location(text_of(directory[0]), text_of(directory[1]))
        return where.child(f".artoo-{self._list.token}-{number}")

    def assign(self, steps: Iterable[tuple[int, Location]], leaving: Collection[Location]) -> None:
        """Choose slots for steps at these locations; `leaving` are directories that the steps remove.

        Slots next to targets are noted durably before any is used. Raises OSError.
        """
        (self._record.place / _NEW).mkdir(mode=0o700, exist_ok=True)
        known: dict[Location, Location | None] = {}
        found = dict(self._list.directories)
        with Walker() as own, Walker() as walker:
            home = mount_of(own.directory(Location(str(self._record.place), _NEW)))
            for number, where in steps:
                above = where.above
                if above not in known:
                    near, mount = _nearest(walker, above, leaving)
                    known[above] = near if self._always_beside or mount != home else None
                if number not in found and (directory := known[above]) is not None:
                    found[number] = printable(directory.root), printable(directory.relative)
        if found != self._list.directories:
            self._list.directories = found
            write_durably(self._record.place / _FILE, self._list.model_dump_json().encode())

    def directories(self) -> Iterator[Location]:
        """Yield the directories that hold slots next to targets."""
        for root, relative in sorted(set(self._list.directories.values())):
            yield Location(text_of(root), text_of(relative))

    def clean(self, keep: Collection[int] = ()) -> None:
        """Delete all slots but those of the steps to `keep`. May be repeated. Raises OSError."""
        with Walker() as walker:
            for number in self._list.directories.keys() - set(keep):
                with suppress(FileNotFoundError, NotADirectoryError):
                    directory, name = walker.place(self.of(number))
                    for each in (name + PART, name):
                        with suppress(FileNotFoundError):
                            os.unlink(each, dir_fd=directory)
        new = self._record.place / _NEW
        if keep:
            for entry in os.scandir(new) if new.is_dir() else ():
                if entry.name not in {str(number) for number in keep}:
                    Path(entry.path).unlink()
            return
        if new.exists():
            shutil.rmtree(new)
        if (self._record.place / _FILE).exists():
            (self._record.place / _FILE).unlink()
            sync_directory(self._record.place)


def _nearest(walker: Walker, where: Location, leaving: Collection[Location]) -> tuple[Location, tuple[int, int]]:
    """Return the nearest directory from here upwards that exists and stays, and its mount."""
    while True:
        try:
            if where not in leaving:
                return where, mount_of(walker.directory(where))
        except (FileNotFoundError, NotADirectoryError):
            if not where.relative:
                raise
        where = where.above
