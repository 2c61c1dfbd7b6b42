"""What could not be written yet: a file of this process's own, bounded, and taken over by the next when it dies."""

from __future__ import annotations

import fcntl
import logging
import os
import uuid
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.base import Contract
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.memory.commands import Append, Command, Oppose, Touch

TOGETHER = 1_024

_log = logging.getLogger(__name__)


class _Append(Contract):
    what: Literal["append"] = "append"
    megram: Megram


class _Touch(Contract):
    what: Literal["touch"] = "touch"
    megram_ids: tuple[str, ...]
    at: datetime


class _Oppose(Contract):
    what: Literal["oppose"] = "oppose"
    against: str
    content: str
    megram_id: str
    at: datetime


_LINE: TypeAdapter[_Append | _Touch | _Oppose] = TypeAdapter(_Append | _Touch | _Oppose)


class Spool:
    """Commands in the order in which they came. Used by one thread; other processes keep away by its lock."""

    def __init__(self, directory: Path, *, most_bytes: int) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self._own: int | None = None
        self._path = directory / f"{uuid.uuid4().hex}.jsonl"
        self.held = 0

    def add(self, commands: Sequence[Command]) -> None:
        """Keeps them on disk, all or none. Raises MemoryStoreError when there is no room for them."""
        data = b"".join(_line(command) + b"\n" for command in commands)
        try:
            descriptor = self._opened()
            size = os.fstat(descriptor).st_size
            if size + len(data) > self._most_bytes:
                raise MemoryStoreError(
                    f"{self._path} is full ({self._most_bytes:,} bytes), and the store is still away; more is lost."
                )
            _append(descriptor, data, size)
        except OSError as error:
            raise MemoryStoreError(f"Cannot keep memory in {self._path}: {error}. Free some room.") from error
        self.held += len(commands)

    def batches(self) -> Generator[list[Command]]:
        """What is kept, from processes that ended as well, oldest first. A file goes when all of it was taken.

        Close it: a file that was not taken to its end is then free for whoever comes next. Raises MemoryStoreError
        when this process's own file cannot be read.
        """
        for path in self._left():
            yield from _taken_over(path)
        if self._own is not None:
            try:
                yield from _read(self._path, self._own)
                self._path.unlink(missing_ok=True)
            except OSError as error:
                raise MemoryStoreError(f"Cannot read what memory keeps in {self._path}: {error}") from error
            self.close()
            self.held = 0
            self._path = self._directory / f"{uuid.uuid4().hex}.jsonl"

    def close(self) -> None:
        """Lets go of the file; what it holds is for whoever comes next."""
        descriptor, self._own = self._own, None
        if descriptor is not None:
            os.close(descriptor)

    def _opened(self) -> int:
        """The own file. It has its name only when it is locked: nobody takes it for one that was left."""
        if self._own is None:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            hidden = self._path.with_suffix(".new")
            descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                hidden.rename(self._path)
            except OSError:
                os.close(descriptor)
                raise
            self._own = descriptor
        return self._own

    def _left(self) -> list[Path]:
        """Files of other processes, whether they live or not, those first that were written to first."""
        return sorted((path for path in self._directory.glob("*.jsonl") if path != self._path), key=_written)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process has taken it
        return 0.0


def _append(descriptor: int, data: bytes, size: int) -> None:
    """Writes all of it after `size` bytes, or raises OSError and leaves the file as it was."""
    done = 0
    try:
        while done < len(data):
            done += os.write(descriptor, data[done:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _taken_over(path: Path) -> Iterator[list[Command]]:
    """What a process has left that ended; nothing of one that lives, or that somebody else has taken over."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning("memory: what was kept in %s cannot be read, and stays there: %s", path, error)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:  # else it was taken to its end while we came
            yield from _read(path, descriptor)
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return  # somebody's own
    except OSError as error:
        _log.warning("memory: what was kept in %s cannot be read, and stays there: %s", path, error)
    finally:
        os.close(descriptor)


def _read(path: Path, descriptor: int) -> Iterator[list[Command]]:
    """Slices of a file. After a crash in between some come twice, which their ids make harmless."""
    with open(os.dup(descriptor), "rb") as lines:  # noqa: PTH123 (of a descriptor)
        lines.seek(0)
        batch: list[Command] = []
        for line in lines:
            command = _command(path, line)
            if command is not None:
                batch.append(command)
            if len(batch) == TOGETHER:
                yield batch
                batch = []
        if batch:
            yield batch


def _line(command: Command) -> bytes:
    match command:
        case Append(megram):
            line: Contract = _Append(megram=megram)
        case Touch(megram_ids, at):
            line = _Touch(megram_ids=megram_ids, at=at)
        case Oppose(against, content, megram_id, at):
            line = _Oppose(against=against, content=content, megram_id=megram_id, at=at)
        case _:
            raise MemoryStoreError(f"{type(command).__name__} cannot be kept for later.")
    return line.model_dump_json().encode()


def _command(path: Path, line: bytes) -> Command | None:
    try:
        found = _LINE.validate_json(line)
    except ValidationError:
        # The end of a write that a crash cut short: it was never acknowledged.
        _log.warning("memory: a line of %s cannot be read and is left out", path)
        return None
    match found:
        case _Append():
            return Append(found.megram)
        case _Touch():
            return Touch(found.megram_ids, found.at)
        case _Oppose():
            return Oppose(found.against, found.content, found.megram_id, found.at)
