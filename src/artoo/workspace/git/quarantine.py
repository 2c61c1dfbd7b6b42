"""A bare repository of artoo's own, in which the objects of a task are checked and looked at before approval.

It borrows the user's objects and has none of the user's or the task's settings. The user's repository is not touched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.workspace.git.run import Git, GitFailed

_MOST_COMMITS = 1000
"""At most so many lost commits are counted: more is the same to the user."""

MOST_NEW_COMMITS = 20_000
"""Beyond it what commits bring is not judged, and the user is asked."""

ABSENT = "000000"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a commit puts at a path. `existed`: something was there before it. Mode 000000: it is deleted."""

    path: bytes
    mode: str
    object: str
    existed: bool


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Questions about the user's objects together with the task's."""

    git: Git

    @classmethod
    def make(cls, place: Path, user: Git | None, object_format: str, program: str) -> Quarantine:
        """Make the repository in an empty place. `user`: whose objects are borrowed. Raises GitFailed, OSError."""
        place.mkdir(mode=0o700)
        git = Git(program, place)
        git.run("init", "-q", "--template=", f"--object-format={object_format}")
        (place / "config").write_text(
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n"
            f"\tobjectformat = {object_format}\n"
        )
        if user is not None:
            objects = user.directory / user.text("rev-parse", "--git-path", "objects")
            (place / "objects" / "info" / "alternates").write_bytes(_quoted(os.fsencode(objects)) + b"\n")
            shallow = user.directory / user.text("rev-parse", "--git-path", "shallow")
            if shallow.is_file():
                shutil.copyfile(shallow, place / "shallow")
        return cls(git)

    def add(self, pack: Path, tips: Sequence[str], known: Sequence[str]) -> None:
        """Check every object of a pack, and that everything that the tips need is there. Raises GitFailed."""
        with pack.open("rb") as source:
            self.git.run("index-pack", "--stdin", "--strict", source=source)
        self.require_complete(tips, known)

    def require_complete(self, tips: Sequence[str], known: Sequence[str]) -> None:
        """Raise GitFailed if something that the tips need is missing."""
        self.git.run("rev-list", "--objects", "--quiet", "--stdin", stdin=_lines(tips, known))

    def missing(self, objects: Iterable[str]) -> tuple[str, ...]:
        """Return the objects that are not there."""
        asked = "".join(f"{one}\n" for one in objects).encode()
        lines = self.git.run("cat-file", "--batch-check=%(objectname)", stdin=asked).decode().splitlines()
        return tuple(line.split()[0] for line in lines if line.endswith(" missing"))

    def follows(self, old: str, new: str) -> bool:
        """True if `new` is `old` or has it among its ancestors; False too for what is no commit."""
        try:
            return old == new or self.git.holds("merge-base", "--is-ancestor", old, new)
        except GitFailed:
            return False

    def beyond(self, tips: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
        """Return the commits that the tips reach and `known` does not, newest first, at most 1,000."""
        return self._commits(tips, known, _MOST_COMMITS)

    def _commits(self, tips: Iterable[str], known: Iterable[str], most: int) -> tuple[str, ...]:
        if not (asked := tuple(tips)):
            return ()
        answer = self.git.run("rev-list", f"--max-count={most}", "--stdin", stdin=_lines(asked, known))
        return tuple(answer.decode().split())

    def subject(self, commit: str) -> bytes:
        """Return the first line of a commit's message, shortened."""
        return self.git.run("log", "-1", "--no-color", "--format=%s", f"{commit}^{{commit}}").strip()[:72]

    def tree(self, commit: str) -> dict[bytes, str]:
        """Return what a commit holds, `MODE OBJECT 0` by path as the index says it; nothing for no commit."""
        if not commit:
            return {}
        answer = self.git.run("ls-tree", "-r", "-z", "--full-tree", commit)
        entries = (entry.partition(b"\t") for entry in answer.split(b"\0") if entry)
        said = ((path, info.decode().split()) for info, _, path in entries)
        return {path: f"{mode} {oid} 0" for path, (mode, _, oid) in said}

    def brought(self, tips: Iterable[str], known: Iterable[str]) -> tuple[Entry, ...] | None:
        """Return what each new commit changes against its parents; None: too many commits to be judged."""
        commits = self._commits(tips, known, MOST_NEW_COMMITS + 1)
        if len(commits) > MOST_NEW_COMMITS:
            return None
        arguments = ("diff-tree", "--stdin", "--no-commit-id", "-r", "-c", "--root", "--raw", "-z", "--no-renames")
        return tuple(_entries(self.git.run(*arguments, stdin=_lines(commits, ())))) if commits else ()

    def difference(self, old: str, new: str) -> tuple[Entry, ...]:
        """Return what differs between two commits."""
        return tuple(_entries(self.git.run("diff-tree", "-r", "--raw", "-z", "--no-renames", old, new)))

    def content(self, blob: str) -> bytes:
        """Return a blob, for example the target of a link."""
        return self.git.run("cat-file", "blob", blob)[:4096]


def _lines(tips: Iterable[str], known: Iterable[str]) -> bytes:
    return "".join((*(f"{one}\n" for one in tips), *(f"^{one}\n" for one in known))).encode()


def _entries(answer: bytes) -> Iterator[Entry]:
    """Read raw lines: `:MODE MODE OID OID STATUS`, with a colon, mode and object more for each further parent."""
    parts = iter(answer.split(b"\0"))
    for said in parts:
        if not said:
            continue
        words = said.decode("ascii").lstrip(":").split()
        parents = len(said) - len(said.lstrip(b":"))
        yield Entry(
            path=next(parts),
            mode=words[parents],
            object=words[2 * parents + 1],
            existed=any(mode != ABSENT for mode in words[:parents]),
        )


def _quoted(path: bytes) -> bytes:
    """Quote a path as git reads it in a list of object directories."""
    plain = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@ ")
    return b'"' + b"".join(bytes([one]) if one in plain else b"\\%03o" % one for one in path) + b'"'
