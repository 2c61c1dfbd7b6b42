"""`artoo attach`: follow a task of another process, answer its questions, and see its result."""

from __future__ import annotations

import asyncio
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from artoo.cli.commands.options import HELP
from artoo.cli.commands.run_command import Output, print_result
from artoo.cli.conversation.confirm import Dialogue, dialogue
from artoo.cli.conversation.steering import beside
from artoo.cli.display.display import Progress, display_for
from artoo.cli.display.sanitize import show
from artoo.cli.display.task_state import TaskView
from artoo.cli.results.result_json import exit_code
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.loader import load_config

_LOOK_SECONDS = 0.3
_BY = "terminal"


@click.command(context_settings=HELP)
@click.argument("task_id", metavar="[TASK]", required=False)
@click.pass_context
def attach(context: click.Context, task_id: str | None) -> None:
    """Follow a running task, answer its questions, and see its result. Ctrl-C leaves it running.

    TASK is its id or a beginning of it; without it, the latest task that runs is meant. To write to it, use
    artoo say; to end it, artoo stop. Exit codes as in artoo run; 2 when no such task runs.
    """
    home = load_config().home
    context.exit(asyncio.run(_attach(home, _directory(home, task_id))))


def _directory(home: Path, task_id: str | None) -> Path:
    """Return the log directory of the given task. If none is given, return that of the latest running one. Raises
    ConfigurationError."""
    from artoo.runtime.extensions.background import running
    from artoo.tasklog.reader import find_log

    if task_id is not None:
        return find_log(home, task_id).directory
    found = running(home)
    if not found:
        raise ConfigurationError("no task runs now; artoo log list shows those that have ended")
    return found[0].directory


async def _attach(home: Path, directory: Path) -> int:
    from artoo.runtime.extensions.background import follow

    asking, view = dialogue(), TaskView()
    view.begin(directory.name)
    display = display_for(Progress.AUTO, sys.stderr, view)
    over = nullcontext() if asking is None else asking.over(display, view.show_answer)
    with display.shown(), over:
        async with beside(_questions(home, view, asking)):
            async for envelope in follow(directory):
                view.hear(envelope)
                display.update()
    if view.state.result is None:
        show(f"the task has stopped before its end; to go on with it: artoo resume {directory.name}")
        return 1
    print_result(view.state.result, view, home, Output())
    if asking is not None and (different := asking.take_different()):
        show(f"to go on with it: artoo -c {shlex.quote(different)}")
    return exit_code(view.state.result)


async def _questions(home: Path, view: TaskView, asking: Dialogue | None) -> None:
    """Ask the questions of the task on this terminal. The first answer counts, even if it is given in another
    window."""
    from artoo.runtime.approvals.prompt_store import NotAsked, answer_question, open_questions

    asked: set[str] = set()
    while asking is not None:
        for one in await asyncio.to_thread(open_questions, home, view.state.task_id or None):
            if one.key in asked or one.task_id != view.state.task_id:
                continue
            asked.add(one.key)
            said = await asking(one.request)
            try:
                answer_question(home, one.task_id, one.key, one.request.digest, said, _BY)
            except NotAsked as error:
                show(str(error))
        await asyncio.sleep(_LOOK_SECONDS)
