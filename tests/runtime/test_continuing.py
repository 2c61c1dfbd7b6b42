"""A follow-up works on what is pending of its conversation, and one review has both."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from artoo import Artoo, Config, RunOptions, RunResult, Turn
from artoo.contracts.solution import StoppedBy
from artoo.testing import Asked, ScriptedModel, with_body
from artoo.testing.replies import Reply, Scripted, slow

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
PLAN = {"subtasks": [{"intent": "change it", "tool": "shell", "success_criteria": [ANSWERED]}]}
FIRST, SECOND = "sed -i s/red/green/ a.txt; cat a.txt", "sed -i s/green/blue/ a.txt; cat a.txt"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("red\n")
    more = {"memory": {"enabled": False}, "workspace": tmp_path / "workspace"}
    return Config.model_validate(more).at_home(tmp_path / "home")


def model(second: Reply) -> ScriptedModel:
    """The first request makes it green, the second runs `second`."""
    steps = iter((with_body({"tool": "shell", "is_final": True}, FIRST), second))

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "TaskSpec":
            return {"task_id": "change", "intent": "Change it again."}
        return PLAN if asked.contract == "Plan" else next(steps)

    return ScriptedModel(answer, leftover=True)


async def two(
    config: Config, project: Path, second: Reply, stop: float = 0.0
) -> tuple[RunResult, RunResult, Artoo]:
    """Both requests, the second as a follow-up; `stop`: after so many seconds it is interrupted."""
    options = RunOptions(project=project)
    with model(second) as scripted:
        async with Artoo(config, environ={}, model=scripted) as artoo:
            before = await artoo.run("Make it green.", options=options)
            history = [before.turn("Make it green.")]
            following = asyncio.ensure_future(artoo.run("Now blue.", history=history, options=options))
            if stop:
                await asyncio.sleep(stop)
                artoo.interrupt()
            return before, await following, artoo


async def test_a_follow_up_works_on_what_is_pending(config: Config, tmp_path: Path) -> None:
    """It sees the change, nothing of the user's differs before a yes, and one apply has both."""
    project = tmp_path / "project"
    step = with_body({"tool": "shell", "is_final": True}, SECOND)
    before, after, artoo = await two(config, project, step)
    assert before.output == "green" and after.output == "blue"
    assert (project / "a.txt").read_text() == "red\n"
    (pending,) = await artoo.pending()
    assert pending.task_id == after.task_id
    assert (await pending.apply()).state == "applied"
    assert (project / "a.txt").read_text() == "blue\n"
    assert await artoo.pending() == ()


async def test_an_interrupted_follow_up_leaves_what_was_pending(config: Config, tmp_path: Path) -> None:
    project = tmp_path / "project"
    step = slow(with_body({"tool": "shell", "is_final": True}, SECOND), 30.0)
    before, after, artoo = await two(config, project, step, stop=1.5)
    assert after.stopped_by is StoppedBy.INTERRUPTED
    kept = {one.task_id: one for one in await artoo.pending()}
    assert (await kept[before.task_id].apply()).state == "applied"
    assert (project / "a.txt").read_text() == "green\n"


async def test_what_conflicts_or_is_of_another_project_is_not_continued(config: Config, tmp_path: Path) -> None:
    """The user has changed the file meanwhile: the follow-up sees the user's version."""
    project = tmp_path / "project"
    step = with_body({"tool": "shell", "is_final": True}, "cat a.txt")
    with model(step) as scripted:
        async with Artoo(config, environ={}, model=scripted) as artoo:
            before = await artoo.run("Make it green.", options=RunOptions(project=project))
            (project / "a.txt").write_text("yellow\n")
            turn = Turn.model_validate_json(before.turn("Make it green.").model_dump_json())
            after = await artoo.run("What is it?", history=[turn], options=RunOptions(project=project))
            assert after.output == "yellow"
            assert [one.task_id for one in await artoo.pending()] == [before.task_id]


async def test_a_follow_up_that_changes_nothing_leaves_it_as_it_is(config: Config, tmp_path: Path) -> None:
    """Its review is not asked for again, and it keeps its task's id."""
    project = tmp_path / "project"
    before, after, artoo = await two(config, project, with_body({"tool": "shell", "is_final": True}, "cat a.txt"))
    assert after.output == "green" and after.changes.state == "none"
    assert [one.task_id for one in await artoo.pending()] == [before.task_id]


async def test_a_follow_up_that_takes_it_back_replaces_it(config: Config, tmp_path: Path) -> None:
    """What is left of both is the file's time."""
    step = with_body({"tool": "shell", "is_final": True}, "sed -i s/green/red/ a.txt; cat a.txt")
    _, after, artoo = await two(config, tmp_path / "project", step)
    (pending,) = await artoo.pending()
    assert after.output == "red" and pending.task_id == after.task_id
    assert [one.detail for one in (await pending.diff()).changes] == ["time"]
