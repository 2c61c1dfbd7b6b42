"""`artoo resume`: goes on with a task that was interrupted or whose process died."""

from __future__ import annotations

import asyncio

import click

from artoo.cli.commands.options import HELP
from artoo.cli.commands.run_command import Output, Terminal, on_terminal
from artoo.cli.display import run_task as running
from artoo.cli.display.display import Progress
from artoo.cli.display.task_state import TaskView
from artoo.contracts.solution import FinalResult
from artoo.runtime.config.loader import load_config
from artoo.runtime.task.conversations import tell_resumed


@click.command(context_settings=HELP)
@click.argument("task_id", metavar="[ID]", required=False)
@click.option("--json", "as_json_", is_flag=True, help="Print one JSON object as the last line.")
@click.option("--events", is_flag=True, help="Print every message as a JSON line, then the result.")
@click.option(
    "--progress",
    type=click.Choice([choice.value for choice in Progress]),
    default=Progress.AUTO.value,
    help="How to show what is going on (standard error).",
)
@click.option("--strict", is_flag=True, help="Only a complete result is a success.")
@click.pass_context
def resume(
    context: click.Context, task_id: str | None, as_json_: bool, events: bool, progress: str, strict: bool
) -> None:
    """Go on with a task that was interrupted or whose process died.

    ID is a task's id or the beginning of one; without it, the latest task that can go on is meant. Answers of
    models, tool calls and permissions that its log has are not asked for again. Exit codes as in `artoo run`.
    """
    context.exit(asyncio.run(_resume(task_id, Output(as_json_, events, strict=strict), Progress(progress))))


async def _resume(task_id: str | None, output: Output, progress: Progress) -> int:
    async def play(terminal: Terminal) -> tuple[FinalResult, TaskView]:
        result, view = await running.follow_task(
            terminal.runtime,
            terminal.runtime.stream_resumed(task_id),
            f"resume {task_id or ''}".strip(),
            interrupts=terminal.interrupts,
            aside=terminal.aside,
            progress=progress,
            dialogue=terminal.dialogue,
            on_message=terminal.on_message,
        )
        await asyncio.to_thread(tell_resumed, load_config().home, result)
        return result, view

    return await on_terminal(play, output)
