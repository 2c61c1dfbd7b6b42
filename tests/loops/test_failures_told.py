"""What a person is told when something fails: the tool's own words, the cause once, and what can be done."""

from __future__ import annotations

from scenario import Script, World, moves, plan, shell, subtask

from artoo.contracts.solution import StoppedBy
from artoo.testing import Reply


def again(command: str) -> Script:
    """A model that always does the same."""
    return {
        "Plan": lambda _: plan(subtask("do it", tool="shell")),
        "ExecutorStep": lambda _: shell(command),
        "FailureReport": lambda _: moves(),
    }


NO_SUCH = "rm: cannot remove 'none.txt': No such file or directory"


async def test_a_blocked_repeat_does_not_hide_what_the_tool_said(world: World) -> None:
    """Round after round the same command is turned away; the result has what it said when it ran, once."""
    ended = await world.play("delete none.txt", again("rm none.txt"))
    assert ended.told.count(NO_SUCH) == 1
    assert "blocked" not in ended.told
    assert ended.result.tried == ("shell: rm none.txt → error",)


async def test_a_model_that_writes_no_json_is_named(world: World) -> None:
    """The cause is the model's answer, and the person is not asked to say anything more precisely."""
    script: Script = {"Plan": lambda _: Reply("I cannot do that."), "FailureReport": lambda _: moves()}
    ended = await world.play("hello", script)
    assert ended.result.stopped_by is StoppedBy.REPLANS
    assert "gave no valid Plan" in ended.told
    assert "the answer holds no JSON object" in ended.told
    assert ended.result.next_moves == ()


async def test_what_only_a_model_is_told_is_not_shown(world: World) -> None:
    """An act that nobody could allow is named once, without the advice to the model."""
    ended = await world.play("fetch example.com", again("# artoo hosts: example.com\ncurl -sS https://example.com"))
    assert ended.result.stopped_by is StoppedBy.REFUSED_BY_USER
    assert "report it" not in ended.told
    assert "network example.com:443" in ended.told
