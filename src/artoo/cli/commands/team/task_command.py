"""`artoo task add|list|show|log|move|review`: the board of the team's tasks, for the operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option, text_of
from artoo.cli.display.screen import report
from artoo.cli.results.redact_output import say
from artoo.cli.views.team_access import JsonObject, in_office, plain_object, the_one
from artoo.contracts.agents import (
    OPERATOR,
    WHOEVER_MAY,
    BoardState,
    BoardTask,
    Complexity,
    Priority,
    TaskChanged,
    TaskMoved,
)
from artoo.contracts.confirmation import Choice, Consent
from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.words.shown import local_time

if TYPE_CHECKING:
    from artoo.contracts.settling import Review
    from artoo.team.office import Office
    from artoo.team.proposal import Proposal
    from artoo.workspace.settlement.history import SettledRecord

UNSET = "unset"
WIDE = 120
"""Number of columns for which a review is formatted. A narrower terminal wraps it."""

_STATES = [state.value for state in BoardState]
_priority = click.Choice([level.value for level in Priority])
_complexity = click.Choice([*(level.value for level in Complexity), UNSET])


@click.group(invoke_without_command=True, context_settings=HELP)
@click.pass_context
def task(context: click.Context) -> None:
    """Manage the board of tasks that agents work on. Without a command: list it.

    ID is a task's id or the beginning of one.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, states=(), agent=None, everything=False, limit=50, as_json=False)


@task.command("add")
@click.argument("text", nargs=-1, required=True)
@click.option("--to", "assignee", metavar="AGENT", help="The agent that does it (default: any that may take it).")
@click.option("--priority", type=_priority, default=Priority.STANDARD.value, show_default=True)
@click.option(
    "--complexity",
    type=_complexity,
    default=UNSET,
    show_default=True,
    help="Decides whether the result is reviewed. Unset: it is reviewed like a critical task.",
)
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The directory of the work (default: here). Nothing changes there before a review.",
)
@as_json_option
def add(
    text: tuple[str, ...],
    assignee: str | None,
    priority: str,
    complexity: str,
    project: Path,
    as_json: bool,
) -> None:
    """Add TEXT to the board, pending. TEXT may be - to read it from standard input."""
    words = text_of(text)
    made = in_office(
        lambda office: office.board.add(
            words,
            OPERATOR,
            assignee=assignee,
            priority=Priority(priority),
            complexity=_complexity_of(complexity),
            project=office.projects.name(project),
        ),
    )
    report(made, [f"task {made.id} is pending"], as_json=as_json)


@task.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(_STATES),
    multiple=True,
    help="Only tasks in this state (may be repeated).",
)
@click.option("--agent", metavar="AGENT", help="Only tasks of this agent.")
@click.option("--all", "everything", is_flag=True, help="Include archived tasks.")
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1, 10_000))
@as_json_option
def list_(states: tuple[str, ...], agent: str | None, everything: bool, limit: int, as_json: bool) -> None:
    """Show the newest tasks, oldest first."""
    wanted = {BoardState(state) for state in states} or (set(BoardState) if everything else None)
    found = in_office(lambda office: office.board.list(wanted, assignee=agent, limit=limit))
    from artoo.cli.views.team_view import TASK_HEADS, table_lines, task_row

    lines = table_lines(TASK_HEADS, map(task_row, found), "No such task is on the board: artoo task add TEXT")
    report(found, lines, as_json=as_json)


@task.command("show")
@click.argument("identifier", metavar="ID")
@as_json_option
def show_(identifier: str, as_json: bool) -> None:
    """Show a task, with its result, its evidence, and the changes of its submission."""
    shown, lines = in_office(lambda office: _shown(office, identifier))
    report(shown, lines, as_json=as_json)


@task.command("log")
@click.argument("identifier", metavar="ID")
@as_json_option
def log(identifier: str, as_json: bool) -> None:
    """Show the history of a task: each change, its author and the reason."""

    async def work(office: Office) -> tuple[tuple[TaskMoved | TaskChanged, ...], tuple[SettledRecord, ...]]:
        task_id = await _id(office, identifier)
        return await office.board.log(task_id), _undone(office.home, task_id)

    records, undone = in_office(work)
    from artoo.cli.views.team_view import record_line

    named = (*((record.kind(), record) for record in records), *(("PutBack", one) for one in undone))
    told = [(record.at.timestamp(), record_line(record)) for record in records]
    told += [(one.at, _undone_line(one)) for one in undone]
    lines = [line for _, line in sorted(told, key=lambda one: one[0])]
    report([{"kind": kind, **plain_object(record)} for kind, record in named], lines, as_json=as_json)


