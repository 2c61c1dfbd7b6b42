"""What a task did to git repositories: what git brings over, what asks, what is in conflict, what must stay."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.settling import ChangeClass
from artoo.sandbox.reading.programs import find_program, worked_in
from artoo.workspace.changes.base import read_base
from artoo.workspace.changes.change_set import GitPart, GitQuestion
from artoo.workspace.changes.effect import Verdict
from artoo.workspace.git.compare import Comparison, Context, Found
from artoo.workspace.git.layout import Kind, Repository, holds_git_up, repositories
from artoo.workspace.git.plan import GitAct
from artoo.workspace.git.run import GitFailed
from artoo.workspace.git.started import judge_started
from artoo.workspace.git.state import RunInside

_NO_GIT = Verdict(ChangeClass.HISTORY, "git is not installed, so nothing is known about this repository")
_REMOVED = Verdict(ChangeClass.HISTORY, "the repository is removed")
_SUSPECT = Verdict(
    ChangeClass.PERSISTENCE, "git would take this directory for a repository, and start what its settings say"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is kept for applying: the acts, and by repository the files that go with what is checked out."""

    acts: tuple[GitAct, ...]
    going: dict[str, frozenset[bytes]]


def judge(question: GitQuestion, run_inside: RunInside) -> GitPart:
    """Judge all repositories of a change set. Blocking. Nothing of the user's changes, objects included."""
    every = {one.path: one for one in (*question.effects, *question.conflicting)}
    touched = repositories([every[path] for path in sorted(every)])
    roots = question.directory.record().roots
    program = find_program("git", worked_in(roots))
    found = Found()
    if program is None:
        for repository in touched:
            _leave_as_files(repository, _NO_GIT, found)
    else:
        clashing = frozenset(one.path for one in question.conflicting)
        moving = frozenset(one.directory for one in touched if "index" in one.effects)
        bases = read_base(question.directory.base_file)
        context = Context(question, run_inside, program, every, clashing, moving, bases)
        found.says |= judge_started(question.effects, roots.home, program)
        held = tuple(one.directory for one in touched if holds_git_up(one))
        for repository in touched:
            main = repository.directory.rpartition(b"/worktrees/")[0] if repository.is_worktree else b""
            _judge(context, repository, found, held=repository.directory in held or main in held)
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


def _judge(context: Context, repository: Repository, found: Found, *, held: bool) -> None:
    """Judge one repository. `held`: git would wait for ever in the task's version of it, so it is not started."""
    if repository.kind in (Kind.DELETED, Kind.SUSPECT):
        _leave_as_files(repository, _REMOVED if repository.kind is Kind.DELETED else _SUSPECT, found)
        return
    if repository.kind is Kind.CREATED and repository.is_worktree:
        found.taken |= {one.path for one in repository.effects.values()}
        found.stays(repository, "the task added a linked worktree, which git worktree add can make again")
        return
    base = context.question.directory.base
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if held:
        _stays(repository, "a pipe, a device or a link is in the place of one of git's own files", found)
        return
    try:
        with tempfile.TemporaryDirectory(prefix="git-", dir=base) as work:
            Comparison(context, repository, Path(work)).add_to(found)
    except (GitFailed, OSError, UnicodeError) as error:
        _stays(repository, str(error), found)


def _stays(repository: Repository, why: str, found: Found) -> None:
    """Bring nothing over: what the task did stays in the workspace, and files of a new repository ask."""
    if repository.kind is Kind.CREATED:
        _leave_as_files(repository, _SUSPECT, found)
    else:
        found.judge_files(repository)
        found.stays(repository, f"git cannot bring over what the task did in this repository ({why})")


def _leave_as_files(repository: Repository, verdict: Verdict, found: Found) -> None:
    """Leave everything of a repository to be applied as files, each of which asks."""
    found.says |= {one.path: verdict for one in repository.effects.values()}
