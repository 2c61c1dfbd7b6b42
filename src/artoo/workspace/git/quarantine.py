"""Check a task's git objects in a bare repository before approval, with limits on counted and judged commits.

It reads the user's objects as alternates, and uses no settings of the user or of the task. The user's repository is
not modified.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from artoo.workspace.git.run import Git

MOST_COUNTED = 1_000
"""The maximum number of commits that are counted. The exact number of even more commits makes no difference to the
user."""

MOST_JUDGED = 20_000
"""The maximum number of commits whose files are judged. With more commits, approval is needed."""

ABSENT = "000000"


class TreeEntry(NamedTuple):
    """The entry of a path in a commit, compared with the state before it. `existed`: true if the path existed
    before. Mode 000000 means that the path is deleted.

    `renamed`: for a deleted file, the path to which it was renamed. `exact`: true if the file has the same content
    at the new path.
    """

    path: bytes
    mode: str
    object: str
    existed: bool
    renamed: bytes = b""
    exact: bool = True


class Quarantine:
    """Reads the user's objects together with the task's. All methods raise GitFailed and OSError."""

    def __init__(self, place: Path, program: str, object_format: str, user: Git | None) -> None:
        """Make the repository at a path that does not exist. `user`: the repository whose objects are shared."""
        place.mkdir(mode=0o700)
        self._git = Git(program, place)
        self._git.run("init", "-q", "--template=", f"--object-format={object_format}")
        if user is not None:
            objects, shallow = (
                user.directory / os.fsdecode(user.run("rev-parse", "--git-path", name).rstrip(b"\n"))
                for name in ("objects", "shallow")
            )
            # The user's object directory is listed as an alternate. Nothing is copied from it or written to it.
            (place / "objects/info/alternates").write_bytes(_quoted(os.fsencode(objects)) + b"\n")
            if shallow.is_file():
                shutil.copyfile(shallow, place / "shallow")

    def add(self, pack: Path) -> None:
        """Add the objects of a pack after git has checked each of them."""
        with pack.open("rb") as source:
            self._git.run("index-pack", "--stdin", "--strict", source=source)

    def require_complete(self, tips: Iterable[str], known: Iterable[str]) -> None:
        """Raise GitFailed if an object that the tips need is missing."""
        self._git.run("rev-list", "--objects", "--quiet", "--stdin", stdin=_lines(tips, known))

    def missing(self, objects: Iterable[str]) -> frozenset[str]:
        """Return the given objects that do not exist."""
        answer = self._git.run("cat-file", "--batch-check=%(objectname)", stdin=_lines(objects)).decode()
        return frozenset(line.split()[0] for line in answer.splitlines() if line.endswith(" missing"))

    def beyond(self, tips: Iterable[str], known: Iterable[str], most: int = MOST_COUNTED) -> tuple[str, ...]:
        """Return at most `most` commits that are reachable from the tips and not from `known`, newest first."""
        if not (asked := tuple(tips)):
            return ()
        answer = self._git.run("rev-list", f"--max-count={most}", "--stdin", stdin=_lines(asked, known))
        return tuple(answer.decode().split())

    def follows(self, old: str, new: str) -> bool:
        """True if `new` is `old` or a descendant of it."""
        return not self.beyond([old], [new], 1)

    def subject(self, commit: str) -> bytes:
        """Return the first line of a commit's message, shortened."""
        return self._git.run("log", "-1", "--no-color", "--format=%s", commit, "--").strip()[:72]

    def tree(self, commit: str) -> dict[bytes, str]:
        """Return the files of a commit, as index entries `MODE OBJECT 0` by path. Empty if `commit` is empty."""
        answer = self._git.run("ls-tree", "-r", "-z", "--full-tree", commit) if commit else b""
        said = (entry.partition(b"\t") for entry in answer.split(b"\0") if entry)
        return {path: "{0} {2} 0".format(*info.decode().split()) for info, _, path in said}

    def brought(self, tips: Iterable[str], known: Iterable[str]) -> tuple[TreeEntry, ...] | None:
        """Return the changes of new commits relative to all their parents; None if there are too many commits."""
        commits = self.beyond(tips, known, MOST_JUDGED + 1)
        if len(commits) > MOST_JUDGED:
            return None
        arguments = ("--stdin", "--no-commit-id", "-r", "-c", "--root", "--raw", "-z", "--no-renames")
        return tuple(_entries(self._git.run("diff-tree", *arguments, stdin=_lines(commits)))) if commits else ()

    def difference(self, old: str, new: str) -> tuple[TreeEntry, ...]:
        """Return the differences between two commits. A rename is a deletion and a new file."""
        return tuple(_entries(self._git.run("diff-tree", "-r", "--raw", "-z", "-M", old, new)))

    def is_commit(self, object_name: str) -> bool:
        """True if an object is a commit, or a tag of one."""
        asked = f"{object_name}^{{commit}}\n".encode()
        return b" commit " in self._git.run("cat-file", "--batch-check", stdin=asked)

    def is_abbreviation(self, name: str) -> bool:
        """True if git would interpret a ref's name as an abbreviated object id."""
        return bool(self._git.run("rev-parse", f"--disambiguate={name}"))

    def link_target(self, blob: str) -> bytes:
        return self._git.run("cat-file", "blob", blob)[:4096]


def _lines(tips: Iterable[str], known: Iterable[str] = ()) -> bytes:
    return "".join((*(f"{one}\n" for one in tips), *(f"^{one}\n" for one in known))).encode()


def _entries(answer: bytes) -> Iterator[TreeEntry]:
    """Parse raw lines, `:MODE MODE OID OID STATUS`. For a merge, each further parent adds a colon, a mode and an
    object id."""
    parts = iter(answer.split(b"\0"))
    for said in filter(None, parts):
        words = said.decode().lstrip(":").split()
        parents = said.count(b":")
        path, mode, name, status = next(parts), words[parents], words[2 * parents + 1], words[-1]
        if status.startswith("R"):
            old, path = path, next(parts)
            yield TreeEntry(old, ABSENT, "", existed=True, renamed=path, exact=status == "R100")
            yield TreeEntry(path, mode, name, existed=False)
        else:
            yield TreeEntry(path, mode, name, existed=any(one != ABSENT for one in words[:parents]))


def _quoted(path: bytes) -> bytes:
    """Quote a path by git's rules for a list of object directories."""
    return (
        b'"'
        + b"".join(bytes([one]) if one in b"/._-" or bytes([one]).isalnum() else b"\\%03o" % one for one in path)
        + b'"'
    )
