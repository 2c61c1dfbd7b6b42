"""Run tasks with `artoo run --background`, follow them from other processes, and delete old outputs.

<home>/background/KEY.task     the task's id, once it has begun
                  KEY.output   the result as JSON, and messages of the process
"""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Never

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.request import UserRequest
from artoo.disk.whole import write_whole
from artoo.sandbox.reading.programs import own_environment, own_python
from artoo.tasklog.lock import is_running
from artoo.tasklog.reader import TaskLogReader, TaskSummary, list_tasks

_BEGINS_WITHIN = 60.0
"""Number of seconds within which a task must begin. On a loaded machine, the imports take some of them."""
_LOOK_SECONDS = 0.3
_KEPT_SECONDS = 30 * 86_400.0
_LATEST = 60
_STARTED: list[subprocess.Popen[bytes]] = []
"""Processes that run longer than this one. Their objects are kept, because Python warns if the object of a running
process is freed."""


def start(home: Path, arguments: Sequence[str], material: bytes = b"") -> str:
    """Run `artoo run` with these arguments in a separate process, and return the id of its task. `material` is
    passed to its standard input.

    Raises ConfigurationError with the output of the process if it ends before a task has begun.
    """
    folder = home / "background"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _forget_old(folder)
    note = folder / f"{secrets.token_hex(8)}.task"
    output = note.with_suffix(".output")
    with output.open("xb") as stream, tempfile.TemporaryFile() as source:
        output.chmod(0o600)
        source.write(material)
        source.seek(0)
        process = subprocess.Popen(
            own_python("-m", "artoo", "run", "--detached", str(note), "--json", "--progress", "none", *arguments),
            stdin=source if material else subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=own_environment(),
            start_new_session=True,  # so that Ctrl-C and closing the terminal do not stop the task
        )
    _STARTED.append(process)
    until = time.monotonic() + _BEGINS_WITHIN
    while time.monotonic() < until:
        if note.exists():
            return note.read_text(encoding="utf-8")
        if process.poll() is not None and not note.exists():
            break
        time.sleep(0.05)
    # A task that was reported as not begun must not begin later, so the process is ended.
    process.kill()
    said = output.read_text(encoding="utf-8", errors="replace").strip() or "it did not begin in time"
    raise ConfigurationError(said.removeprefix("artoo: "))


def noting_begin(note: Path) -> Callable[[Envelope], None]:
    """Return a listener that writes the id of a task to the file `note` when the task's request is published."""

    def hear(envelope: Envelope) -> None:
        if isinstance(envelope.payload, UserRequest):
            write_whole(note, envelope.task_id.encode(), sync=False)

    return hear


async def wait_for_others(request: ConfirmationRequest) -> Never:
    """Wait until the question is answered in another window (`artoo attach` or the web UI). Implements Confirm."""
    del request
    await asyncio.Event().wait()
    raise AssertionError("nothing sets the event")


def running(home: Path) -> list[TaskSummary]:
    """Return the tasks that are running, in whichever process, latest first. Blocking."""
    return [one for one in list_tasks(home, _LATEST) if one.running]


async def follow(directory: Path) -> AsyncGenerator[Envelope]:
    """Yield the messages of a task from its log, first the earlier ones, then new ones until the task is no longer
    running."""
    seen, pause = 0, _LOOK_SECONDS
    while True:
        runs = is_running(directory)  # checked before the log is read, so that the last messages are not missed
        started = time.monotonic()
        for envelope in await asyncio.to_thread(_after, directory, seen):
            seen += 1
            yield envelope
        if not runs:
            return
        # Reading a long log takes long, so the pause grows with the log.
        pause = max(_LOOK_SECONDS, 4 * (time.monotonic() - started))
        await asyncio.sleep(pause)


def _after(directory: Path, seen: int) -> list[Envelope]:
    return list(islice(TaskLogReader(directory).envelopes(), seen, None))


def _forget_old(folder: Path) -> None:
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink()
