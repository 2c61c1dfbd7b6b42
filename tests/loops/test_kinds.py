"""The kind of a request, and what a task may teach: whole tasks on a real store."""

from __future__ import annotations

from contextlib import aclosing

from scenario import Ended, World, matches, plan, shell, subtask, write

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.memory import MemoryWritten
from artoo.contracts.plan import Plan
from artoo.runtime.app.system import SystemClock
from artoo.runtime.memory.books import opened_books
from artoo.testing import Asked, ScriptedServer
from artoo.testing.replies import Scripted


def unwilling(asked: Asked) -> Scripted:
    """Greps for what is not there, in every round."""
    if asked.contract == "Plan":
        return plan(subtask("grep it", matches(r"\d{3}", "three digits"), tool="shell"))
    return shell("grep -c nothing a.txt")


def label(name: str, *subtasks: dict[str, object]) -> dict[str, object]:
    """A plan with a label for the kind of request."""
    return {"kind": name, **plan(*subtasks)}


async def taught(world: World, ended: Ended) -> list[tuple[str, str, str]]:
    """What a task wrote into memory."""
    return [(each.state.value, each.space, each.entity) for each in ended.all(MemoryWritten)]


async def test_a_label_of_the_plan_joins_requests_of_other_words(world: World) -> None:
    """R2 is shown the known labels, and what such requests taught counts for the one that is given the same."""
    world.file("a.txt", "a\nb\n")
    counted = subtask("count", matches(r"\d", "a number"), tool="shell")
    script = {"Plan": label("count lines", counted), "ExecutorStep": shell("wc -l < a.txt")}
    await world.play("How many lines has a.txt?", script)

    seen: list[str] = []

    def planner(asked: Asked) -> Scripted:
        if asked.contract != "Plan":
            return shell("wc -l < a.txt")
        seen.append(asked.user)
        return label("Count lines", counted)

    second = await world.play("How long is a.txt, in lines?", planner)
    assert 'count lines: "How many lines has a.txt?"' in seen[0]
    assert second.all(Plan)[0].label == "count_lines"
    assert ("accept", "tool:shell:wc", "intent:count_lines") in await taught(world, second)


async def test_another_label_is_not_bound_by_the_guess(world: World) -> None:
    """Where R2 says that a similar request is of another kind, what the similar ones forbade does not bind it."""
    world.file("a.txt", "a\n")
    for noun in ("apples", "pears", "plums", "figs"):
        await world.play(f"What is the number of {noun} in a.txt?", unwilling)

    def otherwise(asked: Asked) -> Scripted:
        found = unwilling(asked)
        return {**found, "kind": "name of fruit"} if asked.contract == "Plan" else found  # pyright: ignore

    ended = await world.play("What is the number of nuts in a.txt?", otherwise)
    assert not ended.all(Plan)[0].must_not.tools


async def test_what_was_discarded_is_no_success(world: World) -> None:
    """The check holds and the user says no to the change: nothing with a positive value is written."""
    world.file("a.txt", "old\n")
    made = plan(
        subtask("write", {"text": "new", "check": {"check": "file_matches", "path": "a.txt", "regex": "new"}})
    )
    script = {"Plan": made, "ExecutorStep": write("a.txt", "new\n")}

    async def no(request: ConfirmationRequest) -> Consent:
        return Consent.DISCARD

    ended = await world.play("Write new into a.txt", script, confirm=no)
    assert ended.result.changes.state == "discarded"
    assert [each for each in ended.all(MemoryWritten) if each.sigma > 0] == []


async def test_a_one_shot_run_dreams_when_a_pass_is_due(world: World) -> None:
    """After the result a short pass without a model is made, and not again within five minutes."""
    world.file("a.txt", "a\n")
    script = {
        "Plan": plan(subtask("count", matches(r"\d", "a number"), tool="shell")),
        "ExecutorStep": shell("wc -l < a.txt"),
    }
    clock = SystemClock()
    for _ in range(2):
        async with ScriptedServer(script) as server, world.artoo(server.base_url) as artoo:
            stream = artoo.stream("How many lines has a.txt?", options=world.options())
            async with aclosing(stream):
                async for _envelope in stream:
                    pass
            began = clock.monotonic()
            await artoo.dream_briefly()
            assert clock.monotonic() - began < 2.0
    async with opened_books(world.config()) as books:
        (report,) = (await books.overview(clock.now())).reports
    assert report.finished and report.examined > 0 and report.drafts_skipped == 0
