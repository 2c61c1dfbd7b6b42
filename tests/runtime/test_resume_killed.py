"""kill -9 at every message of a task with parallel subtasks and file changes, then `resume`: the same end."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from artoo.auditor.layout import audit_directory
from artoo.auditor.verify import verify
from artoo.contracts.conversation import Took
from artoo.contracts.events import ModelCalled
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import FinalResult
from artoo.runtime.replay.replay import replay
from artoo.sandbox.backends.select import open_backend
from artoo.tasklog.layout import parts_of, tasks_directory
from artoo.tasklog.reader import TaskLogReader
from artoo.testing import Asked, Reply, ScriptedServer, with_body
from artoo.testing.replies import Scripted
from artoo.workspace.commit import recover, undo

DIED = -9
BEFORE = "monday\n"
PLAN = {
    "subtasks": [
        {"sequence": 1, "intent": "add tuesday to the diary", "tool": "shell"},
        {"sequence": 1, "intent": "make one.txt with two lines", "tool": "shell"},
        {"sequence": 1, "intent": "make two.txt with one line", "tool": "shell"},
        {"sequence": 2, "intent": "put both together into all.txt", "tool": "shell"},
    ]
}


def _whole(file: str, *lines: str) -> str:
    """A command that writes a file whole: what was cut off may have done its work, and is made again."""
    return f"printf '%s\\n' {' '.join(lines)} > {file}"


STEPS = {
    "diary": (f"{_whole('diary', 'monday', 'tuesday')} && cat diary",),
    "one.txt": (
        f"{_whole('one.txt', 'first')} && wc -l < one.txt",
        f"{_whole('one.txt', 'first', 'second')} && cat one.txt",
    ),
    "two.txt": (f"{_whole('two.txt', 'third')} && cat two.txt",),
    "all.txt": ("cat one.txt two.txt > all.txt && cat all.txt",),
}
_WENT_WELL = re.compile(r"^\[\d+\] ok", re.MULTILINE)
"""How the model is shown a call that ended well."""

TOGETHER = "first\nsecond\nthird"
MERGED = with_body({"sources": [4], "verdicts": [{"number": 1, "verdict": "pass", "quote": TOGETHER}]}, TOGETHER)


def answer(asked: Asked) -> Scripted:
    """Follows from the question alone, as a model's answer at temperature 0 does."""
    if asked.contract == "Plan":
        return PLAN
    if asked.contract == "ExecutorStep":
        intent, _, done = asked.user.rpartition("Your subtask:\n")[2].partition("\n")
        steps = next(steps for name, steps in STEPS.items() if name in intent)
        number = 1 if len(steps) > 1 and _WENT_WELL.search(done) else 0
        return _shell(steps[number], final=number == len(steps) - 1)
    if asked.contract == "MergeReport":
        return MERGED
    raise AssertionError(f"nobody should ask for {asked.contract}")


def _shell(command: str, *, final: bool) -> Reply:
    return with_body({"tool": "shell", "is_final": final}, command)


