"""Where a repository stands, as git tells it: refs, HEAD, index, stash, settings.

The same questions are put to the user's repository outside and to the task's version inside a sandbox. Answers
from inside are claims: they say what the task wants, and what becomes of it is judged on objects that git has
checked outside.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from artoo.contracts.changes import printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Ended
from artoo.workspace.git.plan import STASH, SYMBOLIC, StashEntry
from artoo.workspace.git.run import ENVIRONMENT, Git, GitFailed, last_line, options

_MOST_BYTES = 512 << 20
"""A longer answer from inside is refused: it is read into memory."""

_MISSING = 128
QUESTIONS: Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "format": (("rev-parse", "--show-object-format"), (0,)),
    "refs": (("for-each-ref", "--format=%(refname) %(objectname) %(symref)"), (0,)),
    "head": (("symbolic-ref", "-q", "HEAD"), (0, 1)),
    "commit": (("rev-parse", "-q", "--verify", "HEAD"), (0, 1)),
    "index": (("ls-files", "-s", "-z"), (0,)),
    "flags": (("ls-files", "-v", "-z"), (0,)),
    "stash": (
        (
            "log",
            "-g",
            "--no-decorate",
            "--no-color",
            "--date=raw",
            "--format=%H%x00%gn%x00%ge%x00%gd%x00%gs",
            STASH,
            "--",
        ),
        (0, _MISSING),
    ),
}
INSIDE_ONLY: Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "settings": (("config", "--file", "./config", "--no-includes", "--list", "-z"), (0, 1, _MISSING)),
    "shallow": (("rev-parse", "--is-shallow-repository"), (0,)),
}
_OWN = "refs/artoo/"
_PER_WORKTREE = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
_ORDINARY_FLAGS = frozenset(b"HM")


@dataclass(frozen=True, slots=True)
class State:
    """One repository at one moment. `refs` maps full printable names to values (`plan.SYMBOLIC`), HEAD left out.

    `index` maps paths to entries `MODE OBJECT STAGE`; `flags` are letters of entries that git does not look at, for
    example of a sparse checkout. `commit` is where HEAD leads, empty before the first commit.
    """

    object_format: str
    refs: Mapping[str, str]
    head: str
    commit: str
    index: Mapping[bytes, tuple[str, ...]]
    flags: Mapping[bytes, int] = field(default_factory=dict[bytes, int])
    stash: tuple[StashEntry, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    shallow: bool = False

    @property
    def tips(self) -> tuple[str, ...]:
        """Every object that a ref, HEAD or the stash names."""
        values = (*self.refs.values(), self.commit, *(one.commit for one in self.stash))
        return tuple(dict.fromkeys(one for one in values if one and not one.startswith(SYMBOLIC)))


class RunInside(Protocol):
    """Runs a command in a one-shot sandbox over the workspace; `scratch` is what it sees as /tmp. Blocking."""

    def __call__(
        self, argv: Sequence[str], cwd: Path, *, stdin: bytes | None = None, scratch: Path | None = None
    ) -> Ended: ...


def state_outside(git: Git) -> State:
    """Ask git about the user's repository. Raises GitFailed."""
    answers = {name: git.run(*question, accept=accept) for name, (question, accept) in QUESTIONS.items()}
    return _state(answers)


def state_inside(program: str, directory: Path, run_inside: RunInside, scratch: Path) -> State:
    """Ask git about a repository as the task left it, in a sandbox. Raises GitFailed."""
    questions = {**QUESTIONS, **INSIDE_ONLY}
    lines = [
        f"{_inside(program, *question)} >/tmp/{name} 2>/tmp/{name}.error; echo $? >/tmp/{name}.code"
        for name, (question, _) in questions.items()
    ]
    run_script("\n".join(lines), directory, run_inside, scratch)
    answers: dict[str, bytes] = {}
    for name, (question, accept) in questions.items():
        code = read_left(scratch / f"{name}.code").strip()
        if code not in [b"%d" % one for one in accept]:
            raise GitFailed(last_line(read_left(scratch / f"{name}.error")) or f"git {question[0]} failed")
        answers[name] = read_left(scratch / name)
    return _state(answers)


