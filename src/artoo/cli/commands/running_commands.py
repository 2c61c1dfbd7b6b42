"""`artoo ps`, `artoo stop` and `artoo say`: list, stop or steer running tasks and their remaining processes."""

from __future__ import annotations

import shutil

import click

from artoo.cli.commands.exit_codes import FAILED
from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import asked_line, one_line, print_json, show
from artoo.cli.results.task_names import name_at
from artoo.runtime.config.loader import load_config
from artoo.words.shown import local_time


@click.command(context_settings=HELP)
@as_json_option
def ps(as_json: bool) -> None:
    """List running tasks, and the processes that tasks left running, with their states.

    Each line has an id, state, start, task and command. The output is in running/ID/output in artoo's home.
    """
    from artoo.runtime.extensions.background import running
    from artoo.runtime.task.kept_processes import LeftProcess, left_processes

    def state(one: LeftProcess) -> str:
        if one.runs:
            return "running"
        return "stopped" if one.exit_code is None else f"ended ({one.exit_code})"

    home = load_config().home
    found, tasks = [(one, state(one)) for one in left_processes(home)], running(home)
    if as_json:
        listed = [{"task_id": one.task_id, "request": one.request, "state": "task"} for one in tasks]
        print_json(
            [
                *listed,
                *({**one.started.model_dump(), "state": how, "output": str(one.output)} for one, how in found),
            ]
        )
        return
    for one in tasks:
        name = name_at(home, one.task_id)
        show(f"{name}  task  {asked_line(one.request)} (artoo attach {name})")
    if not found and not tasks:
        show("No task runs, and none has left anything running.")
    for one, how in found:
        started = one.started
        begun, command = local_time(started.since), one_line(started.command)
        show(f"{started.id}  {how:<11}  {begun}  {started.task_id[:8]}  {command}")


@click.command(context_settings=HELP)
@click.argument("task_id", metavar="TASK")
@click.argument("text", nargs=-1, required=True)
@click.pass_context
def say(context: click.Context, task_id: str, text: tuple[str, ...]) -> None:
    """Send TEXT to a running task, which reads it before its next turn.

    TASK is its id, or the beginning of it. Exit codes: 0 sent, 1 the task does not run.
    """
    from artoo.contracts.steering import UserMessage
    from artoo.runtime.approvals.prompt_store import send_message
    from artoo.tasklog.reader import find_log

    home, said = load_config().home, " ".join(text).strip()
    if not said:
        raise click.UsageError("the message is empty")
    whole = find_log(home, task_id).task_id()
    if not send_message(home, whole, UserMessage(text=said, by="terminal")):
        show(f"task {task_id} does not run now; to go on with one that stopped: artoo resume {task_id}")
        context.exit(FAILED)
    show("The message is sent.")


@click.command(context_settings=HELP)
@click.argument("process_id", metavar="ID")
@click.option("--forget", is_flag=True, help="Remove its output and its line in `artoo ps`, too.")
@click.pass_context
def stop(context: click.Context, process_id: str, forget: bool) -> None:
    """Stop a running task, or a process that a task left running. ID is its id in `artoo ps`, or its beginning.

    A task ends with what it has reached; artoo resume continues it.

    Exit codes: 0 stopped or ended already, 1 it could not be stopped, 2 there is no such process.
    """
    from artoo.runtime.approvals.prompt_store import ask_to_stop
    from artoo.runtime.extensions.background import running
    from artoo.runtime.task.kept_processes import find_left

    home = load_config().home
    tasks = [one.task_id for one in running(home) if one.task_id.startswith(process_id)]
    if len(tasks) == 1 and ask_to_stop(home, tasks[0]):
        show(f"{name_at(home, tasks[0])} is asked to stop")
        return
    found = find_left(load_config().home, process_id)
    ran = found.runs
    found.stop()
    if found.runs:
        show(f"{found.started.id} could not be stopped; it may belong to another user now")
        context.exit(FAILED)
    show(f"{found.started.id} {'was stopped' if ran else 'had ended already'}: {one_line(found.started.command)}")
    if forget:
        shutil.rmtree(found.place, ignore_errors=True)
