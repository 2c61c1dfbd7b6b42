"""`artoo run` and `artoo resume`: all options of a task, such as `--effort` and `--events`, and its output."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import click

from artoo.cli.commands.exit_codes import INTERRUPTED
from artoo.cli.commands.options import HELP, Directory, text_of
from artoo.cli.conversation.confirm import dialogue
from artoo.cli.conversation.own_commands import as_request
from artoo.cli.conversation.piped_input import piped_input
from artoo.cli.display import run_task as running
from artoo.cli.display.colors import Paint, is_plain
from artoo.cli.display.display import Progress
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.sanitize import show, show_as_it_is
from artoo.cli.display.side_channel import Aside
from artoo.cli.display.task_state import TaskView
from artoo.cli.results.redact_output import outward
from artoo.cli.results.result_json import as_json, exit_code
from artoo.cli.results.result_view import ResultText
from artoo.cli.results.task_names import name_at
from artoo.contracts.envelope import Envelope
from artoo.contracts.plan import Effort
from artoo.contracts.settling import ApplyMode
from artoo.contracts.solution import FinalResult
from artoo.runtime.app.run_options import Budgets, RunOptions, check_policy_line
from artoo.runtime.config.endpoints import with_model
from artoo.runtime.config.loader import load_config
from artoo.runtime.task.conversations import Session, open_session, tell_resumed

EFFORTS: tuple[Effort, ...] = ("quick", "normal", "long")
_OF_THE_TERMINAL = ("text", "background", "detached", "progress", "as_json_", "events", "verbose")
"""The parameters that are not passed on to the process of a run in the background."""


@dataclass(frozen=True, slots=True)
class Output:
    """The form of standard output. It is text for users, one JSON object, or (`events`) all messages followed by
    the object.

    `verbose`: true to show the figures of each round in the progress. `strict`: true if only a complete result
    gives exit code 0. `talk`: the option with which the user can continue this conversation. It is "" inside a
    conversation. `detached`: the file to which the id of a task in the background is written.
    """

    json: bool = False
    events: bool = False
    verbose: bool = False
    strict: bool = False
    talk: str = "-c"
    detached: Path | None = None


_json_option = click.option("--json", "as_json_", is_flag=True, help="Print one JSON object as the last line.")
_events_option = click.option("--events", is_flag=True, help="Print every message as a JSON line, then the result.")
_strict_option = click.option("--strict", is_flag=True, help="Only a complete result is a success.")
_progress_option = click.option(
    "--progress",
    type=click.Choice([choice.value for choice in Progress]),
    default=Progress.AUTO.value,
    help="The progress display on standard error.",
)


@click.command(context_settings=HELP)
@click.argument("text", nargs=-1)
@_json_option
@_events_option
@click.option(
    "--workspace",
    type=Directory(file_okay=False, path_type=Path),
    help="The output folder (default: ~/artoo_workspace).",
)
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The directory where commands run (default: the current one).",
)
@click.option(
    "--apply",
    type=click.Choice([mode.value for mode in ApplyMode]),
    help="What takes effect without approval: new files (the default), edits too, edits at each turn (live), "
    "nothing (ask), or everything in project and output folder (all: for containers and CI).",
)
@click.option("--allow", multiple=True, metavar="LINE", help='Permit an operation beforehand: "edits src/**".')
@click.option("--check", multiple=True, metavar="COMMAND", help="A command that must succeed at the end.")
@click.option(
    "--image",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An image that the model is shown (PNG, JPEG, GIF, WebP); may be repeated.",
)
@click.option("--verify", is_flag=True, help="Compute each answer in a second way, and compare the two.")
@click.option("--budget", multiple=True, metavar="LIMITS", help="seconds=120,calls=20,tokens=50000,money=0.50")
@click.option(
    "--effort",
    type=click.Choice(EFFORTS),
    help="The size of the task and of its budgets (default: the plan decides).",
)
@click.option(
    "--plan", "show_plan", is_flag=True, help="Show the plan for approval or changes before anything runs."
)
@_strict_option
@click.option("--strict-roles", is_flag=True, help="Every role asks its model, even where code could decide.")
@click.option("--model", metavar="NAME", help="The model for this request, of the configured server.")
@click.option("-c", "--continue", "latest", is_flag=True, help="Continue the last conversation of this project.")
@click.option("--session", metavar="NAME", help="Start or continue the conversation with this name.")
@click.option("-v", "--verbose", is_flag=True, help="Show the control law's numbers of each round.")
@click.option("--no-memory", is_flag=True, help="Do not use memory.")
@click.option("--background", is_flag=True, help="Run in a process of its own; artoo attach shows it.")
@click.option("--detached", type=click.Path(path_type=Path), hidden=True)
@_progress_option
@click.pass_context
def run(
    context: click.Context,
    text: tuple[str, ...],
    as_json_: bool,
    events: bool,
    workspace: Path | None,
    project: Path | None,
    apply: str | None,
    allow: tuple[str, ...],
    check: tuple[str, ...],
    image: tuple[Path, ...],
    verify: bool,
    budget: tuple[str, ...],
    effort: Effort | None,
    show_plan: bool,
    strict: bool,
    strict_roles: bool,
    model: str | None,
    latest: bool,
    session: str | None,
    verbose: bool,
    no_memory: bool,
    background: bool,
    detached: Path | None,
    progress: str,
) -> None:
    """Run the request TEXT. If TEXT is -, artoo reads the request from standard input. Otherwise the task can read
    piped data in /tmp/input.

    Exit codes: 0 done, 1 abandoned, 2 usage or configuration, 3 no model reachable, 4 done with pending changes
    (artoo diff, artoo apply, artoo discard), 5 artoo asks a question, 130 interrupted.
    """
    if not text and (latest or session):
        from artoo.cli.conversation.repl import converse

        context.exit(converse(name=session, latest=latest))
    if model is not None and not model.strip():
        raise click.UsageError("--model is empty; name a model of the configured server, or leave the option out")
    if model:
        # The environment overrides the configuration file, so the model of this process is set in the environment.
        os.environ.update(with_model({}, model))
    for line in allow:
        check_policy_line(line)
    talk = open_session(load_config().home, name=session, latest=latest, project=project)
    options = RunOptions(
        workspace=workspace,
        project=project,
        apply=ApplyMode(apply) if apply is not None else None,
        allow=allow,
        checks=check,
        images=image,
        verify=verify,
        budgets=Budgets.parse(budget),
        effort=effort,
        plan=show_plan,
        strict=strict,
        strict_roles=strict_roles,
        memory=not no_memory,
    )
    if verify and len(text) > 1 and any(len(each.split()) > 1 for each in text):
        raise click.UsageError(
            f"which of these is the request: {'; '.join(text)}? --verify takes no value; a command that must "
            'succeed in the end is --check "COMMAND". Put the request between quotes, as one'
        )
    typed = text_of(text).strip()
    if not typed:
        raise click.UsageError('the request is empty; say what you want done: artoo "…"')
    home = load_config().home
    request = asyncio.run(as_request(typed, home, project))
    material = b"" if text == ("-",) else piped_input()
    if background:
        _start_in_background(home, context, request, material)
        return
    options = replace(options, material=material)
    output = Output(as_json_, events, verbose, strict, f"--session {session}" if session else "-c", detached)
    context.exit(asyncio.run(_run(request, options, output, Progress(progress), talk)))


def _start_in_background(home: Path, context: click.Context, request: str, material: bytes) -> None:
    """Start the same run in a new process. Print the commands that show it."""
    from artoo.runtime.extensions.background import start

    arguments: list[str] = []
    for option in context.command.params:
        name, value = option.name or "", context.params.get(option.name or "")
        typed = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        # Defaults are left out, because the new process reads the same configuration.
        if not isinstance(option, click.Option) or not typed or name in _OF_THE_TERMINAL:
            continue
        values = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        arguments += [option.opts[-1]] if option.is_flag else [f"{option.opts[-1]}={one}" for one in values]
    name = name_at(home, start(home, [*arguments, "--", request], material))
    show(
        f"started as {name}\n  watch it, answer it: artoo attach {name}\n  its result later: artoo log show {name}"
    )


async def _run(request: str, options: RunOptions, output: Output, progress: Progress, talk: Session) -> int:
    """Run the request, and print its result as soon as there is one. Returns the exit code."""

    async def play(terminal: running.Terminal) -> tuple[FinalResult, TaskView]:
        wanted, given = request, options
        while True:
            result, view = await running.follow_task(
                terminal,
                terminal.runtime.stream(wanted, history=talk.turns, options=given),
                wanted,
                progress=progress,
                numbers=output.verbose,
                on_message=talk.noting(wanted, terminal.on_message),
            )
            talk.add_result(wanted, result)
            different = terminal.dialogue.take_different() if terminal.dialogue is not None else ""
            if not different:
                return result, view
            # Images and piped data belong only to the first request of a conversation.
            wanted, given = different, replace(options, images=(), material=b"")

    return await on_terminal(play, output)


@click.command(context_settings=HELP)
@click.argument("task_id", metavar="[ID]", required=False)
@_json_option
@_events_option
@_progress_option
@_strict_option
@click.pass_context
def resume(
    context: click.Context, task_id: str | None, as_json_: bool, events: bool, progress: str, strict: bool
) -> None:
    """Resume a task that was interrupted or whose process died.

    ID is a task's id or the beginning of one; without it, the latest task that can be resumed. Model answers, tool
    calls and approvals in its log are not repeated. Exit codes as in `artoo run`.
    """
    context.exit(asyncio.run(_resume(task_id, Output(as_json_, events, strict=strict), Progress(progress))))


async def _resume(task_id: str | None, output: Output, progress: Progress) -> int:
    async def play(terminal: running.Terminal) -> tuple[FinalResult, TaskView]:
        result, view = await running.follow_task(
            terminal,
            terminal.runtime.stream_resumed(task_id),
            f"resume {task_id or ''}".strip(),
            progress=progress,
        )
        await asyncio.to_thread(tell_resumed, load_config().home, result)
        return result, view

    return await on_terminal(play, output)


async def on_terminal(
    play: Callable[[running.Terminal], Awaitable[tuple[FinalResult, TaskView]]], output: Output
) -> int:
    """Run a task on a new runtime, and print its result. Returns the exit code."""
    config, aside, asking = load_config(), Aside(), dialogue()
    on_message, confirm = _print_message if output.events else None, asking
    if output.detached is not None:
        from artoo.runtime.extensions.background import noting_begin, wait_for_others

        on_message, confirm = noting_begin(output.detached), wait_for_others
    try:
        with Interrupts() as interrupts:
            async with running.open_runtime(config, aside, confirm) as runtime:
                result, view = await play(running.Terminal(runtime, interrupts, aside, asking, on_message))
                print_result(result, view, config.home, output)
                # The output is flushed, so that the user sees it before memory is maintained.
                sys.stdout.flush()
                # In a process for a single request the Dreamer does not run, so memory is maintained here.
                await runtime.dream_briefly()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        # The reader of the output has ended. Python would report another error when it flushes the remaining output
        # at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    return exit_code(result, strict=output.strict)


def print_result(result: FinalResult, view: TaskView, home: Path, output: Output) -> None:
    """Print a result on standard output, in the form of `output`."""
    if output.json or output.events:
        show(outward(as_json(result, view.verdicts)))
        return
    name = name_at(home, result.task_id)
    terminal, plain = sys.stdout.isatty(), is_plain(sys.stdout, os.environ)
    columns = shutil.get_terminal_size().columns if terminal else 0
    ending = ResultText(
        result,
        view,
        name,
        paint=Paint(colours=not plain),
        terminal=terminal,
        columns=columns,
        talk=output.talk,
    )
    show_as_it_is(ending.lines())


def _print_message(envelope: Envelope) -> None:
    from artoo.contracts.codec import encode

    show(outward(encode(envelope).decode("utf-8")))
