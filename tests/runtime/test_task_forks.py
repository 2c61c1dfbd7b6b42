"""The forks of a task's view: which trials are dropped before a join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from artoo.contracts.changes import Clash
from artoo.ports.world import View
from artoo.runtime.hands import Forks


class Told:
    """A view that only notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.fails = False

    def fork(self, name: str) -> Told:
        self.told.append(f"fork {name}")
        return self

    async def drop(self, name: str) -> None:
        self.told.append(f"drop {name}")
        if self.fails:
            raise OSError

    async def join(self, names: Sequence[str]) -> tuple[Clash, ...]:
        self.told.append(f"join {' '.join(names)}")
        return ()


async def test_a_trial_that_was_left_is_dropped_before_its_subtask_is_joined() -> None:
    """One that is forgotten already, or was never begun, is not dropped again."""
    view = Told()
    forks = Forks(cast(View, view))
    forks.fork("a trial")
    await forks.drop("a trial")
    forks.fork("b trial")
    view.fails = True
    with pytest.raises(OSError):
        await forks.drop("b trial")
    view.fails = False
    view.told.clear()
    await forks.join(("a", "b", "c"))
    assert view.told == ["drop b trial", "join a b c"]


async def test_a_task_that_goes_on_drops_what_an_earlier_process_may_have_left() -> None:
    """It cannot know which trials that one had begun."""
    view = Told()
    await Forks(cast(View, view), goes_on=True).join(("a", "b"))
    assert view.told == ["drop a trial", "drop b trial", "join a b"]


async def test_a_fork_that_an_earlier_process_has_joined_is_not_opened_again() -> None:
    """Nobody would join it, and while a fork is open nothing runs in the view below it."""
    view = Told()
    forks = Forks(cast(View, view), goes_on=True, joined=frozenset({"a"}))
    assert forks.of("a") is cast(View, view) and view.told == []
    forks.of("b")
    assert view.told == ["fork b"]
