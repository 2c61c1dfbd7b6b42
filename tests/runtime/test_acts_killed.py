"""kill -9 in the middle of calls: whatever moment it is, the next life repeats nothing."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from acts_victim import AFTER, BEFORE, TASK, calls_of

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.execution import CallStatus, ToolCall, ToolCalled
from artoo.tasklog.layout import task_directory
from artoo.tasklog.reader import TaskLogReader
from artoo.workspace.commit import recover, undo
from overlay_here import overlay_backend

DIED = -9


class Lives:
    """A home and the process whose children live and die in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        program = Path(__file__).with_name("acts_victim.py")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(program), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def reset(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        (self.home / "artoo_workspace").mkdir(parents=True)
        (self.home / "project").mkdir()
        (self.home / "project" / "diary").write_text(BEFORE)
        (self.home / "project" / "gone").write_text("to go\n")

    def live(self, fuse: str = "-", again: str = "no") -> int:
        """One life: 0 when it came to its end, DIED when the fuse ended it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{fuse} {again}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def text(self, name: str) -> str:
        path = self.home / name
        return path.read_text() if path.exists() else ""

    def log(self) -> TaskLogReader:
        return TaskLogReader(task_directory(self.home / ".artoo", TASK))

    def calls(self) -> dict[str, list[ToolCall]]:
        found: dict[str, list[ToolCall]] = {}
        for envelope in self.log().envelopes():
            if isinstance(envelope.payload, ToolCalled):
                found.setdefault(envelope.payload.act, []).append(envelope.payload.call)
        return found

    def answered(self) -> Counter[tuple[str, str]]:
        """How often each question about an act was answered, doing it again aside, and the review of the whole."""
        questions = {e.id: e.payload for e in self.log().envelopes() if isinstance(e.payload, ConfirmationRequest)}
        return Counter(
            (questions[e.cause_id].act, questions[e.cause_id].title)
            for e in self.log().envelopes()
            if isinstance(e.payload, ConfirmationAnswer)
            and e.cause_id is not None
            and questions[e.cause_id].review is None
            and all(act.verb != "again" for act in questions[e.cause_id].acts)
        )


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> None:
    asyncio.run(overlay_backend(tmp_path_factory.mktemp("proof").resolve()))


@pytest.fixture
def lives(tmp_path: Path, proved: None) -> Iterator[Lives]:
    one = Lives(tmp_path.resolve() / "home")
    yield one
    one.close()


def check(lives: Lives, again: str) -> None:
    """Every call has one record, none was repeated by artoo itself, and what was applied can be taken back."""
    calls = lives.calls()
    assert sorted(calls) == [f"s1/{number}" for number in range(1, len(calls_of(lives.home)) + 1)]
    assert all(len(records) == 1 for records in calls.values())
    done = {number: calls[f"s1/{number}"][0] for number in (1, 2, 3, 5, 6)}
    for number, call in done.items():
        cut = call.status is CallStatus.INTERRUPTED
        assert cut or call.status in (CallStatus.OK, CallStatus.ERROR), (number, call)
        assert not cut or "was not repeated" in (call.reason or "")
    assert lives.text("project/diary") in (AFTER, BEFORE if done[2].status is CallStatus.INTERRUPTED else AFTER)
    assert lives.text("project/made.txt") in ("new\n", "" if done[3].status is CallStatus.INTERRUPTED else "new\n")
    assert set(lives.answered().values()) <= {1}, "who has answered is not asked again, whatever was lost"
    _check_sent(lives, calls["s1/4"][0], again)
    recover(lives.home / ".artoo")
    if any(call.changes for call in done.values()):
        assert undo(lives.home / ".artoo", TASK).refused == ()
    assert lives.text("project/diary") == BEFORE
    assert lives.text("project/gone") == "to go\n"
    assert not (lives.home / "project" / "made.txt").exists()


def _check_sent(lives: Lives, call: ToolCall, again: str) -> None:
    sent, asked = lives.text("sent").count("hello"), lives.text("asked").count("s1/4 again")
    if call.status is CallStatus.OK:
        assert sent == 1 or (asked and again == "once")
        assert sent <= 1 + asked
    else:
        assert call.status is CallStatus.INTERRUPTED
        assert asked and again == "no" and sent <= 1
        assert "nobody knows" in (call.reason or "")


def kill_at(lives: Lives, kind: str, numbers: range, again: str) -> int:
    """Kills one life at each of the moments, until one lives to its end. Returns how many died."""
    deaths = 0
    for number in numbers:
        lives.reset()
        ended = lives.live(f"{kind}:{number}", again) == 0
        deaths += not ended
        assert ended or lives.live("-", again) == 0, f"the life after {kind}:{number} failed"
        check(lives, again)
        if ended:
            break
    return deaths


def test_kill_at_some_messages(lives: Lives) -> None:
    """Death at every seventh message of a task, before the log has it: nothing is done twice."""
    assert kill_at(lives, "say", range(1, 200, 7), "no") >= 2


def test_kill_at_some_changes(lives: Lives) -> None:
    """Death at every 601st change on disk, in and between calls: nothing is done twice."""
    kill_at(lives, "call", range(1, 3_000, 601), "no")


@pytest.mark.torture
def test_kill_at_each_message(lives: Lives) -> None:
    """The same at each message."""
    assert kill_at(lives, "say", range(1, 200), "no") >= 14


@pytest.mark.torture
@pytest.mark.parametrize("again", ["no", "once"])
def test_kill_at_each_change(lives: Lives, again: str) -> None:
    """Death at every single change on disk: nothing is done twice."""
    print(f"killed at {kill_at(lives, 'call', range(1, 3_000), again)} changes")


@pytest.mark.torture
def test_dying_life_after_life(lives: Lives) -> None:
    """A task that dies in each of many lives, a little later each time, still does everything once."""
    lives.reset()
    deaths = 0
    while lives.live(f"call:{40 + 9 * deaths}") == DIED:
        deaths += 1
        assert deaths < 200
    assert deaths > 3
    check(lives, "no")
