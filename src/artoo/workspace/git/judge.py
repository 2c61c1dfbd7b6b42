"""Judge all repositories of a change set, with hooks and settings that start programs.

For each change it decides whether git transfers it, whether it needs approval, and whether it stays in the
workspace.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.settling import ChangeClass
from artoo.sandbox.reading.programs import find_program, worked_in
from artoo.workspace.changes.base import read_base
from artoo.workspace.changes.change_set import GitPart, GitQuestion
from artoo.workspace.changes.effect import Effect, Verdict
from artoo.workspace.git.compare import Comparison, Context, GitFindings
from artoo.workspace.git.layout import Kind, Repository, holds_git_up, repositories
from artoo.workspace.git.run import ENVIRONMENT, GitFailed
from artoo.workspace.git.state import GitAct, RunInside

_NO_GIT = Verdict(ChangeClass.HISTORY, "git is not installed, so nothing is known about this repository")
_REMOVED = Verdict(ChangeClass.HISTORY, "the repository is removed")
_SUSPECT = Verdict(
    ChangeClass.PERSISTENCE, "git would take this directory for a repository, and start what its settings say"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of a judgement that is stored until the changes are applied. `going`: by repository, the files that
    are applied only together with the checkout."""

    acts: tuple[GitAct, ...]
    going: dict[str, frozenset[bytes]]


def judge(question: GitQuestion, run_inside: RunInside) -> GitPart:
    """Judge all repositories of a change set. Blocking. The user's repositories and objects are not modified."""
    every = {one.path: one for one in (*question.effects, *question.conflicting)}
    touched = repositories([every[path] for path in sorted(every)])
    roots = question.directory.record().roots
    program = find_program("git", worked_in(roots))
    found = GitFindings()
    if program is None:
        for repository in touched:
            _leave_as_files(repository, _NO_GIT, found)
    else:
        clashing = frozenset(one.path for one in question.conflicting)
        moving = frozenset(one.directory for one in touched if "index" in one.effects)
        bases = read_base(question.directory.base_file)
        context = Context(question, run_inside, program, every, clashing, moving, bases)
        found.says |= judge_started(question.effects, roots.home, program)
        # A linked worktree is read through its main repository. If that is blocked, the worktree is blocked too.
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
    """Return the git acts for these paths (None: for all), with the file effects and the paths that they need.

    Needed effects are those on files that belong to the checkout. Needed paths are all those that an act changes.
    """
    plan = part.plan
    if not isinstance(plan, Plan):
        return (), frozenset(), frozenset()
    chosen = [one if paths is None else one.restricted(paths) for one in plan.acts]
    kept = tuple(one for one in chosen if one is not None)
    going = [plan.going.get(one.git_dir, frozenset[bytes]()) for one in kept if one.has_checkout]
    return kept, frozenset[bytes]().union(*going), frozenset(path for one in kept for path in one.paths)


def _judge(context: Context, repository: Repository, found: GitFindings, *, held: bool) -> None:
    """Judge one repository. `held`: true if reading the task's version could block git forever. Git is not started
    on it then."""
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


def _stays(repository: Repository, why: str, found: GitFindings) -> None:
    """Leave the task's changes of a repository in the workspace. Only the files of a new repository are offered to
    the user, and need approval."""
    if repository.kind is Kind.CREATED:
        _leave_as_files(repository, _SUSPECT, found)
    else:
        found.judge_files(repository)
        found.stays(repository, f"git cannot bring over what the task did in this repository ({why})")


def _leave_as_files(repository: Repository, verdict: Verdict, found: GitFindings) -> None:
    """Let all effects of a repository be applied as ordinary files, each of which needs approval."""
    found.says |= {one.path: verdict for one in repository.effects.values()}


# --- files that git starts --------------------------------------------------------------------------------------
# For example, `filter.x.clean = python -m tool` starts tool.py of the project. A file needs approval if the value
# of a setting names it: as a path, as the end of a path, as a module, or by a word that could be its name. All
# settings are searched except those that are known to name no program. The user's version of settings and hooks is
# read, because a change to settings or hooks needs approval anyway.


_SECONDS = 20.0
_LONGEST_HOOK = 1 << 18
_NAMES_NO_PROGRAM = re.compile(
    r"user\..*|branch\..*|remote\..*\.(url|pushurl|fetch|push|tagopt|prune)|submodule\..*|commit\.template"
    r"|mailmap\..*|blame\..*|safe\.directory|init\.defaultbranch|maintenance\.repo|extensions\..*|pull\..*|push\..*"
    r"|color\..*|column\..*|core\.(worktree|bare|filemode|repositoryformatversion|logallrefupdates|ignorecase"
    r"|symlinks|autocrlf|eol|excludesfile|attributesfile)"
)
_BETWEEN_WORDS = re.compile(r"[\s\"'`$(){}\[\];&|<>=,:!*?\\]+")
_STARTED = Verdict(ChangeClass.PERSISTENCE, "a setting or a hook of git names it, and git may start it")


