"""What a submission changed: its copy beside the manifest of what was there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Node, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.tools.layers.copying import CopyLimits, stamp
from artoo.tools.layers.manifest import Base, Manifest
from artoo.world.nodes import DIRECTORY_FLAGS, NodeState, digest_file, open_directory, read_state

_DERIVED = frozenset({b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis"})
"""Caches that programs make again: not part of a submission."""

_NOTES = frozenset({b"index", b"COMMIT_EDITMSG", b"FETCH_HEAD", b"ORIG_HEAD", b"gitk.cache"})
"""What git writes down for itself when it is only asked: alone, not part of a submission either."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One path that differs. `base` None: it was not there; `after` None: it is gone. `content` as in Base."""

    tree: str
    path: str
    base: Base | None
    after: NodeState | None
    content: str = ""

    @property
    def relative(self) -> bytes:
        """The path below its tree, as bytes."""
        return path_bytes(self.path)


@dataclass(slots=True)
class Comparison:
    """One walk over the copies of a layer."""

    manifest: Manifest
    limits: CopyLimits = field(default_factory=CopyLimits)
    _found: list[Difference] = field(default_factory=list[Difference])
    _seen: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _paths: int = 0
    _tree: str = ""

    def run(self, trees: Iterable[tuple[str, Path]]) -> tuple[Difference, ...]:
        """All differences in path order, caches and git's own notes left out. Raises SandboxError."""
        for tree, place in trees:
            self._tree = tree
            descriptor = os.open(place, DIRECTORY_FLAGS)
            try:
                self._directory(descriptor, b"")
            except OSError as error:
                raise SandboxError(f"the work in {place} cannot be read: {error}") from error
            finally:
                os.close(descriptor)
        self._found += [
            Difference(base.tree, base.path, base, None)
            for key, base in self.manifest.items()
            if base.copied and key not in self._seen
        ]
        return _submitted(sorted(self._found, key=lambda one: (one.tree, one.relative)))

    def _directory(self, descriptor: int, relative: bytes) -> None:
        for name in sorted(os.listdir(descriptor), key=os.fsencode):
            self._paths += 1
            if self._paths > 2 * self.limits.paths:
                raise SandboxError(f"the submission holds more than {2 * self.limits.paths:,} paths: refused")
            raw = os.fsencode(name)
            self._entry(descriptor, name, relative + b"/" + raw if relative else raw)

    def _entry(self, descriptor: int, name: str, relative: bytes) -> None:
        state = read_state(descriptor, name)
        if state is None:
            return
        path = printable_path(relative)
        base = self.manifest.get((self._tree, path))
        self._seen.add((self._tree, path))
        content = self._content(descriptor, name, state, base)
        if base is None or (base.node, base.mode, base.content) != (state.node, _mode(base, state), content):
            self._found.append(Difference(self._tree, path, base, state, content))
        if state.is_directory:
            self._subdirectory(descriptor, name, relative, state)

    def _subdirectory(self, descriptor: int, name: str, relative: bytes, state: NodeState) -> None:
        if state.mode & 0o500 != 0o500:
            os.chmod(name, state.mode | 0o700, dir_fd=descriptor)
        inside = open_directory(descriptor, name)
        try:
            self._directory(inside, relative)
        finally:
            os.close(inside)

    def _content(self, descriptor: int, name: str, state: NodeState, base: Base | None) -> str:
        if state.node is Node.LINK:
            return printable_path(state.target)
        if state.node is not Node.FILE:
            return ""
        seen = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if base is not None and base.stamp == stamp(seen):
            return base.content
        return digest_file(descriptor, name)


def _mode(base: Base, state: NodeState) -> int:
    """Links have no mode of their own."""
    return base.mode if state.node is Node.LINK else state.mode


def _submitted(found: Sequence[Difference]) -> tuple[Difference, ...]:
    """Without the notes of repositories in which nothing else changed."""
    busy = {root for one in found if (root := _repository(one)) is not None and not is_note(one)}
    return tuple(one for one in _without_caches(found) if not (is_note(one) and _repository(one) not in busy))


def _without_caches(found: Sequence[Difference]) -> Iterator[Difference]:
    """Caches are left out, unless the directory that holds them goes."""
    gone = {(one.tree, one.relative) for one in found if one.after is None and not _in_cache(one.relative)}
    for one in found:
        goes_too = one.after is None and any((one.tree, above) in gone for above in _above(one.relative))
        if goes_too or not _in_cache(one.relative):
            yield one


def _in_cache(relative: bytes) -> bool:
    return bool(_DERIVED & set(relative.split(b"/")))


def _above(relative: bytes) -> Iterator[bytes]:
    parts = relative.split(b"/")
    return (b"/".join(parts[:count]) for count in range(1, len(parts)))


def _repository(one: Difference) -> tuple[str, bytes] | None:
    """The `.git` directory that a path lies in."""
    parts = one.relative.split(b"/")
    return (one.tree, b"/".join(parts[: parts.index(b".git") + 1])) if b".git" in parts else None


def is_note(one: Difference) -> bool:
    """Whether a path holds what git can make again, such as the times of files in its index."""
    parts = one.relative.split(b"/")
    return len(parts) >= 2 and parts[-2] == b".git" and parts[-1] in _NOTES
