"""The current call: its act, and how the code that carries it out announces that it takes effect now.

A context variable, not a parameter: between the registry, which is given a call's number, and the gate, which knows
the moment from which it takes effect, lies the tool itself, and neither a tool nor a user's function has any use
for the number. Each asyncio task has its own value, so parallel subtasks cannot mix theirs up.
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
"""Returns when everything that was said on the stream before is in the task log; raises NotLogged when it cannot
be there: then nothing may take effect."""


async def nothing_to_keep() -> None:
    """Wait for nothing, because there is no log."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """One call with a ticket. `input` is its input as records show it, `digest` that of the whole call."""

    ticket: Ticket
    input: str
    digest: Callable[[], str]
    durable: Durable = nothing_to_keep


_current: ContextVar[list[UnderWay]] = ContextVar("artoo_call_under_way")
"""The call, or nothing. Whatever is begun meanwhile keeps a copy of the context, a cancelled timer until it would
have rung: the list is emptied when the call ends, so that no such copy keeps a whole task in memory.
"""


@contextmanager
def under_way(call: UnderWay | None) -> Generator[None]:
    """Make `call` the one under way in this asyncio task; None: a call without a record."""
    held = [] if call is None else [call]
    token = _current.set(held)
    try:
        yield
    finally:
        held.clear()
        _current.reset(token)


def current_call() -> UnderWay | None:
    """Return the current call, None if there is none."""
    return next(iter(_current.get(())), None)


def current_act() -> str:
    """Return the id of the current call; empty if there is none."""
    call = current_call()
    return "" if call is None else call.ticket.act


def current_subtask() -> str:
    """Return the subtask of the call under way; empty when there is none."""
    return current_act().rpartition("/")[0]


class Announcing:
    """Marks a tool whose calls announce themselves at the moment from which they may take effect: when consent is
    there, or where changes are staged. The registry announces the calls of all others before they run."""

    __slots__ = ()


async def goes_out(effects: CallEffects) -> None:
    """Announce the call. If it changes something, wait until the log has that: a resumed task must not repeat it.

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
        # On a full disk the task goes on in its workspace, and settlement refuses to apply.
        with suppress(NotLogged):
            await call.durable()


async def kept_so_far() -> None:
    """Wait for the log, before staged changes are applied and after an answer. Raises NotLogged."""
    call = current_call()
    if call is not None:
        await call.durable()


def digest_of_call(*parts: str) -> str:
    """Return the sha256 (hex) of a call: what is run, with all of its input."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()
