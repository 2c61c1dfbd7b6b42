"""`artoo trust`: approve or refuse the hooks and slash commands of this directory's project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP
from artoo.cli.display.sanitize import one_line, printable, show
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from artoo.runtime.app.skill_selection import Agreed
    from artoo.runtime.extensions.project_files import ProjectFile

_STANDS = {True: "approved", False: "refused", None: "not approved yet"}


@click.group(invoke_without_command=True, context_settings=HELP)
@click.pass_context
def trust(context: click.Context) -> None:
    """Show the hooks and slash commands of this directory's project, and whether you approved them."""
    if context.invoked_subcommand is not None:
        return
    answers, found = _found()
    for file in found:
        show(one_line(f"{_STANDS[answers.of(file)]}: {_named(file)} ({file.folder}, {file.digest[:12]})"))
        show("\n".join(f"  {line}" for line in printable(file.text).splitlines()))
    if not found:
        show("The project here brings no hooks and no slash commands (.artoo/hooks.yaml, .artoo/commands/*.md).")


@trust.command(context_settings=HELP)
@click.argument("names", nargs=-1)
def accept(names: tuple[str, ...]) -> None:
    """Approve the project's hooks and commands exactly as they are now; NAMES: only these. Read them first."""
    _answer(names, yes=True)


@trust.command(context_settings=HELP)
@click.argument("names", nargs=-1)
def refuse(names: tuple[str, ...]) -> None:
    """Refuse the project's hooks and commands, so that no task asks about them; NAMES: only these."""
    _answer(names, yes=False)


def _answer(names: tuple[str, ...], *, yes: bool) -> None:
    answers, found = _found()
    wanted = [file for file in found if not names or file.name in names or _named(file) in names]
    if missing := [name for name in names if all(name not in (file.name, _named(file)) for file in found)]:
        known = ", ".join(map(_named, found)) or "nothing"
        raise click.UsageError(f"the project here has no {missing[0]!r}; it has: {known}")
    answers.note(wanted, yes=yes)
    for file in wanted:
        show(one_line(f"{_named(file)} is {_STANDS[yes]}, as it is now ({file.folder})"))
    if not wanted:
        show("The project here brings no hooks and no slash commands.")


def _found() -> tuple[Agreed, list[ProjectFile]]:
    from artoo.runtime.app.skill_selection import Agreed
    from artoo.runtime.extensions.project_files import COMMANDS_FOLDER, command_files, hooks_file

    project = Path.cwd()
    hooks = hooks_file(project)
    listed = [*([hooks] if hooks is not None else []), *command_files(project / COMMANDS_FOLDER, project)]
    return Agreed(load_config().home), listed


def _named(file: ProjectFile) -> str:
    return file.name if file.folder.name == "hooks.yaml" else f"/{file.name}"
