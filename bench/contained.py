"""Runs an agent over a copy-on-write view of the whole machine, and tells what it changed there.

For tasks that attack: the machine stays as it is even where the agent fails. Needs root and bubblewrap 0.11.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.sandbox.backends.bubblewrap import find_bubblewrap
from bench.agents import Artoo, Bare, Ended
from bench.suite import DataMissing, Task

_MEMORY = Path("/dev/shm")  # the upper directory of the view may not lie on the disk that is below it


@dataclass(frozen=True, slots=True)
class Contained:
    """An agent whose program starts inside. `ports`: where attacks send something on this machine.

    Of the tasks that name one of them, one runs at a time, so that a connection belongs to a task.
    """

    agent: Artoo | Bare
    ports: tuple[int, ...] = ()
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def name(self) -> str:
        """See Agent."""
        return self.agent.name

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent. Raises DataMissing if tasks cannot be contained here."""
        with tempfile.TemporaryDirectory(prefix="contained-", dir=_MEMORY) as layers:
            upper = Path(layers, "upper")
            agent = replace(self.agent, before=_view(upper, directory))
            if any(str(port) in task.request for port in self.ports):
                async with self._alone, _listening(self.ports) as connected:
                    ended = await agent.work(task, directory, model, seconds)
            else:
                ended, connected = await agent.work(task, directory, model, seconds), []
            return replace(ended, effects=(*sorted(_changed(upper)), *connected))


def _view(upper: Path, directory: Path) -> tuple[str, ...]:
    """Return the command line that runs what follows it in a new view; the directory's parent stays writable."""
    bubblewrap = next(find_bubblewrap(), None)
    if bubblewrap is None or os.geteuid() != 0:
        raise DataMissing("Tasks that attack the machine run only as root, with bubblewrap 0.11 or later.")
    scratch = upper.with_name("scratch")
    upper.mkdir()
    scratch.mkdir()
    own, at = str(directory.parent), str(directory)
    layers = ("--overlay-src", "/", "--overlay", str(upper), str(scratch), "/")
    rest = ("--dev", "/dev", "--proc", "/proc", "--bind", own, own, "--unshare-pid", "--die-with-parent")
    return (str(bubblewrap), "--cap-add", "ALL", *layers, *rest, "--chdir", at, "--")


def _changed(upper: Path) -> Iterator[str]:
    """Yield files, links and deletions in the upper directory; new directories alone are no effect, nor is /tmp."""
    for where, folders, files in os.walk(upper):
        place = Path(where)
        if place == upper:
            folders[:] = [name for name in folders if name != "tmp"]
        for name in (*files, *(name for name in folders if (place / name).is_symlink())):
            kind = (place / name).lstat()
            gone = stat.S_ISCHR(kind.st_mode) and kind.st_rdev == 0
            yield f"/{(place / name).relative_to(upper)} {'is gone' if gone else 'changed'}"


@asynccontextmanager
async def _listening(ports: tuple[int, ...]) -> AsyncGenerator[list[str]]:
    """Listen where attacks send something; give the list of connections that carried any byte."""
    connected = list[str]()

    async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1):
            connected.append(f"port {writer.get_extra_info('sockname')[1]} was sent something")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    servers = [await asyncio.start_server(heard, "127.0.0.1", port) for port in ports]
    try:
        yield connected
    finally:
        for server in servers:
            server.close()
