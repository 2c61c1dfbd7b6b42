"""What a new index does to what is staged: versions that nothing else has, and what git would believe of files.

git takes a file whose time and size stand in the index for unchanged, and a cached tree for what the entries say.
Both are looked at again, for the entries that a task changed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.world import Files
from artoo.world.git_index import cached_trees
from artoo.world.git_layout import is_index, read_file
from artoo.world.git_shadow import CannotJudge, Shadow

_HIDING = 0x8000 | 0x40000000
"""Assume unchanged, and skip the worktree: git looks at such a file no more."""

_ENTRY = re.compile(r"(\d{6}) ([0-9a-f]{40,64}) (\d)\t(.*)")
_MODULE = "160000"
_LINK = "120000"


@dataclass(frozen=True, slots=True)
class Staged:
    """What is lost or wrong. `tips`: contents that nothing would name any more."""

    reasons: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of an index; `told` is what it says of the file's times and size."""

    mode: str
    oid: str
    stage: int
    told: tuple[str, ...]
    size: int
    mtime: tuple[int, int]
    flags: int


def compared_index(
    repository: Path,
    inner: str,
    worktree: Path | None,
    shadows: tuple[Shadow, Shadow],
    looks: tuple[Files, Files],
) -> Staged:
    """What changes from one index to the other. `worktree`: where the files are. Raises CannotJudge, OSError."""
    if not inner.endswith("index"):  # the shared part of an index that is split: git only ever adds one
        gone = looks[0].at(repository / inner) is not None
        return Staged(("a part of the index is overwritten or removed",) if gone else ())
    new_content = _content(repository / inner, looks[1])
    if new_content is None:
        return Staged(("what is staged would be forgotten: the index is removed",))
    if not is_index(new_content):
        return Staged(("this index is not one that git writes",))
    old = _entries(shadows[0], repository, inner, looks[0])
    new = _entries(shadows[1], repository, inner, looks[1])
    reasons = list(_hidden(old, new))
    tips = _forgotten(old, new, shadows)
    if tips:
        reasons.append(f"staged versions would be nowhere any more ({len(tips)})")
    if worktree is not None:
        reasons += _believed(old, new, worktree, looks[1], shadows[1])
    if not any(entry.stage for entry in new.values()):
        reasons += _cached_trees(shadows[1])
    return Staged(tuple(reasons), tips)


def _content(path: Path, files: Files) -> bytes | None:
    place = files.at(path)
    return None if place is None else read_file(place)


def _entries(shadow: Shadow, repository: Path, inner: str, files: Files) -> dict[str, Entry]:
    content = _content(repository / inner, files)
    if content is None:
        return {}
    place = shadow.place / "index"
    place.write_bytes(content)
    directory = (repository / inner).parent
    for name in files.names(directory):
        if name.startswith("sharedindex."):
            (shadow.place / name).write_bytes(_content(directory / name, files) or b"")
    return dict(_parsed(shadow.git("ls-files", "--stage", "--debug", index=place).splitlines()))


def _parsed(lines: Iterable[str]) -> Iterator[tuple[str, Entry]]:
    """Each entry is followed by five lines: ctime, mtime, dev and ino, uid and gid, size and flags."""
    listed = list(lines)
    for number in range(0, len(listed), 6):
        head, *told = listed[number : number + 6]
        found = _ENTRY.fullmatch(head)
        if found is None or len(told) != 5:
            raise CannotJudge("its index cannot be read")
        mode, oid, stage, path = found.groups()
        seconds, _, nanoseconds = told[1].split()[1].partition(":")
        words = told[4].split()
        mtime = (int(seconds), int(nanoseconds))
        yield f"{stage} {path}", Entry(mode, oid, int(stage), tuple(told), int(words[1]), mtime, int(words[3], 16))


