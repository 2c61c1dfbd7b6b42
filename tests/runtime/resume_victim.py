"""A whole artoo in a process to be killed: runs a task, or takes up the one that is there.

    python resume_victim.py BASE_URL        a line is `HOME FUSE`

FUSE `-` lives; `kept:N` dies at its Nth message, with all of them in the log; `lost:N` dies there as it is. For N
the kind of a message may stand.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

from artoo import Artoo, Config, RunOptions
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.redaction import Redactor
from artoo.runtime.replay import stage
from artoo.tasklog import writer
from artoo.tasklog.file import TaskFile
from artoo.tasklog.layout import LogLimits, parts_of, task_directory, tasks_directory
from artoo.tasklog.reader import TaskLogReader

REQUEST = "Add a line to diary, make one.txt and two.txt, then put both together into all.txt."
_LOADED = (stage, writer)


async def life(home: Path, base_url: str, fuse: str) -> None:
    config = Config.model_validate({"workspace": home / "workspace", "memory": {"enabled": True}})
    environ = {"OPENAI_BASE_URL": base_url, "OPENAI_MODEL": "scripted"}

    async def yes(request: ConfirmationRequest) -> Consent:
        with (home / "asked").open("a") as file:
            file.write(f"{request.digest}\n")
        return Consent.ONCE

    async with Artoo(config.at_home(home / ".artoo"), environ=environ, confirm=yes) as artoo:
        Fuse(fuse, home / ".artoo").light(artoo)
        begun = tasks_directory(home / ".artoo")
        if begun.is_dir() and any(parts_of(path) for path in begun.iterdir()):
            await artoo.resume()
        else:
            await artoo.run(REQUEST, options=RunOptions(project=home / "project"))


class Fuse:
    """Ends the process at a message."""

    def __init__(self, fuse: str, home: Path) -> None:
        self._kind, _, self._moment = fuse.partition(":")
        self._home = home
        self._said: list[Envelope] = []
        self._count = itertools.count(1)
        self._log: writer.TaskLog | None = None

    def light(self, artoo: Artoo) -> None:
        if self._kind != "-":
            self._log = artoo._log  # pyright: ignore[reportPrivateUsage]
            artoo.bus.attach(self._heard)

    def _heard(self, envelope: Envelope) -> None:
        if not envelope.task_id:
            return
        self._said.append(envelope)
        if self._moment in (str(next(self._count)), envelope.kind):
            if self._kind == "kept":
                self._keep(envelope.task_id)
            os.kill(os.getpid(), signal.SIGKILL)

    def _keep(self, task_id: str) -> None:
        """Writes what the log does not have yet, while its own writer stands still."""
        assert self._log is not None
        self._log._writing.acquire()  # pyright: ignore[reportPrivateUsage]
        directory = task_directory(self._home, task_id)
        there = {e.id for e in TaskLogReader(directory).envelopes()} if parts_of(directory) else set[str]()
        grown = self._log._grown  # pyright: ignore[reportPrivateUsage]
        file = TaskFile(directory, task_id, LogLimits(), Redactor(), grown)
        file.append([each for each in self._said if each.id not in there])


def main() -> None:
    for line in sys.stdin:
        home, fuse = line.split()
        child = os.fork()
        if child == 0:
            asyncio.run(life(Path(home), sys.argv[1], fuse))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
