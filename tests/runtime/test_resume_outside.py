"""A whole task that dies inside a call that cannot be taken back: what `resume` does about it, end to end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from artoo.contracts.execution import CallStatus, ToolCall, ToolCalled
from artoo.contracts.solution import FinalResult
from artoo.runtime.replay.replay import replay
from artoo.tasklog.layout import tasks_directory
from artoo.tasklog.reader import TaskLogReader
from artoo.testing import Asked, ScriptedServer
from artoo.testing.replies import Scripted

SENT = {
    "text": "it says that it was sent",
    "mode": "verifiable",
    "check": {"check": "output_matches", "regex": "sent"},
}
PLAN = {
    "subtasks": [
        {"sequence": 1, "intent": "send the text hello", "tool": "send", "success_criteria": [SENT]},
    ],
    "task_criteria": [SENT],
}


def answer(asked: Asked) -> Scripted:
    """A model that always tries the same."""
    if asked.contract == "Plan":
        return PLAN
    if asked.contract == "ExecutorStep":
        return {"tool": "send", "input": "hello", "is_final": True}
    return "nothing to say"


@dataclass(slots=True)
class Place:
    home: Path
    server: ScriptedServer

    async def live(self, person: str) -> str:
        program = Path(__file__).with_name("outside_victim.py")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "ignore", str(program), str(self.home), self.server.base_url, person),
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            output, _ = await process.communicate()
        assert process.returncode == (-9 if person == "die" else 0)
        return output.decode()

    def lines(self, name: str) -> list[str]:
        return (self.home / name).read_text().splitlines()

    def log(self) -> TaskLogReader:
        [directory] = tasks_directory(self.home / ".artoo").iterdir()
        return TaskLogReader(directory)

    def calls(self) -> list[ToolCall]:
        payloads = (envelope.payload for envelope in self.log().envelopes())
        return [payload.call for payload in payloads if isinstance(payload, ToolCalled)]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    (tmp_path / "project").mkdir()
    async with ScriptedServer(answer) as server:
        yield Place(tmp_path, server)


async def test_after_a_yes_it_is_done_again(place: Place) -> None:
    """The person is asked whether to do it again, and not a second time for the call itself."""
    await place.live("die")
    result = FinalResult.model_validate_json(await place.live("yes"))
    assert result.directive == "accept"
    assert place.lines("asked") == ["tool send", "do it again: send"]
    assert place.lines("sent") == ["hello", "hello"]
    assert [call.status for call in place.calls()] == [CallStatus.OK]
    assert (await replay(place.log())).difference is None


@pytest.mark.parametrize("who", ["no", "nobody"])
async def test_without_a_yes_it_is_not_done_again(place: Place, who: str) -> None:
    """However often the model tries, in whatever round: it went out once, and nothing says that it was sent."""
    await place.live("die")
    result = FinalResult.model_validate_json(await place.live(who))
    assert result.directive == "abandon"
    assert result.stopped_by in ("refused_by_user", "replans")
    assert place.lines("sent") == ["hello"]
    made = [call for call in place.calls() if call.status is not CallStatus.REFUSED]
    assert made
    assert {call.status for call in made} == {CallStatus.INTERRUPTED}
    assert all("nobody knows whether it took effect" in (call.reason or "") for call in made)
    assert (await replay(place.log())).difference is None
