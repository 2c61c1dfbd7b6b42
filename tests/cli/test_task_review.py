"""`artoo task review`: what a submission would change is laid out as at any task's end, and applied as a whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cli_terminal import terminal

from artoo import Artoo, Config
from artoo.agents.identity.folders import create_agent
from artoo.agents.storage.transaction import Writing
from artoo.cli.main import main
from artoo.cli.results.pending_view import waiting_lines
from artoo.contracts.agents import OPERATOR, BoardState, SubmittedWork, TrustLevel
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.changes.pending_changes import Pending
from artoo.team.attempt import begin, hand_in
from artoo.team.by_hand import standing
from artoo.team.office import Office, open_office
from artoo.testing import Asked, ScriptedModel
from artoo.testing.replies import Scripted
from board_work import take

ASK = "[a]pply all, [c]hoose, [k]eep for later, [d]iscard, [s]how again: "


def silent(asked: Asked) -> Scripted:
    """Nothing is asked here."""
    raise AssertionError(asked.contract)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a project that holds one file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("mine\n")
    return tmp_path.resolve()


async def submit(place: Path, *, hands_in: bool = True) -> str:
    """A task whose submission edits that file and waits for the operator; or that is still being worked on."""
    home, project = place / "home", place / "project"
    config = Config.model_validate({"workspace": place / "out", "memory": {"enabled": False}}).at_home(home)
    async with (
        open_office(config) as office,
        Artoo(config, model=ScriptedModel(silent, leftover=True), environ={}) as artoo,
    ):
        identity = create_agent(home, "ada", role="clerk", persona="exact")
        await office.registry.register("ada", OPERATOR, sha256=identity.sha256, trust=TrustLevel.PROBATION)
        task = await office.board.add("edit a.txt", OPERATOR, assignee="ada", project=str(project))
        claim = await take(office.database, task.id, "ada")
        places = RunOptions(project=project, workspace=config.workspace_path)
        attempt = await begin(artoo, office.submissions, task, places)
        await attempt.workspace.write(project / "a.txt", b"theirs\n")
        await attempt.workspace.close()
        if not hands_in:
            return task.id
        work = SubmittedWork(
            board_task=task.id, submission=1, agent="ada", run="run", request=task.text, summary="edited"
        )
        await hand_in(attempt, office.submissions, work, office.clock.now().timestamp(), 30.0)
        await office.board.reviews.submit(claim, "edited")
    return task.id


@pytest.mark.parametrize(
    ("keys", "said", "content", "state"),
    [
        ("a\r", "is completed", "theirs\n", "completed"),
        ("c\r1\ry\r", "approved as a whole", "mine\n", "review"),
    ],
)
def test_in_a_terminal(
    place: Path, capsys: pytest.CaptureFixture[str], keys: str, said: str, content: str, state: str
) -> None:
    """The operator sees the diff and says yes to all of it; anything else changes nothing."""
    task = asyncio.run(submit(place))
    with terminal("reviews", ["task", "review", task, "approve"], place / "home", columns=120) as screen:
        screen.wait_for(ASK)
        assert "edited  project/a.txt" in screen.shown.replace("~/", "") and "+theirs" in screen.shown
        for part in keys.removesuffix("\r").split("\r"):
            screen.send(f"{part}\r")
        screen.wait_for(said)
        assert screen.end() == (0 if state == "completed" else 1)
    assert (place / "project" / "a.txt").read_text() == content
    assert main(["task", "show", task, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == state


def test_without_a_terminal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What needs consent is named, and the digest of what was shown is the consent; `undo` takes it back."""
    task = asyncio.run(submit(place))
    assert main(["task", "review", task, "approve"]) == 1
    assert "a.txt: what is there now is overwritten" in capsys.readouterr().err
    assert main(["task", "show", task]) == 0
    assert "+theirs" in capsys.readouterr().out
    assert main(["task", "show", task, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (change,) = shown["changes"]
    assert (change["change_class"], change["diff"]) == ("edit", ["@@ -1 +1 @@", "-mine", "+theirs"])
    assert main(["task", "review", task, "approve", "--digest", "another"]) == 1
    assert (place / "project" / "a.txt").read_text() == "mine\n"
    assert main(["task", "review", task, "approve", "--digest", shown["digest"]]) == 0
    assert (place / "project" / "a.txt").read_text() == "theirs\n"
    assert main(["undo", task]) == 0
    assert (place / "project" / "a.txt").read_text() == "mine\n"


def test_what_the_team_made_is_named_as_such(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`artoo status` says what was asked of the team, and offers its review and no way around the board; `apply`
    without a name never means it, and `discard` refuses while the board has use for it."""
    task = asyncio.run(submit(place))
    assert main(["status"]) == 0
    told = capsys.readouterr().out
    name = task[:13]
    assert "no pending changes" in told and "a command that was cut off" not in told
    assert f"  {name}  edit a.txt" in told and f"artoo task review {name} approve" in told
    assert f"artoo apply {name}" not in told and f"artoo discard {name}" not in told
    assert main(["diff", task]) == 0
    assert "edit a.txt" in (shown := capsys.readouterr().out) and "artoo task review" in shown
    assert main(["discard", task]) == 2
    assert f"artoo task review {task} reject WHY" in capsys.readouterr().err


def test_applying_by_hand_approves(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who applies all of it by hand has approved it: the board says so. `undo --list` says what was asked, and what
    is put back stands in the task's own history."""
    task = asyncio.run(submit(place))
    assert main(["apply", task, "--yes"]) == 0
    assert f"task {task[:13]}: completed" in capsys.readouterr().out
    assert (place / "project" / "a.txt").read_text() == "theirs\n"
    assert main(["task", "log", task]) == 0
    assert "review -> completed (by operator): applied by hand" in capsys.readouterr().out
    assert main(["task", "move", task, "archived"]) == 0
    capsys.readouterr()
    assert main(["undo", "--list"]) == 0
    assert "edit a.txt" in capsys.readouterr().out
    assert main(["undo", task]) == 0
    capsys.readouterr()
    assert main(["task", "log", task]) == 0
    assert "files restored: 1 (by person)" in capsys.readouterr().out
    assert main(["task", "show", task]) == 0
    assert "files restored: 1" in capsys.readouterr().out


def test_an_approval_keeps_what_was_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What an approval applied says what was asked, when the task is off the board too."""
    task = asyncio.run(submit(place))
    assert main(["task", "show", task, "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)["digest"]
    assert main(["task", "review", task, "approve", "--digest", digest]) == 0
    assert main(["task", "move", task, "archived"]) == 0
    capsys.readouterr()
    assert main(["undo", "--list", "--json"]) == 0
    assert [one["request"] for one in json.loads(capsys.readouterr().out)] == ["edit a.txt"]


def test_what_was_not_handed_in_is_not_applied(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process that died at work leaves half of something: it is shown as the team's, and never applied."""
    task = asyncio.run(submit(place, hands_in=False))
    assert main(["status"]) == 0
    told = capsys.readouterr().out
    assert "edit a.txt" in told and "artoo serve continues it" in told
    assert f"artoo apply {task[:13]}" not in told and "artoo task review" not in told
    assert main(["apply", task, "--yes"]) == 1
    assert "it was not handed in" in capsys.readouterr().err
    assert main(["discard", task, "--yes"]) == 2
    assert (place / "project" / "a.txt").read_text() == "mine\n"


async def _office(place: Path, work: Callable[[Office], Awaitable[object]]) -> object:
    config = Config.model_validate({"workspace": place / "out", "memory": {"enabled": False}})
    async with open_office(config.at_home(place / "home")) as office:
        return await work(office)


async def _fail(office: Office) -> None:
    """The attempt on the only task ends without a result."""
    (task,) = await office.board.list()
    await office.board.work.block(task.id, OPERATOR, "")
    await office.board.release(task.id, OPERATOR)
    await office.board.work.fail(await take(office.database, task.id, "ada"), "out of calls")


def test_a_failed_tasks_files_can_be_taken(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a task had made when it failed is said to be nobody's, and applying it completes the task."""
    task = asyncio.run(submit(place, hands_in=False))
    asyncio.run(_office(place, _fail))
    assert main(["status"]) == 0
    told = capsys.readouterr().out
    assert "its task is failed" in told and "goes on with it" not in told and f"artoo apply {task[:13]}" in told
    assert main(["apply", task, "--yes"]) == 0
    assert f"task {task[:13]}: completed" in capsys.readouterr().out
    assert (place / "project" / "a.txt").read_text() == "theirs\n"


def test_a_cancelled_tasks_files_are_not_gone_on_with(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a cancelled task had made can be dropped at once, and nobody is said to go on with it."""
    task = asyncio.run(submit(place, hands_in=False))
    assert main(["task", "move", task, "cancelled"]) == 0
    capsys.readouterr()
    assert main(["status"]) == 0
    told = capsys.readouterr().out
    assert "its task is cancelled" in told and f"artoo discard {task[:13]}" in told
    assert main(["discard", task, "--yes"]) == 0


def test_the_operator_sides_with_what_was_rejected_too_often(place: Path) -> None:
    """After the fifth rejection the operator may still approve what was handed in."""
    task = asyncio.run(submit(place))

    async def rejected(office: Office) -> None:
        def fifth(writing: Writing) -> None:
            writing.run("UPDATE tasks SET submission = 5 WHERE id = ?", (task,))

        await office.database.write(fifth)
        work = office.submissions.of(task, 1).work()
        assert work is not None
        office.submissions.of(task, 5).keep(work.model_copy(update={"submission": 5}))
        assert (await office.board.reviews.reject(task, OPERATOR, "no")).state.value == "rejected"

    asyncio.run(_office(place, rejected))
    proposal = asyncio.run(_office(place, lambda office: _look(office, task)))
    assert main(["task", "review", task, "approve", "--digest", str(proposal)]) == 0
    assert (place / "project" / "a.txt").read_text() == "theirs\n"


async def _look(office: Office, task: str) -> str:
    proposal = await office.approvals.look(await office.board.get(task))
    assert proposal is not None
    return proposal.digest


def test_new_books_leave_the_work_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When the database is moved away, what the team had made stays, to be taken or dropped; with the
    database back it is reviewed as if nothing had been."""
    task = asyncio.run(submit(place))
    books, away = place / "home" / "data", place / "away"
    books.rename(away)
    asyncio.run(_office(place, Office.sweep))
    assert main(["status"]) == 0
    told = capsys.readouterr().out
    assert "the board does not know its task" in told and f"artoo apply {task[:13]}" in told
    books.rename(place / "new")
    away.rename(books)
    asyncio.run(_office(place, Office.sweep))
    digest = asyncio.run(_office(place, lambda office: _look(office, task)))
    assert main(["task", "review", task, "approve", "--digest", str(digest)]) == 0
    assert (place / "project" / "a.txt").read_text() == "theirs\n"


def test_an_archived_tasks_work_is_swept(place: Path) -> None:
    """What the books say is archived goes at the next start, when a crash had left it."""
    task = asyncio.run(submit(place))

    async def cut(office: Office) -> bool:
        await office.board.cancel(task, OPERATOR)
        await office.board.archive(task, OPERATOR)
        await office.sweep()
        return office.submissions.workspace(task).exists

    assert asyncio.run(_office(place, cut)) is False


def test_without_papers_nothing_is_approved(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A submission whose papers and files are gone is not called done."""
    task = asyncio.run(submit(place))
    asyncio.run(_office(place, lambda office: asyncio.to_thread(office.submissions.discard, task, OPERATOR)))
    assert main(["task", "review", task, "approve"]) == 1
    assert "not there any more" in capsys.readouterr().err
    assert main(["task", "show", task, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "review"


def test_work_in_review_is_not_called_unfinished(tmp_path: Path) -> None:
    """Though its process was cut off before it noted the end, the board has it for review: so it is said to be."""
    left = Pending("0199", 0.0, 1.0, request="edit a.txt", cut_off=True, on_board=True)
    going_on, in_review = (
        "\n".join(waiting_lines((standing(left, state),), tmp_path))
        for state in (BoardState.IN_PROGRESS, BoardState.REVIEW)
    )
    assert "not handed in" in going_on and "approve" not in going_on
    assert "in review" in in_review and "not handed in" not in in_review and "approve" in in_review
