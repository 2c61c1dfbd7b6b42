from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from artoo.llm.dialect import Dialect, DialectMemory, suspects
from artoo.llm.transport import Json, TransportReply
from artoo.testing import FakeClock, ScriptedServer

from .asking import STEP, client_of, question


def refusal(status: int = 400, **error: object) -> TransportReply:
    return TransportReply(status, {}, cast("dict[str, Json]", {"error": {"message": "no", **error}}))


USED = ("temperature", "json_schema", "system", "max_tokens", "tools", "stream")


@pytest.mark.parametrize(
    ("reply", "first"),
    [
        (refusal(), "temperature"),
        (refusal(param="response_format"), "json_schema"),
        (refusal(param="messages[0].role", message="'system' is no role here"), "system"),
        (refusal(message="unknown field `max_tokens`"), "max_tokens"),
        (refusal(message="Der Parameter stream wird nicht unterstützt"), "stream"),
        (TransportReply(422, {}, {"detail": [{"loc": ["body", "tools", 0], "msg": "?"}]}), "tools"),
    ],
)
def test_what_a_refusal_names_is_left_out_first(reply: TransportReply, first: str):
    """By its fields, then by names that stand in its text; every feature is tried in the end."""
    found = suspects(reply, USED, frozenset())
    assert found[0] == first and sorted(found) == sorted(USED)


async def test_what_was_learnt_survives_the_process(tmp_path: Path):
    """The next run asks in the right form at once, for a week, and for this server and model only."""
    clock = FakeClock(auto_advance=True)
    file = tmp_path / "cache" / "dialects.json"
    async with ScriptedServer({"Step": [STEP, STEP, STEP]}, refuse=["json_schema"]) as server:
        async with client_of(server, memory=DialectMemory(file, clock)) as model:
            assert (await model.ask(question())).requests == 2
        async with client_of(server, memory=DialectMemory(file, clock)) as model:
            assert (await model.ask(question())).requests == 1
        clock.advance(timedelta(days=8).total_seconds())
        async with client_of(server, memory=DialectMemory(file, clock)) as model:
            assert (await model.ask(question())).requests == 2
        assert DialectMemory(file, clock).load("another server") is None


async def test_an_unwritable_cache_is_no_error(tmp_path: Path):
    """Where the file cannot be written, the process still remembers."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    memory = DialectMemory(blocker / "dialects.json", FakeClock())
    await memory.save("key", Dialect("chat", frozenset({"json_schema"})))
    assert memory.load("key") == Dialect("chat", frozenset({"json_schema"}))


async def test_processes_share_the_cache_and_it_stays_small(tmp_path: Path):
    """Entries of others survive a save; the oldest beyond the bound go."""
    file = tmp_path / "dialects.json"
    one, other = DialectMemory(file, FakeClock()), DialectMemory(file, FakeClock())
    assert one.load("a") is None
    assert other.load("a") is None
    await one.save("a", Dialect("chat", frozenset({"json_schema"})))
    await other.save("b", Dialect())
    assert DialectMemory(file, FakeClock()).load("a") == Dialect("chat", frozenset({"json_schema"}))
    for number in range(256):
        await one.save(str(number), Dialect())
    fresh = DialectMemory(file, FakeClock())
    assert fresh.load("a") is None
    assert fresh.load("255") == Dialect()
