"""A request that was cut off and resumed is an exchange of the conversation in which it was made."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from artoo.cli.display import run_task as running
from artoo.cli.main import main
from artoo.contracts.base import Contract
from artoo.contracts.criteria import Assurance
from artoo.contracts.envelope import Envelope
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, FinalResult
from artoo.runtime.task.conversations import open_session

TASK = "0198f000-1111-7000-8000-000000000001"
REQUEST = UserRequest(text="write a.txt", project="/p", workspace="/p")
DONE = FinalResult(task_id=TASK, summary="written", output="a.txt is written", directive=Directive.ACCEPT)


def said(payload: Contract, by: Role) -> Envelope:
    """A message of that task."""
    return Envelope(f"m-{by.value}", by, TASK, datetime.now(UTC), payload)


class Forgetful:
    """A runtime without memory."""

    async def dream_briefly(self) -> None:
        """There is nothing to tidy up."""


class Cut(Forgetful):
    """A runtime whose tasks die after their first word, and are done when they are resumed."""

    async def stream(self, text: str, **_: object) -> AsyncGenerator[Envelope]:
        yield said(REQUEST, Role.USER)
        raise KeyboardInterrupt

    async def stream_resumed(self, task_id: str | None = None) -> AsyncGenerator[Envelope]:
        yield said(REQUEST, Role.USER)
        yield said(DONE, Role.SOLVER)


def play(runtime: Forgetful, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `artoo` run with this runtime."""

    @asynccontextmanager
    async def opened(*_: object) -> AsyncGenerator[Forgetful]:
        yield runtime

    monkeypatch.setattr(running, "open_runtime", opened)


def test_a_resumed_task_is_in_its_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its place is on disk from its beginning, with no answer; the answer is there when it was resumed, once."""
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path))
    play(Cut(), monkeypatch)
    open_session(tmp_path, name="trip").add("before", "done", "another")
    assert main(["run", "--session", "trip", "write a.txt"]) == 130
    assert [turn.input for turn in open_session(tmp_path, name="trip").turns] == ["before"]
    for _ in range(2):
        assert main(["resume", TASK]) == 0
    (_, turn) = open_session(tmp_path, name="trip").turns
    assert (turn.input, turn.task_id) == ("write a.txt", TASK) and "a.txt is written" in turn.summary
    assert "a.txt is written" in capsys.readouterr().out


def test_strict_counts_when_a_task_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nothing has confirmed is delivered, and is no success: as in `artoo run --strict`."""
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path))
    play(Cut(), monkeypatch)
    assert DONE.assurance is Assurance.UNVERIFIED
    assert main(["resume", "--strict", TASK]) == 1
    assert main(["resume", TASK]) == 0


def test_a_task_of_no_conversation_is_resumed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written where nothing was begun."""
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path))
    play(Cut(), monkeypatch)
    assert main(["resume", TASK]) == 0 and not (tmp_path / "sessions").exists()


def test_a_conversation_in_a_directory_whose_name_is_no_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is kept as any other, and gone on with there."""
    place = tmp_path / os.fsdecode(b"caf\xe9")
    place.mkdir()
    monkeypatch.chdir(place)
    request = REQUEST.model_copy(update={"project": str(place)})

    class Done(Forgetful):
        async def stream(self, text: str, **_: object) -> AsyncGenerator[Envelope]:
            yield said(request, Role.USER)
            yield said(DONE, Role.SOLVER)

    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home"))
    play(Done(), monkeypatch)
    assert main(["run", "write a.txt"]) == 0, capsys.readouterr().err
    assert main(["run", "--continue", "and b.txt"]) == 0, capsys.readouterr().err
    kept = open_session(tmp_path / "home", latest=True)
    assert (kept.project, [turn.task_id for turn in kept.turns]) == (str(place), [TASK])
