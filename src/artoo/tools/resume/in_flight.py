"""The current tool call in a context variable, and the announcement that it takes effect.

The current call is in a context variable instead of a parameter. The registry knows the number of the call, and the
gate knows when the call takes effect. The tool or user's function between them needs neither. Each asyncio task has
its own value, so the calls of parallel subtasks are not mixed up.
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
"""Waits until everything that was published so far is in the task log. Raises NotLogged if that is impossible. Then
no call may take effect."""


async def nothing_to_keep() -> None:
    """Return at once, for a task without a log."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A call that is currently being made, with its ticket. `input` is its input as records show it. `digest`
    returns the digest of the complete input."""

    ticket: Ticket
    input: str
    digest: Callable[[], str]
    durable: Durable = nothing_to_keep


_current: ContextVar[list[UnderWay]] = ContextVar("artoo_call_under_way")
"""A list with the current call, or an empty list. Tasks and timers that begin during a call copy the context and
may outlive the call, so the list is emptied when the call ends. Otherwise such a copy would keep all objects of a
finished task in memory.
"""


@contextmanager
def under_way(call: UnderWay | None) -> Generator[None]:
    """Make `call` the current call of this asyncio task. `call` is None for a call without a record."""
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
    """Return the id of the current call, or "" if there is none."""
    call = current_call()
    return "" if call is None else call.ticket.act


def current_subtask() -> str:
    """Return the subtask of the current call, or "" if there is none."""
    return current_act().rpartition("/")[0]


class Announcing:
    """Marks a tool that announces by itself when a call may take effect, which is after consent or when its changes
    are staged. The registry announces the calls of all other tools before they run."""

    __slots__ = ()


async def goes_out(effects: CallEffects) -> None:
    """Announce that the current call is about to take effect. If it may change something, wait until the
    announcement is logged, because a resumed task must not repeat the call.

    Raises NotLogged if the call reaches outside of the workspace and the announcement cannot be logged.
    """
    call = current_call()
    if call is None:
        return
    outside = effects is CallEffects.OUTSIDE
    call.ticket.announce(Departure(call.input, effects, call.digest() if outside else ""))
    if outside:
        await call.durable()
    elif effects is not CallEffects.NONE:
        # If the log cannot be written (for example because the disk is full), the task continues in its workspace.
        # Settlement then refuses to apply the changes.
        with suppress(NotLogged):
            await call.durable()


async def kept_so_far() -> None:
    """Wait until the log is written. This is called before staged changes are applied, and after answers of the
    user. Raises NotLogged."""
    call = current_call()
    if call is not None:
        await call.durable()


def digest_of_call(*parts: str) -> str:
    """Return the sha256 (hex) of a call, computed from the tool or program and the complete input."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()
