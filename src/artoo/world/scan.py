"""Reads what a command changed: walks an upper layer beside the tree below it, never following a link.

In the upper layer of an overlay a character device 0:0 means *deleted*, the attribute `overlay.opaque` means
*this directory hides the one below*; everything else is a new or a copied-up version of what is below.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from artoo.contracts.changes import Node
from artoo.contracts.errors import SandboxError
from artoo.world.nodes import (
    DIRECTORY_FLAGS,
    NodeState,
    digest_file,
    open_directory,
    overlay_xattr,
    read_state,
    state_of,
)
from artoo.world.stage import Layer

_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Effect:
    """What happens to one path: from `before` to `after` (None: nothing there).

    `relative` is the path below the layer's root (empty for the root itself). `in_place`: the thing stays, only
    its mode, owner, attributes or times change. `appended`: the old content is the start of the new.
    """

    layer: Layer
    relative: bytes
    before: NodeState | None
    after: NodeState | None
    in_place: bool = False
    replaced_directory: bool = False
    appended: bool = False
    digest: str | None = None

    @property
    def path(self) -> bytes:
        root = os.fsencode(self.layer.root)
        return root + b"/" + self.relative if self.relative else root


def scan(layers: tuple[Layer, ...], limit: int) -> list[Effect]:
    """All effects of all layers, in path order. Raises SandboxError when they cannot be read completely."""
    found: list[Effect] = []
    for layer in layers:
        found += _Scanner(layer, limit - len(found)).effects()
    return sorted(found, key=lambda effect: effect.path)


class _Scanner:
    """One walk over one layer."""

    def __init__(self, layer: Layer, limit: int) -> None:
        self._layer = layer
        self._limit = limit
        self._found: list[Effect] = []

    def effects(self) -> list[Effect]:
        try:
            upper = os.open(self._layer.upper, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise self._unreadable(b"", error) from error
        try:
            seen = os.fstat(upper)
            with self._opened(upper, ".", state_of(seen), b"") as readable:
                lower = os.open(self._layer.root, DIRECTORY_FLAGS)
                try:
                    self._metadata(b"", read_state(lower, "."), self._root_state(readable, seen))
                    self._directory(readable, lower, b"", opaque=False)
                finally:
                    os.close(lower)
        finally:
            os.close(upper)
        return self._found

    def _root_state(self, readable: int, seen: os.stat_result) -> NodeState:
        state = read_state(readable, ".")
        assert state is not None
        return replace(state, mode=stat.S_IMODE(seen.st_mode))

    def _directory(self, upper: int, lower: int | None, relative: bytes, *, opaque: bool) -> None:
        if relative.count(b"/") > _DEEPEST:
            raise SandboxError(f"{os.fsdecode(relative[:80])}… nests deeper than {_DEEPEST} directories: refused")
        names = sorted(os.listdir(upper), key=os.fsencode)
        for name in names:
            self._entry(upper, lower, name, _join(relative, name))
        if opaque and lower is not None:
            for name in sorted(set(os.listdir(lower)) - set(names), key=os.fsencode):
                self._gone(lower, name, _join(relative, name))

    def _entry(self, upper: int, lower: int | None, name: str, relative: bytes) -> None:
        after = read_state(upper, name)
        assert after is not None
        before = read_state(lower, name) if lower is not None else None
        if _is_whiteout(upper, name, after):
            if lower is not None:
                self._gone(lower, name, relative)
        elif after.is_directory:
            self._subdirectory(upper, lower, name, relative, before, after)
        else:
            self._leaf(upper, lower, name, relative, before, after)

    def _subdirectory(
        self,
        upper: int,
        lower: int | None,
        name: str,
        relative: bytes,
        before: NodeState | None,
        after: NodeState,
    ) -> None:
        with self._opened(upper, name, after, relative) as inside:
            after = replace(read_state(upper, name) or after, mode=after.mode)
            if before is None or not before.is_directory:
                self._add(Effect(self._layer, relative, before, after))
                self._directory(inside, None, relative, opaque=False)
                return
            assert lower is not None
            opaque = overlay_xattr(upper, name, "opaque") == b"y"
            below = self._open_lower(lower, name, relative)
            try:
                if opaque and os.listdir(below):
                    self._add(Effect(self._layer, relative, before, after, True, replaced_directory=True))
                else:
                    self._metadata(relative, before, after)
                self._directory(inside, below, relative, opaque=opaque)
            finally:
                os.close(below)

    def _leaf(
        self,
        upper: int,
        lower: int | None,
        name: str,
        relative: bytes,
        before: NodeState | None,
        after: NodeState,
    ) -> None:
        digest = self._digest(upper, name, relative) if after.node is Node.FILE else None
        if before is not None and lower is not None and _same_content(lower, name, before, after, digest):
            self._metadata(relative, before, after, digest)
            return
        if before is not None and before.is_directory and lower is not None:
            self._children_gone(lower, name, relative)
        grown = (
            before is not None
            and lower is not None
            and before.node is after.node is Node.FILE
            and after.size > before.size
            and self._starts_with(upper, lower, name, before.size)
        )
        self._add(Effect(self._layer, relative, before, after, appended=grown, digest=digest))

    def _metadata(
        self, relative: bytes, before: NodeState | None, after: NodeState, digest: str | None = None
    ) -> None:
        """A copied-up thing with the same content: a change only if its metadata differ."""
        if before is None:
            return
        times_differ = not after.is_directory and before.mtime_ns != after.mtime_ns
        if times_differ or not before.same_metadata(after):
            self._add(Effect(self._layer, relative, before, after, in_place=True, digest=digest))

    def _gone(self, lower: int, name: str, relative: bytes) -> None:
        before = read_state(lower, name)
        if before is None:
            return
        self._add(Effect(self._layer, relative, before, None))
        if before.is_directory:
            self._children_gone(lower, name, relative)

    def _children_gone(self, lower: int, name: str, relative: bytes) -> None:
        if relative.count(b"/") > _DEEPEST:
            raise SandboxError(f"{os.fsdecode(relative[:80])}… nests deeper than {_DEEPEST} directories: refused")
        inside = self._open_lower(lower, name, relative)
        try:
            for child in sorted(os.listdir(inside), key=os.fsencode):
                self._gone(inside, child, _join(relative, child))
        finally:
            os.close(inside)

    @contextmanager
    def _opened(self, directory: int, name: str, state: NodeState, relative: bytes) -> Generator[int, None, None]:
        """A directory of the upper layer, opened even if the command took its owner's rights away."""
        if state.mode & 0o700 != 0o700 and os.geteuid() != 0:
            os.chmod(f"/proc/self/fd/{directory}/{name}", state.mode | 0o700)
        try:
            descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
        except OSError as error:
            raise self._unreadable(relative, error) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_lower(self, lower: int, name: str, relative: bytes) -> int:
        try:
            return open_directory(lower, name)
        except OSError as error:
            raise self._unreadable(relative, error) from error

    def _digest(self, upper: int, name: str, relative: bytes) -> str:
        try:
            return digest_file(upper, name)
        except PermissionError:
            return self._digest_opened_up(upper, name, relative)
        except OSError as error:
            raise self._unreadable(relative, error) from error

    def _digest_opened_up(self, upper: int, name: str, relative: bytes) -> str:
        """Reads a file that the command made unreadable; it is ours, in our layer, and gets its mode back."""
        mode = stat.S_IMODE(os.stat(name, dir_fd=upper, follow_symlinks=False).st_mode)
        path = f"/proc/self/fd/{upper}/{name}"
        try:
            os.chmod(path, mode | 0o400)
            return digest_file(upper, name)
        except OSError as error:
            raise self._unreadable(relative, error) from error
        finally:
            os.chmod(path, mode)

    def _starts_with(self, upper: int, lower: int, name: str, length: int) -> bool:
        try:
            return digest_file(upper, name, length) == digest_file(lower, name)
        except OSError:  # unreadable: then it cannot be shown to be an addition
            return False

    def _add(self, effect: Effect) -> None:
        if len(self._found) >= self._limit:
            raise SandboxError(
                f"the command changes more than {self._limit} paths below {self._layer.root}: refused"
            )
        self._found.append(effect)

    def _unreadable(self, relative: bytes, error: OSError) -> SandboxError:
        place = os.fsdecode(os.path.join(os.fsencode(self._layer.root), relative))
        return SandboxError(
            f"cannot read what the command did to {place!r}: {error.strerror}; nothing of it was applied"
        )


def _join(relative: bytes, name: str) -> bytes:
    raw = os.fsencode(name)
    return relative + b"/" + raw if relative else raw


def _is_whiteout(directory: int, name: str, state: NodeState) -> bool:
    if state.node is Node.DEVICE:
        seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
        return stat.S_ISCHR(seen.st_mode) and state.rdev == 0
    if state.node is Node.FILE and state.size == 0:
        return overlay_xattr(directory, name, "whiteout") is not None
    return False


def _same_content(lower: int, name: str, before: NodeState, after: NodeState, digest: str | None) -> bool:
    if before.node is not after.node:
        return False
    if after.node is Node.FILE:
        if before.size != after.size:
            return False
        try:
            return digest_file(lower, name) == digest
        except OSError:  # not readable here: cannot be shown to be the same
            return False
    return (before.target, before.rdev) == (after.target, after.rdev)
