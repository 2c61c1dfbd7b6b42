"""The current tool call in a context variable, and the announcement that it takes effect.

The call is in a context variable and not a parameter. The registry receives its number, and the gate knows when it
takes effect, but the tool or user's function between them has no use for the number. Each asyncio task has its own
value, so parallel subtasks do not mix up their calls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from artoo.contracts.errors import NotLogged
from artoo.contracts.execution import CallEffects
from artoo.ports.tools import Departure, Ticket

Durable = Callable[[], Awaitable[None]]
"""Waits until everything published so far is in the task log. Raises NotLogged if it cannot be logged; then nothing
may take effect."""


async def nothing_to_keep() -> None:
    """Return at once, because there is no log."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """One call with a ticket. `input` is its input as records show it, `digest` returns the digest of all of it."""

    ticket: Ticket
    input: str
    digest: Callable[[], str]
    durable: Durable = nothing_to_keep


_current: ContextVar[list[UnderWay]] = ContextVar("artoo_call_under_way")
"""The current call in a list, or an empty list. Tasks and timers begun during the call copy the context and may
outlive it, so the list is emptied when the call ends. Otherwise a copy would keep a whole task in memory.
"""


@contextmanager
def under_way(call: UnderWay | None) -> Generator[None]:
    """Make `call` the current call of this asyncio task; None for a call without a record."""
    held = [] if call is None else [call]
    token = _current.set(held)
    try:
        yield
    finally:
        held.clear()
        _current.reset(token)


def current_call() -> UnderWay | None:
    """Return the current call, or None."""
    return next(iter(_current.get(())), None)


def current_act() -> str:
    """Return the id of the current call; empty if there is none."""
    call = current_call()
    return "" if call is None else call.ticket.act


def current_subtask() -> str:
    """Return the subtask of the current call; empty if there is no call."""
    return current_act().rpartition("/")[0]


class Announcing:
    """Marker for a tool that itself announces when a call may take effect, that is, after consent or when its
    changes are staged. The registry announces the calls of all other tools before they run."""

    __slots__ = ()


async def goes_out(effects: CallEffects) -> None:
    """Announce the call. If it changes something, wait until that is logged: a resumed task must not repeat it.

    Raises NotLogged for a call that reaches outside.
    """
    call = current_call()
    if call is None:
        return
    outside = effects is CallEffects.OUTSIDE
    call.ticket.announce(Departure(call.input, effects, call.digest() if outside else ""))
    if outside:
        await call.durable()
    elif effects is not CallEffects.NONE:
        # If the disk is full, the task continues in its workspace, and settlement refuses to apply the changes.
        with suppress(NotLogged):
            await call.durable()


async def kept_so_far() -> None:
    """Wait until the log is written, before staged changes are applied and after answers. Raises NotLogged."""
    call = current_call()
    if call is not None:
        await call.durable()


def digest_of_call(*parts: str) -> str:
    """Return the sha256 (hex) of a call, over the tool or program and its whole input."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()
