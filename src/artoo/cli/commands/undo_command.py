"""`artoo undo`: list applied tasks, and restore the files that `workspace.commit.restore` permits."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.conversation.yes_no import agreed, is_asked
from artoo.cli.display.sanitize import asked_line, one_line, print_json, show
from artoo.cli.display.screen import show_lines
from artoo.cli.results.redact_output import say
from artoo.cli.results.relative_paths import Here
from artoo.cli.results.task_names import name_at
from artoo.contracts.changes import UndoableTask, UndoReport, path_bytes
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import is_gits
from artoo.contracts.text import shortened
from artoo.runtime.changes.request_lookup import what_was_asked
from artoo.runtime.config.loader import load_config
from artoo.words.catalogue import in_language
from artoo.words.language import language_of
from artoo.words.shown import local_time, plural

if TYPE_CHECKING:
    from artoo.runtime.config.model import Config

REFUSED = 1
NAMED = 12
"""Maximum number of paths in the list before an undo, and in the lists of restored and removed paths after it."""

_ASKED = 80
"""Maximum number of characters of a request in an error message."""

_NO_LOG = "(request not recorded)"


@click.command(context_settings=HELP)
@click.argument("task", required=False)
@click.option("--list", "list_", is_flag=True, help="Show what can be undone, and until when.")
@click.option("--yes", is_flag=True, help="Do not ask whether the latest task is meant.")
@as_json_option
@click.pass_context
def undo(context: click.Context, task: str | None, list_: bool, yes: bool, as_json: bool) -> None:
    """Undo the changes that TASK applied. TASK is its id, or a beginning of it that no other task has.

    Without TASK, the latest task that was started here or changed something here is meant. On a terminal artoo asks
    before it undoes this task; without a terminal it only names the task. A file that was changed since then is not
    restored, and artoo names it. A running task cannot be undone, and an undone task cannot be resumed.

    Exit codes: 0 undone, 1 a file was not restored or you said no, 2 no such task, or none was named.
    """
    from artoo.contracts.confirmation import PERSON
    from artoo.runtime.changes.undo import can_be_undone, put_back, undoable_task, undone_already
    from artoo.workspace.commit import unreadable

    config = load_config()
    known = can_be_undone(config)
    for cause in unreadable(config.home):
        say(one_line(cause))
    if list_:
        asked = {one.task_id: what_was_asked(config.home, one.task_id) for one in known}
        _print_list(config.home, known, asked, as_json)
        return
    # It is no error if the task is undone already, because a script may repeat the command after an interruption.
    already = undone_already(config, known, task) if task is not None else None
    if already is not None:
        if not as_json:
            show(f"{name_at(config.home, already.task_id)} was undone already, {local_time(already.at)}")
        report = UndoReport(task_id=already.task_id, restored=already.paths)
        _print_report(report, what_was_asked(config.home, already.task_id), as_json)
        return
    task_id = _latest(config, known, yes=yes) if task is None else undoable_task(known, task)
    if task_id is None:
        context.exit(REFUSED)
    report = put_back(config, task_id, by=PERSON)
    _print_report(report, what_was_asked(config.home, task_id), as_json)
    context.exit(REFUSED if report.refused else 0)


def _latest(config: Config, known: tuple[UndoableTask, ...], *, yes: bool) -> str | None:
    """Find the latest task of this directory, and ask whether it is to be undone. Returns None if the user
    declines.

    Raises ConfigurationError.
    """
    from artoo.runtime.changes.undo import latest_here, paths_of

    here = Here()
    latest = latest_here(config, known, here.directory)
    if latest is None:
        raise ConfigurationError("no task here can be undone; artoo undo --list shows those that can")
    if yes:
        return latest.task_id
    asked, name = what_was_asked(config.home, latest.task_id), name_at(config.home, latest.task_id)
    if not is_asked():
        what = ", ".join(part for part in (local_time(latest.last_at), shortened(one_line(asked), _ASKED)) if part)
        raise ConfigurationError(f"name the task; the latest here ({what}): artoo undo {name}")
    words = in_language(language_of(asked))
    lines = [f"{name}  {local_time(latest.last_at)}  {asked_line(asked) or _NO_LOG}"]
    # The user's own files are listed before the files of git.
    paths = sorted(paths_of(config, latest.task_id), key=is_gits)
    lines += [f"    {here.short(path)}" for path in paths[:NAMED]]
    lines += [f"    {words('and {count} more', count=f'{len(paths) - NAMED:,}')}"] if len(paths) > NAMED else []
    show_lines(lines, sys.stderr)
    return latest.task_id if asyncio.run(agreed(words("Undo this? [y]es, [N]o: "))) else None


def _print_list(home: Path, known: tuple[UndoableTask, ...], requests: Mapping[str, str], as_json: bool) -> None:
    if as_json:
        found = [{**one.model_dump(mode="json"), "request": requests[one.task_id]} for one in known]
        print_json(found)
        return
    if not known:
        show("Nothing can be undone: no task has changed anything that is still kept.")
    for one in known:
        last, until = local_time(one.last_at), local_time(one.until)
        name = name_at(home, one.task_id)
        _show(f"{name}  {last}  {asked_line(requests[one.task_id]) or _NO_LOG}")
        what = plural(one.paths, "path")
        what += f" in {one.transactions:,} acts" if one.transactions > 1 else ""
        _show(f"{' ' * len(name)}  {what}, until {until}: artoo undo {name}")


def _print_report(report: UndoReport, request: str, as_json: bool) -> None:
    if as_json:
        print_json({**report.model_dump(mode="json"), "request": request})
        return
    here = Here()
    if request:
        _show(f"asked for: {asked_line(request)}")
    # An entry like `DIRECTORY/.git (main: 1 commit)` is a change made with git and no file.
    became = {path: "/.git (" in path or os.path.lexists(path_bytes(path)) for path in sorted(report.restored)}
    for done, is_there in (("restored", True), ("removed ", False)):
        for line in _told([path for path, there in became.items() if there is is_there], here):
            _show(f"{done}  {line}")
    for path in report.separate:
        _show(f"separate  {here.short(path)}: a file of its own now; other names that it had lead to another file")
    for conflict in report.refused:
        _show(f"left      {here.short(conflict.path)}: {conflict.reason}")
    if not report.restored and not report.refused:
        show("Everything was restored already.")


def _show(line: str) -> None:
    show_lines([line])


def _told(paths: Sequence[str], here: Here) -> Iterator[str]:
    """Yield the first `NAMED` paths of the user's own files, and one line for the files of git in each
    repository."""
    own = [path for path in paths if not is_gits(path)]
    yield from (here.short(path) for path in own[:NAMED])
    if len(own) > NAMED:
        yield f"{len(own) - NAMED:,} more"
    for repository, files in Counter(f"{path}/".partition("/.git/")[0] for path in paths if is_gits(path)).items():
        yield f"{here.short(f'{repository}/.git')}: {files:,} of git's own"
