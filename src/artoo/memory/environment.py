"""The LMDB file: opening it safely, transactions, growth, and errors that say what to do.

Several processes share one file. Within a process LMDB allows one handle a file, so handles are counted.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import lmdb

from artoo.contracts.errors import MemoryStoreError
from artoo.memory.gate import Gate
from artoo.memory.seal import Seal

T = TypeVar("T")
if TYPE_CHECKING:
    Transaction = lmdb.Transaction[bytes]
else:
    Transaction = lmdb.Transaction

FIRST_MAP_BYTES = 64 << 20
LARGEST_MAP_BYTES = 1 << 40
_READERS = 512
_RETRIES = 64

_open: dict[Path, tuple[Environment, int]] = {}
_open_lock = threading.Lock()


class Environment:
    """An open LMDB file. Use `open_environment`, and `close` once for each opening."""

    def __init__(self, directory: Path, map_bytes: int) -> None:
        self.directory = directory
        self._gate = Gate()
        self._seal = Seal(directory)
        with self._explained("open"):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._seal.enter()
        try:
            with self._explained("open"):
                self._env = lmdb.Environment(
                    os.fsencode(directory), map_size=map_bytes, max_readers=_READERS, mode=0o600
                )
                self._env.reader_check()
        except MemoryStoreError:
            self._seal.leave()
            raise

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Runs `work` on one consistent snapshot. `work` must be short and must not open transactions."""
        return self._attempt(work, write=False)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Runs `work` in a write transaction, on disk when this returns; all of it or nothing.

        When the map is full it grows and `work` runs again from the start.
        """
        return self._attempt(work, write=True)

    def forget_dead_readers(self) -> int:
        """Frees the slots of processes that were killed, which would keep old pages from being used again."""
        with self._explained("clean up"):
            return self._env.reader_check()

    def size(self) -> int:
        """The bytes in use, without the map's unused end."""
        return (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]

    def close(self) -> None:
        """Gives the handle back; the last one closes the file."""
        with _open_lock:
            key = self.directory.resolve()
            found = _open.get(key)
            if found is None or found[0] is not self:
                return
            if found[1] > 1:
                _open[key] = (self, found[1] - 1)
                return
            del _open[key]
            with self._gate.exclusive():
                self._env.close()
            self._seal.leave()

    def _attempt(self, work: Callable[[Transaction], T], *, write: bool) -> T:
        for _ in range(_RETRIES):
            try:
                with self._gate.shared(), self._env.begin(write=write) as transaction:
                    return work(transaction)
            except lmdb.MapFullError:
                self._grow()
            except lmdb.MapResizedError:
                self._adopt()
            except lmdb.ReadersFullError:
                self._make_room()
            except (lmdb.Error, OSError) as error:
                doing = "write to" if write else "read"
                raise MemoryStoreError(_explanation(self.directory, doing, error)) from error
        raise MemoryStoreError(
            f"The memory store in {self.directory} did not settle after {_RETRIES} attempts. "
            "Close other artoo processes and run `artoo memory verify`."
        )

    def _grow(self) -> None:
        with self._explained("grow"), self._gate.exclusive():
            size = self._env.info()["map_size"] * 2
            if size > LARGEST_MAP_BYTES:
                raise MemoryStoreError(
                    f"The memory store in {self.directory} would grow beyond {LARGEST_MAP_BYTES >> 30} GiB. "
                    "Run `artoo memory dream` to forget what has faded, or `artoo memory forget`."
                )
            self._env.set_mapsize(size)

    def _adopt(self) -> None:
        with self._explained("grow"), self._gate.exclusive():
            self._env.set_mapsize(0)

    def _make_room(self) -> None:
        if not self.forget_dead_readers():
            raise MemoryStoreError(
                f"More than {_READERS} readers use the memory store in {self.directory} at once. "
                "Close some artoo processes."
            )

    @contextmanager
    def _explained(self, doing: str) -> Generator[None]:
        try:
            yield
        except (lmdb.MapFullError, lmdb.MapResizedError, lmdb.ReadersFullError):
            raise
        except (lmdb.Error, OSError) as error:
            raise MemoryStoreError(_explanation(self.directory, doing, error)) from error


def open_environment(directory: Path, *, map_bytes: int = FIRST_MAP_BYTES) -> Environment:
    """Opens (or joins) the store in `directory`, creating it when absent.

    Raises MemoryStoreError when it cannot be used: damaged, not writable, no room.
    """
    with _open_lock:
        key = directory.resolve()
        environment, count = _open.get(key, (None, 0))
        if environment is None:
            environment = Environment(directory, map_bytes)
        _open[key] = (environment, count + 1)
        return environment


def _explanation(directory: Path, doing: str, error: lmdb.Error | OSError) -> str:
    where = f"Cannot {doing} the memory store in {directory}: {error}."
    # LMDB reports a write that was cut short as EIO, which is what a disk that has just filled up does.
    code = error.errno if isinstance(error, OSError) else getattr(error, "code", 0)
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return f"{where} The disk is full or failing; free some room. What was being written is lost."
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{where} It must be writable; check its owner and permissions."
    damaged = (lmdb.InvalidError, lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.VersionMismatchError)
    if isinstance(error, (*damaged, lmdb.PanicError)):
        return f"{where} The file is damaged; move it away (a new one is made), or restore a copy of it."
    return f"{where} Run `artoo memory verify`."
