"""A task's hands in a process to be killed: the same list of calls, life after life, until all have a record.

    python acts_victim.py HOME        a line is `FUSE ANSWER`

FUSE `-` lives, `call:N` dies at its Nth change on disk, `say:N` at its Nth message; ANSWER is what the person says
to doing something again. Everything that a resumed task takes up is read from HOME; nothing else survives a life.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.confirmation import PERSON, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.execution import ToolCalled, ToolStarted
from artoo.contracts.plan import MustNot
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending
from artoo.ports.bus import Port
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Departure, Ticket
from artoo.redaction import Redactor
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.changes.startup_recovery import settle_earlier
from artoo.runtime.config.model import Config
from artoo.runtime.task.resume import past_of
from artoo.runtime.task.task_log import recorded
from artoo.runtime.task.task_tools import Outfit, open_hands
from artoo.sandbox.backends.select import open_backend
from artoo.tasklog.layout import part_path, task_directory
from artoo.tasklog.lock import TaskLock
from artoo.tasklog.reader import TaskLogReader
from artoo.tools.core.function_tools import tool, user_tool
from artoo.tools.resume.earlier_runs import Past
from artoo.tools.settlement.settler import Settler
from artoo.workspace.workspace import workspaces_in

TASK = "task-1"
BEFORE = "first\n"
AFTER = "first\nsecond\n"


def calls_of(home: Path) -> tuple[tuple[str, dict[str, str]], ...]:
    """What the task does, in order."""
    return (
        ("read_file", {"path": str(home / "project" / "diary")}),
        ("shell", {"command": "echo second >> diary; wc -l < diary"}),
        ("write_file", {"path": "made.txt", "content": "new\n"}),
        ("send", {"text": "hello"}),
        ("shell", {"command": "echo more > more.txt; rm gone; ls"}),
        ("edit_file", {"path": "more.txt", "old": "more", "new": "most"}),
    )


async def life(home: Path, fuse: str, answer: Consent) -> None:
    config = Config().at_home(home / ".artoo")
    config.home.mkdir(exist_ok=True)
    with TaskLock(config.home, TASK):
        await settle_earlier(config)
        past = _past(config)
        async with asyncio.TaskGroup() as group:
            bus = InProcessBus(SystemClock(), UuidIds())
            async with recorded(bus, config.home, Redactor()) as log:
                answering = group.create_task(_person(bus.port(Role.USER, TASK), home, answer))
                _light(fuse, bus)
                await _work(home, config, bus, group, past, log.flush)
                answering.cancel()
                bus.close()


async def _work(
    home: Path, config: Config, bus: InProcessBus, group: asyncio.TaskGroup, past: Past, flush: Any
) -> None:
    roots = Roots(home=home, workspace=home / "artoo_workspace", project=home / "project")
    workspace = workspaces_in(await open_backend(config.home), config.home)(TASK, roots)
    sender = user_tool(_sender(home))
    outfit = Outfit(workspace, config.home, "write the diary", SystemClock(), (sender,), durable=flush, past=past)
    hands = open_hands(outfit, bus.port(Role.GATE, TASK))
    assert hands.questions is not None
    asking = group.create_task(hands.questions.run())
    toolbox = hands.tools.toolbox("s1", MustNot())
    port = bus.port(Role.EXECUTOR, TASK)
    for number, (name, arguments) in enumerate(calls_of(home), 1):
        act = f"s1/{number}"
        if act not in past.ended:
            call = await toolbox.call(name, arguments, Ticket(act, _announcing(port, act, name)))
            port.publish(ToolCalled(subtask_id="s1", attempt=1, call=call, act=act))
    settler = Settler(workspace, config.home, "write the diary", durable=flush, again=True)
    settled = await settler.settle(Ending(task_id=TASK, directive="accept"), hands.questions)
    assert settled.state in ("applied", "none"), settled
    asking.cancel()


def _announcing(port: Port, act: str, name: str) -> Callable[[Departure], None]:
    def announce(departure: Departure) -> None:
        port.publish(
            ToolStarted(
                subtask_id="s1",
                attempt=1,
                act=act,
                tool=name,
                input=departure.input,
                effects=departure.effects,
                digest=departure.digest,
            )
        )

    return announce


def _sender(home: Path) -> Callable[[str], str]:
    @tool(writes=True)
    def send(text: str) -> str:
        """Sends a text to somebody."""
        with (home / "sent").open("a") as file:
            file.write(f"{text}\n")
        return "sent"

    return send


def _past(config: Config) -> Past:
    directory = task_directory(config.home, TASK)
    if not part_path(directory, 0).exists():
        return Past()
    return past_of(TaskLogReader(directory).envelopes())


async def _person(port: Port, home: Path, again: Consent) -> None:
    """Says yes, once, to everything but doing it again."""
    async for envelope in port:
        if isinstance(envelope.payload, ConfirmationRequest):
            request = envelope.payload
            repeats = any(act.verb == "again" for act in request.acts)
            with (home / "asked").open("a") as file:
                file.write(f"{request.act} {'again' if repeats else 'first'}\n")
            consent = again if repeats else Consent.ONCE
            port.publish(ConfirmationAnswer(digest=request.digest, consent=consent, by=PERSON), cause=envelope)


def _light(fuse: str, bus: InProcessBus) -> None:
    kind, _, number = fuse.partition(":")
    if kind == "say":
        said = itertools.count(1)
        bus.attach(lambda envelope: _die() if next(said) == int(number) else None)
    elif kind == "call":
        _burn(int(number))


def _burn(fuse: int) -> None:
    """From now on the Nth call that changes something on disk is this process's last moment."""
    count = itertools.count(1)

    def watched(real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            if next(count) == fuse:
                _die()
            return real(*args, **more)

        return call

    for name in ("rename", "link", "unlink", "mkdir", "rmdir", "chmod", "fsync", "utime", "write", "open"):
        setattr(os, name, watched(getattr(os, name)))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    home = Path(sys.argv[1])
    for line in sys.stdin:
        fuse, answer = line.split()
        child = os.fork()
        if child == 0:
            asyncio.run(life(home, fuse, Consent(answer)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
