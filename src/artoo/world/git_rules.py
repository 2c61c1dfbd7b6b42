"""Which changes below a `.git` lose nothing, so that `git status` and `git commit` need no question.

Only what git itself can give back counts: an index that is an index, a log that only grew, a branch whose
old commit stands in its log, git's own notes to itself, and the settings of a repository that is new.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from artoo.contracts.changes import Node
from artoo.world.scan import Effect

_SCRATCH = frozenset(
    b"COMMIT_EDITMSG ORIG_HEAD FETCH_HEAD MERGE_HEAD MERGE_MSG MERGE_MODE AUTO_MERGE CHERRY_PICK_HEAD REVERT_HEAD "
    b"MERGE_RR TAG_EDITMSG gitk.cache".split()
)
_LEADS_ELSEWHERE = frozenset(b"config.worktree info/attributes commondir gitdir".split())
"""Files that name settings, or a directory with settings, from which git starts programs."""
_COMMIT = re.compile(rb"[0-9a-f]{40}([0-9a-f]{24})?")
_SECTION = re.compile(rb'\[\s*([A-Za-z]+)(?:\s+"[^"\n]*")?\s*\]')
_SAFE_SETTINGS = {
    b"core": frozenset(
        b"repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks".split()
    ),
    b"remote": frozenset(b"url fetch tagopt".split()),
    b"branch": frozenset(b"remote merge rebase".split()),
    b"extensions": frozenset(b"objectformat refstorage".split()),
    b"user": frozenset(b"name email".split()),
}
_SAFE_URL = re.compile(rb"(https?://|ssh://|git://|file://|/|\./|\.\./|[\w.-]+@[\w.-]+:)[^\n]*")
_LARGEST_READ = 64 << 20
"""Bytes: the index of some 600,000 files. What is larger cannot be judged and is asked about."""


@dataclass(frozen=True, slots=True)
class _Inner:
    """An effect and its path below the `.git` that holds it."""

    effect: Effect
    inner: bytes


def bookkeeping_paths(effects: Sequence[Effect]) -> frozenset[bytes]:
    """Paths of the effects that lose nothing, by the rules above."""
    repositories: dict[bytes, list[_Inner]] = defaultdict(list)
    for effect in effects:
        repository, inner = _split(effect.path)
        if repository is not None:
            repositories[repository].append(_Inner(effect, inner))
    found: set[bytes] = set()
    for members in repositories.values():
        found.update(_harmless(members))
    return frozenset(found)


def _split(path: bytes) -> tuple[bytes | None, bytes]:
    parts = path.split(b"/")
    if b".git" not in parts:
        return None, b""
    index = parts.index(b".git")
    return b"/".join(parts[: index + 1]), b"/".join(parts[index + 1 :])


def _harmless(members: Iterable[_Inner]) -> Iterable[bytes]:
    listed = list(members)
    grown_logs = {one.inner: one.effect for one in listed if one.inner.startswith(b"logs/")}
    new = any(one.inner == b"" and one.effect.before is None for one in listed)
    for one in listed:
        if _loses_nothing(one, grown_logs, new):
            yield one.effect.path


def _loses_nothing(one: _Inner, logs: dict[bytes, Effect], new: bool) -> bool:
    effect, inner = one.effect, one.inner
    before, after = effect.before, effect.after
    if inner in _SCRATCH:
        return True
    if before is None:
        return _harmless_addition(one, new)
    if after is None:
        return before.is_directory and inner.startswith((b"objects/", b"refs/"))
    if effect.in_place:
        return before.same_metadata(after)
    if before.node is not Node.FILE or after.node is not Node.FILE:
        return False
    if inner == b"index":
        return _is_index(_staged(effect, None))
    if inner.startswith(b"logs/"):
        return effect.appended
    if inner == b"HEAD" or inner.startswith((b"refs/heads/", b"refs/remotes/")):
        return _old_commit_is_logged(effect, inner, logs)
    return inner in (b"info/exclude", b"description") and effect.appended


def _harmless_addition(one: _Inner, new: bool) -> bool:
    """New files below `.git`: hooks that cannot run, and the plain settings of a repository that is new itself."""
    effect, inner = one.effect, one.inner
    assert effect.after is not None
    if inner == b"":
        return effect.after.is_directory
    if inner == b"hooks":
        return effect.after.is_directory
    if inner.startswith(b"hooks/"):
        return effect.after.node is Node.FILE and inner.endswith(b".sample")
    if inner == b"config":
        return new and effect.after.node is Node.FILE and _plain_settings(_staged(effect, _LARGEST_READ))
    if inner in _LEADS_ELSEWHERE or inner.startswith((b"modules/", b"worktrees/")):
        return False
    return effect.after.node in (Node.FILE, Node.DIRECTORY)


def _plain_settings(text: bytes) -> bool:
    """Whether a configuration holds only settings that name no program."""
    section = b""
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith((b"#", b";")):
            continue
        header = _SECTION.fullmatch(line)
        if header:
            section = header.group(1).lower()
            continue
        name, _, value = line.partition(b"=")
        name, value = name.strip().lower(), value.strip()
        if name not in _SAFE_SETTINGS.get(section, frozenset()) or value.endswith(b"\\"):
            return False
        if name == b"url" and not _SAFE_URL.fullmatch(value):
            return False
    return True


def _is_index(content: bytes) -> bool:
    """Whether git could have written this index: whole by its own checksum, which zeros leave out (skipHash)."""
    body = content[:-20]
    ends = (hashlib.sha1(body, usedforsecurity=False).digest(), bytes(20))
    if body.startswith(b"DIRC") and content[-20:] in ends:
        return True
    return content.startswith(b"DIRC") and content[-32:] in (hashlib.sha256(content[:-32]).digest(), bytes(32))


def _old_commit_is_logged(effect: Effect, inner: bytes, logs: dict[bytes, Effect]) -> bool:
    old = _before(effect)
    if not _COMMIT.fullmatch(old):
        return inner == b"HEAD" and old.startswith(b"ref: refs/")
    log = logs.get(b"logs/" + inner)
    if log is None or log.after is None or not (log.appended or log.before is None):
        return False
    return old in _staged(log, None)


def _before(effect: Effect) -> bytes:
    return _read(os.fsencode(effect.layer.root), effect.relative, 4096).strip()


def _staged(effect: Effect, length: int | None) -> bytes:
    return _read(os.fsencode(effect.layer.upper), effect.relative, length or _LARGEST_READ)


def _read(root: bytes, relative: bytes, length: int) -> bytes:
    """The first bytes of a regular file; empty when it cannot be read."""
    try:
        descriptor = os.open(os.path.join(root, relative), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(descriptor, min(length, os.fstat(descriptor).st_size))
    finally:
        os.close(descriptor)
