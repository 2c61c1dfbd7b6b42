"""What a task did to git repositories: what git itself brings over, what asks, what is in conflict, what must stay.

effects ─► repositories ─► state outside and inside ─► pack (inside) ─► quarantine (outside) ─► acts and their classes
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Conflict, printable_path
from artoo.contracts.settling import ChangeClass
from artoo.sandbox.reading.programs import find_program, worked_in
from artoo.workspace.changes.base import read_base
from artoo.workspace.changes.change_set import GitPart, GitQuestion
from artoo.workspace.changes.verdict import Verdict
from artoo.workspace.git import files, started
from artoo.workspace.git.changed import judge_changed
from artoo.workspace.git.context import Context, Found
from artoo.workspace.git.created import judge_created
from artoo.workspace.git.layout import Kind, Repository, repositories
from artoo.workspace.git.plan import GitAct
from artoo.workspace.git.run import GitFailed
from artoo.workspace.git.state import RunInside


@dataclass(frozen=True, slots=True)
class Plan:
    """What is kept for applying: the acts, and by repository the files that go with what is checked out."""

    acts: tuple[GitAct, ...]
    going: dict[str, frozenset[bytes]]


def judge(question: GitQuestion, run_inside: RunInside) -> GitPart:
    """Judge all repositories of a change set. Blocking. Nothing of the user's changes, objects included."""
    every = sorted((*question.effects, *question.conflicting), key=lambda one: one.path)
    touched = repositories(every)
    roots = question.record.roots
    program = find_program("git", worked_in(roots))
    found = Found()
    if program is None:
        for repository in touched:
            found.add(_as_files(repository, "git is not installed, so nothing is known about this repository"))
    else:
        clashing = frozenset(one.path for one in question.conflicting)
        moving = frozenset(one.directory for one in touched if "index" in one.effects)
        context = Context(
            question, run_inside, program, every, clashing, moving, read_base(question.directory.base_file)
        )
        for repository in touched:
            found.add(_judge(context, repository))
        found.says = started.judge_started(question.effects, roots.home, program) | found.says
    said = repr([*(one.digest for one in found.acts), *found.classes])
    return GitPart(
        taken=frozenset(found.taken),
        says={path: verdict for path, verdict in found.says.items() if path not in found.taken},
        classes=tuple(found.classes),
        conflicts=tuple(found.conflicts),
        digest=hashlib.sha256(said.encode()).hexdigest() if found.acts else "",
        plan=Plan(tuple(found.acts), found.going),
    )


def acts(
    part: GitPart, paths: frozenset[str] | None
) -> tuple[tuple[GitAct, ...], frozenset[bytes], frozenset[str]]:
    """Return the acts behind these paths of the part's classes (None: all), and what comes with them.

    That is: file effects that belong to what is checked out, and the paths of all classes that the acts cover.
    """
    plan = part.plan
    if not isinstance(plan, Plan):
        return (), frozenset(), frozenset()
    chosen = [one if paths is None else one.restricted(paths) for one in plan.acts]
    kept = tuple(one for one in chosen if one is not None)
    going = [plan.going.get(one.git_dir, frozenset[bytes]()) for one in kept if one.has_checkout]
    return kept, frozenset[bytes]().union(*going), frozenset(path for one in kept for path in one.paths)


def _judge(context: Context, repository: Repository) -> Found:
    if repository.kind is Kind.DELETED:
        return _as_files(repository, "the repository is removed")
    if repository.kind is Kind.SUSPECT:
        return _suspect(repository)
    base = context.question.directory.base
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="git-", dir=base) as work:
            if repository.kind is Kind.CREATED:
                return judge_created(context, repository, Path(work))
            return judge_changed(context, repository, Path(work))
    except (GitFailed, OSError, UnicodeError) as error:
        return _suspect(repository) if repository.kind is Kind.CREATED else _stays(repository, error)


def _as_files(repository: Repository, why: str, change_class: ChangeClass = ChangeClass.HISTORY) -> Found:
    """Leave everything of a repository to be applied as files, each of which asks."""
    return Found(says={one.path: Verdict(change_class, why) for one in repository.effects.values()})


def _suspect(repository: Repository) -> Found:
    return _as_files(repository, files.SUSPECT, ChangeClass.PERSISTENCE)


def _stays(repository: Repository, error: Exception) -> Found:
    """Keep in the workspace what git cannot bring over, and say why; settings and hooks stay file changes."""
    why = f"git cannot bring over what the task did in this repository ({error}); it stays in the workspace"
    taken = {one.path for inner, one in repository.effects.items() if files.is_taken(one, inner)}
    return Found(
        conflicts=[Conflict(path=printable_path(repository.directory), reason=why)],
        taken=taken,
        says=files.judge_files(repository),
    )