@dataclass(slots=True)
class Lives:
    """A home in which processes live and die, and the model that all of them ask."""

    root: Path
    server: ScriptedServer
    process: asyncio.subprocess.Process
    proof: Path
    number: int = 0

    @property
    def home(self) -> Path:
        """A new one for each first life: what a killed sandbox still writes must not reach the next."""
        return self.root / str(self.number)

    def reset(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.number += 1
        (self.home / "project").mkdir(parents=True)
        (self.home / "project" / "diary").write_text(BEFORE)
        (self.home / ".artoo").mkdir()
        proof = self.proof / "sandbox-backend.json"
        if proof.exists():
            (self.home / ".artoo" / proof.name).write_bytes(proof.read_bytes())
        self.server.player.requests.clear()

    async def live(self, fuse: str = "-") -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{self.home} {fuse}\n".encode())
        async with asyncio.timeout(600):  # against hanging for ever; a busy machine may take its time
            return int(await self.process.stdout.readline())

    def questions(self) -> list[str]:
        """Everything that was asked of the model so far."""
        return [asked.user for asked in self.server.player.requests]

    def log(self) -> TaskLogReader | None:
        root = tasks_directory(self.home / ".artoo")
        found = [path for path in root.iterdir() if parts_of(path)] if root.is_dir() else []
        return TaskLogReader(found[0]) if found else None

    def answered(self) -> set[str]:
        """The questions whose answers the log has. A turn of a conversation was asked all its messages so far."""
        log = self.log()
        said = defaultdict[str | None, list[str]](list)
        questions = set[str]()
        for envelope in log.envelopes() if log is not None else ():
            if isinstance(envelope.payload, ModelCalled) and envelope.payload.turn is None:
                questions.add(envelope.payload.user)
            elif isinstance(envelope.payload, ModelCalled):
                said[envelope.subtask_id] += [
                    each.text for each in envelope.payload.added if not isinstance(each, Took)
                ]
                questions.add("\n".join(said[envelope.subtask_id]))
        return questions

    def has_begun(self) -> bool:
        """Whether the request is in the log: without it there is nothing to go on with."""
        log = self.log()
        return log is not None and any(isinstance(each.payload, UserRequest) for each in log.envelopes())

    def has_ended(self) -> bool:
        """Whether its last word is in the log: then there is nothing to go on with."""
        log = self.log()
        return log is not None and any(isinstance(each.payload, FinalResult) for each in log.envelopes())

    def untouched(self) -> bool:
        """Whether no file of the person's was changed: a slow disk may not have a word of the task yet."""
        project = self.home / "project"
        return [path.name for path in project.iterdir()] == ["diary"] and self.text("diary") == BEFORE

    def text(self, name: str) -> str:
        return (self.home / "project" / name).read_text()


@pytest.fixture
async def lives(tmp_path: Path) -> AsyncIterator[Lives]:
    proof, home = tmp_path / "proof", tmp_path / "life"
    proof.mkdir()
    await open_backend(proof)
    program = Path(__file__).with_name("resume_victim.py")
    async with ScriptedServer(answer) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-W",
            "ignore",
            str(program),
            server.base_url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        yield Lives(home, server, process, proof)
        process.stdin.close()
        await process.wait()


async def check(lives: Lives, where: str) -> None:
    """The task came to its end, every act took effect once, all of it is audited and can be taken back."""
    log = lives.log()
    assert log is not None
    result = list(log.envelopes())[-1].payload
    assert isinstance(result, FinalResult), where
    assert (result.directive, result.unmet, result.output) == ("accept", (), TOGETHER), (where, result)
    assert result.changes.state == "applied", (where, result.changes)
    assert lives.text("diary") == f"{BEFORE}tuesday\n", where
    assert lives.text("one.txt") == "first\nsecond\n", where
    assert lives.text("two.txt") == "third\n", where
    assert lives.text("all.txt") == "first\nsecond\nthird\n", where
    replayed = await replay(log)
    assert replayed.difference is None, f"{where}: {replayed.difference}"
    home = lives.home / ".artoo"
    audited = await asyncio.to_thread(verify, audit_directory(home), tasks_directory(home))
    assert audited.sound and audited.task_logs == 1, f"{where}: {audited.problems}"
    await asyncio.to_thread(recover, home)
    taken_back = await asyncio.to_thread(undo, home, replayed.recording.task_id)
    assert taken_back.refused == (), where
    assert lives.untouched(), where


async def killed_at(lives: Lives, kind: str, number: int | str) -> bool:
    """One life to its Nth message, or one of a kind; another to the end. False: the first came to its end."""
    lives.reset()
    ended = await lives.live(f"{kind}:{number}")
    assert ended in (0, DIED)
    if not lives.has_begun():
        assert ended == DIED and lives.untouched(), f"{kind} {number}"
        return True
    if ended == DIED and not lives.has_ended():
        answered, asked = lives.answered(), len(lives.questions())
        assert await lives.live() == 0, f"{kind} {number}"
        again = [question for question in lives.questions()[asked:] if question in answered]
        assert again == [], f"{kind} {number}: {len(again)} answers were asked for twice"
    await check(lives, f"{kind} {number}")
    return ended == DIED


@pytest.mark.parametrize("kind", ["kept", "lost"])
async def test_kill_at_some_messages(lives: Lives, kind: str) -> None:
    """Killed at every 97th message, with and without the log having it, the task ends as if nothing had been."""
    number = 5 if kind == "kept" else 20
    while await killed_at(lives, kind, number):
        number += 97


async def test_kill_at_the_end(lives: Lives) -> None:
    """Although the log has not heard of the result: what was applied is applied once, and the result says so."""
    assert await killed_at(lives, "lost", "FinalResult")


async def test_who_dies_young_is_audited(lives: Lives) -> None:
    """A process that is killed at its first messages has a chain, which says that its process died."""
    lives.reset()
    home = lives.home / ".artoo"
    for deaths in (1, 2):
        assert await lives.live("kept:2") == DIED
        audited = await asyncio.to_thread(verify, audit_directory(home), tasks_directory(home))
        assert audited.sound and audited.task_logs == 1, audited.problems
        assert [(chain.ended, chain.messages > 0) for chain in audited.chains] == [("died", True)] * deaths
    assert await lives.live() == 0
    await check(lives, "after two deaths")


@pytest.mark.torture
@pytest.mark.parametrize("kind", ["kept", "lost"])
async def test_kill_at_every_message(lives: Lives, kind: str) -> None:
    """Killed at each message, the task ends as if nothing had been. The number of moments is printed."""
    number = 1
    while await killed_at(lives, kind, number):
        number += 1
    print(f"\nkill -9 at {number - 1} messages ({kind}), each followed by resume")
    assert number > 60


@pytest.mark.torture
@pytest.mark.parametrize("stride", [7, 11, 13])
async def test_dying_life_after_life(lives: Lives, stride: int) -> None:
    """A task whose every process is killed after a few messages still comes to the same end."""
    lives.reset()
    assert await lives.live(f"kept:{stride}") == DIED
    deaths = 1
    while await lives.live(f"kept:{stride}") == DIED:
        deaths += 1
        assert deaths < 200
    await check(lives, f"{deaths} deaths")
