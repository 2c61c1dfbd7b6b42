"""`artoo skill`: the skills that tasks here are offered, and what was said to those of projects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP
from artoo.cli.display.sanitize import one_line, show
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from artoo.runtime.app.skill_selection import Agreed, Said
    from artoo.runtime.config.model import Config
    from artoo.tools.context.skills import Found

_SHOWN = 12
_STANDS = {True: "agreed", False: "refused", None: "not asked yet"}


@click.group(context_settings=HELP)
def skill() -> None:
    """Skills: what tasks in this directory are offered, and your answers to those of projects."""


@skill.command(name="list", context_settings=HELP)
@click.option("--all", "everything", is_flag=True, help="Every answer that is kept, of other projects too.")
def list_(everything: bool) -> None:
    """Show your own skills, and those of the project in this directory with what you said to them."""
    config = load_config()
    agreed, found = _of(config)
    own = _own(config)
    lines = [f"yours {one.name}: {one.description}" for one in own.skills]
    lines += [f"{_STANDS[agreed.of(one)]} {one.name}: {one.description} ({one.folder})" for one in found.skills]
    lines += [f"left out {problem}" for problem in (*own.problems, *found.problems)]
    if everything:
        kept = agreed.kept()
        lines += [f"{digest[:_SHOWN]} {'yes' if yes else 'no'} {folder}" for digest, yes, folder in kept]
    show("\n".join(map(one_line, lines)) or "There are no skills here: docs/skills.md says how to write one.")


@skill.command(context_settings=HELP)
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every skill that tasks here would be asked about.")
def accept(name: str | None, everything: bool) -> None:
    """Agree to a skill of this directory's project, exactly as it is now. Read it first.

    Where several folders have one of that name it is the one that tasks are offered; the others stay as they are.
    Where you have one of that name yourself, tasks are offered yours, and there is nothing to agree to.
    """
    from artoo.runtime.app.skill_selection import named_once

    config = load_config()
    agreed, found = _of(config)
    own = _own(config).skills
    if everything == (name is not None):
        raise click.UsageError("name one skill, or say --all")
    if everything:
        offered = named_once(found.skills, own)
        agreed.note(offered, yes=True)
        for one in offered:
            show(one_line(f"{one.name} is agreed to, as it is now ({one.folder})"))
        if not offered:
            show("The project here has no skills that tasks would be offered.")
        return
    wanted = [one for one in named_once(found.skills, own) if one.name == name]
    if not wanted and any(one.name == name for one in found.skills):
        raise ConfigurationError(
            f"tasks are offered your own skill {name!r} in place of the one of the project here"
        )
    if not wanted:
        known = ", ".join(one.name for one in found.skills) or "none"
        raise ConfigurationError(f"the project here has no skill {name!r}; it has: {known}")
    agreed.note(wanted, yes=True)
    show(one_line(f"{name} is agreed to, as it is now ({wanted[0].folder})"))
    for other in found.skills:
        if other.name == name and not agreed.of(other):
            show(one_line(f"not agreed to: the other one of that name ({other.folder})"))


@skill.command(context_settings=HELP)
@click.argument("name")
def forget(name: str) -> None:
    """Forget answers, and be asked anew: by a skill's name here, or by what `list --all` shows first."""
    agreed, found = _of(load_config())
    here = {one.digest for one in found.skills if one.name == name}
    project = Path.cwd().resolve()

    def wanted(digest: str, said: Said) -> bool:
        return digest in here or said.was(name, project) or (len(name) >= _SHOWN and digest.startswith(name))

    forgotten = agreed.forget(wanted)
    if not forgotten:
        raise ConfigurationError(f"no answer is kept for {name!r}; artoo skill list --all shows those that are")
    show("1 answer is forgotten" if forgotten == 1 else f"{forgotten} answers are forgotten")


def _of(config: Config) -> tuple[Agreed, Found]:
    from artoo.ports.sandbox import Roots
    from artoo.runtime.app.skill_selection import Agreed, project_skills
    from artoo.workspace.changes.path_class import Places
    from artoo.workspace.files.rooted import real_files

    roots = Roots(project=Path.cwd(), workspace=config.workspace_path, home=Path.home().resolve())
    return Agreed(config.home), project_skills(real_files(), roots, Places.of(roots, config.home))


def _own(config: Config) -> Found:
    from artoo.runtime.app.skill_selection import HOME_FOLDER
    from artoo.tools.context.skills import skills_in
    from artoo.workspace.files.rooted import real_files

    folder = config.home / HOME_FOLDER
    return skills_in(real_files(), folder, folder.resolve(), foreign=False)
