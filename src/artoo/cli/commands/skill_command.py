"""`artoo skill list|accept|forget`: the skills of tasks here, and the approval of a project's skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP
from artoo.cli.display.sanitize import one_line, show
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.loader import load_config
from artoo.words.shown import plural

if TYPE_CHECKING:
    from artoo.runtime.app.skill_selection import Agreed, SkillAnswer
    from artoo.runtime.config.model import Config
    from artoo.tools.context.skills import FoundSkills

_SHOWN = 12
_STANDS = {True: "accepted", False: "refused", None: "not asked yet"}


@click.group(context_settings=HELP)
def skill() -> None:
    """List the skills that tasks in this directory get, and approve those of projects."""


@skill.command(name="list", context_settings=HELP)
@click.option("--all", "everything", is_flag=True, help="Show all answers, also those for other projects.")
def list_(everything: bool) -> None:
    """Show your own skills, and the skills of the project in this directory with your answers about them."""
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
@click.option("--all", "everything", is_flag=True, help="Accept every skill that tasks here would ask about.")
def accept(name: str | None, everything: bool) -> None:
    """Accept a skill of the project in this directory, exactly as it is now. Read it first.

    If several folders have a skill of that name, the one that tasks get is accepted. A skill of your own with the
    same name takes precedence, and there is nothing to accept.
    """
    from artoo.runtime.app.skill_selection import named_once

    if everything == (name is not None):
        raise click.UsageError("name one skill, or say --all")
    config = load_config()
    agreed, found = _of(config)
    offered = [one for one in named_once(found.skills, _own(config).skills) if everything or one.name == name]
    if not offered and not everything:
        known = ", ".join(one.name for one in found.skills) or "none"
        raise ConfigurationError(f"tasks get no skill {name!r} from this project, which has: {known}")
    agreed.note(offered, yes=True)
    for one in offered:
        show(one_line(f"{one.name} is accepted, as it is now ({one.folder})"))
    if not offered:
        show("The project here has no skills for tasks.")


@skill.command(context_settings=HELP)
@click.argument("name")
def forget(name: str) -> None:
    """Remove answers, so that artoo asks again: by a skill's name, or by the digest that `list --all` shows."""
    agreed, found = _of(load_config())
    here = {one.digest for one in found.skills if one.name == name}
    project = Path.cwd().resolve()

    def wanted(digest: str, said: SkillAnswer) -> bool:
        return digest in here or said.was(name, project) or (len(name) >= _SHOWN and digest.startswith(name))

    forgotten = agreed.forget(wanted)
    if not forgotten:
        raise ConfigurationError(f"there is no answer for {name!r}; artoo skill list --all shows all answers")
    show(f"{plural(forgotten, 'answer')} removed")


def _of(config: Config) -> tuple[Agreed, FoundSkills]:
    from artoo.ports.sandbox import Roots
    from artoo.runtime.app.skill_selection import Agreed, project_skills
    from artoo.workspace.changes.path_class import Places
    from artoo.workspace.files.rooted import real_files

    roots = Roots(project=Path.cwd(), workspace=config.workspace_path, home=Path.home().resolve())
    return Agreed(config.home), project_skills(real_files(), roots, Places.of(roots, config.home))


def _own(config: Config) -> FoundSkills:
    from artoo.runtime.app.skill_selection import HOME_FOLDER
    from artoo.tools.context.skills import skills_in
    from artoo.workspace.files.rooted import real_files

    folder = config.home / HOME_FOLDER
    return skills_in(real_files(), folder, folder.resolve(), foreign=False)
