"""`artoo undo`: puts back what a task changed, file by file, where nobody has changed it since."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from artoo.cli.outward import outward
from artoo.cli.places import Here
from artoo.cli.printable import one_line, show
from artoo.cli.task_names import local_time, name_at
from artoo.contracts.changes import UndoableTask, UndoReport
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
    from artoo.contracts.confirmation import PERSON
    from artoo.runtime.undoing import can_be_undone, put_back, undoable_task
    from artoo.tasklog.reader import request_of
    from artoo.world.undo import damaged

    config = load_config()
    known = can_be_undone(config)
    for cause in damaged(config.home):
        click.echo(f"artoo: {outward(one_line(cause))}", err=True)
    if list_ or task is None:
        asked = {one.task_id: request_of(config.home, one.task_id) for one in known}
        _print_list(config.home, known, asked, as_json)
        return
    task_id = undoable_task(known, task)
    report = put_back(config, task_id, by=PERSON)
    _print_report(report, request_of(config.home, task_id), as_json)
    context.exit(REFUSED if report.refused else 0)


def _print_list(home: Path, known: tuple[UndoableTask, ...], requests: Mapping[str, str], as_json: bool) -> None:
    if as_json:
        found = [{**one.model_dump(mode="json"), "request": requests[one.task_id]} for one in known]
        show(json.dumps(found, indent=2, ensure_ascii=False))
        return
    if not known:
        show("Nothing can be undone: no task has changed anything that is still kept.")
    for one in known:
        last, until = local_time(one.last_at), local_time(one.until)
        name = name_at(home, one.task_id)
        show(f"{name}  {last}  {one_line(requests[one.task_id]) or '(there is no log of it)'}")
        show(f"{' ' * len(name)}  {one.paths} paths in {one.transactions} acts, until {until}: artoo undo {name}")


def _print_report(report: UndoReport, request: str, as_json: bool) -> None:
    if as_json:
        show(json.dumps({**report.model_dump(mode="json"), "request": request}, indent=2, ensure_ascii=False))
        return
    here = Here()
    if request:
        show(f"asked for: {one_line(request)}")
    for path in report.restored:
        show(f"put back  {here.short(path)}")
    for conflict in report.refused:
        show(f"left      {here.short(conflict.path)}: {conflict.reason}")
    if not report.restored and not report.refused:
        show("Everything was as before already.")
