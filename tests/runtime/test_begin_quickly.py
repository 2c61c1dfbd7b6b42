"""A task begins without what it does not need."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from artoo.contracts.request import Turn
from artoo.ports.model import Known
from artoo.runtime.app.mcp import sheltered
from artoo.runtime.app.run_options import listed
from artoo.runtime.config.model import Config
from artoo.runtime.task import start_task as beginning
from artoo.runtime.task.observed_sources import plain


async def test_only_a_conversation_asks_what_became_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread looks at earlier turns; a first request has none, and goes into no thread."""
    threads: list[object] = []

    async def to_thread(work: Any, *given: Any) -> Any:
        threads.append(work)
        return work(*given)

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    looked = beginning._as_it_stands  # pyright: ignore[reportPrivateUsage]
    turn = Turn(input="before", summary="done")
    assert await looked(tmp_path, (), tmp_path) == ()
    assert threads == []
    assert await looked(tmp_path, (turn,), tmp_path) == (turn,)
    assert threads == [beginning.with_what_became]


def test_no_servers_need_no_shelter() -> None:
    """Where a server starts is found out where there is one: no configuration is asked."""
    assert sheltered((), cast("Config", None)) == ()


def test_an_empty_list_is_a_list() -> None:
    """The options that a run mostly has are looked at no further."""
    listed("checks", (), str)
    listed("checks", [], str)


def test_plain_values_stay_as_they_are() -> None:
    """What is seen becomes JSON: simple values themselves, in dataclasses and sequences too."""
    seen = [
        None,
        True,
        2,
        2.5,
        "text",
        ("a", Known(small=True)),
    ]
    found = cast("list[Any]", plain(seen))
    assert found[:5] == [None, True, 2, 2.5, "text"]
    assert found[5] == ["a", {"small": True, "window": 32_768, "images": False, "native": True}]
