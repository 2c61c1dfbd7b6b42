"""`artoo diff`, `artoo apply` and `artoo discard`: pending changes, their `--yes` option and exit code 1.

This works in any process, also long after the end of the task.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.conversation.yes_no import agreed, is_asked
from artoo.cli.display.sanitize import asked_line, one_line, show
from artoo.cli.display.screen import Screen, show_lines
from artoo.cli.results.pending_view import all_waiting, settling_commands, waiting_object, with_the_task
from artoo.cli.results.relative_paths import Here
from artoo.cli.results.settlement_view import SettledLines, from_here
from artoo.cli.results.task_names import name_at
from artoo.cli.review.layout import Layout, conflict_hint
from artoo.cli.review.review_prompt import SURE_TO_DISCARD
from artoo.cli.review.selection import of_path
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import BY_NAME, Review, Settled, counts_of, with_arrivals
from artoo.runtime.app.task_ids import named
from artoo.runtime.config.loader import load_config
from artoo.words.catalogue import in_language
from artoo.words.shown import local_time

if TYPE_CHECKING:
    from artoo.runtime.changes.pending_changes import Pending
    from artoo.runtime.config.model import Config
    from artoo.tasklog.reader import TaskSummary

REFUSED = 1
MOST_STOPPED = 10_000
"""Number of latest logs in which a stopped task is searched by its name."""

_yes_option = click.option("--yes", is_flag=True, help="Do not ask again on a terminal.")


@click.command(context_settings=HELP)
@click.argument("task", required=False)
@click.argument("paths", nargs=-1)
@as_json_option
def diff(task: str | None, paths: tuple[str, ...], as_json: bool) -> None:
    """Show the pending changes of TASK.

    TASK is the beginning of its id; without it, the latest pending task is shown. PATHs (files or directories)
    select a part. A new directory with more than 50 new files is one line, unless it is such a PATH.
    """
    config = load_config()
    found = all_waiting(config)
    if task is None and not found:
        show("null" if as_json else in_language("en")("Nothing is pending."))
        return

    async def shown(pending: Pending, chosen: tuple[str, ...]) -> None:
        whole = await pending.diff()
        review = part_of(whole, chosen, Here())
        if as_json:
            show(_dump({**waiting_object(pending), "review": review.model_dump(mode="json")}))
        else:
            now = replace(pending, counts=whole.counts, conflicts=len(whole.conflicts))
            show_lines(_told(now, review, name_at(config.home, pending.task_id), folded=not chosen), painted=True)

    asyncio.run(with_the_task(config, task, paths, found, shown))


@click.command(context_settings=HELP)
@click.argument("task", required=False)
@click.argument("paths", nargs=-1)
@click.option("--rest", is_flag=True, help="Apply the changes that are not in conflict with yours.")
@_yes_option
@as_json_option
@click.pass_context
def apply(
    context: click.Context, task: str | None, paths: tuple[str, ...], rest: bool, yes: bool, as_json: bool
) -> None:
    """Apply the pending changes of TASK, or only PATHs (files or directories) and what they need.

    TASK is the beginning of its id. Without it, the latest pending task is meant, and artoo asks on a terminal.
    Without a terminal, TASK may be left out only if a single task is pending. On a terminal artoo asks once more
    about deletions, start-up files, rewritten history and special files. If you changed the same paths, nothing is
    applied: see --rest. artoo undo restores what was applied.

    Exit codes: 0 applied, 1 nothing was applied, 2 no such task or path.
    """
    config = load_config()
    found = all_waiting(config)
    ask = is_asked() and not yes

    teams: list[str] = []

    async def applied(pending: Pending, chosen: tuple[str, ...]) -> bool:
        name = name_at(config.home, pending.task_id)
        is_named = task is not None and pending.task_id.startswith(task)
        settled = await _apply(pending, chosen, name, rest=rest, ask=ask, named=is_named)
        if as_json:
            show(_settled(pending, settled or Settled()))
        elif settled is not None:
            show_lines(_applied(pending, settled, name), painted=True)
        if pending.on_board and settled is not None and settled.state == "applied":
            teams.append(pending.task_id)
        return settled is not None and settled.state in ("applied", "partly")

    done = asyncio.run(with_the_task(config, task, paths, found, applied, only=not is_asked(), applying=True))
    for board_task in teams:
        _approved(config, board_task, quiet=as_json)
    context.exit(0 if done else REFUSED)


def _approved(config: Config, board_task: str, *, quiet: bool) -> None:
    """Record on the board that a submission of the team was applied, as an approval does."""
    from artoo.team.by_hand import complete_applied

    state = asyncio.run(complete_applied(config, board_task))
    if state is not None and not quiet:
        show(f"task {name_at(config.home, board_task)}: {state.value}")


@click.command(context_settings=HELP)
@click.argument("task", required=False)
@_yes_option
@as_json_option
@click.pass_context
def discard(context: click.Context, task: str | None, yes: bool, as_json: bool) -> None:
    """Discard the pending changes of TASK. Your files stay as they are.

    TASK is the beginning of its id. Without it, the latest pending task is meant on a terminal. Without a terminal,
    TASK may be left out only if a single task is pending. On a terminal artoo asks once more. Data that was
    already sent to a host stays there. A stopped task that changed nothing is removed from the list of artoo
    status.

    Exit codes: 0 discarded, 1 you said no, 2 no such task.
    """
    config = load_config()
    found = all_waiting(config)
    if task and (stopped := _stopped(config, task, found)):
        _dismiss(config, stopped)
        show(
            "null" if as_json else f"{name_at(config.home, stopped.task_id)} is dismissed; it had changed nothing."
        )
        return
    pending = asyncio.run(with_the_task(config, task, None, found, _itself, only=not is_asked(), applying=None))
    if pending.on_board:
        from artoo.team.by_hand import check_droppable

        asyncio.run(check_droppable(config, pending.task_id))
    words = in_language(pending.language)
    if is_asked() and not yes:
        _ask_about(pending, name_at(config.home, pending.task_id))
        if not asyncio.run(agreed(words(SURE_TO_DISCARD))):
            context.exit(REFUSED)
    settled = asyncio.run(_said(pending.discard()))
    if as_json:
        show(_settled(pending, settled))
        return
    show(_discarded(config, pending))
    for sent in settled.went_out:
        show(f"{words('Already sent; discarding does not undo it:')} {one_line(sent)}")


def _stopped(config: Config, task: str, found: Sequence[Pending]) -> TaskSummary | None:
    """Return the stopped task with this name if it has no pending changes. Otherwise return None."""
    from artoo.runtime.task.resumable_tasks import left_undone

    if any(one.task_id.startswith(task) for one in found):
        return None
    stopped = {one.task_id: one for one in left_undone(config.home, MOST_STOPPED)}
    if not any(one.startswith(task) for one in stopped):
        return None
    return stopped[named(task, list(stopped), "no task stopped that begins with", "artoo status lists them")]


def _dismiss(config: Config, stopped: TaskSummary) -> None:
    """Record that the user has dismissed a stopped task, so that `artoo status` no longer lists it."""
    from artoo.workspace.settlement.history import SettledRecord, note_settled

    record = SettledRecord(
        at=time.time(), task_id=stopped.task_id, what="discarded", by="person", request=stopped.request
    )
    note_settled(config.home, record)


async def _itself(pending: Pending, _: tuple[str, ...]) -> Pending:
    return pending


def _discarded(config: Config, pending: Pending) -> str:
    """Return the sentence after a discard. It says whether some of the changes had been applied before."""
    from artoo.runtime.changes.undo import can_be_undone

    words = in_language(pending.language)
    if all(one.task_id != pending.task_id for one in can_be_undone(config)):
        return words("Discarded. Your files are as they were.")
    hint = words("undo it: {command}", command=f"artoo undo {name_at(config.home, pending.task_id)}")
    return f"{words('Discarded the pending changes. What was applied before stays;')} {hint}"


def part_of(review: Review, paths: tuple[str, ...], here: Here) -> Review:
    """Return those changes of a review whose paths are among the given paths or below them. Raises
    ConfigurationError for a path without changes."""
    if not paths:
        return review
    wanted: set[str] = set()
    for typed in paths:
        below = of_path(typed, review.changes, here)
        clashing = {one.path for one in review.conflicts if here.holds(typed, one.path)}
        if not below and not clashing:
            raise ConfigurationError(
                f"{typed!r} is neither a pending task nor a path that this one would change; artoo status lists"
                " the tasks, artoo diff the paths"
            )
        wanted |= {*with_arrivals(below, review.changes), *clashing}
    changes = tuple(one for one in review.changes if one.path in wanted)
    conflicts = tuple(one for one in review.conflicts if one.path in wanted)
    return review.model_copy(update={"changes": changes, "conflicts": conflicts, "counts": counts_of(changes)})


async def _apply(
    pending: Pending, paths: tuple[str, ...], name: str, *, rest: bool, ask: bool, named: bool
) -> Settled | None:
    """Apply exactly the changes that exist now, after a question if one is necessary. Returns None if the user
    declined."""
    here = Here()
    digest = await pending.digest()
    review = part_of(await pending.diff(), paths, here)
    dangerous = any(one.change_class in BY_NAME for one in review.changes)
    if ask and (dangerous or not named):
        layout = _layout(review, pending.language, here)
        _ask_about(pending, name, layout.overview())
        if not await agreed(layout.words("[y]es, [N]o: ")):
            return None
    chosen = tuple(here.named(typed) for typed in paths) or None
    # Exactly the changes that the question has listed are applied, and no others.
    if chosen is not None and ask:
        chosen = tuple(dict.fromkeys((*chosen, *(one.path for one in review.changes))))
    return await _said(pending.apply(chosen, digest=digest, rest=rest))


async def _said(act: Coroutine[None, None, Settled]) -> Settled:
    """Wait for the end of an operation that has begun. Ctrl-C can no longer stop the operation, and must not hide
    its result."""
    acting = asyncio.ensure_future(act)
    try:
        return await asyncio.shield(acting)
    except asyncio.CancelledError:
        return await acting


def _applied(pending: Pending, settled: Settled, name: str) -> list[str]:
    """Return lines on the state of the changes, as at the end of a task. If nothing was applied, the reason comes
    first."""
    here, words, head = Here(), in_language(pending.language), list[str]()
    if settled.state not in ("applied", "partly"):
        reason = from_here(settled.reason, settled.conflicts, here, pending.language)
        head = [words("Nothing was applied: {reason}", reason=one_line(reason))]
        settled = settled.model_copy(update={"reason": ""})
    lines = [*head, *SettledLines(settled, words, name, here, Screen.of(sys.stdout).paint).lines()]
    return lines or [words("The task changed nothing.")]


def _told(pending: Pending, review: Review, name: str, *, folded: bool) -> list[str]:
    """Return the lines of a review with the task's request and the commands for its changes. `folded`: true to show
    a new directory with many files as one line."""
    layout = _layout(review, pending.language, Here(), f"artoo diff {name}" if folded else "", unfolded=not folded)
    words = layout.words
    known = {
        "resume": words("resume it: {command}"),
        "apply": words("apply it: {command}"),
        "discard": words("discard it: {command}"),
    }
    if pending.only_conflicts and not pending.resumable:
        known["discard"] = conflict_hint(name, words)
    commands = settling_commands(pending, name)
    if not (review.changes or review.conflicts):
        commands.pop("apply", None)
    how = [known.get(verb, "{command}").format(command=each) for verb, each in commands.items() if verb != "diff"]
    about = f"{name}  {asked_line(pending.request)}" if pending.request else name
    shown = layout.whole()[1:] if review.changes or review.conflicts else [words("The task changed nothing.")]
    return [about, *shown, "; ".join((*how, words("kept until {date}", date=local_time(pending.expires_at))))]


def _layout(review: Review, language: str, here: Here, opened_by: str = "", *, unfolded: bool = False) -> Layout:
    screen = Screen.of(sys.stdout)
    return Layout(review, language, here, screen.paint, screen.width, opened_by, unfolded)


def _ask_about(pending: Pending, name: str, overview: Sequence[str] = ()) -> None:
    about = [f"{name}  {asked_line(pending.request)}"] if pending.request else []
    if lines := [*about, *overview]:
        show_lines(lines, sys.stderr, painted=True)


def _settled(pending: Pending, settled: Settled) -> str:
    from artoo.cli.results.result_json import settled_object

    return _dump({"task_id": pending.task_id, **settled_object(settled)})


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
