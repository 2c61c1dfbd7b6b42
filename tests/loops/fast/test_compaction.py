"""A conversation that fills its share of the window is shortened, and nothing that matters is lost."""

from __future__ import annotations

import pytest
from executing import Bench, TableOfTools, bench, shell, turn

from artoo.contracts.conversation import Compacted, Returned, Said, Took
from artoo.contracts.errors import ContextOverflow
from artoo.contracts.events import ModelCalled, Usage
from artoo.contracts.execution import ExecutionResult
from artoo.ports.model import Known

WINDOW = 32_768
GUIDE = "Project rules:\n" + "\n".join(f"- rule {number}: name things plainly" for number in range(120))
SUMMARY: dict[str, object] = {"goal": "count", "done": ["40 parts were read"], "open_points": ["the answer"]}


def part(number: int) -> str:
    """Five kilobytes that can be told apart."""
    return f"part {number}\n" + f"a line of part {number}\n" * 320


PARTS = {f"cat {number}": part(number) for number in range(40)}


async def test_forty_turns_with_much_output_stay_within_the_window() -> None:
    """40 turns and 200 kB: the assignment and the guide are there, an output is read again, the task ends right."""
    turns = [turn(shell(f"cat {number}")) for number in range(40)]
    ends = turn(("recall", {"call": 1})), turn(text="There are 40 parts.")
    async with bench(*turns, *ends, tools=TableOfTools(PARTS), known=Known(window=WINDOW)) as it:
        it.model.answers = [SUMMARY] * 20
        it.give(intent="count the parts", guide=GUIDE, success_criteria=["all parts are counted"])
        result = await it.until(ExecutionResult)
    assert result.output == "There are 40 parts." and len(result.tool_calls) == 40
    assert sum(len(call.output) for call in result.tool_calls) > 200_000
    for shown in it.model.shown:
        opening = shown.messages[0]
        assert isinstance(opening, Said)
        assert GUIDE in opening.text
        assert "count the parts" in opening.text and "all parts are counted" in opening.text
    assert max(tokens(it, number) for number in range(len(it.model.shown))) <= WINDOW
    assert it.model.last[-1] == f"[1] ok\n{part(0).rstrip()}"
    compactions = it.all(Compacted)
    assert compactions and all(each.tokens_after <= WINDOW / 2 < each.tokens_before for each in compactions)
    assert "recall" in [spec.name for spec in it.model.shown[-1].tools]


async def test_between_compactions_the_conversation_only_grows() -> None:
    """A log makes it up again: from a compaction on, everything that was added since."""
    turns = [turn(shell(f"cat {number}")) for number in range(40)]
    async with bench(*turns, turn(text="40"), tools=TableOfTools(PARTS), known=Known(window=WINDOW)) as it:
        it.model.answers = [SUMMARY] * 20
        it.give()
        await it.until(ExecutionResult)
    messages: list[object] = []
    asked = iter(it.model.shown)
    for envelope in it.envelopes:
        match envelope.payload:
            case Compacted() as compacted:
                messages = list(compacted.messages)
            case ModelCalled(contract="ExecutorStep", turn=taken, added=added) if taken is not None:
                messages += added
                assert messages == list(next(asked).messages)
                messages.append(Took(turn=taken))
            case _:
                continue


def tokens(it: Bench, number: int) -> int:
    """A cautious estimate of a prompt."""
    shown = it.model.shown[number]
    return (len(shown.system) + sum(len(each.model_dump_json()) for each in shown.messages)) // 4


async def test_outputs_go_before_turns_are_summarised() -> None:
    """A few long outputs leave a line each; no model is asked for a summary."""
    outputs = {f"cat {number}": "x " * 12_000 for number in range(8)}
    turns = [turn(shell(command)) for command in outputs]
    async with bench(*turns, turn(text="8"), tools=TableOfTools(outputs), known=Known(window=WINDOW)) as it:
        it.give()
        await it.until(ExecutionResult)
    first, *_ = it.all(Compacted)
    assert not first.summarised and not any(called.contract == "Summary" for called in it.all(ModelCalled))
    lines = [each.text for each in first.messages if isinstance(each, Returned)]
    assert lines[0] == "[1] shell cat 0: ok, 1 lines; read again with recall(1)"
    assert len([each for each in first.messages if isinstance(each, Took)]) == len(lines)


async def test_a_refused_prompt_is_compacted_and_asked_again_once() -> None:
    """A server whose window is smaller than was believed; the second refusal is told."""
    outputs = {f"cat {number}": part(number) for number in range(8)}
    turns = [turn(shell(command)) for command in outputs]
    too_long = ContextOverflow("too long", status=400)
    async with bench(*turns, too_long, turn(text="8"), tools=TableOfTools(outputs)) as it:
        it.give()
        result = await it.until(ExecutionResult)
    assert result.output == "8" and len(it.all(Compacted)) == 1
    failed = [called for called in it.all(ModelCalled) if called.error]
    assert [called.failure.nature for called in failed if called.failure] == ["overflow"]


@pytest.mark.parametrize(("counted", "compacted"), [(30_000, True), (1_000, False)])
async def test_the_servers_own_count_decides_where_there_is_one(counted: int, compacted: bool) -> None:
    """An estimate stands only for what came since."""
    async with bench(turn(shell("cat 1")), turn(text="1"), tools=TableOfTools(PARTS)) as it:
        it.model.usage = Usage(prompt_tokens=counted, completion_tokens=10)
        it.give()
        await it.until(ExecutionResult)
    assert bool(it.all(Compacted)) is compacted
