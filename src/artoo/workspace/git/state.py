"""Read refs, HEAD, index, stash and settings of a repository by git commands.

The same git commands run on the user's repository outside of the sandbox and on the task's version inside. The
output from inside is not trusted. It only describes what the task wants. The decision is made on objects that git
has checked outside.
"""

from __future__ import annotations

import hashlib
import shlex
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from artoo.contracts.changes import printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Ended
from artoo.workspace.git.run import ENVIRONMENT, OPTIONS, Git, GitFailed, reason_in

SYMBOLIC = "ref: "
"""The prefix of the value of a symbolic ref. Any other value is an object id, or empty if the ref does not
exist."""

CHECKOUT = "HEAD"
"""The group of the checkout, which consists of HEAD, its branch and the index. These are changed together or not at
all."""

STASH = "refs/stash"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class RefChange(_Frozen):
    """The change of one ref (or `HEAD`), by its printable name. Refs with the same `group` are changed only
    together."""

    name: str
    old: str
    new: str
    group: str


class IndexChange(_Frozen):
    """The entries of one printable path in the index, each as `MODE OBJECT STAGE`."""

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]


class StashEntry(_Frozen):
    """One entry of the stash. `date` is in git's raw format."""

    commit: str
    name: str
    email: str
    date: str
    message: str


class ExtraFile(_Frozen):
    """The content (as latin-1) and the permission bits of a hook, or of a similar file, in a new repository."""

    inner: str
    content: str
    mode: int