def judge_started(effects: Sequence[Effect], home: Path, program: str) -> dict[bytes, Verdict]:
    """Return the changed files that settings or hooks of their repositories name. Blocking.

    If git cannot list the settings of a repository, all its changed files are returned.
    """
    says: dict[bytes, Verdict] = {}
    words: dict[bytes, frozenset[str] | None] = {}
    tops: dict[bytes, tuple[bytes, ...]] = {}
    for one in effects:
        if one.after is None or one.after.is_directory or one.in_place:
            continue
        directory = one.path.rpartition(b"/")[0]
        if directory not in tops:
            tops[directory] = tuple(_worktrees(directory))
        for top in tops[directory]:
            if top not in words:
                words[top] = _words(top, home, program)
            if not one.path.startswith(top + b"/.git/") and _is_named(one.path[len(top) + 1 :], words[top]):
                says[one.path] = _STARTED
    return says


def _worktrees(directory: bytes) -> Iterator[bytes]:
    """Return the directory and its parents that are worktrees in the user's files, outermost first."""
    names = directory.split(b"/")
    above = (b"/".join(names[:length]) for length in range(2, len(names) + 1))
    return (one for one in above if os.path.lexists(one + b"/.git"))


def _words(top: bytes, home: Path, program: str) -> frozenset[str] | None:
    """Return all words in settings and hooks that may start programs. Return None if these cannot be read."""
    found: set[str] = set()
    hooks = os.path.join(top, b".git/hooks")
    try:
        for key, value in _settings(top, home, program):
            if key == "core.hookspath":
                hooks = os.path.join(top, os.fsencode(os.path.expanduser(value)))
                found.add(f"{os.fsdecode(os.path.relpath(hooks, top))}/")
            subcommand = key.startswith("alias.") and not value.startswith("!")
            if not _NAMES_NO_PROGRAM.fullmatch(key) and not subcommand:
                found.update(_BETWEEN_WORDS.split(value))
        for hook in _texts(hooks):
            found.update(word for word in _BETWEEN_WORDS.split(hook) if "/" in word or "." in word)
            found.update(re.findall(r"-m\s+([\w.]+)", hook))
    except (GitFailed, OSError):
        return None
    return frozenset(found)


def _is_named(relative: bytes, words: frozenset[str] | None) -> bool:
    if words is None:
        return True
    path = os.fsdecode(relative)
    parts = re.sub(r"(/__(init|main)__)?\.pyc?$", "", path).split("/")
    ends = {"/".join(parts[start:]) for start in range(len(parts))}
    name = os.path.basename(path)
    ends |= {os.path.splitext(end)[0] for end in ends}  # `node scripts/lint` starts scripts/lint.js
    names = {name, *ends, *(end.replace("/", ".") for end in ends)}
    if not words.isdisjoint(names):
        return True
    # A word may be only a prefix of a path, because patterns were split at `*`. For example, `hooks.d/h` and
    # `tools/` are prefixes.
    beginnings = tuple(word.removeprefix("./") for word in words if "/" in word.removeprefix("./"))
    return path.startswith(beginnings) or any(word.endswith(f"/{name}") for word in words)


def _settings(top: bytes, home: Path, program: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the value of every setting that applies to the user's git in a directory. Listing them
    starts no program."""
    own = {name: value for name, value in os.environ.items() if name.startswith(("GIT_CONFIG_", "XDG_CONFIG_HOME"))}
    clean = {key: value for key, value in ENVIRONMENT.items() if not key.startswith("GIT_CONFIG_")}
    try:
        done = subprocess.run(
            [program, "-c", "safe.directory=*", "config", "--list", "-z", "--includes"],
            capture_output=True,
            timeout=_SECONDS,
            env={**clean, **own, "HOME": str(home)},
            cwd=top,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise GitFailed(str(error)) from error
    for setting in os.fsdecode(done.stdout).split("\0"):
        key, _, value = setting.partition("\n")
        yield key, value


def _texts(directory: bytes) -> Iterator[str]:
    """Yield the text of each hook in a directory."""
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        path = os.path.join(directory, name)
        if not name.endswith(b".sample") and os.path.isfile(path):
            with open(path, "rb") as file:
                content = file.read(_LONGEST_HOOK + 1)
            if len(content) > _LONGEST_HOOK:
                raise GitFailed("a hook is too long to be read")
            yield content.decode("utf-8", "replace")
