from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from artoo.llm.dialect import Dialect, FileDialectMemory, Wire
from artoo.llm.transport import TransportReply
from artoo.testing import FakeClock, ScriptedServer

from .asking import STEP, client_of, question


def objection(text: str, status: int = 400) -> TransportReply:
    return TransportReply(status, {}, {"error": {"message": text}})


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "'response_format' of type 'json_schema' is not supported by this model"),
        (400, "This response_format type is unavailable now"),
        (404, "No endpoints found that support the requested parameters"),
        (422, "body.response_format.type: unexpected value"),
        (501, "structured output is not implemented"),
    ],
)
def test_objections_weaken_the_form_once(status: int, text: str):
    """Servers' own words for "not this form" lead to the next weaker one, and end at words alone."""
    first = Dialect().after(objection(text, status), Wire.JSON_SCHEMA)
    assert first is not None
    assert first == Dialect(structure=Wire.JSON_OBJECT)
    second = first.after(objection(text, status), Wire.JSON_OBJECT)
    assert second is not None
    assert second == Dialect(structure=Wire.PROMPTED)
    assert second.after(objection(text, status), Wire.PROMPTED) is None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, "response_format"),
        (401, "response_format needs a key"),
        (429, "response_format"),
        (500, "json_schema broke us"),
        (400, "LLM call cap reached"),
        (400, "max_tokens is too large: 9000"),
        (404, "model not found"),
    ],
)
def test_other_answers_change_nothing(status: int, text: str):
    """Other statuses, and refusals that name nothing of the form, leave the dialect alone."""
    assert Dialect().after(objection(text, status), Wire.JSON_SCHEMA) is None


def test_a_late_objection_does_not_weaken_twice():
    """The refusal of a form that was given up meanwhile does not cost the next one."""
    weaker = Dialect(structure=Wire.JSON_OBJECT)
    assert weaker.after(objection("json_schema unknown"), Wire.JSON_SCHEMA) == weaker


async def test_what_was_learnt_survives_the_process(tmp_path: Path):
    """The next run asks in the right form at once, for a week, and for this server and model only."""
    clock = FakeClock(auto_advance=True)
    file = tmp_path / "cache" / "dialects.json"
    async with ScriptedServer({"Step": [STEP, STEP, STEP]}, refuse=["json_schema"]) as server:
        async with client_of(server, memory=FileDialectMemory(file, clock)) as model:
            assert (await model.ask(question())).requests == 2
        async with client_of(server, memory=FileDialectMemory(file, clock)) as model:
            assert (await model.ask(question())).requests == 1
        clock.advance(timedelta(days=8).total_seconds())
        async with client_of(server, memory=FileDialectMemory(file, clock)) as model:
            assert (await model.ask(question())).requests == 2
        assert FileDialectMemory(file, clock).load("another server") is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"key": 3}', '{"key": {"at": "x"}}', '{"key": {}}'])
async def test_a_damaged_cache_is_an_empty_one(tmp_path: Path, content: str):
    """Nothing in the file can stop a run, and saving repairs it."""
    file = tmp_path / "dialects.json"
    file.write_text(content)
    memory = FileDialectMemory(file, FakeClock())
    assert memory.load("key") is None
    await memory.save("key", Dialect(without=("seed",)))
    assert FileDialectMemory(file, FakeClock()).load("key") == Dialect(without=("seed",))


async def test_an_unwritable_cache_is_no_error(tmp_path: Path):
    """Where the file cannot be written, the process still remembers."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    memory = FileDialectMemory(blocker / "dialects.json", FakeClock())
    await memory.save("key", Dialect(structure=Wire.PROMPTED))
    assert memory.load("key") == Dialect(structure=Wire.PROMPTED)


async def test_processes_share_the_cache_and_it_stays_small(tmp_path: Path):
    """Entries of others survive a save; the oldest beyond the bound go."""
    file = tmp_path / "dialects.json"
    one, other = FileDialectMemory(file, FakeClock()), FileDialectMemory(file, FakeClock())
    assert one.load("a") is None
    assert other.load("a") is None
    await one.save("a", Dialect(structure=Wire.PROMPTED))
    await other.save("b", Dialect())
    assert FileDialectMemory(file, FakeClock()).load("a") == Dialect(structure=Wire.PROMPTED)
    for number in range(256):
        await one.save(str(number), Dialect())
    fresh = FileDialectMemory(file, FakeClock())
    assert fresh.load("a") is None
    assert fresh.load("255") == Dialect()
