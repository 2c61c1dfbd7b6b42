"""`artoo undo`: puts back what a task changed, file by file, where nobody has changed it since."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click

from artoo.cli.printable import show
from artoo.contracts.changes import UndoableTask, UndoReport
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config_file import load_config

REFUSED = 1


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("task", required=False)
@click.option("--list", "list_", is_flag=True, help="Show what can be undone, and until when.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_context
def undo(context: click.Context, task: str | None, list_: bool, as_json: bool) -> None:
    """Put back what TASK changed. TASK is its id, or a beginning of it that no other task has.

    A file that was changed since is left alone and named; the exit code is 1 then. A task that still runs is left
    alone, and one that was put back cannot be resumed.
    """
    from artoo.runtime.settling import keep_of
    from artoo.tasklog.lock import not_running
    from artoo.world.recover import recover
    from artoo.world.undo import undo as put_back
    from artoo.world.undo import undoable

    config = load_config()
    recover(config.home)
    known = undoable(config.home, keep_of(config))
    if list_ or task is None:
        _print_list(known, as_json)
        return
    task_id = _task_id(task, known)
    with not_running(config.home, task_id):
        report = put_back(config.home, task_id)
    _print_report(report, as_json)
    context.exit(REFUSED if report.refused else 0)


def _task_id(beginning: str, known: tuple[UndoableTask, ...]) -> str:
    """The one task that begins so. Raises ConfigurationError when there is none, or more than one."""
    found = [one.task_id for one in known if one.task_id.startswith(beginning)]
    if beginning in found:
        return beginning
    if len(found) != 1:
        what = "nothing is kept of a task" if not found else f"{len(found)} tasks begin with"
        raise ConfigurationError(f"{what} {beginning!r}; artoo undo --list shows what can be undone")
    return found[0]


def _print_list(known: tuple[UndoableTask, ...], as_json: bool) -> None:
    if as_json:
        show(json.dumps([one.model_dump(mode="json") for one in known], indent=2))
        return
    if not known:
        show("Nothing can be undone: no task has changed anything that is still kept.")
    for one in known:
        last, until = _when(one.last_at), _when(one.until)
        show(f"{one.task_id}  {last}  {one.paths} paths in {one.transactions} acts, until {until}")


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _print_report(report: UndoReport, as_json: bool) -> None:
    if as_json:
        show(report.model_dump_json(indent=2))
        return
    for path in report.restored:
        show(f"put back  {path}")
    for conflict in report.refused:
        show(f"left      {conflict.path}: {conflict.reason}")
    if not report.restored and not report.refused:
        show("Everything was as before already.")
