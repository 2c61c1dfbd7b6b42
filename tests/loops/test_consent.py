"""Law 1 through a whole task: asked on the stream, answered by a person, a policy, or nobody."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from scenario import World, matches, plan, shell, subtask

from artoo import Artoo
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, CorrectionSignal
from artoo.contracts.solution import PlanDirective
from artoo.testing import Reply
from artoo.workspace.commit import undo
from overlay_here import overlay_backend

SERVER = Path(__file__).parents[1] / "tools" / "mcp_server.py"


@pytest.fixture(autouse=True)
async def _staging(world: World) -> None:
    await overlay_backend(world.home)


class Person:
    """Gives one answer to everything, and remembers what was asked."""

    def __init__(self, consent: Consent, seconds: float = 0.0) -> None:
        self.consent = consent
        self.asked: list[ConfirmationRequest] = []
        self._seconds = seconds

    async def __call__(self, request: ConfirmationRequest) -> Consent:
        self.asked.append(request)
        await asyncio.sleep(self._seconds)
        return self.consent


DELETE = {
    "Plan": plan(subtask("Delete old.txt", matches("gone"))),
    "ExecutorStep": shell("rm old.txt && echo gone"),
}


async def test_a_yes_is_on_the_stream_and_takes_effect(world: World) -> None:
    """Question and answer are bound by the digest; the act is done and can be put back."""
    old = world.file("old.txt", "mine\n")
    person = Person(Consent.ONCE)
    ended = await world.play("Delete old.txt and say gone", DELETE, confirm=person)
    assert ended.directive == "accept"
    assert not old.exists()
    question, answer = ended.one(ConfirmationRequest), ended.one(ConfirmationAnswer)
    assert (answer.digest, answer.by) == (question.digest, "person")
    assert "[LAW1]" not in ended.result.summary
    assert undo(world.home, ended.result.task_id).restored == (str(old),)
    assert old.read_text() == "mine\n"


async def test_a_persons_no_keeps_what_was_done(world: World) -> None:
    """The task is done in its view, one question is asked at its end, and the person's file is as it was."""
    old = world.file("old.txt", "mine\n")
    person = Person(Consent.NO)
    ended = await world.play("Delete old.txt and say gone", DELETE, confirm=person)
    assert (ended.directive, ended.result.changes.state) == ("accept", "pending")
    assert ended.all(CorrectionSignal) == ended.all(PlanDirective) == []
    assert len(person.asked) == 1
    assert old.read_text() == "mine\n"
    assert (ended.calls[0].status, ended.calls[0].changes) == (CallStatus.OK, (str(old),))


async def test_without_a_person_the_difference_waits(world: World) -> None:
    """Later steps of the task see what earlier ones did; nothing of it takes effect while nobody has agreed."""
    old = world.file("old.txt", "b\na\n")
    script = {
        "Plan": plan(
            subtask("put the lines in order", tool="shell"),
            subtask("show all of the file", matches("^a"), tool="shell", sequence=2),
            criteria=[matches("a")],
        ),
        "ExecutorStep": [shell("sort -o old.txt old.txt && head -1 old.txt"), shell("cat old.txt")],
    }
    ended = await world.play("Do both, in this order.", script)
    assert (ended.directive, ended.result.changes.state) == ("accept", "pending")
    assert ended.calls[1].output == "a\nb\n"
    assert old.read_text() == "b\na\n"


@pytest.mark.parametrize("where", ["options", "config"])
async def test_a_policy_permits_what_it_names(world: World, where: str) -> None:
    """A line of the configuration or of --allow answers, and the stream says which."""
    old = world.file("old.txt", "mine\n")
    lines = ("delete old.*",)
    more = {"options": world.options(allow=lines)} if where == "options" else {"config": world.config(allow=lines)}
    ended = await world.play("Delete old.txt and say gone", DELETE, **more)  # pyright: ignore[reportArgumentType]
    assert ended.directive == "accept"
    assert ended.one(ConfirmationAnswer).by == "policy: delete old.*"
    assert not old.exists()


async def test_an_interrupt_ends_an_open_question(world: World) -> None:
    """The task ends while the review is open; nothing took effect, and no dialogue is left."""
    old = world.file("old.txt", "mine\n")
    person = Person(Consent.ONCE, seconds=60.0)

    async def stop(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, ConfirmationRequest):
            artoo.interrupt()

    ended = await world.play("Delete old.txt and say gone", DELETE, confirm=person, during=stop)
    assert ended.result.changes.state == "pending"
    assert old.exists()


def call_of(tool: str, text: str) -> Reply:
    """A step that calls a tool with one text."""
    return Reply(json.dumps({"tool": tool, "input": text, "is_final": True}))


@pytest.mark.parametrize("consent", [Consent.ONCE, Consent.NO])
async def test_a_projects_servers_need_a_yes(world: World, consent: Consent) -> None:
    """What a project's .mcp.json would start is shown before anything else, and started only after a yes."""
    entry = {"command": sys.executable, "args": [str(SERVER)], "env": {"TOKEN": "s3cret"}}
    world.file(".mcp.json", json.dumps({"mcpServers": {"notes": entry}}))
    person = Person(consent)
    agreed = consent is Consent.ONCE
    step = call_of("notes_total", '{"a": 2, "b": 3}') if agreed else shell("expr 2 + 3")
    script = {"Plan": plan(subtask("Add 2 and 3", matches("5"))), "ExecutorStep": step}
    ended = await world.play("Add 2 and 3", script, confirm=person)
    assert ended.directive == "accept"
    question, *of_tools = person.asked
    assert len(of_tools) == agreed  # the yes to a server is none to what its tools do
    assert question.source == str(world.project / ".mcp.json")
    assert str(SERVER) in question.details[0]
    assert "s3cret" not in question.details[0]
    assert (ended.calls[0].tool == "notes_total") is agreed
