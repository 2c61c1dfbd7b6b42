"""Find a pending task by id or path, and word the pending changes of `artoo status` (age, commands)."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from artoo.cli.display.sanitize import asked_line
from artoo.cli.results.relative_paths import Here
from artoo.cli.results.task_names import name_at
from artoo.cli.review.layout import waiting_line
from artoo.contracts.agents import BoardState
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.app.task_ids import SHORTEST, named, short_name
from artoo.team.by_hand import UNKNOWN
from artoo.words.catalogue import ENGLISH
from artoo.words.shown import local_time

if TYPE_CHECKING:
    from artoo.runtime.changes.pending_changes import Pending
    from artoo.runtime.config.model import Config

T = TypeVar("T")

JsonObject = dict[str, object]

CUT_OFF = "cut off before its end"
NOT_KNOWN = "the board does not know its task (new books, or an old copy)"
NOT_HANDED_IN = "not handed in: artoo serve continues it"
IN_REVIEW = "handed in, and in review"
_AN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f-]*)?")
_WHERE = "artoo status lists the pending changes"


def settling_commands(one: Pending, name: str) -> dict[str, str]:
    """Return the commands that show, apply or discard pending changes, by their verbs. `name` is the name of the
    task."""
    if one.outdated:
        return {"discard": f"artoo discard {name}"}
    if one.on_board and not one.forsaken:
        return _on_the_board(one, name)
    # If there is a conflict, nothing is applied without --rest.
    apply = f"artoo apply {name}{' --rest' if one.conflicts else ''}"
    if one.stands == BoardState.FAILED:
        again = {"again": f"artoo task move {name} pending WHY"}
        return {"diff": f"artoo diff {name}", "apply": apply, **again}
    verbs = ("diff", *(["resume"] if one.resumable else [] if one.only_conflicts else ["apply"]), "discard")
    return {verb: apply if verb == "apply" else f"artoo {verb} {name}" for verb in verbs}


def _on_the_board(one: Pending, name: str) -> dict[str, str]:
    """Return the commands for a task of the team, whose changes are approved or rejected by a review."""
    looks = {"diff": f"artoo diff {name}", "show": f"artoo task show {name}"}
    if one.cut_off and one.stands != BoardState.REVIEW:
        return looks
    review = f"artoo task review {name}"
    return {**looks, "approve": f"{review} approve", "reject": f"{review} reject WHY"}


def all_waiting(config: Config) -> tuple[Pending, ...]:
    """List all pending changes, oldest first. Before that, interrupted operations are recovered. Raises
    SandboxError."""
    from artoo.runtime.changes.find_pending import pendings
    from artoo.runtime.changes.startup_recovery import recover_earlier

    recover_earlier(config)
    found = pendings(config)
    if not any(one.on_board for one in found):
        return found
    from artoo.team.by_hand import as_they_stand

    return asyncio.run(as_they_stand(config, found))


def the_task(task: str | None, found: tuple[Pending, ...], *, only: bool = False) -> Pending:
    """Return the pending task whose id begins with `task`.

    If `task` is None, return the latest task. With `only`, return the only task instead. Tasks that have ended are
    preferred.

    Raises ConfigurationError if no task fits, or if more than one does.
    """
    if task is None:
        if not found:
            raise ConfigurationError(f"{ENGLISH('Nothing is pending.')} {_WHERE}")
        found = tuple(one for one in found if not one.on_board) or found
        ended = tuple(one for one in found if not one.cut_off) or found
        if only and len(ended) > 1:
            raise ConfigurationError(f"{len(ended)} tasks are pending; name one: {_WHERE}")
        return max(ended, key=lambda one: one.since)
    by_id = {one.task_id: one for one in found}
    return by_id[named(task, list(by_id), "no pending changes of a task", _WHERE)]


def task_and_paths(
    task: str | None, paths: tuple[str, ...], found: tuple[Pending, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """Split the words into a task and paths. The first word is a path, unless the id of a pending task begins with
    it.

    If the first word has the form of an id, and no file here has that name, it names a task without pending
    changes.
    """
    if task is None or not found or any(one.task_id.startswith(task) for one in found):
        return task, paths
    if _AN_ID.fullmatch(task) and not os.path.lexists(task):
        return task, paths
    return None, (task, *paths)


async def with_the_task(
    config: Config,
    task: str | None,
    paths: tuple[str, ...] | None,
    found: tuple[Pending, ...],
    work: Callable[[Pending, tuple[str, ...]], Awaitable[T]],
    *,
    only: bool = False,
    applying: bool | None = False,
) -> T:
    """Run `work` with the pending task and the paths that the user has typed. The task may be one of another
    machine.

    If `paths` is None, the command takes no paths. `applying`: true if the changes are to be applied, None if they
    are to be discarded. Raises ConfigurationError in the same cases as `the_task`. Also raises it if a word may be
    a task or a path, or if a path is empty, because a variable that is not set must not select everything.
    """
    typed = () if paths is None else (*([task] if task else []), *paths)
    if empty := [path for path in typed if not path.strip("/")]:
        raise ConfigurationError(f"{empty[0]!r} is not a path of a change; artoo diff lists the changes")
    # The changes of another machine are not pending here, so their files are fetched for the duration of the
    # command.
    if task and config.store is not None and not any(one.task_id.startswith(task) for one in found):
        from artoo.team.by_hand import brought

        async with brought(config, task, applying=bool(applying)) as pending:
            if pending is not None and applying is None:
                raise ConfigurationError(
                    f"task {pending.task_id} was handed in on another machine; to have it dropped or done"
                    f" otherwise: artoo task review {pending.task_id} reject WHY"
                )
            if pending is not None:
                return await work(pending, paths or ())
    if paths is not None:
        task, paths = task_and_paths(task, paths, found)
    pending = the_task(task, found, only=only)
    if task is not None and len(task) < SHORTEST and await _is_path(task, pending):
        name = short_name(pending.task_id, [one.task_id for one in found])
        part = "it is dropped as a whole" if paths is None else f"for the path: ./{task}"
        raise ConfigurationError(f"{task!r} begins a task's id and is a path of it; {part}, for the task: {name}")
    return await work(pending, paths or ())


async def _is_path(task: str, pending: Pending) -> bool:
    """Return whether the word that names the task is also a path that the task changed.

    All ids at present begin with 01, which may also be the name of a folder. The longer names that artoo prints for
    tasks are practically never ambiguous.
    """
    # pending changes in an older format cannot be read
    if pending.outdated:
        return False
    review, here = await pending.diff(), Here()
    return any(here.holds(task, one.path) for one in (*review.changes, *review.conflicts))


def waiting_lines(found: tuple[Pending, ...], home: Path) -> list[str]:
    """Describe each pending task by its name, its request, its changes, times, and the commands for it."""
    lines: list[str] = []
    for one in found:
        name = name_at(home, one.task_id)
        asked = asked_line(one.request) or "(a command that was cut off)"
        what = _what(one)
        if one.stands == UNKNOWN:
            what = f"{NOT_KNOWN}; {what}" if what else NOT_KNOWN
        until = f", {'expires soon: ' if one.warned else ''}until {local_time(one.expires_at)}"
        since = f"since {local_time(one.since)}{'' if one.outdated else until}"
        lines += [f"  {name}  {asked}", f"      {', '.join(part for part in (what, since) if part)}"]
        lines.append("      " + ", ".join(settling_commands(one, name).values()))
    return lines


def _what(one: Pending) -> str:
    if one.outdated:
        return one.reason
    return _cut_off(one) if one.cut_off else waiting_line(one.counts, one.conflicts, ENGLISH)


def _cut_off(one: Pending) -> str:
    if not one.on_board or one.stands == UNKNOWN:
        return CUT_OFF
    if one.stands == BoardState.REVIEW:
        return IN_REVIEW
    return f"its task is {one.stands}" if one.forsaken else NOT_HANDED_IN


def waiting_object(one: Pending) -> JsonObject:
    """Return a pending task as a JSON object."""
    from artoo.cli.results.result_json import iso
    from artoo.words.settling import waiting

    return {
        "task_id": one.task_id,
        "request": one.request,
        "since": iso(one.since),
        "expires_at": iso(one.expires_at),
        "expires_soon": one.warned,
        "cut_off": one.cut_off,
        "on_board": one.on_board,
        "stands": one.stands,
        "reason": waiting(one.reason, one.counts, one.conflicts, one.language),
        "counts": {each.change_class.value: each.count for each in one.counts},
        "conflicts": one.conflicts,
        "went_out": list(one.went_out),
        "commands": settling_commands(one, one.task_id),
    }
