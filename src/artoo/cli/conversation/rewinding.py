"""`/rewind`, which undoes the last exchanges with their changes, and `/fork`, which copies a conversation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from artoo.cli.conversation.yes_no import agreed
from artoo.cli.display.sanitize import asked_line, show
from artoo.cli.display.screen import show_lines
from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.contracts.request import Turn
from artoo.runtime.config.model import Config
from artoo.runtime.task.conversations import Session, open_session
from artoo.sandbox.reading.programs import own_environment, own_python


async def rewind(session: Session, config: Config, arguments: Sequence[str]) -> None:
    """Undo the last exchanges together with their changes, and remove them from the conversation. Their number is 1
    or the argument.

    The latest task comes first. Its pending changes are discarded, and its applied changes are undone. If a task
    cannot be undone, its exchange and all earlier ones stay, and ConfigurationError is raised. It is also raised
    for an invalid number.
    """
    turns = session.exchanges
    dropped = turns[len(turns) - _count(arguments, len(turns)) :]
    states = await asyncio.to_thread(_states, config, dropped)
    lines = [f"  {asked_line(turn.input)} {states[turn.task_id or '']}".rstrip() for turn in dropped]
    show_lines(["Takes back, the latest last:", *lines], sys.stderr)
    if not await agreed("Rewind? [y]es, [N]o: "):
        return
    for turn in reversed(dropped):
        for verb in _verbs(states[turn.task_id or ""]):
            if await run_artoo([verb, turn.task_id or "", "--yes"]):
                raise ConfigurationError(f"the conversation stays at: {asked_line(turn.input)}")
        session.forget_last()
    left = session.exchanges
    show(f"The conversation ends with: {asked_line(left[-1].input)}" if left else "The conversation is empty.")


def fork(session: Session, config: Config, arguments: Sequence[str]) -> Session:
    """Return a new conversation that begins with a copy of this one. The arguments may be NAME and a number.

    The number says how many of the last exchanges are left out. Files and pending changes stay as they are. Raises
    ConfigurationError if the name is taken.
    """
    turns = session.exchanges
    numbers = [each for each in arguments if each.isdecimal()]
    names = [each for each in arguments if not each.isdecimal()]
    kept = turns[: len(turns) - _count(numbers, len(turns))] if numbers else turns
    forked = open_session(config.home, name=names[0] if names else None)
    if forked.exchanges:
        raise ConfigurationError(f"there is a conversation {forked.name!r} already; /fork another name")
    for turn in kept:
        forked.add(turn.input, turn.summary, turn.task_id or "", turn.project)
    show(f"This is the conversation {forked.name} now; the other one: artoo --session {session.name}")
    return forked


def _count(arguments: Sequence[str], most: int) -> int:
    """Return the number of exchanges that the arguments contain. It is 1 if they contain none. Raises
    ConfigurationError."""
    said = arguments[0] if arguments else "1"
    if not said.isdecimal() or not 1 <= int(said) <= most:
        raise ConfigurationError(f"{said!r} is no number of exchanges; this conversation has {most}")
    return int(said)


def _states(config: Config, turns: Sequence[Turn]) -> dict[str, str]:
    """Return a note for each task about its applied and pending changes, such as `(applied)`. Blocks."""
    from artoo.runtime.changes.find_pending import pendings
    from artoo.runtime.changes.undo import can_be_undone
    from artoo.workspace.directory import Workspaces
    from artoo.workspace.settlement.continuing import continued

    try:
        undoable = {one.task_id for one in can_be_undone(config)}
        pending = {one.task_id for one in pendings(config)}
    except ArtooError as error:
        raise ConfigurationError(f"changes cannot be undone: {error}") from error
    named = {(True, True): "(applied, and pending)", (True, False): "(applied)", (False, True): "(pending)"}
    ids = [turn.task_id or "" for turn in turns]
    states = {one: named.get((one in undoable, one in pending), "") for one in ids}
    # A follow-up task has taken over earlier pending changes, so these are discarded together with its own.
    places = Workspaces(config.home)
    whole = (one for one in ids if one in pending and continued(places.directory(one)) is not None)
    return states | {one: f"{states[one]}, with what was pending before" for one in whole}


def _verbs(state: str) -> list[str]:
    return [verb for verb, word in (("discard", "pending"), ("undo", "applied")) if word in state]


async def run_artoo(arguments: Sequence[str]) -> int:
    """Run artoo in a new process on this terminal. A process can open its stores only once, and this one has opened
    them."""
    process = await asyncio.create_subprocess_exec(*own_python("-m", "artoo", *arguments), env=own_environment())
    return await process.wait()
