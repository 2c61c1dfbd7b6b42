"""Store a command's output in memory and in a spool file, within the limits of `ports/workspace.py`.

    command ── stdout, stderr (or its pseudo-terminal) ──► Output ──► Captured, for the model
                                                             └─────► spool file, readable by offset at any time

A command is never ended because it prints too much. The spool file has at most `CommandLimits.output_bytes`. One
half of it holds the start of the output, the other half the most recent part, so that the log of a long-running
server can be followed.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Literal

from artoo.ports.printing import Heard, unheard
from artoo.ports.sandbox import Captured
from artoo.ports.workspace import CommandLimits

StreamName = Literal["stdout", "stderr"]

_CHUNK = 64 * 1024
_LAST_WORDS_SECONDS = 0.1
"""Number of seconds that `drain` waits for the end of the streams. The output of the command itself is in the pipe
when it exits, but the last bytes of a pseudo-terminal or of a `> >(tee log)` arrive slightly later."""


class Output:
    """The output of one command. It is used in one event loop, except for `read`, which may be called in any
    thread.

    The caller closes it when no process can write to the streams any more. Until then, background processes of the
    command can continue to print, because the pipe has a reader and they get no SIGPIPE.
    """

    def __init__(self, path: Path, limits: CommandLimits, on_output: Heard = unheard) -> None:
        self._spool = OutputSpool(path, limits.output_bytes)
        self._kept = {"stdout": HeadAndTail(limits.kept_bytes), "stderr": HeadAndTail(limits.kept_bytes)}
        self._on_output = on_output
        self._told_last: tuple[StreamName, bool] = ("stdout", True)
        self._followed: dict[int, StreamName] = {}
        self._all_ended = asyncio.Event()
        self._all_ended.set()

    @property
    def printed(self) -> tuple[Captured, Captured]:
        """The output so far: stdout, stderr."""
        return self._kept["stdout"].captured(), self._kept["stderr"].captured()

    @property
    def at_end(self) -> bool:
        """True if no process can print any more."""
        return not self._followed

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader, with the reason, if the output is not completely on disk."""
        return self._spool.notes

    def add(self, data: bytes, stream: StreamName = "stdout") -> None:
        """Append output of the command to a stream."""
        self._kept[stream].add(data)
        self._spool.append(data)
        told, ended_line = self._told_last
        # Two pipes have no common order, so an incomplete line of one is never joined to a line of the other.
        self._on_output(data if ended_line or told == stream else b"\n" + data)
        self._told_last = (stream, data.endswith(b"\n"))

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Return up to `limit` bytes of both streams from `offset`, and the next offset. Blocking.

        If the output at `offset` was not kept, the bytes begin at the first position after it that was kept.
        """
        return self._spool.read(offset, limit)

    def follow(self, descriptor: int, stream: StreamName = "stdout") -> None:
        """Read a pipe or a pseudo-terminal to its end in the event loop. Takes ownership of the descriptor."""
        os.set_blocking(descriptor, False)
        self._followed[descriptor] = stream
        self._all_ended.clear()
        asyncio.get_running_loop().add_reader(descriptor, self._read_some, descriptor)

    def take_rest(self) -> bool:
        """Read the output that is available now. Returns True if no process can print any more."""
        for descriptor in list(self._followed):
            self._read_some(descriptor)
            if descriptor in self._followed:  # the end of the stream is only seen by another read
                self._read_some(descriptor)
        return not self._followed

    async def drain(self) -> None:
        """Read the output that the command printed until it ended. Background processes of the command may print
        more later."""
        if not self.take_rest():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await self._all_ended.wait()

    def close(self) -> None:
        """Stop reading the streams. The kept output can still be read. Idempotent."""
        for descriptor in list(self._followed):
            self._unfollow(descriptor)
        self._spool.close()

    def _read_some(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # EIO means that no process has the other side of the pseudo-terminal open any more.
            data = b""
        if data:
            self.add(data, self._followed[descriptor])
        else:
            self._unfollow(descriptor)

    def _unfollow(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        del self._followed[descriptor]
        os.close(descriptor)
        if not self._followed:
            self._all_ended.set()


class HeadAndTail:
    """Keeps `kept` bytes of a stream in memory, half from its start and half from its end."""

    def __init__(self, kept: int) -> None:
        self._half = max(1, kept // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """Append to the stream."""
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def captured(self) -> Captured:
        """Return the kept bytes, and the total size."""
        return Captured(bytes(self._head), bytes(self._tail[-self._half :]), self._total)


class OutputSpool:
    """Stores a stream in a file of bounded size. The first half of the file keeps the start of the stream. The
    second half is a ring buffer.

    The file is made when the first byte is written. If the file cannot be written (for example because the disk is
    full), the command continues. Further output is then not kept, and `notes` reports this.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._half = max(1, most_bytes // 2)
        self._descriptor: int | None = None
        self._written = 0
        self._problem = ""
        self._lock = Lock()  # a reader in another thread must not see a part that is being overwritten
        self.total = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """The reason why the file does not contain the whole stream. It is empty if it does."""
        if self._problem:
            return (f"only the first {self._written} bytes of the output are on disk: {self._problem}",)
        dropped = self.total - 2 * self._half
        return (f"{dropped} bytes in the middle of the output were not kept on disk",) if dropped > 0 else ()

    def append(self, data: bytes) -> None:
        """Write a part of the stream. Never raises OSError."""
        with self._lock:
            start, self.total = self.total, self.total + len(data)
            if self._problem:
                return
            try:
                self._write(start, data)
                self._written = self.total
            except OSError as error:
                self._problem = error.strerror or str(error)

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Return up to `limit` bytes from `offset`, or from the first kept byte after it, and the next offset."""
        with self._lock:
            if offset >= self._half:
                offset = max(offset, self._written - self._half)
            offset = min(max(0, offset), self._written)
            place, room = self._place(offset)
            count = min(limit, room, self._written - offset)
            if count <= 0:
                return b"", self.total if offset == self._written else offset
            try:
                with self._path.open("rb", buffering=0) as file:
                    data = os.pread(file.fileno(), count, place)
            except FileNotFoundError:  # the workspace was discarded, and the file with it
                return b"", self.total
        return data, offset + len(data)

    def close(self) -> None:
        """Close the file. The file can still be read. Idempotent."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _write(self, start: int, data: bytes) -> None:
        if self._descriptor is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (0 if start else os.O_TRUNC)
            self._descriptor = os.open(self._path, flags, 0o600)
        left = memoryview(data)
        while left:
            place, room = self._place(start)
            count = os.pwrite(self._descriptor, left[:room], place)
            left, start = left[count:], start + count

    def _place(self, offset: int) -> tuple[int, int]:
        """Return the file position of a stream offset, and the number of contiguous bytes from there."""
        if offset < self._half:
            return offset, self._half - offset
        inside = (offset - self._half) % self._half
        return self._half + inside, self._half - inside
