"""Select a task's skills, and store the user's approvals in `skills-agreed.json`.

These are the user's own skills, and those skills of the project whose exact content the user has approved.

<home>/skills/NAME/…        the user's own; copies, one for each content, are placed where tasks can read them
PROJECT/.artoo|.agents|.claude/skills/NAME/…
<home>/skills-agreed.json   the user's answers about skills of projects, by the hash of the skill's content
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.errors import ConfigurationError, ToolError
from artoo.disk.whole import write_whole
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files
from artoo.runtime.app.skill_paths import COPIES, HOME_FOLDER, PROJECT_FOLDERS
from artoo.tools.approval.gate import Gate
from artoo.tools.builtin.skill import ReadSkill, free_name
from artoo.tools.context.skills import SKILL_FILE, FoundSkills, Skill, read_skill, skills_in
from artoo.tools.core.registry import Registry
from artoo.tools.core.to_thread import in_thread
from artoo.tools.files.paths import is_within, shown
from artoo.workspace.changes.path_class import Places
from artoo.workspace.files.rooted import real_files

logger = logging.getLogger(__name__)

AGREED_FILE = "skills-agreed.json"
MOST_AGREED = 1_000
"""The maximum number of answers that are kept. The oldest are dropped."""
_COPY_SECONDS = 7 * 86_400.0
_DIGEST_SHOWN = 12


class SkillAnswer(BaseModel):
    """The answer about one skill, with the name and the folder that the skill had at that time."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    answer: Literal["yes", "no"]
    folder: str
    name: str = ""

    def was(self, name: str, project: Path) -> bool:
        """Return whether the answer is about this skill of this (resolved) project, whatever the skill contained at
        that time."""
        return is_within(Path(self.folder), project) and name == (self.name or Path(self.folder).name)


class Approvable(Protocol):
    """A part of a project that needs approval, with its name, its folder, and the hash of its whole content."""

    @property
    def name(self) -> str: ...

    @property
    def folder(self) -> Path: ...

    @property
    def digest(self) -> str: ...


