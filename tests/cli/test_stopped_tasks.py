"""`artoo status` names tasks that stopped before their end and had changed nothing yet; they can go on."""

from __future__ import annotations

import fcntl
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from artoo.cli.main import main
from artoo.contracts.base import Contract
from artoo.contracts.codec import encode_line
from artoo.contracts.envelope import Envelope
from artoo.contracts.recording import TaskOpened
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, FinalResult, StoppedBy
from artoo.tasklog.layout import part_path, task_directory
from artoo.workspace.settlement.history import SettledRecord, note_settled

CUT, STOPPED, DONE, AGENTS = (f"0198f000-{number}111-7000-8000-000000000001" for number in "1234")


def logged(home: Path, task_id: str, request: str, *more: Contract, standing: bool = False) -> None:
    """A task's log up to some moment."""
    opened = TaskOpened(artoo="0", standing={"AGENT_ROLE": "clerk"} if standing else {})
    asked = UserRequest(text=request, project="/p", workspace="/p")
    path = part_path(task_directory(home, task_id), 0)
    path.parent.mkdir(parents=True)
    lines = [
        encode_line(Envelope(f"{task_id[:-1]}{number}", Role.USER, task_id, datetime.now(UTC), payload))
        for number, payload in enumerate((opened, asked, *more), 2)
    ]
    header = json.dumps({"artoo_task_log": 1, "task_id": task_id, "part": 0}).encode() + b"\n"
    path.write_bytes(header + b"".join(lines))


def ended(task_id: str, stopped_by: StoppedBy | None) -> FinalResult:
    """How a task ended."""
    directive = Directive.ACCEPT if stopped_by is None else Directive.ABANDON
    return FinalResult(task_id=task_id, summary="s", output="", directive=directive, stopped_by=stopped_by)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_what_stopped_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Killed or interrupted, with what to type; not what came to its end, nor an agent's, nor what was put back."""
    logged(home, CUT, "write a")
    logged(home, STOPPED, "write b", ended(STOPPED, StoppedBy.INTERRUPTED))
    logged(home, DONE, "write c", ended(DONE, None))
    logged(home, AGENTS, "write d", standing=True)
    assert main(["status"]) == 0
    told = capsys.readouterr().out
    assert "stopped before their end:" in told and f"artoo resume {CUT[:13]}" in told and "write b" in told
    assert "write c" not in told and "write d" not in told
    note_settled(home, SettledRecord(at=time.time(), task_id=CUT, what="undone", by="person"))
    assert main(["status", "--json"]) == 0
    assert [one["task_id"] for one in json.loads(capsys.readouterr().out)["stopped"]] == [STOPPED]


def test_a_stopped_task_can_be_dismissed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`artoo discard ID` takes it off the list, and `artoo resume` alone does not mean it any more."""
    logged(home, CUT, "write a")
    assert main(["discard", CUT[:13]]) == 0
    assert f"{CUT[:13]} is dismissed" in capsys.readouterr().out
    assert main(["status"]) == 0
    assert "write a" not in capsys.readouterr().out
    assert main(["resume"]) == 2
    assert "no task in" in capsys.readouterr().err
    assert main(["discard", CUT[:13]]) == 2


def test_a_log_without_an_end_says_whether_its_task_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the list of logs does: nobody resumes, or waits for, what is at work or was cut off."""
    logged(home, CUT, "write a")
    assert main(["log", "show", CUT]) == 0
    assert "The task has not ended: it was stopped before its end." in capsys.readouterr().out
    lock = os.open(task_directory(home, CUT) / "lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(["log", "show", CUT]) == 0
        assert "The task has not ended: it is running." in capsys.readouterr().out
    finally:
        os.close(lock)


def test_only_agents_have_stopped(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who resumes what is nobody's but an agent's is told who goes on with it."""
    logged(home, AGENTS, "write d", standing=True)
    assert main(["resume"]) == 2
    assert "only work of standing agents has stopped" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
def test_what_waits_is_shown_although_the_teams_books_cannot_be_read(
    home: Path, capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    """On a full disk, say: what can be applied or dropped is named first, and then what is wrong."""
    logged(home, CUT, "write a")
    (home / "data/agent_activities.db").mkdir(parents=True)
    assert main(["status", *(["--json"] if as_json else [])]) == 1
    told = capsys.readouterr()
    assert "Cannot open the activity database" in told.err
    assert CUT[:13] in told.out
    if as_json:
        found = json.loads(told.out)
        assert [one["task_id"] for one in found["stopped"]] == [CUT]
        assert "activity database" in found["problems"][0]
