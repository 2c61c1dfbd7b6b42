"""Long and steered tasks from request to result. The log of each is replayed when its test ends."""

from __future__ import annotations

from scenario import Script, World, matches, offered, plan, says, shell, subtask

from artoo import Artoo
from artoo.contracts.confirmation import ConfirmationRequest, Words
from artoo.contracts.conversation import Compacted
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ExecutionResult, ToolCalled, ToolStarted
from artoo.contracts.recording import Observed, Source
from artoo.contracts.steering import QuestionAnswered, UserMessage
from artoo.testing import Asked, Reply, native_call


async def test_a_message_is_acted_on_in_the_next_turn(world: World) -> None:
    """It is in the next request, and the result says that it was read."""

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, ToolStarted):
            artoo.send("Name the colour in capitals.")

    world.file("a.txt", "blue\n")
    script = {"Plan": plan(subtask("name it")), "ExecutorStep": [shell("cat a.txt", final=False), says("BLUE", 1)]}
    ended = await world.play("Which colour?", script, during=during)
    first, second = ended.asked("ExecutorStep")
    assert "capitals" not in first.user and "Name the colour in capitals." in second.user
    (message,) = [each.id for each in ended.envelopes if isinstance(each.payload, UserMessage)]
    assert ended.one(ExecutionResult).heard == (message,)
    assert [seen.source for seen in ended.all(Observed)].count(Source.MESSAGES) == 1


async def test_a_hold_interrupts_the_models_turn(world: World) -> None:
    """Its answer never comes; the message after it does, and no call is made twice."""
    asked = 0
    holder: list[Artoo] = []

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        holder[:] = [artoo]
        if isinstance(envelope.payload, UserMessage) and envelope.payload.hold:
            artoo.send("Say it in German.")

    def answer(request: Asked) -> object:
        nonlocal asked
        if request.contract == "Plan":
            return plan(subtask("name it"))
        asked += 1
        if asked == 2:
            holder[0].hold()
            return Reply(text="blue", delay=15.0)
        return shell("cat a.txt", final=False) if asked == 1 else says("blau", 1)

    world.file("a.txt", "blue\n")
    ended = await world.play("Which colour?", answer, during=during)  # pyright: ignore[reportArgumentType]
    assert ended.result.output == "blau" and len(ended.all(ToolCalled)) == 1
    assert "Say it in German." in ended.asked("ExecutorStep")[-1].user


async def test_a_question_to_the_user_is_answered(world: World) -> None:
    """Where a user can answer; the executor goes on with what they said."""
    turns = [native_call({"question": "Which one?"}, "ask_person"), says("It is b.", 1)]
    script = {"Plan": plan(subtask("choose")), "ExecutorStep": turns}

    async def confirm(request: ConfirmationRequest) -> Words:
        return Words(text="b")

    ended = await world.play("Choose one.", script, confirm=confirm)
    first, second = ended.asked("ExecutorStep")
    assert "ask_person" in offered(first) and "The user answers: b" in second.user
    assert ended.one(QuestionAnswered).answer == "b"
    alone = await world.play("Choose one.", {"Plan": plan(subtask("choose")), "ExecutorStep": says("a")})
    assert "ask_person" not in offered(alone.asked("ExecutorStep")[0])


async def test_a_compacted_conversation_goes_on(world: World) -> None:
    """Outputs of older calls leave a line each, and can be read again."""
    steps = [shell(f"seq {number}00000 {number}02000", final=False) for number in range(1, 25)]
    again = native_call({"call": 1}, "recall")
    config = world.config(models={"tool": {"context": 32_768}})
    script: Script = {
        "Plan": plan(subtask("count", matches("24"))),
        "ExecutorStep": [*steps, again, says("24", 1)],
        "Summary": lambda asked: {"goal": "count"},
    }
    ended = await world.play("Count 24 times.", script, config=config)
    assert ended.directive == "accept" and ended.all(Compacted)
    *_, last = ended.asked("ExecutorStep")
    assert "Count 24 times." in last.user and "100001" in last.user
    assert all(called.usage.prompt_tokens < 32_768 for called in ended.all(ModelCalled))


async def test_a_message_during_the_last_turn_is_acted_on(world: World) -> None:
    """The answer that the model was writing is not the end: the message gets a turn, and the log replays so."""
    holder: list[Artoo] = []

    async def during(artoo: Artoo, _: Envelope) -> None:
        holder[:] = [artoo]

    def answer(request: Asked) -> object:
        if request.contract == "Plan":
            return plan(subtask("name it"))
        if "[1] ok" not in request.user:
            return shell("cat a.txt", final=False)
        if "in capitals" in request.user:
            return says("BLUE", 1)
        holder[0].send("Name it in capitals.")
        return Reply(text="blue", delay=1.0)

    world.file("a.txt", "blue\n")
    ended = await world.play("Which colour?", answer, during=during)  # pyright: ignore[reportArgumentType]
    assert ended.result.output == "BLUE"
    assert [seen.source for seen in ended.all(Observed)].count(Source.LAST_MESSAGES) == 1
