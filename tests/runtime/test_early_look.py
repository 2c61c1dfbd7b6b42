"""The first look at the surroundings is taken while R1 reads, and used once."""

from __future__ import annotations

import asyncio

from artoo.ports.surroundings import Surroundings
from artoo.runtime.task.task_run import EarlyLook

REQUEST = "count the files"


class Looked:
    """A source that says what it was asked, and how often (implements SurroundingsSource)."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def look(self, request: str) -> Surroundings:
        self.asked.append(request)
        self.begun.set()
        await self.open.wait()
        return Surroundings(listing=f"{len(self.asked)}: {request}")


async def test_the_first_look_is_there_before_it_is_asked_for() -> None:
    """R2's first look costs no second one, and every later look is fresh."""
    source = Looked()
    early = EarlyLook(source, REQUEST)
    await early.run()
    assert source.asked == [REQUEST]
    assert (await early.look(REQUEST)).listing == f"1: {REQUEST}"
    assert (await early.look(REQUEST)).listing == f"2: {REQUEST}"


async def test_other_words_are_looked_up_afresh() -> None:
    """What R1 made of the request may name other files: the early look does not answer for them."""
    source = Looked()
    early = EarlyLook(source, REQUEST)
    await early.run()
    assert (await early.look("count the CSV files")).listing == "2: count the CSV files"
    assert (await early.look(REQUEST)).listing == f"3: {REQUEST}"