class GitAct(_Frozen):
    """The git operation that applies a task's commits to one repository. `git_dir` and `needs` are printable paths.

    `heads` and `commits`: HEAD and its commit, before and after. `pack`: the file with the objects that the user's
    repository lacks, or empty. `lost`: objects that no ref would reach after the operation. `needs`: files that
    belong to the checkout. A directory stands for all files below it. `created`: true if the task made the
    repository. Then `settings` (keys and values), `shallow` and `extras` are set too. `shown`: the group and the
    path of each change that the user sees.
    """

    task_id: str
    git: str
    git_dir: str
    object_format: str
    heads: tuple[str, str]
    commits: tuple[str, str]
    pack: str = ""
    refs: tuple[RefChange, ...] = ()
    index: tuple[IndexChange, ...] = ()
    stash_old: tuple[StashEntry, ...] = ()
    stash_new: tuple[StashEntry, ...] = ()
    lost: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    created: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    shallow: str = ""
    extras: tuple[ExtraFile, ...] = ()
    shown: tuple[tuple[str, str], ...] = ()

    @property
    def has_checkout(self) -> bool:
        """True if the act changes the checkout."""
        return bool(self.index) or any(one.group == CHECKOUT for one in self.refs)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the changes that the user sees."""
        return tuple(path for _, path in self.shown)

    @property
    def digest(self) -> str:
        """The sha256 (hex) of the new and the replaced values. These values determine the content of the pack."""
        return hashlib.sha256(self.model_dump_json(exclude={"pack", "git"}).encode()).hexdigest()

    def restricted(self, paths: Collection[str]) -> GitAct | None:
        """Return the part of the act whose paths are at or below the given ones. Return None if there is no such
        part."""
        groups = {group for group, path in self.shown if path in paths}
        if not groups or self.created:
            return self if groups else None
        without: dict[str, object] = {"stash_new": self.stash_old} if STASH not in groups else {}
        without |= {"index": (), "needs": ()} if CHECKOUT not in groups else {}
        refs = tuple(one for one in self.refs if one.group in groups)
        shown = tuple(one for one in self.shown if one[0] in groups)
        return self.model_copy(update={**without, "refs": refs, "shown": shown})


def objects_named(values: Iterable[str]) -> tuple[str, ...]:
    """Return the object ids among values of refs, without duplicates."""
    return tuple(dict.fromkeys(one for one in values if one and not one.startswith(SYMBOLIC)))


_MOST_BYTES = 512 << 20
"""The maximum number of bytes of one answer from inside the sandbox. Longer answers are refused, because answers
are read into memory."""

_INSIDE = "/tmp/artoo-git"
"""The directory for git's output inside the sandbox. Because of its name it is in the workspace's own /tmp, even if
the workspace consists of plain copies."""

_ENTRY = "--format=%H%x00%gn%x00%ge%x00%gd%x00%gs"
_QUESTIONS: Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "format": (("rev-parse", "--show-object-format"), (0,)),
    "refs": (("for-each-ref", "--format=%(refname) %(objectname) %(symref)"), (0,)),
    "head": (("symbolic-ref", "-q", "HEAD"), (0, 1)),
    "commit": (("rev-parse", "-q", "--verify", "HEAD"), (0, 1)),
    "index": (("ls-files", "-s", "-z"), (0,)),
    "stash": (("log", "-g", "--no-decorate", "--no-color", "--date=raw", _ENTRY, STASH, "--"), (0, 128)),
    "settings": (("config", "--file", "./config", "--no-includes", "--list", "-z"), (0, 1, 128)),
}
"""The arguments of git commands, each with the exit codes that are no failure. For example, the stash or the
settings file may be missing."""

_LEFT_OUT = ("refs/artoo/", "refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""Prefixes of refs that are ignored. These refs are artoo's own or belong to an unfinished operation."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of one repository. `refs` maps full printable names to values (see `SYMBOLIC`).

    `head` is such a value too. `commit` is the commit of HEAD. It is empty before the first commit. `index` maps
    paths to entries `MODE OBJECT STAGE`.
    """

    object_format: str
    refs: Mapping[str, str] = field(default_factory=dict[str, str])
    head: str = ""
    commit: str = ""
    index: Mapping[bytes, tuple[str, ...]] = field(default_factory=dict[bytes, tuple[str, ...]])
    stash: tuple[StashEntry, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def tips(self) -> tuple[str, ...]:
        """The ids of all objects to which a ref, HEAD or the stash points."""
        return objects_named((*self.refs.values(), self.commit, *(one.commit for one in self.stash)))


class RunInside(Protocol):
    """Runs a command in a one-shot sandbox over the workspace, in which `scratch` is /tmp. Blocking."""

    def __call__(self, argv: Sequence[str], cwd: Path, *, scratch: Path | None = None) -> Ended: ...


@dataclass(frozen=True, slots=True)
class Inside:
    """The task's version of a repository, read by git in a sandbox. `scratch`: an empty directory for git's
    output."""

    program: str
    directory: Path
    run_inside: RunInside
    scratch: Path

    def state(self) -> State:
        """Read the state of the repository. Raises GitFailed."""
        self._run("\n".join(self._saved(name, self._git(*question)) for name, (question, _) in _QUESTIONS.items()))
        return _state({name: self._answer(name, accept).read_bytes() for name, (_, accept) in _QUESTIONS.items()})

    def pack(self, wanted: Sequence[str], known: Sequence[str]) -> Path:
        """Pack the objects that `wanted` needs and that are not reachable from `known`. Raises GitFailed.

        If the task has removed known objects, git can exclude fewer objects, which only makes the pack larger.
        """
        for name, objects in (("wanted", wanted), ("known", known)):
            (self._answers / name).write_text("".join(f"{one}\n" for one in objects))
        there = f"{self._git('cat-file', '--batch-check=%(objectname)')} <{_INSIDE}/known"
        pack = f"{self._git('pack-objects', '--revs', '--stdout', '-q')} <{_INSIDE}/wanted"
        exclude = 'while read -r one missing; do [ "$missing" ] || echo "^$one"; done'
        self._run(f"{there} | {exclude} >>{_INSIDE}/wanted\n{self._saved('pack', pack)}")
        return self._answer("pack", (0,))

    def _git(self, *arguments: str) -> str:
        return shlex.join([self.program, *OPTIONS, *arguments])

    @staticmethod
    def _saved(name: str, command: str) -> str:
        return f"{command} >{_INSIDE}/{name} 2>{_INSIDE}/{name}.error; echo $? >{_INSIDE}/{name}.code"

    @property
    def _answers(self) -> Path:
        return self.scratch / Path(_INSIDE).name

    def _run(self, script: str) -> None:
        self._answers.mkdir(exist_ok=True)
        variables = {**ENVIRONMENT, "GIT_DIR": ".", "GIT_WORK_TREE": "."}
        named = (f"{name}={value}" for name, value in variables.items())
        # Git gets only these variables, because a variable in the sandbox could name another repository.
        argv = ("/usr/bin/env", "-i", *named, "/bin/sh", "-c", script)
        try:
            ended = self.run_inside(argv, self.directory, scratch=self.scratch)
        except SandboxError as error:
            raise GitFailed(str(error)) from error
        if ended.exit_code != 0:
            raise GitFailed(reason_in(ended.stderr.tail or ended.stderr.head) or "git could not be run inside")

    def _answer(self, name: str, accept: Sequence[int]) -> Path:
        """Return the file that contains the output of a git command. A link is refused, because a program of the
        task may have made it."""
        paths = [self._answers / f"{name}{ending}" for ending in ("", ".code", ".error")]
        seen = [path.lstat() for path in (self._answers, *paths)]
        plain = stat.S_ISDIR(seen[0].st_mode) and all(stat.S_ISREG(one.st_mode) for one in seen[1:])
        if not plain or any(one.st_size > _MOST_BYTES for one in seen):
            raise GitFailed("what git answered in the workspace cannot be read")
        if paths[1].read_bytes().strip() not in [b"%d" % one for one in accept]:
            raise GitFailed(reason_in(paths[2].read_bytes()) or f"git could not tell its {name}")
        return paths[0]


def state_outside(git: Git) -> State:
    """Read the state of the user's repository. Raises GitFailed."""
    return _state({name: git.run(*question, accept=accept) for name, (question, accept) in _QUESTIONS.items()})


def _state(answers: Mapping[str, bytes]) -> State:
    try:
        head, commit = printable_path(answers["head"].strip()), answers["commit"].decode().strip()
        index: dict[bytes, tuple[str, ...]] = {}
        for said, _, path in (entry.partition(b"\t") for entry in answers["index"].split(b"\0") if entry):
            index[path] = (*index.get(path, ()), said.decode())
        pairs = (one.decode().partition("\n") for one in answers["settings"].split(b"\0") if one)
        return State(
            answers["format"].decode().strip(),
            _refs(answers["refs"]),
            f"{SYMBOLIC}{head}" if head else commit,
            commit,
            index,
            tuple(map(_stash_entry, answers["stash"].splitlines())),
            tuple((key, value) for key, _, value in pairs),
        )
    except ValueError as error:
        raise GitFailed(f"what git says of it cannot be read ({error})") from error


def _refs(answer: bytes) -> dict[str, str]:
    lines = ([*map(printable_path, line.split(b" ")), "", ""] for line in answer.splitlines())
    return {
        name: f"{SYMBOLIC}{target}" if target else value
        for name, value, target, *_ in lines
        if name != STASH and not name.startswith(_LEFT_OUT)
    }


def _stash_entry(line: bytes) -> StashEntry:
    commit, name, email, selector, message = line.decode("utf-8", "replace").split("\0", 4)
    date = selector.partition("{")[2].rstrip("}")
    return StashEntry(commit=commit, name=name, email=email, date=date, message=message)
