"""`artoo log`: what tasks did, from the record that can prove it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import print_json
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
    """Look at what tasks did. Without a command: the list of tasks.

    ID is a task's id or the beginning of one; without it, the latest task is meant. Old logs are forgotten when
    artoo starts a task: see log.keep_days and log.keep_megabytes in the configuration.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, limit=20, here=False, as_json=False)


@log.command("list")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many, at most.")
@click.option("--here", is_flag=True, help="Only those of this machine, where several share a store.")
@as_json_option
def list_(limit: int, here: bool, as_json: bool) -> None:
    """Show the latest tasks: when, how they ended, what became of their changes, what was asked.

    With a shared store: those of all machines.
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
    if as_json:
        print_json(log_view.tasks_object(tasks, machines, became))
    else:
        log_view.show_tasks(tasks, machines, became)


def _elsewhere(home: Path, address: StoreAddress, limit: int) -> list[Elsewhere]:
    """Those of the other machines. A store that is away is no reason not to show what is here."""
    from artoo.contracts.errors import ConfigurationError
    from artoo.runtime.cluster.remote_logs import list_elsewhere

    try:
        return list_elsewhere(home, address, limit)
    except ConfigurationError as error:
        say(f"only tasks of this machine: {error}")
        return []


@log.command("show")
@task_argument
@click.option("--full", is_flag=True, help="With prompts, answers, outputs and each note of memory.")
@as_json_option
def show(task_id: str | None, full: bool, as_json: bool) -> None:
    """Show a task: rounds, subtasks, calls with their cost, verdicts with evidence, the loss, the result.

    At the end stands what became of its changes since: what waits, was applied, discarded or put back, and when. Of
    a very long log the first and the last events are shown, and how many there are between them; `artoo log export`
    writes all of it. Lines that cannot be read are left out, and named.
    """
    from artoo.cli.display.progress import reading_progress
    from artoo.cli.results.later_settlement import SettledSince
    from artoo.cli.results.task_names import name_at
    from artoo.cli.views import log_view
    from artoo.cli.views.log_summary import told
    from artoo.runtime.changes.settlement_history import SettledBooks
    from artoo.tasklog.lock import is_running
    from artoo.tasklog.reader import TaskLogReader

    reader = reader_of(task_id)
    running = is_running(reader.directory)  # before it is read: a task that ends meanwhile has a result
    with reading_progress("log", reader.bytes) as progress:
        unreadable: list[str] = []
        story = told(TaskLogReader(reader.directory, progress, unreadable.append), whole=full or as_json)
        story.unreadable, story.running = unreadable, running
    state = story.state
    ended = None if state.result is None else state.result.changes
    afterwards = SettledBooks.of(current_home()).afterwards(state.task_id, ended)
    if as_json:
        print_json(log_view.story_object(story, afterwards))
        return
    language = "en" if state.result is None else state.result.language
    under = "" if ended is None else ended.kept_under
    name = name_at(current_home(), under or state.task_id)
    since = SettledSince(afterwards, name, language, on_board=bool(under))
    log_view.show_story(story, since, full=full)


@log.command("replay")
@task_argument
@click.option(
    "--with",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    help="What other hyperparameters decide (δ=.2, theta=.9).",
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
    if as_json:
        print_json(replay_view.replay_object(replayed))
    else:
        replay_view.show_replay(replayed)
    context.exit(0 if replayed.difference is None else 1)


def _what_if(reader: TaskLogReader, values: tuple[str, ...], *, as_json: bool) -> int:
    from artoo.cli.views import replay_view
    from artoo.runtime.replay.recording import read_recording
    from artoo.runtime.replay.what_if import changed, law_of, what_if

    recording = read_recording(reader)
    rounds = what_if(recording.stream, changed(law_of(recording), values))
    if as_json:
        print_json(replay_view.what_if_object(recording.task_id, values, rounds))
    else:
        replay_view.show_what_if(values, rounds)
    return 0 if all(each.same for each in rounds) else 1


@log.command("export")
@task_argument
@click.option(
    "-o", "--output", type=click.File("wb", lazy=True), default="-", help="A file (default: standard output)."
)
def export(task_id: str | None, output: BinaryIO) -> None:
    """Write a task's whole log as JSON lines, long strings put back where they belong.

    Lines that cannot be read are left out, and named.
    """
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
    """The log of a task of this home, or of the shared store; of the latest task without an id."""
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
