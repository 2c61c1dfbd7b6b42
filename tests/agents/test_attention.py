"""The attention controller: urgency within the bound, arrival beyond it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from core_doubles import office
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.agents.board.next_task import WaitingItem, choose
from artoo.agents.board.rows import TaskClaim
from artoo.agents.mail.rows import MailClaim
from artoo.contracts.agents import OPERATOR, Priority
from artoo.testing import FakeClock
from board_work import hand_in, take

BOUND = 1_000

SEED = [
    ("task", Priority.CRITICAL),
    ("mail", Priority.CRITICAL),
    ("mail", Priority.STANDARD),
    ("mail", Priority.BACKGROUND),
    ("task", Priority.STANDARD),
    ("task", Priority.BACKGROUND),
]
"""The order of the seed. A review comes as its task does."""

Kind = Literal["task", "review", "mail"]
Arrival = tuple[int, Kind, Priority]

KINDS: list[Kind] = ["task", "task", "mail", "review"]
kinds = st.sampled_from(KINDS)
arrivals = st.lists(st.tuples(st.integers(0, 5_000), kinds, st.sampled_from(Priority)), max_size=40)


def items(given_arrivals: list[Arrival]) -> list[WaitingItem]:
    """Arrivals in the order in which they came."""
    return [
        WaitingItem(
            "mail" if kind == "mail" else "review" if kind == "review" else "task",
            str(number),
            priority,
            at,
            number,
        )
        for number, (at, kind, priority) in enumerate(sorted(given_arrivals, key=lambda arrival: arrival[0]))
    ]


def level(item: WaitingItem) -> int:
    """Its place in the seed's order."""
    return SEED.index(("mail" if item.kind == "mail" else "task", item.priority))


def served(waiting: list[WaitingItem], every: int) -> list[tuple[int, WaitingItem]]:
    """When each was turned to, if one thing takes `every`."""
    now, left, turns = 0, list(waiting), list[tuple[int, WaitingItem]]()
    while left:
        chosen = choose([item for item in left if item.since_us <= now], now, BOUND)
        if chosen is not None:
            turns.append((now, chosen))
            left.remove(chosen)
        now += every
    return turns


@given(arrivals, st.integers(0, 6_000))
def test_within_the_bound_urgency_decides_and_then_arrival(given_arrivals: list[Arrival], now: int) -> None:
    """Critical tasks, mail by its priority, standard tasks, background tasks; within one, who came first."""
    young = [item for item in items(given_arrivals) if now - BOUND < item.since_us <= now]
    chosen = choose(young, now, BOUND)
    if chosen is None:
        assert not young
        return
    best = min(map(level, young))
    assert chosen == next(item for item in young if level(item) == best)


@given(arrivals, st.integers(1, 400))
@settings(max_examples=300)
def test_nothing_that_came_later_overtakes_what_waited_to_the_bound(
    given_arrivals: list[Arrival], every: int
) -> None:
    """So it waits to the bound, and then for what was there before it and no more: no starvation at any load."""
    turns = served(items(given_arrivals), every)
    assert len(turns) == len(given_arrivals)
    for place, (at, item) in enumerate(turns):
        overdue_from = item.since_us + BOUND
        between = [other for moment, other in turns[:place] if moment >= overdue_from]
        assert all(other.number < item.number for other in between)
        assert at < overdue_from + every * (len(between) + 1)


@pytest.mark.usefixtures("engine")
async def test_work_is_handed_out_in_that_order_and_claimed(tmp_path: Path) -> None:
    """On the real board and mailbox: each piece once, and peeking takes nothing."""
    async with office(tmp_path) as opened:
        background = await opened.board.add("b", OPERATOR, priority=Priority.BACKGROUND, assignee="ada")
        standard = await opened.board.add("s", OPERATOR, assignee="ada")
        mail = await opened.mailbox.send("bob", "ada", "m", priority=Priority.BACKGROUND)
        critical = await opened.board.add("c", OPERATOR, priority=Priority.CRITICAL, assignee="ada")
        peeked = await opened.allocation.peek("ada")
        assert peeked is not None
        assert peeked.id == critical.id
        got: list[str] = []
        while (claim := await opened.allocation.next("ada")) is not None:
            got.append(claim.mail.id if isinstance(claim, MailClaim) else claim.task.id)
        assert got == [critical.id, mail.id, standard.id, background.id]
        assert await opened.allocation.peek("bob") is None


@pytest.mark.parametrize("hours", [0.5, 2.0])
@pytest.mark.usefixtures("engine")
async def test_background_work_comes_when_it_waited_to_the_bound(tmp_path: Path, hours: float) -> None:
    """Under a stream of fresh critical tasks it waits an hour, and is next after that."""
    clock = FakeClock()
    async with office(tmp_path, clock) as opened:
        old = await opened.board.add("old", OPERATOR, priority=Priority.BACKGROUND)
        clock.advance(hours * 3_600)
        new = await opened.board.add("new", OPERATOR, priority=Priority.CRITICAL)
        claim = await opened.allocation.next("ada")
        assert isinstance(claim, TaskClaim)
        assert claim.task.id == (old.id if hours > 1 else new.id)


@pytest.mark.usefixtures("engine")
async def test_seniors_are_given_reviews_and_never_their_own(tmp_path: Path) -> None:
    """A submission waits for whoever may approve it, with the priority of its task."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR)
        await hand_in(opened.database, await take(opened.database, task.id, "cyd"), "done")
        assert await opened.allocation.peek("bob") is None
        await opened.registry.set_trust("cyd", (await opened.registry.get("dot")).trust, OPERATOR)
        assert await opened.allocation.peek("cyd") is None
        peeked = await opened.allocation.peek("dot")
        assert peeked is not None
        assert peeked.kind == "review"
