"""Several processes on one database, one of them killed again and again: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from core_doubles import Office, Stream, office
from engines import Choice
from working_process import AGENT

from artoo.agents.mail.outbox import Outbox
from artoo.contracts.agents import OPERATOR, BoardState, Mail, MailMoved, TaskMoved
from artoo.contracts.base import Contract
from artoo.runtime.app.system import SystemClock, UuidIds

PROGRAM = Path(__file__).with_name("working_process.py")
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
KINDS: dict[str, type[Contract]] = {kind.kind(): kind for kind in (Mail, MailMoved, TaskMoved)}


def start(directory: Path, name: str, letters: int, first: int = 0) -> subprocess.Popen[str]:
    """A working process."""
    arguments = [sys.executable, str(PROGRAM), str(directory), name, str(letters), str(first)]
    where = {} if Choice.stores is None else {"ARTOO_STORE": Choice.stores.of(directory).url}
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **where}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environ)


def wait_for(process: subprocess.Popen[str], number: int) -> int:
    """Reads acknowledgements until one reaches `number` (or the process ends); returns how many were accepted."""
    accepted = -1
    assert process.stdout is not None
    for line in process.stdout:
        accepted = int(line)
        if accepted >= number:
            break
    return accepted + 1


def published(directory: Path) -> list[Contract]:
    """What all processes put on their streams, each event once; a line that was cut by a kill is not there."""
    records: dict[str, Contract] = {}
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            kind, _, text = line.partition(" ")
            if kind in KINDS:
                payload = KINDS[kind].model_validate_json(text)
                records.setdefault(json.loads(text).get("event") or json.loads(text)["id"], payload)
    return list(records.values())


async def killed_again_and_again(directory: Path, letters: int, kills: int) -> None:
    """One process works through; another sends as many and is killed, and started again where it was."""
    async with office(directory, SystemClock(), UuidIds()):
        pass
    steady, accepted = start(directory, "steady", letters), 0
    for kill in range(1, kills + 1):
        victim = start(directory, "victim", letters - accepted, accepted)
        accepted = max(accepted, wait_for(victim, kill * letters // (kills + 1)))
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    # The letter after the last acknowledged one may have been accepted: under its name it is sent once only.
    last = start(directory, "victim", letters - accepted, accepted)
    last.communicate()
    steady.communicate()
    assert (last.returncode, steady.returncode) == (0, 0)
    async with office(directory, SystemClock(), UuidIds(), team=False) as opened:
        await nothing_lost_nothing_twice(opened, directory, letters)


async def nothing_lost_nothing_twice(opened: Office, directory: Path, letters: int) -> None:
    """Every letter was accepted, delivered and answered once; every task completed; every transition published."""
    rest = Stream()
    await Outbox(opened.database, rest).drain()
    records = [*published(directory), *rest.records]
    expected = {f"{name}-{number}" for name in ("steady", "victim") for number in range(letters)}
    archived = await opened.mailbox.list(AGENT, "archive", limit=10 * letters)
    assert {kept.mail.id for kept in archived} == expected
    answers = Counter(kept.mail.in_reply_to for kept in await opened.mailbox.sent(AGENT, limit=10 * letters))
    assert answers == dict.fromkeys(expected, 1)
    moved = Counter(
        (record.mail_id, record.partition)
        for record in records
        if isinstance(record, MailMoved) and record.recipient == AGENT
    )
    assert moved == {(mail, place): 1 for mail in expected for place in ("outbox", "inbox", "archive")}
    assert {record.id for record in records if isinstance(record, Mail)} >= expected
    tasks = await opened.board.list(list(BoardState), limit=10 * letters)
    assert {task.state for task in tasks} == {BoardState.COMPLETED}
    assert {task.text for task in tasks} == {name for name in expected if int(name.split("-")[1]) % 3 == 0}
    told = {record.event for record in records if isinstance(record, TaskMoved)}
    for task in tasks:
        log = [record for record in await opened.board.log(task.id) if isinstance(record, TaskMoved)]
        assert {record.event for record in log} <= told
        assert all(one.after == other.before for one, other in pairwise(log))
        assert [record.after for record in log].count(BoardState.COMPLETED) == 1
    assert await opened.database.check() == ()
    assert OPERATOR not in {task.assignee for task in tasks}


async def test_kills_lose_nothing_and_do_nothing_twice() -> None:
    """Two processes, one killed three times with letters and tasks in flight."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        await killed_again_and_again(Path(directory), letters=24, kills=3)


@pytest.mark.torture
@pytest.mark.usefixtures("engine")
async def test_a_hundred_kills_lose_nothing_and_do_nothing_twice() -> None:
    """The same with a hundred kills."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        await killed_again_and_again(Path(directory), letters=1_000, kills=100)