@task.command("move")
@click.argument("identifier", metavar="ID")
@click.argument("state", type=click.Choice(_STATES), required=False)
@click.argument("why", nargs=-1)
@click.option("--to", "assignee", metavar="AGENT", help="The new agent (anybody: any that may take it).")
@click.option("--reviewer", metavar="AGENT", help="The new reviewer (anybody: any that may review it).")
@click.option("--priority", type=_priority)
@click.option("--complexity", type=_complexity)
@as_json_option
def move(
    identifier: str,
    state: str | None,
    why: tuple[str, ...],
    assignee: str | None,
    reviewer: str | None,
    priority: str | None,
    complexity: str | None,
    as_json: bool,
) -> None:
    """Move a task to STATE, or change its agent, reviewer, priority or complexity.

    You can set pending, blocked, cancelled and archived; in_progress releases a blocked task.
    """
    if state is None and not any((assignee, reviewer, priority, complexity)):
        raise click.UsageError("Say what to change: a state, --to, --reviewer, --priority or --complexity.")

    async def work(office: Office) -> BoardTask:
        task_id = await _id(office, identifier)
        if assignee is not None:
            await office.board.assign(task_id, _somebody(assignee), OPERATOR)
        if reviewer is not None:
            await office.board.set_reviewer(task_id, _somebody(reviewer), OPERATOR)
        if priority is not None:
            await office.board.set_priority(task_id, Priority(priority), OPERATOR)
        if complexity is not None:
            await office.board.set_complexity(task_id, _complexity_of(complexity), OPERATOR)
        if state is not None:
            from artoo.team.by_hand import move as moved_by_hand

            await moved_by_hand(office, task_id, BoardState(state), " ".join(why))
        return await office.board.get(task_id)

    moved = in_office(work)
    released = state == BoardState.IN_PROGRESS.value and moved.state is BoardState.BLOCKED
    stands = "released; an agent will continue it" if released else moved.state.value
    report(moved, [f"task {moved.id} is {stands}"], as_json=as_json)


@task.command("review")
@click.argument("identifier", metavar="ID")
@click.argument("verdict", type=click.Choice(["approve", "reject"]))
@click.argument("why", nargs=-1)
@click.option("--digest", metavar="DIGEST", help="Consent to exactly these changes (artoo task show ID --json).")
@as_json_option
@click.pass_context
def review(
    context: click.Context, identifier: str, verdict: str, why: tuple[str, ...], digest: str | None, as_json: bool
) -> None:
    """Approve or reject a submission. The agent that does a rejected task again is shown WHY.

    Changes that overwrite, delete or otherwise lose something are shown and need your consent. Without a terminal,
    --digest names the changes that you agree to. Exit code 1: nothing was approved.
    """
    reason = " ".join(why)
    if verdict == "reject" and not reason.strip():
        raise click.UsageError("Say why: the reason reaches the agent that does the task again.")

    async def work(office: Office) -> tuple[BoardTask, bool, tuple[str, ...]]:
        task_id = await _id(office, identifier)
        if verdict == "reject":
            return await office.approvals.reject(task_id, OPERATOR, reason), True, ()
        return await _approve(office, task_id, reason, digest)

    found, decided, problems = in_office(work)
    for problem in () if as_json else problems:
        say(problem)
    plain = {**plain_object(found), "decided": decided, "problems": problems}
    report(plain, [f"task {found.id} is {found.state.value}"], as_json=as_json)
    context.exit(0 if decided else 1)


async def _approve(
    office: Office, task_id: str, reason: str, digest: str | None
) -> tuple[BoardTask, bool, tuple[str, ...]]:
    """Approve a submission on behalf of the operator, after the operator's consent that Law 1 requires.

    Returns the task, whether it is completed, and the problems.
    """
    from artoo.team.by_hand import approve as approve_by_hand

    found = await office.board.get(task_id)
    shown = found.state in (BoardState.REVIEW, BoardState.REJECTED)
    proposal = await office.approvals.look(found) if shown else None
    if proposal is not None and proposal.asks and digest is None:
        problems = await _disagreement(found, proposal)
        if problems:
            return found, False, problems
    # The digest binds the approval to the changes that were shown. If the submission changes meanwhile, the
    # approval is refused.
    if proposal is not None and digest is None:
        digest = proposal.digest
    ruling = await approve_by_hand(office, found, reason, submission=found.submission, digest=digest)
    return ruling.task, ruling.completed, ruling.why


