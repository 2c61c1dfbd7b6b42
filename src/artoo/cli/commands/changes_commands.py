"""`artoo diff`, `artoo apply`, `artoo discard`: what waits for a yes, settled in any later process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.conversation.yes_no import agreed, is_asked
from artoo.cli.display.colors import Paint
from artoo.cli.display.display import is_plain
from artoo.cli.display.keyboard import Keyboard
from artoo.cli.display.sanitize import asked_line, one_line, show, show_as_it_is
from artoo.cli.display.screen import Screen, show_lines
from artoo.cli.display.symbols import marks_for
from artoo.cli.results.pending_view import all_waiting, settling_commands, waiting_object, with_the_task
from artoo.cli.results.relative_paths import Here
from artoo.cli.results.settlement_view import SettledLines, from_here
from artoo.cli.results.task_names import local_time, name_at
from artoo.cli.review.layout import Layout, conflict_hint
from artoo.cli.review.pager import page
from artoo.cli.review.review_prompt import SURE_TO_DISCARD
from artoo.cli.review.selection import of_path
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import BY_NAME, Review, Settled, counts_of, with_arrivals
from artoo.runtime.app.task_ids import named
from artoo.runtime.config.loader import load_config
from artoo.words.catalogue import in_language

if TYPE_CHECKING:
    from artoo.runtime.changes.pending_changes import Pending
    from artoo.runtime.config.model import Config
    from artoo.tasklog.reader import TaskSummary

REFUSED = 1
MOST_STOPPED = 10_000
"""Logs, the latest, among which a stopped task is looked for by its name."""

_yes_option = click.option("--yes", is_flag=True, help="Do not ask again on a terminal.")


@click.command(context_settings=HELP)
@click.argument("task", required=False)
@click.argument("paths", nargs=-1)
@as_json_option
def diff(task: str | None, paths: tuple[str, ...], as_json: bool) -> None:
    """Show what TASK would change: what waits for your yes.

    TASK is the beginning of its id; without it, the latest that waits is meant. PATHs (files or directories) show a
    part. A new directory with more than 50 new files is one line, but where it is such a PATH.
    """
    config = load_config()
    found = all_waiting(config)
    if task is None and not found:
        show("null" if as_json else in_language("en")("Nothing waits for you."))
        return

    async def shown(pending: Pending, chosen: tuple[str, ...]) -> None:
        whole = await pending.diff()
        review = part_of(whole, chosen, Here())
        if as_json:
            show(_dump({**waiting_object(pending), "review": review.model_dump(mode="json")}))
        else:
            now = replace(pending, counts=whole.counts, conflicts=len(whole.conflicts))
            await _show(_told(now, review, name_at(config.home, pending.task_id), folded=not chosen))

    asyncio.run(with_the_task(config, task, paths, found, shown))


@click.command(context_settings=HELP)
@click.argument("task", required=False)
@click.argument("paths", nargs=-1)
@click.option("--rest", is_flag=True, help="Apply what is not in conflict with what was changed meanwhile.")
@_yes_option
@as_json_option
@click.pass_context
def apply(
    context: click.Context, task: str | None, paths: tuple[str, ...], rest: bool, yes: bool, as_json: bool
) -> None:
    """Apply what TASK changed, or only PATHs of it (files or directories) and what they need.

    TASK is the beginning of its id. Without it, the latest that waits is meant and asked about on a terminal;
    where nobody can be asked only the one that waits alone is. On a terminal, deletions, start-up files, rewritten
    history and special files are named and asked about once more. Where the same paths were changed meanwhile
    nothing is applied: see --rest. artoo undo puts back what was applied.

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
    """All that the team has handed in is applied: the board is told, as of an approval."""
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
    """Drop what TASK changed: your files stay as they are.

    TASK is the beginning of its id. Without it, the latest that waits is meant on a terminal; where nobody can be
    asked only the one that waits alone is. On a terminal you are asked once more. What left the machine does not
    come back by this. A task that stopped before it changed anything is dismissed: artoo status lists it no more.

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
        show(f"{words('Already sent, and not taken back by discarding:')} {one_line(sent)}")


def _stopped(config: Config, task: str, found: Sequence[Pending]) -> TaskSummary | None:
    """Return the task of this name that stopped before its end, if it has no pending changes."""
    from artoo.runtime.task.resumable_tasks import left_undone

    if any(one.task_id.startswith(task) for one in found):
        return None
    stopped = {one.task_id: one for one in left_undone(config.home, MOST_STOPPED)}
    if not any(one.startswith(task) for one in stopped):
        return None
    return stopped[named(task, list(stopped), "no task stopped that begins with", "artoo status lists them")]


def _dismiss(config: Config, stopped: TaskSummary) -> None:
    """Note that the user wants nothing more of a stopped task."""
    from artoo.workspace.settlement.history import SettledRecord, note_settled

    record = SettledRecord(
        at=time.time(), task_id=stopped.task_id, what="discarded", by="person", request=stopped.request
    )
    note_settled(config.home, record)


async def _itself(pending: Pending, _: tuple[str, ...]) -> Pending:
    return pending


def _discarded(config: Config, pending: Pending) -> str:
    """What is said: a part of it may have been applied before, and stays."""
    from artoo.runtime.changes.undo import can_be_undone

    words = in_language(pending.language)
    if all(one.task_id != pending.task_id for one in can_be_undone(config)):
        return words("Discarded. Your files are as they were.")
    hint = words("put it back: {command}", command=f"artoo undo {name_at(config.home, pending.task_id)}")
    return f"{words('Discarded what still waited. What was applied before stays;')} {hint}"


def part_of(review: Review, paths: tuple[str, ...], here: Here) -> Review:
    """The part of a review at and below some paths. Raises ConfigurationError for one that is not in it."""
    if not paths:
        return review
    wanted: set[str] = set()
    for typed in paths:
        below = of_path(typed, review.changes, here)
        clashing = {one.path for one in review.conflicts if here.holds(typed, one.path)}
        if not below and not clashing:
            raise ConfigurationError(
                f"{typed!r} is neither a task that waits nor a path that this one would change; artoo status lists"
                " the tasks, artoo diff the paths"
            )
        wanted |= {*with_arrivals(below, review.changes), *clashing}
    changes = tuple(one for one in review.changes if one.path in wanted)
    conflicts = tuple(one for one in review.conflicts if one.path in wanted)
    return review.model_copy(update={"changes": changes, "conflicts": conflicts, "counts": counts_of(changes)})


async def _apply(
    pending: Pending, paths: tuple[str, ...], name: str, *, rest: bool, ask: bool, named: bool
) -> Settled | None:
    """Applies exactly what is there now, or was shown. None: the person said no."""
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
    if chosen is not None and ask:  # what the question has listed is named, too
        chosen = tuple(dict.fromkeys((*chosen, *(one.path for one in review.changes))))
    return await _said(pending.apply(chosen, digest=digest, rest=rest))


async def _said(act: Coroutine[None, None, Settled]) -> Settled:
    """What an act has come to: a Ctrl-C is too late for one that has begun, and does not hide what became of it."""
    acting = asyncio.ensure_future(act)
    try:
        return await asyncio.shield(acting)
    except asyncio.CancelledError:
        return await acting


def _applied(pending: Pending, settled: Settled, name: str) -> list[str]:
    """Say what became of it, as at the end of a task; first of all why nothing was applied, if nothing was."""
    here, words, head = Here(), in_language(pending.language), list[str]()
    if settled.state not in ("applied", "partly"):
        reason = from_here(settled.reason, settled.conflicts, here, pending.language)
        head = [words("Nothing was applied: {reason}", reason=one_line(reason))]
        settled = settled.model_copy(update={"reason": ""})
    marks = marks_for(sys.stdout.encoding)
    lines = [*head, *SettledLines(settled, words, marks, name, here, _screen().paint).lines()]
    return lines or [words("It has changed nothing.")]


def _told(pending: Pending, review: Review, name: str, *, folded: bool) -> list[str]:
    """A review with what it is about, and the commands that settle it. `folded`: a crowd of new files too."""
    layout = _layout(review, pending.language, Here(), f"artoo diff {name}" if folded else "", unfolded=not folded)
    words = layout.words
    known = {
        "resume": words("go on with it: {command}"),
        "apply": words("apply it: {command}"),
        "discard": words("drop it: {command}"),
    }
    if pending.only_conflicts and not pending.resumable:
        known["discard"] = conflict_hint(name, words)
    commands = settling_commands(pending, name)
    if not (review.changes or review.conflicts):
        commands.pop("apply", None)
    how = [known.get(verb, "{command}").format(command=each) for verb, each in commands.items() if verb != "diff"]
    about = f"{name}  {asked_line(pending.request)}" if pending.request else name
    shown = layout.whole()[1:] if review.changes or review.conflicts else [words("It has changed nothing.")]
    return [about, *shown, "; ".join((*how, words("kept until {date}", date=local_time(pending.expires_at))))]


def _layout(review: Review, language: str, here: Here, opened_by: str = "", *, unfolded: bool = False) -> Layout:
    screen = _screen()
    return Layout(review, language, here, screen.paint, screen.width, opened_by, unfolded)


def _screen() -> Screen:
    redraws = os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown")
    return Screen(sys.stdout, Paint(colours=not is_plain(sys.stdout, os.environ)), redraws=redraws)


async def _show(lines: list[str]) -> None:
    """In pages on a terminal, else as lines."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        await page(lines, _screen(), Keyboard(sys.stdin), in_language("en"))
    else:
        show_as_it_is("\n".join(lines))


def _ask_about(pending: Pending, name: str, overview: Sequence[str] = ()) -> None:
    about = [f"{name}  {asked_line(pending.request)}"] if pending.request else []
    if lines := [*about, *overview]:
        show_lines(lines, sys.stderr, painted=True)


def _settled(pending: Pending, settled: Settled) -> str:
    from artoo.cli.results.result_json import settled_object

    return _dump({"task_id": pending.task_id, **settled_object(settled)})


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
