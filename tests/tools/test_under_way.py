"""The call that is under way, and what is left of it."""

from __future__ import annotations

import contextvars
import weakref
from collections.abc import Callable

from artoo.ports.tools import Departure, Ticket
from artoo.tools.resume.in_flight import UnderWay, current_call, under_way


class Task:
    """What a ticket leads to: its executor, with the records of a whole subtask."""

    def announce(self, departure: Departure) -> None:
        """Nobody listens."""


def call_of(announce: Callable[[Departure], None]) -> UnderWay:
    return UnderWay(Ticket("s/1", announce), "input", str)


def test_a_call_is_under_way_within_its_block_alone() -> None:
    """Before and after there is none; a call that nobody keeps a record of is none."""
    call = call_of(Task().announce)
    assert current_call() is None
    with under_way(call):
        assert current_call() is call
        with under_way(None):
            assert current_call() is None
        assert current_call() is call
    assert current_call() is None


def test_what_was_begun_during_a_call_does_not_keep_its_task() -> None:
    """A timer or a thread holds a copy of the context, perhaps for minutes: the task is forgotten all the same."""
    task = Task()
    gone = weakref.ref(task)
    with under_way(call_of(task.announce)):
        kept = contextvars.copy_context()
    del task
    assert gone() is None
    assert kept.run(current_call) is None