async def _disagreement(found: BoardTask, proposal: Proposal) -> tuple[str, ...]:
    """Ask for consent on the terminal. Returns the reasons against an approval. There are none if the operator
    agrees."""
    from artoo.cli.conversation.confirm import dialogue

    asking = dialogue()
    if asking is None:
        return (
            *proposal.asks,
            f"this needs your consent: look at it (artoo task show {found.id}), then approve it in a terminal, "
            f"or with --digest {proposal.digest}",
        )
    said = await asking(proposal.question)
    if said is Consent.ONCE:
        return ()
    instead = f"nothing was changed; to have it done otherwise: artoo task review {found.id} reject WHY"
    if isinstance(said, Choice):
        return (f"a submission is approved as a whole: {instead}",)
    return (instead,)


async def _id(office: Office, beginning: str) -> str:
    """Return the id of the only task whose id begins with `beginning`."""
    ids = await office.database.read(
        lambda reading: [str(row["id"]) for row in reading.all("SELECT id FROM tasks ORDER BY id")]
    )
    return the_one(beginning, ids, "task")


def _undone(home: Path, task_id: str) -> tuple[SettledRecord, ...]:
    """Return the records in this home about changes of a task that were undone. The board has no record of them."""
    from artoo.workspace.settlement.history import settled_records

    return tuple(one for one in settled_records(home) if one.task_id == task_id and one.what == "undone")


def _undone_line(one: SettledRecord) -> str:

    left = f", {one.left} left as they are" if one.left else ""
    return f"{local_time(one.at)}  files restored: {one.count}{left} (by {one.by})"


async def _shown(office: Office, beginning: str) -> tuple[JsonObject, list[str]]:
    """Return the description of a task with its submission, as a JSON object and as lines of text.

    A submission of another machine is described as the store contains it, with the reason why it cannot be approved
    here.
    """
    found = await office.board.get(await _id(office, beginning))
    work = await office.approvals.work(found)
    proposal, review, why, moved = None, None, "", None
    undone: tuple[SettledRecord, ...] = ()
    if found.state is not BoardState.REVIEW:
        moves = [record for record in await office.board.log(found.id) if isinstance(record, TaskMoved)]
        undone, moved = _undone(office.home, found.id), moves[-1] if moves else None
    else:
        try:
            proposal = await office.approvals.look(found)
            review = None if proposal is None else proposal.review
        except SandboxError as error:
            if office.exchange is None or not office.exchange.is_elsewhere(found):
                raise ConfigurationError(str(error)) from error
            review, why = await office.exchange.review(found), str(error)
    shown: JsonObject = {
        **plain_object(found),
        "work": work,
        "changes": [] if review is None else review.changes,
        "asks": [] if proposal is None else proposal.asks,
        "conflicts": [] if review is None else review.conflicts,
        "digest": None if proposal is None else proposal.digest,
        "why": why,
        "put_back": undone,
        "reason": "" if moved is None else moved.reason,
    }
    lines = _task_lines(found, moved)
    if work is not None:
        lines += ["", f"Evidence (artoo log show {work.run}):"]
        lines += [f"{one.verdict}: {one.criterion} ({one.evidence})" for one in work.verdicts]
        lines += [*(f"not met: {one}" for one in work.unmet), *work.calls]
    lines += ["", *map(_undone_line, undone)] if undone else []
    lines += ["", why] if why else []
    if review is not None:
        head = "Changes of an approval:" if proposal else f"Changes on {found.made_on}:"
        lines += ["", head, *_change_lines(review)]
    return shown, lines


def _task_lines(found: BoardTask, moved: TaskMoved | None) -> list[str]:
    complexity = found.complexity.value if found.complexity else "unset"
    lines = [
        f"task {found.id}",
        *([f"{found.state.value} by {moved.actor}: {moved.reason}"] if moved is not None and moved.reason else []),
        f"{found.state.value}, {found.priority.value}, complexity {complexity}",
        f"agent {found.assignee or 'any'}, reviewer {found.reviewer or 'any who may'}",
        f"project {found.project or 'none'}",
        *([f"made on {found.made_on}"] if found.made_on else []),
        "",
        found.text,
        *(f"note: {note}" for note in found.notes),
    ]
    return [*lines, "", "Result:", found.summary] if found.summary else lines


def _change_lines(review: Review) -> list[str]:
    """Return the lines for the changes and conflicts of a review, without the question."""
    from artoo.cli.display.colors import Paint
    from artoo.cli.results.relative_paths import Here
    from artoo.cli.review.layout import Layout

    layout = Layout(review, "en", Here(), Paint(colours=False), WIDE)
    return [*layout.diffs(), *layout.conflicts()] or ["nothing"]


def _complexity_of(text: str) -> Complexity | None:
    return None if text == UNSET else Complexity(text)


def _somebody(name: str) -> str | None:
    return None if name == WHOEVER_MAY else name
