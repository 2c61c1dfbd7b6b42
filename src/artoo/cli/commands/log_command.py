"""`artoo log list|show|replay|export`: the logs of ended and running tasks, and what-if replays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.screen import report
from artoo.cli.results.home import current_home, current_store
from artoo.cli.results.redact_output import say

if TYPE_CHECKING:
    from artoo.runtime.cluster.remote_logs import Elsewhere
    from artoo.store.address import StoreAddress
    from artoo.tasklog.reader import TaskLogReader


task_argument = click.argument("task_id", metavar="[ID]", required=False)


@click.group(invoke_without_command=True, context_settings=HELP)
@click.pass_context
def log(context: click.Context) -> None:
    """Show the logs of tasks. Without a command: list them.

    ID is a task's id or the beginning of one; without it, the latest task is meant. Old logs are deleted when
    artoo starts a task: see log.keep_days and log.keep_megabytes in the configuration.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, limit=20, here=False, as_json=False)


@log.command("list")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(min=1), help="The most tasks.")
@click.option("--here", is_flag=True, help="Only tasks of this machine, where several share a store.")
@as_json_option
def list_(limit: int, here: bool, as_json: bool) -> None:
    """Show the latest tasks with their start, ending, changes and request.

    With a shared store, the list has the tasks of all machines.
    """
    from artoo.cli.views import log_view
    from artoo.runtime.changes.settlement_history import SettledBooks
    from artoo.tasklog.reader import list_tasks

    tasks, machines = list_tasks(current_home(), limit), dict[str, str]()
    if not here and (address := current_store()) is not None:
        others = _elsewhere(current_home(), address, limit)
        machines = {one.summary.task_id: one.machine for one in others}
        both = [*tasks, *(one.summary for one in others)]
        tasks = sorted(both, key=lambda one: one.started, reverse=True)[:limit]
    books = SettledBooks.of(current_home())
    ended = {one.task_id: one.result.changes for one in tasks if one.result is not None}
    states = {task_id: books.afterwards(task_id, changes).state for task_id, changes in ended.items()}
    became = {task_id: state for task_id, state in states.items() if state is not None}
    lines = log_view.task_lines(tasks, machines, became)
    report(log_view.tasks_object(tasks, machines, became), lines, as_json=as_json)


def _elsewhere(home: Path, address: StoreAddress, limit: int) -> list[Elsewhere]:
    """List the tasks of other machines. If the store cannot be reached, the local tasks are listed nevertheless."""
    from artoo.contracts.errors import ConfigurationError
    from artoo.runtime.cluster.remote_logs import list_elsewhere

    try:
        return list_elsewhere(home, address, limit)
    except ConfigurationError as error:
        say(f"only tasks of this machine: {error}")
        return []


@log.command("show")
@task_argument
@click.option("--full", is_flag=True, help="Include prompts, answers, outputs and each memory note.")
@as_json_option
def show(task_id: str | None, full: bool, as_json: bool) -> None:
    """Show a task: rounds, subtasks, calls with their cost, verdicts with evidence, the loss, the result.

    The last lines say what became of its changes since: pending, applied, discarded or undone, and when. A very
    long log is shown without its middle; `artoo log export` writes all of it. Unreadable lines are left out and
    named.
    """
    from artoo.cli.results.settlement_view import later_lines
    from artoo.cli.results.task_names import name_at
    from artoo.cli.views import log_view
    from artoo.runtime.changes.settlement_history import SettledBooks
    from artoo.tasklog.lock import is_running
    from artoo.tasklog.reader import TaskLogReader

    reader = reader_of(task_id)
    # This is checked before the log is read. Otherwise, a task that ends in between would seem to have no result.
    running = is_running(reader.directory)
    unreadable: list[str] = []
    story = log_view.told(TaskLogReader(reader.directory, damaged=unreadable.append), whole=full or as_json)
    story.unreadable, story.running = unreadable, running
    state = story.state
    ended = None if state.result is None else state.result.changes
    afterwards = SettledBooks.of(current_home()).afterwards(state.task_id, ended)
    language = "en" if state.result is None else state.result.language
    under = "" if ended is None else ended.kept_under
    name = name_at(current_home(), under or state.task_id)
    lines = log_view.story_lines(story, later_lines(afterwards, name, language, on_board=bool(under)), full=full)
    report(log_view.story_object(story, afterwards) if as_json else None, lines, as_json=as_json)


@log.command("replay")
@task_argument
@click.option(
    "--with",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    help="Show the decisions that the control law would make with other parameters (δ=.2, theta=.9).",
)
@as_json_option
@click.pass_context
def replay(context: click.Context, task_id: str | None, values: tuple[str, ...], as_json: bool) -> None:
    """Run a task again from its log, without model and tools, and compare.

    Exit codes: 0 the same decisions, 1 different ones.
    """
    import asyncio

    from artoo.cli.views import replay_view
    from artoo.runtime.replay import replay as replaying

    reader = reader_of(task_id)
    if values:
        context.exit(_what_if(reader, values, as_json=as_json))
    replayed = asyncio.run(replaying.replay(reader))
    report(replay_view.replay_object(replayed), replay_view.replay_lines(replayed), as_json=as_json)
    context.exit(0 if replayed.difference is None else 1)


def _what_if(reader: TaskLogReader, values: tuple[str, ...], *, as_json: bool) -> int:
    from artoo.cli.views import replay_view
    from artoo.runtime.replay.recording import read_recording
    from artoo.runtime.replay.what_if import changed, law_of, what_if

    recording = read_recording(reader)
    rounds = what_if(recording.stream, changed(law_of(recording), values))
    found = replay_view.what_if_object(recording.task_id, values, rounds)
    report(found, replay_view.what_if_lines(values, rounds), as_json=as_json)
    return 0 if all(each.same for each in rounds) else 1


@log.command("export")
@task_argument
@click.option(
    "-o", "--output", type=click.File("wb", lazy=True), default="-", help="A file (default: standard output)."
)
def export(task_id: str | None, output: BinaryIO) -> None:
    """Write the whole log of a task as JSON lines. Unreadable lines are omitted, and artoo names them."""
    from artoo.cli.display.sanitize import one_line
    from artoo.contracts import codec
    from artoo.tasklog.reader import TaskLogReader

    def left_out(said: str) -> None:
        say(f"left out: {one_line(said)}")

    count = 0
    for _, fields in TaskLogReader(reader_of(task_id).directory, damaged=left_out).fields():
        output.write(codec.line_of(fields) + b"\n")
        count += 1
    output.flush()
    click.echo(f"{count} lines exported", err=True)


def reader_of(task_id: str | None) -> TaskLogReader:
    """Return a reader of a task's log, which is in this home or in the shared store. If no id is given, use the
    latest task."""
    from artoo.contracts.errors import ConfigurationError
    from artoo.tasklog.reader import TaskLogReader, find_log, list_tasks

    home = current_home()
    if task_id is not None:
        try:
            return find_log(home, task_id)
        except ConfigurationError:
            address = current_store()
            if address is None:
                raise
        from artoo.runtime.cluster.remote_logs import find_log_elsewhere

        return find_log_elsewhere(home, address, task_id)
    latest = list_tasks(home, 1)
    if not latest:
        raise ConfigurationError(f"no task has been logged yet in {home}")
    return TaskLogReader(latest[0].directory)