def pack_inside(
    program: str, directory: Path, run_inside: RunInside, scratch: Path, wanted: Sequence[str], known: Sequence[str]
) -> Path:
    """Pack what `wanted` needs and `known` does not have, in a sandbox. Raises GitFailed.

    The task may have collected what is known: then less is left out, and the pack is only larger.
    """
    for name, objects in (("wanted", wanted), ("known", known)):
        (scratch / name).write_text("".join(f"{one}\n" for one in objects))
        (scratch / name).chmod(0o644)
    check = _inside(program, "cat-file", "--batch-check=%(objectname)")
    pack = _inside(program, "pack-objects", "--revs", "--stdout", "-q")
    script = (
        f'{check} </tmp/known | while read -r one missing; do [ "$missing" ] || echo "^$one"; done >/tmp/there\n'
        '{ while read -r one; do echo "$one"; done </tmp/wanted; while read -r one; do echo "$one"; done </tmp/there; }'
        f" | {pack} >/tmp/pack 2>/tmp/pack.error; echo $? >/tmp/pack.code"
    )
    run_script(script, directory, run_inside, scratch)
    if read_left(scratch / "pack.code").strip() != b"0":
        raise GitFailed(last_line(read_left(scratch / "pack.error")) or "git pack-objects failed")
    return scratch / "pack"


def run_script(script: str, directory: Path, run_inside: RunInside, scratch: Path) -> None:
    """Run a shell script in a repository inside, with git's clean environment. Raises GitFailed."""
    variables = {**ENVIRONMENT, "GIT_DIR": ".", "GIT_WORK_TREE": "."}
    argv = (
        "/usr/bin/env",
        "-i",
        *(f"{name}={value}" for name, value in variables.items()),
        "/bin/sh",
        "-c",
        script,
    )
    try:
        ended = run_inside(argv, directory, scratch=scratch)
    except SandboxError as error:
        raise GitFailed(str(error)) from error
    if ended.exit_code != 0:
        raise GitFailed(
            last_line(ended.stderr.tail or ended.stderr.head) or "git could not be run in the workspace"
        )


def read_left(path: Path) -> bytes:
    """Read what a script left in its /tmp: a regular file of bounded size, never through a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise GitFailed(f"git left no answer in the workspace ({error.strerror})") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise GitFailed("what git left in the workspace cannot be read")
        return file.read()


def _inside(program: str, *arguments: str) -> str:
    return shlex.join([program, *options(), *arguments])


def _state(answers: Mapping[str, bytes]) -> State:
    head = printable_path(answers["head"].strip())
    commit = _line(answers["commit"])
    return State(
        object_format=_line(answers["format"]),
        refs=dict(_refs(answers["refs"])),
        head=f"{SYMBOLIC}{head}" if head else commit,
        commit=commit,
        index=_index(answers["index"]),
        flags={entry[2:]: entry[0] for entry in _zeros(answers["flags"]) if entry[0] not in _ORDINARY_FLAGS},
        stash=tuple(_stash_entry(line) for line in answers["stash"].splitlines()),
        settings=tuple(_settings(answers.get("settings", b""))),
        shallow=_line(answers.get("shallow", b"")) == "true",
    )


def _line(answer: bytes) -> str:
    return os.fsdecode(answer).strip()


def _zeros(answer: bytes) -> list[bytes]:
    return [part for part in answer.split(b"\0") if part]


def _refs(answer: bytes) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in answer.splitlines():
        name, value, target = [*map(printable_path, line.split(b" ")), "", ""][:3]
        if name == STASH or name.startswith((_OWN, *_PER_WORKTREE)):
            continue  # the stash is a list, not a name; the others belong to artoo or to what is under way
        found.append((name, f"{SYMBOLIC}{target}" if target else value))
    return found


def _index(answer: bytes) -> dict[bytes, tuple[str, ...]]:
    found: dict[bytes, tuple[str, ...]] = {}
    for entry in _zeros(answer):
        said, _, path = entry.partition(b"\t")
        found[path] = (*found.get(path, ()), said.decode("ascii"))
    return found


def _stash_entry(line: bytes) -> StashEntry:
    parts = line.decode("utf-8", "replace").split("\0", 4)
    if len(parts) != 5:
        raise GitFailed("the stash cannot be read")
    commit, name, email, selector, message = parts
    return StashEntry(
        commit=commit, name=name, email=email, date=selector.partition("{")[2].rstrip("}"), message=message
    )


def _settings(answer: bytes) -> list[tuple[str, str]]:
    try:
        pairs = (one.decode().partition("\n") for one in _zeros(answer))
        return [(key, value) for key, _, value in pairs]
    except UnicodeDecodeError as error:
        raise GitFailed("its settings are no text") from error