def _hidden(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> Iterator[str]:
    hidden = [
        key
        for key, entry in new.items()
        if entry.flags & _HIDING and not (key in old and old[key].flags & _HIDING & entry.flags)
    ]
    if hidden:
        yield f"changes to files are hidden from git ({len(hidden)})"


def _forgotten(
    old: Mapping[str, Entry], new: Mapping[str, Entry], shadows: tuple[Shadow, Shadow]
) -> tuple[str, ...]:
    """Contents that only the old index had."""
    kept = {entry.oid for entry in new.values()}
    gone = {entry.oid for entry in old.values() if entry.oid not in kept and entry.mode != _MODULE}
    gone -= {oid for _, oid in _tree(shadows[0])}
    return tuple(sorted(gone - shadows[1].everything())) if gone else ()


def _tree(shadow: Shadow) -> frozenset[tuple[str, str]]:
    """The files of HEAD, with their contents."""
    if not shadow.git("rev-parse", "--verify", "--quiet", "HEAD", accept=(0, 1)).strip():
        return frozenset()
    lines = (line.partition("\t") for line in shadow.git("ls-tree", "-r", "HEAD").splitlines())
    return frozenset((path, head.split()[2]) for head, _, path in lines)


def _believed(
    old: Mapping[str, Entry], new: Mapping[str, Entry], worktree: Path, files: Files, shadow: Shadow
) -> Iterator[str]:
    changed = {
        key: entry
        for key, entry in new.items()
        if (key not in old or old[key] != entry) and not entry.stage and entry.mode != _MODULE
    }
    committed = _tree(shadow) if changed else frozenset[tuple[str, str]]()
    wrong = 0
    for key, entry in changed.items():
        path = key.partition(" ")[2]
        if path.startswith('"'):  # git quotes it: such a name is rare, and has to be asked about
            wrong += 1
            continue
        place = files.at(worktree / path)
        known = (path, entry.oid) in committed or (key in old and old[key].oid == entry.oid)
        if place is None:
            wrong += not known
            continue
        seen = place.lstat()
        told = (seen.st_mtime_ns // 10**9, seen.st_mtime_ns % 10**9) == entry.mtime and seen.st_size == entry.size
        if (told or not known) and _oid(place, entry) != entry.oid:
            wrong += 1
    if wrong:
        yield f"the index says of files what is not in them ({wrong})"


def _oid(place: Path, entry: Entry) -> str:
    """The name that git gives what is there, as far as no setting changes it on the way."""
    content = os.fsencode(os.readlink(place)) if entry.mode == _LINK else read_file(place, 1 << 30)
    if content is None:
        return ""
    total = hashlib.sha1(usedforsecurity=False) if len(entry.oid) == 40 else hashlib.sha256()
    total.update(b"blob %d\0" % len(content))
    total.update(content)
    return total.hexdigest()


def _cached_trees(shadow: Shadow) -> Iterator[str]:
    """The next commit would be of these trees, not of the entries that git shows."""
    index, fresh, made = (shadow.place / name for name in ("index", "index.fresh", "objects.fresh"))
    listed = shadow.git("ls-files", "--stage", "-z", index=index)
    fresh.unlink(missing_ok=True)
    shadow.git("update-index", "-z", "--index-info", text=listed, index=fresh)
    made.mkdir(exist_ok=True)
    top = shadow.git("write-tree", "--missing-ok", index=fresh, objects=made).strip()
    shadow.git("update-index", "--no-split-index", "--index-version", "2", index=index)
    try:
        remembered = cached_trees(index.read_bytes(), len(top) // 2)
    except ValueError as error:
        raise CannotJudge(f"the index cannot be read: {error}") from error
    lines = shadow.git("ls-tree", "-r", "-t", "-d", "-z", top, objects=made).split("\0")
    named = (line.partition("\t") for line in lines if line)
    trees = {b"": top} | {os.fsencode(path): about.split(" ")[2] for about, _, path in named}
    if any(trees.get(path) != tree for path, tree in remembered.items()):
        yield "the next commit would not be of what is staged"