class _Answers(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    skills: dict[str, SkillAnswer] = {}


@dataclass(frozen=True, slots=True)
class Agreed:
    """The user's answers about skills of projects. Blocking. A file that cannot be read counts as empty."""

    home: Path

    def of(self, skill: Approvable) -> bool | None:
        """Return the answer about a skill. Return None if there is none for exactly this content."""
        said = self._read().skills.get(skill.digest)
        return None if said is None else said.answer == "yes"

    def note(self, skills: Iterable[Approvable], *, yes: bool) -> None:
        """Store the same answer for several skills. Raises ConfigurationError if the file cannot be written."""
        known = dict(self._read().skills)
        for one in skills:
            known.pop(one.digest, None)
            known[one.digest] = SkillAnswer(answer="yes" if yes else "no", folder=str(one.folder), name=one.name)
        self._keep(known)

    def kept(self) -> tuple[tuple[str, bool, str], ...]:
        """Return every answer, the latest last. Each has the hash of the skill, whether it was approved, and the
        skill's folder."""
        return tuple((digest, said.answer == "yes", said.folder) for digest, said in self._read().skills.items())

    def forget(self, wanted: Callable[[str, SkillAnswer], bool]) -> int:
        """Delete the answers for which `wanted` is true, and return how many. Raises as `note` does."""
        known = self._read().skills
        left = {digest: said for digest, said in known.items() if not wanted(digest, said)}
        if len(left) < len(known):
            self._keep(left)
        return len(known) - len(left)

    def _keep(self, known: dict[str, SkillAnswer]) -> None:
        kept = _Answers(skills=dict(list(known.items())[-MOST_AGREED:]))
        file = self.home / AGREED_FILE
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(file, kept.model_dump_json(indent=1).encode())
        except OSError as error:
            raise ConfigurationError(f"your answers about skills cannot be stored in {file}: {error}") from error

    def _read(self) -> _Answers:
        try:
            return _Answers.model_validate_json((self.home / AGREED_FILE).read_bytes())
        except FileNotFoundError:
            return _Answers()
        except (OSError, ValidationError) as error:
            logger.warning("%s cannot be read, so skills are asked about again: %s", self.home / AGREED_FILE, error)
            return _Answers()


def own_skills(artoo_home: Path, person: Path) -> FoundSkills:
    """Copy the user's own skills to a place where tasks can read them, and return them. Blocking."""
    folder = artoo_home / HOME_FOLDER
    found = skills_in(real_files(), folder, folder.resolve(), foreign=False)
    laid, problems = list[Skill](), list(found.problems)
    for one in found.skills:
        try:
            laid.append(_laid_out(one, person / COPIES))
        except OSError as error:
            problems.append(f"{one.folder}: its files cannot be laid out in {person / COPIES}: {error}")
    return FoundSkills(tuple(laid), tuple(problems))


def project_skills(files: Files, roots: Roots, places: Places) -> FoundSkills:
    """Return the skills of the project as the task's workspace contains them. Blocking."""
    skills, problems = list[Skill](), list[str]()
    for name in PROJECT_FOLDERS:
        found = skills_in(files, roots.project / name, roots.project, foreign=True)
        skills += (one for one in found.skills if not places.is_hidden(os.fsencode(one.folder)))
        problems += found.problems
    return FoundSkills(tuple(skills), tuple(problems))


def equipment(
    artoo_home: Path, roots: Roots, files: Callable[[], Files], places: Places, gate: Gate, registry: Registry
) -> Callable[[], Awaitable[None]]:
    """Return the step that offers the skills to a task before the task begins. It does not raise."""

    async def equip() -> None:
        try:
            own = await in_thread(own_skills, artoo_home, roots.home)
            project = await in_thread(lambda: project_skills(files(), roots, places))
        except ToolError as error:
            # no thread for tools is free, because all are busy or stuck
            logger.warning("no skill is offered: %s", error)
            return
        for problem in (*own.problems, *project.problems):
            logger.warning("a skill is not offered: %s", problem)
        agreed = await _agreed(named_once(project.skills, own.skills), Agreed(artoo_home), roots, gate)
        offered, name = (*own.skills, *agreed), free_name(spec.name for spec in registry.specs)
        if offered and name is None:
            logger.warning("skills are not offered: other tools have the names that the tool for them could have")
        elif offered and name is not None:
            registry.add((ReadSkill(name, offered, roots),))

    return equip


async def _agreed(skills: tuple[Skill, ...], answers: Agreed, roots: Roots, gate: Gate) -> tuple[Skill, ...]:
    """Return the skills that the user approves now or has approved before. The user is asked only once about the
    same content."""
    # A permission by a policy is valid only for this task, so it is not stored as an answer.
    known = {one.digest: await in_thread(answers.of, one) for one in skills}
    fresh = tuple(one for one in skills if known[one.digest] is None)
    if fresh:
        question = _question(fresh, roots, gate)
        refusal = await gate.refusal(question)
        if (refusal is None and not gate.is_permitted(question)) or (refusal and refusal.by == "person"):
            try:
                await in_thread(lambda: answers.note(fresh, yes=refusal is None))
            except ConfigurationError as error:
                logger.warning("%s; it is asked again", error)
        known |= {one.digest: refusal is None for one in fresh}
    return tuple(one for one in skills if known[one.digest])


def _question(skills: tuple[Skill, ...], roots: Roots, gate: Gate) -> ConfirmationRequest:
    def line(one: Skill) -> str:
        scripts = sum(file.path != SKILL_FILE for file in one.files)
        return f"{shown(one.folder, roots)} ({scripts} files, {one.digest[:_DIGEST_SHOWN]}): {one.description}"

    return gate.question(
        ("skill", *(one.digest for one in skills)),
        f"{SKILL_FILE}: {', '.join(one.name for one in skills)}",
        map(line, skills),
        (("skill", shown(one.folder, roots)) for one in skills),
        str(roots.project),
    )


def named_once(skills: tuple[Skill, ...], before: tuple[Skill, ...]) -> tuple[Skill, ...]:
    """Return the first skill of each name. A project's skill never replaces the user's own."""
    taken = {one.name for one in before}
    first = {one.name: one for one in reversed(skills) if one.name not in taken}
    return tuple(first.values())[::-1]


def _laid_out(skill: Skill, copies: Path) -> Skill:
    """Copy a skill into a folder that is named after the skill's content. Return the skill with that folder. Raises
    OSError."""
    if len(skill.files) == 1:
        return skill
    place = copies / f"{skill.name}-{skill.digest[:16]}"
    if not _is_copy(skill, place):
        copies.mkdir(mode=0o700, parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(dir=copies, prefix=f".{skill.name}."))
        try:
            for one in skill.files:
                file = making / one.path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(one.data)
                file.chmod(0o700 if one.runs else 0o600)
            shutil.rmtree(place, ignore_errors=True)
            making.replace(place)
        except OSError:
            shutil.rmtree(making, ignore_errors=True)
            # Another process may have made the same copy meanwhile.
            if not _is_copy(skill, place):
                raise
        _forget_old(skill.name, copies, place)
    return replace(skill, folder=place)


def _is_copy(skill: Skill, place: Path) -> bool:
    try:
        return read_skill(real_files(), place).digest == skill.digest
    except (ConfigurationError, OSError):
        return False


def _forget_old(name: str, copies: Path, place: Path) -> None:
    """Remove the copies of earlier contents of a skill. A copy is removed only if it is so old that no task uses
    it."""
    of_it = re.compile(re.escape(name) + "-[0-9a-f]{16}")
    for other in copies.iterdir():
        # Another process may have removed the copy meanwhile.
        with suppress(OSError):
            old = time.time() - other.stat().st_mtime > _COPY_SECONDS
            if old and other != place and of_it.fullmatch(other.name):
                shutil.rmtree(other, ignore_errors=True)
