"""What a confining program says about itself while the command runs: bubblewrap's status format."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from pathlib import Path


class StatusPipe:
    """JSON lines: `child-pid` when the first process exists, `exit-code` at its end if the command was reached."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self._data = b""

    def _documents(self) -> Iterable[dict[str, int]]:
        try:
            while data := os.read(self._read, 4096):
                self._data += data
        except BlockingIOError:
            pass
        return (json.loads(line) for line in self._data.splitlines(keepends=True) if line.endswith(b"\n"))

    def leader(self) -> int | None:
        """The pid of the sandbox's first process as seen from here."""
        return next((document["child-pid"] for document in self._documents() if "child-pid" in document), None)

    def known(self) -> asyncio.Future[int]:
        """`leader` as soon as it is known. Only one may wait for it."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[int] = loop.create_future()

        def look() -> None:
            leader = self.leader()
            if leader is not None and not found.done():
                found.set_result(leader)

        loop.add_reader(self._read, look)
        found.add_done_callback(lambda _: loop.remove_reader(self._read))
        return found

    def command_started(self) -> bool:
        """Whether the command itself was reached; only meaningful after the end."""
        return any("exit-code" in document for document in self._documents())

    def close(self) -> None:
        os.close(self._read)
        os.close(self.write)


def parent_of(pid: int) -> int | None:
    """The parent of a process, None when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return None


def stands(pid: int) -> bool:
    """Whether a process is stopped, or gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"t", b"Z", b"X")
    except OSError:
        return True
