"""Images of a request: who is shown them, what is refused before anything starts, and what stays of them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import pytest
from scenario import During, Ended, Script, World, nothing, plan, reply, says, shell, subtask, write

from artoo import Artoo, Config
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.execution import ToolCalled
from artoo.contracts.findings import Unconfirmed
from artoo.contracts.request import Turn
from artoo.contracts.solution import FinalResult
from artoo.runtime.app.images import LARGEST_IMAGE, LARGEST_TOGETHER, MOST_IMAGES
from artoo.tasklog.layout import images_directory
from artoo.testing import ScriptedServer, slow

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 60
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
SEEING = {"images": True}


def picture(world: World, name: str = "shot.png", data: bytes = PNG) -> Path:
    path = world.project / name
    path.write_bytes(data)
    return path


def seeing(world: World, **tiers: object) -> Config:
    return world.config(models=tiers or {"brain": SEEING, "tool": SEEING})


async def played(
    world: World,
    script: Script,
    *,
    config: Config | None = None,
    history: Sequence[Turn] = (),
    during: During = nothing,
) -> Ended:
    return await world.play(
        "What stands on it?",
        script,
        config=config or seeing(world),
        options=world.options(images=(picture(world),)),
        history=history,
        during=during,
    )


async def test_planner_executor_and_judge_are_shown_the_image(world: World) -> None:
    """Each of them gets it after its words, as a content part; the prompt names it."""
    script: Script = {
        "Plan": plan(subtask("read the sign"), criteria=["The sign is read."]),
        "ExecutorStep": [write("sign.txt", "EXIT", final=False), says("EXIT", 1)],
        "ValidationReport": {"verdicts": [{"number": 1, "quote": "sign.txt", "verdict": "pass"}]},
    }
    ended = await played(world, script)
    assert [asked.images for asked in ended.requests] == [(URL,)] * 4
    assert all("Attached images, shown after these words: 1. shot.png" in asked.user for asked in ended.requests)
    assert ended.directive == "accept"


async def test_a_picture_can_be_answered_in_one_call(world: World) -> None:
    """The planner replies; tokens that may stand in the picture are no untruths, and nothing confirms them."""
    ended = await played(world, {"Plan": reply("It says “Gate 42” and 1,234.50.")})
    assert ended.contracts == ["Plan"] and ended.result.output == "It says “Gate 42” and 1,234.50."
    assert ended.result.assurance == "unverified"
    assert ended.result.facts[0] == Unconfirmed(looked=False, images=True)


async def test_one_tier_may_see_for_the_other(world: World) -> None:
    """Where only the executor's model takes images, the planner is told so, and the plan can be made."""
    environ = {"BRAIN_MODEL": "words", "TOOL_MODEL": "eyes"}
    script = {"Plan": plan(subtask("read the sign")), "ExecutorStep": says("EXIT")}
    async with ScriptedServer(script) as server:
        urls = {"OPENAI_BASE_URL": server.base_url, **environ}
        async with Artoo(seeing(world, tool=SEEING), environ=urls) as artoo:
            await artoo.run("What stands on it?", images=[picture(world)], options=world.options())
    planner, executor = server.player.requests
    assert not planner.images and "which you are not shown" in planner.user
    assert executor.images == (URL,)


@pytest.mark.parametrize("models", [{}, {"brain": {"images": False}}])
async def test_a_model_that_takes_none_is_said_before_anything_starts(world: World, models: object) -> None:
    """The error names the setting; nothing is asked, nothing is logged."""
    with pytest.raises(ConfigurationError, match=r"models\.brain\.images true"):
        await played(world, {}, config=world.config(models=models))
    assert not (world.home / "tasks").exists()


async def test_what_cannot_be_attached_is_said(world: World) -> None:
    """Text that is called an image, one that is too large, too many, too much together, none at all."""
    large = PNG + b"\0" * LARGEST_IMAGE
    many = [PNG + bytes([number]) for number in range(MOST_IMAGES + 1)]
    much = [PNG + bytes([number]) * (LARGEST_TOGETHER // 5) for number in range(6)]
    cases: list[tuple[list[Path | bytes], str]] = [
        ([picture(world, "a.png", b"hello")], "a.png is no image"),
        ([picture(world, "b.png", large)], "b.png has 5,242,948 bytes"),
        ([world.project / "gone.png"], "No such file"),
        ([world.project], "a directory"),
        (list(many), "at most 8"),
        (list(much), "bytes together; at most 20,971,520"),
    ]
    async with ScriptedServer({}) as server, world.artoo(server.base_url, config=seeing(world)) as artoo:
        for images, said in cases:
            with pytest.raises(ConfigurationError, match=said):
                await artoo.run("Look", images=images, options=world.options())


async def interrupted(world: World) -> FinalResult:
    script: Script = {
        "Plan": plan(subtask("read the sign")),
        "ExecutorStep": lambda asked: (
            slow(says("EXIT", 1), 60.0) if "[1]" in asked.user else shell("echo EXIT", final=False)
        ),
    }

    async def stop(artoo: Artoo, envelope: object) -> None:
        if isinstance(getattr(envelope, "payload", None), ToolCalled):
            artoo.interrupt()

    return (await played(world, script, during=stop)).result


async def test_a_resumed_task_is_shown_it_again(world: World) -> None:
    """From what lies beside the log, although the file itself is gone."""
    first = await interrupted(world)
    (world.project / "shot.png").unlink()
    async with (
        ScriptedServer({"ExecutorStep": says("EXIT", 1)}) as server,
        world.artoo(server.base_url, config=seeing(world)) as artoo,
    ):
        result = await artoo.resume(first.task_id)
    assert result.output == "EXIT"
    assert [asked.images for asked in server.player.requests] == [(URL,)]


@pytest.mark.parametrize("damage", ["gone", "altered"])
async def test_a_task_whose_image_is_lost_does_not_go_on(world: World, damage: str) -> None:
    """It would be another question."""
    first = await interrupted(world)
    [kept] = images_directory(world.home, first.task_id).iterdir()
    if damage == "gone":
        kept.unlink()
    else:
        kept.write_bytes(b"other")
    async with ScriptedServer({}) as server, world.artoo(server.base_url, config=seeing(world)) as artoo:
        with pytest.raises(ConfigurationError, match=r"image shot\.png"):
            await artoo.resume(first.task_id)
